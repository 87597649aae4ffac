/* Room: array. Statistics and reductions: options and dtype checked, locks taken, the
 * engine called. */
#include "engine/jobs/reduce.h"
#include "engine/jobs/statistics.h"

#include "array/view_read.h"
#include "base/arith.h"
#include "base/heap.h"

#include <math.h>
#include <string.h>

/* What one call works on; all that the engine borrows. Axes are those of the array:
 * axis d of the selection's result is axis kept[d] of it, unless the result is a list of
 * points. */
typedef struct request {
    caterva_reduce_options options;
    const caterva_view *view; /* through which; or NULL */
    cv_mapped mapped;         /* what the view makes of the selection */
    cv_source source;
    cv_number_type type;
    cv_selection selection;      /* as the engine takes it: forwards, no axis dropped */
    int64_t *lists[CV_MAX_DIMS]; /* ours, in it */
    bool falls[CV_MAX_DIMS];     /* its items are wanted in falling order */
    int ndim;                    /* of the selection's result */
    int kept[CV_MAX_DIMS];       /* -1: an axis of one item that only the view has */
    cv_watch watch;              /* the options', and the handle's behind it */
    cv_reduction reduction;
} request;

/* ---- Before and after -------------------------------------------------------- */

/* A mask as a list. */
static cv_status list_axis(request *r, cv_axis *axis, int d, cv_error *err)
{
    size_t size = (size_t)axis->n * sizeof(int64_t); /* fits: there are so many items */
    int64_t *list = r->lists[d] = cv_malloc(size);
    if (!list) return cv_fail_memory(err, size, "a list of indices");
    int64_t n = 0;
    for (int64_t i = 0; n < axis->n; i++)
        if (axis->mask[i]) list[n++] = i;
    *axis = (cv_axis){.n = n, .step = 1, .list = list};
    return CV_OK;
}

static cv_status take_axis(request *r, int d, cv_error *err)
{
    cv_axis *axis = &r->selection.axes[d];
    axis->dropped = false;
    r->selection.shape[d] = axis->n;
    if (axis->n == 0 || axis->list) return CV_OK;
    if (axis->mask) return list_axis(r, axis, d, err);
    r->falls[d] = axis->n > 1 && axis->step < 0;
    if (r->falls[d]) axis->start += (axis->n - 1) * axis->step;
    axis->step = axis->n == 1 ? 1 : r->falls[d] ? -axis->step : axis->step;
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

/* The axes of the result, and which of the array's, or of nothing the view's, each is. */
static cv_status note_result(request *r, const cv_selection *s, cv_error *err)
{
    if (s->kind != CATERVA_SELECTION_AXES) {
        r->ndim = 1;
        return CV_OK;
    }
    for (int d = 0; d < s->grid->ndim; d++) {
        if (s->axes[d].dropped) continue;
        bool mapped = r->view && s->n_items > 0;
        int axis = mapped ? r->view->base_axis[d] : d;
        if (axis < 0 && s->axes[d].n > 1)
            return cv_fail(err, CATERVA_EUNSUPPORTED, -1,
                           "axis %d of the view is a new one, and its item taken %lld times",
                           d, (long long)s->axes[d].n);
        r->kept[r->ndim++] = axis;
    }
    return CV_OK;
}

/* Of nothing the selection stays the view's: no item of the array is looked at. */
static cv_status map_to_array(request *r, const cv_grid *grid, cv_error *err)
{
    static const cv_memory nowhere = {.data = NULL};
    CV_TRY(cv_view_check(r->view->base, grid, err));
    if (r->selection.n_items == 0) return CV_OK;
    cv_selection of_view = r->selection;
    CV_TRY(cv_view_map(r->view, &of_view, &nowhere, &r->mapped, err));
    r->selection = r->mapped.selection;
    r->selection.grid = grid;
    return CV_OK;
}

static cv_status take_selection(request *r, const cv_grid *grid, cv_error *err)
{
    cv_selection *s = &r->selection;
    const cv_grid *seen = r->view ? &r->view->grid : grid;
    CV_TRY(cv_array_selection(seen, r->options.selection, s, err));
    CV_TRY(note_result(r, s, err));
    if (r->view) CV_TRY(map_to_array(r, grid, err));
    if (s->kind == CATERVA_SELECTION_AXES) {
        for (int d = 0; d < s->grid->ndim; d++) CV_TRY(take_axis(r, d, err));
        s->ndim = s->grid->ndim;
    }
    if (s->n_items > 0) cv_watch_expect(r->source.watch, count_blocks(s) * grid->block_bytes);
    return CV_OK;
}

static cv_status prepare(request *r, caterva_array *array, cv_error *err)
{
    r->source = cv_array_source(array);
    r->watch.also = r->source.watch;
    if (r->options.on_progress || r->source.watch) r->source.watch = &r->watch;
    r->reduction = (cv_reduction){&r->source, &r->type, &r->selection, r->source.watch};
    CV_TRY(cv_number_type_of(array->type.dtype, &r->type, err));
    return take_selection(r, &r->source.snapshot->grid, err);
}

/* Whose items: an array's, or those of the one below a view. */
typedef struct items_of {
    caterva_array *array;
    const caterva_view *view;
} items_of;

static cv_status look_below(const caterva_view *view, items_of *out, cv_error *err)
{
    if (!view) return cv_fail(err, CATERVA_EINVAL, -1, "the view is NULL");
    *out = (items_of){view->base->array, view};
    if (out->array) return CV_OK;
    return cv_fail(err, CATERVA_EUNSUPPORTED, -1,
                   "a view of several arrays is not reduced: each of them is, or a copy");
}

static cv_status read_options(request *r, const items_of *items,
                              const caterva_reduce_options *options, cv_error *err)
{
    static const caterva_reduce_options defaults = CATERVA_REDUCE_INIT;
    memset(r, 0, sizeof *r);
    CV_TRY(cv_array_check(items->array, err));
    r->view = items->view;
    return cv_options_copy(&r->options, sizeof r->options, options ? options : &defaults,
                           "reduce options", err);
}

/* Does `work` with the array locked. */
static cv_status run(request *r, caterva_array *array,
                     cv_status (*work)(request *r, void *argument, cv_error *err),
                     void *argument, cv_error *err)
{
    cv_array_lock_shared(array);
    cv_watch_init_steps(&r->watch, r->options.on_progress, r->options.context, NULL);
    cv_status status = prepare(r, array, err);
    if (status == CV_OK) status = work(r, argument, err);
    cv_watch_destroy(&r->watch);
    for (int d = 0; d < CV_MAX_DIMS; d++) cv_free(r->lists[d]);
    cv_mapped_free(&r->mapped);
    return cv_array_finish(array, status);
}

/* ---- Statistics and histogram ------------------------------------------------ */

static cv_status compute_statistics(request *r, void *out, cv_error *err)
{
    cv_tally tally;
    CV_TRY(cv_statistics(&r->reduction, &tally, err));
    caterva_stats full = {.n_items = 0};
    cv_tally_public(&tally, &r->type, &full);
    cv_output_fill(out, &full, sizeof full);
    return CV_OK;
}

static cv_status statistics_of(const items_of *items, const caterva_reduce_options *options,
                               caterva_stats *out, cv_error *err)
{
    request r;
    CV_TRY(read_options(&r, items, options, err));
    CV_TRY(cv_output_check(out, sizeof *out, "statistics", err));
    return run(&r, items->array, compute_statistics, out, err);
}

caterva_status caterva_statistics(caterva_array *array, const caterva_reduce_options *options,
                                  caterva_stats *out, caterva_error *err)
{
    return statistics_of(&(items_of){array, NULL}, options, out, err);
}

caterva_status caterva_view_statistics(const caterva_view *view,
                                       const caterva_reduce_options *options,
                                       caterva_stats *out, caterva_error *err)
{
    items_of items;
    CV_TRY(look_below(view, &items, err));
    return statistics_of(&items, options, out, err);
}

static cv_status compute_histogram(request *r, void *bins, cv_error *err)
{
    if (r->type.is_time)
        return cv_fail(err, CATERVA_EDTYPE, -1, "there is no histogram of times");
    return cv_histogram(&r->reduction, bins, err);
}

static cv_status check_bins(const cv_bins *bins, cv_error *err)
{
    if (bins->n_bins < 1 || bins->n_bins > CATERVA_MAX_BINS)
        return cv_fail(err, CATERVA_EINVAL, -1, "%lld bins are not in [1, %d]",
                       (long long)bins->n_bins, CATERVA_MAX_BINS);
    if (!(bins->lo <= bins->hi) || !isfinite(bins->hi - bins->lo))
        return cv_fail(err, CATERVA_EINVAL, -1, "the range [%g, %g] is none", bins->lo,
                       bins->hi);
    return CV_OK;
}

static cv_status histogram_of(const items_of *items, const caterva_reduce_options *options,
                              cv_bins *bins, cv_error *err)
{
    request r;
    CV_TRY(read_options(&r, items, options, err));
    CV_TRY(check_bins(bins, err));
    if (bins->lo == bins->hi) { /* as NumPy widens it */
        bins->lo -= 0.5;
        bins->hi += 0.5;
    }
    memset(bins->counts, 0, (size_t)bins->n_bins * sizeof bins->counts[0]);
    return run(&r, items->array, compute_histogram, bins, err);
}

static cv_status check_pointers(const double *range, const int64_t *counts, cv_error *err)
{
    if (range && counts) return CV_OK;
    return cv_fail(err, CATERVA_EINVAL, -1, "range or counts is NULL");
}

caterva_status caterva_histogram(caterva_array *array, const caterva_reduce_options *options,
                                 const double range[2], int64_t n_bins, int64_t *counts,
                                 caterva_error *err)
{
    CV_TRY(cv_array_check(array, err));
    CV_TRY(check_pointers(range, counts, err));
    cv_bins bins = {range[0], range[1], n_bins, counts};
    return histogram_of(&(items_of){array, NULL}, options, &bins, err);
}

caterva_status caterva_view_histogram(const caterva_view *view,
                                      const caterva_reduce_options *options,
                                      const double range[2], int64_t n_bins, int64_t *counts,
                                      caterva_error *err)
{
    items_of items;
    CV_TRY(look_below(view, &items, err));
    CV_TRY(check_pointers(range, counts, err));
    cv_bins bins = {range[0], range[1], n_bins, counts};
    return histogram_of(&items, options, &bins, err);
}

/* ---- Along axes -------------------------------------------------------------- */

typedef struct axes_call {
    cv_axes_request request;
    size_t dst_size;
    bool everything; /* all axes go */
    int64_t n_cells;
    int64_t first_cell; /* not 0 where an axis falls */
} axes_call;

/* The result's axes that go, each once. */
static cv_status mark_axes(const request *r, bool *goes, cv_error *err)
{
    const caterva_reduce_options *o = &r->options;
    if (o->axes && o->n_axes < 0)
        return cv_fail(err, CATERVA_EINVAL, -1, "%d axes", o->n_axes);
    for (int d = 0; d < r->ndim; d++) goes[d] = !o->axes;
    for (int i = 0; o->axes && i < o->n_axes; i++) {
        int axis = o->axes[i];
        if (axis < 0 || axis >= r->ndim)
            return cv_fail(err, CATERVA_ERANGE, -1, "axis %d is not in [0, %d)", axis,
                           r->ndim);
        if (goes[axis])
            return cv_fail(err, CATERVA_EINVAL, -1, "axis %d is named twice", axis);
        goes[axis] = true;
    }
    return CV_OK;
}

/* What becomes of each axis of the array, and where the cells of those that stay lie. An
 * axis of one item that is not in the result stays, too, or goes: it is all the same. */
static cv_status place_cells(const request *r, axes_call *call, cv_error *err)
{
    bool goes[CV_MAX_DIMS] = {false};
    CV_TRY(mark_axes(r, goes, err));
    bool by_axes = r->selection.kind == CATERVA_SELECTION_AXES;
    call->everything = true;
    call->n_cells = 1;
    for (int d = 0; d < CV_MAX_DIMS; d++) call->request.reduced[d] = true;
    for (int i = r->ndim - 1; i >= 0; i--) {
        if (goes[i] || (by_axes && r->kept[i] < 0)) continue;
        call->everything = false;
        if (!by_axes)
            return cv_fail(
                err, CATERVA_EUNSUPPORTED, -1,
                "points and masks are reduced to one item: their axis cannot stay");
        int d = r->kept[i];
        call->request.reduced[d] = false;
        int64_t n = r->selection.axes[d].n;
        call->request.strides[d] = r->falls[d] ? -call->n_cells : call->n_cells;
        if (r->falls[d]) call->first_cell += (n - 1) * call->n_cells;
        call->n_cells *= n;
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

static cv_status check_result(const request *r, const axes_call *call, cv_error *err)
{
    caterva_reduction what = call->request.what;
    bool gives_item = cv_reduce_gives_item(what);
    uint64_t size = (uint64_t)cv_reduce_cell_size(&r->type, what);
    if (r->type.is_time && !gives_item)
        return cv_fail(err, CATERVA_EDTYPE, -1,
                       "of times there are only minimum and maximum");
    if ((uint64_t)call->n_cells > call->dst_size / size)
        return cv_fail(err, CATERVA_ESHORT, -1,
                       "the result has %lld items of %llu bytes, the buffer %zu bytes",
                       (long long)call->n_cells, (unsigned long long)size, call->dst_size);
    if (call->n_cells > 0 && !call->request.dst)
        return cv_fail(err, CATERVA_EINVAL, -1, "the buffer is NULL");
    if (gives_item && r->selection.n_items == 0 && call->n_cells > 0)
        return cv_fail(err, CATERVA_EINVAL, -1, "nothing has no %s", name_of(what));
    return CV_OK;
}

/* Of those that nothing has. */
static void store_empty(const request *r, const axes_call *call)
{
    caterva_reduction what = call->request.what;
    cv_wide value = cv_reduce_nothing(&r->type, what);
    for (int64_t i = 0; i < call->n_cells; i++)
        cv_reduce_store(&r->type, what, value, call->request.dst + i * (int64_t)sizeof value);
}

static cv_wide sum_of(const cv_number_type *type, const cv_tally *tally)
{
    if (type->number_class != CV_REAL) return (cv_wide){.u = tally->exact.low};
    return (cv_wide){.f = cv_real_sum_value(&tally->real)};
}

static cv_wide result_of(const request *r, const axes_call *call, const cv_tally *tally)
{
    caterva_reduction what = call->request.what;
    if (tally->n_nan > 0 && !call->request.skip_nan) return cv_reduce_nan(&r->type);
    if (tally->n == 0) return cv_reduce_nothing(&r->type, what);
    switch (what) {
    case CATERVA_REDUCTION_MIN: return tally->min;
    case CATERVA_REDUCTION_MAX: return tally->max;
    case CATERVA_REDUCTION_SUM: return sum_of(&r->type, tally);
    case CATERVA_REDUCTION_MEAN: return (cv_wide){.f = cv_tally_mean(tally, &r->type)};
    }
    return cv_reduce_nan(&r->type);
}

static cv_status compute_reduction(request *r, void *argument, cv_error *err)
{
    axes_call *call = argument;
    CV_TRY(place_cells(r, call, err));
    CV_TRY(check_result(r, call, err));
    if (r->selection.n_items == 0) {
        store_empty(r, call);
        return CV_OK;
    }
    call->request.dst += call->first_cell * cv_reduce_cell_size(&r->type, call->request.what);
    if (!call->everything) return cv_reduce_axes(&r->reduction, &call->request, err);
    cv_tally tally;
    CV_TRY(cv_statistics(&r->reduction, &tally, err));
    cv_reduce_store(&r->type, call->request.what, result_of(r, call, &tally),
                    call->request.dst);
    return CV_OK;
}

static cv_status reduce_of(const items_of *items, caterva_reduction what,
                           const caterva_reduce_options *options, void *dst, size_t dst_size,
                           cv_error *err)
{
    request r;
    CV_TRY(read_options(&r, items, options, err));
    if (!name_of(what))
        return cv_fail(err, CATERVA_EINVAL, -1, "there is no reduction %d", (int)what);
    axes_call call = {.request = {.what = what, .skip_nan = r.options.skip_nan, .dst = dst},
                      .dst_size = dst_size};
    return run(&r, items->array, compute_reduction, &call, err);
}

caterva_status caterva_reduce(caterva_array *array, caterva_reduction what,
                              const caterva_reduce_options *options, void *dst,
                              size_t dst_size, caterva_error *err)
{
    return reduce_of(&(items_of){array, NULL}, what, options, dst, dst_size, err);
}

caterva_status caterva_view_reduce(const caterva_view *view, caterva_reduction what,
                                   const caterva_reduce_options *options, void *dst,
                                   size_t dst_size, caterva_error *err)
{
    items_of items;
    CV_TRY(look_below(view, &items, err));
    return reduce_of(&items, what, options, dst, dst_size, err);
}
