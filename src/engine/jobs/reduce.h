/* Reductions along axes, by block, in parallel; the array never stands in memory. Results
 * do not depend on the number of threads. */
#ifndef CV_ENGINE_REDUCE_H
#define CV_ENGINE_REDUCE_H

#include "engine/jobs/reduction.h"

/* Reduces a selection axis by axis, of slices and lists, along the marked axes; the cells
 * of the others go to `dst`, `cell_size` bytes each, at `strides` in cells. Without any
 * marked axis each item is a cell. Not for empty selections, nor with all axes marked. */
typedef struct cv_axes_request {
    caterva_reduction what;
    bool skip_nan;
    bool reduced[CV_MAX_DIMS];
    uint8_t *dst;
    int64_t strides[CV_MAX_DIMS];
} cv_axes_request;
cv_status cv_reduce_axes(const cv_reduction *r, const cv_axes_request *request,
                         cv_error *err);

/* Whether the result is an item as the array has it, which nothing does not have and times
 * do; else it is a number of 8 bytes. */
bool cv_reduce_gives_item(caterva_reduction what);

/* Bytes of a result. */
int64_t cv_reduce_cell_size(const cv_number_type *type, caterva_reduction what);

/* Stores one result: of sums in the machine's order, of extremes as items are. */
void cv_reduce_store(const cv_number_type *type, caterva_reduction what, cv_wide value,
                     uint8_t *dst);

/* The result where there is a NaN or NaT that is not skipped, and that of no number at all. */
cv_wide cv_reduce_nan(const cv_number_type *type);
cv_wide cv_reduce_nothing(const cv_number_type *type, caterva_reduction what);

#endif
