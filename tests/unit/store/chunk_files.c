/* The files of a directory's replaced chunks: they stay while a process may read an older
 * state, and are deleted afterwards. What a crash left is deleted when the next writer opens.
 * Numbers are not reused while a reader may look for the old file.
 */
#include "made.h"
#include "store/directory.h"
#include "support/scratch.h"

#include <caterva_upkeep.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>

enum { N = 1000, CHUNK = 100 }; /* ten chunks */

static caterva_array *open_for(const char *path, caterva_mode mode)
{
    caterva_error err;
    caterva_open_options options = CATERVA_OPEN_INIT;
    options.mode = mode;
    caterva_array *array;
    CHECK_OK(caterva_open(path, &options, &array, &err), err);
    return array;
}

static caterva_array *make(char path[SCRATCH_PATH], const char *name)
{
    caterva_error err;
    geometry g = made_line(N, CHUNK, 50, 4);
    scratch_remove(scratch_path(path, name));
    caterva_array *array = made_array(path, &g, &made_lz4, CATERVA_LAYOUT_SPARSE);
    CHECK_OK(made_write(array, 0, N, 0, 7, &err), err);
    CHECK_OK(caterva_commit(array, &err), err);
    return array;
}

/* Every item is first + 7 i, except in the changed chunk. */
static void check_all(caterva_array *array, int32_t first)
{
    for (int64_t i = 0; i < N; i += 13)
        assert_int_equal(made_item(array, i), first + 7 * (int32_t)i);
}

static size_t count_files(const char *path)
{
    caterva_error err;
    cv_store *store;
    cv_object *files;
    size_t n;
    CHECK_OK(cv_store_directory_open(path, false, &store, &err), err);
    CHECK_OK(cv_store_list(store, &files, &n, &err), err);
    free(files);
    cv_store_close(store);
    return n;
}

static void rewrite(caterva_array *writer, int32_t first)
{
    caterva_error err;
    CHECK_OK(made_write(writer, 0, N, first, 7, &err), err);
    CHECK_OK(caterva_commit(writer, &err), err);
}

static void readers_keep_their_state(void **state)
{
    (void)state;
    caterva_error err;
    char path[SCRATCH_PATH];
    caterva_array *writer = make(path, "readers");
    caterva_array *first = open_for(path, CATERVA_MODE_READ);
    rewrite(writer, 1);
    caterva_array *second = open_for(path, CATERVA_MODE_READ);
    rewrite(writer, 2);
    assert_int_equal(count_files(path), 30);
    check_all(first, 0);
    check_all(second, 1);
    CHECK_OK(caterva_refresh(first, &err), err);
    check_all(first, 2);
    check_all(second, 1);
    CHECK_OK(caterva_close(first, &err), err);
    CHECK_OK(caterva_close(second, &err), err);
    rewrite(writer, 3); /* the first commit without readers */
    assert_int_equal(count_files(path), 10);
    CHECK_OK(caterva_close(writer, &err), err);
}

/* A reader that refreshes needs the files of one state only. */
static void a_reader_that_refreshes_lets_files_go(void **state)
{
    (void)state;
    caterva_error err;
    char path[SCRATCH_PATH];
    caterva_array *writer = make(path, "refreshes");
    caterva_array *reader = open_for(path, CATERVA_MODE_READ);
    for (int i = 1; i < 20; i++) {
        rewrite(writer, i);
        assert_true(count_files(path) <= 20);
        check_all(reader, i - 1);
        CHECK_OK(caterva_refresh(reader, &err), err);
        check_all(reader, i);
    }
    CHECK_OK(caterva_close(writer, &err), err); /* it reads the last state */
    assert_int_equal(count_files(path), 10);
    check_all(reader, 19);
    CHECK_OK(caterva_close(reader, &err), err);
}

/* The readers close last: the writer's close keeps the files, the next writer deletes
 * them. */
static void what_a_close_leaves_is_swept(void **state)
{
    (void)state;
    caterva_error err;
    char path[SCRATCH_PATH];
    caterva_array *writer = make(path, "close");
    caterva_array *reader = open_for(path, CATERVA_MODE_READ);
    rewrite(writer, 1);
    CHECK_OK(caterva_close(writer, &err), err);
    assert_int_equal(count_files(path), 20);
    writer = open_for(path, CATERVA_MODE_WRITE); /* still beside the reader */
    assert_int_equal(count_files(path), 20);
    rewrite(writer, 2);
    check_all(reader, 0);
    assert_int_equal(count_files(path), 30);
    CHECK_OK(caterva_close(reader, &err), err);
    CHECK_OK(caterva_close(writer, &err), err); /* its own files are deleted with it */
    assert_int_equal(count_files(path), 20);
    writer = open_for(path, CATERVA_MODE_WRITE);
    assert_int_equal(count_files(path), 10);
    check_all(writer, 2);
    CHECK_OK(caterva_close(writer, &err), err);
}

/* The state that a reader holds has more chunks than the present one: their numbers are above
 * all that the present index contains, and not free. */
static void numbers_are_not_given_twice(void **state)
{
    (void)state;
    caterva_error err;
    char path[SCRATCH_PATH];
    int64_t less = CHUNK, all = N;
    caterva_array *writer = make(path, "numbers");
    caterva_array *reader = open_for(path, CATERVA_MODE_READ);
    CHECK_OK(caterva_resize(writer, &less, &err), err);
    CHECK_OK(caterva_close(writer, &err), err);
    writer = open_for(path, CATERVA_MODE_WRITE);
    CHECK_OK(caterva_resize(writer, &all, &err), err);
    rewrite(writer, 5);
    check_all(reader, 0);
    check_all(writer, 5);
    CHECK_OK(caterva_close(reader, &err), err);
    CHECK_OK(caterva_close(writer, &err), err);
}

static void put_file(const char *path, const char *name)
{
    char file[SCRATCH_PATH + 32];
    snprintf(file, sizeof file, "%s/%s", path, name);
    scratch_save(file, "leftover", 8);
}

static void leftovers_of_a_crash_go(void **state)
{
    (void)state;
    caterva_error err;
    char path[SCRATCH_PATH], other[SCRATCH_PATH + 32];
    CHECK_OK(caterva_close(make(path, "crash"), &err), err);
    put_file(path, "0000001F.chunk");
    put_file(path, "FFFFFFFF.chunk");
    put_file(path, "notes.txt");
    CHECK_OK(caterva_close(open_for(path, CATERVA_MODE_READ), &err), err);
    assert_int_equal(count_files(path), 12);
    caterva_array *writer = open_for(path, CATERVA_MODE_WRITE);
    assert_int_equal(count_files(path), 10);
    rewrite(writer, 9); /* the largest number is free again */
    CHECK_OK(caterva_close(writer, &err), err);
    assert_int_equal(count_files(path), 10);
    snprintf(other, sizeof other, "%s/notes.txt", path);
    assert_int_equal(access(other, F_OK), 0);
}

/* With a reader of an older state, the file of the largest number must stay: then no number
 * is left, which is reported, and nothing is lost. */
static void numbers_may_end(void **state)
{
    (void)state;
    caterva_error err;
    char path[SCRATCH_PATH];
    CHECK_OK(caterva_close(make(path, "end"), &err), err);
    put_file(path, "FFFFFFFF.chunk");
    caterva_array *reader = open_for(path, CATERVA_MODE_READ);
    caterva_array *writer = open_for(path, CATERVA_MODE_WRITE);
    rewrite(writer, 9);
    CHECK_OK(caterva_close(writer, &err), err);
    put_file(path, "FFFFFFFF.chunk");
    writer = open_for(path, CATERVA_MODE_WRITE);
    caterva_status status = made_write(writer, 0, N, 4, 7, &err);
    if (status == CATERVA_OK) status = caterva_commit(writer, &err);
    assert_int_equal(status, CATERVA_EUNSUPPORTED);
    caterva_discard(writer);
    check_all(reader, 0);
    CHECK_OK(caterva_close(reader, &err), err);
}

/* Compacting deletes the old directory, but not while it is being read. */
static void a_reader_keeps_its_directory(void **state)
{
    (void)state;
    caterva_error err;
    char path[SCRATCH_PATH];
    CHECK_OK(caterva_close(make(path, "compact"), &err), err);
    caterva_array *reader = open_for(path, CATERVA_MODE_READ);
    assert_int_equal(caterva_compact(path, NULL, &err), CATERVA_EBUSY);
    check_all(reader, 0);
    CHECK_OK(caterva_close(reader, &err), err);
    CHECK_OK(caterva_compact(path, NULL, &err), err);
    reader = open_for(path, CATERVA_MODE_READ);
    check_all(reader, 0);
    CHECK_OK(caterva_close(reader, &err), err);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(readers_keep_their_state),
        cmocka_unit_test(a_reader_that_refreshes_lets_files_go),
        cmocka_unit_test(what_a_close_leaves_is_swept),
        cmocka_unit_test(numbers_are_not_given_twice),
        cmocka_unit_test(leftovers_of_a_crash_go),
        cmocka_unit_test(numbers_may_end),
        cmocka_unit_test(a_reader_keeps_its_directory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
