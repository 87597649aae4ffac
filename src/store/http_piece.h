/* The bytes that one request for one range brings, of an object of which nothing need be known. */
#ifndef CV_STORE_HTTP_PIECE_H
#define CV_STORE_HTTP_PIECE_H

#include "base/watch.h"
#include "store/http_object.h"

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

/* The first bytes of an object, of which nothing is known yet, on order. */
typedef struct cv_http_order {
    cv_http_object *object;
    uint64_t size;       /* at most so many */
    bool is_anew;        /* past caches on the way */
    cv_http_piece piece; /* what came */
    cv_status status;
} cv_http_order;

/* Fetches all of them at once; each has its own status, and the sentence is lost.
 * CATERVA_ENOMEM, CATERVA_ESTOPPED: then nothing has come. */
cv_status cv_http_read_orders(cv_http_order *orders, size_t n, cv_watch *watch,
                              cv_error *err);

#endif
