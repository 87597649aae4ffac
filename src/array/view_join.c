/* Room: array. Several views in a row as one: made here, and visited by giving each
 * part its share of the selection. */
#include "array/view_read.h"
#include "base/arith.h"
#include "base/heap.h"
#include "engine/items/copy.h"

#include <string.h>

/* ---- Axis by axis ------------------------------------------------------- */

/* A selection of a join and how its axis lies in the result. */
typedef struct share {
    const cv_base *base;
    const cv_selection *selection;
    const cv_memory *memory;
    const cv_visit *visit;
    int result_axis; /* where not dropped */
    int64_t stride;
} share;

/* Of the selected items those from `first` on that are one part's: `axis` says which of
 * its own. */
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

/* Items of a slice below `bound`, from its begin (step > 0) or from its end. */
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

/* A list goes in runs of one part each; of an axis of one item, which may be a new one, a
 * reduction takes it in runs of one. */
static cv_status visit_list(const share *sh, cv_error *err)
{
    const cv_axis *all = &sh->selection->axes[sh->base->axis];
    size_t size = (size_t)all->n * sizeof(int64_t); /* fits: the list is in memory */
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

static cv_status visit_axes(const cv_base *base, const cv_selection *s,
                            const cv_memory *memory, const cv_visit *visit, cv_error *err)
{
    share sh = {.base = base, .selection = s, .memory = memory, .visit = visit};
    for (int d = 0; d < base->axis; d++) sh.result_axis += !s->axes[d].dropped;
    if (!s->axes[base->axis].dropped) sh.stride = memory->strides[sh.result_axis];
    return s->axes[base->axis].list ? visit_list(&sh, err) : visit_slice(&sh, err);
}

/* ---- Points ------------------------------------------------------------- */

/* Those of one part: their indices in it; of a read their places in the result, and their
 * items, behind those of the parts before it. */
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
    *c = (chosen){.points = cv_malloc(n * (size_t)ndim * sizeof(int64_t))};
    if (is_read) {
        c->places = cv_malloc(n * sizeof(int64_t));
        c->items = cv_malloc(n * (size_t)item_size);
    }
    if (c->points && (!is_read || (c->places && c->items))) return CV_OK;
    return cv_fail_memory(err, n * sizeof(int64_t), "points of a view");
}

static cv_status visit_points(const cv_base *base, const cv_selection *s,
                              const cv_memory *memory, const cv_visit *visit, cv_error *err)
{
    chosen c;
    cv_status status = new_chosen((size_t)s->n_items, base->grid.ndim, memory->item_size,
                                  visit->is_read, &c, err);
    for (int p = 0; status == CV_OK && p < base->n_parts; p++) {
        int64_t n = choose_points(base, s, p, &c);
        if (n > 0) status = visit_chosen(base, p, n, &c, memory, visit, err);
        c.n_before += n;
    }
    cv_free(c.points);
    cv_rest rest = {.memory = *memory, .n_points = c.n_before, .places = c.places};
    rest.items = c.items;
    if (status == CV_OK && visit->is_read) return cv_visit_end(visit, &rest, err);
    cv_rest_free(&rest);
    return status;
}

static cv_status visit_join(const cv_base *base, const cv_selection *selection,
                            const cv_memory *memory, const cv_visit *visit, cv_error *err)
{
    if (selection->kind == CATERVA_SELECTION_POINTS)
        return visit_points(base, selection, memory, visit, err);
    return visit_axes(base, selection, memory, visit, err);
}

/* ---- Making ------------------------------------------------------------- */

static cv_status check_parts(const caterva_view *const *views, int n, int axis, cv_error *err)
{
    if (n < 1 || !views)
        return cv_fail(err, CATERVA_EINVAL, -1, "%d views to join%s", n,
                       views ? "" : " at NULL");
    for (int i = 0; i < n; i++)
        if (!views[i]) return cv_fail(err, CATERVA_EINVAL, -1, "view %d is NULL", i);
    const cv_grid *first = &views[0]->grid;
    if (axis < 0 || axis >= first->ndim)
        return cv_fail(err, CATERVA_ERANGE, -1, "axis %d of views with %d dimensions", axis,
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
            return cv_fail(err, CATERVA_EDTYPE, -1, "view %d is of %.80s, view 0 of %.80s", i,
                           views[i]->base->dtype, views[0]->base->dtype);
    }
    return CV_OK;
}

/* The parts' places along the axis, and each part held by a view of our own. */
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
    return cv_view_count(&base->grid, err);
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
    if (status == CV_OK) return cv_view_of_base(base, out, err);
    cv_base_release(base);
    return status;
}

caterva_status caterva_view_stack(const caterva_view *const *views, int n, int axis,
                                  caterva_view **out, caterva_error *err)
{
    if (n < 1 || !views)
        return cv_fail(err, CATERVA_EINVAL, -1, "%d views to stack%s", n,
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
