/* Stores behind URLs are opened here, see http.h. */
#ifndef CV_STORE_HTTP_OPEN_H
#define CV_STORE_HTTP_OPEN_H

#include "store/http_session.h"
#include "store/store.h"

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
