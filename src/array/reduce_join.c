/* Room: array. Reductions of several arrays as one: each array's share of the selection is
 * reduced by itself, one after the other, and added to what is known of the others. Along
 * axes the cells of the result are the memory that shares are mapped to, as the items of a
 * read are; an axis that goes has a stride of 0 there.
 *
 *     stacked along axis 0      array 0  ->  cells 0, 1, 2     axis 0 stays
 *                               array 1  ->  cells 3, 4, 5
 *     and with axis 0 gone      array 0  ->  cells 0, 1, 2
 *                               array 1  ->  cells 0, 1, 2 */
#include "array/reduce_join.h"

#include "base/heap.h"

/* What a call works on, and one of these is what it counts in. */
typedef struct join_call {
    caterva_reduce_options options;
    cv_number_type type;
    cv_selection selection; /* of the view */
    cv_tally tally;         /* of everything */
    const cv_bins *bins;
    const cv_cells_wanted *cells;
    int64_t n_items_done; /* of arrays before the one at work */
    int64_t n_items_here;
} join_call;

/* One array's share. */
typedef struct share {
    cv_source source;
    cv_taken taken;
    cv_watch watch;
    cv_cell *first; /* of the cells of the result */
    cv_axes_request request;
    bool is_one_cell;
} share;

/* ---- Progress ---------------------------------------------------------------- */

/* Steps of one array as items of the call's. */
static int tell_share(void *context, int64_t done, int64_t total)
{
    const join_call *call = context;
    int64_t here = call->n_items_here;
    if (done < total) here = (int64_t)((double)here * ((double)done / (double)total));
    return call->options.on_progress(call->options.context, call->n_items_done + here,
                                     call->selection.n_items);
}

/* ---- One array ---------------------------------------------------------------- */

/* Where the cells of the share lie: an axis that goes, or is not in the result, has a stride
 * of 0. Before the selection is taken, which drops no axis any more. */
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
    CV_TRY(cv_take(&sh->taken, sh->source.watch, err));
    cv_reduction reduction = {&sh->source, &call->type, &sh->taken.selection,
                              sh->source.watch};
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
    cv_progress_fn tell = call->options.on_progress ? tell_share : NULL;
    call->n_items_here = m->selection.n_items;
    cv_array_lock_shared(base->array);
    sh.source = cv_array_source(base->array);
    cv_watch_init_steps(&sh.watch, tell, call, sh.source.watch);
    if (tell || sh.source.watch) sh.source.watch = &sh.watch;
    cv_status status = compute_share(call, base, m, &sh, err);
    cv_watch_destroy(&sh.watch);
    cv_taken_free(&sh.taken);
    call->n_items_done += call->n_items_here;
    return cv_array_finish(base->array, status);
}

/* ---- All of them -------------------------------------------------------------- */

static cv_status begin(const caterva_view *view, const caterva_reduce_options *options,
                       join_call *call, cv_error *err)
{
    static const caterva_reduce_options defaults = CATERVA_REDUCE_INIT;
    *call = (join_call){.bins = NULL};
    CV_TRY(cv_options_copy(&call->options, sizeof call->options,
                           options ? options : &defaults, "reduce options", err));
    CV_TRY(cv_number_type_of(view->base->dtype, &call->type, err));
    return cv_array_selection(&view->grid, call->options.selection, &call->selection, err);
}

/* `cells` NULL: all is counted in one place. */
static cv_status reduce_all(const caterva_view *view, join_call *call, const cv_memory *cells,
                            cv_error *err)
{
    const cv_visit visit = {.array = reduce_array, .context = call};
    const cv_memory nowhere = {.data = (uint8_t *)call}; /* nothing is put there */
    return cv_view_visit(view, &call->selection, cells ? cells : &nowhere, &visit, err);
}

cv_status cv_join_statistics(const caterva_view *view, const caterva_reduce_options *options,
                             caterva_stats *out, cv_error *err)
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

cv_status cv_join_histogram(const caterva_view *view, const caterva_reduce_options *options,
                            const cv_bins *bins, cv_error *err)
{
    join_call call;
    CV_TRY(begin(view, options, &call, err));
    CV_TRY(cv_check_bins_of(&call.type, err));
    call.bins = bins;
    return reduce_all(view, &call, NULL, err);
}

/* ---- Along axes --------------------------------------------------------------- */

/* The strides of the cells; false: all axes go. */
static cv_status place_cells(const join_call *call, cv_cells_wanted *wanted, cv_memory *cells,
                             bool *some_stay, cv_error *err)
{
    const cv_selection *s = &call->selection;
    bool goes[CV_MAX_DIMS] = {false};
    CV_TRY(cv_mark_axes(&call->options, s->ndim, goes, err));
    wanted->n_cells = 1;
    wanted->n_items = s->n_items;
    *some_stay = false;
    for (int r = s->ndim - 1; r >= 0; r--) {
        if (goes[r]) continue;
        if (s->kind != CATERVA_SELECTION_AXES)
            return cv_fail(
                err, CATERVA_EUNSUPPORTED, -1,
                "points and masks are reduced to one item: their axis cannot stay");
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
    size_t n = (size_t)call->cells->n_cells;
    cv_cell *cells = cv_calloc(n, sizeof cells[0]);
    if (!cells) return cv_fail_memory(err, n * sizeof cells[0], "a result");
    memory->data = (uint8_t *)cells;
    cv_status status = reduce_all(view, call, memory, err);
    if (status == CV_OK) store_cells(call, cells);
    cv_free(cells);
    return status;
}

cv_status cv_join_reduce(const caterva_view *view, const caterva_reduce_options *options,
                         const cv_cells_wanted *given, cv_error *err)
{
    join_call call;
    cv_cells_wanted wanted = *given;
    cv_memory memory = {.item_size = sizeof(cv_cell)};
    bool some_stay;
    CV_TRY(begin(view, options, &call, err));
    CV_TRY(cv_check_reduction(wanted.what, err));
    CV_TRY(place_cells(&call, &wanted, &memory, &some_stay, err));
    CV_TRY(cv_check_cells(&wanted, &call.type, err));
    if (wanted.n_items == 0) {
        cv_store_nothing(&wanted, &call.type);
        return CV_OK;
    }
    if (!some_stay) return reduce_everything(view, &call, &wanted, err);
    call.cells = &wanted;
    return reduce_axes(view, &call, &memory, err);
}
