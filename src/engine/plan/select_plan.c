/* Room: engine/plan. What the plans of all kinds of selection share: the buffer's
 * strides in terms of the array's axes, negative steps turned, memory. */
#include "engine/plan/select_plan.h"

#include "base/heap.h"
#include "engine/plan/select_axes.h"
#include "engine/plan/select_mask.h"
#include "engine/plan/select_points.h"

/* Takes a slice that runs backwards forwards, and the buffer backwards. */
static void turn_forward(cv_select_plan *plan, int d)
{
    cv_axis *axis = &plan->axes[d];
    if (axis->n == 1) axis->step = 1; /* any step would do; this one makes a box */
    if (axis->step > 0) return;
    axis->start += (axis->n - 1) * axis->step;
    axis->step = -axis->step;
    plan->buffer_pos += (axis->n - 1) * plan->strides[d];
    plan->strides[d] = -plan->strides[d];
}

static void take_axes(cv_select_plan *plan, const cv_selection *s, const int64_t *strides)
{
    int r = 0; /* axis of the result */
    for (int d = 0; d < plan->grid->ndim; d++) {
        plan->axes[d] = s->axes[d];
        plan->strides[d] = s->axes[d].dropped ? 0 : strides[r++];
        if (!s->axes[d].list && !s->axes[d].mask) turn_forward(plan, d);
    }
}

cv_status cv_select_plan_init(cv_select_plan *plan, const cv_selection *selection,
                              const int64_t *strides, cv_watch *watch, cv_error *err)
{
    *plan = (cv_select_plan){.grid = selection->grid, .n_items = selection->n_items};
    plan->watch = watch;
    if (selection->kind == CATERVA_SELECTION_AXES) {
        take_axes(plan, selection, strides);
        return cv_select_axes_init(plan, err);
    }
    plan->strides[0] = strides[0];
    if (selection->kind == CATERVA_SELECTION_POINTS)
        return cv_select_points_init(plan, selection->points, selection->shape[0], err);
    plan->mask = selection->mask;
    return cv_select_mask_init(plan, err);
}

void cv_select_plan_free(cv_select_plan *plan)
{
    for (int d = 0; d < CV_MAX_DIMS; d++)
        if (plan->buckets[d].picks) cv_buckets_free(&plan->buckets[d]);
    cv_free(plan->ranks);
    plan->ranks = NULL;
}
