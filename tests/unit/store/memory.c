/* Unit: store/memory. Segments never move, gaps and regrown bytes are zero, views stay valid
 * beside a writer, borrowed memory is read-only. */
#include "store/memory.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Where the first two segments end. */
enum { SEGMENT_0 = 65536, SEGMENT_1 = 3 * 65536 };

static cv_store *new_memory(void)
{
    cv_store *store;
    assert_int_equal(cv_store_memory_create(&store, NULL), CV_OK);
    return store;
}

static uint8_t pattern(uint64_t pos) { return (uint8_t)(pos * 31 + (pos >> 8) * 7 + 1); }

static uint8_t *pattern_bytes(uint64_t pos, size_t size)
{
    uint8_t *bytes = malloc(size);
    assert_non_null(bytes);
    for (size_t i = 0; i < size; i++) bytes[i] = pattern(pos + i);
    return bytes;
}

static cv_status write_pattern(cv_store *store, uint64_t pos, size_t size)
{
    uint8_t *bytes = pattern_bytes(pos, size);
    cv_status status = cv_store_write(store, CV_FRAME_OBJECT, pos, bytes, size, NULL);
    free(bytes);
    return status;
}

static bool has_pattern(const uint8_t *bytes, uint64_t pos, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (bytes[i] != pattern(pos + i)) return false;
    return true;
}

static uint64_t size_of(cv_store *store)
{
    uint64_t size;
    assert_int_equal(cv_store_size(store, CV_FRAME_OBJECT, &size, NULL), CV_OK);
    return size;
}

static void test_flags_and_publish(void **state)
{
    (void)state;
    cv_store *store = new_memory();
    assert_true(store->writable && store->in_memory);
    assert_false(store->published || store->has_chunk_objects);
    assert_int_equal(cv_store_publish(store, true, NULL), CV_OK);
    assert_true(store->published);
    assert_int_equal(cv_store_sync(store, CV_FRAME_OBJECT, NULL), CV_OK);
    assert_int_equal(cv_store_remove(store, 3, NULL), CV_OK);
    assert_int_equal(cv_store_remove(store, CV_FRAME_OBJECT, NULL), CATERVA_EINVAL);
    assert_int_equal(cv_store_replace(store, "x", 1, true, NULL), CATERVA_EINVAL);
    assert_int_equal(cv_store_write(store, 3, 0, "x", 1, NULL), CATERVA_ENOTFOUND);
    cv_store_close(store);
}

static void test_bytes_across_segments(void **state)
{
    (void)state;
    enum { SIZE = 700000 };
    cv_store *store = new_memory();
    uint8_t *back = malloc(SIZE);
    for (size_t pos = 0; pos < SIZE; pos += 7000)
        assert_int_equal(write_pattern(store, pos, 7000), CV_OK);
    assert_int_equal(size_of(store), SIZE);
    assert_int_equal(cv_store_read(store, CV_FRAME_OBJECT, 0, back, SIZE, NULL), CV_OK);
    assert_true(has_pattern(back, 0, SIZE));

    const size_t ends[] = {SEGMENT_0, SEGMENT_1};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(cv_store_read(store, CV_FRAME_OBJECT, ends[i] - 3, back, 7, NULL),
                         CV_OK);
        assert_true(has_pattern(back, ends[i] - 3, 7));
    }
    free(back);
    cv_store_close(store);
}

static void test_views_lie_inside_one_segment(void **state)
{
    (void)state;
    cv_store *store = new_memory();
    write_pattern(store, 0, SEGMENT_1 + 10);
    const uint8_t *first = cv_store_view(store, CV_FRAME_OBJECT, 0, SEGMENT_0);
    assert_non_null(first);
    assert_true(has_pattern(first, 0, SEGMENT_0));
    assert_null(cv_store_view(store, CV_FRAME_OBJECT, 0, SEGMENT_0 + 1));
    assert_null(cv_store_view(store, CV_FRAME_OBJECT, SEGMENT_0 - 1, 2));
    assert_non_null(cv_store_view(store, CV_FRAME_OBJECT, SEGMENT_0, 2));
    assert_non_null(cv_store_view(store, CV_FRAME_OBJECT, SEGMENT_1, 10));
    assert_null(cv_store_view(store, CV_FRAME_OBJECT, SEGMENT_1, 11));
    assert_null(cv_store_view(store, CV_FRAME_OBJECT, UINT64_MAX, 2));
    assert_null(cv_store_view(store, 0, 0, 2));

    write_pattern(store, SEGMENT_1 + 10, 1 << 20);
    assert_ptr_equal(cv_store_view(store, CV_FRAME_OBJECT, 0, SEGMENT_0), first);
    assert_true(has_pattern(first, 0, SEGMENT_0));
    cv_store_close(store);
}

static void test_past_the_end(void **state)
{
    (void)state;
    cv_store *store = new_memory();
    cv_error err;
    uint8_t bytes[8];
    write_pattern(store, 0, 100);
    const struct {
        uint64_t pos;
        size_t size;
    } bad[] = {{100, 1}, {95, 6}, {UINT64_MAX, 8}, {UINT64_MAX - 7, 8}, {1 << 30, 1}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(
            cv_store_read(store, CV_FRAME_OBJECT, bad[i].pos, bytes, bad[i].size, &err),
            CATERVA_ECORRUPT);
        assert_int_equal(err.position, 100);
    }
    assert_int_equal(cv_store_read(store, CV_FRAME_OBJECT, 100, bytes, 0, NULL), CV_OK);
    cv_store_close(store);
}

static void expect_zeros(cv_store *store, uint64_t pos, size_t size)
{
    uint8_t *bytes = malloc(size);
    memset(bytes, 1, size);
    assert_int_equal(cv_store_read(store, CV_FRAME_OBJECT, pos, bytes, size, NULL), CV_OK);
    for (size_t i = 0; i < size; i++) assert_int_equal(bytes[i], 0);
    free(bytes);
}

static void test_gaps_and_regrown_bytes_are_zero(void **state)
{
    (void)state;
    cv_store *store = new_memory();
    write_pattern(store, 1000000, 10);
    assert_int_equal(size_of(store), 1000010);
    expect_zeros(store, 0, 1000000);

    write_pattern(store, 0, 1000000);
    assert_int_equal(cv_store_truncate(store, CV_FRAME_OBJECT, 50000, NULL), CV_OK);
    assert_int_equal(size_of(store), 50000);
    assert_null(cv_store_view(store, CV_FRAME_OBJECT, 50000, 1));
    write_pattern(store, 1000000, 1);
    expect_zeros(store, 50000, 950000);

    assert_int_equal(cv_store_truncate(store, CV_FRAME_OBJECT, 2000000, NULL), CV_OK);
    expect_zeros(store, 1000001, 999999);
    uint8_t kept[50000];
    cv_store_read(store, CV_FRAME_OBJECT, 0, kept, sizeof kept, NULL);
    assert_true(has_pattern(kept, 0, sizeof kept));
    cv_store_close(store);
}

static void test_absurd_positions_are_refused(void **state)
{
    (void)state;
    cv_store *store = new_memory();
    write_pattern(store, 0, 10);
    assert_int_equal(cv_store_write(store, CV_FRAME_OBJECT, UINT64_MAX, "xy", 2, NULL),
                     CATERVA_ENOMEM);
    assert_int_equal(cv_store_write(store, CV_FRAME_OBJECT, UINT64_C(1) << 60, "xy", 2, NULL),
                     CATERVA_ENOMEM);
    assert_int_equal(cv_store_truncate(store, CV_FRAME_OBJECT, UINT64_MAX, NULL),
                     CATERVA_ENOMEM);
    assert_int_equal(size_of(store), 10);
    assert_int_equal(cv_store_write(store, CV_FRAME_OBJECT, 1 << 20, NULL, 0, NULL), CV_OK);
    assert_int_equal(size_of(store), 10);
    cv_store_close(store);
}

/* ---- Borrowed ----------------------------------------------------------- */

static void test_borrowed(void **state)
{
    (void)state;
    uint8_t *bytes = pattern_bytes(0, 200000), back[10];
    cv_store *store;
    cv_error err;
    assert_int_equal(cv_store_memory_borrow(bytes, 200000, &store, NULL), CV_OK);
    assert_true(store->published && store->in_memory && !store->writable);
    assert_int_equal(size_of(store), 200000);
    assert_ptr_equal(cv_store_view(store, CV_FRAME_OBJECT, 5, 199995), bytes + 5);
    assert_null(cv_store_view(store, CV_FRAME_OBJECT, 5, 199996));
    assert_null(cv_store_view(store, CV_FRAME_OBJECT, UINT64_MAX, 2));
    assert_int_equal(cv_store_read(store, CV_FRAME_OBJECT, 199990, back, 10, NULL), CV_OK);
    assert_true(has_pattern(back, 199990, 10));
    assert_int_equal(cv_store_read(store, CV_FRAME_OBJECT, 199991, back, 10, &err),
                     CATERVA_ECORRUPT);
    assert_int_equal(err.position, 200000);
    assert_int_equal(cv_store_write(store, CV_FRAME_OBJECT, 0, "x", 1, NULL),
                     CATERVA_EREADONLY);
    assert_int_equal(cv_store_truncate(store, CV_FRAME_OBJECT, 0, NULL), CATERVA_EREADONLY);
    cv_store_close(store);
    free(bytes);

    assert_int_equal(cv_store_memory_borrow(NULL, 0, &store, NULL), CV_OK);
    assert_int_equal(cv_store_read(store, CV_FRAME_OBJECT, 0, back, 1, NULL),
                     CATERVA_ECORRUPT);
    cv_store_close(store);
}

/* ---- Threads ------------------------------------------------------------ */

enum { STEP = 1000, STEPS = 3000 };

typedef struct growth {
    cv_store *store;
    atomic_int committed; /* steps that readers may read */
    atomic_int wrong;
} growth;

/* Keeps the first view of each step and checks all of them repeatedly. */
static void *watch_views(void *context)
{
    growth *g = context;
    static _Thread_local const uint8_t *views[STEPS];
    memset(views, 0, sizeof views);
    int seen;
    do {
        seen = atomic_load_explicit(&g->committed, memory_order_acquire);
        for (int i = 0; i < seen; i += 1 + seen / 50) {
            uint64_t pos = (uint64_t)i * STEP;
            const uint8_t *view = cv_store_view(g->store, CV_FRAME_OBJECT, pos, STEP);
            if (views[i] && views[i] != view) atomic_fetch_add(&g->wrong, 1);
            views[i] = view;
            uint8_t copy[STEP];
            if (!view) cv_store_read(g->store, CV_FRAME_OBJECT, pos, copy, STEP, NULL);
            if (!has_pattern(view ? view : copy, pos, STEP)) atomic_fetch_add(&g->wrong, 1);
        }
    } while (seen < STEPS);
    return NULL;
}

static void test_views_beside_a_writer(void **state)
{
    (void)state;
    growth g = {.store = new_memory()};
    pthread_t readers[3];
    for (int i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&readers[i], NULL, watch_views, &g), 0);
    for (int i = 0; i < STEPS; i++) {
        assert_int_equal(write_pattern(g.store, (uint64_t)i * STEP, STEP), CV_OK);
        atomic_store_explicit(&g.committed, i + 1, memory_order_release);
    }
    for (int i = 0; i < 3; i++) pthread_join(readers[i], NULL);
    assert_int_equal(g.wrong, 0);
    cv_store_close(g.store);
}

typedef struct stripe {
    cv_store *store;
    int number;
} stripe;

enum { STRIPES = 4 };

static void *write_stripe(void *context)
{
    const stripe *s = context;
    for (int i = STEPS - 1 - s->number; i >= 0; i -= STRIPES)
        write_pattern(s->store, (uint64_t)i * STEP, STEP);
    return NULL;
}

static void test_disjoint_writes_in_parallel(void **state)
{
    (void)state;
    cv_store *store = new_memory();
    pthread_t threads[STRIPES];
    stripe stripes[STRIPES];
    for (int i = 0; i < STRIPES; i++) {
        stripes[i] = (stripe){store, i};
        assert_int_equal(pthread_create(&threads[i], NULL, write_stripe, &stripes[i]), 0);
    }
    for (int i = 0; i < STRIPES; i++) pthread_join(threads[i], NULL);

    assert_int_equal(size_of(store), STEP * STEPS);
    uint8_t *all = malloc(STEP * STEPS);
    cv_store_read(store, CV_FRAME_OBJECT, 0, all, STEP * STEPS, NULL);
    assert_true(has_pattern(all, 0, STEP * STEPS));
    free(all);
    cv_store_close(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_flags_and_publish),
        cmocka_unit_test(test_bytes_across_segments),
        cmocka_unit_test(test_views_lie_inside_one_segment),
        cmocka_unit_test(test_past_the_end),
        cmocka_unit_test(test_gaps_and_regrown_bytes_are_zero),
        cmocka_unit_test(test_absurd_positions_are_refused),
        cmocka_unit_test(test_borrowed),
        cmocka_unit_test(test_views_beside_a_writer),
        cmocka_unit_test(test_disjoint_writes_in_parallel),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
