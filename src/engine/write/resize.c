/* Room: engine/write. Changes shapes: moves whole chunks in the index, copies the items of
 * others. */
#include "engine/write/resize.h"

#include "base/arith.h"
#include "base/heap.h"
#include "engine/plan/plan.h"
#include "engine/read/read.h"
#include "engine/write/write.h"
#include "frame/txn.h"

#include <string.h>

typedef struct box {
    int64_t start[CV_MAX_DIMS];
    int64_t stop[CV_MAX_DIMS];
} box;

static const cv_grid *grid_of(const cv_pending *pending)
{
    return &cv_txn_snapshot(pending->txn)->grid;
}

static box whole(const cv_grid *grid)
{
    box b = {{0}, {0}};
    memcpy(b.stop, grid->shape, sizeof b.stop);
    return b;
}

/* ---- Filling ------------------------------------------------------------- */

/* Fills a box with the fill: a write whose buffer has strides of 0. */
static cv_status fill_box(cv_pending *pending, const cv_grid *grid, const box *b,
                          cv_error *err)
{
    cv_plan plan;
    CV_TRY(cv_plan_box(grid, b->start, b->stop, &plan, err));
    memset(plan.buffer_strides, 0, sizeof plan.buffer_strides);
    return cv_write_box(pending, &plan, pending->fill, err);
}

static cv_status padded_grid(const cv_grid *grid, cv_grid *out, cv_error *err)
{
    *out = *grid;
    for (int d = 0; d < grid->ndim; d++) {
        out->shape[d] = grid->chunk_counts[d] * grid->chunk_shape[d];
        if (out->shape[d] < grid->shape[d])
            return cv_fail(err, CATERVA_EINVAL, -1, "the shape's size does not fit 64 bits");
    }
    return CV_OK;
}

static cv_status clear_padding(cv_pending *pending, int axis, cv_error *err)
{
    const cv_grid *grid = grid_of(pending);
    if (grid->n_chunks == 0 || grid->shape[axis] % grid->chunk_shape[axis] == 0) return CV_OK;
    cv_grid padded;
    CV_TRY(padded_grid(grid, &padded, err));
    box b = whole(&padded);
    b.start[axis] = grid->shape[axis];
    return fill_box(pending, &padded, &b, err);
}

/* Fills the cells of old chunks that become visible when `axis` grows from shape `old`. */
static cv_status fill_exposed(cv_pending *pending, int axis, const int64_t *old,
                              cv_error *err)
{
    const cv_grid *grid = grid_of(pending);
    if (old[axis] % grid->chunk_shape[axis] == 0) return CV_OK;
    box b = whole(grid);
    for (int d = 0; d < grid->ndim; d++) {
        int64_t chunk = grid->chunk_shape[d];
        b.stop[d] = cv_min_i64(grid->shape[d], cv_ceil_div(old[d], chunk) * chunk);
    }
    b.start[axis] = old[axis];
    return fill_box(pending, grid, &b, err);
}

/* ---- Index edits --------------------------------------------------------- */

/* Stores the fill in each new chunk if no index entry can express it. */
static cv_status store_fill(cv_pending *pending, const cv_reshape *reshape,
                            const cv_grid *from, cv_error *err)
{
    if (!pending->fill_is_stored) return CV_OK;
    const cv_grid *to = grid_of(pending);
    cv_buffer chunk = {0};
    cv_status status =
        cv_encode_repeated(&pending->workers->spec, pending->fill, &chunk, err);
    for (int64_t i = 0; i < to->n_chunks && status == CV_OK; i++) {
        if (cv_reshape_source(reshape, from, to, i) >= 0) continue;
        status = cv_watch_tick(pending->watch, 0, err);
        if (status == CV_OK) status = cv_txn_put(pending->txn, i, &chunk, err);
    }
    cv_buffer_free(&chunk);
    return status;
}

static cv_status reshape(cv_pending *pending, const cv_reshape *change, cv_error *err)
{
    cv_grid from = *grid_of(pending);
    CV_TRY(cv_txn_reshape(pending->txn, change, pending->fill_kind, err));
    cv_pending_renumber(pending, change, &from);
    return store_fill(pending, change, &from, err);
}

static cv_status reshape_axis(cv_pending *pending, int axis, int64_t length, cv_error *err)
{
    int64_t shape[CV_MAX_DIMS];
    memcpy(shape, grid_of(pending)->shape, sizeof shape);
    shape[axis] = length;
    cv_reshape change = {.shape = shape, .axis = axis};
    return reshape(pending, &change, err);
}

/* ---- Resize ------------------------------------------------------------- */

cv_status cv_resize(cv_pending *pending, const int64_t *shape, cv_error *err)
{
    cv_grid old = *grid_of(pending);
    int64_t small[CV_MAX_DIMS] = {0};
    for (int d = 0; d < old.ndim; d++) small[d] = cv_min_i64(shape[d], old.shape[d]);
    cv_reshape shrink = {.shape = small};
    cv_reshape extend = {.shape = shape};
    size_t size = (size_t)old.ndim * sizeof small[0];
    if (memcmp(small, old.shape, size) != 0) CV_TRY(reshape(pending, &shrink, err));
    for (int d = 0; d < old.ndim; d++)
        if (small[d] < old.shape[d]) CV_TRY(clear_padding(pending, d, err));
    if (memcmp(small, shape, size) != 0) CV_TRY(reshape(pending, &extend, err));
    for (int d = 0; d < old.ndim; d++)
        if (shape[d] > small[d]) CV_TRY(fill_exposed(pending, d, small, err));
    return CV_OK;
}

/* ---- Moving items -------------------------------------------------------- */

typedef struct move {
    cv_pending *pending;
    int axis;
    int64_t from, to, length;
    uint8_t *buffer; /* memory for one tile, as large as a chunk */
} move;

static cv_status copy_tile(const move *m, const box *at, cv_error *err)
{
    cv_pending *pending = m->pending;
    cv_source source = cv_source_of_pending(pending);
    const cv_grid *grid = &source.snapshot->grid;
    cv_plan plan;
    CV_TRY(cv_plan_box(grid, at->start, at->stop, &plan, err));
    CV_TRY(cv_read_box(&source, &plan, m->buffer, err));
    box to = *at;
    to.start[m->axis] += m->to - m->from;
    to.stop[m->axis] += m->to - m->from;
    CV_TRY(cv_plan_box(grid, to.start, to.stop, &plan, err));
    return cv_write_box(pending, &plan, m->buffer, err);
}

/* Returns tile `k`, chunk-sized, of the items to move. In this order no unread item is lost. */
static box tile_at(const move *m, const int64_t *counts, int64_t k)
{
    const cv_grid *grid = grid_of(m->pending);
    box b = {{0}, {0}};
    for (int d = grid->ndim - 1; d >= 0; d--) {
        int64_t i = k % counts[d];
        k /= counts[d];
        int64_t first = 0, last = grid->shape[d];
        if (d == m->axis) {
            first = m->from;
            last = m->from + m->length;
            if (m->to > m->from) i = counts[d] - 1 - i;
        }
        b.start[d] = first + i * grid->chunk_shape[d];
        b.stop[d] = cv_min_i64(b.start[d] + grid->chunk_shape[d], last);
    }
    return b;
}

static cv_status move_items(move *m, cv_error *err)
{
    const cv_grid *grid = grid_of(m->pending);
    int64_t counts[CV_MAX_DIMS], total = 1;
    for (int d = 0; d < grid->ndim; d++) {
        int64_t length = d == m->axis ? m->length : grid->shape[d];
        counts[d] = cv_ceil_div(length, grid->chunk_shape[d]);
        total *= counts[d];
    }
    if (total == 0) return CV_OK;
    m->buffer = cv_malloc((size_t)grid->chunk_bytes);
    if (!m->buffer) return cv_fail_memory(err, (size_t)grid->chunk_bytes, "a tile");
    cv_status status = CV_OK;
    for (int64_t k = 0; k < total && status == CV_OK; k++) {
        box b = tile_at(m, counts, k);
        status = copy_tile(m, &b, err);
    }
    cv_free(m->buffer);
    return status;
}

/* ---- Insert and remove --------------------------------------------------- */

static cv_status write_slab(cv_pending *pending, int axis, int64_t at, int64_t n,
                            const cv_strided *src, cv_error *err)
{
    const cv_grid *grid = grid_of(pending);
    box b = whole(grid);
    b.start[axis] = at;
    b.stop[axis] = at + n;
    if (!src) return fill_box(pending, grid, &b, err);
    cv_plan plan;
    CV_TRY(cv_plan_box(grid, b.start, b.stop, &plan, err));
    for (int d = 0; d < grid->ndim; d++) plan.buffer_strides[d] = src->strides[d];
    return cv_write_box(pending, &plan, src->data, err);
}

static bool is_aligned(const cv_grid *grid, int axis, int64_t a, int64_t b)
{
    return a % grid->chunk_shape[axis] == 0 && b % grid->chunk_shape[axis] == 0;
}

cv_status cv_insert(cv_pending *pending, int axis, int64_t at, int64_t n,
                    const cv_strided *src, cv_error *err)
{
    const cv_grid *grid = grid_of(pending);
    int64_t old = grid->shape[axis], length;
    if (!cv_add_i64(old, n, &length))
        return cv_fail(err, CATERVA_EINVAL, -1, "axis %d of %lld items cannot take %lld more",
                       axis, (long long)old, (long long)n);
    if (n == 0) return CV_OK;
    int64_t shape[CV_MAX_DIMS];
    memcpy(shape, grid->shape, sizeof shape);
    shape[axis] = length;
    if (at == old && !src) return cv_resize(pending, shape, err);
    if (at < old && is_aligned(grid, axis, at, n)) {
        cv_reshape change = {shape, axis, at / grid->chunk_shape[axis],
                             n / grid->chunk_shape[axis]};
        CV_TRY(reshape(pending, &change, err));
        return src ? write_slab(pending, axis, at, n, src, err) : CV_OK;
    }
    CV_TRY(reshape_axis(pending, axis, length, err));
    move m = {.pending = pending, .axis = axis, .from = at, .to = at + n, .length = old - at};
    CV_TRY(move_items(&m, err));
    return write_slab(pending, axis, at, n, src, err);
}

cv_status cv_remove(cv_pending *pending, int axis, int64_t start, int64_t stop, cv_error *err)
{
    const cv_grid *grid = grid_of(pending);
    int64_t old = grid->shape[axis], n = stop - start;
    if (n == 0) return CV_OK;
    int64_t shape[CV_MAX_DIMS];
    memcpy(shape, grid->shape, sizeof shape);
    shape[axis] = old - n;
    if (stop < old && is_aligned(grid, axis, start, stop)) {
        int64_t chunk = grid->chunk_shape[axis];
        cv_reshape change = {shape, axis, start / chunk, -(n / chunk)};
        return reshape(pending, &change, err);
    }
    move m = {
        .pending = pending, .axis = axis, .from = stop, .to = start, .length = old - stop};
    CV_TRY(move_items(&m, err));
    CV_TRY(reshape_axis(pending, axis, old - n, err));
    return clear_padding(pending, axis, err);
}
