/* The plan of a selection, item by item: no chunk or block is listed twice, exactly the
 * blocks that hold a wanted item are wanted, `covers` is right, and the parts contain every
 * item of the result once. */
#include "base/arith.h"
#include "engine/plan/select_plan.h"

#include "support/check.h"
#include "support/random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { CASES = 3000, MAX_LENGTH = 14, MAX_LIST = 12, MAX_RESULT = 40000 };

/* A grid whose items are their own numbers, and one selection of it. */
typedef struct subject {
    cv_grid grid;
    caterva_selection words;
    caterva_axis axes[3];
    int64_t lists[3][MAX_LIST];
    uint8_t masks[3][MAX_LENGTH];
    int64_t points[3 * MAX_LIST];
    uint8_t mask[MAX_LENGTH * MAX_LENGTH * MAX_LENGTH];
} subject;

static void random_grid(rng *r, cv_grid *grid)
{
    int64_t shape[3];
    int32_t chunk[3], block[3];
    int ndim = rng_int(r, 0, 3);
    for (int d = 0; d < ndim; d++) {
        shape[d] = rng_int(r, 1, MAX_LENGTH);
        chunk[d] = rng_int(r, 1, (int)shape[d] + 2);
        block[d] = rng_int(r, 1, chunk[d]);
    }
    assert_int_equal(cv_grid_init(grid, ndim, shape, chunk, block, 8, NULL), CV_OK);
}

static void random_axis(rng *r, subject *s, int d)
{
    int64_t length = s->grid.shape[d];
    caterva_axis *axis = &s->axes[d];
    *axis = (caterva_axis){.kind = (caterva_axis_kind)rng_int(r, 0, 4)};
    axis->start = rng_between(r, -length, length - 1);
    if (axis->kind == CATERVA_AXIS_SLICE) {
        axis->stop = rng_one_in(r, 2) ? CATERVA_AXIS_OMIT : rng_between(r, -length, length);
        axis->step = rng_one_in(r, 2) ? -rng_int(r, 1, 6) : rng_int(r, 1, 6);
    } else if (axis->kind == CATERVA_AXIS_LIST) {
        axis->n = rng_int(r, 0, MAX_LIST);
        axis->indices = s->lists[d];
        for (int i = 0; i < axis->n; i++)
            s->lists[d][i] = rng_between(r, -length, length - 1);
    } else if (axis->kind == CATERVA_AXIS_MASK) {
        axis->n = length;
        axis->mask = s->masks[d];
        for (int i = 0; i < length; i++) s->masks[d][i] = (uint8_t)rng_one_in(r, 2);
    }
}

static void random_subject(rng *r, subject *s)
{
    random_grid(r, &s->grid);
    int ndim = s->grid.ndim;
    s->words = (caterva_selection)CATERVA_SELECTION_INIT;
    s->words.kind = (caterva_selection_kind)rng_int(r, CATERVA_SELECTION_AXES, 3);
    s->words.axes = s->axes;
    s->words.n_axes = ndim;
    s->words.points = s->points;
    s->words.n_points = rng_int(r, 0, MAX_LIST);
    s->words.mask = s->mask;
    s->words.mask_size = (size_t)s->grid.n_items;
    for (int d = 0; d < ndim; d++) random_axis(r, s, d);
    for (int i = 0; i < s->words.n_points * ndim; i++) {
        int64_t length = s->grid.shape[i % ndim];
        s->points[i] = rng_between(r, -length, length - 1);
    }
    int one_in = rng_one_in(r, 3) ? 300 : rng_int(r, 1, 9); /* few: as points */
    for (int64_t i = 0; i < s->grid.n_items; i++) s->mask[i] = (uint8_t)rng_one_in(r, one_in);
}

/* ---- The naive answer --------------------------------------------------------- */

static int64_t axis_item(const cv_axis *axis, int64_t i, int64_t length)
{
    if (axis->list) return axis->list[i] < 0 ? axis->list[i] + length : axis->list[i];
    if (!axis->mask) return axis->start + i * axis->step;
    int64_t at = -1;
    for (i++; i > 0; i -= axis->mask[at] != 0) at++;
    return at;
}

/* The array's item that is item `i` of the result. */
static int64_t naive_item(const cv_selection *s, int64_t i)
{
    const cv_grid *grid = s->grid;
    int64_t item = 0, stride = 1;
    if (s->kind == CATERVA_SELECTION_MASK) {
        for (i++; i > 0; item++) i -= s->mask[item] != 0;
        return item - 1;
    }
    for (int d = grid->ndim - 1; d >= 0; d--) {
        int64_t at;
        if (s->kind == CATERVA_SELECTION_POINTS) {
            at = s->points[i * grid->ndim + d];
            at += at < 0 ? grid->shape[d] : 0;
        } else {
            at = axis_item(&s->axes[d], i % s->axes[d].n, grid->shape[d]);
            i /= s->axes[d].n;
        }
        item += at * stride;
        stride *= grid->shape[d];
    }
    return item;
}

/* The item's position in the whole stored array, including padding: chunk by chunk, block by
 * block. In items. */
static int64_t stored_place(const cv_grid *grid, int64_t item)
{
    int64_t chunk = 0, block = 0, at = 0;
    for (int d = grid->ndim - 1; d >= 0; d--) {
        int64_t i = item % grid->shape[d];
        item /= grid->shape[d];
        chunk += i / grid->chunk_shape[d] * grid->chunk_strides[d];
        i %= grid->chunk_shape[d];
        block += i / grid->block_shape[d] * grid->block_strides[d];
        at += i % grid->block_shape[d] * grid->item_strides[d];
    }
    return (chunk * grid->chunk_bytes + block * grid->block_bytes + at) / grid->item_size;
}

/* ---- The comparison ----------------------------------------------------------- */

typedef struct walk {
    const uint8_t *block; /* stored memory of the visited block */
    uint8_t *result;
} walk;

static void copy_out(void *context, const cv_part *part)
{
    const walk *w = context;
    cv_part_copy(part, CV_IN_BLOCK, w->block, w->result);
}

/* Counts the cells of a block inside the array, and how many are selected. */
static void count_cells(const cv_grid *grid, const int64_t *stored, const uint8_t *selected,
                        int64_t *valid, int64_t *wanted)
{
    int64_t n = grid->block_bytes / grid->item_size;
    *valid = *wanted = 0;
    for (int64_t i = 0; i < n; i++) {
        *valid += stored[i] >= 0;
        *wanted += stored[i] >= 0 && selected[stored[i]];
    }
}

static void check_block(const cv_select_plan *plan, const cv_select_chunk *chunk, int64_t j,
                        int64_t *stored, const uint8_t *selected, uint8_t *seen, walk *w)
{
    const cv_grid *grid = plan->grid;
    cv_select_block block;
    plan->ops->block(plan, chunk, j, &block);
    int64_t number = chunk->chunk * grid->n_blocks + block.block;
    int64_t valid, wanted;
    assert_in_range(block.block, 0, grid->n_blocks - 1);
    assert_int_equal(seen[number]++, 0);
    stored += number * (grid->block_bytes / grid->item_size);
    count_cells(grid, stored, selected, &valid, &wanted);
    assert_int_equal(block.wanted, wanted > 0);
    if (valid != wanted) assert_false(block.covers);
    bool knows = plan->mask || plan->chunk_counts[0] > 0; /* points do not check */
    if (knows && wanted > 0) assert_int_equal(block.covers, wanted == valid);
    w->block = (const uint8_t *)stored;
    if (block.wanted) plan->ops->parts(plan, chunk, j, copy_out, w);
}

static void check_all_wanted(const cv_grid *grid, const int64_t *stored,
                             const uint8_t *selected, const uint8_t *seen)
{
    int64_t n = grid->block_bytes / grid->item_size, valid, wanted;
    for (int64_t b = 0; b < grid->n_chunks * grid->n_blocks; b++) {
        count_cells(grid, stored + b * n, selected, &valid, &wanted);
        if (wanted > 0) assert_int_equal(seen[b], 1);
    }
}

static void run_case(rng *r)
{
    static subject s;
    static int64_t result[MAX_RESULT];
    random_subject(r, &s);
    const cv_grid *grid = &s.grid;
    cv_selection selection;
    assert_int_equal(cv_selection_init(&selection, grid, &s.words, NULL), CV_OK);
    if (selection.n_items == 0) return;
    assert_true(selection.n_items <= MAX_RESULT);

    size_t cells = (size_t)(grid->n_chunks * grid->chunk_bytes / grid->item_size);
    int64_t *stored = check_alloc(cells * sizeof(*stored));
    uint8_t *selected = check_alloc((size_t)grid->n_items);
    uint8_t *seen = check_alloc((size_t)(grid->n_chunks * grid->n_blocks));
    memset(stored, -1, cells * sizeof(*stored));
    for (int64_t i = 0; i < grid->n_items; i++) stored[stored_place(grid, i)] = i;
    for (int64_t i = 0; i < selection.n_items; i++) selected[naive_item(&selection, i)] = 1;

    int64_t strides[CV_MAX_DIMS], stride = grid->item_size;
    for (int d = selection.ndim - 1; d >= 0; d--) {
        strides[d] = stride;
        stride *= selection.shape[d];
    }
    cv_select_plan plan;
    assert_int_equal(cv_select_plan_init(&plan, &selection, strides, NULL, NULL), CV_OK);
    memset(result, -1, sizeof result);
    walk w = {.result = (uint8_t *)result};
    for (int64_t k = 0; k < plan.n_chunks; k++) {
        cv_select_chunk chunk;
        plan.ops->chunk(&plan, k, &chunk);
        assert_in_range(chunk.chunk, 0, grid->n_chunks - 1);
        for (int64_t j = 0; j < chunk.n_blocks; j++)
            check_block(&plan, &chunk, j, stored, selected, seen, &w);
    }
    check_all_wanted(grid, stored, selected, seen);
    for (int64_t i = 0; i < selection.n_items; i++)
        assert_int_equal(result[i], naive_item(&selection, i));
    cv_select_plan_free(&plan);
    free(stored);
    free(selected);
    free(seen);
}

static void plans_are_what_the_naive_answer_says(void **state)
{
    rng *r = *state;
    for (int i = 0; i < CASES; i++) run_case(r);
}

/* ---- Buckets ------------------------------------------------------------------- */

/* Also for sizes that are sorted by digits; repeats keep the order of the request. */
static void buckets_keep_order(void **state)
{
    rng *r = *state;
    for (int i = 0; i < 60; i++) {
        int64_t n = rng_between(r, 1, i % 2 ? 40 : 5000);
        int64_t most = rng_one_in(r, 2) ? 50 : INT64_C(1) << rng_int(r, 6, 58);
        int64_t *numbers = check_alloc((size_t)n * sizeof(*numbers));
        cv_buckets b;
        assert_int_equal(cv_buckets_init(&b, n, NULL, NULL), CV_OK);
        for (int64_t k = 0; k < n; k++) {
            numbers[k] = rng_between(r, 0, most);
            b.picks[k] = (cv_pick){{numbers[k], k}};
        }
        cv_numbering numbering = {rng_int(r, 1, 9), rng_int(r, 1, 9)};
        assert_int_equal(cv_buckets_group(&b, numbering, NULL), CV_OK);
        assert_int_equal(b.block_starts[b.n_blocks], n);
        assert_int_equal(b.chunk_starts[b.n_chunks], b.n_blocks);
        int64_t before = -1, before_place = -1;
        for (int64_t k = 0; k < b.n_blocks; k++) {
            for (int64_t p = b.block_starts[k]; p < b.block_starts[k + 1]; p++) {
                int64_t place = b.picks[p].at[CV_IN_BUFFER];
                int64_t number =
                    b.blocks[k] * numbering.items_per_block + b.picks[p].at[CV_IN_BLOCK];
                assert_int_equal(number, numbers[place]);
                assert_true(number > before || (number == before && place > before_place));
                before = number;
                before_place = place;
            }
        }
        for (int64_t c = 0; c < b.n_chunks; c++)
            for (int64_t k = b.chunk_starts[c]; k < b.chunk_starts[c + 1]; k++)
                assert_int_equal(b.blocks[k] / numbering.blocks_per_chunk,
                                 b.blocks[b.chunk_starts[c]] / numbering.blocks_per_chunk);
        cv_buckets_free(&b);
        free(numbers);
    }
}

int main(int argc, char **argv)
{
    rng r = rng_from_seed(seed_argument(argc, argv, 1));
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(plans_are_what_the_naive_answer_says, &r),
        cmocka_unit_test_prestate(buckets_keep_order, &r),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
