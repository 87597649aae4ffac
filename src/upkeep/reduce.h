/* Reductions along axes, statistics and histograms: block by block, in parallel, without the
 * whole array in memory. Results do not depend on the number of threads. */
#ifndef CV_UPKEEP_REDUCE_H
#define CV_UPKEEP_REDUCE_H

#include "engine/items/numbers.h"
#include "engine/read/read.h"
#include <caterva_upkeep.h>

/* One result under construction; all zero at first. */
typedef struct cv_cell {
    cv_wide value; /* the extreme or sum so far */
    double rest;   /* of a sum of doubles, as in cv_real_sum */
    int64_t n;     /* numbers counted */
} cv_cell;
void cv_cell_add_tally(cv_cell *cell, const cv_number_type *type, caterva_reduction what,
                       const cv_tally *from);

/* cv_cell_result: the result of a cell that `n_items` items were folded into.
 * cv_reduce_tally: that of a tally of all items. */
cv_wide cv_cell_result(const cv_cell *cell, const cv_number_type *type,
                       caterva_reduction what, int64_t n_items, bool skip_nan);
cv_wide cv_reduce_tally(const cv_tally *tally, const cv_number_type *type,
                        caterva_reduction what, bool skip_nan);

/* The result if there are no numbers. */
cv_wide cv_reduce_nothing(const cv_number_type *type, caterva_reduction what);

/* Returns whether the result has the array's dtype; else it is a number of 8 bytes. */
bool cv_reduce_gives_item(caterva_reduction what);

/* Returns the bytes of a result. */
int64_t cv_reduce_cell_size(const cv_number_type *type, caterva_reduction what);

/* Stores one result: extremes like items, others in native byte order. */
void cv_reduce_store(const cv_number_type *type, caterva_reduction what, cv_wide value,
                     uint8_t *dst);

/* ---- The common part of statistics, histograms and reductions ---------------------- */

typedef struct cv_reduction {
    const cv_source *source;
    const cv_number_type *type;
    const cv_selection *selection; /* as required by cv_fold_init */
} cv_reduction;

/* Reduces slices and lists along the marked axes. `dst` gets the cells of the other axes,
 * `cell_size` bytes each, at `strides` in cells. If no axis is marked, each item is a cell.
 * Not for empty selections, nor with all axes marked. */
typedef struct cv_axes_request {
    caterva_reduction what;
    bool skip_nan;
    bool reduced[CV_MAX_DIMS];
    uint8_t *dst;
    cv_cell *cells; /* if not NULL, results are added here; private to the call */
    int64_t strides[CV_MAX_DIMS];
} cv_axes_request;
cv_status cv_reduce_axes(const cv_reduction *r, const cv_axes_request *request,
                         cv_error *err);

/* Counts every selected item. */
cv_status cv_statistics(const cv_reduction *r, cv_tally *out, cv_error *err);

/* Adds every selected number in [lo, hi] to its bin: `n_bins` bins of equal width, as in
 * numpy.histogram. lo < hi, both finite. CATERVA_EINVAL if the bin edges are not distinct as
 * doubles. */
typedef struct cv_bins {
    double lo;
    double hi;
    int64_t n_bins;
    int64_t *counts; /* added to */
} cv_bins;
cv_status cv_histogram(const cv_reduction *r, const cv_bins *bins, cv_error *err);

#endif
