/* Unit: store/file and store/place. Bytes, locks, what cannot be opened or created, and
 * publishing without replacing, also with many competitors: the array is published completely
 * or not at all, and no temporary file remains. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "unit/file_store.h"

/* ---- Bytes -------------------------------------------------------------- */

static void test_write_publish_read(void **state)
{
    (void)state;
    room r = begin("bytes");
    char back[16] = {0};
    uint64_t size;
    cv_store *store = create(r.path, false, "hello");
    assert_true(store->writable && !store->published && !store->in_memory);
    assert_int_equal(write_text(store, 8, "world"), CV_OK);
    assert_int_equal(cv_store_sync(store, CV_FRAME_OBJECT, &error), CV_OK);
    assert_int_equal(cv_store_publish(store, true, &error), CV_OK);
    assert_int_equal(cv_store_publish(store, true, &error), CV_OK);
    assert_true(store->published);
    cv_store_close(store);
    assert_int_equal(count_entries(r.dir), 1);

    assert_int_equal(cv_store_file_open(r.path, 0, false, &store, &error), CV_OK);
    assert_int_equal(cv_store_size(store, CV_FRAME_OBJECT, &size, &error), CV_OK);
    assert_int_equal(size, 13);
    assert_int_equal(cv_store_read(store, CV_FRAME_OBJECT, 0, back, 13, &error), CV_OK);
    assert_memory_equal(back, "hello\0\0\0world", 13);
    assert_null(cv_store_view(store, CV_FRAME_OBJECT, 0, 1));
    assert_int_equal(write_text(store, 0, "x"), CATERVA_EREADONLY);
    assert_int_equal(cv_store_truncate(store, CV_FRAME_OBJECT, 0, &error), CATERVA_EREADONLY);
    cv_store_close(store);
}

static void test_truncate_and_grow(void **state)
{
    (void)state;
    room r = begin("truncate");
    char back[8];
    cv_store *store = create(r.path, false, "12345678");
    assert_int_equal(cv_store_truncate(store, CV_FRAME_OBJECT, 4, &error), CV_OK);
    assert_int_equal(cv_store_truncate(store, CV_FRAME_OBJECT, 6, &error), CV_OK);
    assert_int_equal(cv_store_read(store, CV_FRAME_OBJECT, 0, back, 6, &error), CV_OK);
    assert_memory_equal(back, "1234\0\0", 6);
    assert_int_equal(cv_store_truncate(store, CV_FRAME_OBJECT, UINT64_MAX, &error),
                     CATERVA_EIO);
    cv_store_close(store);
}

static void test_read_past_the_end_says_where(void **state)
{
    (void)state;
    room r = begin("past");
    char back[16];
    cv_store *store;
    save_text(r.path, "0123456789");
    assert_int_equal(cv_store_file_open(r.path, 0, false, &store, &error), CV_OK);
    assert_int_equal(cv_store_read(store, CV_FRAME_OBJECT, 8, back, 3, &error),
                     CATERVA_ECORRUPT);
    assert_int_equal(error.position, 10);
    assert_int_equal(cv_store_read(store, CV_FRAME_OBJECT, UINT64_MAX, back, 3, &error),
                     CATERVA_ECORRUPT);
    assert_int_equal(error.position, 10);
    cv_store_close(store);

    assert_int_equal(cv_store_file_open(r.path, 4, false, &store, &error), CV_OK);
    assert_int_equal(cv_store_read(store, CV_FRAME_OBJECT, 1, back, 5, &error), CV_OK);
    assert_memory_equal(back, "56789", 5);
    assert_int_equal(cv_store_read(store, CV_FRAME_OBJECT, 1, back, 6, &error),
                     CATERVA_ECORRUPT);
    assert_int_equal(error.position, 6);
    assert_int_equal(cv_store_read(store, CV_FRAME_OBJECT, UINT64_MAX - 1, back, 6, &error),
                     CATERVA_ECORRUPT);
    cv_store_close(store);

    assert_int_equal(cv_store_file_open(r.path, 11, false, &store, &error), CATERVA_ECORRUPT);
    assert_int_equal(cv_store_file_open(r.path, 4, true, &store, &error), CATERVA_EINVAL);
}

static void test_objects_that_a_file_has_not(void **state)
{
    (void)state;
    room r = begin("objects");
    uint64_t size;
    char byte;
    cv_store *store = create(r.path, false, "x");
    assert_int_equal(cv_store_size(store, 0, &size, &error), CATERVA_ENOTFOUND);
    assert_int_equal(cv_store_read(store, 0, 0, &byte, 1, &error), CATERVA_ENOTFOUND);
    assert_int_equal(cv_store_write(store, 0, 0, "x", 1, &error), CATERVA_ENOTFOUND);
    assert_int_equal(cv_store_remove(store, 0, &error), CV_OK);
    assert_int_equal(cv_store_replace(store, "x", 1, true, &error), CATERVA_EINVAL);
    cv_store_close(store);
}

/* ---- What cannot be opened or created ------------------------------------ */

static void expect_open_fails(const char *path, cv_status status, int sys_errno,
                              const char *word)
{
    cv_store *store;
    for (int writable = 0; writable < 2; writable++) {
        memset(&error, 0, sizeof error);
        assert_int_equal(cv_store_file_open(path, 0, writable, &store, &error), status);
        assert_int_equal(error.sys_errno, sys_errno);
        assert_non_null(strstr(error.message, word));
    }
}

static void test_what_is_no_file(void **state)
{
    (void)state;
    room r = begin("nofile");
    expect_open_fails(r.path, CATERVA_ENOTFOUND, 0, "nofile/target does not exist");
    expect_open_fails(r.dir, CATERVA_EIO, EISDIR, "s a directory");
    assert_int_equal(mkfifo(r.path, 0666), 0);
    expect_open_fails(r.path, CATERVA_EIO, 0, "is not a regular file");
    expect_open_fails("/dev/null/x", CATERVA_ENOTFOUND, 0, "/dev/null/x");
}

static void test_long_paths_keep_their_end_and_the_reason(void **state)
{
    (void)state;
    char path[800];
    memset(path, 'd', sizeof path);
    for (size_t i = 0; i < 600; i += 100) path[i] = '/';
    snprintf(path + 600, sizeof path - 600, "/the-end");
    expect_open_fails(path, CATERVA_ENOTFOUND, 0, "/the-end does not exist");
}

static void expect_create_fails(const char *path, cv_status status, int sys_errno,
                                const char *word)
{
    cv_store *store;
    memset(&error, 0, sizeof error);
    assert_int_equal(cv_store_file_create(path, false, &store, &error), status);
    assert_int_equal(error.sys_errno, sys_errno);
    assert_non_null(strstr(error.message, word));
}

static void test_parents_that_will_not_do(void **state)
{
    (void)state;
    room r = begin("parents");
    char path[SCRATCH_PATH + 64];
    snprintf(path, sizeof path, "%s/none/target", r.dir);
    expect_create_fails(path, CATERVA_EIO, ENOENT, "none/target");
    assert_non_null(strstr(error.message, strerror(ENOENT)));
    save_text(r.path, "file");
    snprintf(path, sizeof path, "%s/below", r.path);
    expect_create_fails(path, CATERVA_EIO, ENOTDIR, "target/below");
    expect_create_fails("", CATERVA_EINVAL, 0, "empty");
    expect_create_fails("/", CATERVA_EEXIST, 0, "root");
}

/* In a child that drops root privileges. */
static int create_in_a_closed_directory(const char *path)
{
    cv_store *store;
    if (geteuid() == 0 && seteuid(65534)) return 1;
    if (cv_store_file_create(path, false, &store, &error) != CATERVA_EIO) return 2;
    return error.sys_errno == EACCES && strstr(error.message, "target") ? 0 : 3;
}

static void test_parent_that_is_not_writable(void **state)
{
    (void)state;
    room r = begin("closed");
    assert_int_equal(chmod(r.dir, 0555), 0);
    assert_int_equal(in_child(create_in_a_closed_directory, r.path), 0);
    assert_int_equal(chmod(r.dir, 0777), 0);
    assert_int_equal(count_entries(r.dir), 0);
}

/* A file size limit simulates a full disk: a part is written, then nothing. */
static int write_too_much(const char *path)
{
    struct rlimit limit = {1000, 1000};
    cv_store *store;
    static char bytes[5000];
    signal(SIGXFSZ, SIG_IGN);
    if (cv_store_file_create(path, false, &store, &error) != CV_OK) return 1;
    if (setrlimit(RLIMIT_FSIZE, &limit)) return 2;
    if (cv_store_write(store, CV_FRAME_OBJECT, 0, bytes, 5000, &error) != CATERVA_EIO)
        return 3;
    if (error.sys_errno != EFBIG) return 4;
    if (cv_store_write(store, CV_FRAME_OBJECT, 0, bytes, 1000, &error) != CV_OK) return 5;
    cv_store_close(store);
    return 0;
}

static void test_full_disk(void **state)
{
    (void)state;
    room r = begin("full");
    assert_int_equal(in_child(write_too_much, r.path), 0);
    assert_int_equal(count_entries(r.dir), 0);
}

/* ---- Locks -------------------------------------------------------------- */

static void test_one_writer(void **state)
{
    (void)state;
    room r = begin("lock");
    cv_store *writer, *reader;
    save_text(r.path, "x");
    assert_int_equal(cv_store_file_open(r.path, 0, true, &writer, &error), CV_OK);
    assert_int_equal(open_writable_status(r.path), -CATERVA_EBUSY);
    assert_non_null(strstr(error.message, "lock/target"));
    assert_int_equal(in_child(open_writable_status, r.path), -CATERVA_EBUSY);
    assert_int_equal(cv_store_file_open(r.path, 0, false, &reader, &error), CV_OK);
    cv_store_close(reader);
    cv_store_close(writer);
    assert_int_equal(in_child(open_writable_status, r.path), 0);
    assert_int_equal(open_writable_status(r.path), 0);
}

static void test_lock_of_a_created_file_lasts_beyond_publish(void **state)
{
    (void)state;
    room r = begin("locknew");
    cv_store *store = create(r.path, false, "new");
    assert_int_equal(cv_store_publish(store, true, &error), CV_OK);
    assert_int_equal(open_writable_status(r.path), -CATERVA_EBUSY);
    assert_int_equal(in_child(open_writable_status, r.path), -CATERVA_EBUSY);
    assert_int_equal(write_text(store, 0, "NEW"), CV_OK);
    cv_store_close(store);
    expect_text(r.path, "NEW");
    assert_int_equal(open_writable_status(r.path), 0);
}

/* ---- Publishing --------------------------------------------------------- */

static void test_unpublished_leaves_nothing(void **state)
{
    (void)state;
    room r = begin("unpublished");
    cv_store *store = create(r.path, false, "new");
    assert_int_equal(access(r.path, F_OK), -1);
    assert_int_equal(count_entries(r.dir), 1);
    cv_store_close(store);
    assert_int_equal(count_entries(r.dir), 0);
}

static void test_existing_target_is_refused_early(void **state)
{
    (void)state;
    room r = begin("early");
    save_text(r.path, "old");
    expect_create_fails(r.path, CATERVA_EEXIST, 0, "early/target exists already");
    assert_int_equal(count_entries(r.dir), 1);
    assert_int_equal(unlink(r.path), 0);
    assert_int_equal(symlink("nowhere", r.path), 0);
    expect_create_fails(r.path, CATERVA_EEXIST, 0, "exists already");
}

static void test_target_that_came_meanwhile_is_kept(void **state)
{
    (void)state;
    room r = begin("meanwhile");
    cv_store *store = create(r.path, false, "new");
    save_text(r.path, "theirs");
    assert_int_equal(cv_store_publish(store, true, &error), CATERVA_EEXIST);
    assert_false(store->published);
    cv_store_close(store);
    expect_text(r.path, "theirs");
    assert_int_equal(count_entries(r.dir), 1);
}

enum { RACERS = 8, ROUNDS = 30 };

typedef struct race {
    const char *path;
    pthread_barrier_t start;
    atomic_int winners, losers;
} race;

static void *run_race(void *context)
{
    race *ra = context;
    cv_store *store;
    cv_error mine;
    cv_status status = cv_store_file_create(ra->path, false, &store, &mine);
    pthread_barrier_wait(&ra->start);
    if (status != CV_OK) return NULL;
    status = cv_store_publish(store, false, &mine);
    if (status == CV_OK) atomic_fetch_add(&ra->winners, 1);
    if (status == CATERVA_EEXIST) atomic_fetch_add(&ra->losers, 1);
    cv_store_close(store);
    return NULL;
}

static void test_many_publish_one_wins(void **state)
{
    (void)state;
    room r = begin("race");
    for (int round = 0; round < ROUNDS; round++) {
        race ra = {.path = r.path};
        pthread_t threads[RACERS];
        pthread_barrier_init(&ra.start, NULL, RACERS);
        for (int i = 0; i < RACERS; i++)
            assert_int_equal(pthread_create(&threads[i], NULL, run_race, &ra), 0);
        for (int i = 0; i < RACERS; i++) pthread_join(threads[i], NULL);
        pthread_barrier_destroy(&ra.start);
        assert_int_equal(ra.winners, 1);
        assert_int_equal(ra.losers, RACERS - 1);
        assert_int_equal(count_entries(r.dir), 1);
        assert_int_equal(unlink(r.path), 0);
    }
}

static void test_names_with_slashes_and_from_elsewhere(void **state)
{
    (void)state;
    room r = begin("slashes");
    char path[SCRATCH_PATH + 64], before[4096];
    assert_non_null(getcwd(before, sizeof before));
    snprintf(path, sizeof path, "%s//", r.path);
    cv_store *store = create(path, false, "new");
    assert_int_equal(cv_store_publish(store, true, &error), CV_OK);
    cv_store_close(store);
    expect_text(r.path, "new");
    assert_int_equal(cv_store_file_open(path, 0, true, &store, &error), CV_OK);
    cv_store_close(store);

    /* A relative path keeps its meaning of the time of create. */
    assert_int_equal(chdir(r.dir), 0);
    store = create("second", false, "2");
    assert_int_equal(chdir("/"), 0);
    assert_int_equal(cv_store_publish(store, true, &error), CV_OK);
    cv_store_close(store);
    snprintf(path, sizeof path, "%s/second", r.dir);
    expect_text(path, "2");
    assert_int_equal(chdir(before), 0);
}

static void test_umask_decides_the_mode(void **state)
{
    (void)state;
    room r = begin("mode");
    struct stat st;
    mode_t before = umask(026);
    cv_store *store = create(r.path, false, "x");
    umask(before);
    assert_int_equal(cv_store_publish(store, false, &error), CV_OK);
    cv_store_close(store);
    assert_int_equal(stat(r.path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0640);
}

static void test_file_systems_without_special_renames(void **state)
{
    (void)state;
    void (*const tests[])(void **) = {
        test_write_publish_read,
        test_target_that_came_meanwhile_is_kept,
        test_many_publish_one_wins,
    };
    run_portably(tests, sizeof tests / sizeof tests[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_write_publish_read),
        cmocka_unit_test(test_truncate_and_grow),
        cmocka_unit_test(test_read_past_the_end_says_where),
        cmocka_unit_test(test_objects_that_a_file_has_not),
        cmocka_unit_test(test_what_is_no_file),
        cmocka_unit_test(test_long_paths_keep_their_end_and_the_reason),
        cmocka_unit_test(test_parents_that_will_not_do),
        cmocka_unit_test(test_parent_that_is_not_writable),
        cmocka_unit_test(test_full_disk),
        cmocka_unit_test(test_one_writer),
        cmocka_unit_test(test_lock_of_a_created_file_lasts_beyond_publish),
        cmocka_unit_test(test_unpublished_leaves_nothing),
        cmocka_unit_test(test_existing_target_is_refused_early),
        cmocka_unit_test(test_target_that_came_meanwhile_is_kept),
        cmocka_unit_test(test_many_publish_one_wins),
        cmocka_unit_test(test_names_with_slashes_and_from_elsewhere),
        cmocka_unit_test(test_umask_decides_the_mode),
        cmocka_unit_test(test_file_systems_without_special_renames),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
