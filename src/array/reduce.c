/* Room: array. Statistics and reductions: options and dtype checked, locks taken, the
 * engine called. */
#include "array/reduce_call.h"
#include "array/reduce_join.h"

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
    cv_taken taken;
    int ndim;              /* of the selection's result */
    int kept[CV_MAX_DIMS]; /* -1: an axis of one item that only the view has */
    cv_watch watch;        /* the options', and the handle's behind it */
    cv_reduction reduction;
} request;

/* ---- Before and after -------------------------------------------------------- */

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
    if (r->taken.selection.n_items == 0) return CV_OK;
    cv_selection of_view = r->taken.selection;
    CV_TRY(cv_view_map(r->view, &of_view, &nowhere, &r->mapped, err));
    r->taken.selection = r->mapped.selection;
    r->taken.selection.grid = grid;
    return CV_OK;
}

static cv_status take_selection(request *r, const cv_grid *grid, cv_error *err)
{
    cv_selection *s = &r->taken.selection;
    const cv_grid *seen = r->view ? &r->view->grid : grid;
    CV_TRY(cv_array_selection(seen, r->options.selection, s, err));
    CV_TRY(note_result(r, s, err));
    if (r->view) CV_TRY(map_to_array(r, grid, err));
    return cv_take(&r->taken, r->source.watch, err);
}

static cv_status prepare(request *r, caterva_array *array, cv_error *err)
{
    r->source = cv_array_source(array);
    r->watch.also = r->source.watch;
    if (r->options.on_progress || r->source.watch) r->source.watch = &r->watch;
    r->reduction = (cv_reduction){&r->source, &r->type, &r->taken.selection, r->source.watch};
    const cv_grid *grid = &r->source.snapshot->grid;
    if (r->view)
        CV_TRY(cv_view_check(r->view->base, grid, err)); /* it may have changed since */
    CV_TRY(cv_number_type_of(array->type.dtype, &r->type, err));
    return take_selection(r, grid, err);
}

/* Whose items: an array's, or those below a view. */
typedef struct items_of {
    caterva_array *array; /* NULL: a view of several */
    const caterva_view *view;
} items_of;

static items_of items_below(const caterva_view *view)
{
    return (items_of){view->base->array, view};
}

/* That the view is stale is said before what else may be wrong. */
static cv_status check_view(const caterva_view *view, cv_error *err)
{
    if (!view) return cv_fail(err, CATERVA_EINVAL, -1, "the view is NULL");
    return cv_view_check_arrays(view->base, err);
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
    cv_taken_free(&r->taken);
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
    CV_TRY(check_view(view, err));
    items_of items = items_below(view);
    if (!items.array) return cv_join_statistics(view, options, out, err);
    return statistics_of(&items, options, out, err);
}

static cv_status compute_histogram(request *r, void *bins, cv_error *err)
{
    CV_TRY(cv_check_bins_of(&r->type, err));
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
    if (items->array) CV_TRY(read_options(&r, items, options, err));
    CV_TRY(check_bins(bins, err));
    if (bins->lo == bins->hi) { /* as NumPy widens it */
        bins->lo -= 0.5;
        bins->hi += 0.5;
    }
    memset(bins->counts, 0, (size_t)bins->n_bins * sizeof bins->counts[0]);
    if (!items->array) return cv_join_histogram(items->view, options, bins, err);
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
    CV_TRY(check_view(view, err));
    items_of items = items_below(view);
    CV_TRY(check_pointers(range, counts, err));
    cv_bins bins = {range[0], range[1], n_bins, counts};
    return histogram_of(&items, options, &bins, err);
}

/* ---- Along axes -------------------------------------------------------------- */

typedef struct axes_call {
    cv_axes_request request;
    cv_cells_wanted wanted;
    bool everything;    /* all axes go */
    int64_t first_cell; /* not 0 where an axis falls */
} axes_call;

/* What becomes of each axis of the array, and where the cells of those that stay lie. An
 * axis of one item that is not in the result stays, too, or goes: it is all the same. */
static cv_status place_cells(const request *r, axes_call *call, cv_error *err)
{
    bool goes[CV_MAX_DIMS] = {false};
    CV_TRY(cv_mark_axes(&r->options, r->ndim, goes, err));
    bool by_axes = r->taken.selection.kind == CATERVA_SELECTION_AXES;
    call->everything = true;
    call->wanted.n_cells = 1;
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
        int64_t n = r->taken.selection.axes[d].n;
        call->request.strides[d] =
            r->taken.falls[d] ? -call->wanted.n_cells : call->wanted.n_cells;
        if (r->taken.falls[d]) call->first_cell += (n - 1) * call->wanted.n_cells;
        call->wanted.n_cells *= n;
    }
    return CV_OK;
}

static cv_status compute_reduction(request *r, void *argument, cv_error *err)
{
    axes_call *call = argument;
    caterva_reduction what = call->request.what;
    CV_TRY(place_cells(r, call, err));
    call->wanted.n_items = r->taken.selection.n_items;
    CV_TRY(cv_check_cells(&call->wanted, &r->type, err));
    if (call->wanted.n_items == 0) {
        cv_store_nothing(&call->wanted, &r->type);
        return CV_OK;
    }
    call->request.dst += call->first_cell * cv_reduce_cell_size(&r->type, what);
    if (!call->everything) return cv_reduce_axes(&r->reduction, &call->request, err);
    cv_tally tally;
    CV_TRY(cv_statistics(&r->reduction, &tally, err));
    cv_wide value = cv_reduce_tally(&tally, &r->type, what, call->request.skip_nan);
    cv_reduce_store(&r->type, what, value, call->request.dst);
    return CV_OK;
}

static cv_status reduce_of(const items_of *items, const caterva_reduce_options *options,
                           const cv_cells_wanted *wanted, cv_error *err)
{
    request r;
    CV_TRY(read_options(&r, items, options, err));
    CV_TRY(cv_check_reduction(wanted->what, err));
    axes_call call = {
        .request = {.what = wanted->what, .skip_nan = r.options.skip_nan, .dst = wanted->dst},
        .wanted = *wanted};
    return run(&r, items->array, compute_reduction, &call, err);
}

caterva_status caterva_reduce(caterva_array *array, caterva_reduction what,
                              const caterva_reduce_options *options, void *dst,
                              size_t dst_size, caterva_error *err)
{
    cv_cells_wanted wanted = {.what = what, .dst = dst, .dst_size = dst_size};
    return reduce_of(&(items_of){array, NULL}, options, &wanted, err);
}

caterva_status caterva_view_reduce(const caterva_view *view, caterva_reduction what,
                                   const caterva_reduce_options *options, void *dst,
                                   size_t dst_size, caterva_error *err)
{
    cv_cells_wanted wanted = {.what = what, .dst = dst, .dst_size = dst_size};
    CV_TRY(check_view(view, err));
    items_of items = items_below(view);
    if (!items.array) return cv_join_reduce(view, options, &wanted, err);
    return reduce_of(&items, options, &wanted, err);
}
