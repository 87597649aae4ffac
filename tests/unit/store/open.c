/* Unit: store/open. Each kind of store is created by its layout and opened by its path;
 * operations of one kind are refused by the others, and by read-only stores. */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "check.h"
#include "support/fault.h"
#include "store/memory.h"
#include "store/open.h"
#include "unit/file_store.h"

static cv_store *new_store(const char *path, caterva_layout layout)
{
    cv_store *store;
    assert_int_equal(cv_store_create(path, layout, false, &store, &error), CV_OK);
    assert_true(store->writable && !store->published);
    return store;
}

static void give_frame(cv_store *store, const char *text)
{
    if (store->has_chunk_objects)
        assert_int_equal(cv_store_replace(store, text, strlen(text), false, &error), CV_OK);
    else
        assert_int_equal(write_text(store, 0, text), CV_OK);
    assert_int_equal(cv_store_publish(store, false, &error), CV_OK);
}

static void expect_frame(const char *path, const char *text)
{
    char back[16];
    cv_store *store;
    uint64_t size;
    assert_int_equal(cv_store_open(path, 0, false, &store, &error), CV_OK);
    assert_int_equal(cv_store_size(store, CV_FRAME_OBJECT, &size, &error), CV_OK);
    assert_int_equal(size, strlen(text));
    assert_int_equal(cv_store_read(store, CV_FRAME_OBJECT, 0, back, (size_t)size, &error),
                     CV_OK);
    assert_memory_equal(back, text, (size_t)size);
    cv_store_close(store);
}

/* ---- Creating ------------------------------------------------------------ */

static void test_a_layout_chooses_the_kind(void **state)
{
    (void)state;
    room r = begin("kind");
    cv_store *store = new_store(r.path, CATERVA_LAYOUT_CONTIGUOUS);
    assert_string_equal(store->ops->name, "file");
    assert_true(store->compacts_itself);
    cv_store_close(store);

    store = new_store(r.path, CATERVA_LAYOUT_SPARSE);
    assert_string_equal(store->ops->name, "directory");
    assert_false(store->compacts_itself);
    cv_store_close(store);

    store = new_store("mem:", CATERVA_LAYOUT_CONTIGUOUS);
    assert_string_equal(store->ops->name, "memory");
    assert_false(store->compacts_itself);
    cv_store_close(store);

    assert_int_equal(cv_store_create("mem:", CATERVA_LAYOUT_SPARSE, true, &store, &error),
                     CATERVA_EINVAL);
    assert_string_equal(error.message, "an array in memory cannot be a directory");
    assert_int_equal(count_entries(r.dir), 0);
}

/* ---- Taking a place, deleting --------------------------------------------- */

/* The store itself, then behind the one that fails on purpose. */
static void check_replaced(caterva_layout layout, bool wrapped)
{
    room r = begin("place");
    cv_store *old = new_store(r.path, layout), *next;
    if (wrapped) assert_int_equal(cv_store_fault_create(old, &old, &error), CV_OK);
    give_frame(old, "old");
    assert_int_equal(cv_store_create_over(old, &next, &error), CV_OK);
    assert_int_equal(next->has_chunk_objects, layout == CATERVA_LAYOUT_SPARSE);
    expect_frame(r.path, "old");
    give_frame(next, "next one");
    cv_store_close(old);
    expect_frame(r.path, "next one");

    assert_int_equal(cv_store_delete(next, NULL, &error), CV_OK);
    assert_int_equal(count_entries(r.dir), 0);
    cv_store_close(next);
}

static void test_files_and_directories_are_replaced_and_deleted(void **state)
{
    (void)state;
    for (int wrapped = 0; wrapped < 2; wrapped++) {
        check_replaced(CATERVA_LAYOUT_CONTIGUOUS, wrapped);
        check_replaced(CATERVA_LAYOUT_SPARSE, wrapped);
    }
}

static void expect_refused(cv_store *store, caterva_status status, const char *place,
                           const char *deleted)
{
    cv_store *next = NULL;
    assert_int_equal(cv_store_create_over(store, &next, &error), status);
    assert_string_equal(error.message, place);
    assert_int_equal(cv_store_delete(store, NULL, &error), status);
    assert_string_equal(error.message, deleted);
    assert_null(next);
}

static void test_memory_has_no_name(void **state)
{
    (void)state;
    cv_store *store = new_store("mem:", CATERVA_LAYOUT_CONTIGUOUS);
    for (int i = 0; i < 2; i++) {
        give_frame(store, "here to stay");
        expect_refused(store, CATERVA_EINVAL, "a memory cannot be replaced by a new one",
                       "a memory cannot be deleted");
        if (i == 0) assert_int_equal(cv_store_fault_create(store, &store, &error), CV_OK);
    }
    cv_store_close(store);
}

static void test_who_only_reads_takes_no_place(void **state)
{
    (void)state;
    static const char *const words[] = {"this file was opened for reading only",
                                        "this directory was opened for reading only"};
    for (int sparse = 0; sparse < 2; sparse++) {
        room r = begin("reader");
        cv_store *store =
            new_store(r.path, sparse ? CATERVA_LAYOUT_SPARSE : CATERVA_LAYOUT_CONTIGUOUS);
        give_frame(store, "kept");
        cv_store_close(store);
        assert_int_equal(cv_store_open(r.path, 0, false, &store, &error), CV_OK);
        expect_refused(store, CATERVA_EREADONLY, words[sparse], words[sparse]);
        cv_store_close(store);
        expect_frame(r.path, "kept");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_layout_chooses_the_kind),
        cmocka_unit_test(test_files_and_directories_are_replaced_and_deleted),
        cmocka_unit_test(test_memory_has_no_name),
        cmocka_unit_test(test_who_only_reads_takes_no_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
