/* Unit: base/os_windows*. Names that are refused, absolute paths, files that are replaced and
 * deleted while they are open, locks. */
#include "base/heap.h"
#include "base/os_dir.h"
#include "base/os_file.h"
#include "scratch.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "unit/rooms.h"

static cv_dir open_scratch_dir(const char *name)
{
    char path[SCRATCH_PATH];
    cv_dir dir;
    mkdir(scratch_path(path, name), 0777);
    assert_int_equal(cv_dir_open(cv_dir_here, path, 0, &dir), 0);
    return dir;
}

static void put(cv_dir dir, const char *name, const char *text)
{
    cv_file file;
    unsigned how = CV_OPEN_WRITE | CV_OPEN_CREATE | CV_OPEN_EMPTY;
    assert_int_equal(cv_dir_open_file(dir, name, how, 0666, &file), 0);
    assert_int_equal(cv_file_write(file, text, strlen(text), 0), 0);
    cv_file_close(&file);
}

static void expect(cv_file file, const char *text)
{
    char bytes[64] = {0};
    size_t done;
    assert_int_equal(cv_file_read(file, bytes, sizeof bytes - 1, 0, &done), 0);
    assert_string_equal(bytes, text);
}

/* Names in trees come from foreign files and URLs: none leads out of the directory. */
static void test_names_that_lead_elsewhere(void **state)
{
    (void)state;
    static const char *const names[] = {"..\\a",   "b\\..\\..\\a", "C:\\a", "C:a",     "C:/a",
                                        "a:other", "a::$DATA",     "NUL",   "con.txt", "a.",
                                        "a ",      "a*",           "a\x01"};
    char path[SCRATCH_PATH];
    cv_dir dir = open_scratch_dir("inner");
    cv_file file;
    cv_file_info info;
    put(dir, "a", "inside");
    put(cv_dir_here, scratch_path(path, "a"), "outside");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        assert_int_equal(cv_dir_get_info(dir, names[i], &info), ENOENT);
        assert_int_equal(cv_dir_open_file(dir, names[i], CV_OPEN_READ, 0, &file), ENOENT);
        assert_int_equal(
            cv_dir_open_file(dir, names[i], CV_OPEN_BOTH | CV_OPEN_CREATE, 0666, &file),
            EINVAL);
        assert_int_equal(cv_dir_make(dir, names[i], 0777), EINVAL);
    }
    assert_int_equal(cv_dir_get_info(dir, "../a", &info), 0);
    cv_dir_close(&dir);
}

static void expect_absolute(const char *path, const char *absolute)
{
    char *got = cv_os_absolute(path);
    assert_non_null(got);
    assert_string_equal(got, absolute);
    cv_free(got);
}

static void test_absolute_paths(void **state)
{
    (void)state;
    expect_absolute("C:\\a\\..\\b", "C:/b");
    expect_absolute("C:/a b/\xc3\xbc.b2nd", "C:/a b/\xc3\xbc.b2nd");
    expect_absolute("\\\\server\\share\\a", "//server/share/a");
    expect_absolute("C:\\a\\t.b2d::/g/../x.", "C:/a/t.b2d::/g/../x.");
    expect_absolute("C:\\t.b2z::/a\\b ", "C:/t.b2z::/a\\b ");
    assert_true(cv_os_is_absolute("c:/a") && cv_os_is_absolute("\\\\server\\a"));
    assert_false(cv_os_is_absolute("a/b"));
}

static void test_open_files_are_replaced_and_deleted(void **state)
{
    (void)state;
    char temp[CV_OS_TEMP_NAME];
    cv_dir dir = open_scratch_dir("replaced"), made;
    cv_file file, again;
    put(dir, "a", "old");
    put(dir, "b", "new");
    assert_int_equal(cv_dir_open_file(dir, "a", CV_OPEN_READ, 0, &file), 0);
    assert_true(cv_dir_names(dir, "a", file));
    assert_int_equal(cv_dir_rename_new(dir, "b", "a"), EEXIST);
    assert_int_equal(cv_dir_rename(dir, "b", "a"), 0);
    assert_false(cv_dir_names(dir, "a", file));
    expect(file, "old");
    assert_int_equal(cv_dir_open_file(dir, "a", CV_OPEN_READ, 0, &again), 0);
    expect(again, "new");
    assert_int_equal(cv_dir_remove(dir, "a"), 0);
    assert_int_equal(cv_dir_remove(dir, "a"), ENOENT);
    expect(again, "new");
    cv_file_close(&again);
    cv_file_close(&file);

    assert_int_equal(cv_dir_create_temp_directory(dir, "d", 0777, temp, &made), 0);
    put(made, "x", "x");
    assert_int_equal(cv_dir_remove_directory(dir, temp), ENOTEMPTY);
    assert_int_equal(cv_dir_remove(made, "x"), 0);
    cv_dir_close(&made);
    assert_int_equal(cv_dir_remove_directory(dir, temp), 0);
    cv_dir_close(&dir);
}

static void test_locks_exclude_and_do_not_cover_bytes(void **state)
{
    (void)state;
    cv_dir dir = open_scratch_dir("locked");
    cv_file writer, other;
    put(dir, "a", "bytes");
    assert_int_equal(cv_dir_open_file(dir, "a", CV_OPEN_BOTH, 0, &writer), 0);
    assert_int_equal(cv_dir_open_file(dir, "a", CV_OPEN_BOTH, 0, &other), 0);
    assert_int_equal(cv_file_lock(writer), 0);
    assert_int_not_equal(cv_file_lock(other), 0);
    expect(other, "bytes");
    assert_int_equal(cv_file_share(other), 0);
    assert_true(cv_file_is_shared(writer));
    cv_file_unshare(other);
    assert_false(cv_file_is_shared(writer));
    cv_file_unlock(writer);
    assert_int_equal(cv_file_lock(other), 0);
    cv_file_close(&other);
    cv_file_close(&writer);
    cv_dir_close(&dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names_that_lead_elsewhere),
        cmocka_unit_test(test_absolute_paths),
        cmocka_unit_test(test_open_files_are_replaced_and_deleted),
        cmocka_unit_test(test_locks_exclude_and_do_not_cover_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
