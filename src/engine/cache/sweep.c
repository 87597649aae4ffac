/* Room: engine/cache. The steps of a sweep. */
#include "engine/cache/sweep.h"

/* Whether two parts that begin `step` bytes apart are apart: the axis of the step is the
 * outermost one along which an item is no further. */
static bool is_apart(const cv_grid *grid, const cv_block_job *part, int64_t step)
{
    for (int d = 0; d < grid->ndim; d++)
        if (grid->item_strides[d] <= step)
            return part->shape[d] * grid->item_strides[d] <= step;
    return false;
}

cv_step cv_sweep_note(cv_sweep *sweep, const cv_grid *grid, const cv_block_job *part)
{
    int64_t last = atomic_load_explicit(&sweep->last, memory_order_relaxed);
    int before = atomic_load_explicit(&sweep->way, memory_order_relaxed);
    int64_t step = last < 0 ? 0 : part->block_pos - last;
    int way = (step > 0) - (step < 0);
    bool is_on = last < 0 || (before + way != 0 && is_apart(grid, part, step * way));
    atomic_store_explicit(&sweep->last, part->block_pos, memory_order_relaxed);
    atomic_store_explicit(&sweep->way, way, memory_order_relaxed);
    if (!is_on) return CV_STEP_BACK;
    bool at_end = way < 0 || part->ends, at_begin = way > 0 || part->block_pos == 0;
    return at_end && at_begin ? CV_STEP_LAST : CV_STEP_ON;
}
