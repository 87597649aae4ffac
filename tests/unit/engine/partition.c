/* The chosen partition is always valid, close to its targets, and keeps what was given. */
#include "base/grid.h"
#include "engine/plan/partition.h"

#include "random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static uint64_t seed;

typedef struct choice {
    int32_t chunk[CV_MAX_DIMS], block[CV_MAX_DIMS];
    cv_grid grid;
} choice;

static choice choose(int ndim, const int64_t *shape, int64_t item_size)
{
    choice c;
    assert_int_equal(
        cv_partition_choose(ndim, shape, item_size, NULL, NULL, c.chunk, c.block, NULL),
        CV_OK);
    assert_int_equal(cv_grid_init(&c.grid, ndim, shape, c.chunk, c.block, item_size, NULL),
                     CV_OK);
    return c;
}

static void a_cube_gets_cubes(void **state)
{
    (void)state;
    const int64_t shape[] = {1000, 1000, 1000};
    choice c = choose(3, shape, 4);
    assert_in_range(c.grid.block_bytes, 16 * 1024, 64 * 1024);
    assert_in_range(c.grid.chunk_bytes, 1 << 20, 8 << 20);
    for (int d = 0; d < 3; d++) {
        assert_true(c.block[d] * 2 >= c.block[2] && c.block[d] <= c.block[2] * 2);
        assert_true(c.chunk[d] * 2 >= c.chunk[2] && c.chunk[d] <= c.chunk[2] * 2);
        assert_int_equal(c.chunk[d] % c.block[d], 0);
    }
}

static void thin_arrays_are_not_wasted_on(void **state)
{
    (void)state;
    const int64_t shape[] = {3, 1000000};
    choice c = choose(2, shape, 8);
    assert_true(c.chunk[0] <= 3 && c.block[0] <= 3);
    assert_in_range(c.grid.block_bytes, 12 * 1024, 64 * 1024);

    const int64_t small[] = {7, 5};
    c = choose(2, small, 8);
    assert_int_equal(c.grid.n_chunks, 1);
    assert_true(c.chunk[0] <= 7 && c.chunk[1] <= 5);
}

/* Up to 8 MiB: slabs of at most 256 KiB, as long as the array, in equal parts. */
static void small_arrays_get_slabs(void **state)
{
    (void)state;
    const int64_t field[] = {721, 1440}, cube[] = {64, 64, 64}, line[] = {1000000},
                  pages[] = {12, 300, 300}, tiny[] = {1, 30, 40};
    choice c = choose(2, field, 4);
    assert_int_equal(c.block[0], 43); /* 17 parts: 45 rows would fit, the last had 1 */
    assert_int_equal(c.block[1], 1440);
    assert_int_equal(c.grid.n_chunks, 1);
    c = choose(2, field, 8);
    assert_int_equal(c.chunk[0], 374); /* 17 blocks of 22 rows: half of it */
    assert_int_equal(c.chunk[1], 1440);
    c = choose(3, cube, 4);
    assert_int_equal(c.block[0], 16);
    assert_int_equal(c.block[1] * c.block[2], 64 * 64);
    c = choose(1, line, 8);
    assert_int_equal(c.block[0], 32259);
    assert_int_equal(c.chunk[0], 16 * 32259);
    c = choose(3, pages, 4);
    assert_int_equal(c.block[0], 1);
    assert_int_equal(c.block[1], 150);
    c = choose(3, tiny, 4);
    assert_int_equal(c.grid.n_blocks, 1);
}

/* One more item, or an axis that will grow: cubes of 32 KiB. */
static void others_keep_cubes(void **state)
{
    (void)state;
    const int64_t line[] = {(8 << 20) + 1}, limit[] = {8 << 20}, growing[] = {0, 64, 64};
    assert_int_equal(choose(1, limit, 1).block[0], 256 * 1024);
    assert_int_equal(choose(1, line, 1).block[0], 32 * 1024);
    assert_in_range(choose(3, growing, 4).grid.block_bytes, 16 * 1024, 32 * 1024);
}

static void extremes_work(void **state)
{
    (void)state;
    const int64_t empty[] = {0, 5, 0}, vast[] = {INT64_C(1) << 38};
    choice c = choose(0, NULL, 4);
    assert_int_equal(c.grid.n_chunks, 1);
    c = choose(3, empty, 4);
    assert_int_equal(c.grid.n_chunks, 0);
    for (int d = 0; d < 3; d++) assert_true(c.chunk[d] >= 1 && c.block[d] >= 1);
    c = choose(1, vast, 1);
    assert_in_range(c.grid.chunk_bytes, 1 << 20, 8 << 20);
    c = choose(1, empty, CV_MAX_BLOCK_BYTES);
    assert_int_equal(c.block[0], 1);
    int64_t many[CV_MAX_DIMS];
    for (int d = 0; d < CV_MAX_DIMS; d++) many[d] = 2;
    c = choose(CV_MAX_DIMS, many, 8);
    assert_in_range(c.grid.block_bytes, 8, 256 * 1024);
}

static void what_is_given_is_kept(void **state)
{
    (void)state;
    const int64_t shape[] = {1000, 2000};
    const int32_t given_chunk[] = {100, 30}, given_block[] = {33, 7};
    int32_t chunk[2], block[2];
    assert_int_equal(
        cv_partition_choose(2, shape, 4, given_chunk, given_block, chunk, block, NULL),
        CV_OK);
    assert_memory_equal(chunk, given_chunk, sizeof chunk);
    assert_memory_equal(block, given_block, sizeof block);

    assert_int_equal(cv_partition_choose(2, shape, 4, given_chunk, NULL, chunk, block, NULL),
                     CV_OK);
    assert_memory_equal(chunk, given_chunk, sizeof chunk);
    assert_true(block[0] >= 1 && block[0] <= 100 && block[1] >= 1 && block[1] <= 30);

    assert_int_equal(cv_partition_choose(2, shape, 4, NULL, given_block, chunk, block, NULL),
                     CV_OK);
    assert_memory_equal(block, given_block, sizeof block);
    assert_true(chunk[0] >= 33 && chunk[1] >= 7);
}

static void what_cannot_be_is_refused(void **state)
{
    (void)state;
    const int64_t shape[] = {1000, 2000}, negative[] = {5, -1};
    const int32_t zero[] = {10, 0}, small[] = {10, 10}, large[] = {20, 10};
    int32_t chunk[17], block[17];
    cv_error err;
    assert_int_equal(cv_partition_choose(2, negative, 4, NULL, NULL, chunk, block, &err),
                     CATERVA_EINVAL);
    assert_int_equal(cv_partition_choose(2, shape, 4, zero, NULL, chunk, block, NULL),
                     CATERVA_EINVAL);
    assert_int_equal(cv_partition_choose(2, shape, 4, NULL, zero, chunk, block, NULL),
                     CATERVA_EINVAL);
    assert_int_equal(cv_partition_choose(2, shape, 4, small, large, chunk, block, NULL),
                     CATERVA_EINVAL);
    assert_int_equal(cv_partition_choose(2, shape, 0, NULL, NULL, chunk, block, NULL),
                     CATERVA_EINVAL);
    assert_int_equal(cv_partition_choose(2, shape, INT64_MAX, NULL, NULL, chunk, block, NULL),
                     CATERVA_EINVAL);
    assert_int_equal(cv_partition_choose(17, shape, 4, NULL, NULL, chunk, block, NULL),
                     CATERVA_EINVAL);
    assert_int_equal(cv_partition_choose(-1, shape, 4, NULL, NULL, chunk, block, NULL),
                     CATERVA_EINVAL);
}

/* Shapes within the format's limits always get a valid partition. */
static void random_shapes_get_valid_partitions(void **state)
{
    (void)state;
    rng r = rng_from_seed(seed);
    for (int i = 0; i < 5000; i++) {
        int64_t shape[CV_MAX_DIMS], room = INT64_C(1) << 40;
        int ndim = rng_int(&r, 0, CV_MAX_DIMS);
        int64_t item_size =
            rng_one_in(&r, 4) ? rng_between(&r, 1, 1 << 20) : rng_between(&r, 1, 16);
        room /= item_size;
        for (int d = 0; d < ndim; d++) {
            shape[d] = rng_between(&r, 0, 1) ? rng_between(&r, 0, room < 100 ? room : 100)
                                             : rng_between(&r, 1, room);
            if (shape[d] > 0) room /= shape[d];
            if (room < 1) room = 1;
        }
        choice c = choose(ndim, shape, item_size);
        for (int d = 0; d < ndim; d++) {
            assert_true(c.block[d] <= c.chunk[d]);
            if (shape[d] > 0) assert_true(c.chunk[d] <= shape[d]); /* 0: will grow */
        }
        int64_t size = item_size;
        for (int d = 0; d < ndim; d++) size *= shape[d];
        int64_t most = size > 0 && size <= 8 << 20 ? 256 * 1024 : 32 * 1024;
        assert_true(c.grid.block_bytes <= (item_size > most ? item_size : most));
        assert_true(c.grid.chunk_bytes <=
                    (item_size > 32 * 1024 ? 8 * item_size + (8 << 20) : 8 << 20));
    }
}

int main(int argc, char **argv)
{
    seed = seed_argument(argc, argv, 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_cube_gets_cubes),
        cmocka_unit_test(thin_arrays_are_not_wasted_on),
        cmocka_unit_test(small_arrays_get_slabs),
        cmocka_unit_test(others_keep_cubes),
        cmocka_unit_test(extremes_work),
        cmocka_unit_test(what_is_given_is_kept),
        cmocka_unit_test(what_cannot_be_is_refused),
        cmocka_unit_test(random_shapes_get_valid_partitions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
