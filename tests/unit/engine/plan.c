/* Plans: chunks and blocks of a box cover each item exactly once, and stored bytes match the
 * caller's buffer. */
#include "engine/plan/plan.h"

#include "check.h"
#include "oracle.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static uint64_t seed;

/* The stored position of item `at` (array coordinates): docs/format.md. */
static int64_t stored_item(const geometry *g, const int64_t *at, int64_t *chunk,
                           int64_t *block)
{
    int64_t inner = 0;
    *chunk = *block = 0;
    for (int d = 0; d < g->ndim; d++) {
        int64_t c = g->chunk_shape[d], b = g->block_shape[d];
        *chunk = *chunk * ((g->shape[d] + c - 1) / c) + at[d] / c;
        *block = *block * ((c + b - 1) / b) + at[d] % c / b;
        inner = inner * b + at[d] % c % b;
    }
    return inner;
}

/* Results of an exhaustive iteration over a plan, per item of the box. */
typedef struct walk {
    const geometry *g;
    const box *b;
    uint8_t *seen;
} walk;

static void see_item(const walk *w, const int64_t *at, const cv_chunk_job *chunk,
                     const cv_block_job *block, int64_t block_pos, int64_t buffer_pos)
{
    int64_t expected_chunk, expected_block, n = 0;
    int64_t inner = stored_item(w->g, at, &expected_chunk, &expected_block);
    for (int d = 0; d < w->g->ndim; d++) {
        assert_in_range(at[d], w->b->start[d], w->b->stop[d] - 1);
        n = n * (w->b->stop[d] - w->b->start[d]) + at[d] - w->b->start[d];
    }
    assert_int_equal(chunk->chunk, expected_chunk);
    assert_int_equal(block->block, expected_block);
    assert_int_equal(block_pos, inner * w->g->item_size);
    assert_int_equal(buffer_pos, n * w->g->item_size);
    assert_int_equal(w->seen[n]++, 0);
}

/* Visits every item of one block job with an odometer. The coordinates follow from the
 * block's number, not from the job. */
static void walk_block(const walk *w, const cv_plan *plan, const cv_chunk_job *chunk,
                       const cv_block_job *block)
{
    const cv_grid *grid = plan->grid;
    int64_t chunk_index[CV_MAX_DIMS], block_index[CV_MAX_DIMS], index[CV_MAX_DIMS] = {0};
    int64_t n = 1;
    cv_grid_chunk_index(grid, chunk->chunk, chunk_index);
    cv_grid_block_index(grid, block->block, block_index);
    for (int d = 0; d < grid->ndim; d++) n *= block->shape[d];
    for (int64_t i = 0; i < n; i++) {
        int64_t at[CV_MAX_DIMS], block_pos = block->block_pos, buffer_pos = block->buffer_pos;
        int64_t rest = block->block_pos;
        for (int d = 0; d < grid->ndim; d++) {
            int64_t first = rest / grid->item_strides[d];
            rest %= grid->item_strides[d];
            at[d] = chunk_index[d] * grid->chunk_shape[d] +
                    block_index[d] * grid->block_shape[d] + first + index[d];
            block_pos += index[d] * grid->item_strides[d];
            buffer_pos += index[d] * plan->buffer_strides[d];
        }
        see_item(w, at, chunk, block, block_pos, buffer_pos);
        for (int d = grid->ndim - 1; d >= 0 && ++index[d] == block->shape[d]; d--)
            index[d] = 0;
    }
}

/* Compares the job with the items that the array has in this block. */
static void check_flags(const cv_plan *plan, const cv_chunk_job *chunk,
                        const cv_block_job *job)
{
    const cv_grid *g = plan->grid;
    int64_t wanted = 1, all = 1, present = 1, rest = job->block_pos;
    bool ends = true;
    int64_t chunk_index[CV_MAX_DIMS], block_index[CV_MAX_DIMS];
    cv_grid_chunk_index(g, chunk->chunk, chunk_index);
    cv_grid_block_index(g, job->block, block_index);
    for (int d = 0; d < g->ndim; d++) {
        int64_t first = block_index[d] * g->block_shape[d]; /* in the chunk */
        int64_t end = first + g->block_shape[d];
        int64_t in_array = g->shape[d] - chunk_index[d] * g->chunk_shape[d];
        if (end > g->chunk_shape[d]) end = g->chunk_shape[d];
        if (end > in_array) end = in_array;
        wanted *= job->shape[d];
        all *= g->block_shape[d];
        present *= end - first;
        ends = ends && first + rest / g->item_strides[d] + job->shape[d] == end;
        rest %= g->item_strides[d];
    }
    assert_int_equal(job->ends, ends);
    assert_int_equal(job->whole, wanted == all);
    assert_int_equal(job->covers, wanted == present);
}

static void check_plan(const geometry *g, const box *b)
{
    cv_grid grid;
    cv_plan plan;
    assert_int_equal(cv_grid_init(&grid, g->ndim, g->shape, g->chunk_shape, g->block_shape,
                                  g->item_size, NULL),
                     CV_OK);
    assert_int_equal(cv_plan_box(&grid, b->start, b->stop, &plan, NULL), CV_OK);
    int64_t n_items = box_items(b, g->ndim);
    assert_int_equal(plan.n_items, n_items);
    if (n_items == 0) {
        assert_int_equal(plan.n_chunks, 0);
        return;
    }
    walk w = {g, b, check_alloc((size_t)n_items)};
    for (int64_t k = 0; k < plan.n_chunks; k++) {
        cv_chunk_job chunk;
        int64_t wanted = 0, present = 1;
        cv_plan_chunk(&plan, k, &chunk);
        for (int64_t j = 0; j < chunk.n_blocks; j++) {
            cv_block_job block;
            int64_t items = 1;
            cv_plan_block(&plan, &chunk, j, &block);
            walk_block(&w, &plan, &chunk, &block);
            check_flags(&plan, &chunk, &block);
            for (int d = 0; d < g->ndim; d++) items *= block.shape[d];
            wanted += items;
        }
        for (int d = 0; d < g->ndim; d++) present *= chunk.valid[d];
        assert_int_equal(cv_chunk_job_covers(&plan, &chunk), wanted == present);
    }
    for (int64_t i = 0; i < n_items; i++) assert_int_equal(w.seen[i], 1);
    free(w.seen);
}

static void every_item_is_planned_once(void **state)
{
    (void)state;
    rng r = rng_from_seed(seed);
    for (int i = 0; i < 3000; i++) {
        geometry g = random_geometry(&r, i % 10 ? 5 : CV_MAX_DIMS, 500);
        box b = random_box(&r, &g), all = whole_box(&g);
        check_plan(&g, &b);
        check_plan(&g, &all);
    }
}

static void boxes_outside_are_refused(void **state)
{
    (void)state;
    static const int64_t bad[][4] = {
        {-1, 0, 5, 6}, {0, 0, 6, 6},         {0, 3, 5, 2},         {0, 0, 5, 7},
        {0, -1, 5, 6}, {INT64_MIN, 0, 5, 6}, {0, 0, 5, INT64_MAX}, {6, 0, 6, 6}};
    const int64_t shape[] = {5, 6};
    const int32_t chunk[] = {4, 3};
    cv_grid grid;
    cv_plan plan;
    cv_error err;
    assert_int_equal(cv_grid_init(&grid, 2, shape, chunk, chunk, 4, NULL), CV_OK);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(cv_plan_box(&grid, bad[i], bad[i] + 2, &plan, &err), CATERVA_ERANGE);
        assert_non_null(strstr(err.message, "axis"));
    }
    const int64_t at_end[] = {5, 6};
    assert_int_equal(cv_plan_box(&grid, at_end, at_end, &plan, NULL), CV_OK);
    assert_int_equal(plan.n_items, 0);
}

/* An empty box over axes whose product overflows 64 bits (UBSan checks). */
static void empty_boxes_of_huge_arrays(void **state)
{
    (void)state;
    const int64_t zeros[] = {0, 0, 0, 0};
    const int32_t chunk[] = {4, 4, 4, 4};
    for (int empty = 0; empty < 4; empty++) {
        int64_t shape[] = {INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX};
        cv_grid grid;
        cv_plan plan;
        shape[empty] = 0;
        assert_int_equal(cv_grid_init(&grid, 4, shape, chunk, chunk, 8, NULL), CV_OK);
        assert_int_equal(cv_plan_box(&grid, zeros, zeros, &plan, NULL), CV_OK);
        assert_int_equal(plan.n_chunks, 0);
        assert_int_equal(cv_plan_box(&grid, zeros, shape, &plan, NULL), CV_OK);
        assert_int_equal(plan.n_items, 0);
        assert_int_equal(plan.n_chunks, 0);
    }
}

static void check_contiguous(const int64_t *start, const int64_t *stop, bool expected)
{
    const int64_t shape[] = {8, 8};
    const int32_t chunk[] = {4, 8}, block[] = {2, 8};
    cv_grid grid;
    cv_plan plan;
    assert_int_equal(cv_grid_init(&grid, 2, shape, chunk, block, 4, NULL), CV_OK);
    assert_int_equal(cv_plan_box(&grid, start, stop, &plan, NULL), CV_OK);
    assert_int_equal(cv_plan_block_contiguous(&plan), expected);
}

static void blocks_may_lie_straight_in_the_buffer(void **state)
{
    (void)state;
    check_contiguous((int64_t[]){0, 0}, (int64_t[]){8, 8}, true);
    check_contiguous((int64_t[]){1, 0}, (int64_t[]){5, 8}, true);
    check_contiguous((int64_t[]){0, 0}, (int64_t[]){8, 7}, false);
}

int main(int argc, char **argv)
{
    seed = seed_argument(argc, argv, 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_item_is_planned_once),
        cmocka_unit_test(boxes_outside_are_refused),
        cmocka_unit_test(empty_boxes_of_huge_arrays),
        cmocka_unit_test(blocks_may_lie_straight_in_the_buffer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
