/* Ranges of one object, read together. */
#ifndef CV_STORE_HTTP_READ_H
#define CV_STORE_HTTP_READ_H

#include "store/http_object.h"
#include "store/store.h"

/* Whose ranges they are: where in the object position 0 lies, and whether caches on the way
 * are to be passed by. */
typedef struct cv_http_window {
    cv_http_object *object;
    uint64_t offset;
    bool is_anew;
} cv_http_window;

/* As cv_store_ops.read_many has it, of ranges within the object that are not empty. */
cv_status cv_http_read(const cv_http_window *window, const cv_store_range *ranges, size_t n,
                       const cv_arrivals *arrivals, cv_error *err);

/* The bytes that one request brings, kept. */
typedef struct cv_http_piece {
    uint64_t pos;
    size_t size;
    uint8_t *bytes; /* owned */
} cv_http_piece;

/* Fetches what `ask` names, or, where a server sends only the whole of a small object, that;
 * also the first time, when nothing is known of it. *has_no_ranges: the answer was all of a
 * large object. `is_anew`: past caches on the way. */
cv_status cv_http_read_piece(cv_http_object *object, const cv_ask *ask, bool is_anew,
                             cv_watch *watch, cv_http_piece *out, bool *has_no_ranges,
                             cv_error *err);

#endif
