/* Room: engine. The plan of a mask of the array's shape. The result is in C order
 * and blocks are not, so the plan counts, once, how many selected items come
 * before each line of each block; from there a block finds its own places.
 *
 *     line of the array   . x . | x x . | . x        ranks 5 6 8, next line 9
 *     blocks of the last axis  0       1     2                                  */
#include "engine/select_plan.h"

#include "base/arith.h"

#include <stdlib.h>

enum { PICKS_AT_ONCE = 256 };

/* A block's valid items, and its lines along the last axis. */
typedef struct extent {
    int64_t block;               /* number in the chunk */
    int64_t start[CV_MAX_DIMS];  /* first item in the array */
    int64_t length[CV_MAX_DIMS]; /* valid items */
    int64_t segment;             /* of the last axis, in blocks from the array's begin */
    int64_t n_lines;
} extent;

/* One line of items in a block. */
typedef struct line {
    int64_t item;  /* the first one's number in the array */
    int64_t pos;   /* its byte in the block */
    int64_t rank;  /* selected items before it */
    int64_t count; /* selected in it */
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
                        extent *e)
{
    const cv_grid *grid = plan->grid;
    *e = (extent){.n_lines = 1};
    for (int d = grid->ndim - 1; d >= 0; d--) {
        const cv_span *span = &chunk->spans[d];
        int64_t index = j % span->n_blocks;
        j /= span->n_blocks;
        int64_t origin = span->index * grid->chunk_shape[d];
        int64_t end = cv_min_i64(origin + grid->chunk_shape[d], grid->shape[d]);
        e->block += index * grid->block_strides[d];
        e->start[d] = origin + index * grid->block_shape[d];
        e->length[d] = cv_min_i64(end - e->start[d], grid->block_shape[d]);
        if (d == grid->ndim - 1)
            e->segment = span->index * grid->block_counts[d] + index;
        else
            e->n_lines *= e->length[d];
    }
}

static void find_line(const cv_select_plan *plan, const extent *e, int64_t i, line *out)
{
    const cv_grid *grid = plan->grid;
    int last = grid->ndim - 1;
    int64_t in_array = 0, lines = 1; /* the line's number in the array */
    out->pos = 0;
    for (int d = last - 1; d >= 0; d--) {
        int64_t at = i % e->length[d];
        i /= e->length[d];
        in_array += (e->start[d] + at) * lines;
        lines *= grid->shape[d];
        out->pos += at * grid->item_strides[d];
    }
    out->item = last < 0 ? 0 : in_array * grid->shape[last] + e->start[last];
    const int64_t *rank = plan->ranks + in_array * count_segments(grid) + e->segment;
    out->rank = rank[0];
    out->count = rank[1] - rank[0];
}

static void mask_block(const cv_select_plan *plan, const cv_select_chunk *chunk, int64_t j,
                       cv_select_block *out)
{
    extent e;
    find_extent(plan, chunk, j, &e);
    int64_t items = e.n_lines * (plan->grid->ndim ? e.length[plan->grid->ndim - 1] : 1);
    int64_t count = 0;
    for (int64_t i = 0; i < e.n_lines; i++) {
        line l;
        find_line(plan, &e, i, &l);
        count += l.count;
    }
    *out = (cv_select_block){.block = e.block, .wanted = count > 0, .covers = count == items};
}

/* The items of a line that is selected in part, some at a time. */
static void visit_picks(const cv_select_plan *plan, const line *l, cv_part *part,
                        cv_part_fn visit, void *context)
{
    cv_pick picks[PICKS_AT_ONCE];
    const uint8_t *mask = plan->mask + l->item;
    part->picks[0] = picks;
    int64_t n = 0, at = 0;
    for (int64_t found = 0; found < l->count; at++) {
        if (!mask[at]) continue;
        picks[n++] = (cv_pick){{at, found++}};
        if (n < PICKS_AT_ONCE && found < l->count) continue;
        part->n[0] = n;
        visit(context, part);
        n = 0;
    }
    part->picks[0] = NULL;
}

static void mask_parts(const cv_select_plan *plan, const cv_select_chunk *chunk, int64_t j,
                       cv_part_fn visit, void *context)
{
    const cv_grid *grid = plan->grid;
    extent e;
    find_extent(plan, chunk, j, &e);
    int64_t length = grid->ndim ? e.length[grid->ndim - 1] : 1;
    cv_part part = {.ndim = 1, .item_size = grid->item_size};
    part.strides[CV_IN_BLOCK][0] = grid->item_size;
    part.strides[CV_IN_BUFFER][0] = plan->strides[0];
    for (int64_t i = 0; i < e.n_lines; i++) {
        line l;
        find_line(plan, &e, i, &l);
        if (l.count == 0) continue;
        part.pos[CV_IN_BLOCK] = l.pos;
        part.pos[CV_IN_BUFFER] = l.rank * plan->strides[0];
        part.n[0] = length;
        if (l.count == length)
            visit(context, &part);
        else
            visit_picks(plan, &l, &part, visit, context);
    }
}

/* ---- The plan ----------------------------------------------------------- */

static int64_t count_true(const uint8_t *mask, int64_t n)
{
    int64_t count = 0;
    for (int64_t i = 0; i < n; i++) count += mask[i] != 0;
    return count;
}

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
            total += count_true(mask + at, end - at);
            at = end;
        }
    }
    *rank = total;
}

cv_status cv_select_mask_init(cv_select_plan *plan, cv_error *err)
{
    static const cv_select_ops ops = {mask_chunk, mask_block, mask_parts};
    const cv_grid *grid = plan->grid;
    int64_t n_segments = count_segments(grid), size;
    int64_t n_lines = grid->ndim ? grid->n_items / grid->shape[grid->ndim - 1] : 1;
    if (!cv_mul_i64(n_lines, n_segments, &size) || !cv_add_i64(size, 1, &size) ||
        !cv_mul_i64(size, (int64_t)sizeof plan->ranks[0], &size))
        return cv_fail(err, CATERVA_EINVAL, -1, "the mask has too many lines");
    plan->ranks = malloc((size_t)size);
    if (!plan->ranks) return cv_fail_memory(err, (size_t)size, "the ranks of a mask");
    fill_ranks(plan, n_lines);
    plan->ops = &ops;
    plan->n_chunks = grid->n_chunks;
    plan->n_blocks = grid->n_chunks * grid->n_blocks;
    return CV_OK;
}
