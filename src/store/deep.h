/* Ranges of files that are not in memory, with a deep queue before the medium. */
#ifndef CV_STORE_DEEP_H
#define CV_STORE_DEEP_H

#include "store/store.h"

/* Has the system fetch a range, and does not wait for it. A hint. */
typedef void (*cv_ask_fn)(cv_store *store, const cv_store_range *range);

/* read_many of a store whose reads wait for the medium: many ranges are asked for before
 * the first one is read. */
cv_status cv_store_read_deep(cv_store *store, const cv_store_range *ranges, size_t n,
                             const cv_arrivals *arrivals, cv_ask_fn ask, cv_error *err);

#endif
