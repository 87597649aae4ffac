/* Uncommitted changes: dirty blocks are counted, found, flushed when over the budget, dropped
 * when a chunk is covered, and rebuilt into chunks of old and new items, for every kind of
 * chunk. */
#include "engine/plan/plan.h"
#include "engine/write/flush.h"
#include "engine/write/write.h"

#include "frame/txn.h"
#include "made.h"

#include <caterva_upkeep.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { N = 4000, CHUNK = 100, BLOCK = 10 };

static uint64_t seed;

static caterva_array *new_array(int64_t n, const pipeline *p)
{
    geometry g = made_line(n, CHUNK, BLOCK, sizeof(int32_t));
    caterva_array *array = made_array("mem:", &g, p, CATERVA_LAYOUT_CONTIGUOUS);
    assert_int_equal(made_write(array, 0, n, 0, 1, NULL), CATERVA_OK);
    assert_int_equal(caterva_commit(array, NULL), CATERVA_OK);
    return array;
}

static int64_t bytes_of(int n_chunks, int n_blocks)
{
    int64_t table =
        (int64_t)sizeof(cv_dirty_chunk) + CHUNK / BLOCK * (int64_t)sizeof(uint8_t *);
    return n_chunks * table + n_blocks * BLOCK * 4;
}

static void dirty_blocks_are_counted(void **state)
{
    (void)state;
    caterva_array *array = new_array(N, &made_lz4);
    cv_pending *p = array->pending;
    assert_null(cv_pending_state(p));
    assert_null(cv_pending_find(p, 0));
    assert_int_equal(made_write(array, 5, 25, 7, 1, NULL), CATERVA_OK); /* 3 blocks */
    assert_non_null(cv_pending_state(p));
    assert_int_equal(p->bytes, bytes_of(1, 3));
    cv_dirty_chunk *dirty = cv_pending_find(p, 0);
    assert_non_null(dirty);
    assert_int_equal(dirty->n_dirty, 3);
    for (int b = 0; b < CHUNK / BLOCK; b++) assert_int_equal(dirty->blocks[b] != NULL, b < 3);

    assert_int_equal(made_write(array, 8, 12, 7, 1, NULL), CATERVA_OK); /* the same ones */
    assert_int_equal(p->bytes, bytes_of(1, 3));
    cv_pending_remove_block(p, dirty, 1);
    assert_int_equal(p->bytes, bytes_of(1, 2));
    assert_int_equal(made_item(array, 11), 11);
    cv_pending_drop(p, 0);
    cv_pending_drop(p, 0);
    cv_pending_drop(p, 39);
    assert_int_equal(p->bytes, 0);
    assert_int_equal(p->n_chunks, 0);
    assert_null(cv_pending_state(p));
    assert_int_equal(made_item(array, 5), 5);
    caterva_discard(array);
}

static void a_covered_chunk_is_not_dirty(void **state)
{
    (void)state;
    caterva_array *array = new_array(N, &made_lz4);
    cv_pending *p = array->pending;
    p->threads = 1;
    assert_int_equal(made_write(array, 105, 110, 7, 1, NULL), CATERVA_OK);
    assert_non_null(cv_pending_find(p, 1));
    assert_int_equal(made_write(array, 100, 200, 9000, 1, NULL), CATERVA_OK);
    assert_null(cv_pending_find(p, 1));
    assert_int_equal(p->bytes, 0);
    assert_int_equal(made_item(array, 107), 9007);
    assert_int_equal(caterva_commit(array, NULL), CATERVA_OK);
    assert_int_equal(made_item(array, 107), 9007);
    caterva_discard(array);
}

/* Chunks too small to be split among threads, each written alone. */
static void whole_chunks_wait_for_each_other(void **state)
{
    (void)state;
    enum { MANY = 2000, EDGE = 30 };
    caterva_array *array = new_array(MANY * CHUNK + EDGE, &made_lz4);
    cv_pending *p = array->pending;
    p->threads = 2;
    assert_true(cv_pending_queues(p));
    assert_int_equal(made_write(array, 55, 56, -1, 0, NULL), CATERVA_OK); /* in part */
    assert_int_equal(made_write(array, 105, 110, -1, 0, NULL), CATERVA_OK);
    assert_int_equal(p->n_whole, 0);
    assert_int_equal(made_write(array, 100, 200, 9000, 1, NULL), CATERVA_OK);
    assert_int_equal(p->n_whole, 1);
    assert_int_equal(made_item(array, 107), 9007);
    cv_pending_remove_block(p, cv_pending_find(p, 1), 3);
    assert_int_equal(p->n_whole, 0);
    cv_pending_drop(p, 1);

    int n_batches = 0;
    for (int i = 1; i <= MANY; i++) { /* the last one is cut by the shape: it does not wait */
        size_t before = p->n_whole;
        int64_t at = (int64_t)i * CHUNK, end = i < MANY ? at + CHUNK : at + EDGE;
        assert_int_equal(made_write(array, at, end, -i, 0, NULL), CATERVA_OK);
        if (p->n_whole == 0) n_batches++;
        if (p->n_whole == 0) assert_true((before + 1) * CHUNK * 4 >= 2 * 128 * 1024);
        if (p->n_whole > 0) assert_int_equal(p->n_whole, before + (i < MANY));
        assert_int_equal(p->n_chunks, p->n_whole + 1); /* the one written in part stays */
    }
    assert_int_equal(n_batches, (int64_t)MANY * CHUNK * 4 / (2 * 128 * 1024));
    for (int i = 1; i <= MANY; i++) assert_int_equal(made_item(array, i * CHUNK + 29), -i);
    assert_int_equal(caterva_commit(array, NULL), CATERVA_OK);
    assert_int_equal(p->n_chunks + p->n_whole, 0);
    for (int i = 1; i <= MANY; i++) assert_int_equal(made_item(array, i * CHUNK + 29), -i);
    assert_int_equal(made_item(array, 55), -1);
    assert_int_equal(made_item(array, 56), 56);
    caterva_discard(array);
}

static void many_chunks_are_found(void **state)
{
    (void)state;
    enum { MANY = 3000 };
    caterva_array *array = new_array(MANY * CHUNK, &made_lz4);
    cv_pending *p = array->pending;
    for (int i = 0; i < MANY; i++) {
        int64_t at = (int64_t)(i * 7 % MANY) * CHUNK + 50;
        assert_int_equal(made_write(array, at, at + 1, -i, 0, NULL), CATERVA_OK);
    }
    assert_int_equal(p->n_chunks, MANY);
    assert_int_equal(p->bytes, bytes_of(MANY, MANY));
    for (int i = 0; i < MANY; i++) {
        cv_dirty_chunk *dirty = cv_pending_find(p, i);
        assert_non_null(dirty);
        assert_int_equal(dirty->chunk, i);
    }
    for (int i = 0; i < MANY; i += 2) cv_pending_drop(p, i);
    for (int i = 0; i < MANY; i++) assert_int_equal(cv_pending_find(p, i) != NULL, i % 2);
    assert_int_equal(caterva_commit(array, NULL), CATERVA_OK);
    assert_int_equal(p->n_chunks, 0);
    assert_int_equal(p->bytes, 0);
    for (int i = 0; i < MANY; i++) {
        int64_t chunk = i * 7 % MANY;
        int32_t old = (int32_t)(chunk * CHUNK + 50);
        assert_int_equal(made_item(array, chunk * CHUNK + 50), chunk % 2 ? -i : old);
        assert_int_equal(made_item(array, chunk * CHUNK + 51), old + 1);
    }
    caterva_discard(array);
}

static void the_budget_is_kept(void **state)
{
    (void)state;
    caterva_array *array = new_array(N, &made_lz4);
    cv_pending *p = array->pending;
    rng r = rng_from_seed(seed);
    p->budget = bytes_of(3, 9);
    for (int i = 0; i < 500; i++) {
        int64_t at = rng_between(&r, 0, N - 6);
        assert_int_equal(made_write(array, at, at + 5, (int32_t)at, 1, NULL), CATERVA_OK);
        assert_true(p->bytes <= p->budget);
    }
    assert_true(cv_txn_pending(p->txn)); /* something was flushed before the commit */
    for (int64_t i = 0; i < N; i += 37) assert_int_equal(made_item(array, i), i);
    assert_int_equal(caterva_rollback(array, NULL), CATERVA_OK);
    assert_int_equal(p->bytes, 0);
    assert_null(cv_pending_state(p));
    for (int64_t i = 0; i < N; i += 37) assert_int_equal(made_item(array, i), i);
    caterva_discard(array);
}

static void a_flush_keeps_what_is_seen(void **state)
{
    (void)state;
    caterva_array *array = new_array(N, &made_lz4);
    cv_pending *p = array->pending;
    assert_int_equal(made_write(array, 195, 305, -5, 0, NULL), CATERVA_OK);
    assert_int_equal(cv_pending_flush(p, NULL), CV_OK);
    assert_int_equal(p->n_chunks, 0);
    assert_int_equal(cv_pending_flush(p, NULL), CV_OK);
    assert_int_equal(made_item(array, 194), 194);
    assert_int_equal(made_item(array, 195), -5);
    assert_int_equal(made_item(array, 304), -5);
    assert_int_equal(made_item(array, 305), 305);
    assert_int_equal(caterva_rollback(array, NULL), CATERVA_OK);
    assert_int_equal(made_item(array, 195), 195);
    caterva_discard(array);
}

/* ---- Kinds of chunks ------------------------------------------------------------------ */

static cv_chunk_ref ref_of(caterva_array *array, int64_t chunk)
{
    cv_chunk_ref ref;
    assert_int_equal(cv_txn_find(array->pending->txn, chunk, &ref, NULL), CV_OK);
    return ref;
}

static void zeros_and_repeats_take_no_space(void **state)
{
    (void)state;
    caterva_array *array = new_array(N, &made_lz4);
    caterva_chunk_info info = CATERVA_CHUNK_INFO_INIT;
    assert_int_equal(made_write(array, 0, 100, 0, 0, NULL), CATERVA_OK);
    assert_int_equal(cv_pending_flush(array->pending, NULL), CV_OK);
    assert_int_equal(ref_of(array, 0).kind, CV_REF_ZEROS);
    assert_int_equal(made_write(array, 100, 200, 77, 0, NULL), CATERVA_OK);
    for (int64_t at = 200; at < 300; at += 20) /* block by block */
        assert_int_equal(made_write(array, at, at + 20, 0, 0, NULL), CATERVA_OK);
    assert_int_equal(caterva_commit(array, NULL), CATERVA_OK);
    assert_int_equal(ref_of(array, 2).kind, CV_REF_ZEROS);
    assert_int_equal(caterva_chunk_describe(array, 1, &info, NULL), CATERVA_OK);
    assert_int_equal(info.kind, CATERVA_CHUNK_VALUE);
    assert_int_equal(info.stored_bytes, 36);
    assert_int_equal(made_item(array, 150), 77);
    assert_int_equal(made_item(array, 250), 0);
    assert_int_equal(made_item(array, 300), 300);
    caterva_discard(array);
}

/* Random small writes, flushes and commits over chunks of every fill and codec,
 * against plain memory. */
static void check_rebuilding(rng *r, const pipeline *p, caterva_fill fill, int use_dict)
{
    enum { SMALL = 350 };
    static const uint8_t nan[] = {0, 0, 0xc0, 0x7f}; /* as stored */
    int32_t expected[SMALL], value = 0x01020304;
    geometry g = made_line(SMALL, CHUNK, BLOCK, sizeof(int32_t));
    caterva_create_options o = options_for(&g, p);
    caterva_array *array;
    o.fill = fill;
    o.fill_value = &value;
    o.use_dict = use_dict;
    assert_int_equal(caterva_create("mem:", &o, &array, NULL), CATERVA_OK);
    for (int i = 0; i < SMALL; i++) {
        expected[i] = fill == CATERVA_FILL_VALUE ? value : 0;
        if (fill == CATERVA_FILL_NAN) memcpy(&expected[i], &nan, sizeof nan);
    }
    for (int step = 0; step < 60; step++) {
        int64_t start = rng_between(r, 0, SMALL - 1);
        int64_t stop = rng_between(r, start + 1, rng_one_in(r, 3) ? SMALL : start + 1);
        int32_t first = rng_int(r, 0, 3) * 1000000, by = rng_int(r, 0, 2) * 12345678;
        assert_int_equal(made_write(array, start, stop, first, by, NULL), CATERVA_OK);
        for (int64_t i = start; i < stop; i++)
            expected[i] = first + (int32_t)((uint32_t)(i - start) * (uint32_t)by);
        if (rng_one_in(r, 4)) assert_int_equal(cv_pending_flush(array->pending, NULL), CV_OK);
        if (rng_one_in(r, 6)) assert_int_equal(caterva_commit(array, NULL), CATERVA_OK);
        int32_t got[SMALL];
        int64_t zero = 0, end = SMALL;
        assert_int_equal(caterva_read(array, &zero, &end, got, sizeof got, NULL), CATERVA_OK);
        assert_memory_equal(got, expected, sizeof got);
    }
    caterva_discard(array);
}

static void chunks_of_every_kind_are_rebuilt(void **state)
{
    (void)state;
    rng r = rng_from_seed(seed);
    for (int fill = CATERVA_FILL_ZEROS; fill <= CATERVA_FILL_VALUE; fill++) {
        for (int i = 0; i < 15; i++) {
            pipeline p = random_pipeline(&r, sizeof(int32_t));
            check_rebuilding(&r, &p, (caterva_fill)fill, 0);
        }
        pipeline zstd = {
            .codec = CATERVA_CODEC_ZSTD, .level = 3, .filters = {CATERVA_FILTER_SHUFFLE}};
        check_rebuilding(&r, &zstd, (caterva_fill)fill, 1);
    }
}

/* A float of a kind that has a pipeline of its own, see choose_pipeline: long matches, few
 * digits, few that are not zero, noise. */
static float float_of_kind(rng *r, int kind, int64_t i)
{
    switch (kind) {
    case 0: return (float)(i / 8 % 19);
    case 1: return (float)rng_int(r, 4000, 4040) / 4;
    case 2: return rng_one_in(r, 20) ? (float)rng_int(r, 1, 1 << 24) / 7 : 0;
    default: return (float)rng_int(r, 1, 1 << 30) / 3;
    }
}

static void check_floats(caterva_array *array, const float *expected, int64_t n)
{
    size_t size = (size_t)n * sizeof expected[0];
    float *got = check_alloc(size);
    int64_t zero = 0;
    assert_int_equal(caterva_read(array, &zero, &n, got, size, NULL), CATERVA_OK);
    assert_memory_equal(got, expected, size);
    free(got);
}

/* Default arrays: blocks written later join chunks that chose their pipeline. */
static void chunks_that_chose_are_rebuilt(void **state)
{
    (void)state;
    enum { FLOATS = 512, LONG_CHUNK = 64 * FLOATS, ALL = 5 * LONG_CHUNK / 2 };
    rng r = rng_from_seed(seed);
    geometry g = made_line(ALL, LONG_CHUNK, FLOATS, sizeof(float));
    const pipeline unset = {.codec = CATERVA_CODEC_DEFAULT};
    float *expected = check_alloc(ALL * sizeof expected[0]);
    for (int run = 0; run < 12; run++) {
        caterva_array *array;
        caterva_create_options o = options_for(&g, &unset);
        o.dtype = "<f4";
        assert_int_equal(caterva_create("mem:", &o, &array, NULL), CATERVA_OK);
        memset(expected, 0, ALL * sizeof expected[0]);
        for (int step = 0; step < 8; step++) {
            int kind = (run + step) % 4;
            bool whole = step == 0 || rng_one_in(&r, 4);
            int64_t start = whole ? 0 : rng_between(&r, 0, ALL - 1);
            int64_t stop = whole ? ALL : rng_between(&r, start + 1, ALL);
            for (int64_t i = start; i < stop; i++) expected[i] = float_of_kind(&r, kind, i);
            size_t size = (size_t)(stop - start) * sizeof expected[0];
            assert_int_equal(
                caterva_write(array, &start, &stop, expected + start, size, NULL),
                CATERVA_OK);
            if (rng_one_in(&r, 2)) assert_int_equal(caterva_commit(array, NULL), CATERVA_OK);
            check_floats(array, expected, ALL);
        }
        caterva_discard(array);
    }
    free(expected);
}

/* ---- Damage ---------------------------------------------------------------------------- */

/* A write over part of a damaged block fails and leaves no dirty block of it; a write over
 * the whole chunk repairs it. */
static void a_damaged_block_does_not_stay_dirty(void **state)
{
    (void)state;
    size_t size;
    const pipeline zlib = {.codec = CATERVA_CODEC_ZLIB, .level = 5};
    uint8_t *bytes = made_frame(300, CHUNK, BLOCK, &zlib, &size);
    caterva_array *array = made_faulty(made_memory(bytes, size), CATERVA_DURABILITY_NONE);
    cv_chunk_ref ref = ref_of(array, 1);
    memset(bytes + ref.pos + 32, 0xff, 40); /* its block starts */
    caterva_discard(array);
    array = made_faulty(made_memory(bytes, size), CATERVA_DURABILITY_NONE);
    assert_int_equal(made_write(array, 105, 107, 1, 1, NULL), CATERVA_ECORRUPT);
    const cv_dirty_chunk *dirty = cv_pending_find(array->pending, 1);
    for (int b = 0; dirty && b < CHUNK / BLOCK; b++) assert_null(dirty->blocks[b]);
    assert_int_equal(made_write(array, 5, 7, -1, 0, NULL), CATERVA_OK);
    assert_int_equal(caterva_commit(array, NULL), CATERVA_OK);
    assert_int_equal(made_item(array, 5), -1);
    assert_int_equal(made_write(array, 100, 200, 9, 1, NULL), CATERVA_OK);
    assert_int_equal(caterva_commit(array, NULL), CATERVA_OK);
    assert_int_equal(made_item(array, 150), 59);
    caterva_discard(array);
    free(bytes);
}

int main(int argc, char **argv)
{
    seed = seed_argument(argc, argv, 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dirty_blocks_are_counted),
        cmocka_unit_test(a_covered_chunk_is_not_dirty),
        cmocka_unit_test(whole_chunks_wait_for_each_other),
        cmocka_unit_test(many_chunks_are_found),
        cmocka_unit_test(the_budget_is_kept),
        cmocka_unit_test(a_flush_keeps_what_is_seen),
        cmocka_unit_test(zeros_and_repeats_take_no_space),
        cmocka_unit_test(chunks_of_every_kind_are_rebuilt),
        cmocka_unit_test(chunks_that_chose_are_rebuilt),
        cmocka_unit_test(a_damaged_block_does_not_stay_dirty),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
