/* Stores behind URLs: an object of a web server or of S3, a part of one, or a directory with
 * one object for each chunk. They are read only, far, and pinned: all that is read is of the
 * version that was found when the store was opened. */
#ifndef CV_STORE_HTTP_H
#define CV_STORE_HTTP_H

#include "store/http_chunks.h"
#include "store/http_file.h"
#include "store/http_session.h"
#include "store/store.h"

/* A store of the file from byte `offset` on, or, with chunks, of the directory. Takes over
 * both, also on failure. */
cv_status cv_store_http_new(cv_http_file *file, cv_http_chunks *chunks, const char *url,
                            uint64_t offset, cv_store **out, cv_error *err);

/* What such a store was opened by; the text is the store's. False: it is no such, or a part. */
typedef struct cv_http_given {
    const char *url;
    uint64_t offset;
    bool is_directory;
} cv_http_given;
bool cv_store_http_given(const cv_store *store, cv_http_given *out);

/* The session that such a store was opened in, borrowed; NULL: it is no such. */
cv_session *cv_store_http_session(const cv_store *store);

/* Bytes [offset, offset + size) of such a store, which is no directory, as one of its own (to
 * its end: UINT64_MAX), with its end at hand; the version is the same. */
cv_status cv_store_http_part(cv_store *store, uint64_t offset, uint64_t size, cv_store **out,
                             cv_error *err);

/* What was fetched so far by this store and those opened from it. False: it is no such. */
bool cv_store_http_transfers(const cv_store *store, caterva_transfers *out);

#endif
