/* Statistics, histograms and reductions along axes, by block, in parallel; the array
 * never stands in memory. Results do not depend on the number of threads. */
#ifndef CV_ENGINE_REDUCE_H
#define CV_ENGINE_REDUCE_H

#include "engine/items/tally.h"
#include "engine/read/visit.h"

typedef struct cv_reduction {
    const cv_source *source;
    const cv_number_type *type;
    const cv_stepped *box;
    cv_watch *watch; /* counts jobs */
} cv_reduction;

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

/* Reduces along the marked axes; the result's cells, in C order over the others, go
 * to `dst`, `cell_size` bytes each. Without any marked axis each item is a cell. Not
 * for empty boxes, nor with all axes marked. */
typedef struct cv_axes_request {
    caterva_reduction what;
    bool skip_nan;
    bool reduced[CV_MAX_DIMS];
    uint8_t *dst;
} cv_axes_request;
cv_status cv_reduce_axes(const cv_reduction *r, const cv_axes_request *request,
                         cv_error *err);

/* Bytes of a result: the items' for minimum and maximum, else 8. */
int64_t cv_reduce_cell_size(const cv_number_type *type, caterva_reduction what);

/* Stores one result: of sums in the machine's order, of extremes as items are. */
void cv_reduce_store(const cv_number_type *type, caterva_reduction what, cv_wide value,
                     uint8_t *dst);

#endif
