/* The grid: worked examples, its laws for random shapes, and every limit of the format from
 * both sides. */
#include "base/arith.h"
#include "base/grid.h"

#include "oracle.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static uint64_t seed;

static cv_status init_1d(cv_grid *g, int64_t shape, int32_t chunk, int32_t block,
                         int64_t item)
{
    return cv_grid_init(g, 1, &shape, &chunk, &block, item, NULL);
}

/* The drawing in grid.h. */
static void the_drawn_example(void **state)
{
    (void)state;
    cv_grid g;
    const int64_t shape[] = {5, 5};
    const int32_t chunk[] = {4, 3}, block[] = {3, 2};
    assert_int_equal(cv_grid_init(&g, 2, shape, chunk, block, 8, NULL), CV_OK);
    assert_int_equal(g.n_chunks, 4);
    assert_int_equal(g.n_blocks, 4);
    assert_int_equal(g.n_all_blocks, 9);
    assert_int_equal(g.n_items, 25);
    assert_int_equal(g.total_bytes, 200);
    assert_int_equal(g.ext_chunk_shape[0], 6);
    assert_int_equal(g.ext_chunk_shape[1], 4);
    assert_int_equal(g.chunk_bytes, 24 * 8);
    assert_int_equal(g.block_bytes, 6 * 8);
    assert_int_equal(g.chunk_strides[0], 2);
    assert_int_equal(g.block_strides[0], 2);
    assert_int_equal(g.item_strides[0], 16);
    assert_int_equal(g.item_strides[1], 8);
}

static void no_dimensions_are_one_item(void **state)
{
    (void)state;
    cv_grid g;
    assert_int_equal(cv_grid_init(&g, 0, NULL, NULL, NULL, 300, NULL), CV_OK);
    assert_int_equal(g.n_items, 1);
    assert_int_equal(g.n_chunks, 1);
    assert_int_equal(g.n_blocks, 1);
    assert_int_equal(g.n_all_blocks, 1);
    assert_int_equal(g.chunk_bytes, 300);
    assert_int_equal(g.total_bytes, 300);
}

static void an_empty_axis_empties_the_array(void **state)
{
    (void)state;
    cv_grid g;
    const int64_t shape[] = {INT64_MAX, 0, INT64_MAX};
    const int32_t chunk[] = {4, 0, 5}, block[] = {2, 0, 5};
    assert_int_equal(cv_grid_init(&g, 3, shape, chunk, block, 8, NULL), CV_OK);
    assert_int_equal(g.n_items, 0);
    assert_int_equal(g.n_chunks, 0);
    assert_int_equal(g.n_all_blocks, 0);
    assert_int_equal(g.total_bytes, 0);
    assert_int_equal(g.chunk_shape[1], 1); /* a stored 0 is read as 1 */
    assert_int_equal(g.block_shape[1], 1);
    assert_int_equal(g.chunk_bytes, 4 * 1 * 5 * 8);
}

/* ---- Refusals ------------------------------------------------------------------- */

static void bad_shapes_are_named(void **state)
{
    (void)state;
    cv_grid g;
    cv_error err;
    const int64_t shape[] = {5, -1};
    const int32_t chunk[] = {4, 3}, block[] = {3, 2};
    assert_int_equal(cv_grid_init(&g, 2, shape, chunk, block, 8, &err), CATERVA_EINVAL);
    assert_non_null(strstr(err.message, "shape[1] is -1"));
    assert_int_equal(init_1d(&g, 5, 0, 0, 1), CATERVA_EINVAL);
    assert_int_equal(init_1d(&g, 5, 3, 0, 1), CATERVA_EINVAL);
    assert_int_equal(init_1d(&g, 0, 0, 1, 1), CATERVA_EINVAL); /* block above chunk */
    assert_int_equal(init_1d(&g, 5, -3, 1, 1), CATERVA_EINVAL);
    assert_int_equal(init_1d(&g, 0, -3, -3, 1), CATERVA_EINVAL);
    assert_int_equal(init_1d(&g, 5, 3, 4, 1), CATERVA_EINVAL);
    assert_int_equal(init_1d(&g, 5, 7, 7, 1), CV_OK); /* a chunk may exceed the shape */
    assert_int_equal(cv_grid_init(&g, -1, shape, chunk, block, 8, NULL), CATERVA_EINVAL);
    assert_int_equal(cv_grid_init(&g, 17, shape, chunk, block, 8, NULL), CATERVA_EINVAL);
}

static void limits_of_the_format(void **state)
{
    (void)state;
    cv_grid g;
    assert_int_equal(init_1d(&g, 5, 3, 3, 0), CATERVA_EINVAL);
    assert_int_equal(init_1d(&g, 5, 3, 3, -4), CATERVA_EINVAL);
    assert_int_equal(init_1d(&g, 5, 1, 1, CV_MAX_BLOCK_BYTES), CV_OK);
    assert_int_equal(init_1d(&g, 5, 1, 1, CV_MAX_BLOCK_BYTES + 1), CATERVA_EINVAL);
    assert_int_equal(init_1d(&g, 5, INT32_MAX, (int32_t)CV_MAX_BLOCK_BYTES + 1, 1),
                     CATERVA_EINVAL);
    assert_int_equal(init_1d(&g, 5, (int32_t)CV_MAX_CHUNK_BYTES, 1, 1), CV_OK);
    assert_int_equal(init_1d(&g, 5, (int32_t)CV_MAX_CHUNK_BYTES + 1, 1, 1), CATERVA_EINVAL);
    assert_int_equal(init_1d(&g, CV_MAX_CHUNKS, 1, 1, 1), CV_OK);
    assert_int_equal(init_1d(&g, CV_MAX_CHUNKS + 1, 1, 1, 1), CATERVA_EINVAL);
    /* Rounded up to whole blocks, the chunk is too large; by itself it is not. */
    assert_int_equal(
        init_1d(&g, 5, (int32_t)CV_MAX_CHUNK_BYTES, (int32_t)CV_MAX_BLOCK_BYTES - 1, 1),
        CATERVA_EINVAL);
    assert_int_equal(init_1d(&g, INT64_MAX, INT32_MAX - 32, 1, 2), CATERVA_EINVAL);
}

static void products_that_leave_64_bits(void **state)
{
    (void)state;
    cv_grid g;
    cv_error err;
    int64_t shape[CV_MAX_DIMS];
    int32_t ones[CV_MAX_DIMS], large[CV_MAX_DIMS];
    for (int d = 0; d < CV_MAX_DIMS; d++) {
        shape[d] = INT64_C(1) << 40;
        ones[d] = 1;
        large[d] = 1 << 30;
    }
    assert_int_equal(cv_grid_init(&g, 16, shape, ones, ones, 8, &err), CATERVA_EINVAL);
    assert_non_null(strstr(err.message, "64 bits"));
    assert_int_equal(cv_grid_init(&g, 16, shape, large, ones, 8, &err), CATERVA_EINVAL);
    assert_non_null(strstr(err.message, "64 bits"));
    shape[7] = 0; /* no items, but chunks of that size are too large anyway */
    assert_int_equal(cv_grid_init(&g, 16, shape, ones, ones, 8, NULL), CV_OK);
    assert_int_equal(cv_grid_init(&g, 16, shape, large, ones, 8, NULL), CATERVA_EINVAL);
}

/* ---- Laws ----------------------------------------------------------------------- */

static void check_laws(const cv_grid *g)
{
    int64_t n_chunks = 1, n_blocks = 1, index[CV_MAX_DIMS];
    for (int d = 0; d < g->ndim; d++) {
        assert_true(g->chunk_counts[d] * g->chunk_shape[d] >= g->shape[d]);
        assert_true((g->chunk_counts[d] - 1) * g->chunk_shape[d] < g->shape[d] ||
                    g->shape[d] == 0);
        assert_int_equal(g->ext_chunk_shape[d] % g->block_shape[d], 0);
        assert_true(g->ext_chunk_shape[d] - g->chunk_shape[d] < g->block_shape[d]);
        n_chunks *= g->chunk_counts[d];
        n_blocks *= g->block_counts[d];
    }
    assert_int_equal(g->n_chunks, n_chunks);
    assert_int_equal(g->n_blocks, n_blocks);
    assert_int_equal(g->chunk_bytes, g->n_blocks * g->block_bytes);
    assert_int_equal(g->total_bytes, g->n_items * g->item_size);
    for (int64_t i = 0; i < n_chunks; i++) {
        int64_t back = 0;
        cv_grid_chunk_index(g, i, index);
        for (int d = 0; d < g->ndim; d++) {
            assert_in_range(index[d], 0, g->chunk_counts[d] - 1);
            back += index[d] * g->chunk_strides[d];
        }
        assert_int_equal(back, i);
    }
    for (int64_t i = 0; i < n_blocks; i++) {
        int64_t back = 0;
        cv_grid_block_index(g, i, index);
        for (int d = 0; d < g->ndim; d++) back += index[d] * g->block_strides[d];
        assert_int_equal(back, i);
    }
}

static void laws_hold_for_random_shapes(void **state)
{
    (void)state;
    rng r = rng_from_seed(seed);
    for (int i = 0; i < 2000; i++) {
        geometry made = random_geometry(&r, CV_MAX_DIMS, 2000);
        cv_grid g;
        assert_int_equal(cv_grid_init(&g, made.ndim, made.shape, made.chunk_shape,
                                      made.block_shape, made.item_size, NULL),
                         CV_OK);
        check_laws(&g);
    }
}

/* Any numbers give a status, and never an overflow (UBSan checks). */
static void any_numbers_get_an_answer(void **state)
{
    (void)state;
    static const int64_t edges[] = {0,         1, 2, 255, 65536, INT32_MAX, INT64_MAX / 2,
                                    INT64_MAX, -1};
    rng r = rng_from_seed(seed);
    int good = 0;
    for (int i = 0; i < 200000; i++) {
        int64_t shape[CV_MAX_DIMS], item = edges[rng_int(&r, 0, 5)];
        int32_t chunk[CV_MAX_DIMS], block[CV_MAX_DIMS];
        int ndim = rng_int(&r, 0, CV_MAX_DIMS);
        for (int d = 0; d < ndim; d++) {
            shape[d] = edges[rng_int(&r, 0, 8)];
            chunk[d] = (int32_t)edges[rng_int(&r, 0, 5)];
            block[d] = rng_one_in(&r, 2) ? chunk[d] : (int32_t)edges[rng_int(&r, 0, 5)];
        }
        cv_grid g;
        good += cv_grid_init(&g, ndim, shape, chunk, block, item, NULL) == CV_OK;
    }
    assert_true(good > 1000);
}

int main(int argc, char **argv)
{
    seed = seed_argument(argc, argv, 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_drawn_example),
        cmocka_unit_test(no_dimensions_are_one_item),
        cmocka_unit_test(an_empty_axis_empties_the_array),
        cmocka_unit_test(bad_shapes_are_named),
        cmocka_unit_test(limits_of_the_format),
        cmocka_unit_test(products_that_leave_64_bits),
        cmocka_unit_test(laws_hold_for_random_shapes),
        cmocka_unit_test(any_numbers_get_an_answer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
