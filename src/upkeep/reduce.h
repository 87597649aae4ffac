/* Reductions along axes, by block, in parallel; the array never stands in memory. Results
 * do not depend on the number of threads. */
#ifndef CV_UPKEEP_REDUCE_H
#define CV_UPKEEP_REDUCE_H

#include "engine/items/numbers.h"
#include "engine/read/read.h"
#include <caterva_upkeep.h>

/* All zero before the first number. */
typedef struct cv_cell {
    cv_wide value; /* extreme or sum so far */
    double rest;   /* of a sum of doubles, as in cv_real_sum */
    int64_t n;     /* numbers counted */
} cv_cell;
void cv_cell_add_tally(cv_cell *cell, const cv_number_type *type, caterva_reduction what,
                       const cv_tally *from);

/* The result of a cell of `n_items` items; of a tally of all. */
cv_wide cv_cell_result(const cv_cell *cell, const cv_number_type *type,
                       caterva_reduction what, int64_t n_items, bool skip_nan);
cv_wide cv_reduce_tally(const cv_tally *tally, const cv_number_type *type,
                        caterva_reduction what, bool skip_nan);

/* The result of no number at all. */
cv_wide cv_reduce_nothing(const cv_number_type *type, caterva_reduction what);

/* Whether the result has the array's dtype; else it is a number of 8 bytes. */
bool cv_reduce_gives_item(caterva_reduction what);

/* Bytes of a result. */
int64_t cv_reduce_cell_size(const cv_number_type *type, caterva_reduction what);

/* Stores one result: of sums in the machine's order, of extremes as items are. */
void cv_reduce_store(const cv_number_type *type, caterva_reduction what, cv_wide value,
                     uint8_t *dst);

/* ---- A reduction: the common part of statistics, histograms and reductions ------------- */

typedef struct cv_reduction {
    const cv_source *source;
    const cv_number_type *type;
    const cv_selection *selection; /* as cv_fold_init wants it */
    cv_watch *watch;               /* counts jobs */
} cv_reduction;

/* Reduces slices and lists along the marked axes; `dst` gets the other axes' cells,
 * `cell_size` bytes each, at `strides` in cells. Without a marked axis each item is a cell.
 * Not for empty selections, nor with all axes marked. */
typedef struct cv_axes_request {
    caterva_reduction what;
    bool skip_nan;
    bool reduced[CV_MAX_DIMS];
    uint8_t *dst;
    cv_cell *cells; /* or NULL; else counts are added to these (not shared), not to dst */
    int64_t strides[CV_MAX_DIMS];
} cv_axes_request;
cv_status cv_reduce_axes(const cv_reduction *r, const cv_axes_request *request,
                         cv_error *err);

/* Counts every selected item. */
cv_status cv_statistics(const cv_reduction *r, cv_tally *out, cv_error *err);

/* Adds every selected number in [lo, hi] to its bin: `n_bins` of equal width as in
 * numpy.histogram. CATERVA_EINVAL if doubles cannot tell the edges apart. lo < hi, both
 * finite. */
typedef struct cv_bins {
    double lo;
    double hi;
    int64_t n_bins;
    int64_t *counts; /* added to */
} cv_bins;
cv_status cv_histogram(const cv_reduction *r, const cv_bins *bins, cv_error *err);

#endif
