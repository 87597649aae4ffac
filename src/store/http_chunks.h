/* Chunks that are objects of their own. */
#ifndef CV_STORE_HTTP_CHUNKS_H
#define CV_STORE_HTTP_CHUNKS_H

#include "store/http_piece.h"
#include "store/http_read.h"

typedef struct cv_http_chunks cv_http_chunks;

/* Of the directory at `url`. */
cv_status cv_http_chunks_new(cv_session *session, const char *url, cv_http_chunks **out,
                             cv_error *err);
void cv_http_chunks_free(cv_http_chunks *chunks); /* NULL is fine */

/* Nothing that was kept is used any more, and what is kept from now on is fetched past all
 * caches. */
void cv_http_chunks_forget(cv_http_chunks *chunks);

/* Any thread; CATERVA_ENOTFOUND when there is no such object. */
cv_status cv_http_chunks_size(cv_http_chunks *chunks, cv_object id, cv_watch *watch,
                              uint64_t *size, cv_error *err);

/* As cv_store_ops.meet and .read_many have it. */
cv_status cv_http_chunks_meet(cv_http_chunks *chunks, const cv_object *ids, size_t n,
                              cv_watch *watch, cv_error *err);
cv_status cv_http_chunks_read(cv_http_chunks *chunks, const cv_store_range *ranges, size_t n,
                              const cv_arrivals *arrivals, cv_error *err);

#endif
