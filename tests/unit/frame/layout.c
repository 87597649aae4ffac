/* Layouts: cached, evicted, forgotten; blocks stored in any order get the right bytes. */
#include "base/arith.h"

#include "frame/layout.h"
#include "made.h"
#include "scratch.h"
#include "unseal.h"

#include <caterva_store.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { CHUNK = 40, BLOCK = 10, N_BLOCKS = CHUNK / BLOCK };

static uint64_t seed;

static caterva_array *open_array(const uint8_t *bytes, size_t size)
{
    caterva_error err;
    caterva_array *array;
    CHECK_OK(caterva_frame_open(bytes, size, 0, NULL, &array, &err), err);
    return array;
}

static cv_chunk_ref ref_of(caterva_array *array, int64_t chunk)
{
    cv_source source = cv_array_source(array);
    cv_chunk_ref ref;
    assert_int_equal(cv_source_find(&source, chunk, &ref, NULL), CV_OK);
    return ref;
}

static cv_layout *get(caterva_array *array, int64_t chunk)
{
    cv_chunk_ref ref = ref_of(array, chunk);
    cv_layout *layout;
    assert_int_equal(
        cv_layout_get(array->frame->layouts, array->snapshot, &ref, &layout, NULL), CV_OK);
    assert_int_equal(layout->pos, ref.pos);
    return layout;
}

static void a_layout_is_kept(void **state)
{
    (void)state;
    size_t size;
    uint8_t *bytes = made_frame(400, CHUNK, BLOCK, &made_lz4, &size);
    caterva_array *array = open_array(bytes, size);
    cv_layout *first = get(array, 3), *second = get(array, 3), *other = get(array, 4);
    assert_ptr_equal(first, second);
    assert_ptr_not_equal(first, other);
    assert_int_equal(first->n_blocks, N_BLOCKS);
    assert_int_equal(first->header.nbytes, CHUNK * 4);

    cv_layout_cache_clear(array->frame->layouts);
    assert_int_equal(first->header.nbytes, CHUNK * 4); /* still held by this test */
    cv_layout *third = get(array, 3);
    assert_ptr_not_equal(first, third);
    cv_layout_release(first);
    cv_layout_release(second);
    cv_layout_release(other);
    cv_layout_release(third);
    cv_layout_release(NULL);
    caterva_discard(array);
    free(bytes);
}

/* Far more chunks than a cache of large layouts has slots. */
static void newcomers_throw_others_out(void **state)
{
    (void)state;
    enum { WIDE = 70000, N = 30 };
    size_t size;
    uint8_t *bytes = made_frame(N * WIDE, WIDE, 1, &made_lz4, &size);
    caterva_array *array = open_array(bytes, size);
    cv_layout *held = get(array, 0);
    for (int round = 0; round < 2; round++) {
        for (int64_t i = 0; i < N; i++) {
            cv_layout *layout = get(array, i);
            for (int64_t b = 0; b < layout->n_blocks; b += 1000)
                assert_true(layout->blocks[b].end <= layout->header.cbytes);
            cv_layout_release(layout);
        }
    }
    cv_layout *again = get(array, 0);
    assert_ptr_not_equal(held, again); /* 30 new layouts for a few slots */
    assert_int_equal(held->n_blocks, again->n_blocks);
    if (held->n_blocks > 0)
        assert_memory_equal(held->blocks, again->blocks,
                            (size_t)held->n_blocks * sizeof held->blocks[0]);
    cv_layout_release(held);
    cv_layout_release(again);
    caterva_discard(array);
    free(bytes);
}

/* If chunks are few, all layouts stay cached, wherever the chunks are in the file. */
static void those_in_use_stay(void **state)
{
    (void)state;
    enum { WIDE = 4096, N = 27 };
    size_t size;
    uint8_t *bytes = made_frame(N * WIDE, WIDE, 1, &made_lz4, &size);
    caterva_array *array = open_array(bytes, size);
    cv_layout *first[N];
    for (int64_t i = 0; i < N; i++) first[i] = get(array, i);
    for (int64_t i = 0; i < N; i++) {
        cv_layout *again = get(array, i);
        assert_ptr_equal(first[i], again);
        cv_layout_release(again);
    }
    for (int64_t i = 0; i < N; i++) cv_layout_release(first[i]);
    caterva_discard(array);
    free(bytes);
}

/* ---- Orders of blocks --------------------------------------------------------------- */

/* Stores the streams of chunk `pos` in another order, with matching block starts. */
static void reorder_blocks(uint8_t *chunk, const int *order)
{
    int32_t cbytes = (int32_t)cv_load_le32(chunk + 12), starts[N_BLOCKS], ends[N_BLOCKS];
    uint8_t *copy = check_alloc((size_t)cbytes);
    memcpy(copy, chunk, (size_t)cbytes);
    for (int i = 0; i < N_BLOCKS; i++) starts[i] = (int32_t)cv_load_le32(chunk + 32 + 4 * i);
    for (int i = 0; i < N_BLOCKS; i++) ends[i] = i + 1 < N_BLOCKS ? starts[i + 1] : cbytes;
    int32_t at = starts[0];
    for (int i = 0; i < N_BLOCKS; i++) {
        int b = order[i];
        cv_store_le32(chunk + 32 + 4 * b, (uint32_t)at);
        memcpy(chunk + at, copy + starts[b], (size_t)(ends[b] - starts[b]));
        at += ends[b] - starts[b];
    }
    assert_int_equal(at, cbytes);
    free(copy);
}

/* A frame of one chunk with streams: large steps prevent repeated and memcpyed chunks. */
static uint8_t *one_chunk(size_t *size, uint64_t *pos)
{
    geometry g = made_line(CHUNK, CHUNK, BLOCK, sizeof(int32_t));
    caterva_array *array = made_array("mem:", &g, &made_lz4, CATERVA_LAYOUT_CONTIGUOUS);
    for (int b = 0; b < N_BLOCKS; b++)
        assert_int_equal(made_write(array, b * BLOCK, (b + 1) * BLOCK, b + 1, b == 1, NULL),
                         CATERVA_OK);
    assert_int_equal(caterva_commit(array, NULL), CATERVA_OK);
    cv_layout *layout = get(array, 0);
    assert_int_equal(layout->n_blocks, N_BLOCKS); /* else this tests nothing */
    cv_layout_release(layout);
    *pos = ref_of(array, 0).pos;
    uint8_t *bytes = made_bytes(array, size);
    unseal(bytes, *size); /* they are changed by hand */
    caterva_discard(array);
    return bytes;
}

static void blocks_may_be_stored_in_any_order(void **state)
{
    (void)state;
    size_t size;
    uint64_t pos;
    uint8_t *good = one_chunk(&size, &pos), *bytes = check_alloc(size);
    rng r = rng_from_seed(seed);
    for (int i = 0; i < 200; i++) {
        int order[N_BLOCKS] = {0, 1, 2, 3};
        for (int k = N_BLOCKS - 1; k > 0; k--) {
            int other = rng_int(&r, 0, k), kept = order[k];
            order[k] = order[other];
            order[other] = kept;
        }
        memcpy(bytes, good, size);
        reorder_blocks(bytes + pos, order);
        caterva_array *array = open_array(bytes, size);
        cv_layout *layout = get(array, 0);
        int32_t total = 0;
        for (int b = 0; b < N_BLOCKS; b++)
            total += layout->blocks[b].end - layout->blocks[b].start;
        assert_int_equal(total, layout->header.cbytes - 32 - 4 * N_BLOCKS);
        cv_layout_release(layout);
        for (int k = 0; k < CHUNK; k++) {
            int b = k / BLOCK;
            assert_int_equal(made_item(array, k), b + 1 + (b == 1 ? k % BLOCK : 0));
        }
        caterva_discard(array);
    }
    free(good);
    free(bytes);
}

static void starts_outside_are_refused(void **state)
{
    (void)state;
    size_t size;
    uint64_t pos;
    uint8_t *bytes = one_chunk(&size, &pos);
    uint32_t good = cv_load_le32(bytes + pos + 36), cbytes = cv_load_le32(bytes + pos + 12);
    const uint32_t bad[] = {
        0, 31, 32 + 4 * N_BLOCKS - 1, cbytes - 3, cbytes, UINT32_MAX, INT32_MAX, 1u << 31};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        caterva_error err;
        cv_store_le32(bytes + pos + 36, bad[i]);
        caterva_array *array = open_array(bytes, size);
        cv_chunk_ref ref = ref_of(array, 0);
        cv_layout *layout;
        for (int again = 0; again < 2; again++) { /* damaged layouts are not cached */
            assert_int_equal(
                cv_layout_get(array->frame->layouts, array->snapshot, &ref, &layout, &err),
                CATERVA_ECORRUPT);
            assert_int_equal(err.position, pos);
        }
        cv_store_le32(bytes + pos + 36, good);
        assert_int_equal(
            cv_layout_get(array->frame->layouts, array->snapshot, &ref, &layout, NULL),
            CV_OK);
        cv_layout_release(layout);
        caterva_discard(array);
    }
    free(bytes);
}

/* ---- Other kinds of chunk ------------------------------------------------------------ */

static void a_repeated_item_is_kept(void **state)
{
    (void)state;
    int32_t value = 0x1234567;
    caterva_create_options o = CATERVA_CREATE_INIT;
    int64_t shape = 100;
    int32_t chunk = 10;
    caterva_array *array;
    o.ndim = 1;
    o.shape = &shape;
    o.chunk_shape = &chunk;
    o.dtype = "<i4";
    o.fill = CATERVA_FILL_VALUE;
    o.fill_value = &value;
    assert_int_equal(caterva_create("mem:", &o, &array, NULL), CATERVA_OK);
    assert_int_equal(caterva_commit(array, NULL), CATERVA_OK);
    cv_layout *layout = get(array, 9);
    assert_int_equal(layout->header.special, CV_SPECIAL_VALUE);
    assert_int_equal(layout->n_blocks, 0);
    assert_memory_equal(layout->item, &value, sizeof value);
    cv_layout_release(layout);
    assert_int_equal(made_item(array, 99), value);
    caterva_discard(array);
}

/* ---- From files, a piece at a time --------------------------------------------------- */

/* A file of one chunk of n items: 0, step, ... */
static caterva_array *reopened(const char *name, int32_t n, int32_t block, int32_t step,
                               bool use_dict)
{
    caterva_error err;
    char path[SCRATCH_PATH];
    geometry g = made_line(n, n, block, sizeof(int32_t));
    caterva_create_options o = options_for(&g, &made_lz4);
    caterva_array *array;
    o.use_dict = use_dict;
    if (use_dict) o.codec = CATERVA_CODEC_ZSTD;
    o.overwrite = 1;
    CHECK_OK(caterva_create(scratch_path(path, name), &o, &array, &err), err);
    CHECK_OK(made_write(array, 0, n, 0, step, &err), err);
    CHECK_OK(caterva_close(array, &err), err);
    CHECK_OK(caterva_open(path, NULL, &array, &err), err);
    return array;
}

static void more_block_starts_than_one_read_gets(void **state)
{
    (void)state;
    enum { MANY = 1500, WIDE = 64 };
    caterva_array *array = reopened("many-blocks", MANY * WIDE, WIDE, 1, false);
    cv_layout *layout = get(array, 0);
    assert_int_equal(layout->n_blocks, MANY);
    for (int32_t i = 0; i < MANY * WIDE; i += 777) assert_int_equal(made_item(array, i), i);
    cv_layout_release(layout);
    caterva_discard(array);
}

static void a_dictionary_is_checked_with_the_head(void **state)
{
    (void)state;
    enum { MANY = 100000 };
    caterva_array *array = reopened("dictionary", MANY, 4096, 77777, true);
    cv_layout *layout = get(array, 0);
    assert_non_null(layout->sums);
    assert_true(layout->blocks[0].start > 32 + 4 * layout->n_blocks); /* dictionary */
    for (int32_t i = 0; i < MANY; i += 7777)
        assert_int_equal(made_item(array, i), (int32_t)((uint32_t)i * 77777u));
    cv_layout_release(layout);
    caterva_discard(array);
}

static void a_long_item_is_read_behind_the_header(void **state)
{
    (void)state;
    enum { LONG = 9000 };
    caterva_error err;
    char path[SCRATCH_PATH];
    uint8_t item[LONG], got[LONG];
    int64_t start = 3, stop = 4;
    for (int i = 0; i < LONG; i++) item[i] = (uint8_t)(i % 251);
    geometry g = made_line(20, 5, 2, LONG);
    caterva_create_options o = options_for(&g, &made_lz4);
    caterva_array *array;
    o.fill = CATERVA_FILL_VALUE;
    o.fill_value = item;
    o.overwrite = 1;
    CHECK_OK(caterva_create(scratch_path(path, "long-item"), &o, &array, &err), err);
    CHECK_OK(caterva_close(array, &err), err);
    CHECK_OK(caterva_open(path, NULL, &array, &err), err);
    CHECK_OK(caterva_read(array, &start, &stop, got, sizeof got, &err), err);
    assert_memory_equal(got, item, LONG);
    caterva_discard(array);
}

/* The bytes of a whole chunk are checked from the first one on. */
static void a_chunk_that_changed_since_is_noticed(void **state)
{
    (void)state;
    size_t size;
    caterva_error err;
    uint8_t *bytes = made_frame(400, CHUNK, BLOCK, &made_lz4, &size);
    caterva_array *array = open_array(bytes, size);
    cv_chunk_ref ref = ref_of(array, 2);
    cv_layout *layout = get(array, 2);
    uint8_t *chunk = check_alloc((size_t)layout->header.cbytes);
    memcpy(chunk, bytes + ref.pos, (size_t)layout->header.cbytes);
    assert_int_equal(cv_layout_check_chunk(layout, &ref, chunk, &err), CV_OK);
    for (int32_t at = 0; at < layout->header.cbytes; at++) {
        chunk[at] ^= 0x10;
        assert_int_equal(cv_layout_check_chunk(layout, &ref, chunk, &err), CATERVA_ECORRUPT);
        assert_non_null(strstr(err.message, "chunk 2"));
        chunk[at] ^= 0x10;
    }
    cv_layout_release(layout);
    free(chunk);
    caterva_discard(array);
    free(bytes);
}

/* ---- Threads ------------------------------------------------------------------------ */

/* Headers of small chunks are parsed once if they are equal. The available space must still
 * be checked for each, and every different header must be refused. */
static void equal_headers_are_still_checked(void **state)
{
    (void)state;
    cv_error err;
    size_t size;
    uint8_t *bytes = made_frame(400, CHUNK, BLOCK, &made_lz4, &size);
    caterva_array *array = open_array(bytes, size);
    assert_true(cv_layout_is_small(&array->snapshot->grid));
    cv_layout_memo memo = {.last = NULL};
    const cv_layout *layout;
    cv_chunk_ref ref = ref_of(array, 3);
    CHECK_OK(
        cv_layout_borrow(array->frame->layouts, array->snapshot, &ref, &memo, &layout, &err),
        err);
    uint64_t cbytes = (uint64_t)layout->header.cbytes;
    for (uint64_t limit = 0; limit < cbytes; limit++) {
        ref.limit = limit > 0 ? limit : 1;
        assert_int_equal(cv_layout_borrow(array->frame->layouts, array->snapshot, &ref, &memo,
                                          &layout, &err),
                         CATERVA_ECORRUPT);
    }
    ref.limit = cbytes + 100;
    CHECK_OK(
        cv_layout_borrow(array->frame->layouts, array->snapshot, &ref, &memo, &layout, &err),
        err);

    bytes[ref.pos] = 0;         /* the version */
    for (int i = 0; i < 2; i++) /* a refused header is not cached */
        assert_int_equal(cv_layout_borrow(array->frame->layouts, array->snapshot, &ref, &memo,
                                          &layout, &err),
                         CATERVA_ECORRUPT);
    cv_layout_memo_free(&memo);
    caterva_discard(array);
    free(bytes);
}

static void *get_often(void *context)
{
    caterva_array *array = context;
    for (int i = 0; i < 20000; i++) {
        int64_t chunk = i * 7 % 10;
        cv_source source = cv_array_source(array);
        cv_chunk_ref ref;
        cv_layout *layout;
        if (cv_source_find(&source, chunk, &ref, NULL) != CV_OK) return array;
        if (cv_layout_get(array->frame->layouts, array->snapshot, &ref, &layout, NULL) !=
            CV_OK)
            return array;
        bool wrong = layout->pos != ref.pos;
        cv_layout_release(layout);
        if (wrong) return array;
        if (i % 1000 == 0) cv_layout_cache_clear(array->frame->layouts);
    }
    return NULL;
}

static void many_threads_share_the_cache(void **state)
{
    (void)state;
    size_t size;
    uint8_t *bytes = made_frame(400, CHUNK, BLOCK, &made_lz4, &size);
    caterva_array *array = open_array(bytes, size);
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, get_often, array), 0);
    for (int i = 0; i < 4; i++) {
        void *failed;
        pthread_join(threads[i], &failed);
        assert_null(failed);
    }
    caterva_discard(array);
    free(bytes);
}

int main(int argc, char **argv)
{
    seed = seed_argument(argc, argv, 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_layout_is_kept),
        cmocka_unit_test(newcomers_throw_others_out),
        cmocka_unit_test(those_in_use_stay),
        cmocka_unit_test(blocks_may_be_stored_in_any_order),
        cmocka_unit_test(starts_outside_are_refused),
        cmocka_unit_test(a_repeated_item_is_kept),
        cmocka_unit_test(more_block_starts_than_one_read_gets),
        cmocka_unit_test(a_dictionary_is_checked_with_the_head),
        cmocka_unit_test(a_long_item_is_read_behind_the_header),
        cmocka_unit_test(a_chunk_that_changed_since_is_noticed),
        cmocka_unit_test(equal_headers_are_still_checked),
        cmocka_unit_test(many_threads_share_the_cache),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
