/* Room: array. The words of a reduction, checked, and its selection turned into what the
 * engine takes. It computes nothing. */
#include "array/reduce_call.h"

#include "base/arith.h"
#include "base/heap.h"

/* ---- What is selected -------------------------------------------------------- */

/* A mask as a list. */
static cv_status list_axis(cv_taken *t, cv_axis *axis, int d, cv_error *err)
{
    size_t size = (size_t)axis->n * sizeof(int64_t); /* fits: there are so many items */
    int64_t *list = t->lists[d] = cv_malloc(size);
    if (!list) return cv_fail_memory(err, size, "a list of indices");
    int64_t n = 0;
    for (int64_t i = 0; n < axis->n; i++)
        if (axis->mask[i]) list[n++] = i;
    *axis = (cv_axis){.n = n, .step = 1, .list = list};
    return CV_OK;
}

static cv_status take_axis(cv_taken *t, int d, cv_error *err)
{
    cv_axis *axis = &t->selection.axes[d];
    axis->dropped = false;
    t->selection.shape[d] = axis->n;
    if (axis->n == 0 || axis->list) return CV_OK;
    if (axis->mask) return list_axis(t, axis, d, err);
    t->falls[d] = axis->n > 1 && axis->step < 0;
    if (t->falls[d]) axis->start += (axis->n - 1) * axis->step;
    axis->step = axis->n == 1 ? 1 : t->falls[d] ? -axis->step : axis->step;
    return CV_OK;
}

/* Blocks that hold a selected item, or some more. */
static int64_t count_blocks(const cv_selection *s)
{
    const cv_grid *grid = s->grid;
    int64_t all = grid->n_chunks * grid->n_blocks, n = 1;
    if (s->kind != CATERVA_SELECTION_AXES) return cv_min_i64(s->n_items, all);
    for (int d = 0; d < grid->ndim; d++)
        n *= cv_min_i64(s->axes[d].n, grid->chunk_counts[d] * grid->block_counts[d]);
    return n;
}

cv_status cv_take(cv_taken *t, cv_watch *watch, cv_error *err)
{
    cv_selection *s = &t->selection;
    if (s->kind == CATERVA_SELECTION_AXES) {
        for (int d = 0; d < s->grid->ndim; d++) CV_TRY(take_axis(t, d, err));
        s->ndim = s->grid->ndim;
    }
    if (s->n_items > 0) cv_watch_expect(watch, count_blocks(s) * s->grid->block_bytes);
    return CV_OK;
}

void cv_taken_free(cv_taken *t)
{
    for (int d = 0; d < CV_MAX_DIMS; d++) cv_free(t->lists[d]);
}

/* ---- What is wanted ---------------------------------------------------------- */

cv_status cv_mark_axes(const caterva_reduce_options *o, int ndim, bool *goes, cv_error *err)
{
    if (o->axes && o->n_axes < 0)
        return cv_fail(err, CATERVA_EINVAL, -1, "%d axes", o->n_axes);
    for (int d = 0; d < ndim; d++) goes[d] = !o->axes;
    for (int i = 0; o->axes && i < o->n_axes; i++) {
        int axis = o->axes[i];
        if (axis < 0 || axis >= ndim)
            return cv_fail(err, CATERVA_ERANGE, -1, "axis %d is not in [0, %d)", axis, ndim);
        if (goes[axis])
            return cv_fail(err, CATERVA_EINVAL, -1, "axis %d is named twice", axis);
        goes[axis] = true;
    }
    return CV_OK;
}

/* NULL: there is no such reduction. */
static const char *name_of(caterva_reduction what)
{
    switch (what) {
    case CATERVA_REDUCTION_MIN: return "minimum";
    case CATERVA_REDUCTION_MAX: return "maximum";
    case CATERVA_REDUCTION_SUM: return "sum";
    case CATERVA_REDUCTION_MEAN: return "mean";
    }
    return NULL;
}

cv_status cv_check_reduction(caterva_reduction what, cv_error *err)
{
    if (name_of(what)) return CV_OK;
    return cv_fail(err, CATERVA_EINVAL, -1, "there is no reduction %d", (int)what);
}

cv_status cv_check_bins_of(const cv_number_type *type, cv_error *err)
{
    if (!type->is_time) return CV_OK;
    return cv_fail(err, CATERVA_EDTYPE, -1, "there is no histogram of times");
}

/* ---- The result -------------------------------------------------------------- */

cv_status cv_check_cells(const cv_cells_wanted *w, const cv_number_type *type, cv_error *err)
{
    bool gives_item = cv_reduce_gives_item(w->what);
    uint64_t size = (uint64_t)cv_reduce_cell_size(type, w->what);
    if (type->is_time && !gives_item)
        return cv_fail(err, CATERVA_EDTYPE, -1,
                       "of times there are only minimum and maximum");
    if ((uint64_t)w->n_cells > w->dst_size / size)
        return cv_fail(err, CATERVA_ESHORT, -1,
                       "the result has %lld items of %llu bytes, the buffer %zu bytes",
                       (long long)w->n_cells, (unsigned long long)size, w->dst_size);
    if (w->n_cells > 0 && !w->dst)
        return cv_fail(err, CATERVA_EINVAL, -1, "the buffer is NULL");
    if (gives_item && w->n_items == 0 && w->n_cells > 0)
        return cv_fail(err, CATERVA_EINVAL, -1, "nothing has no %s", name_of(w->what));
    return CV_OK;
}

void cv_store_nothing(const cv_cells_wanted *w, const cv_number_type *type)
{
    cv_wide value = cv_reduce_nothing(type, w->what);
    for (int64_t i = 0; i < w->n_cells; i++)
        cv_reduce_store(type, w->what, value, w->dst + i * (int64_t)sizeof value);
}
