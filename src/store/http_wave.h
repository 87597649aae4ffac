/* A wave on its way: ranges of objects, the segments that they are cut into, and which of those
 * share a request. What becomes of requests is for http_read.c. */
#ifndef CV_STORE_HTTP_WAVE_H
#define CV_STORE_HTTP_WAVE_H

#include "store/gather.h"
#include "store/http_fetch.h"
#include "store/http_join.h"

/* Whose ranges they are: of one object, in which position 0 lies at `offset`, or each of one of
 * its own, none larger than 1 TiB; and whether caches on the way are to be passed by. */
typedef struct cv_http_window {
    cv_http_object *object;
    cv_http_object *const *objects; /* of each range; NULL: `object` */
    uint64_t offset;
    bool is_anew;
} cv_http_window;

typedef struct cv_http_request {
    cv_fetch fetch; /* first */
    struct cv_http_wave *wave;
    uint64_t base;      /* where the object's byte 0 is among the segments */
    size_t first, last; /* segments */
    size_t at;          /* those before it are complete */
    size_t n;           /* requests, from this one on, that it is sent for */
    bool is_asking;     /* it finds out whether the server sends several parts */
} cv_http_request;

typedef struct cv_http_wave {
    cv_reading base;
    cv_gathered all; /* whom it is under way with */
    cv_http_window window;
    const cv_store_range *ranges;
    size_t n;
    cv_segment *segments;
    size_t n_segments, n_requests;
    size_t *left;     /* bytes of each range that are missing; the wire's thread's, as: */
    uint8_t **dst;    /* where those of a range go, or NULL: it has no room yet */
    bool borrows;     /* the memory of ranges, when their first bytes come */
    size_t n_filling; /* of those ranges: they have memory, and not all bytes */
    cv_flow flow;
    cv_http_request *requests;
    cv_http_span *spans; /* of each request */
    cv_several_waiter waiter;
    size_t n_made;  /* requests before what was not sent was joined again */
    bool is_narrow; /* only small gaps are read over: parts of an answer have larger ones */
    size_t n_begun, n_first; /* requests; and before it is known what the server sends */
    atomic_bool is_given_up;
    atomic_bool has_waited; /* some of it was sent when others had been answered */
    size_t together;        /* bytes of all that is under way with it */
    cv_session_mark began;
} cv_http_wave;

cv_session *cv_http_wave_session(const cv_http_wave *wave);

/* Makes requests of the ranges. The wave has its window, ranges and how they get their memory;
 * what was made is freed by the next one, also on failure. */
cv_status cv_http_wave_plan(cv_http_wave *wave, cv_error *err);
void cv_http_wave_free(cv_http_wave *wave);

/* Of `n` requests from `first` on, of which nothing is under way: where nothing has come of them
 * either, they read over larger gaps, as a server needs that sends one part at a time. Returns
 * how many there are now, still from `first` on. */
size_t cv_http_wave_join_again(cv_http_wave *wave, size_t first, size_t n);

#endif
