/* Statistics and histograms, by block, in parallel; the array never stands in memory.
 * Results do not depend on the number of threads. */
#ifndef CV_ENGINE_STATISTICS_H
#define CV_ENGINE_STATISTICS_H

#include "engine/items/numbers.h"
#include "engine/jobs/reduction.h"

/* Counts every selected item. */
cv_status cv_statistics(const cv_reduction *r, cv_tally *out, cv_error *err);

/* Adds every selected number in [lo, hi] to its bin: `n_bins` of equal width, as
 * numpy.histogram has them; CATERVA_EINVAL where doubles cannot tell the edges apart.
 * lo < hi, both finite. */
typedef struct cv_bins {
    double lo;
    double hi;
    int64_t n_bins;
    int64_t *counts; /* added to */
} cv_bins;
cv_status cv_histogram(const cv_reduction *r, const cv_bins *bins, cv_error *err);

#endif
