/* Unit: store/file and store/place. Publishing over an existing path: files and arrays in
 * directories are replaced, nothing else is. What remains is the old array or the new one,
 * without temporary files. */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "unit/file_store.h"

static void make_array_directory(const char *path)
{
    char name[SCRATCH_PATH + 64];
    assert_int_equal(mkdir(path, 0777), 0);
    static const char *const names[] = {"chunks.b2frame", "00000000.chunk", "0000000A.chunk",
                                        ".b2lock", ".caterva.lock"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        snprintf(name, sizeof name, "%s/%s", path, names[i]);
        save_text(name, "old");
    }
}

/* ---- What is replaced ---------------------------------------------------- */

static void test_overwrite_a_file(void **state)
{
    (void)state;
    room r = begin("overwrite");
    cv_store *reader;
    char back[3];
    save_text(r.path, "old");
    assert_int_equal(cv_store_file_open(r.path, 0, false, &reader, &error), CV_OK);

    cv_store *store = create(r.path, true, "dropped");
    expect_text(r.path, "old");
    cv_store_close(store);
    expect_text(r.path, "old");

    store = create(r.path, true, "new");
    assert_int_equal(cv_store_publish(store, true, &error), CV_OK);
    expect_text(r.path, "new");
    assert_int_equal(cv_store_read(reader, CV_FRAME_OBJECT, 0, back, 3, &error), CV_OK);
    assert_memory_equal(back, "old", 3);
    assert_int_equal(open_writable_status(r.path), -CATERVA_EBUSY);
    cv_store_close(store);
    cv_store_close(reader);
    assert_int_equal(count_entries(r.dir), 1);
}

static void test_overwrite_without_target(void **state)
{
    (void)state;
    room r = begin("overnone");
    cv_store *store = create(r.path, true, "new");
    assert_int_equal(cv_store_publish(store, true, &error), CV_OK);
    cv_store_close(store);
    expect_text(r.path, "new");

    /* It existed at create and does not at publish. */
    store = create(r.path, true, "newer");
    assert_int_equal(unlink(r.path), 0);
    assert_int_equal(cv_store_publish(store, true, &error), CV_OK);
    cv_store_close(store);
    expect_text(r.path, "newer");
    assert_int_equal(count_entries(r.dir), 1);
}

static void test_overwrite_an_array_directory(void **state)
{
    (void)state;
    room r = begin("overdir");
    make_array_directory(r.path);
    cv_store *store = create(r.path, true, "dropped");
    cv_store_close(store);
    assert_int_equal(count_entries(r.path), 5);

    store = create(r.path, true, "new");
    assert_int_equal(cv_store_publish(store, true, &error), CV_OK);
    cv_store_close(store);
    expect_text(r.path, "new");
    assert_int_equal(count_entries(r.dir), 1);
}

static void test_overwrite_through_a_symbolic_link(void **state)
{
    (void)state;
    room r = begin("symlink");
    char real[SCRATCH_PATH + 64];
    struct stat st;
    snprintf(real, sizeof real, "%s/real", r.dir);
    save_text(real, "old");
    assert_int_equal(symlink("real", r.path), 0);
    cv_store *store = create(r.path, true, "new");
    assert_int_equal(cv_store_publish(store, true, &error), CV_OK);
    cv_store_close(store);
    expect_text(real, "new");
    assert_int_equal(lstat(r.path, &st), 0);
    assert_true(S_ISLNK(st.st_mode));
    assert_int_equal(count_entries(r.dir), 2);
}

/* ---- What is kept -------------------------------------------------------- */

static void expect_kept(const char *dir, const char *entry, const char *text)
{
    char path[SCRATCH_PATH + 64];
    snprintf(path, sizeof path, "%s/%s", dir, entry);
    expect_text(path, text);
}

static void expect_overwrite_refused(const char *path, const char *word)
{
    cv_store *store;
    memset(&error, 0, sizeof error);
    assert_int_equal(cv_store_file_create(path, true, &store, &error), CATERVA_EEXIST);
    assert_non_null(strstr(error.message, word));
}

static void test_foreign_directories_are_never_removed(void **state)
{
    (void)state;
    static const char *const foreign[] = {"notes.txt", "0000000.chunk", "00000000.chunk.bak",
                                          "zzzzzzzz.chunk", ".hidden"};
    for (size_t i = 0; i < sizeof foreign / sizeof foreign[0]; i++) {
        room r = begin("foreign");
        char name[SCRATCH_PATH + 64];
        make_array_directory(r.path);
        snprintf(name, sizeof name, "%s/%s", r.path, foreign[i]);
        save_text(name, "precious");
        expect_overwrite_refused(r.path, "is a directory that is not an array");
        expect_kept(r.path, foreign[i], "precious");
        assert_int_equal(count_entries(r.path), 6);
        assert_int_equal(count_entries(r.dir), 1);
    }
}

static void test_directories_that_only_resemble_arrays(void **state)
{
    (void)state;
    room r = begin("resemble");
    char name[SCRATCH_PATH + 64];
    assert_int_equal(mkdir(r.path, 0777), 0);
    expect_overwrite_refused(r.path, "not an array"); /* empty */
    snprintf(name, sizeof name, "%s/00000000.chunk", r.path);
    save_text(name, "x");
    expect_overwrite_refused(r.path, "not an array"); /* without a frame */
    snprintf(name, sizeof name, "%s/chunks.b2frame", r.path);
    assert_int_equal(mkdir(name, 0777), 0);
    expect_overwrite_refused(r.path, "not an array"); /* the frame is a directory */
    assert_int_equal(count_entries(r.path), 2);
}

static void test_directory_that_became_foreign_is_kept(void **state)
{
    (void)state;
    room r = begin("became");
    char name[SCRATCH_PATH + 64];
    make_array_directory(r.path);
    cv_store *store = create(r.path, true, "new");
    snprintf(name, sizeof name, "%s/notes.txt", r.path);
    save_text(name, "precious");
    assert_int_equal(cv_store_publish(store, true, &error), CATERVA_EEXIST);
    cv_store_close(store);
    expect_text(name, "precious");
    expect_kept(r.path, "chunks.b2frame", "old");
    assert_int_equal(count_entries(r.dir), 1);
}

static void test_special_files_are_not_replaced(void **state)
{
    (void)state;
    room r = begin("special");
    struct stat st;
    assert_int_equal(mkfifo(r.path, 0666), 0);
    expect_overwrite_refused(r.path, "is not a regular file");
    assert_int_equal(lstat(r.path, &st), 0);
    assert_true(S_ISFIFO(st.st_mode));
    assert_int_equal(count_entries(r.dir), 1);
}

/* ---- Publishing that fails ------------------------------------------------ */

/* Deletes the temporary file beside the target without the store's knowledge. */
static void remove_temporaries(const char *dir_path)
{
    char path[SCRATCH_PATH + 300];
    DIR *dir = opendir(dir_path);
    assert_non_null(dir);
    for (struct dirent *e; (e = readdir(dir)) != NULL;) {
        if (strncmp(e->d_name, ".target.tmp-", 12) != 0) continue;
        snprintf(path, sizeof path, "%s/%s", dir_path, e->d_name);
        assert_int_equal(unlink(path), 0);
    }
    closedir(dir);
}

static void test_failed_publish_leaves_the_old_array(void **state)
{
    (void)state;
    room r = begin("failed");
    make_array_directory(r.path);
    cv_store *store = create(r.path, true, "new");
    remove_temporaries(r.dir);
    assert_int_equal(cv_store_publish(store, true, &error), CATERVA_EIO);
    cv_store_close(store);
    expect_kept(r.path, "chunks.b2frame", "old");
    assert_int_equal(count_entries(r.path), 5);
    assert_int_equal(count_entries(r.dir), 1);
}

static void test_file_systems_without_special_renames(void **state)
{
    (void)state;
    void (*const tests[])(void **) = {
        test_overwrite_a_file,
        test_overwrite_without_target,
        test_overwrite_an_array_directory,
        test_directory_that_became_foreign_is_kept,
        test_failed_publish_leaves_the_old_array,
    };
    run_portably(tests, sizeof tests / sizeof tests[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_overwrite_a_file),
        cmocka_unit_test(test_overwrite_without_target),
        cmocka_unit_test(test_overwrite_an_array_directory),
        cmocka_unit_test(test_overwrite_through_a_symbolic_link),
        cmocka_unit_test(test_foreign_directories_are_never_removed),
        cmocka_unit_test(test_directories_that_only_resemble_arrays),
        cmocka_unit_test(test_directory_that_became_foreign_is_kept),
        cmocka_unit_test(test_special_files_are_not_replaced),
        cmocka_unit_test(test_failed_publish_leaves_the_old_array),
        cmocka_unit_test(test_file_systems_without_special_renames),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
