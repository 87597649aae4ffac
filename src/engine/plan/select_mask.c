/* Room: engine/plan. The plan of a mask of the array's shape. The result is in C order
 * and blocks are not, so the plan counts, once, how many selected items come
 * before each line of each block; from there a block finds its own places.
 *
 *     line of the array   . x . | x x . | . x        ranks 5 6 8, next line 9
 *     blocks of the last axis  0       1     2
 *
 * Where few items are selected most lines have none: those are planned as points. */
#include "engine/plan/select_mask.h"

#include "base/arith.h"
#include "base/heap.h"
#include "engine/plan/select_points.h"

/* A block's valid items, as lines along the last axis. */
typedef struct extent {
    int64_t block;                     /* number in the chunk */
    int64_t start[CV_MAX_DIMS];        /* first item in the array */
    int64_t length[CV_MAX_DIMS];       /* valid items */
    int64_t line_strides[CV_MAX_DIMS]; /* lines of the array per step; not of the last axis */
    int64_t line_length;
    int64_t n_lines;
} extent;

/* The line a walk over an extent has reached. */
typedef struct line {
    int64_t index[CV_MAX_DIMS]; /* in the extent */
    const int64_t *rank;        /* selected items before it; the next line's follows */
    int64_t number;             /* of the line in the array */
    int64_t pos;                /* byte in the block */
} line;

/* Blocks of the last axis in which the array has items. */
static int64_t count_segments(const cv_grid *grid)
{
    if (grid->ndim == 0) return 1;
    int d = grid->ndim - 1;
    int64_t before = (grid->chunk_counts[d] - 1) * grid->chunk_shape[d];
    return (grid->chunk_counts[d] - 1) * grid->block_counts[d] +
           cv_ceil_div(grid->shape[d] - before, grid->block_shape[d]);
}

/* Blocks of the chunk with valid items, along axis d. */
static int64_t valid_blocks(const cv_grid *grid, int d, int64_t chunk_index)
{
    int64_t valid =
        cv_min_i64(grid->shape[d] - chunk_index * grid->chunk_shape[d], grid->chunk_shape[d]);
    return cv_ceil_div(valid, grid->block_shape[d]);
}

static void mask_chunk(const cv_select_plan *plan, int64_t k, cv_select_chunk *out)
{
    const cv_grid *grid = plan->grid;
    int64_t index[CV_MAX_DIMS];
    cv_grid_chunk_index(grid, k, index);
    out->chunk = k;
    out->n_blocks = 1;
    for (int d = 0; d < grid->ndim; d++) {
        out->spans[d] = (cv_span){.index = index[d]};
        out->spans[d].n_blocks = valid_blocks(grid, d, index[d]);
        out->n_blocks *= out->spans[d].n_blocks;
    }
}

static void find_extent(const cv_select_plan *plan, const cv_select_chunk *chunk, int64_t j,
                        extent *e, line *first)
{
    const cv_grid *grid = plan->grid;
    int64_t segment = 0, lines = 1;
    *e = (extent){.n_lines = 1, .line_length = 1};
    *first = (line){.pos = 0};
    for (int d = grid->ndim - 1; d >= 0; d--) {
        const cv_span *span = &chunk->spans[d];
        int64_t index = j % span->n_blocks;
        j /= span->n_blocks;
        int64_t origin = span->index * grid->chunk_shape[d];
        int64_t end = cv_min_i64(origin + grid->chunk_shape[d], grid->shape[d]);
        e->block += index * grid->block_strides[d];
        e->start[d] = origin + index * grid->block_shape[d];
        e->length[d] = cv_min_i64(end - e->start[d], grid->block_shape[d]);
        if (d == grid->ndim - 1) {
            segment = span->index * grid->block_counts[d] + index;
            e->line_length = e->length[d];
            continue;
        }
        e->line_strides[d] = lines;
        first->number += e->start[d] * lines;
        lines *= grid->shape[d];
        e->n_lines *= e->length[d];
    }
    first->rank = plan->ranks + first->number * plan->n_segments + segment;
}

static void next_line(const cv_select_plan *plan, const extent *e, line *l)
{
    for (int d = plan->grid->ndim - 2; d >= 0; d--) {
        int64_t steps = ++l->index[d] < e->length[d] ? 1 : 1 - e->length[d];
        l->number += steps * e->line_strides[d];
        l->rank += steps * e->line_strides[d] * plan->n_segments;
        l->pos += steps * plan->grid->item_strides[d];
        if (steps == 1) return;
        l->index[d] = 0;
    }
}

static void mask_block(const cv_select_plan *plan, const cv_select_chunk *chunk, int64_t j,
                       cv_select_block *out)
{
    extent e;
    line l;
    find_extent(plan, chunk, j, &e, &l);
    int64_t count = 0;
    for (int64_t i = 0; i < e.n_lines; i++) {
        count += l.rank[1] - l.rank[0];
        next_line(plan, &e, &l);
    }
    *out = (cv_select_block){
        .block = e.block, .wanted = count > 0, .covers = count == e.n_lines * e.line_length};
}

static void mask_parts(const cv_select_plan *plan, const cv_select_chunk *chunk, int64_t j,
                       cv_part_fn visit, void *context)
{
    const cv_grid *grid = plan->grid;
    int last = grid->ndim - 1;
    extent e;
    line l;
    find_extent(plan, chunk, j, &e, &l);
    const uint8_t *mask = plan->mask + (last < 0 ? 0 : e.start[last]);
    cv_part part = {.ndim = 1, .item_size = grid->item_size};
    part.strides[CV_IN_BLOCK][0] = grid->item_size;
    part.strides[CV_IN_BUFFER][0] = plan->strides[0];
    for (int64_t i = 0; i < e.n_lines; i++, next_line(plan, &e, &l)) {
        part.n[0] = l.rank[1] - l.rank[0];
        if (part.n[0] == 0) continue;
        bool all = part.n[0] == e.line_length;
        part.mask = all ? NULL : mask + (last < 0 ? 0 : l.number * grid->shape[last]);
        part.pos[CV_IN_BLOCK] = l.pos;
        part.pos[CV_IN_BUFFER] = l.rank[0] * plan->strides[0];
        visit(context, &part);
    }
}

/* ---- The plan ----------------------------------------------------------- */

/* What a point takes, sorting and its block included: with so few items points take
 * no more memory than ranks, and no walk over lines that hold nothing. */
enum { POINT_BYTES = 2 * sizeof(cv_pick) + 3 * sizeof(int64_t) };

/* ranks[line * segments + segment], and the total behind the last. */
static void fill_ranks(cv_select_plan *plan, int64_t n_lines)
{
    const cv_grid *grid = plan->grid;
    int last = grid->ndim - 1;
    int64_t chunk = last < 0 ? 1 : grid->chunk_shape[last];
    int64_t block = last < 0 ? 1 : grid->block_shape[last];
    int64_t length = last < 0 ? 1 : grid->shape[last];
    const uint8_t *mask = plan->mask;
    int64_t *rank = plan->ranks;
    int64_t total = 0;
    for (int64_t i = 0; i < n_lines; i++, mask += length) {
        for (int64_t at = 0; at < length;) {
            int64_t chunk_end = cv_min_i64(at - at % chunk + chunk, length);
            int64_t end = cv_min_i64(at + block, chunk_end);
            *rank++ = total;
            total += cv_count_true(mask + at, end - at);
            at = end;
        }
    }
    *rank = total;
}

cv_status cv_select_mask_init(cv_select_plan *plan, cv_error *err)
{
    static const cv_select_ops ops = {mask_chunk, mask_block, mask_parts};
    const cv_grid *grid = plan->grid;
    int64_t size;
    plan->n_segments = count_segments(grid);
    int64_t n_lines = grid->ndim ? grid->n_items / grid->shape[grid->ndim - 1] : 1;
    if (!cv_mul_i64(n_lines, plan->n_segments, &size) || !cv_add_i64(size, 1, &size) ||
        !cv_mul_i64(size, (int64_t)sizeof plan->ranks[0], &size))
        return cv_fail(err, CATERVA_EINVAL, -1, "the mask has too many lines");
    if (plan->n_items <= size / POINT_BYTES) return cv_select_few_init(plan, err);
    plan->ranks = cv_malloc((size_t)size);
    if (!plan->ranks) return cv_fail_memory(err, (size_t)size, "the ranks of a mask");
    fill_ranks(plan, n_lines);
    plan->ops = &ops;
    plan->n_chunks = grid->n_chunks;
    plan->n_blocks = grid->n_chunks * grid->n_blocks;
    return CV_OK;
}
