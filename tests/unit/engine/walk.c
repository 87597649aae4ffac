/* All users of the walk use the cache by the same rules: statistics, reductions, and writes
 * of boxes and selections find blocks that reads have cached, reads find those that
 * statistics of parts of blocks have; and the results are the same to the last digit. */
#include "caterva.h"
#include "caterva_upkeep.h"

#include "support/check.h"
#include "support/random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { SIDE = 48, N_ITEMS = SIDE * SIDE, BLOCK = 8, CHUNK = 24, N_BLOCKS = 36 };

/* A committed matrix of noise, with a cache of its own that holds all of it. */
static caterva_array *make(uint64_t seed)
{
    static const int64_t shape[] = {SIDE, SIDE}, origin[] = {0, 0};
    static const int32_t chunks[] = {CHUNK, CHUNK}, blocks[] = {BLOCK, BLOCK};
    rng random = rng_from_seed(seed);
    double *items = check_alloc(N_ITEMS * sizeof items[0]);
    caterva_error err;
    caterva_array *array;
    caterva_create_options o = CATERVA_CREATE_INIT;
    o.ndim = 2;
    o.shape = shape;
    o.chunk_shape = chunks;
    o.block_shape = blocks;
    o.dtype = "<f8";
    o.item_size = sizeof items[0];
    o.cache_bytes = 1 << 20;
    o.threads = 1;
    for (int i = 0; i < N_ITEMS; i++) /* raw blocks are not cached */
        items[i] = (double)(float)(1e-3 * (double)rng_int(&random, -1000, 1000));
    CHECK_OK(caterva_create("mem:", &o, &array, &err), err);
    CHECK_OK(caterva_write(array, origin, shape, items, N_ITEMS * sizeof items[0], &err),
             err);
    CHECK_OK(caterva_commit(array, &err), err);
    free(items);
    return array;
}

static int64_t hits(caterva_array *array)
{
    caterva_cache_info counts = CATERVA_CACHE_INFO_INIT;
    assert_int_equal(caterva_cache_describe(array, &counts, NULL), CATERVA_OK);
    return counts.hits;
}

static int64_t kept(caterva_array *array)
{
    caterva_cache_info counts = CATERVA_CACHE_INFO_INIT;
    assert_int_equal(caterva_cache_describe(array, &counts, NULL), CATERVA_OK);
    return counts.inserted;
}

/* Reads every block in part, so that all of them are cached. */
static void read_parts(caterva_array *array)
{
    caterva_error err;
    double row[SIDE];
    for (int64_t i = 0; i < SIDE; i += BLOCK) {
        int64_t start[] = {i, 0}, stop[] = {i + 1, SIDE};
        CHECK_OK(caterva_read(array, start, stop, row, sizeof row, &err), err);
    }
}

static caterva_stats statistics(caterva_array *array, const caterva_reduce_options *options)
{
    caterva_error err;
    caterva_stats stats;
    memset(&stats, 0, sizeof stats);
    stats.struct_size = sizeof stats;
    CHECK_OK(caterva_statistics(array, options, &stats, &err), err);
    return stats;
}

static void statistics_find_blocks(void **state)
{
    (void)state;
    caterva_array *array = make(1);
    caterva_stats before = statistics(array, NULL);
    assert_int_equal(kept(array), 0); /* wanted whole, and once */
    read_parts(array);
    assert_int_equal(kept(array), N_BLOCKS);
    int64_t found = hits(array);
    caterva_stats after = statistics(array, NULL);
    assert_int_equal(hits(array) - found, N_BLOCKS);
    assert_memory_equal(&before, &after, sizeof before);
    assert_int_equal(caterva_close(array, NULL), CATERVA_OK);
}

static void statistics_leave_parts(void **state)
{
    (void)state;
    static const caterva_axis axes[] = {
        {.kind = CATERVA_AXIS_SLICE,
         .start = CATERVA_AXIS_OMIT,
         .stop = CATERVA_AXIS_OMIT,
         .step = 2},
        {.kind = CATERVA_AXIS_SLICE,
         .start = CATERVA_AXIS_OMIT,
         .stop = CATERVA_AXIS_OMIT,
         .step = 3}};
    caterva_array *array = make(2);
    caterva_selection every = CATERVA_SELECTION_INIT;
    every.kind = CATERVA_SELECTION_AXES;
    every.axes = axes;
    every.n_axes = 2;
    caterva_reduce_options o = CATERVA_REDUCE_INIT;
    o.selection = &every;
    caterva_stats first = statistics(array, &o);
    assert_int_equal(kept(array), N_BLOCKS);
    int64_t found = hits(array);
    read_parts(array);
    assert_int_equal(hits(array) - found, N_BLOCKS);
    caterva_stats second = statistics(array, &o);
    assert_memory_equal(&first, &second, sizeof first);
    assert_int_equal(caterva_close(array, NULL), CATERVA_OK);
}

/* Also if only some blocks are cached, among others. */
static void reductions_find_blocks(void **state)
{
    (void)state;
    static const int axes[] = {0};
    static const int64_t start[] = {3, 20}, stop[] = {30, 29};
    caterva_array *array = make(3);
    caterva_error err;
    double first[SIDE], second[SIDE], part[27 * 9];
    caterva_reduce_options o = CATERVA_REDUCE_INIT;
    o.axes = axes;
    o.n_axes = 1;
    CHECK_OK(caterva_reduce(array, CATERVA_REDUCTION_SUM, &o, first, sizeof first, &err),
             err);
    CHECK_OK(caterva_read(array, start, stop, part, sizeof part, &err), err);
    int64_t found = hits(array), n = kept(array);
    assert_true(n > 0 && n < N_BLOCKS);
    CHECK_OK(caterva_reduce(array, CATERVA_REDUCTION_SUM, &o, second, sizeof second, &err),
             err);
    assert_int_equal(hits(array) - found, n);
    assert_memory_equal(first, second, sizeof first);
    assert_int_equal(caterva_close(array, NULL), CATERVA_OK);
}

/* Writes one item of each block; the rest of the block comes from the cache. */
static void scattered_writes_find_blocks(void **state)
{
    (void)state;
    caterva_array *array = make(4);
    caterva_error err;
    int64_t points[N_BLOCKS * 2];
    double values[N_BLOCKS], all[N_ITEMS], now[N_ITEMS];
    static const int64_t origin[] = {0, 0}, shape[] = {SIDE, SIDE};
    for (int i = 0; i < N_BLOCKS; i++) {
        points[2 * i] = i / 6 * BLOCK + 3;
        points[2 * i + 1] = i % 6 * BLOCK + 5;
        values[i] = i;
    }
    CHECK_OK(caterva_read(array, origin, shape, all, sizeof all, &err), err);
    read_parts(array);
    int64_t found = hits(array), n = kept(array);
    caterva_selection selection = CATERVA_SELECTION_INIT;
    selection.kind = CATERVA_SELECTION_POINTS;
    selection.points = points;
    selection.n_points = N_BLOCKS;
    caterva_buffer buffer = CATERVA_BUFFER_INIT;
    buffer.data = values;
    buffer.size = sizeof values;
    CHECK_OK(caterva_write_selection(array, &selection, &buffer, &err), err);
    assert_int_equal(hits(array) - found, N_BLOCKS);
    assert_int_equal(kept(array), n); /* the stored contents of dirty blocks are not cached */
    for (int i = 0; i < N_BLOCKS; i++) all[points[2 * i] * SIDE + points[2 * i + 1]] = i;
    CHECK_OK(caterva_read(array, origin, shape, now, sizeof now, &err), err);
    assert_memory_equal(all, now, sizeof all);
    assert_int_equal(caterva_close(array, NULL), CATERVA_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(statistics_find_blocks),
        cmocka_unit_test(statistics_leave_parts),
        cmocka_unit_test(reductions_find_blocks),
        cmocka_unit_test(scattered_writes_find_blocks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
