/* Uploads to S3 in parts: begun, sent by several requests at once, put together, or aborted. */
#ifndef CV_STORE_HTTP_PARTS_H
#define CV_STORE_HTTP_PARTS_H

#include "store/http_send.h"
#include "store/upload_state.h"

typedef struct cv_parts {
    cv_http_object *object;
    cv_sends *sends;
    cv_store *source;
    uint64_t size, part_size;
    const char *write_id;
    char upload_id[CV_UPLOAD_ID_SIZE];
    char encoded_id[3 * CV_UPLOAD_ID_SIZE]; /* as it stands in a query */
    int n, n_kept;                          /* parts; those that were there already */
    struct cv_sent_part *list;
} cv_parts;

/* The least size of parts, not below `wanted`, of which S3 takes so many as an object of `size`
 * bytes needs. */
uint64_t cv_parts_size(uint64_t size, uint64_t wanted);

/* object, sends, source, sizes and write_id are given, the rest zero. Release with
 * cv_parts_free. */
cv_status cv_parts_init(cv_parts *parts, cv_error *err);
void cv_parts_free(cv_parts *parts);

/* Begins an upload, and knows its upload_id then; mostly also when it is stopped meanwhile. */
cv_status cv_parts_begin(cv_parts *parts, cv_watch *watch, cv_error *err);

/* Goes on with one: finds the parts that the server has. *is_known false: it knows no such
 * upload any more. */
cv_status cv_parts_resume(cv_parts *parts, const char *upload_id, cv_watch *watch,
                          bool *is_known, cv_error *err);

/* Sends those that are not there. On failure none is under way any more. */
cv_status cv_parts_send(cv_parts *parts, cv_watch *watch, cv_error *err);

/* Puts them together, unless `condition` (or NULL) speaks against it. *may_be_done: on
 * failure, it may have been done. */
cv_status cv_parts_finish(cv_parts *parts, const char *condition, cv_watch *watch,
                          bool *may_be_done, cv_error *err);

/* Has the server forget the upload. `is_hasty`: returns within a moment, and leaves the
 * request on its way if that takes longer. */
void cv_parts_abort(cv_parts *parts, const char *url, bool is_hasty);

#endif
