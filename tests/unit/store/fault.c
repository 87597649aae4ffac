/* Unit: store/fault. Faults hit the operation for which they were armed and no other, and the
 * crash images equal those derived by hand from the same journal. */
#include "scratch.h"
#include "store/directory.h"
#include "support/fault.h"
#include "store/memory.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static cv_error error;

static cv_store *wrap(cv_store *inner)
{
    cv_store *store;
    memset(&error, 0, sizeof error);
    assert_int_equal(cv_store_fault_create(inner, &store, &error), CV_OK);
    return store;
}

static cv_store *new_fault(void)
{
    cv_store *inner;
    assert_int_equal(cv_store_memory_create(&inner, &error), CV_OK);
    return wrap(inner);
}

static cv_status put(cv_store *store, uint64_t pos, const char *text)
{
    return cv_store_write(store, CV_FRAME_OBJECT, pos, text, strlen(text), &error);
}

static cv_status sync_frame(cv_store *store)
{
    return cv_store_sync(store, CV_FRAME_OBJECT, &error);
}

static void expect_bytes(cv_store *store, const char *text)
{
    char back[64] = {0};
    uint64_t size;
    assert_int_equal(cv_store_size(store, CV_FRAME_OBJECT, &size, &error), CV_OK);
    assert_int_equal(size, strlen(text));
    assert_int_equal(cv_store_read(store, CV_FRAME_OBJECT, 0, back, (size_t)size, &error),
                     CV_OK);
    assert_string_equal(back, text);
}

/* ---- Faults ------------------------------------------------------------- */

static void test_passes_through(void **state)
{
    (void)state;
    cv_store *store = new_fault();
    assert_true(store->writable && store->in_memory && !store->published);
    assert_int_equal(put(store, 0, "hello"), CV_OK);
    expect_bytes(store, "hello");
    const uint8_t *view = cv_store_view(store, CV_FRAME_OBJECT, 1, 3);
    assert_memory_equal(view, "ell", 3);
    assert_int_equal(cv_store_truncate(store, CV_FRAME_OBJECT, 2, &error), CV_OK);
    expect_bytes(store, "he");
    assert_int_equal(cv_store_publish(store, true, &error), CV_OK);
    assert_true(store->published);
    assert_int_equal(cv_store_fault_count(store), 3);
    assert_int_equal(cv_store_fault_hits(store), 0);
    /* A refusal of the inner store is neither a fault nor an entry. */
    assert_int_equal(cv_store_replace(store, "x", 1, true, &error), CATERVA_EINVAL);
    assert_int_equal(cv_store_fault_hits(store), 0);
    assert_int_equal(cv_store_fault_journal_size(store), 3);
    cv_store_close(store);
}

static void test_full_disk_once(void **state)
{
    (void)state;
    cv_store *store = new_fault();
    assert_int_equal(put(store, 0, "abc"), CV_OK);
    cv_store_fault_arm(store, CV_FAULT_ONCE, 1, ENOSPC);
    assert_int_equal(put(store, 0, "A"), CV_OK);
    assert_int_equal(put(store, 1, "B"), CATERVA_EIO);
    assert_int_equal(error.sys_errno, ENOSPC);
    assert_non_null(strstr(error.message, strerror(ENOSPC)));
    assert_int_equal(put(store, 2, "C"), CV_OK);
    expect_bytes(store, "AbC");
    assert_int_equal(cv_store_fault_count(store), 4);
    assert_int_equal(cv_store_fault_hits(store), 1);
    assert_int_equal(cv_store_fault_journal_size(store), 3);
    cv_store_close(store);
}

static void test_every_kind_of_change_can_fail(void **state)
{
    (void)state;
    cv_store *store = new_fault();
    assert_int_equal(put(store, 0, "abc"), CV_OK);
    cv_store_fault_arm(store, CV_FAULT_FOREVER, 0, EIO);
    assert_int_equal(put(store, 0, "X"), CATERVA_EIO);
    assert_int_equal(cv_store_truncate(store, CV_FRAME_OBJECT, 0, &error), CATERVA_EIO);
    assert_int_equal(sync_frame(store), CATERVA_EIO);
    assert_int_equal(cv_store_replace(store, "x", 1, true, &error), CATERVA_EIO);
    assert_int_equal(cv_store_remove(store, 3, &error), CATERVA_EIO);
    assert_int_equal(cv_store_fault_last_hit(store), CV_FAULT_ENTRY_REMOVE);
    assert_int_equal(cv_store_publish(store, true, &error), CATERVA_EIO);
    assert_int_equal(cv_store_fault_last_hit(store), CV_FAULT_ENTRY_PUBLISH);
    assert_false(store->published);
    assert_int_equal(cv_store_fault_hits(store), 6);
    expect_bytes(store, "abc");

    cv_store_fault_arm(store, CV_FAULT_NONE, 0, 0);
    assert_int_equal(put(store, 0, "X"), CV_OK);
    expect_bytes(store, "Xbc");
    assert_int_equal(cv_store_fault_journal_size(store), 2);
    cv_store_close(store);
}

static void test_short_write_leaves_its_first_half(void **state)
{
    (void)state;
    cv_store *store = new_fault();
    assert_int_equal(put(store, 0, "........"), CV_OK);
    cv_store_fault_arm(store, CV_FAULT_SHORT, 0, ENOSPC);
    assert_int_equal(put(store, 1, "12345"), CATERVA_EIO);
    assert_int_equal(error.sys_errno, ENOSPC);
    expect_bytes(store, ".12.....");
    assert_int_equal(cv_store_fault_journal_size(store), 2);
    assert_int_equal(cv_store_fault_journal_bytes(store, 1), 2);
    assert_int_equal(put(store, 1, "AB"), CV_OK);

    cv_store_fault_arm(store, CV_FAULT_SHORT, 0, ENOSPC); /* not a write: fails completely */
    assert_int_equal(sync_frame(store), CATERVA_EIO);
    assert_int_equal(cv_store_fault_hits(store), 2);
    cv_store_close(store);
}

static void test_reads_are_counted_apart_and_not_viewed(void **state)
{
    (void)state;
    char back[2];
    cv_store *store = new_fault();
    assert_int_equal(put(store, 0, "abc"), CV_OK);
    assert_non_null(cv_store_view(store, CV_FRAME_OBJECT, 0, 2));
    cv_store_fault_arm(store, CV_FAULT_READ, 1, EIO);
    assert_null(cv_store_view(store, CV_FRAME_OBJECT, 0, 2));
    assert_int_equal(put(store, 0, "x"), CV_OK);
    assert_int_equal(cv_store_read(store, CV_FRAME_OBJECT, 0, back, 2, &error), CV_OK);
    assert_int_equal(cv_store_read(store, CV_FRAME_OBJECT, 0, back, 2, &error), CATERVA_EIO);
    assert_int_equal(error.sys_errno, EIO);
    assert_int_equal(cv_store_read(store, CV_FRAME_OBJECT, 0, back, 2, &error), CV_OK);
    assert_int_equal(cv_store_fault_hits(store), 1);
    cv_store_fault_arm(store, CV_FAULT_NONE, 0, 0);
    assert_non_null(cv_store_view(store, CV_FRAME_OBJECT, 0, 2));
    cv_store_close(store);
}

/* ---- Images ------------------------------------------------------------- */

typedef struct image {
    uint8_t *bytes;
    size_t size;
    int64_t mark;
} image;

static image make_image(cv_store *store, cv_crash_model model, int64_t point, size_t part,
                        uint64_t seed)
{
    image im;
    cv_crash crash = {model, point, part, seed};
    assert_int_equal(
        cv_store_fault_image(store, &crash, &im.bytes, &im.size, &im.mark, &error), CV_OK);
    return im;
}

static void expect_image(cv_store *store, cv_crash_model model, int64_t point, size_t part,
                         const char *text, size_t size, int64_t mark)
{
    image im = make_image(store, model, point, part, 1);
    assert_int_equal(im.size, size);
    assert_memory_equal(im.bytes, text, size);
    assert_int_equal(im.mark, mark);
    free(im.bytes);
}

/* entry  0: "hello" at 0      1: sync      2: mark 7     3: "WORLD" at 3
 *        4: cut to 6          5: mark 9    6: "!" at 9   7: sync */
static cv_store *journaled_store(void)
{
    cv_store *store = new_fault();
    assert_int_equal(put(store, 0, "hello"), CV_OK);
    assert_int_equal(sync_frame(store), CV_OK);
    cv_store_fault_mark(store, 7);
    assert_int_equal(put(store, 3, "WORLD"), CV_OK);
    assert_int_equal(cv_store_truncate(store, CV_FRAME_OBJECT, 6, &error), CV_OK);
    cv_store_fault_mark(store, 9);
    assert_int_equal(put(store, 9, "!"), CV_OK);
    assert_int_equal(sync_frame(store), CV_OK);
    assert_int_equal(cv_store_fault_journal_size(store), 8);
    return store;
}

static void test_prefix_images(void **state)
{
    (void)state;
    cv_store *store = journaled_store();
    expect_image(store, CV_CRASH_PREFIX, 0, 0, "", 0, -1);
    expect_image(store, CV_CRASH_PREFIX, 1, 0, "hello", 5, -1);
    expect_image(store, CV_CRASH_PREFIX, 2, 0, "hello", 5, -1);
    expect_image(store, CV_CRASH_PREFIX, 3, 0, "hello", 5, 7);
    expect_image(store, CV_CRASH_PREFIX, 4, 0, "helWORLD", 8, 7);
    expect_image(store, CV_CRASH_PREFIX, 5, 0, "helWOR", 6, 7);
    expect_image(store, CV_CRASH_PREFIX, 6, 0, "helWOR", 6, 9);
    expect_image(store, CV_CRASH_PREFIX, 8, 0, "helWOR\0\0\0!", 10, 9);
    cv_store_close(store);
}

static void test_torn_images(void **state)
{
    (void)state;
    cv_store *store = journaled_store();
    expect_image(store, CV_CRASH_TORN, 0, 3, "hel", 3, -1);
    expect_image(store, CV_CRASH_TORN, 1, 3, "hello", 5, -1); /* a sync cannot tear */
    expect_image(store, CV_CRASH_TORN, 3, 0, "hello", 5, 7);
    expect_image(store, CV_CRASH_TORN, 3, 1, "helWo", 5, 7);
    expect_image(store, CV_CRASH_TORN, 3, 4, "helWORL", 7, 7);
    expect_image(store, CV_CRASH_TORN, 3, 99, "helWORLD", 8, 7);
    expect_image(store, CV_CRASH_TORN, 4, 2, "helWORLD", 8, 7); /* nor a truncate */
    expect_image(store, CV_CRASH_TORN, 8, 2, "helWOR\0\0\0!", 10, 9);
    cv_store_close(store);
}

static void test_journal_entries(void **state)
{
    (void)state;
    cv_store *store = journaled_store();
    const int64_t sizes[] = {5, 0, 0, 5, 0, 0, 1, 0};
    for (int i = 0; i < 8; i++)
        assert_int_equal(cv_store_fault_journal_bytes(store, i), sizes[i]);
    assert_int_equal(cv_store_fault_journal_bytes(store, -1), 0);
    assert_int_equal(cv_store_fault_journal_bytes(store, 8), 0);
    image im;
    const cv_crash bad[] = {{.model = CV_CRASH_PREFIX, .point = -1},
                            {.model = CV_CRASH_PREFIX, .point = 9}};
    for (int i = 0; i < 2; i++)
        assert_int_equal(
            cv_store_fault_image(store, &bad[i], &im.bytes, &im.size, &im.mark, &error),
            CATERVA_EINVAL);
    cv_store_close(store);
}

static void test_power_loss_of_small_changes(void **state)
{
    (void)state;
    cv_store *store = journaled_store();
    bool seen[4] = {false};
    for (uint64_t seed = 0; seed < 64; seed++) {
        image im = make_image(store, CV_CRASH_POWER, 5, 0, seed);
        static const char *const possible[] = {"hello", "helWORLD", "helWOR", "hello\0"};
        static const size_t sizes[] = {5, 8, 6, 6};
        int found = -1;
        for (int i = 0; i < 4; i++)
            if (im.size == sizes[i] && memcmp(im.bytes, possible[i], sizes[i]) == 0)
                found = i;
        assert_true(found >= 0);
        seen[found] = true;
        assert_int_equal(im.mark, 7);
        free(im.bytes);
    }
    for (int i = 0; i < 4; i++) assert_true(seen[i]);

    for (uint64_t seed = 0; seed < 16; seed++) { /* after a sync everything exists */
        image im = make_image(store, CV_CRASH_POWER, 8, 0, seed);
        assert_int_equal(im.size, 10);
        assert_memory_equal(im.bytes, "helWOR\0\0\0!", 10);
        free(im.bytes);
        im = make_image(store, CV_CRASH_POWER, 2, 0, seed);
        assert_int_equal(im.size, 5);
        free(im.bytes);
    }
    cv_store_close(store);
}

/* A write from byte 300 to 2300 touches five sectors of the file, the first and the last
 * partially: each is old or new as a whole, and every mixture occurs. */
static void test_power_loss_keeps_or_loses_sectors(void **state)
{
    (void)state;
    enum { SIZE = 3000, FROM = 300, TO = 2300 };
    static uint8_t old[SIZE], new_bytes[TO - FROM];
    memset(old, 'o', sizeof old);
    memset(new_bytes, 'n', sizeof new_bytes);
    cv_store *store = new_fault();
    cv_store_write(store, CV_FRAME_OBJECT, 0, old, SIZE, &error);
    assert_int_equal(sync_frame(store), CV_OK);
    cv_store_write(store, CV_FRAME_OBJECT, FROM, new_bytes, sizeof new_bytes, &error);

    bool seen[32] = {false};
    for (uint64_t seed = 0; seed < 600; seed++) {
        image im = make_image(store, CV_CRASH_POWER, 3, 0, seed);
        assert_int_equal(im.size, SIZE);
        int mixture = 0;
        for (size_t i = 0; i < SIZE; i++) {
            size_t sector = i / 512;
            size_t first = sector == 0 ? FROM : sector * 512;
            if (i < FROM || i >= TO)
                assert_int_equal(im.bytes[i], 'o');
            else
                assert_int_equal(im.bytes[i], im.bytes[first]);
            if (i == first && sector < 5 && im.bytes[i] == 'n') mixture |= 1 << sector;
        }
        seen[mixture] = true;
        image again = make_image(store, CV_CRASH_POWER, 3, 0, seed);
        assert_memory_equal(im.bytes, again.bytes, SIZE);
        free(again.bytes);
        free(im.bytes);
    }
    for (int i = 0; i < 32; i++) assert_true(seen[i]);
    cv_store_close(store);
}

static void test_failed_sync_protects_nothing(void **state)
{
    (void)state;
    cv_store *store = new_fault();
    assert_int_equal(put(store, 0, "abc"), CV_OK);
    cv_store_fault_arm(store, CV_FAULT_ONCE, 0, EIO);
    assert_int_equal(sync_frame(store), CATERVA_EIO);
    bool lost = false;
    for (uint64_t seed = 0; seed < 32; seed++) {
        image im = make_image(store, CV_CRASH_POWER, 1, 0, seed);
        lost = lost || im.size == 0;
        free(im.bytes);
    }
    assert_true(lost);
    cv_store_close(store);
}

/* ---- Other inner stores ------------------------------------------------- */

static void test_bytes_before_the_journal(void **state)
{
    (void)state;
    cv_store *inner;
    assert_int_equal(cv_store_memory_create(&inner, &error), CV_OK);
    assert_int_equal(put(inner, 0, "before"), CV_OK);
    assert_int_equal(cv_store_publish(inner, true, &error), CV_OK);
    cv_store *store = wrap(inner);
    assert_true(store->published);
    assert_int_equal(put(store, 2, "XX"), CV_OK);
    expect_image(store, CV_CRASH_PREFIX, 0, 0, "before", 6, -1);
    expect_image(store, CV_CRASH_PREFIX, 1, 0, "beXXre", 6, -1);
    expect_image(store, CV_CRASH_TORN, 0, 1, "beXore", 6, -1);
    cv_store_close(store);
}

static void test_directories(void **state)
{
    (void)state;
    char path[SCRATCH_PATH];
    cv_store *inner;
    assert_int_equal(
        cv_store_directory_create(scratch_path(path, "array"), false, &inner, &error), CV_OK);
    cv_store *store = wrap(inner);
    assert_true(store->has_chunk_objects);
    assert_int_equal(cv_store_write(store, 0, 0, "chunk", 5, &error), CV_OK);
    assert_int_equal(cv_store_sync(store, 0, &error),
                     CV_OK); /* of a chunk, not of the frame */
    assert_int_equal(cv_store_replace(store, "first", 5, false, &error), CV_OK);
    assert_int_equal(cv_store_replace(store, "second!", 7, true, &error), CV_OK);
    cv_store_fault_arm(store, CV_FAULT_ONCE, 0, EIO);
    assert_int_equal(cv_store_remove(store, 0, &error), CATERVA_EIO);
    assert_int_equal(cv_store_publish(store, true, &error), CV_OK);
    assert_true(store->published);

    expect_image(store, CV_CRASH_PREFIX, 2, 0, "", 0, -1);
    expect_image(store, CV_CRASH_PREFIX, 3, 0, "first", 5, -1);
    expect_image(store, CV_CRASH_PREFIX, 4, 0, "second!", 7, -1);
    expect_image(store, CV_CRASH_TORN, 3, 2, "first", 5, -1); /* replaced whole */
    for (uint64_t seed = 0; seed < 8; seed++) {
        image im = make_image(store, CV_CRASH_POWER, 5, 0, seed);
        assert_int_equal(im.size, 7);
        free(im.bytes);
        im = make_image(store, CV_CRASH_POWER, 3, 0, seed);
        assert_true(im.size == 0 || im.size == 5);
        free(im.bytes);
    }
    cv_store_close(store);
}

/* ---- Threads ------------------------------------------------------------ */

enum { WRITERS = 4, WRITES = 200 };

typedef struct writer {
    cv_store *store;
    int number;
} writer;

static void *write_stripe(void *context)
{
    const writer *w = context;
    for (int i = 0; i < WRITES; i++) {
        uint8_t byte = (uint8_t)(w->number * 50 + i % 50);
        cv_store_write(w->store, CV_FRAME_OBJECT, (uint64_t)(i * WRITERS + w->number), &byte,
                       1, NULL);
    }
    return NULL;
}

static void test_parallel_writes_are_all_recorded(void **state)
{
    (void)state;
    enum { TOTAL = WRITERS * WRITES };
    cv_store *store = new_fault();
    pthread_t threads[WRITERS];
    writer writers[WRITERS];
    for (int i = 0; i < WRITERS; i++) {
        writers[i] = (writer){store, i};
        assert_int_equal(pthread_create(&threads[i], NULL, write_stripe, &writers[i]), 0);
    }
    for (int i = 0; i < WRITERS; i++) pthread_join(threads[i], NULL);

    uint8_t bytes[TOTAL];
    assert_int_equal(cv_store_fault_count(store), TOTAL);
    assert_int_equal(cv_store_fault_journal_size(store), TOTAL);
    assert_int_equal(cv_store_read(store, CV_FRAME_OBJECT, 0, bytes, TOTAL, &error), CV_OK);
    image im = make_image(store, CV_CRASH_PREFIX, TOTAL, 0, 0);
    assert_int_equal(im.size, TOTAL);
    assert_memory_equal(im.bytes, bytes, TOTAL);
    free(im.bytes);
    cv_store_close(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_passes_through),
        cmocka_unit_test(test_full_disk_once),
        cmocka_unit_test(test_every_kind_of_change_can_fail),
        cmocka_unit_test(test_short_write_leaves_its_first_half),
        cmocka_unit_test(test_reads_are_counted_apart_and_not_viewed),
        cmocka_unit_test(test_prefix_images),
        cmocka_unit_test(test_torn_images),
        cmocka_unit_test(test_journal_entries),
        cmocka_unit_test(test_power_loss_of_small_changes),
        cmocka_unit_test(test_power_loss_keeps_or_loses_sectors),
        cmocka_unit_test(test_failed_sync_protects_nothing),
        cmocka_unit_test(test_bytes_before_the_journal),
        cmocka_unit_test(test_directories),
        cmocka_unit_test(test_parallel_writes_are_all_recorded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
