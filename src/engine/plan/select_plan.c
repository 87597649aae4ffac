/* Room: engine/plan. Plans selections: points, masks, and slices or lists per axis. Does not
 * access items of the array. */
#include "engine/plan/select_plan.h"

#include "base/arith.h"
#include "base/heap.h"

#include <string.h>

/* ---- Points -------------------------------------------------------------------
 *
 * A list of points is sorted once by chunk and block. So is a mask that selects few items. */

static void points_chunk(const cv_select_plan *plan, int64_t k, cv_select_chunk *out)
{
    const cv_buckets *buckets = &plan->buckets[0];
    int64_t first = buckets->chunk_starts[k];
    out->chunk = buckets->blocks[first] / plan->grid->n_blocks;
    out->n_blocks = buckets->chunk_starts[k + 1] - first;
    out->spans[0].first = first;
}

/* Leaves `covers` false: a few points rarely cover a block. */
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

/* Returns the number of the item at `point`, ordered by chunk, block and position in the block. The
 * number is below 2^59 by the limits of the format. */
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

static cv_status plan_points(cv_select_plan *plan, const int64_t *points, int64_t n,
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

static cv_status plan_few(cv_select_plan *plan, cv_error *err)
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
    plan->mask = NULL;
    return group_points(plan, err);
}

/* ---- A mask of the array's shape -------------------------------------------------
 *
 * The result is in C order and blocks are not. So the plan counts once how many selected items come
 * before each line of each block: the line's rank. A block finds its positions in the result from
 * the ranks of its lines.
 *
 *     line of the array   . x . | x x . | . x        ranks 5 6 8, next line 9
 *     blocks of the last axis  0       1     2
 *
 * If few items are selected, most lines have none: such a mask is planned as points. */

/* The items of a block that are inside the array. A line of the block is along the last axis. */
typedef struct extent {
    int64_t block;                     /* number in the chunk */
    int64_t start[CV_MAX_DIMS];        /* first item in the array */
    int64_t length[CV_MAX_DIMS];       /* valid items */
    int64_t line_strides[CV_MAX_DIMS]; /* lines of the array per step; not of the last axis */
    int64_t line_length;
    int64_t n_lines;
} extent;

typedef struct line {
    int64_t index[CV_MAX_DIMS]; /* in the extent */
    const int64_t *rank;        /* selected items before the line; the next rank follows */
    int64_t number;             /* of the line in the array */
    int64_t pos;                /* byte in the block */
} line;

static int64_t count_segments(const cv_grid *grid)
{
    if (grid->ndim == 0) return 1;
    int d = grid->ndim - 1;
    int64_t before = (grid->chunk_counts[d] - 1) * grid->chunk_shape[d];
    return (grid->chunk_counts[d] - 1) * grid->block_counts[d] +
           cv_ceil_div(grid->shape[d] - before, grid->block_shape[d]);
}

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

/* Bytes per point, with the sort. A mask is planned as points if they take less than ranks. */
enum { POINT_BYTES = 2 * sizeof(cv_pick) + 3 * sizeof(int64_t) };

/* Fills ranks[line * n_segments + segment], and stores the total after the last rank. */
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

static cv_status plan_mask(cv_select_plan *plan, cv_error *err)
{
    static const cv_select_ops ops = {mask_chunk, mask_block, mask_parts};
    const cv_grid *grid = plan->grid;
    int64_t size;
    plan->n_segments = count_segments(grid);
    int64_t n_lines = grid->ndim ? grid->n_items / grid->shape[grid->ndim - 1] : 1;
    if (!cv_mul_i64(n_lines, plan->n_segments, &size) || !cv_add_i64(size, 1, &size) ||
        !cv_mul_i64(size, (int64_t)sizeof plan->ranks[0], &size))
        return cv_fail(err, CATERVA_EINVAL, -1, "the mask has too many lines");
    if (plan->n_items <= size / POINT_BYTES) return plan_few(plan, err);
    plan->ranks = cv_malloc(cv_size(size));
    if (!plan->ranks) return cv_fail_memory(err, cv_size(size), "the ranks of a mask");
    fill_ranks(plan, n_lines);
    plan->ops = &ops;
    plan->n_chunks = grid->n_chunks;
    plan->n_blocks = grid->n_chunks * grid->n_blocks;
    return CV_OK;
}

/* The items of a chunk or block are the product of the items along each axis, so everything is
 * computed one axis at a time. Slices need no memory. */

/* ---- Slices: item i is start + i * step, step >= 1 ----------------------- */

static int64_t first_behind(const cv_axis *axis, int64_t bound)
{
    return bound <= axis->start ? 0 : cv_ceil_div(bound - axis->start, axis->step);
}

static int64_t item_of(const cv_axis *axis, int64_t i)
{
    return axis->start + i * axis->step;
}

static void slice_cut(const cv_axis *axis, int64_t origin, int64_t length, cv_span *span)
{
    span->first = first_behind(axis, origin);
    span->last = cv_min_i64(axis->n, first_behind(axis, origin + length));
}

/* If the step is longer than a chunk, each item has its own chunk; else no chunk is skipped. */
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
    span->last = cv_min_i64(span->last, chunk->last); /* a block may end after its chunk */
}

/* ---- Lists -------------------------------------------------------------- */

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
    span->first = first; /* indices of buckets, for list_block */
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

/* Counts the different items of the axis in a block's span. */
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

static cv_status plan_axes(cv_select_plan *plan, cv_error *err)
{
    const cv_grid *grid = plan->grid;
    plan->ops = &axes_ops;
    plan->n_chunks = 1;
    int64_t blocks = 1; /* upper bound per touched chunk */
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

/* ---- Any kind -------------------------------------------------------------------- */

/* Replaces a backward slice by a forward one with negative buffer strides. */
static void turn_forward(cv_select_plan *plan, int d)
{
    cv_axis *axis = &plan->axes[d];
    if (axis->n == 1) axis->step = 1; /* with step 1 the plan can be a box */
    if (axis->step > 0) return;
    axis->start += (axis->n - 1) * axis->step;
    axis->step = -axis->step;
    plan->buffer_pos += (axis->n - 1) * plan->strides[d];
    plan->strides[d] = -plan->strides[d];
}

static void take_axes(cv_select_plan *plan, const cv_selection *s, const int64_t *strides)
{
    int r = 0; /* axis of the result */
    for (int d = 0; d < plan->grid->ndim; d++) {
        plan->axes[d] = s->axes[d];
        plan->strides[d] = s->axes[d].dropped ? 0 : strides[r++];
        if (!s->axes[d].list && !s->axes[d].mask) turn_forward(plan, d);
    }
}

cv_status cv_select_plan_init(cv_select_plan *plan, const cv_selection *selection,
                              const int64_t *strides, cv_watch *watch, cv_error *err)
{
    *plan = (cv_select_plan){.grid = selection->grid, .n_items = selection->n_items};
    plan->watch = watch;
    if (selection->kind == CATERVA_SELECTION_AXES) {
        take_axes(plan, selection, strides);
        return plan_axes(plan, err);
    }
    plan->strides[0] = strides[0];
    if (selection->kind == CATERVA_SELECTION_POINTS)
        return plan_points(plan, selection->points, selection->shape[0], err);
    plan->mask = selection->mask;
    return plan_mask(plan, err);
}

void cv_select_plan_free(cv_select_plan *plan)
{
    for (int d = 0; d < CV_MAX_DIMS; d++)
        if (plan->buckets[d].picks) cv_buckets_free(&plan->buckets[d]);
    cv_free(plan->ranks);
    plan->ranks = NULL;
}
