/* The chunk index: entries looked up one by one equal those decoded whole, for every block of
 * the index, including the short last one. */
#include "array/array.h"
#include "frame/lookup.h"
#include "support/check.h"
#include "support/random.h"

#include <caterva_store.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

enum { CHUNKS = 40003, CHUNK = 16 };

static uint64_t seed;

/* Stored, repeated and zero chunks in a random mix. */
static caterva_array *make(rng *r, int percent_stored)
{
    int64_t shape[1] = {(int64_t)CHUNKS * CHUNK};
    int32_t chunks[1] = {CHUNK};
    caterva_create_options options = CATERVA_CREATE_INIT;
    options.ndim = 1;
    options.shape = shape;
    options.chunk_shape = chunks;
    options.dtype = "<i4";
    caterva_array *array;
    assert_int_equal(caterva_create("mem:", &options, &array, NULL), CATERVA_OK);
    for (int64_t i = 0; i < CHUNKS; i++) {
        int32_t items[CHUNK];
        if (rng_int(r, 0, 99) >= percent_stored) continue;
        rng_fill(r, items, sizeof items);
        int64_t start = i * CHUNK, stop = start + CHUNK;
        assert_int_equal(caterva_write(array, &start, &stop, items, sizeof items, NULL),
                         CATERVA_OK);
    }
    return array;
}

static void check_lookups(caterva_array *array, rng *r)
{
    void *frame;
    size_t size;
    assert_int_equal(caterva_frame_copy(array, &frame, &size, NULL), CATERVA_OK);
    caterva_array *whole;
    assert_int_equal(caterva_frame_open(frame, size, 0, NULL, &whole, NULL), CATERVA_OK);
    const cv_index *index;
    assert_int_equal(cv_snapshot_index(whole->snapshot, whole->frame->store, &index, NULL),
                     CV_OK);
    for (int round = 0; round < 12; round++) {
        caterva_array *fresh;
        assert_int_equal(caterva_frame_open(frame, size, 0, NULL, &fresh, NULL), CATERVA_OK);
        for (int i = 0; i < 10; i++) { /* the last lookups decode it whole */
            int64_t chunk = i == 0 ? CHUNKS - 1 : rng_between(r, 0, CHUNKS - 1);
            cv_chunk_ref ref, expected;
            assert_int_equal(
                cv_snapshot_find(fresh->snapshot, fresh->frame->store, chunk, &ref, NULL),
                CV_OK);
            assert_int_equal(
                cv_chunk_ref_find(whole->snapshot, index, chunk, &expected, NULL), CV_OK);
            assert_int_equal(ref.kind, expected.kind);
            assert_int_equal(ref.pos, expected.pos);
            assert_int_equal(ref.name, expected.name);
            assert_int_equal(atomic_load(&fresh->snapshot->index_ready),
                             i >= 8 || !index->pages);
        }
        caterva_close(fresh, NULL);
    }
    caterva_close(whole, NULL);
    caterva_free(frame);
}

static void lookups_equal_the_whole(void **state)
{
    (void)state;
    rng r = rng_from_seed(seed);
    const int percents[] = {1, 50, 100};
    for (int i = 0; i < 3; i++) {
        caterva_array *array = make(&r, percents[i]);
        check_lookups(array, &r);
        caterva_discard(array);
    }
}

int main(int argc, char **argv)
{
    seed = seed_argument(argc, argv, 1);
    const struct CMUnitTest tests[] = {cmocka_unit_test(lookups_equal_the_whole)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
