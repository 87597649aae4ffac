/* Reductions along axes, statistics and histograms: block by block, in parallel, never with the
 * whole array in memory. Results do not depend on the number of threads. */
#ifndef CV_UPKEEP_REDUCE_H
#define CV_UPKEEP_REDUCE_H

#include "engine/items/numbers.h"
#include "engine/read/read.h"
#include <caterva_upkeep.h>

/* One result under construction. All members are zero at first. */
typedef struct cv_cell {
    cv_wide value; /* the extreme or sum so far */
    double rest;   /* rounding error of a sum of doubles, as in cv_real_sum */
    int64_t n;     /* numbers counted */
} cv_cell;
void cv_cell_add_tally(cv_cell *cell, const cv_number_type *type, caterva_reduction what,
                       const cv_tally *from);

/* cv_cell_result returns the result of a cell, into which `n_items` items were folded.
 * cv_reduce_tally returns the result of a tally of all items. */
cv_wide cv_cell_result(const cv_cell *cell, const cv_number_type *type,
                       caterva_reduction what, int64_t n_items, bool skip_nan);
cv_wide cv_reduce_tally(const cv_tally *tally, const cv_number_type *type,
                        caterva_reduction what, bool skip_nan);

/* Returns the result if there are no numbers. */
cv_wide cv_reduce_nothing(const cv_number_type *type, caterva_reduction what);

/* Returns whether the result has the array's dtype; else it is a number of 8 bytes. */
bool cv_reduce_gives_item(caterva_reduction what);

/* Returns the size of a result in bytes. */
int64_t cv_reduce_cell_size(const cv_number_type *type, caterva_reduction what);

/* Stores one result: an extreme as an item, any other result in native byte order. */
void cv_reduce_store(const cv_number_type *type, caterva_reduction what, cv_wide value,
                     uint8_t *dst);

/* ---- The common part of statistics, histograms and reductions ---------------------- */

typedef struct cv_reduction {
    const cv_source *source;
    const cv_number_type *type;
    const cv_selection *selection; /* as required by cv_fold_init */
} cv_reduction;

/* Reduces a selection of slices and lists along the axes that are marked in `reduced`. `dst` gets
 * one result for each cell, that is, for each index of the other axes; if no axis is marked, each
 * item is a cell. Not for empty selections, and not with all axes marked. */
typedef struct cv_axes_request {
    caterva_reduction what;
    bool skip_nan;
    bool reduced[CV_MAX_DIMS];
    uint8_t *dst;
    cv_cell *cells;               /* if not NULL, cells are added here, not stored in `dst` */
    int64_t strides[CV_MAX_DIMS]; /* between cells, in cells; unused for reduced axes */
} cv_axes_request;
cv_status cv_reduce_axes(const cv_reduction *r, const cv_axes_request *request,
                         cv_error *err);

/* Tallies all selected items. */
cv_status cv_statistics(const cv_reduction *r, cv_tally *out, cv_error *err);

/* Counts every selected number in [lo, hi] in one of `n_bins` bins of equal width, as
 * numpy.histogram does. lo < hi, both finite. CATERVA_EINVAL if bin edges are equal as doubles. */
typedef struct cv_bins {
    double lo;
    double hi;
    int64_t n_bins;
    int64_t *counts; /* per bin; cv_histogram adds to them */
} cv_bins;
cv_status cv_histogram(const cv_reduction *r, const cv_bins *bins, cv_error *err);

#endif
