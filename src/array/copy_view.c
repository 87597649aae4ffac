/* Room: array. A new array from a view, above all from several arrays in a row: parts
 * whose chunks mean the same in the new array are moved as they are stored, what lies
 * between them goes through memory slab by slab.
 *
 *     parts     |  moves  |e|      moves      |   e: ends inside a chunk, so what
 *     new array |  :  :  :  :  :  :  :  :  :  |   follows is encoded anew up to the
 *                                                 next part that begins at an edge  */
#include "array/attributes.h"
#include "array/copy_order.h"
#include "array/create.h"
#include "array/view.h"
#include "base/arith.h"
#include "base/heap.h"
#include "engine/plan/partition.h"
#include "engine/write/transfer.h"
#include "engine/write/write.h"

#include <string.h>

typedef struct view_copy {
    const caterva_view *view;
    const cv_copy_order *order;
    caterva_array *to;
    const cv_grid *grid; /* of it */
    int axis;            /* along which the parts lie */
    uint8_t *slab;       /* grown as needed */
    int64_t slab_size;
    cv_watch *watch; /* whose steps are chunks of the new array; or NULL */
} view_copy;

/* The parts of the view along the axis; a view of one array is its only part. */
typedef struct parts {
    int n;
    int axis;
    const caterva_view *const *views;
    const int64_t *starts; /* NULL: 0 */
} parts;

static bool is_whole_base(const caterva_view *view)
{
    if (view->grid.ndim != view->base->grid.ndim) return false;
    for (int d = 0; d < view->grid.ndim; d++)
        if (view->base_axis[d] != d || view->start[d] != 0 || view->step[d] != 1 ||
            view->grid.shape[d] != view->base->grid.shape[d])
            return false;
    return true;
}

static parts parts_of(const caterva_view *const *view)
{
    const cv_base *base = (*view)->base;
    if (base->array || !is_whole_base(*view)) return (parts){.n = 1, .views = view};
    return (parts){base->n_parts, base->axis, (const caterva_view *const *)base->parts,
                   base->starts};
}

/* The first array below, which the new one is drawn after; *over is the view that
 * stands on it. */
static caterva_array *first_array(const caterva_view *view, const caterva_view **over)
{
    while (!view->base->array) view = view->base->parts[0];
    *over = view;
    return view->base->array;
}

/* ---- Through memory -------------------------------------------------------- */

static cv_status copy_slab(view_copy *c, const int64_t *start, const int64_t *stop,
                           cv_error *err)
{
    cv_selection s = {.grid = &c->view->grid, .kind = CATERVA_SELECTION_AXES, .n_items = 1};
    cv_memory memory = {
        .data = c->slab, .item_size = c->grid->item_size, .conversion = c->order->conversion};
    int64_t stride = c->grid->item_size;
    s.ndim = c->grid->ndim;
    for (int d = s.ndim - 1; d >= 0; d--) {
        s.shape[d] = stop[d] - start[d];
        s.axes[d] = (cv_axis){.n = s.shape[d], .start = start[d], .step = 1};
        s.n_items *= s.shape[d];
        memory.strides[d] = stride;
        stride *= s.shape[d];
    }
    cv_plan plan;
    CV_TRY(cv_plan_box(c->grid, start, stop, &plan, err));
    CV_TRY(cv_view_read(c->view, &s, &memory, err));
    CV_TRY(cv_watch_step(c->watch, 0, err));
    CV_TRY(cv_write_box(c->to->pending, &plan, c->slab, err));
    return cv_watch_step(c->watch, plan.n_chunks, err);
}

static cv_status reserve_slab(view_copy *c, int64_t size, cv_error *err)
{
    if (size <= c->slab_size) return CV_OK;
    cv_free(c->slab);
    c->slab_size = 0;
    c->slab = cv_malloc((size_t)size);
    if (!c->slab) return cv_fail_memory(err, (size_t)size, "a slab of the copy");
    c->slab_size = size;
    return CV_OK;
}

/* Items [first, last) of the axis, edges of chunks. The slab takes half of the memory:
 * what threads decode and encode, the rest. */
static cv_status copy_between(view_copy *c, int64_t first, int64_t last, cv_error *err)
{
    enum { SLAB_BYTES = 8 << 20 };
    int64_t start[CV_MAX_DIMS] = {0}, stop[CV_MAX_DIMS];
    const int64_t shift[CV_MAX_DIMS] = {0};
    memcpy(stop, c->grid->shape, sizeof stop);
    if (c->grid->ndim > 0) {
        start[c->axis] = first;
        stop[c->axis] = last;
    }
    cv_slab_request request = {.to = c->grid, .from = c->grid, .shift = shift};
    request.start = start;
    request.stop = stop;
    request.memory = c->order->options.memory / 2;
    request.enough =
        cv_max_i64(SLAB_BYTES, 4 * c->to->pending->threads * c->grid->chunk_bytes);
    cv_slabs slabs;
    cv_slabs_choose(&request, &slabs);
    CV_TRY(reserve_slab(c, slabs.n_bytes, err));
    cv_status status = CV_OK;
    for (int64_t k = 0; k < slabs.n_slabs && status == CV_OK; k++) {
        cv_slabs_get(&slabs, k, start, stop);
        status = copy_slab(c, start, stop, err);
    }
    return status;
}

/* ---- Moving ---------------------------------------------------------------- */

/* Draws the move of axis `d`, on which the part begins at item `at` of the new array;
 * false when its chunks do not fall on chunks. Where the part ends inside a chunk,
 * that chunk moves only if both arrays end there, and else nothing beside the copied
 * axis does. */
static bool draw_axis(const view_copy *c, const caterva_view *part, int d, int64_t at,
                      cv_move *move)
{
    int b = part->base_axis[d];
    int64_t length = part->grid.shape[d], chunk = c->grid->chunk_shape[d];
    int64_t start = b < 0 ? 0 : part->start[b];
    int64_t end = b < 0 ? 1 : move->source->snapshot->grid.shape[b];
    if (b >= 0 && part->step[b] != 1) return false;
    if (start % chunk != 0 || at % chunk != 0) return false;
    bool whole =
        length % chunk == 0 || (at + length == c->grid->shape[d] && start + length == end);
    if (!whole && d != c->axis) return false;
    move->axis[d] = b;
    move->from[d] = start / chunk;
    move->to[d] = at / chunk;
    move->counts[d] = whole ? cv_ceil_div(length, chunk) : length / chunk;
    return move->counts[d] > 0;
}

static bool draw_move(const view_copy *c, const caterva_view *part, int64_t at, cv_move *move)
{
    for (int d = 0; d < c->grid->ndim; d++)
        if (!draw_axis(c, part, d, d == c->axis ? at : 0, move)) return false;
    return c->grid->ndim > 0 && cv_can_move(move) && cv_move_is_clean(move);
}

static cv_status on_chunk(void *watch, cv_error *err) { return cv_watch_step(watch, 1, err); }

/* Moves what can be of the part that begins at item `at` of the axis; *moved is the
 * item behind it, `at` when nothing was. */
static cv_status move_part(view_copy *c, const caterva_view *part, int64_t at, int64_t *moved,
                           cv_error *err)
{
    caterva_array *array = part->base->array;
    cv_status status = CV_OK;
    *moved = at;
    if (!array || c->order->conversion.needed) return CV_OK;
    cv_array_lock_shared(array);
    cv_source source = cv_array_source(array);
    if (c->watch) source.watch = c->watch;
    cv_move move = {.source = &source, .target = c->to->pending};
    move.memory = c->order->options.memory / 4;
    int64_t packed = cv_max_i64(1, c->order->options.memory / (2 * c->grid->chunk_bytes));
    int threads = (int)cv_min_i64(cv_min_i64(source.threads, c->to->threads), packed);
    if (source.pending) status = cv_pending_check_whole(source.pending, err);
    if (status == CV_OK) status = cv_view_check(part->base, &source.snapshot->grid, err);
    if (status == CV_OK && draw_move(c, part, at, &move)) {
        status = cv_move_chunks(&move, threads, on_chunk, c->watch, err);
        int64_t end =
            (move.to[c->axis] + move.counts[c->axis]) * c->grid->chunk_shape[c->axis];
        *moved = cv_min_i64(end, c->grid->shape[c->axis]);
    }
    return cv_array_finish(array, status);
}

/* ---- The copy -------------------------------------------------------------- */

static cv_status fill_new(view_copy *c, cv_error *err)
{
    parts p = parts_of(&c->view);
    int64_t length = c->grid->ndim > 0 ? c->grid->shape[p.axis] : 1;
    int64_t copied = 0; /* items of the axis */
    c->axis = p.axis;
    CV_TRY(cv_watch_step(c->watch, 0, err));
    if (c->order->options.for_remote) cv_txn_add_layouts(c->to->pending->txn);
    if (c->grid->n_items == 0) return caterva_commit(c->to, err);
    for (int i = 0; i < p.n; i++) {
        int64_t at = p.starts ? p.starts[i] : 0, moved;
        CV_TRY(move_part(c, p.views[i], at, &moved, err));
        if (moved == at) continue;
        if (copied < at) CV_TRY(copy_between(c, copied, at, err));
        copied = moved;
    }
    if (copied < length) CV_TRY(copy_between(c, copied, length, err));
    return caterva_commit(c->to, err);
}

/* As the first array, axis by axis; new axes have chunks and blocks of one item. */
static void set_partition(const caterva_view *over, const cv_snapshot *state,
                          cv_copy_order *order)
{
    const cv_grid *from = &state->grid;
    caterva_create_options *create = &order->create;
    if (create->chunk_shape || create->block_shape || state->meta.plain) return;
    for (int d = 0; d < over->grid.ndim; d++) {
        int b = over->base_axis[d];
        order->chunk_shape[d] = b < 0 ? 1 : (int32_t)from->chunk_shape[b];
        order->block_shape[d] = b < 0 ? 1 : (int32_t)from->block_shape[b];
    }
    create->chunk_shape = order->chunk_shape;
    create->block_shape = order->block_shape;
}

/* Each axis of the view has the name of the axis of the first array that it shows. */
static cv_status carry_dims(const caterva_view *view, const cv_snapshot *state,
                            caterva_array *to, cv_error *err)
{
    int axes[CV_MAX_DIMS];
    const caterva_view *at = view;
    for (int d = 0; d < view->grid.ndim; d++) axes[d] = view->base_axis[d];
    while (!at->base->array) {
        at = at->base->parts[0];
        for (int d = 0; d < view->grid.ndim; d++)
            axes[d] = axes[d] < 0 ? -1 : at->base_axis[axes[d]];
    }
    return cv_dims_carry(state, axes, to, err);
}

static cv_status create_like(const caterva_view *view, const char *url, cv_copy_order *order,
                             caterva_array **out, cv_error *err)
{
    const caterva_view *over;
    caterva_array *first = first_array(view, &over);
    memcpy(order->shape, view->grid.shape, sizeof order->shape);
    order->create.ndim = view->grid.ndim;
    order->create.shape = order->shape;
    order->create.item_size = 0;
    cv_array_lock_shared(first);
    const cv_snapshot *state = cv_array_state(first);
    /* A view of a view of several has axes of its own: then the library chooses. */
    if (over->grid.ndim == view->grid.ndim && (view == over || is_whole_base(view)))
        set_partition(over, state, order);
    *out = NULL;
    cv_status status = cv_view_check(over->base, &state->grid, err);
    if (status == CV_OK) status = cv_copy_set_conversion(first, order, err);
    if (status == CV_OK) {
        cv_copy_set_kind(first, url, order);
        status = cv_copy_choose_remote(first, order, err);
    }
    if (status == CV_OK) {
        status = cv_array_create(url, &order->create, state, out, err);
        if (status == CV_OK) status = carry_dims(view, state, *out, err);
        if (status != CV_OK) cv_array_free(*out);
    }
    cv_array_unlock(first);
    return status;
}

caterva_status caterva_view_copy(const caterva_view *view, const char *url,
                                 const caterva_copy_options *options, caterva_array **out,
                                 caterva_error *err)
{
    if (out) *out = NULL;
    if (view) CV_TRY(cv_view_check_arrays(view->base, err));
    if (!view || !url) return cv_fail(err, CATERVA_EINVAL, -1, "the view or url is NULL");
    cv_copy_order order;
    caterva_array *array;
    CV_TRY(cv_copy_read_options(options, &order, err));
    if (order.options.start || order.options.stop)
        return cv_fail(err, CATERVA_EINVAL, -1,
                       "a copy of a view takes no box: select from the view instead");
    CV_TRY(create_like(view, url, &order, &array, err));
    view_copy c = {.view = view, .order = &order, .to = array};
    c.grid = &cv_txn_snapshot(array->pending->txn)->grid;
    cv_watch watch;
    cv_watch_init_steps(&watch, order.options.on_progress, order.options.context, NULL);
    cv_watch_set_steps(&watch, c.grid->n_chunks);
    if (order.options.on_progress) c.watch = array->pending->watch = &watch;
    cv_status status = fill_new(&c, err);
    array->pending->watch = array->watch;
    cv_watch_destroy(&watch);
    cv_free(c.slab);
    if (status == CV_OK && out) {
        *out = array;
        return CV_OK;
    }
    cv_array_free(array);
    return status;
}
