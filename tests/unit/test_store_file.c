/* Unit: store/file and store/place. Bytes, locks, publishing without replacing
 * (also when many race), replacing files, arrays in directories and nothing
 * else, and what is left behind: the old array or the new one, never a trace. */
#include "scratch.h"
#include "store/store.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef __linux__
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#endif

#include <cmocka.h>

#include "unit/rooms.h"

static cv_error error;

/* A fresh directory, and no error yet. */
static room begin(const char *name)
{
    memset(&error, 0, sizeof error);
    return new_room(name);
}

static void save_text(const char *path, const char *text)
{
    scratch_save(path, text, strlen(text));
}

static void expect_text(const char *path, const char *text)
{
    size_t size;
    uint8_t *bytes = scratch_load(path, &size);
    assert_non_null(bytes);
    assert_int_equal(size, strlen(text));
    assert_memory_equal(bytes, text, size);
    free(bytes);
}

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

static cv_status write_text(cv_store *store, uint64_t pos, const char *text)
{
    return cv_store_write(store, CV_FRAME_OBJECT, pos, text, strlen(text), &error);
}

static cv_store *create(const char *path, bool overwrite, const char *text)
{
    cv_store *store;
    assert_int_equal(cv_store_file_create(path, overwrite, &store, &error), CV_OK);
    assert_int_equal(write_text(store, 0, text), CV_OK);
    return store;
}

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
    assert_int_equal(write_text(store, 0, "x"), CATERVA_EINVAL);
    assert_int_equal(cv_store_truncate(store, CV_FRAME_OBJECT, 0, &error), CATERVA_EINVAL);
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

/* In a child, which gives up being root. */
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

/* A file size limit stands in for a full disk: a part is written, then none. */
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

static int open_writable_status(const char *path)
{
    cv_store *store;
    cv_status status = cv_store_file_open(path, 0, true, &store, &error);
    if (status == CV_OK) cv_store_close(store);
    return -(int)status;
}

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

    /* A relative path means what it meant at the time of create. */
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

/* ---- Overwriting -------------------------------------------------------- */

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

    /* It was there at create and is gone at publish. */
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

/* ---- Publishing that fails, and file systems that cannot ------------------ */

/* Removes the temporary beside the target behind the store's back. */
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

#ifdef __linux__
/* As on a file system without renames that do not replace or that exchange:
 * the kernel answers EINVAL there. False when it does not let us pretend. */
static bool forbid_special_renames(void)
{
    struct sock_filter steps[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_renameat2, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EINVAL),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof steps / sizeof steps[0], steps};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

enum { CANNOT_PRETEND = 77 };

static int run_portably(void (*const *tests)(void **state), int n)
{
    fflush(stdout);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        if (!forbid_special_renames()) _exit(CANNOT_PRETEND);
        /* A failing assertion jumps out of cmocka's own call: not in a child. */
        for (int i = 0; i < n; i++) {
            const struct CMUnitTest one[] = {
                {"without renameat2", tests[i], NULL, NULL, NULL}};
            if (cmocka_run_group_tests(one, NULL, NULL) != 0) _exit(i + 1);
        }
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 255;
}

static void test_file_systems_without_special_renames(void **state)
{
    (void)state;
    void (*const tests[])(void **) = {
        test_write_publish_read,
        test_target_that_came_meanwhile_is_kept,
        test_many_publish_one_wins,
        test_overwrite_a_file,
        test_overwrite_without_target,
        test_overwrite_an_array_directory,
        test_directory_that_became_foreign_is_kept,
        test_failed_publish_leaves_the_old_array,
    };
    int result = run_portably(tests, sizeof tests / sizeof tests[0]);
    if (result == CANNOT_PRETEND) skip();
    assert_int_equal(result, 0);
}
#else
static void test_file_systems_without_special_renames(void **state)
{
    (void)state;
    skip();
}
#endif

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
        cmocka_unit_test(test_overwrite_a_file),
        cmocka_unit_test(test_overwrite_without_target),
        cmocka_unit_test(test_overwrite_an_array_directory),
        cmocka_unit_test(test_foreign_directories_are_never_removed),
        cmocka_unit_test(test_directories_that_only_resemble_arrays),
        cmocka_unit_test(test_directory_that_became_foreign_is_kept),
        cmocka_unit_test(test_overwrite_through_a_symbolic_link),
        cmocka_unit_test(test_special_files_are_not_replaced),
        cmocka_unit_test(test_failed_publish_leaves_the_old_array),
        cmocka_unit_test(test_file_systems_without_special_renames),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
