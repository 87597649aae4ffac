/* Room: cli/sources. The geometry of selections: shapes, bounds, and the conversion of boxes of the
 * result to selections of the library. Independent of their text. */
#include "sources/selection.h"

#include <stdlib.h>
#include <string.h>

void selection_free(selection *sel)
{
    for (int d = 0; d < sel->ndim; d++) {
        free(sel->axis[d].list);
        sel->axis[d].list = NULL;
    }
    free(sel->points);
    sel->points = NULL;
}

void selection_whole(int ndim, const int64_t *shape, selection *out)
{
    *out = (selection){.ndim = ndim, .n_result = ndim};
    for (int d = 0; d < ndim; d++) {
        out->axis[d] = (selection_axis){.step = 1, .count = shape[d]};
        out->result[d] = d;
    }
}

void selection_drop(selection *sel, int axis, int64_t index)
{
    sel->axis[axis] =
        (selection_axis){.start = index, .step = 1, .count = 1, .dropped = true};
    int n = 0;
    for (int r = 0; r < sel->n_result; r++)
        if (sel->result[r] != axis) sel->result[n++] = sel->result[r];
    sel->n_result = n;
}

void selection_add_axis(selection *sel)
{
    memmove(sel->result + 1, sel->result, (size_t)sel->n_result * sizeof sel->result[0]);
    sel->result[0] = -1;
    sel->n_result++;
}

void selection_thin(selection *sel, int axis, int64_t step)
{
    if (sel->result[axis] < 0) return;
    selection_axis *a = &sel->axis[sel->result[axis]];
    a->count = a->count > 0 ? (a->count - 1) / step + 1 : 0;
    a->step = a->count > 1 ? a->step * step : 1;
    for (int64_t i = 0; a->list && i < a->count; i++) a->list[i] = a->list[i * step];
}

bool selection_is_whole(const selection *sel, const int64_t *shape)
{
    for (int d = 0; d < sel->ndim; d++) {
        const selection_axis *a = &sel->axis[d];
        if (a->dropped || a->list || a->start != 0 || a->step != 1 || a->count != shape[d])
            return false;
    }
    return sel->n_result == sel->ndim;
}

bool selection_is_box(const selection *sel)
{
    if (sel->points) return false;
    for (int d = 0; d < sel->ndim; d++)
        if (sel->axis[d].step != 1 || sel->axis[d].list) return false;
    return true;
}

bool selection_has_list(const selection *sel)
{
    if (sel->points) return true;
    for (int d = 0; d < sel->ndim; d++)
        if (sel->axis[d].list) return true;
    return false;
}

int selection_shape(const selection *sel, int64_t *shape)
{
    if (sel->points) {
        shape[0] = sel->n_points;
        return 1;
    }
    for (int r = 0; r < sel->n_result; r++)
        shape[r] = sel->result[r] < 0 ? 1 : sel->axis[sel->result[r]].count;
    return sel->n_result;
}

/* Converts a box of the result to ranges of selected items along each axis of the array. */
static void ranges_of_box(const selection *sel, const box *result, box *ranges)
{
    for (int d = 0; d < sel->ndim; d++) {
        ranges->start[d] = 0;
        ranges->stop[d] = 1; /* dropped axis */
    }
    for (int r = 0; r < sel->n_result; r++) {
        if (sel->result[r] < 0) continue;
        ranges->start[sel->result[r]] = result->start[r];
        ranges->stop[sel->result[r]] = result->stop[r];
    }
}

void selection_bounds(const selection *sel, const box *result, box *bounds)
{
    box ranges;
    ranges_of_box(sel, result, &ranges);
    for (int d = 0; d < sel->ndim; d++) {
        const selection_axis *a = &sel->axis[d];
        int64_t first = ranges.start[d], last = ranges.stop[d] - 1;
        int64_t one = a->start + first * a->step, other = a->start + last * a->step;
        bool empty = last < first;
        bounds->start[d] = empty || one < other ? one : other;
        bounds->stop[d] = empty ? one : (one < other ? other : one) + 1;
    }
}

static caterva_axis words_of_axis(const selection_axis *a, int64_t first, int64_t stop)
{
    if (a->list)
        return (caterva_axis){
            .kind = CATERVA_AXIS_LIST, .indices = a->list + first, .n = stop - first};
    int64_t end = a->start + (stop - 1) * a->step + (a->step > 0 ? 1 : -1);
    return (caterva_axis){
        .kind = CATERVA_AXIS_SLICE,
        .start = a->start + first * a->step,
        .stop = end < 0 ? CATERVA_AXIS_OMIT : end, /* goes backwards to item 0 */
        .step = a->step,
    };
}

void selection_of_box(const selection *sel, const box *result,
                      caterva_axis axes[CATERVA_MAX_DIMS], caterva_selection *out)
{
    box ranges;
    *out = (caterva_selection)CATERVA_SELECTION_INIT;
    if (sel->points) {
        out->kind = CATERVA_SELECTION_POINTS;
        out->points = sel->points + result->start[0] * sel->ndim;
        out->n_points = result->stop[0] - result->start[0];
        return;
    }
    ranges_of_box(sel, result, &ranges);
    for (int d = 0; d < sel->ndim; d++)
        axes[d] = words_of_axis(&sel->axis[d], ranges.start[d], ranges.stop[d]);
    out->kind = CATERVA_SELECTION_AXES;
    out->axes = axes;
    out->n_axes = sel->ndim;
}

int64_t box_items(const box *b, int ndim)
{
    int64_t items = 1;
    for (int d = 0; d < ndim; d++) items *= b->stop[d] - b->start[d];
    return items;
}
