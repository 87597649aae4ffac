/* Ranges of one object that one request asks for: how many go together, how the request names
 * them, and where what comes belongs. Pure functions. */
#ifndef CV_STORE_HTTP_SPANS_H
#define CV_STORE_HTTP_SPANS_H

#include "base/heap.h"

/* Bytes [next, end) are still to come; those from `sure` to `next` have, but in a part that may
 * yet turn out to be none. Several stand in their order. */
typedef struct cv_http_span {
    uint64_t next, end, sure;
} cv_http_span;

/* Servers take so many (Apache 200), in a field of at most 4 KiB. */
enum { CV_SPANS_MOST = 100 };

/* What a request for these costs: bytes, and a part of its own for each that is left. */
uint64_t cv_spans_cost(const cv_http_span *spans, size_t n);

/* How many of them, one at least, from the first on, share a request: as many as cost so much,
 * or just more, so that a sum divided by n gives n requests at most where bounds allow it. */
size_t cv_spans_share(const cv_http_span *spans, size_t n, uint64_t cost);

/* Bytes of all that are left, and how many spans they are of. */
uint64_t cv_spans_left(const cv_http_span *spans, size_t n, size_t *n_left);

/* Appends "Range: bytes=..." of what is left, with its NUL. */
cv_status cv_spans_add_field(const cv_http_span *spans, size_t n, cv_buffer *fields,
                             cv_error *err);

/* Bytes [pos, end) have come. The first span from `from` on that wants some of them, which then
 * has them, or n: none does. *first, *last: which bytes those are. Each byte is given once; those
 * of a span come in their order, and what comes before its turn is not wanted yet. */
size_t cv_spans_take(cv_http_span *spans, size_t n, size_t from, uint64_t pos, uint64_t end,
                     uint64_t *first, uint64_t *last);

#endif
