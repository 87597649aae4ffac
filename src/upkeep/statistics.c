/* Room: upkeep. The public functions for statistics and reductions of arrays, views and joins:
 * check arguments and dtypes, take locks, and call reduce.c. */
#include "array/array.h"
#include "array/view.h"
#include "base/arith.h"
#include "base/heap.h"
#include "upkeep/reduce.h"

#include <caterva_upkeep.h>
#include <math.h>
#include <string.h>

/* ---- Arguments --------------------------------------------------------------------- */

/* A selection in the form that the engine requires: axes are forward, and none is dropped. */
typedef struct cv_taken {
    cv_selection selection;
    int64_t *lists[CV_MAX_DIMS]; /* owned: lists that replace masks */
    bool falls[CV_MAX_DIMS];     /* was backward: results are stored in reverse */
} cv_taken;

typedef struct cv_cells_wanted {
    caterva_reduction what;
    uint8_t *dst;
    size_t dst_size;
    int64_t n_cells;
    int64_t n_items;
} cv_cells_wanted;

/* ---- The selection ------------------------------------------------------------ */

static cv_status list_axis(cv_taken *t, cv_axis *axis, int d, cv_error *err)
{
    size_t size = cv_size(axis->n * (int64_t)sizeof(int64_t)); /* no overflow: items exist */
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

/* Returns an upper bound of the number of blocks that hold a selected item. */
static int64_t count_blocks(const cv_selection *s)
{
    const cv_grid *grid = s->grid;
    int64_t all = grid->n_chunks * grid->n_blocks, n = 1;
    if (s->kind != CATERVA_SELECTION_AXES) return cv_min_i64(s->n_items, all);
    for (int d = 0; d < grid->ndim; d++)
        n *= cv_min_i64(s->axes[d].n, grid->chunk_counts[d] * grid->block_counts[d]);
    return n;
}

/* Prepares the selection, and adds its bytes to the watch's total. Free *t also after a failure. */
static cv_status take(cv_taken *t, cv_watch *watch, cv_error *err)
{
    cv_selection *s = &t->selection;
    if (s->kind == CATERVA_SELECTION_AXES) {
        for (int d = 0; d < s->grid->ndim; d++) CV_TRY(take_axis(t, d, err));
        s->ndim = s->grid->ndim;
    }
    if (s->n_items > 0) cv_watch_expect(watch, count_blocks(s) * s->grid->block_bytes);
    return CV_OK;
}

static void taken_free(cv_taken *t)
{
    for (int d = 0; d < CV_MAX_DIMS; d++) cv_free(t->lists[d]);
}

/* Marks the axes of the result that are reduced: o->axes, or all axes if this is NULL. */
static cv_status mark_axes(const caterva_reduce_options *o, int ndim, bool *goes,
                           cv_error *err)
{
    if (o->axes && o->n_axes < 0)
        return cv_fail(err, CATERVA_EINVAL, -1, "n_axes is %d, less than 0", o->n_axes);
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

static cv_status check_reduction(caterva_reduction what, cv_error *err)
{
    if (name_of(what)) return CV_OK;
    return cv_fail(err, CATERVA_EINVAL, -1, "unknown reduction %d", (int)what);
}

static cv_status check_bins_of(const cv_number_type *type, cv_error *err)
{
    if (!type->is_time) return CV_OK;
    return cv_fail(err, CATERVA_EDTYPE, -1, "there is no histogram of times");
}

/* Checks that the reduction is defined for items of this type, and that its result fits `dst`. */
static cv_status check_cells(const cv_cells_wanted *w, const cv_number_type *type,
                             cv_error *err)
{
    bool gives_item = cv_reduce_gives_item(w->what);
    uint64_t size = (uint64_t)cv_reduce_cell_size(type, w->what);
    if (type->is_time && !gives_item)
        return cv_fail(err, CATERVA_EDTYPE, -1, "times have only a minimum and a maximum");
    if ((uint64_t)w->n_cells > w->dst_size / size)
        return cv_fail(err, CATERVA_ESHORT, -1,
                       "the result has %lld items of %llu bytes, the buffer %zu bytes",
                       (long long)w->n_cells, (unsigned long long)size, w->dst_size);
    if (w->n_cells > 0 && !w->dst)
        return cv_fail(err, CATERVA_EINVAL, -1, "the buffer is NULL");
    if (gives_item && w->n_items == 0 && w->n_cells > 0)
        return cv_fail(err, CATERVA_EINVAL, -1, "the selection is empty: it has no %s",
                       name_of(w->what));
    return CV_OK;
}

static void store_nothing(const cv_cells_wanted *w, const cv_number_type *type)
{
    cv_wide value = cv_reduce_nothing(type, w->what);
    for (int64_t i = 0; i < w->n_cells; i++)
        cv_reduce_store(type, w->what, value, w->dst + i * (int64_t)sizeof value);
}

/* ---- Several arrays as one ---------------------------------------------------------------
 *
 * The share of each array is reduced separately, one after the other, and its cells are added to
 * those of the result. A share is mapped to these cells as a read maps items to its buffer; a
 * reduced axis has a stride of 0.
 *
 *     stacked along axis 0      array 0  ->  cells 0, 1, 2     axis 0 is kept
 *                               array 1  ->  cells 3, 4, 5
 *     and axis 0 reduced        array 0  ->  cells 0, 1, 2
 *                               array 1  ->  cells 0, 1, 2 */

/* One call. Its results go to `cells` or `bins`, or if both are NULL to `tally`. */
typedef struct join_call {
    caterva_reduce_options options;
    cv_number_type type;
    cv_selection selection; /* of the view */
    cv_tally tally;         /* of all items */
    const cv_bins *bins;
    const cv_cells_wanted *cells;
    int64_t n_items_done; /* items of the arrays that are done */
    int64_t n_items_here; /* items of the present array's share */
} join_call;

typedef struct share {
    cv_source source;
    cv_taken taken;
    cv_watch watch;
    cv_cell *first; /* first cell of the share in the result */
    cv_axes_request request;
    bool is_one_cell;
} share;

/* Receives the progress of one array, in bytes of blocks. Reports the call's, in bytes of items. */
static int report_share(void *context, int64_t done, int64_t total)
{
    const join_call *call = context;
    const caterva_progress *progress = &call->options.progress;
    int64_t here = call->n_items_here, size = call->type.item_size;
    if (done < total) here = (int64_t)((double)here * ((double)done / (double)total));
    return progress->report(progress->context, (call->n_items_done + here) * size,
                            call->selection.n_items * size);
}

/* Finds the share's cells: a reduced or dropped axis has a stride of 0. Call before `take`, which
 * makes dropped axes normal ones. */
static void place_share(const cv_mapped *m, share *sh)
{
    const int64_t size = sizeof(cv_cell);
    int r = 0;
    sh->first = (cv_cell *)(void *)m->memory.data;
    sh->is_one_cell = true;
    for (int d = 0; d < CV_MAX_DIMS; d++) sh->request.reduced[d] = true;
    if (m->selection.kind != CATERVA_SELECTION_AXES) return;
    for (int d = 0; d < m->selection.grid->ndim; d++) {
        int64_t stride = m->selection.axes[d].dropped ? 0 : m->memory.strides[r++] / size;
        sh->request.strides[d] = stride;
        sh->request.reduced[d] = stride == 0;
        if (stride != 0) sh->is_one_cell = false;
    }
}

static void turn_falling(share *sh)
{
    for (int d = 0; d < sh->taken.selection.grid->ndim; d++) {
        if (!sh->taken.falls[d]) continue;
        sh->first += (sh->taken.selection.axes[d].n - 1) * sh->request.strides[d];
        sh->request.strides[d] = -sh->request.strides[d];
    }
}

static cv_status reduce_to_cells(const join_call *call, const cv_reduction *reduction,
                                 share *sh, cv_error *err)
{
    caterva_reduction what = call->cells->what;
    if (!sh->is_one_cell) {
        turn_falling(sh);
        sh->request.what = what;
        sh->request.cells = sh->first;
        return cv_reduce_axes(reduction, &sh->request, err);
    }
    cv_tally tally;
    CV_TRY(cv_statistics(reduction, &tally, err));
    cv_cell_add_tally(sh->first, &call->type, what, &tally);
    return CV_OK;
}

static cv_status compute_share(join_call *call, const cv_base *base, const cv_mapped *m,
                               share *sh, cv_error *err)
{
    const cv_grid *grid = &sh->source.snapshot->grid;
    CV_TRY(cv_view_check(base, grid, err));
    if (call->cells) place_share(m, sh);
    sh->taken.selection = m->selection;
    sh->taken.selection.grid = grid;
    CV_TRY(take(&sh->taken, sh->source.watch, err));
    cv_reduction reduction = {&sh->source, &call->type, &sh->taken.selection};
    if (call->bins) return cv_histogram(&reduction, call->bins, err);
    if (call->cells) return reduce_to_cells(call, &reduction, sh, err);
    cv_tally tally;
    CV_TRY(cv_statistics(&reduction, &tally, err));
    cv_tally_add(&call->tally, &call->type, &tally);
    return CV_OK;
}

static cv_status reduce_array(void *context, const cv_base *base, cv_mapped *m, cv_error *err)
{
    join_call *call = context;
    share sh = {.first = NULL};
    caterva_progress progress = call->options.progress;
    if (progress.report) progress.report = report_share;
    progress.context = call;
    call->n_items_here = m->selection.n_items;
    CV_TRY(cv_array_begin_read(base->array, &sh.source, err));
    sh.source.watch = cv_watch_open(&sh.watch, &progress, sh.source.watch);
    cv_status status = cv_watch_close(&sh.watch, compute_share(call, base, m, &sh, err));
    taken_free(&sh.taken);
    call->n_items_done += call->n_items_here;
    return cv_array_finish(base->array, status);
}

static cv_status begin(const caterva_view *view, const caterva_reduce_options *options,
                       join_call *call, cv_error *err)
{
    *call = (join_call){.bins = NULL};
    CV_TRY(cv_options_read(&call->options, sizeof call->options, options, "reduce options",
                           err));
    CV_TRY(cv_progress_check(&call->options.progress, err));
    /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): a call without an array has a view */
    CV_TRY(cv_number_type_of(view->base->dtype, &call->type, err));
    return cv_array_selection(&view->grid, call->options.selection, &call->selection, err);
}

/* Reduces the shares of all arrays. `cells` is NULL if there is one result for all items. */
static cv_status reduce_all(const caterva_view *view, join_call *call, const cv_memory *cells,
                            cv_error *err)
{
    const cv_visit visit = {.array = reduce_array, .context = call};
    const cv_memory nowhere = {.data = (uint8_t *)call}; /* nothing is stored there */
    return cv_view_visit(view, &call->selection, cells ? cells : &nowhere, &visit, err);
}

/* The next functions join_... do the same as the public functions, for a view of several arrays.
 * Their caller has checked the bins. Of `given`, only what, dst and dst_size are used. */
static cv_status join_statistics(const caterva_view *view,
                                 const caterva_reduce_options *options, caterva_stats *out,
                                 cv_error *err)
{
    join_call call;
    caterva_stats full;
    CV_TRY(begin(view, options, &call, err));
    CV_TRY(cv_output_check(out, sizeof *out, "statistics", err));
    CV_TRY(reduce_all(view, &call, NULL, err));
    cv_tally_public(&call.tally, &call.type, &full);
    cv_output_fill(out, &full, sizeof full);
    return CV_OK;
}

static cv_status join_histogram(const caterva_view *view,
                                const caterva_reduce_options *options, const cv_bins *bins,
                                cv_error *err)
{
    join_call call;
    CV_TRY(begin(view, options, &call, err));
    CV_TRY(check_bins_of(&call.type, err));
    call.bins = bins;
    return reduce_all(view, &call, NULL, err);
}

/* Sets the strides of the cells. *some_stay is false if all axes are reduced. */
static cv_status place_cells(const join_call *call, cv_cells_wanted *wanted, cv_memory *cells,
                             bool *some_stay, cv_error *err)
{
    const cv_selection *s = &call->selection;
    bool goes[CV_MAX_DIMS] = {false};
    CV_TRY(mark_axes(&call->options, s->ndim, goes, err));
    wanted->n_cells = 1;
    wanted->n_items = s->n_items;
    *some_stay = false;
    for (int r = s->ndim - 1; r >= 0; r--) {
        if (goes[r]) continue;
        if (s->kind != CATERVA_SELECTION_AXES)
            return cv_fail(
                err, CATERVA_EUNSUPPORTED, -1,
                "points and masks are reduced to one item: their axis cannot be kept");
        *some_stay = true;
        cells->strides[r] = wanted->n_cells * (int64_t)sizeof(cv_cell);
        wanted->n_cells *= s->shape[r];
    }
    return CV_OK;
}

static cv_status reduce_everything(const caterva_view *view, join_call *call,
                                   const cv_cells_wanted *wanted, cv_error *err)
{
    CV_TRY(reduce_all(view, call, NULL, err));
    cv_wide value =
        cv_reduce_tally(&call->tally, &call->type, wanted->what, call->options.skip_nan);
    cv_reduce_store(&call->type, wanted->what, value, wanted->dst);
    return CV_OK;
}

static void store_cells(const join_call *call, const cv_cell *cells)
{
    const cv_cells_wanted *w = call->cells;
    int64_t size = cv_reduce_cell_size(&call->type, w->what);
    int64_t per_cell = w->n_items / w->n_cells;
    for (int64_t i = 0; i < w->n_cells; i++) {
        cv_wide value =
            cv_cell_result(&cells[i], &call->type, w->what, per_cell, call->options.skip_nan);
        cv_reduce_store(&call->type, w->what, value, w->dst + i * size);
    }
}

static cv_status reduce_axes(const caterva_view *view, join_call *call, cv_memory *memory,
                             cv_error *err)
{
    size_t n = cv_size(call->cells->n_cells);
    cv_cell *cells = cv_calloc(n, sizeof cells[0]);
    if (!cells) return cv_fail_memory(err, n * sizeof cells[0], "a result");
    memory->data = (uint8_t *)cells;
    cv_status status = reduce_all(view, call, memory, err);
    if (status == CV_OK) store_cells(call, cells);
    cv_free(cells);
    return status;
}

static cv_status join_reduce(const caterva_view *view, const caterva_reduce_options *options,
                             const cv_cells_wanted *given, cv_error *err)
{
    join_call call;
    cv_cells_wanted wanted = *given;
    cv_memory memory = {.item_size = sizeof(cv_cell)};
    bool some_stay;
    CV_TRY(begin(view, options, &call, err));
    CV_TRY(check_reduction(wanted.what, err));
    CV_TRY(place_cells(&call, &wanted, &memory, &some_stay, err));
    CV_TRY(check_cells(&wanted, &call.type, err));
    if (wanted.n_items == 0) {
        store_nothing(&wanted, &call.type);
        return CV_OK;
    }
    if (!some_stay) return reduce_everything(view, &call, &wanted, err);
    call.cells = &wanted;
    return reduce_axes(view, &call, &memory, err);
}

/* The data of a call on one array, which the engine borrows. Axis d of the selection's result is
 * axis kept[d] of the array, unless the result is a list of points. */
typedef struct request {
    caterva_reduce_options options;
    const caterva_view *view; /* NULL: the array is reduced directly */
    cv_mapped mapped;         /* the selection mapped to the array by the view */
    cv_source source;
    cv_number_type type;
    cv_taken taken;
    int ndim;              /* of the selection's result */
    int kept[CV_MAX_DIMS]; /* -1: a new axis of the view, of one item */
    cv_watch watch;        /* with the progress function of the options */
    cv_reduction reduction;
} request;

/* Records the array's axis for each axis of the result; the view's if the selection is empty. */
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
            return cv_fail(
                err, CATERVA_EUNSUPPORTED, -1,
                "axis %d of the view is new: its only item cannot be taken %lld times", d,
                (long long)s->axes[d].n);
        r->kept[r->ndim++] = axis;
    }
    return CV_OK;
}

/* Maps the view's selection to the array, unless it is empty: then no item is read. */
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
    return take(&r->taken, r->source.watch, err);
}

static cv_status prepare(request *r, caterva_array *array, cv_error *err)
{
    r->reduction = (cv_reduction){&r->source, &r->type, &r->taken.selection};
    const cv_grid *grid = &r->source.snapshot->grid;
    if (r->view)
        CV_TRY(cv_view_check(r->view->base, grid, err)); /* the array may have changed */
    CV_TRY(cv_number_type_of(array->type.dtype, &r->type, err));
    return take_selection(r, grid, err);
}

typedef struct items_of {
    caterva_array *array; /* NULL: a view of several arrays */
    const caterva_view *view;
} items_of;

static items_of items_below(const caterva_view *view)
{
    return (items_of){view->base->array, view};
}

/* Checks the view first of all: CATERVA_ESTALE has precedence over other failures. */
static cv_status check_view(const caterva_view *view, cv_error *err)
{
    if (!view) return cv_fail(err, CATERVA_EINVAL, -1, "the view is NULL");
    return cv_view_check_arrays(view->base, err);
}

static cv_status read_options(request *r, const items_of *items,
                              const caterva_reduce_options *options, cv_error *err)
{
    memset(r, 0, sizeof *r);
    CV_TRY(cv_array_check(items->array, err));
    r->view = items->view;
    CV_TRY(cv_options_read(&r->options, sizeof r->options, options, "reduce options", err));
    return cv_progress_check(&r->options.progress, err);
}

static cv_status run(request *r, caterva_array *array,
                     cv_status (*work)(request *r, void *argument, cv_error *err),
                     void *argument, cv_error *err)
{
    CV_TRY(cv_array_begin_read(array, &r->source, err));
    r->source.watch = cv_watch_open(&r->watch, &r->options.progress, r->source.watch);
    cv_status status = prepare(r, array, err);
    if (status == CV_OK) status = work(r, argument, err);
    cv_watch_close(&r->watch, status);
    taken_free(&r->taken);
    cv_mapped_free(&r->mapped);
    return cv_array_finish(array, status);
}

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
    if (!items.array) return join_statistics(view, options, out, err);
    return statistics_of(&items, options, out, err);
}

static cv_status compute_histogram(request *r, void *bins, cv_error *err)
{
    CV_TRY(check_bins_of(&r->type, err));
    return cv_histogram(&r->reduction, bins, err);
}

static cv_status check_bins(const cv_bins *bins, cv_error *err)
{
    if (bins->n_bins < 1 || bins->n_bins > CATERVA_MAX_BINS)
        return cv_fail(err, CATERVA_EINVAL, -1,
                       "the number of bins is %lld: it must be in [1, %d]",
                       (long long)bins->n_bins, CATERVA_MAX_BINS);
    if (!(bins->lo <= bins->hi) || !isfinite(bins->hi - bins->lo))
        return cv_fail(err, CATERVA_EINVAL, -1,
                       "the range [%g, %g] must be finite and not end before it begins",
                       bins->lo, bins->hi);
    return CV_OK;
}

static cv_status histogram_of(const items_of *items, const caterva_reduce_options *options,
                              cv_bins *bins, cv_error *err)
{
    request r;
    if (items->array) CV_TRY(read_options(&r, items, options, err));
    CV_TRY(check_bins(bins, err));
    if (bins->lo == bins->hi) { /* as NumPy does */
        bins->lo -= 0.5;
        bins->hi += 0.5;
    }
    memset(bins->counts, 0, (size_t)bins->n_bins * sizeof bins->counts[0]);
    if (!items->array) return join_histogram(items->view, options, bins, err);
    return run(&r, items->array, compute_histogram, bins, err);
}

static cv_status check_pointers(const double *range, const int64_t *counts, cv_error *err)
{
    if (range && counts) return CV_OK;
    return cv_fail(err, CATERVA_EINVAL, -1, "range or counts is NULL");
}

caterva_status caterva_histogram(caterva_array *array, const double range[2], int64_t n_bins,
                                 const caterva_reduce_options *options, int64_t *counts,
                                 caterva_error *err)
{
    CV_TRY(cv_array_check(array, err));
    CV_TRY(check_pointers(range, counts, err));
    cv_bins bins = {range[0], range[1], n_bins, counts};
    return histogram_of(&(items_of){array, NULL}, options, &bins, err);
}

caterva_status caterva_view_histogram(const caterva_view *view, const double range[2],
                                      int64_t n_bins, const caterva_reduce_options *options,
                                      int64_t *counts, caterva_error *err)
{
    CV_TRY(check_view(view, err));
    items_of items = items_below(view);
    CV_TRY(check_pointers(range, counts, err));
    cv_bins bins = {range[0], range[1], n_bins, counts};
    return histogram_of(&items, options, &bins, err);
}

typedef struct axes_call {
    cv_axes_request request;
    cv_cells_wanted wanted;
    bool everything;    /* all axes are reduced */
    int64_t first_cell; /* not 0 if an axis is backward */
} axes_call;

/* Decides for each axis of the array whether it is reduced, and finds the cells. An axis of one
 * item that is not in the result may be treated either way. */
static cv_status reduce_place_cells(const request *r, axes_call *call, cv_error *err)
{
    bool goes[CV_MAX_DIMS] = {false};
    CV_TRY(mark_axes(&r->options, r->ndim, goes, err));
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
                "points and masks are reduced to one item: their axis cannot be kept");
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
    CV_TRY(reduce_place_cells(r, call, err));
    call->wanted.n_items = r->taken.selection.n_items;
    CV_TRY(check_cells(&call->wanted, &r->type, err));
    if (call->wanted.n_items == 0) {
        store_nothing(&call->wanted, &r->type);
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
    CV_TRY(check_reduction(wanted->what, err));
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
    if (!items.array) return join_reduce(view, options, &wanted, err);
    return reduce_of(&items, options, &wanted, err);
}
