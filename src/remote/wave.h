/* A wave on its way: ranges of objects, the segments that they are cut into, and which of those
 * share a request. What becomes of requests is for http_read.c. */
#ifndef CV_REMOTE_WAVE_H
#define CV_REMOTE_WAVE_H

#include "remote/fetch.h"
#include "store/reading.h"

/* Whose ranges they are: of one object, in which position 0 lies at `offset`, or each of one of
 * its own, none larger than 1 TiB; and whether caches on the way are to be passed by. */
typedef struct cv_http_window {
    cv_http_object *object;
    cv_http_object *const *objects; /* of each range; NULL: `object` */
    uint64_t offset;
    bool is_anew;
} cv_http_window;

/* ---- http_read ----
 * Ranges of one object, read together. */

/* As cv_store_ops.begin_wave and .read_many have it, of ranges within the object that are not
 * empty. */
cv_status cv_http_begin(const cv_http_window *window, const cv_store_range *ranges, size_t n,
                        const cv_arrivals *arrivals, cv_gathering *all, cv_reading **out,
                        cv_error *err);
cv_status cv_http_read(const cv_http_window *window, const cv_store_range *ranges, size_t n,
                       const cv_arrivals *arrivals, cv_error *err);

#endif
