/* Room: array. Copying: a new array is drawn after the source where the options
 * leave something open, filled by the engine, and committed. */
#include "array/copy_order.h"
#include "array/create.h"
#include "engine/items/convert.h"
#include "engine/jobs/repack.h"

static cv_status set_box(const cv_grid *grid, cv_copy_order *order, cv_error *err)
{
    const int64_t *start = order->options.start, *stop = order->options.stop;
    for (int d = 0; d < grid->ndim; d++) {
        int64_t first = start ? start[d] : 0, end = stop ? stop[d] : grid->shape[d];
        if (first < 0 || end > grid->shape[d] || first > end)
            return cv_fail(err, CATERVA_ERANGE, -1,
                           "box [%lld, %lld) on axis %d does not lie in [0, %lld)",
                           (long long)first, (long long)end, d, (long long)grid->shape[d]);
        order->start[d] = first;
        order->shape[d] = end - first;
    }
    order->create.ndim = grid->ndim;
    order->create.shape = order->shape;
    order->create.item_size = 0;
    return CV_OK;
}

/* Chunks and blocks stay together: a new shape of one has the other chosen, and both
 * are for a frame of plain items, which has no partition for it. */
static void set_partition(const cv_snapshot *source, cv_copy_order *order)
{
    const cv_grid *grid = &source->grid;
    caterva_create_options *c = &order->create;
    if (c->chunk_shape || c->block_shape || source->meta.plain) return;
    for (int d = 0; d < grid->ndim; d++) {
        order->chunk_shape[d] = (int32_t)grid->chunk_shape[d];
        order->block_shape[d] = (int32_t)grid->block_shape[d];
    }
    c->chunk_shape = order->chunk_shape;
    c->block_shape = order->block_shape;
}

/* Nothing is at the URL before the commit. One watch hears of what is read and of what
 * is written. */
static cv_status fill_new(cv_source *source, const cv_copy_order *order, caterva_array *array,
                          cv_error *err)
{
    const caterva_copy_options *o = &order->options;
    cv_watch watch;
    cv_watch_init_steps(&watch, o->on_progress, o->context, source->watch);
    if (o->on_progress || source->watch) source->watch = array->pending->watch = &watch;
    cv_repack repack = {
        .source = source,
        .start = order->start,
        .target = array->pending,
        .memory = o->memory,
        .watch = source->watch,
    };
    cv_status status = cv_repack_run(&repack, err);
    if (o->for_remote) cv_txn_add_layouts(array->pending->txn);
    if (status == CV_OK) status = caterva_commit(array, err);
    array->pending->watch = array->watch;
    cv_watch_destroy(&watch);
    return status;
}

static cv_status copy(caterva_array *source, const char *url, cv_copy_order *order,
                      caterva_array **out, cv_error *err)
{
    const cv_snapshot *state = cv_array_state(source);
    if (source->pending) CV_TRY(cv_pending_check_whole(source->pending, err));
    CV_TRY(set_box(&state->grid, order, err));
    set_partition(state, order);
    cv_copy_set_kind(source, url, order);
    CV_TRY(cv_copy_choose_remote(source, order, err));
    caterva_array *array;
    CV_TRY(cv_array_create(url, &order->create, state, &array, err));
    cv_source from = cv_array_source(source);
    cv_status status = fill_new(&from, order, array, err);
    if (status == CV_OK && out) {
        *out = array;
        return CV_OK;
    }
    cv_array_free(array);
    return status;
}

/* The box as a view, which is read as what it becomes. */
static cv_status copy_converted(caterva_array *source, const char *url,
                                const cv_copy_order *order, caterva_array **out,
                                cv_error *err)
{
    caterva_copy_options options = order->options;
    caterva_axis axes[CATERVA_MAX_DIMS];
    caterva_view *whole, *part = NULL;
    cv_copy_order checked = *order;
    cv_array_lock_shared(source);
    cv_grid grid = cv_array_state(source)->grid;
    cv_array_unlock(source);
    CV_TRY(set_box(&grid, &checked, err));
    for (int d = 0; d < grid.ndim; d++)
        axes[d] = (caterva_axis){.kind = CATERVA_AXIS_SLICE,
                                 .start = checked.start[d],
                                 .stop = checked.start[d] + checked.shape[d],
                                 .step = 1};
    options.start = options.stop = NULL;
    CV_TRY(caterva_view_of(source, &whole, err));
    cv_status status = caterva_view_select(whole, axes, grid.ndim, &part, err);
    if (status == CV_OK) status = caterva_view_copy(part, url, &options, out, err);
    caterva_view_free(part);
    caterva_view_free(whole);
    return status;
}

caterva_status caterva_copy(caterva_array *source, const char *url,
                            const caterva_copy_options *options, caterva_array **out,
                            caterva_error *err)
{
    CV_TRY(cv_array_check(source, err));
    if (!url) return cv_fail(err, CATERVA_EINVAL, -1, "url is NULL");
    if (out) *out = NULL;
    cv_copy_order order;
    CV_TRY(cv_copy_read_options(options, &order, err));
    if (order.options.convert_to) return copy_converted(source, url, &order, out, err);
    cv_array_lock_shared(source);
    return cv_array_finish(source, copy(source, url, &order, out, err));
}
