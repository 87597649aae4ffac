/* Room: array. Views: maps of axes, composed by arithmetic, and reads and writes through them. */
#include "array/view.h"

#include "base/arith.h"
#include "base/heap.h"
#include "engine/items/copy.h"

#include <string.h>

/* Sets n_items. CATERVA_EINVAL if it overflows. */
static cv_status view_count(cv_grid *grid, cv_error *err)
{
    bool fits = true, empty = false;
    grid->n_items = 1;
    for (int d = 0; d < grid->ndim; d++) {
        empty = empty || grid->shape[d] == 0;
        fits = cv_mul_i64(grid->n_items, grid->shape[d], &grid->n_items) && fits;
    }
    int64_t bytes;
    fits = fits && cv_mul_i64(grid->n_items, grid->item_size, &bytes);
    if (empty) grid->n_items = 0;
    if (fits || empty) return CV_OK;
    return cv_fail(err, CATERVA_EINVAL, -1, "the view's size does not fit 64 bits");
}

/* ---- Bases -------------------------------------------------------------- */

void cv_base_release(cv_base *base)
{
    if (!base || atomic_fetch_sub(&base->n_views, 1) > 1) return;
    for (int i = 0; i < base->n_parts; i++) caterva_view_free(base->parts[i]);
    cv_free(base->parts);
    cv_free(base->starts);
    cv_free(base->dtype);
    cv_free(base);
}

static cv_status view_of_base(cv_base *base, caterva_view **out, cv_error *err)
{
    caterva_view *view = cv_calloc(1, sizeof *view);
    if (!view) {
        cv_base_release(base);
        return cv_fail_memory(err, sizeof *view, "a view");
    }
    view->base = base;
    view->grid = base->grid;
    for (int d = 0; d < base->grid.ndim; d++) {
        view->base_axis[d] = d;
        view->step[d] = 1;
    }
    *out = view;
    return CV_OK;
}

caterva_status caterva_view_of(caterva_array *array, caterva_view **out, caterva_error *err)
{
    CV_TRY(cv_array_check(array, err));
    if (!out) return cv_fail(err, CATERVA_EINVAL, -1, "out is NULL");
    cv_base *base = cv_calloc(1, sizeof *base);
    char *dtype = cv_strdup(array->type.dtype);
    if (!base || !dtype) {
        cv_free(base);
        cv_free(dtype);
        return cv_fail_memory(err, sizeof *base, "a view");
    }
    base->n_views = 1;
    base->array = array;
    base->dtype = dtype;
    cv_array_lock_shared(array);
    const cv_grid *grid = &cv_array_state(array)->grid;
    base->grid.ndim = grid->ndim;
    base->grid.item_size = grid->item_size;
    base->grid.n_items = grid->n_items;
    memcpy(base->grid.shape, grid->shape, sizeof grid->shape);
    cv_array_unlock(array);
    return view_of_base(base, out, err);
}

void caterva_view_free(caterva_view *view)
{
    if (!view) return;
    cv_base_release(view->base);
    cv_free(view);
}

int caterva_view_ndim(const caterva_view *view) { return view ? view->grid.ndim : 0; }

const int64_t *caterva_view_shape(const caterva_view *view)
{
    return view ? view->grid.shape : NULL;
}

/* ---- Views of views ----------------------------------------------------- */

static cv_status start_view(const caterva_view *view, caterva_view **out, cv_error *err)
{
    if (!view || !out) return cv_fail(err, CATERVA_EINVAL, -1, "the view or out is NULL");
    *out = cv_malloc(sizeof **out);
    if (!*out) return cv_fail_memory(err, sizeof **out, "a view");
    **out = *view;
    atomic_fetch_add(&view->base->n_views, 1);
    return CV_OK;
}

static cv_status check_axis(const caterva_view *view, int axis, int most, cv_error *err)
{
    if (!view) return cv_fail(err, CATERVA_EINVAL, -1, "the view is NULL");
    if (axis >= 0 && axis <= most) return CV_OK;
    return cv_fail(err, CATERVA_ERANGE, -1,
                   "axis %d is out of range for a view with %d dimensions", axis,
                   view->grid.ndim);
}

static void remove_axis(caterva_view *view, int axis)
{
    view->grid.ndim--;
    for (int d = axis; d < view->grid.ndim; d++) {
        view->grid.shape[d] = view->grid.shape[d + 1];
        view->base_axis[d] = view->base_axis[d + 1];
    }
}

static cv_status check_slices(const cv_selection *s, cv_error *err)
{
    for (int d = 0; d < s->grid->ndim; d++)
        if (s->axes[d].list || s->axes[d].mask)
            return cv_fail(err, CATERVA_EINVAL, -1,
                           "axis %d of a view cannot be a list with uneven steps", d);
    return CV_OK;
}

caterva_status caterva_view_select(const caterva_view *view, const caterva_axis *axes,
                                   int n_axes, caterva_view **out, caterva_error *err)
{
    if (!view) return cv_fail(err, CATERVA_EINVAL, -1, "the view is NULL");
    caterva_selection words = CATERVA_SELECTION_INIT;
    words.kind = CATERVA_SELECTION_AXES;
    words.axes = axes;
    words.n_axes = n_axes;
    cv_selection s;
    CV_TRY(cv_selection_init(&s, &view->grid, &words, err));
    CV_TRY(check_slices(&s, err));
    CV_TRY(start_view(view, out, err));
    caterva_view *to = *out;
    for (int d = 0; d < view->grid.ndim; d++) {
        int b = view->base_axis[d];
        to->grid.shape[d] = s.axes[d].n;
        if (b < 0 || s.axes[d].n == 0) continue;
        to->start[b] += s.axes[d].start * view->step[b];
        to->step[b] *= s.axes[d].step;
    }
    for (int d = view->grid.ndim - 1; d >= 0; d--)
        if (s.axes[d].dropped) remove_axis(to, d);
    to->grid.n_items = s.n_items;
    return CV_OK;
}

caterva_status caterva_view_transpose(const caterva_view *view, const int *order,
                                      caterva_view **out, caterva_error *err)
{
    if (!view) return cv_fail(err, CATERVA_EINVAL, -1, "the view is NULL");
    int ndim = view->grid.ndim, from[CV_MAX_DIMS];
    bool seen[CV_MAX_DIMS] = {false};
    for (int d = 0; d < ndim; d++) {
        from[d] = order ? order[d] : ndim - 1 - d;
        if (from[d] < 0 || from[d] >= ndim || seen[from[d]])
            return cv_fail(err, CATERVA_EINVAL, -1,
                           "axis %d, at position %d of the order, is out of range or given "
                           "twice: %d axes",
                           from[d], d, ndim);
        seen[from[d]] = true;
    }
    CV_TRY(start_view(view, out, err));
    for (int d = 0; d < ndim; d++) {
        (*out)->grid.shape[d] = view->grid.shape[from[d]];
        (*out)->base_axis[d] = view->base_axis[from[d]];
    }
    return CV_OK;
}

caterva_status caterva_view_expand(const caterva_view *view, int axis, caterva_view **out,
                                   caterva_error *err)
{
    CV_TRY(check_axis(view, axis, view ? view->grid.ndim : 0, err));
    if (view->grid.ndim == CV_MAX_DIMS)
        return cv_fail(err, CATERVA_EINVAL, -1, "a view of %d dimensions cannot have more",
                       CV_MAX_DIMS);
    CV_TRY(start_view(view, out, err));
    caterva_view *to = *out;
    for (int d = to->grid.ndim++; d > axis; d--) {
        to->grid.shape[d] = to->grid.shape[d - 1];
        to->base_axis[d] = to->base_axis[d - 1];
    }
    to->grid.shape[axis] = 1;
    to->base_axis[axis] = -1;
    return CV_OK;
}

caterva_status caterva_view_squeeze(const caterva_view *view, int axis, caterva_view **out,
                                    caterva_error *err)
{
    CV_TRY(check_axis(view, axis, view ? view->grid.ndim - 1 : 0, err));
    if (view->grid.shape[axis] != 1)
        return cv_fail(err, CATERVA_EINVAL, -1, "axis %d has %lld items, not one", axis,
                       (long long)view->grid.shape[axis]);
    CV_TRY(start_view(view, out, err));
    remove_axis(*out, axis);
    return CV_OK;
}

/* ---- Through a view -------------------------------------------------------------------- */

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
    m->lists[i] = cv_malloc(cv_size(cv_max_i64(size, 1)));
    return m->lists[i] ? CV_OK : cv_fail_memory(err, cv_size(size), "a selection of a view");
}

/* Maps the selection of axis `d` of the view to axis `b` of the base. */
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

/* Sets shape and strides of the result in the order of the base's axes. New axes of the view are
 * left out: on each new axis, the memory begins at the last selected index. */
static cv_status map_axes(const caterva_view *view, const cv_selection *s,
                          const cv_memory *memory, cv_mapped *m, cv_error *err)
{
    const cv_grid *base = &view->base->grid;
    int64_t strides[CV_MAX_DIMS] = {0}; /* indexed by axis of the base */
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

/* ---- The rest of a read ------------------------------------------------------ */

static void place_points(const cv_rest *rest)
{
    const int64_t one = 1, item_size = rest->memory.item_size;
    for (int64_t i = 0; i < rest->n_points; i++) {
        cv_strided from = {rest->items + i * item_size, &one};
        cv_strided to = {rest->memory.data + rest->places[i] * rest->memory.strides[0], &one};
        cv_copy_box(1, &one, item_size, from, to);
    }
}

/* Fills the new axes, one after the other. For each axis, copies the items that were already copied
 * or read to the other indices of the axis. */
static void repeat_new_axes(const cv_rest *rest)
{
    const cv_memory *dst = &rest->memory;
    int64_t shape[CV_MAX_DIMS]; /* shape of the items that were already copied or read */
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

/* Performs `rest`, or passes it to visit->later. Takes over the memory that `rest` owns. */
static cv_status visit_end(const cv_visit *visit, cv_rest *rest, cv_error *err)
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

/* If a list selects the only item of a new axis several times, copies the item to all its places in
 * the result. The arrays have delivered the item only for the last place. */
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
    return repeats ? visit_end(visit, &rest, err) : CV_OK;
}

/* ---- Points and masks --------------------------------------------------- */

static void map_point(const caterva_view *view, const int64_t *point, int64_t *out)
{
    memcpy(out, view->start, (size_t)view->base->grid.ndim * sizeof out[0]);
    for (int d = 0; d < view->grid.ndim; d++) {
        int b = view->base_axis[d];
        if (b >= 0)
            out[b] += cv_index_from_start(point[d], view->grid.shape[d]) * view->step[b];
    }
}

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

/* A resize or a refresh may have changed the grid or the dtype. */
cv_status cv_view_check(const cv_base *base, const cv_grid *grid, cv_error *err)
{
    const char *dtype = base->array->type.dtype;
    if (grid->ndim != base->grid.ndim || grid->item_size != base->grid.item_size ||
        strcmp(dtype, base->dtype) != 0)
        return cv_fail(err, CATERVA_ESTALE, -1,
                       "the array has %d axes and dtype %.80s now, it had %d and %.80s when "
                       "the view was made",
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

void cv_view_begin(const cv_base *base)
{
    for (int i = 0; i < base->n_parts; i++) cv_view_begin(base->parts[i]->base);
    if (base->array && base->array->watch) cv_watch_begin(base->array->watch);
}

cv_status cv_view_finish(const cv_base *base, cv_status status)
{
    for (int i = 0; i < base->n_parts; i++) cv_view_finish(base->parts[i]->base, status);
    if (base->array && base->array->watch) cv_watch_end(base->array->watch, status == CV_OK);
    return status;
}

static cv_status read_array(void *context, const cv_base *base, cv_mapped *m, cv_error *err)
{
    (void)context;
    cv_source source;
    CV_TRY(cv_array_begin_read(base->array, &source, err));
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
        status =
            cv_array_note_write(base->array, &(cv_written){.selection = &m->selection}, err);
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
                           "axis %d of the view is new, and its item is selected %lld times",
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
    cv_view_begin(view->base);
    if (status == CV_OK)
        status = view->base->array
                     ? visit->array(visit->context, view->base, &m, err)
                     : view->base->visit(view->base, &m.selection, &m.memory, visit, err);
    cv_view_finish(view->base, status);
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

/* Ends a call that failed or selects no items. CATERVA_ESTALE has precedence over `status`. */
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

/* ---- Joins: several views in a row -------------------------------------------------------- */

/* A selection of a join, and the position of the join's axis in the result. */
typedef struct share {
    const cv_base *base;
    const cv_selection *selection;
    const cv_memory *memory;
    const cv_visit *visit;
    int result_axis; /* the join's axis in the result; not used if the axis is dropped */
    int64_t stride;
} share;

/* Visits a part. `axis` selects items of the part, with indices relative to the part. The first of
 * these items has index `first` in the result. */
static cv_status visit_share(const share *sh, int part, cv_axis axis, int64_t first,
                             cv_error *err)
{
    if (axis.n == 0) return CV_OK;
    cv_selection s = *sh->selection;
    cv_memory memory = *sh->memory;
    s.axes[sh->base->axis] = axis;
    if (!axis.dropped) {
        s.n_items = s.n_items / s.shape[sh->result_axis] * axis.n;
        s.shape[sh->result_axis] = axis.n;
    }
    memory.data += first * sh->stride;
    return cv_view_visit(sh->base->parts[part], &s, &memory, sh->visit, err);
}

/* Counts a slice's items below `bound`: its first items if step > 0, else its last items. */
static int64_t count_below(const cv_axis *axis, int64_t bound)
{
    int64_t step = axis->step < 0 ? -axis->step : axis->step;
    int64_t lowest = axis->step < 0 ? axis->start + (axis->n - 1) * axis->step : axis->start;
    if (bound <= lowest) return 0;
    return cv_min_i64(axis->n, cv_ceil_div(bound - lowest, step));
}

static cv_status visit_slice(const share *sh, cv_error *err)
{
    const cv_axis *all = &sh->selection->axes[sh->base->axis];
    for (int p = 0; p < sh->base->n_parts; p++) {
        int64_t start = sh->base->starts[p];
        int64_t low = count_below(all, start),
                high = count_below(all, sh->base->starts[p + 1]);
        int64_t first = all->step < 0 ? all->n - high : low;
        cv_axis axis = *all;
        axis.n = high - low;
        axis.start = all->start + first * all->step - start;
        CV_TRY(visit_share(sh, p, axis, first, err));
    }
    return CV_OK;
}

static int find_part(const cv_base *base, int64_t at)
{
    int low = 0, high = base->n_parts - 1; /* starts[low] <= at < starts[high + 1] */
    while (low < high) {
        int middle = low + (high - low + 1) / 2;
        if (base->starts[middle] <= at)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

/* Visits a list of indices in runs, each within one part. If the visit is not a read and the part
 * has one item on the axis, each run has one item, because the axis may be a new one. */
static cv_status visit_list(const share *sh, cv_error *err)
{
    const cv_axis *all = &sh->selection->axes[sh->base->axis];
    size_t size = (size_t)all->n * sizeof(int64_t); /* no overflow: the list is in memory */
    int64_t *own = cv_malloc(size);
    if (!own) return cv_fail_memory(err, size, "a list of indices");
    cv_status status = CV_OK;
    for (int64_t first = 0, n; status == CV_OK && first < all->n; first += n) {
        int part = find_part(sh->base, all->list[first]);
        int64_t start = sh->base->starts[part], stop = sh->base->starts[part + 1];
        int64_t most = sh->visit->is_read || stop - start > 1 ? all->n - first : 1;
        for (n = 0; n < most; n++) {
            int64_t at = all->list[first + n];
            if (at < start || at >= stop) break;
            own[n] = at - start;
        }
        cv_axis axis = *all;
        axis.n = n;
        axis.list = own;
        status = visit_share(sh, part, axis, first, err);
    }
    cv_free(own);
    return status;
}

/* ---- Points ------------------------------------------------------------- */

/* The points of one part. For a read, `places` (indices in the result) and `items` begin with the
 * n_before points of earlier parts. */
typedef struct chosen {
    int64_t *points;
    int64_t *places;
    uint8_t *items;
    int64_t n_before;
} chosen;

static int64_t choose_points(const cv_base *base, const cv_selection *s, int part, chosen *c)
{
    int ndim = base->grid.ndim;
    int64_t n = 0;
    for (int64_t i = 0; i < s->n_items; i++) {
        const int64_t *point = s->points + i * ndim;
        int64_t at = point[base->axis];
        if (at < base->starts[part] || at >= base->starts[part + 1]) continue;
        memcpy(c->points + n * ndim, point, (size_t)ndim * sizeof point[0]);
        c->points[n * ndim + base->axis] -= base->starts[part];
        if (c->places) c->places[c->n_before + n] = i;
        n++;
    }
    return n;
}

static cv_status visit_chosen(const cv_base *base, int part, int64_t n, const chosen *c,
                              const cv_memory *memory, const cv_visit *visit, cv_error *err)
{
    cv_selection s = {.kind = CATERVA_SELECTION_POINTS, .ndim = 1, .points = c->points};
    cv_memory own = *memory;
    s.shape[0] = s.n_items = n;
    if (visit->is_read) {
        own.data = c->items + c->n_before * memory->item_size;
        own.strides[0] = memory->item_size;
    }
    return cv_view_visit(base->parts[part], &s, &own, visit, err);
}

static cv_status new_chosen(size_t n, int ndim, int64_t item_size, bool is_read, chosen *c,
                            cv_error *err)
{
    *c = (chosen){.points = cv_calloc(n, (size_t)ndim * sizeof(int64_t))};
    if (is_read) {
        c->places = cv_calloc(n, sizeof(int64_t));
        c->items = cv_calloc(n, (size_t)item_size);
    }
    if (c->points && (!is_read || (c->places && c->items))) return CV_OK;
    return cv_fail_memory(err, n * sizeof(int64_t), "points of a view");
}

static cv_status visit_points(const cv_base *base, const cv_selection *s,
                              const cv_memory *memory, const cv_visit *visit, cv_error *err)
{
    chosen c;
    cv_status status = new_chosen(cv_size(s->n_items), base->grid.ndim, memory->item_size,
                                  visit->is_read, &c, err);
    for (int p = 0; status == CV_OK && p < base->n_parts; p++) {
        int64_t n = choose_points(base, s, p, &c);
        if (n > 0) status = visit_chosen(base, p, n, &c, memory, visit, err);
        c.n_before += n;
    }
    cv_free(c.points);
    cv_rest rest = {.memory = *memory, .n_points = c.n_before, .places = c.places};
    rest.items = c.items;
    if (status == CV_OK && visit->is_read) return visit_end(visit, &rest, err);
    cv_rest_free(&rest);
    return status;
}

static cv_status visit_join(const cv_base *base, const cv_selection *selection,
                            const cv_memory *memory, const cv_visit *visit, cv_error *err)
{
    if (selection->kind == CATERVA_SELECTION_POINTS)
        return visit_points(base, selection, memory, visit, err);
    share sh = {.base = base, .selection = selection, .memory = memory, .visit = visit};
    const cv_axis *axes = selection->axes;
    for (int d = 0; d < base->axis; d++) sh.result_axis += !axes[d].dropped;
    if (!axes[base->axis].dropped) sh.stride = memory->strides[sh.result_axis];
    return axes[base->axis].list ? visit_list(&sh, err) : visit_slice(&sh, err);
}

static cv_status check_parts(const caterva_view *const *views, int n, int axis, cv_error *err)
{
    if (n < 1 || !views)
        return cv_fail(err, CATERVA_EINVAL, -1, "cannot join %d views%s", n,
                       views ? "" : " at NULL");
    for (int i = 0; i < n; i++)
        if (!views[i]) return cv_fail(err, CATERVA_EINVAL, -1, "view %d is NULL", i);
    const cv_grid *first = &views[0]->grid;
    if (axis < 0 || axis >= first->ndim)
        return cv_fail(err, CATERVA_ERANGE, -1,
                       "axis %d is out of range for views with %d dimensions", axis,
                       first->ndim);
    for (int i = 1; i < n; i++) {
        const cv_grid *grid = &views[i]->grid;
        if (grid->ndim != first->ndim)
            return cv_fail(err, CATERVA_ESHAPE, -1,
                           "view %d has %d dimensions, view 0 has %d", i, grid->ndim,
                           first->ndim);
        for (int d = 0; d < grid->ndim; d++)
            if (d != axis && grid->shape[d] != first->shape[d])
                return cv_fail(err, CATERVA_ESHAPE, -1,
                               "axis %d of view %d has %lld items, of view 0 %lld", d, i,
                               (long long)grid->shape[d], (long long)first->shape[d]);
        if (strcmp(views[i]->base->dtype, views[0]->base->dtype) != 0)
            return cv_fail(err, CATERVA_EDTYPE, -1,
                           "view %d has dtype %.80s, view 0 has %.80s", i,
                           views[i]->base->dtype, views[0]->base->dtype);
    }
    return CV_OK;
}

/* Sets the start of each part along the axis, and makes a private view of each part. */
static cv_status fill_join(cv_base *base, const caterva_view *const *views, int n,
                           cv_error *err)
{
    base->starts = cv_calloc((size_t)n + 1, sizeof base->starts[0]);
    base->parts = cv_calloc((size_t)n, sizeof base->parts[0]);
    base->dtype = cv_strdup(views[0]->base->dtype);
    if (!base->starts || !base->parts || !base->dtype)
        return cv_fail_memory(err, (size_t)n * sizeof base->parts[0], "a view");
    base->grid = views[0]->grid;
    for (int i = 0; i < n; i++) {
        if (!cv_add_i64(base->starts[i], views[i]->grid.shape[base->axis],
                        &base->starts[i + 1]))
            return cv_fail(err, CATERVA_EINVAL, -1, "the view's size does not fit 64 bits");
        CV_TRY(caterva_view_select(views[i], NULL, 0, &base->parts[i], err));
        base->n_parts++;
    }
    base->grid.shape[base->axis] = base->starts[n];
    base->visit = visit_join;
    return view_count(&base->grid, err);
}

caterva_status caterva_view_concat(const caterva_view *const *views, int n, int axis,
                                   caterva_view **out, caterva_error *err)
{
    CV_TRY(check_parts(views, n, axis, err));
    if (!out) return cv_fail(err, CATERVA_EINVAL, -1, "out is NULL");
    cv_base *base = cv_calloc(1, sizeof *base);
    if (!base) return cv_fail_memory(err, sizeof *base, "a view");
    base->n_views = 1;
    base->axis = axis;
    cv_status status = fill_join(base, views, n, err);
    if (status == CV_OK) return view_of_base(base, out, err);
    cv_base_release(base);
    return status;
}

caterva_status caterva_view_stack(const caterva_view *const *views, int n, int axis,
                                  caterva_view **out, caterva_error *err)
{
    if (n < 1 || !views)
        return cv_fail(err, CATERVA_EINVAL, -1, "cannot stack %d views%s", n,
                       views ? "" : " at NULL");
    caterva_view **layers = cv_calloc((size_t)n, sizeof layers[0]);
    if (!layers) return cv_fail_memory(err, (size_t)n * sizeof layers[0], "views to stack");
    cv_status status = CV_OK;
    for (int i = 0; status == CV_OK && i < n; i++)
        status = caterva_view_expand(views[i], axis, &layers[i], err);
    if (status == CV_OK)
        status = caterva_view_concat((const caterva_view *const *)layers, n, axis, out, err);
    for (int i = 0; i < n; i++) caterva_view_free(layers[i]);
    cv_free(layers);
    return status;
}
