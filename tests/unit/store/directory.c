/* Unit: store/directory. Names, replacing the frame, locks, publishing and overwriting. */
#include "scratch.h"
#include "store/directory.h"

#include <dirent.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "unit/rooms.h"

static cv_error error;

/* A fresh directory, and no error yet. */
static room begin(const char *name)
{
    memset(&error, 0, sizeof error);
    return new_room(name);
}

static const char *inside(const room *r, const char *name)
{
    static char path[SCRATCH_PATH + 64];
    snprintf(path, sizeof path, "%s/%s", r->path, name);
    return path;
}

static cv_status put(cv_store *store, cv_object id, const char *text)
{
    return cv_store_write(store, id, 0, text, strlen(text), &error);
}

static cv_status replace(cv_store *store, const char *text)
{
    return cv_store_replace(store, text, strlen(text), true, &error);
}

static void expect_object(cv_store *store, cv_object id, const char *text)
{
    char back[64] = {0};
    uint64_t size;
    assert_int_equal(cv_store_size(store, id, &size, &error), CV_OK);
    assert_int_equal(size, strlen(text));
    assert_int_equal(cv_store_read(store, id, 0, back, (size_t)size, &error), CV_OK);
    assert_string_equal(back, text);
}

/* An open writer with frame "frame" and chunks 0 and 10. */
static cv_store *create(const char *path, bool overwrite)
{
    cv_store *store;
    assert_int_equal(cv_store_directory_create(path, overwrite, &store, &error), CV_OK);
    assert_int_equal(put(store, 0, "zero"), CV_OK);
    assert_int_equal(put(store, 10, "ten"), CV_OK);
    assert_int_equal(cv_store_sync(store, 0, &error), CV_OK);
    assert_int_equal(cv_store_sync(store, 10, &error), CV_OK);
    assert_int_equal(cv_store_sync(store, CV_FRAME_OBJECT, &error), CV_OK);
    assert_int_equal(replace(store, "frame"), CV_OK);
    return store;
}

static cv_store *create_published(const char *path, bool overwrite)
{
    cv_store *store = create(path, overwrite);
    assert_int_equal(cv_store_publish(store, true, &error), CV_OK);
    assert_true(store->published);
    return store;
}

static cv_store *open_reader(const char *path)
{
    cv_store *store;
    assert_int_equal(cv_store_directory_open(path, false, &store, &error), CV_OK);
    assert_true(store->published && store->has_chunk_objects && !store->writable);
    return store;
}

/* ---- Objects ------------------------------------------------------------ */

static void test_write_publish_read(void **state)
{
    (void)state;
    room r = begin("bytes");
    cv_store_close(create_published(r.path, false));
    expect_text(inside(&r, "chunks.b2frame"), "frame");
    expect_text(inside(&r, "00000000.chunk"), "zero");
    expect_text(inside(&r, "0000000A.chunk"), "ten");
    assert_int_equal(count_entries(r.path), 4); /* and the lock file */
    assert_int_equal(count_entries(r.dir), 1);

    cv_store *store = open_reader(r.path);
    expect_object(store, CV_FRAME_OBJECT, "frame");
    expect_object(store, 10, "ten");
    expect_object(store, 0, "zero");
    assert_null(cv_store_view(store, 0, 0, 1));
    cv_store_close(store);
}

static void test_what_does_not_exist(void **state)
{
    (void)state;
    room r = begin("missing");
    uint64_t size;
    char back[8];
    cv_store *store = create_published(r.path, false);
    assert_int_equal(cv_store_size(store, 11, &size, &error), CATERVA_ENOTFOUND);
    assert_non_null(strstr(error.message, "0000000B.chunk"));
    assert_int_equal(cv_store_read(store, 11, 0, back, 1, &error), CATERVA_ENOTFOUND);
    assert_int_equal(cv_store_sync(store, 11, &error), CATERVA_ENOTFOUND);
    assert_int_equal(cv_store_remove(store, 11, &error), CV_OK);
    assert_int_equal(cv_store_read(store, 10, 1, back, 3, &error), CATERVA_ECORRUPT);
    assert_int_equal(error.position, 3);
    assert_int_equal(cv_store_read(store, CV_FRAME_OBJECT, 5, back, 1, &error),
                     CATERVA_ECORRUPT);
    assert_int_equal(error.position, 5);
    cv_store_close(store);

    assert_int_equal(cv_store_directory_create(inside(&r, "fresh"), false, &store, &error),
                     CV_OK);
    assert_int_equal(cv_store_size(store, CV_FRAME_OBJECT, &size, &error), CATERVA_ENOTFOUND);
    cv_store_close(store);
}

static void test_refusals(void **state)
{
    (void)state;
    room r = begin("refusals");
    cv_store *store = create_published(r.path, false);
    assert_int_equal(put(store, CV_FRAME_OBJECT, "x"), CATERVA_EINVAL);
    assert_int_equal(cv_store_truncate(store, CV_FRAME_OBJECT, 0, &error), CATERVA_EINVAL);
    assert_int_equal(cv_store_remove(store, CV_FRAME_OBJECT, &error), CATERVA_EINVAL);
    cv_store_close(store);

    store = open_reader(r.path);
    assert_int_equal(put(store, 1, "x"), CATERVA_EREADONLY);
    assert_int_equal(replace(store, "x"), CATERVA_EREADONLY);
    assert_int_equal(cv_store_remove(store, 0, &error), CATERVA_EREADONLY);
    assert_int_equal(cv_store_truncate(store, 0, 0, &error), CATERVA_EREADONLY);
    cv_store_close(store);
    expect_text(inside(&r, "00000000.chunk"), "zero");
}

static void test_a_chunk_begins_anew_under_a_stray_name(void **state)
{
    (void)state;
    room r = begin("stray");
    cv_store *store = create_published(r.path, false);
    scratch_save(inside(&r, "00000005.chunk"), "left by a crash", 15);
    assert_int_equal(put(store, 5, "five"), CV_OK);
    expect_object(store, 5, "five");
    expect_text(inside(&r, "00000005.chunk"), "five");
    assert_int_equal(cv_store_write(store, 5, 4, "!", 1, &error), CV_OK);
    expect_object(store, 5, "five!");
    assert_int_equal(cv_store_truncate(store, 5, 2, &error), CV_OK);
    expect_object(store, 5, "fi");
    cv_store_close(store);
}

/* Deleted from one directory it stays in the other; a new file begins empty. */
static void test_a_shared_chunk_stays_as_it_is(void **state)
{
    (void)state;
    room r = begin("shared");
    cv_store *from = create_published(r.path, false), *reader = open_reader(r.path), *to;
    assert_int_equal(cv_store_directory_create(inside(&r, "../other"), false, &to, &error),
                     CV_OK);
    assert_false(to->ops->share(to, 5, from, 10, 4)); /* another size */
    assert_false(to->ops->share(to, 5, from, 11, 3)); /* it does not exist */
    assert_false(reader->ops->share(reader, 5, to, 10, 3));
    assert_int_equal(put(to, 5, "left by a crash"), CV_OK);
    for (int i = 0; i < 2; i++) {
        assert_true(to->ops->share(to, 5, i == 0 ? from : reader, 10, 3));
        expect_object(to, 5, "ten");
        assert_int_equal(put(to, 5, "five"), CV_OK);
        expect_object(to, 5, "five");
        expect_object(from, 10, "ten");
    }
    assert_true(to->ops->share(to, 6, from, 10, 3));
    assert_int_equal(cv_store_remove(to, 6, &error), CV_OK);
    assert_true(to->ops->share(to, 7, from, 10, 3));
    assert_int_equal(cv_store_remove(from, 10, &error), CV_OK);
    expect_object(to, 7, "ten");
    cv_store_close(to);
    cv_store_close(reader);
    cv_store_close(from);
}

static void test_removed_ids_are_forgotten(void **state)
{
    (void)state;
    room r = begin("removed");
    uint64_t size;
    cv_store *store = create_published(r.path, false);
    expect_object(store, 10, "ten");
    assert_int_equal(cv_store_remove(store, 10, &error), CV_OK);
    assert_int_equal(cv_store_size(store, 10, &size, &error), CATERVA_ENOTFOUND);
    assert_int_equal(put(store, 10, "another"), CV_OK); /* after a dropped transaction */
    expect_object(store, 10, "another");
    cv_store_close(store);
}

static void test_readers_follow_the_frame_when_they_look_anew(void **state)
{
    (void)state;
    room r = begin("follow");
    char back[6] = {0};
    cv_store *writer = create_published(r.path, false);
    cv_store *reader = open_reader(r.path);
    expect_object(reader, CV_FRAME_OBJECT, "frame");
    assert_int_equal(replace(writer, "second frame"), CV_OK);
    expect_object(writer, CV_FRAME_OBJECT, "second frame");

    /* Until the size is queried, it reads the one file that it has open. */
    assert_int_equal(cv_store_read(reader, CV_FRAME_OBJECT, 0, back, 5, &error), CV_OK);
    assert_string_equal(back, "frame");
    expect_object(reader, CV_FRAME_OBJECT, "second frame");
    assert_int_equal(count_entries(r.path), 4);
    cv_store_close(reader);
    cv_store_close(writer);
}

/* ---- Opening ------------------------------------------------------------ */

static void expect_open_fails(const char *path, cv_status status, int sys_errno)
{
    cv_store *store;
    for (int writable = 0; writable < 2; writable++) {
        memset(&error, 0, sizeof error);
        assert_int_equal(cv_store_directory_open(path, writable, &store, &error), status);
        assert_int_equal(error.sys_errno, sys_errno);
        assert_non_null(strstr(error.message, path));
    }
}

static void test_what_is_no_array(void **state)
{
    (void)state;
    room r = begin("noarray");
    expect_open_fails(r.path, CATERVA_ENOTFOUND, 0);
    assert_int_equal(mkdir(r.path, 0777), 0);
    expect_open_fails(r.path, CATERVA_ENOTFOUND, 0);
    assert_non_null(strstr(error.message, "chunks.b2frame"));
    assert_int_equal(count_entries(r.path), 0); /* no lock file in a foreign directory */
    scratch_save(inside(&r, "file"), "x", 1);
    expect_open_fails(inside(&r, "file"), CATERVA_EIO, ENOTDIR);
    expect_open_fails(inside(&r, "file/below"), CATERVA_ENOTFOUND, 0);
}

static int open_writable_status(const char *path)
{
    cv_store *store;
    cv_status status = cv_store_directory_open(path, true, &store, &error);
    if (status == CV_OK) cv_store_close(store);
    return -(int)status;
}

static void test_one_writer(void **state)
{
    (void)state;
    room r = begin("lock");
    cv_store *writer = create_published(r.path, false);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(open_writable_status(r.path), -CATERVA_EBUSY);
        assert_non_null(strstr(error.message, "lock/target"));
        assert_int_equal(in_child(open_writable_status, r.path), -CATERVA_EBUSY);
        cv_store_close(open_reader(r.path));
        assert_int_equal(replace(writer, "the lock outlives this"), CV_OK);
    }
    cv_store_close(writer);
    assert_int_equal(in_child(open_writable_status, r.path), 0);
    assert_int_equal(open_writable_status(r.path), 0);
}

static void test_trailing_slashes(void **state)
{
    (void)state;
    room r = begin("slashes");
    char path[SCRATCH_PATH + 64];
    snprintf(path, sizeof path, "%s//", r.path);
    cv_store_close(create_published(path, false));
    cv_store *store = open_reader(path);
    expect_object(store, 10, "ten");
    cv_store_close(store);
    cv_store_close(create_published(path, true));
    assert_int_equal(count_entries(r.dir), 1);
}

/* ---- Publishing --------------------------------------------------------- */

static void test_unpublished_leaves_nothing(void **state)
{
    (void)state;
    room r = begin("unpublished");
    cv_store *store = create(r.path, false);
    assert_int_equal(access(r.path, F_OK), -1);
    assert_int_equal(count_entries(r.dir), 1);
    cv_store_close(store);
    assert_int_equal(count_entries(r.dir), 0);
}

static void test_existing_targets_are_kept(void **state)
{
    (void)state;
    room r = begin("exists");
    cv_store *store, *late = create(r.path, false);
    cv_store_close(create_published(r.path, false));
    assert_int_equal(cv_store_directory_create(r.path, false, &store, &error),
                     CATERVA_EEXIST);
    assert_int_equal(cv_store_publish(late, true, &error), CATERVA_EEXIST);
    assert_false(late->published);
    expect_object(late, 10, "ten"); /* still usable */
    cv_store_close(late);
    expect_text(inside(&r, "0000000A.chunk"), "ten");
    assert_int_equal(count_entries(r.dir), 1);

    /* An empty directory is not replaced either, although rename would do so. */
    scratch_remove(r.path);
    late = create(r.path, false);
    assert_int_equal(mkdir(r.path, 0777), 0);
    assert_int_equal(cv_store_publish(late, true, &error), CATERVA_EEXIST);
    cv_store_close(late);
    assert_int_equal(count_entries(r.path), 0);
    assert_int_equal(count_entries(r.dir), 1);
}

static void test_overwrite_a_file(void **state)
{
    (void)state;
    room r = begin("overfile");
    scratch_save(r.path, "old", 3);
    cv_store_close(create(r.path, true));
    expect_text(r.path, "old");
    cv_store_close(create_published(r.path, true));
    expect_text(inside(&r, "0000000A.chunk"), "ten");
    assert_int_equal(count_entries(r.dir), 1);
}

static void test_overwrite_a_directory(void **state)
{
    (void)state;
    room r = begin("overdir");
    cv_store *old = create_published(r.path, false);
    assert_int_equal(put(old, 0xABCDEF, "only in the old one"), CV_OK);
    cv_store_close(old);
    cv_store_close(create(r.path, true));
    expect_text(inside(&r, "00ABCDEF.chunk"), "only in the old one");
    cv_store *store = create_published(r.path, true);
    assert_int_equal(count_entries(r.path), 4);
    assert_int_equal(count_entries(r.dir), 1);
    assert_int_equal(open_writable_status(r.path), -CATERVA_EBUSY);
    cv_store_close(store);
}

/* A reader of its files, or a writer whose commits would be lost, prevents the
 * replacement. */
static void test_a_directory_in_use_is_not_replaced(void **state)
{
    (void)state;
    for (int writes = 0; writes < 2; writes++) {
        room r = begin(writes ? "overwriter" : "overreader");
        cv_store *user = NULL, *store;
        cv_store_close(create_published(r.path, false));
        cv_store *late = create(r.path, true);
        assert_int_equal(cv_store_directory_open(r.path, writes, &user, &error), CV_OK);
        assert_int_equal(cv_store_directory_create(r.path, true, &store, &error),
                         CATERVA_EBUSY);
        assert_non_null(strstr(error.message, "target is open for "));
        assert_int_equal(cv_store_publish(late, true, &error), CATERVA_EBUSY);
        assert_false(late->published);
        expect_object(user, 10, "ten");
        cv_store_close(user);
        assert_int_equal(cv_store_publish(late, true, &error), CV_OK);
        cv_store_close(late);
        assert_int_equal(count_entries(r.dir), 1);
        cv_store_close(create_published(r.path, true));
    }
}

static void test_foreign_directories_are_never_removed(void **state)
{
    (void)state;
    room r = begin("foreign");
    cv_store *store;
    cv_store_close(create_published(r.path, false));
    cv_store *late = create(r.path, true);
    scratch_save(inside(&r, "notes.txt"), "precious", 8);
    assert_int_equal(cv_store_directory_create(r.path, true, &store, &error), CATERVA_EEXIST);
    assert_non_null(strstr(error.message, "is a directory that is not an array"));
    assert_int_equal(cv_store_publish(late, true, &error), CATERVA_EEXIST);
    cv_store_close(late);
    expect_text(inside(&r, "notes.txt"), "precious");
    expect_text(inside(&r, "0000000A.chunk"), "ten");
    assert_int_equal(count_entries(r.dir), 1);
}

/* A foreign file keeps its directory, even if it was added meanwhile. */
static void test_closing_removes_only_our_files(void **state)
{
    (void)state;
    room r = begin("ours");
    cv_store *store = create(r.path, false);
    char temp[SCRATCH_PATH + 300] = "";
    DIR *dir = opendir(r.dir);
    for (struct dirent *e; (e = readdir(dir)) != NULL;)
        if (strncmp(e->d_name, ".target.tmp-", 12) == 0)
            snprintf(temp, sizeof temp, "%s/%s/notes.txt", r.dir, e->d_name);
    closedir(dir);
    scratch_save(temp, "precious", 8);
    cv_store_close(store);
    expect_text(temp, "precious");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_write_publish_read),
        cmocka_unit_test(test_what_does_not_exist),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_a_chunk_begins_anew_under_a_stray_name),
        cmocka_unit_test(test_a_shared_chunk_stays_as_it_is),
        cmocka_unit_test(test_removed_ids_are_forgotten),
        cmocka_unit_test(test_readers_follow_the_frame_when_they_look_anew),
        cmocka_unit_test(test_what_is_no_array),
        cmocka_unit_test(test_one_writer),
        cmocka_unit_test(test_trailing_slashes),
        cmocka_unit_test(test_unpublished_leaves_nothing),
        cmocka_unit_test(test_existing_targets_are_kept),
        cmocka_unit_test(test_overwrite_a_file),
        cmocka_unit_test(test_overwrite_a_directory),
        cmocka_unit_test(test_a_directory_in_use_is_not_replaced),
        cmocka_unit_test(test_foreign_directories_are_never_removed),
        cmocka_unit_test(test_closing_removes_only_our_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
