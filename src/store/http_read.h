/* Ranges of one object, read together. */
#ifndef CV_STORE_HTTP_READ_H
#define CV_STORE_HTTP_READ_H

#include "store/http_wave.h"

/* As cv_store_ops.begin_wave and .read_many have it, of ranges within the object that are not
 * empty. */
cv_status cv_http_begin(const cv_http_window *window, const cv_store_range *ranges, size_t n,
                        const cv_arrivals *arrivals, cv_gathering *all, cv_reading **out,
                        cv_error *err);
cv_status cv_http_read(const cv_http_window *window, const cv_store_range *ranges, size_t n,
                       const cv_arrivals *arrivals, cv_error *err);

#endif
