/* Room: array. Views are made here: maps of axes, composed by arithmetic. No data is
 * touched. */
#include "array/view.h"

#include "base/arith.h"
#include "base/heap.h"

#include <string.h>

cv_status cv_view_count(cv_grid *grid, cv_error *err)
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

cv_status cv_view_of_base(cv_base *base, caterva_view **out, cv_error *err)
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
    return cv_view_of_base(base, out, err);
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

const char *caterva_view_dtype(const caterva_view *view)
{
    return view ? view->base->dtype : NULL;
}

/* ---- Views of views ----------------------------------------------------- */

/* A second view like the first, to be changed before it is shown. */
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
    return cv_fail(err, CATERVA_ERANGE, -1, "axis %d of a view with %d dimensions", axis,
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
                           "axis %d of a view cannot be a list in uneven steps", d);
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
                           "the order of axes names %d for axis %d of %d", from[d], d, ndim);
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
