/* Stores behind URLs: an object of a web server or of S3, a part of one, or a directory with
 * one object for each chunk. They are read only, far, and pinned: all that is read is of the
 * version that was found when the store was opened. */
#ifndef CV_REMOTE_REMOTE_H
#define CV_REMOTE_REMOTE_H

#include "remote/contents.h"
#include "remote/session.h"
#include "store/store.h"

/* The session that such a store was opened in, borrowed; NULL: it is no such. */
cv_session *cv_store_http_session(const cv_store *store);

/* Bytes [offset, offset + size) of such a store, which is no directory, as one of its own (to
 * its end: UINT64_MAX), with its end at hand; the version is the same. */
cv_status cv_store_http_part(cv_store *store, uint64_t offset, uint64_t size, cv_store **out,
                             cv_error *err);

/* What was fetched so far by this store and those opened from it. False: it is no such. */
bool cv_store_http_transfers(const cv_store *store, caterva_transfers *out);

/* ---- http_open ----
 * Stores behind URLs are opened here, see http.h. */

/* Whether the text is a URL of such a store. */
bool cv_store_is_url(const char *url);

/* A session to open such a URL in, as the options (NULL: defaults) say; release it when all is
 * opened. */
cv_status cv_store_http_begin(const char *url, const caterva_remote_options *options,
                              cv_session **out, cv_error *err);

/* Opens the object at `url`, from byte `offset` on, with one request, which also brings its
 * end (or, with an offset, what begins there). Where there is no such object but a directory
 * of that name, that. */
cv_status cv_store_http_open(cv_session *session, const char *url, uint64_t offset,
                             cv_watch *watch, cv_store **out, cv_error *err);

/* Opens what such a store reads once more, as it is now: NULL when the store is no such. */
cv_status cv_store_http_again(cv_store *store, cv_watch *watch, cv_store **out,
                              cv_error *err);

#endif
