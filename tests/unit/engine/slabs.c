/* Slabs tile the copied box, cut no new chunk, stay within the memory limit, and decode as
 * little as that allows. */
#include "engine/plan/partition.h"

#include "check.h"
#include "oracle.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static uint64_t seed;

static cv_grid grid_of(const geometry *g)
{
    cv_grid grid;
    cv_error err;
    CHECK_OK(cv_grid_init(&grid, g->ndim, g->shape, g->chunk_shape, g->block_shape,
                          g->item_size, &err),
             err);
    return grid;
}

/* Blocks of `from` (or chunks) that the box [start, stop) touches: by definition, axis by
 * axis. */
static int64_t count_units(const cv_slab_request *r, const int64_t *start,
                           const int64_t *stop)
{
    int64_t n = 1;
    for (int d = 0; d < r->to->ndim; d++) {
        int64_t touched = 0, last = -1;
        for (int64_t x = start[d] + r->shift[d]; x < stop[d] + r->shift[d]; x++) {
            int64_t chunk = x / r->from->chunk_shape[d];
            int64_t block = x % r->from->chunk_shape[d] / r->from->block_shape[d];
            int64_t unit = r->whole_chunks ? chunk : chunk * 100000 + block;
            touched += unit != last;
            last = unit;
        }
        n *= touched;
    }
    return n;
}

static int64_t count_decoded(const cv_slab_request *r, const cv_slabs *slabs)
{
    int64_t n = 0;
    for (int64_t k = 0; k < slabs->n_slabs; k++) {
        int64_t start[CV_MAX_DIMS], stop[CV_MAX_DIMS];
        cv_slabs_get(slabs, k, start, stop);
        n += count_units(r, start, stop);
    }
    return n;
}

/* Every item of the region once, in slabs of whole chunks, none too large. */
static void check_tiling(const cv_slab_request *r, const cv_slabs *slabs)
{
    const cv_grid *to = r->to;
    int64_t covered = 0, region = 1, chunk_items = 1;
    for (int d = 0; d < to->ndim; d++) {
        region *= r->stop[d] - r->start[d];
        chunk_items *= to->chunk_shape[d] < r->stop[d] - r->start[d]
                           ? to->chunk_shape[d]
                           : r->stop[d] - r->start[d];
    }
    for (int64_t k = 0; k < slabs->n_slabs; k++) {
        int64_t start[CV_MAX_DIMS], stop[CV_MAX_DIMS], items = 1;
        cv_slabs_get(slabs, k, start, stop);
        for (int d = 0; d < to->ndim; d++) {
            assert_int_equal((start[d] - r->start[d]) % to->chunk_shape[d], 0);
            assert_true(stop[d] == r->stop[d] ||
                        (stop[d] - r->start[d]) % to->chunk_shape[d] == 0);
            assert_true(start[d] < stop[d] && stop[d] <= r->stop[d]);
            items *= stop[d] - start[d];
        }
        assert_true(items * to->item_size <= slabs->n_bytes);
        assert_true(items * to->item_size <= r->memory || items <= chunk_items);
        covered += items;
    }
    assert_int_equal(covered, region);
}

static void slabs_tile_what_is_copied(void **state)
{
    (void)state;
    rng random = rng_from_seed(seed);
    for (int i = 0; i < 4000; i++) {
        geometry from = random_geometry(&random, 4, 3000), to = from;
        box b = random_box(&random, &from);
        int64_t zeros[CV_MAX_DIMS] = {0};
        for (int d = 0; d < to.ndim; d++) {
            to.shape[d] = b.stop[d] - b.start[d];
            to.chunk_shape[d] = rng_int(&random, 1, 9);
            to.block_shape[d] = rng_int(&random, 1, to.chunk_shape[d]);
        }
        cv_grid from_grid = grid_of(&from), to_grid = grid_of(&to);
        cv_slab_request request = {
            .to = &to_grid,
            .from = &from_grid,
            .shift = b.start,
            .start = zeros,
            .stop = to.shape,
            .whole_chunks = rng_one_in(&random, 3),
            .memory = rng_between(&random, -5, 20000),
            .enough = rng_between(&random, 0, 20000),
        };
        cv_slabs slabs, chunks;
        cv_slabs_choose(&request, &slabs);
        if (box_items(&b, to.ndim) == 0) {
            assert_int_equal(slabs.n_slabs, 0);
            continue;
        }
        check_tiling(&request, &slabs);
        int64_t decoded = count_decoded(&request, &slabs);
        request.memory = 0; /* must not be worse than chunk by chunk */
        cv_slabs_choose(&request, &chunks);
        assert_int_equal(chunks.n_slabs, to_grid.n_chunks);
        assert_true(decoded <= count_decoded(&request, &chunks));
    }
}

static cv_slab_request request_for(const cv_grid *from, const cv_grid *to, int64_t memory)
{
    static const int64_t zeros[CV_MAX_DIMS];
    return (cv_slab_request){.to = to,
                             .from = from,
                             .shift = zeros,
                             .start = zeros,
                             .stop = to->shape,
                             .memory = memory};
}

/* Planes to columns: a slab of columns as wide as the blocks, not one column. */
static void a_transposition_decodes_each_block_once(void **state)
{
    (void)state;
    const int64_t shape[] = {400, 400, 400};
    const int32_t planes[] = {1, 400, 400}, blocks[] = {1, 50, 50};
    const int32_t columns[] = {400, 10, 10}, column_blocks[] = {100, 5, 5};
    cv_grid from, to;
    cv_slabs slabs;
    assert_int_equal(cv_grid_init(&from, 3, shape, planes, blocks, 4, NULL), CV_OK);
    assert_int_equal(cv_grid_init(&to, 3, shape, columns, column_blocks, 4, NULL), CV_OK);
    cv_slab_request request = request_for(&from, &to, 8 << 20);
    cv_slabs_choose(&request, &slabs);
    assert_int_equal(count_decoded(&request, &slabs), 400 * 8 * 8);
    assert_true(slabs.n_bytes <= 8 << 20);
}

/* The same chunks in both: nothing to save, so a slab has the minimum size. */
static void the_bound_is_not_a_goal(void **state)
{
    (void)state;
    const int64_t shape[] = {1000, 1000};
    const int32_t chunk[] = {100, 100}, block[] = {10, 10};
    cv_grid grid;
    cv_slabs slabs;
    assert_int_equal(cv_grid_init(&grid, 2, shape, chunk, block, 4, NULL), CV_OK);
    cv_slab_request request = request_for(&grid, &grid, INT64_MAX);
    request.enough = 100000;
    cv_slabs_choose(&request, &slabs);
    assert_int_equal(slabs.n_bytes, 160000);
}

/* Axes whose length is near the limit of 64 bits. */
static void long_axes(void **state)
{
    (void)state;
    const int64_t shape[] = {INT64_C(1) << 58};
    const int32_t chunk[] = {2047 << 20}, block[] = {1 << 20}, other[] = {2000000011};
    cv_grid from, to;
    cv_slabs slabs;
    assert_int_equal(cv_grid_init(&from, 1, shape, other, block, 1, NULL), CV_OK);
    assert_int_equal(cv_grid_init(&to, 1, shape, chunk, block, 1, NULL), CV_OK);
    cv_slab_request request = request_for(&from, &to, INT64_MAX);
    request.enough = INT64_MAX;
    cv_slabs_choose(&request, &slabs);
    assert_int_equal(slabs.n_slabs, 1);
    request.memory = 0;
    cv_slabs_choose(&request, &slabs);
    assert_int_equal(slabs.n_bytes, chunk[0]);
}

int main(int argc, char **argv)
{
    seed = seed_argument(argc, argv, 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slabs_tile_what_is_copied),
        cmocka_unit_test(a_transposition_decodes_each_block_once),
        cmocka_unit_test(the_bound_is_not_a_goal),
        cmocka_unit_test(long_axes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
