/* Room: array. Reads and writes through views: a selection of the view becomes one
 * of its base, with the buffer's strides in the base's order of axes. */
#include "array/selection.h"
#include "array/view_read.h"

#include "base/arith.h"
#include "base/heap.h"
#include "engine/items/copy.h"

#include <string.h>

void cv_mapped_free(cv_mapped *m)
{
    for (int d = 0; d < CV_MAX_DIMS; d++) cv_free(m->lists[d]);
}

static cv_status new_list(cv_mapped *m, int i, int64_t n, int64_t width, cv_error *err)
{
    int64_t size;
    if (!cv_mul_i64(n, width * (int64_t)sizeof(int64_t), &size))
        return cv_fail(err, CATERVA_EINVAL, -1, "%lld items are too many to select",
                       (long long)n);
    m->lists[i] = cv_malloc((size_t)cv_max_i64(size, 1));
    return m->lists[i] ? CV_OK : cv_fail_memory(err, (size_t)size, "a selection of a view");
}

/* ---- Axis by axis ------------------------------------------------------- */

/* Axis `d` of the view, which is axis `b` of the base. */
static cv_status map_axis(const caterva_view *view, const cv_axis *axis, int d, int b,
                          cv_mapped *m, cv_error *err)
{
    int64_t start = view->start[b], step = view->step[b];
    cv_axis *out = &m->selection.axes[b];
    *out = *axis;
    out->mask = NULL;
    if (!axis->list && !axis->mask) {
        out->start = start + axis->start * step;
        out->step = axis->step * step;
        return CV_OK;
    }
    CV_TRY(new_list(m, b, axis->n, 1, err));
    int64_t *list = m->lists[b], at = -1;
    for (int64_t i = 0; i < axis->n; i++) {
        if (axis->list) {
            at = cv_index_from_start(axis->list[i], view->grid.shape[d]);
        } else {
            do at++;
            while (!axis->mask[at]);
        }
        list[i] = start + at * step;
    }
    out->list = list;
    return CV_OK;
}

/* The shape and strides of the result as the base's axes stand. A new axis is not
 * among them: `memory` says where its last item lies. */
static cv_status map_axes(const caterva_view *view, const cv_selection *s,
                          const cv_memory *memory, cv_mapped *m, cv_error *err)
{
    const cv_grid *base = &view->base->grid;
    int64_t strides[CV_MAX_DIMS] = {0}; /* by axis of the base */
    for (int b = 0; b < base->ndim; b++)
        m->selection.axes[b] =
            (cv_axis){.n = 1, .start = view->start[b], .step = 1, .dropped = true};
    int r = 0; /* axis of the result */
    for (int d = 0; d < view->grid.ndim; d++) {
        int64_t stride = s->axes[d].dropped ? 0 : memory->strides[r++];
        int b = view->base_axis[d];
        if (b < 0) {
            m->memory.data += (s->axes[d].n - 1) * stride;
            continue;
        }
        strides[b] = stride;
        CV_TRY(map_axis(view, &s->axes[d], d, b, m, err));
    }
    cv_selection *out = &m->selection;
    out->n_items = 1;
    for (int b = 0; b < base->ndim; b++) {
        if (out->axes[b].dropped) continue;
        m->memory.strides[out->ndim] = strides[b];
        out->shape[out->ndim++] = out->axes[b].n;
        out->n_items *= out->axes[b].n;
    }
    return CV_OK;
}

/* ---- What is left to do ----------------------------------------------------- */

static void place_points(const cv_rest *rest)
{
    const int64_t one = 1, item_size = rest->memory.item_size;
    for (int64_t i = 0; i < rest->n_points; i++) {
        cv_strided from = {rest->items + i * item_size, &one};
        cv_strided to = {rest->memory.data + rest->places[i] * rest->memory.strides[0], &one};
        cv_copy_box(1, &one, item_size, from, to);
    }
}

/* Axis after axis: what is there so far grows. */
static void repeat_new_axes(const cv_rest *rest)
{
    const cv_memory *dst = &rest->memory;
    int64_t shape[CV_MAX_DIMS]; /* of what is there */
    uint8_t *data = dst->data;
    for (int r = 0; r < rest->ndim; r++) {
        shape[r] = rest->is_new[r] ? 1 : rest->shape[r];
        if (rest->is_new[r]) data += (rest->shape[r] - 1) * dst->strides[r];
    }
    for (int r = 0; r < rest->ndim; r++) {
        if (!rest->is_new[r]) continue;
        for (int64_t i = 1; i < rest->shape[r]; i++) {
            cv_strided from = {data, dst->strides};
            cv_strided to = {data - i * dst->strides[r], dst->strides};
            cv_copy_box(rest->ndim, shape, dst->item_size, from, to);
        }
        data -= (rest->shape[r] - 1) * dst->strides[r];
        shape[r] = rest->shape[r];
    }
}

void cv_rest_do(const cv_rest *rest)
{
    if (rest->places)
        place_points(rest);
    else
        repeat_new_axes(rest);
}

void cv_rest_free(cv_rest *rest)
{
    cv_free(rest->places);
    cv_free(rest->items);
}

cv_status cv_visit_end(const cv_visit *visit, cv_rest *rest, cv_error *err)
{
    cv_status status = CV_OK;
    if (visit->later) {
        status = visit->later(visit->context, rest, err);
        if (status == CV_OK) return CV_OK;
    } else {
        cv_rest_do(rest);
    }
    cv_rest_free(rest);
    return status;
}

/* A list may take a new axis' only item several times: the last one was read. */
static cv_status end_axes(const caterva_view *view, const cv_selection *s,
                          const cv_memory *dst, const cv_visit *visit, cv_error *err)
{
    cv_rest rest = {.memory = *dst};
    bool repeats = false;
    for (int d = 0; d < view->grid.ndim; d++) {
        if (s->axes[d].dropped) continue;
        rest.shape[rest.ndim] = s->axes[d].n;
        rest.is_new[rest.ndim] = view->base_axis[d] < 0;
        repeats = repeats || (rest.is_new[rest.ndim] && s->axes[d].n > 1);
        rest.ndim++;
    }
    return repeats ? cv_visit_end(visit, &rest, err) : CV_OK;
}

/* ---- Points and masks --------------------------------------------------- */

/* One point of the view in the base. */
static void map_point(const caterva_view *view, const int64_t *point, int64_t *out)
{
    memcpy(out, view->start, (size_t)view->base->grid.ndim * sizeof out[0]);
    for (int d = 0; d < view->grid.ndim; d++) {
        int b = view->base_axis[d];
        if (b >= 0)
            out[b] += cv_index_from_start(point[d], view->grid.shape[d]) * view->step[b];
    }
}

/* The point behind `point` in C order. */
static void next_point(const cv_grid *grid, int64_t *point)
{
    for (int d = grid->ndim - 1; d >= 0; d--) {
        if (++point[d] < grid->shape[d]) return;
        point[d] = 0;
    }
}

static cv_status map_points(const caterva_view *view, const cv_selection *s,
                            const cv_memory *memory, cv_mapped *m, cv_error *err)
{
    int ndim = view->grid.ndim, base_ndim = view->base->grid.ndim;
    int64_t n = s->shape[0];
    CV_TRY(new_list(m, 0, n, cv_max_i64(base_ndim, 1), err));
    int64_t *out = m->lists[0];
    if (s->kind == CATERVA_SELECTION_POINTS) {
        const int64_t none[1] = {0};
        for (int64_t i = 0; i < n; i++, out += base_ndim)
            map_point(view, ndim > 0 ? s->points + i * ndim : none, out);
    } else {
        int64_t point[CV_MAX_DIMS] = {0};
        for (int64_t i = 0; i < view->grid.n_items; i++, next_point(&view->grid, point)) {
            if (!s->mask[i]) continue;
            map_point(view, point, out);
            out += base_ndim;
        }
    }
    m->selection.kind = CATERVA_SELECTION_POINTS;
    m->selection.points = m->lists[0];
    m->selection.ndim = 1;
    m->selection.shape[0] = m->selection.n_items = n;
    m->memory.strides[0] = memory->strides[0];
    return CV_OK;
}

/* ---- Reading and writing ------------------------------------------------ */

cv_status cv_view_map(const caterva_view *view, const cv_selection *s,
                      const cv_memory *memory, cv_mapped *m, cv_error *err)
{
    memset(m, 0, sizeof *m);
    m->memory.data = memory->data;
    m->memory.item_size = memory->item_size;
    m->memory.conversion = memory->conversion;
    m->selection.kind = CATERVA_SELECTION_AXES;
    m->selection.grid = &view->base->grid;
    if (s->kind == CATERVA_SELECTION_AXES) return map_axes(view, s, memory, m, err);
    return map_points(view, s, memory, m, err);
}

/* A refresh may have turned the handle to an array of other items. */
cv_status cv_view_check(const cv_base *base, const cv_grid *grid, cv_error *err)
{
    const char *dtype = base->array->type.dtype;
    if (grid->ndim != base->grid.ndim || grid->item_size != base->grid.item_size ||
        strcmp(dtype, base->dtype) != 0)
        return cv_fail(
            err, CATERVA_ESTALE, -1,
            "the array has %d axes of %.80s now, %d of %.80s when the view was made",
            grid->ndim, dtype, base->grid.ndim, base->dtype);
    for (int d = 0; d < grid->ndim; d++)
        if (grid->shape[d] != base->grid.shape[d])
            return cv_fail(err, CATERVA_ESTALE, -1,
                           "axis %d of the array has %lld items now, %lld when the view was "
                           "made",
                           d, (long long)grid->shape[d], (long long)base->grid.shape[d]);
    return CV_OK;
}

cv_status cv_view_check_arrays(const cv_base *base, cv_error *err)
{
    for (int i = 0; i < base->n_parts; i++)
        CV_TRY(cv_view_check_arrays(base->parts[i]->base, err));
    if (!base->array) return CV_OK;
    cv_array_lock_shared(base->array);
    cv_status status = cv_view_check(base, &cv_array_state(base->array)->grid, err);
    cv_array_unlock(base->array);
    return status;
}

static cv_status read_array(void *context, const cv_base *base, cv_mapped *m, cv_error *err)
{
    (void)context;
    cv_array_lock_shared(base->array);
    cv_source source = cv_array_source(base->array);
    m->selection.grid = &source.snapshot->grid;
    cv_status status = cv_view_check(base, m->selection.grid, err);
    if (status == CV_OK)
        status = cv_array_read_selected(base->array, &source, &m->selection, &m->memory, err);
    return cv_array_finish(base->array, status);
}

static cv_status write_array(const cv_base *base, cv_mapped *m, cv_error *err)
{
    cv_array_lock_alone(base->array);
    cv_pending *pending = base->array->pending;
    m->selection.grid = &cv_txn_snapshot(pending->txn)->grid;
    cv_status status = cv_pending_check(pending, err);
    if (status == CV_OK) status = cv_view_check(base, m->selection.grid, err);
    if (status == CV_OK)
        status = cv_part_mark_selection(base->array->part, &m->selection, err);
    if (status == CV_OK)
        status = cv_array_write_selected(pending, &m->selection, &m->memory, err);
    return cv_array_finish(base->array, status);
}

static cv_status check_new_axes(const caterva_view *view, const cv_selection *s,
                                cv_error *err)
{
    for (int d = 0; s->kind == CATERVA_SELECTION_AXES && d < view->grid.ndim; d++)
        if (view->base_axis[d] < 0 && s->axes[d].n > 1)
            return cv_fail(err, CATERVA_EUNSUPPORTED, -1,
                           "axis %d of the view is a new one, and its item taken %lld times",
                           d, (long long)s->axes[d].n);
    return CV_OK;
}

cv_status cv_view_visit(const caterva_view *view, const cv_selection *selection,
                        const cv_memory *memory, const cv_visit *visit, cv_error *err)
{
    if (selection->n_items == 0) return CV_OK;
    if (!visit->is_read) CV_TRY(check_new_axes(view, selection, err));
    cv_mapped m;
    cv_status status = cv_view_map(view, selection, memory, &m, err);
    if (status == CV_OK)
        status = view->base->array
                     ? visit->array(visit->context, view->base, &m, err)
                     : view->base->visit(view->base, &m.selection, &m.memory, visit, err);
    cv_mapped_free(&m);
    if (status != CV_OK || !visit->is_read || selection->kind != CATERVA_SELECTION_AXES)
        return status;
    return end_axes(view, selection, memory, visit, err);
}

cv_status cv_view_read(const caterva_view *view, const cv_selection *selection,
                       const cv_memory *dst, cv_error *err)
{
    static const cv_visit read = {.array = read_array, .is_read = true};
    return cv_view_visit(view, selection, dst, &read, err);
}

/* ---- Calls ---------------------------------------------------------------- */

/* Of a call that does not come to the arrays: that the view is stale is said first. */
static cv_status end_early(const caterva_view *view, cv_status status, cv_error *err)
{
    CV_TRY(cv_view_check_arrays(view->base, err));
    return status;
}

static cv_status check_destination(const caterva_view *view,
                                   const caterva_selection *selection,
                                   const caterva_buffer *dst, cv_selection *s,
                                   cv_memory *memory, cv_error *err)
{
    CV_TRY(cv_array_selection(&view->grid, selection, s, err));
    cv_result result = cv_result_of(s, view->base->dtype);
    return cv_memory_of_destination(dst, &result, memory, err);
}

caterva_status caterva_view_read(const caterva_view *view, const caterva_selection *selection,
                                 const caterva_buffer *dst, caterva_error *err)
{
    if (!view) return cv_fail(err, CATERVA_EINVAL, -1, "the view is NULL");
    cv_selection s;
    cv_memory memory;
    cv_status status = check_destination(view, selection, dst, &s, &memory, err);
    if (status != CV_OK || s.n_items == 0) return end_early(view, status, err);
    return cv_view_read(view, &s, &memory, err);
}

static cv_status check_source(const caterva_view *view, const caterva_selection *selection,
                              const caterva_buffer *src, cv_selection *s, cv_memory *memory,
                              void **converted, cv_error *err)
{
    if (!view->base->array)
        return cv_fail(err, CATERVA_EREADONLY, -1,
                       "a view of several arrays cannot be written");
    CV_TRY(cv_array_check_encodes(view->base->array, err));
    CV_TRY(cv_array_selection(&view->grid, selection, s, err));
    cv_result result = cv_result_of(s, view->base->dtype);
    return cv_memory_of_source(src, &result, memory, converted, err);
}

caterva_status caterva_view_write(const caterva_view *view,
                                  const caterva_selection *selection,
                                  const caterva_buffer *src, caterva_error *err)
{
    if (!view) return cv_fail(err, CATERVA_EINVAL, -1, "the view is NULL");
    cv_selection s;
    cv_memory memory;
    cv_mapped m;
    void *converted = NULL;
    cv_status status = check_source(view, selection, src, &s, &memory, &converted, err);
    if (status != CV_OK || s.n_items == 0) {
        status = end_early(view, status, err);
    } else {
        status = cv_view_map(view, &s, &memory, &m, err);
        if (status == CV_OK) status = write_array(view->base, &m, err);
        cv_mapped_free(&m);
    }
    cv_free(converted);
    return status;
}
