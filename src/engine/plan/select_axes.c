/* Room: engine/plan. The plan of a selection axis by axis: slices with steps, and
 * lists. What a chunk or block holds is the product of what its axes hold, so
 * all is computed one axis at a time, slices without any memory. */
#include "engine/plan/select_axes.h"

#include "base/arith.h"

/* ---- Slices: item i is start + i * step, step >= 1 ----------------------- */

/* The first item of the slice at or behind `bound`. */
static int64_t first_behind(const cv_axis *axis, int64_t bound)
{
    return bound <= axis->start ? 0 : cv_ceil_div(bound - axis->start, axis->step);
}

static int64_t item_of(const cv_axis *axis, int64_t i)
{
    return axis->start + i * axis->step;
}

/* The items in [origin, origin + length), out of [0, n). */
static void slice_cut(const cv_axis *axis, int64_t origin, int64_t length, cv_span *span)
{
    span->first = first_behind(axis, origin);
    span->last = cv_min_i64(axis->n, first_behind(axis, origin + length));
}

/* With steps longer than a chunk each item has a chunk of its own; with shorter
 * ones no chunk between the first and the last is left out. */
static int64_t slice_count(const cv_axis *axis, int64_t length)
{
    if (axis->step > length) return axis->n;
    return item_of(axis, axis->n - 1) / length - axis->start / length + 1;
}

static void slice_chunk(const cv_select_plan *plan, int d, int64_t k, cv_span *span)
{
    const cv_axis *axis = &plan->axes[d];
    int64_t length = plan->grid->chunk_shape[d], block = plan->grid->block_shape[d];
    span->index = axis->step > length ? item_of(axis, k) / length : axis->start / length + k;
    int64_t origin = span->index * length;
    slice_cut(axis, origin, length, span);
    int64_t lo = item_of(axis, span->first) - origin;
    int64_t hi = item_of(axis, span->last - 1) - origin;
    span->n_blocks =
        axis->step > block ? span->last - span->first : hi / block - lo / block + 1;
}

static void slice_block(const cv_select_plan *plan, int d, const cv_span *chunk, int64_t j,
                        cv_span *span)
{
    const cv_axis *axis = &plan->axes[d];
    int64_t origin = chunk->index * plan->grid->chunk_shape[d];
    int64_t block = plan->grid->block_shape[d];
    if (axis->step > block) {
        span->first = chunk->first + j;
        span->last = span->first + 1;
        span->index = (item_of(axis, span->first) - origin) / block;
        return;
    }
    span->index = (item_of(axis, chunk->first) - origin) / block + j;
    slice_cut(axis, origin + span->index * block, block, span);
    span->last = cv_min_i64(span->last, chunk->last); /* a block may end behind its chunk */
}

/* ---- Lists -------------------------------------------------------------- */

/* Puts list or mask of axis `d` into buckets. */
static cv_status fill_buckets(cv_select_plan *plan, int d, cv_error *err)
{
    const cv_grid *grid = plan->grid;
    const cv_axis *axis = &plan->axes[d];
    cv_buckets *buckets = &plan->buckets[d];
    CV_TRY(cv_buckets_init(buckets, axis->n, plan->watch, err));
    int64_t chunk = grid->chunk_shape[d], block = grid->block_shape[d];
    int64_t at = -1;
    for (int64_t i = 0; i < axis->n; i++) {
        if (axis->list) {
            at = cv_index_from_start(axis->list[i], grid->shape[d]);
        } else {
            do at++;
            while (!axis->mask[at]);
        }
        int64_t in_chunk = at / chunk * grid->block_counts[d] + at % chunk / block;
        buckets->picks[i] = (cv_pick){{in_chunk * block + at % chunk % block, i}};
    }
    cv_numbering numbering = {grid->block_counts[d], block};
    return cv_buckets_group(buckets, numbering, err);
}

static void list_chunk(const cv_select_plan *plan, int d, int64_t k, cv_span *span)
{
    const cv_buckets *buckets = &plan->buckets[d];
    int64_t first = buckets->chunk_starts[k];
    span->index = buckets->blocks[first] / plan->grid->block_counts[d];
    span->first = first; /* buckets, not items: list_block goes on from here */
    span->last = buckets->chunk_starts[k + 1];
    span->n_blocks = span->last - first;
}

static void list_block(const cv_select_plan *plan, int d, const cv_span *chunk, int64_t j,
                       cv_span *span)
{
    const cv_buckets *buckets = &plan->buckets[d];
    int64_t bucket = chunk->first + j;
    span->index = buckets->blocks[bucket] % plan->grid->block_counts[d];
    span->first = buckets->block_starts[bucket];
    span->last = buckets->block_starts[bucket + 1];
}

/* ---- All axes ----------------------------------------------------------- */

static bool has_list(const cv_select_plan *plan, int d)
{
    return plan->axes[d].list || plan->axes[d].mask;
}

static void axes_chunk(const cv_select_plan *plan, int64_t k, cv_select_chunk *out)
{
    const cv_grid *grid = plan->grid;
    out->chunk = 0;
    out->n_blocks = 1;
    for (int d = grid->ndim - 1; d >= 0; d--) {
        cv_span *span = &out->spans[d];
        int64_t kd = k % plan->chunk_counts[d];
        k /= plan->chunk_counts[d];
        if (has_list(plan, d))
            list_chunk(plan, d, kd, span);
        else
            slice_chunk(plan, d, kd, span);
        out->chunk += span->index * grid->chunk_strides[d];
        out->n_blocks *= span->n_blocks;
    }
}

/* The j-th touched block, one span for each axis. */
static void locate(const cv_select_plan *plan, const cv_select_chunk *chunk, int64_t j,
                   cv_span *spans)
{
    for (int d = plan->grid->ndim - 1; d >= 0; d--) {
        int64_t jd = j % chunk->spans[d].n_blocks;
        j /= chunk->spans[d].n_blocks;
        if (has_list(plan, d))
            list_block(plan, d, &chunk->spans[d], jd, &spans[d]);
        else
            slice_block(plan, d, &chunk->spans[d], jd, &spans[d]);
    }
}

/* Different items of the axis that a block's span holds. */
static int64_t count_distinct(const cv_select_plan *plan, int d, const cv_span *span)
{
    if (!has_list(plan, d)) return span->last - span->first;
    const cv_pick *picks = plan->buckets[d].picks;
    int64_t n = 1;
    for (int64_t i = span->first + 1; i < span->last; i++)
        n += picks[i].at[CV_IN_BLOCK] != picks[i - 1].at[CV_IN_BLOCK];
    return n;
}

static void axes_block(const cv_select_plan *plan, const cv_select_chunk *chunk, int64_t j,
                       cv_select_block *out)
{
    const cv_grid *grid = plan->grid;
    cv_span spans[CV_MAX_DIMS];
    locate(plan, chunk, j, spans);
    *out = (cv_select_block){.wanted = true, .covers = true};
    for (int d = 0; d < grid->ndim; d++) {
        int64_t origin = chunk->spans[d].index * grid->chunk_shape[d];
        int64_t chunk_end = cv_min_i64(grid->shape[d] - origin, grid->chunk_shape[d]);
        int64_t at = spans[d].index * grid->block_shape[d];
        int64_t valid = cv_min_i64(chunk_end - at, grid->block_shape[d]);
        out->block += spans[d].index * grid->block_strides[d];
        out->covers = out->covers && spans[d].last - spans[d].first >= valid &&
                      count_distinct(plan, d, &spans[d]) == valid;
    }
}

static void axes_parts(const cv_select_plan *plan, const cv_select_chunk *chunk, int64_t j,
                       cv_part_fn visit, void *context)
{
    const cv_grid *grid = plan->grid;
    cv_span spans[CV_MAX_DIMS];
    locate(plan, chunk, j, spans);
    cv_part part = {.ndim = grid->ndim, .item_size = grid->item_size};
    part.pos[CV_IN_BUFFER] = plan->buffer_pos;
    for (int d = 0; d < grid->ndim; d++) {
        const cv_axis *axis = &plan->axes[d];
        const cv_span *span = &spans[d];
        part.n[d] = span->last - span->first;
        part.strides[CV_IN_BLOCK][d] = grid->item_strides[d];
        part.strides[CV_IN_BUFFER][d] = plan->strides[d];
        if (has_list(plan, d)) {
            part.picks[d] = plan->buckets[d].picks + span->first;
            continue;
        }
        int64_t origin =
            chunk->spans[d].index * grid->chunk_shape[d] + span->index * grid->block_shape[d];
        part.strides[CV_IN_BLOCK][d] *= axis->step;
        part.pos[CV_IN_BLOCK] +=
            (item_of(axis, span->first) - origin) * grid->item_strides[d];
        part.pos[CV_IN_BUFFER] += span->first * plan->strides[d];
    }
    visit(context, &part);
}

void cv_select_axes_chunk_part(const cv_select_plan *plan, const cv_select_chunk *chunk,
                               cv_part *out)
{
    *out = (cv_part){.ndim = plan->grid->ndim, .item_size = plan->grid->item_size};
    out->pos[CV_IN_BUFFER] = plan->buffer_pos;
    for (int d = 0; d < plan->grid->ndim; d++) {
        const cv_span *span = &chunk->spans[d];
        out->n[d] = span->last - span->first;
        out->strides[CV_IN_BUFFER][d] = plan->strides[d];
        out->pos[CV_IN_BUFFER] += span->first * plan->strides[d];
    }
}

/* ---- The plan ----------------------------------------------------------- */

static const cv_select_ops axes_ops = {axes_chunk, axes_block, axes_parts};

bool cv_select_plan_is_box(const cv_select_plan *plan, int64_t *start, int64_t *stop)
{
    if (plan->ops != &axes_ops) return false;
    for (int d = 0; d < plan->grid->ndim; d++) {
        const cv_axis *axis = &plan->axes[d];
        if (has_list(plan, d) || axis->step != 1) return false;
        start[d] = axis->start;
        stop[d] = axis->start + axis->n;
    }
    return true;
}

cv_status cv_select_axes_init(cv_select_plan *plan, cv_error *err)
{
    const cv_grid *grid = plan->grid;
    plan->ops = &axes_ops;
    plan->n_chunks = 1;
    int64_t blocks = 1; /* of each touched chunk, at most */
    for (int d = 0; d < grid->ndim; d++) {
        if (has_list(plan, d)) CV_TRY(fill_buckets(plan, d, err));
        plan->chunk_counts[d] = has_list(plan, d)
                                    ? plan->buckets[d].n_chunks
                                    : slice_count(&plan->axes[d], grid->chunk_shape[d]);
        plan->n_chunks *= plan->chunk_counts[d];
        int64_t n = cv_ceil_div(plan->axes[d].n, plan->chunk_counts[d]);
        blocks *= cv_min_i64(n, grid->block_counts[d]);
    }
    plan->n_blocks = plan->n_chunks * blocks;
    return CV_OK;
}
