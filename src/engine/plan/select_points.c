/* Room: engine/plan. The plan of a list of points: sorted by chunk and block once. A mask
 * with few items is such a list. */
#include "engine/plan/select_points.h"

#include "base/arith.h"

#include <string.h>

static void points_chunk(const cv_select_plan *plan, int64_t k, cv_select_chunk *out)
{
    const cv_buckets *buckets = &plan->buckets[0];
    int64_t first = buckets->chunk_starts[k];
    out->chunk = buckets->blocks[first] / plan->grid->n_blocks;
    out->n_blocks = buckets->chunk_starts[k + 1] - first;
    out->spans[0].first = first;
}

/* Whether a block is covered whole is not looked at: points are few. */
static void points_block(const cv_select_plan *plan, const cv_select_chunk *chunk, int64_t j,
                         cv_select_block *out)
{
    int64_t block = plan->buckets[0].blocks[chunk->spans[0].first + j];
    *out = (cv_select_block){.block = block % plan->grid->n_blocks, .wanted = true};
}

static void points_parts(const cv_select_plan *plan, const cv_select_chunk *chunk, int64_t j,
                         cv_part_fn visit, void *context)
{
    const cv_buckets *buckets = &plan->buckets[0];
    int64_t bucket = chunk->spans[0].first + j;
    int64_t first = buckets->block_starts[bucket];
    cv_part part = {.ndim = 1, .item_size = plan->grid->item_size};
    part.n[0] = buckets->block_starts[bucket + 1] - first;
    part.picks[0] = buckets->picks + first;
    part.strides[CV_IN_BLOCK][0] = plan->grid->item_size;
    part.strides[CV_IN_BUFFER][0] = plan->strides[0];
    visit(context, &part);
}

/* The item's number in the order of chunks, blocks and items of a block. Below
 * 2^59: the format's bounds on chunks and on the bytes of one. */
static int64_t number_of(const cv_grid *grid, const int64_t *point)
{
    int64_t chunk = 0, block = 0, item = 0;
    for (int d = 0; d < grid->ndim; d++) {
        int64_t at = cv_index_from_start(point[d], grid->shape[d]);
        int64_t in_chunk = at % grid->chunk_shape[d];
        chunk += at / grid->chunk_shape[d] * grid->chunk_strides[d];
        block += in_chunk / grid->block_shape[d] * grid->block_strides[d];
        item = item * grid->block_shape[d] + in_chunk % grid->block_shape[d];
    }
    int64_t items = grid->block_bytes / grid->item_size;
    return (chunk * grid->n_blocks + block) * items + item;
}

static cv_status group_points(cv_select_plan *plan, cv_error *err)
{
    static const cv_select_ops ops = {points_chunk, points_block, points_parts};
    const cv_grid *grid = plan->grid;
    cv_buckets *buckets = &plan->buckets[0];
    cv_numbering numbering = {grid->n_blocks, grid->block_bytes / grid->item_size};
    CV_TRY(cv_buckets_group(buckets, numbering, err));
    plan->ops = &ops;
    plan->n_chunks = buckets->n_chunks;
    plan->n_blocks = buckets->n_blocks;
    return CV_OK;
}

cv_status cv_select_points_init(cv_select_plan *plan, const int64_t *points, int64_t n,
                                cv_error *err)
{
    const cv_grid *grid = plan->grid;
    cv_buckets *buckets = &plan->buckets[0];
    CV_TRY(cv_buckets_init(buckets, n, plan->watch, err));
    for (int64_t i = 0; i < n; i++)
        buckets->picks[i] =
            (cv_pick){{number_of(grid, grid->ndim ? points + i * grid->ndim : NULL), i}};
    return group_points(plan, err);
}

/* The first selected item at or behind item `at`; there is one. */
static int64_t next_selected(const uint8_t *mask, int64_t at, int64_t n)
{
    uint64_t eight = 0;
    while (at + 8 <= n) {
        memcpy(&eight, mask + at, sizeof eight);
        if (eight != 0) break;
        at += 8;
    }
    while (mask[at] == 0) at++;
    return at;
}

cv_status cv_select_few_init(cv_select_plan *plan, cv_error *err)
{
    const cv_grid *grid = plan->grid;
    cv_buckets *buckets = &plan->buckets[0];
    CV_TRY(cv_buckets_init(buckets, plan->n_items, plan->watch, err));
    int64_t point[CV_MAX_DIMS], at = -1;
    for (int64_t i = 0; i < plan->n_items; i++) {
        at = next_selected(plan->mask, at + 1, grid->n_items);
        int64_t rest = at;
        for (int d = grid->ndim - 1; d >= 0; d--) {
            point[d] = rest % grid->shape[d];
            rest /= grid->shape[d];
        }
        buckets->picks[i] = (cv_pick){{number_of(grid, point), i}};
    }
    plan->mask = NULL; /* a list of points from here on */
    return group_points(plan, err);
}
