/* Reductions along axes, by block, in parallel; the array never stands in memory. Results
 * do not depend on the number of threads. */
#ifndef CV_ENGINE_REDUCE_H
#define CV_ENGINE_REDUCE_H

#include "engine/jobs/cells.h"
#include "engine/jobs/reduction.h"

/* Reduces a selection axis by axis, of slices and lists, along the marked axes; the cells
 * of the others go to `dst`, `cell_size` bytes each, at `strides` in cells. Without any
 * marked axis each item is a cell. Not for empty selections, nor with all axes marked. */
typedef struct cv_axes_request {
    caterva_reduction what;
    bool skip_nan;
    bool reduced[CV_MAX_DIMS];
    uint8_t *dst;
    cv_cell
        *cells; /* in its place, or NULL: what is counted is added to these, by nobody else
                       meanwhile, and makes no results yet */
    int64_t strides[CV_MAX_DIMS];
} cv_axes_request;
cv_status cv_reduce_axes(const cv_reduction *r, const cv_axes_request *request,
                         cv_error *err);

#endif
