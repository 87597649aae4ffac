/* Trees with thousands of arrays that are written by a process that may have 256 files open.
 * Arrays that are open for writing keep no descriptors while unused; this must have no
 * visible effect: other writers are still locked out, one commit commits all of them, and
 * changes by programs without locks are detected. With CATERVA_TEST_LONG in the environment
 * there are ten thousand. */
#include "small_tree.h"

#include "support/sanitized.h"

#include <caterva_tree.h>
#include <caterva_upkeep.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LIMIT = 256, MOST = 10000, GROUPS = 40, SOME = 1000, FEW = 150, THREADS = 4 };

/* A commit locks all its arrays, and ThreadSanitizer supports 64 locks at a time. */
#if defined(__SANITIZE_THREAD__)
#define THREADS_ONLY 1
#else
#define THREADS_ONLY 0
#endif

static caterva_array *arrays[MOST];
static int n_arrays;

static const char *key_of(char key[40], int i)
{
    snprintf(key, 40, "/g%02d/x%05d", i % GROUPS, i);
    return key;
}

static void make(int i, int overwrite)
{
    char key[40];
    caterva_create_options o = create_options();
    o.durability = CATERVA_DURABILITY_NONE;
    o.overwrite = overwrite;
    o.threads = 1;
    CHECK_OK(caterva_tree_create_array(tree, key_of(key, i), &o, &arrays[i], &err), err);
}

static void make_filled(int n, int32_t first, int overwrite)
{
    for (int i = 0; i < n; i++) {
        make(i, overwrite);
        fill(arrays[i], first + i);
    }
}

static void open_some(int n)
{
    char key[40];
    caterva_open_options o = CATERVA_OPEN_INIT;
    o.mode = CATERVA_MODE_WRITE;
    o.durability = CATERVA_DURABILITY_NONE;
    for (int i = 0; i < n; i++)
        CHECK_OK(caterva_tree_open_array(tree, key_of(key, i), &o, &arrays[i], &err), err);
}

static void close_all(int n)
{
    for (int i = 0; i < n; i++) {
        CHECK_OK(caterva_close(arrays[i], &err), err);
        arrays[i] = NULL;
    }
}

static int32_t first_of(caterva_array *array)
{
    static const int64_t start[] = {0, 0}, stop[] = {1, 1};
    int32_t item = -1;
    CHECK_OK(caterva_read(array, start, stop, &item, sizeof item, &err), err);
    return item;
}

static void check_held(int n, int32_t first)
{
    for (int i = 0; i < n; i++)
        CHECK(first_of(arrays[i]) == first + i, "array %d: %d", i, first_of(arrays[i]));
}

static void check_stored(int n, int32_t first)
{
    char key[40];
    for (int i = 0; i < n; i++) check_first(tree, key_of(key, i), first + i);
}

static void open_tree(int create)
{
    caterva_tree_options o = CATERVA_TREE_INIT;
    o.mode = CATERVA_MODE_WRITE;
    o.durability = CATERVA_DURABILITY_NONE;
    caterva_status status =
        (create ? caterva_tree_create : caterva_tree_open)(path, &o, &tree, &err);
    CHECK_OK(status, err);
}

static void close_tree(void) { CHECK_OK(caterva_tree_close(tree, &err), err); }

static size_t count(void)
{
    const caterva_tree_list *list;
    CHECK_OK(caterva_tree_get_list(tree, "/", &list, &err), err);
    size_t n = list->n;
    caterva_tree_list_release(list);
    return n;
}

static int count_hidden(const char *group)
{
    int n = 0;
    char folder[SCRATCH_PATH + 20];
    snprintf(folder, sizeof folder, "%s/%s", path, group);
    DIR *dir = opendir(folder);
    CHECK(dir, "%s", folder);
    for (struct dirent *e; (e = readdir(dir));)
        n += e->d_name[0] == '.' && strcmp(e->d_name, ".") && strcmp(e->d_name, "..");
    closedir(dir);
    return n;
}

/* ---- Many ------------------------------------------------------------- */

static void test_many(void)
{
    open_tree(1);
    make_filled(n_arrays, 0, 0);
    check_held(n_arrays, 0);
    CHECK(count() == 0, "%zu entries before the commit", count());
    CHECK_OK(caterva_tree_commit(tree, &err), err); /* all in one */
    CHECK(count() == (size_t)n_arrays + GROUPS, "%zu entries", count());
    check_held(n_arrays, 0);
    for (int i = 0; i < n_arrays; i++) fill(arrays[i], 70000 + i);
    check_held(n_arrays, 70000);
    check_stored(GROUPS, 0);
    CHECK_OK(caterva_tree_commit(tree, &err), err); /* of existing arrays */
    close_all(n_arrays);
    close_tree();
    CHECK_OK(caterva_tree_open(path, NULL, &tree, &err), err);
    CHECK(count() == (size_t)n_arrays + GROUPS, "%zu entries", count());
    check_stored(n_arrays, 70000);
    close_tree();
}

/* New arrays in place of others: these are locked between the steps. */
static void test_overwrite(void)
{
    open_tree(0);
    make_filled(SOME, 5, 1);
    check_stored(GROUPS, 70000);
    CHECK_OK(caterva_tree_commit(tree, &err), err);
    close_all(SOME);
    check_stored(SOME, 5);
    close_tree();
}

static void test_drop(void)
{
    open_tree(0);
    open_some(FEW);
    for (int i = 0; i < FEW; i++) fill(arrays[i], 1);
    for (int i = FEW; i < 2 * FEW; i++) {
        make(i, 1);
        fill(arrays[i], 1);
    }
    CHECK(count_hidden("g00") > 0, "new arrays are nowhere");
    CHECK_OK(caterva_tree_rollback(tree, &err), err);
    for (int i = 0; i < 2 * FEW; i++) caterva_discard(arrays[i]);
    CHECK(count_hidden("g00") == 0, "temporary files stay");
    check_stored(2 * FEW, 5);
    close_tree();
}

/* ---- Others ---------------------------------------------------------------------- */

static void file_of(char file[SCRATCH_PATH + 50], int i)
{
    char key[40];
    snprintf(file, SCRATCH_PATH + 50, "%s%s.b2nd", path, key_of(key, i));
}

static caterva_status write_by_path(int i)
{
    char file[SCRATCH_PATH + 50];
    caterva_array *array;
    caterva_open_options o = CATERVA_OPEN_INIT;
    o.mode = CATERVA_MODE_WRITE;
    file_of(file, i);
    caterva_status status = caterva_open(file, &o, &array, &err);
    if (status == CATERVA_OK) caterva_discard(array);
    return status;
}

static caterva_status write_by_key(int i)
{
    char key[40], url[SCRATCH_PATH + 50];
    caterva_array *array;
    caterva_open_options o = CATERVA_OPEN_INIT;
    o.mode = CATERVA_MODE_WRITE;
    snprintf(url, sizeof url, "%s::%s", path, key_of(key, i));
    caterva_status status = caterva_open(url, &o, &array, &err);
    if (status == CATERVA_OK) caterva_discard(array);
    return status;
}

static caterva_status replace(int i)
{
    char file[SCRATCH_PATH + 50];
    caterva_array *array;
    caterva_create_options o = create_options();
    o.overwrite = 1;
    file_of(file, i);
    caterva_status status = caterva_create(file, &o, &array, &err);
    if (status == CATERVA_OK) caterva_discard(array);
    return status;
}

static caterva_status unlink_it(int i)
{
    char file[SCRATCH_PATH + 50];
    file_of(file, i);
    return caterva_delete(file, NULL, &err);
}

static caterva_status remove_it(int i)
{
    char key[40];
    return caterva_tree_delete(tree, key_of(key, i), &err);
}

typedef caterva_status (*attempt)(int i);

static void check_busy(int i)
{
    static const attempt attempts[] = {write_by_path, write_by_key, replace, unlink_it,
                                       remove_it};
    for (size_t n = 0; n < sizeof attempts / sizeof attempts[0]; n++) {
        caterva_status status = attempts[n](i);
        CHECK(status == CATERVA_EBUSY, "attempt %zu of array %d: %s", n, i,
              caterva_status_name(status));
    }
}

static void check_busy_elsewhere(int i, caterva_status expected)
{
    int status;
    pid_t child = fork();
    if (child == 0)
        _exit(write_by_path(i) == expected && write_by_key(i) == expected ? 0 : 1);
    CHECK(child > 0 && waitpid(child, &status, 0) == child, "fork");
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0, "array %d elsewhere: %x", i, status);
}

/* The arrays opened first have no descriptors, the last do; pending changes make no
 * difference. */
static void test_busy(void)
{
    caterva_tree *other;
    caterva_tree_options o = CATERVA_TREE_INIT;
    o.mode = CATERVA_MODE_WRITE;
    open_tree(0);
    open_some(FEW);
    fill(arrays[1], 77);
    first_of(arrays[FEW - 1]);
    for (int round = 0; round < 2; round++) {
        check_busy(0);
        check_busy(1);
        check_busy(FEW - 1);
        check_busy_elsewhere(2, CATERVA_EBUSY);
        check_busy_elsewhere(FEW - 2, CATERVA_EBUSY);
        check_first(tree, "/g01/x00001", round == 0 ? 6 : 77);
        CHECK_OK(caterva_tree_commit(tree, &err), err);
    }
    CHECK(caterva_tree_open(path, &o, &other, &err) == CATERVA_EBUSY, "two have the tree");
    close_tree(); /* arrays still belong to their writer */
    open_tree(0);
    check_busy(0);
    check_busy_elsewhere(2, CATERVA_EBUSY);
    close_all(FEW);
    check_busy_elsewhere(2, CATERVA_OK);
    CHECK_OK(write_by_path(0), err);
    close_tree();
}

/* By a program without locks. */
static void change_behind(int i)
{
    char file[SCRATCH_PATH + 50];
    file_of(file, i);
    int fd = open(file, O_WRONLY | O_APPEND);
    CHECK(fd >= 0 && write(fd, "more", 4) == 4, "%s", file);
    close(fd);
}

static void test_changed(void)
{
    static const int64_t start[] = {0, 0}, stop[] = {1, 1};
    int32_t item;
    open_tree(0);
    open_some(FEW);
    fill(arrays[0], 1);
    change_behind(0);
    caterva_status status = caterva_tree_commit(tree, &err);
    CHECK(status == CATERVA_EIO && strstr(err.message, "by others"), "%s: %s",
          caterva_status_name(status), err.message);
    change_behind(1);
    status = caterva_read(arrays[1], start, stop, &item, sizeof item, &err);
    CHECK(status == CATERVA_EIO && strstr(err.message, "by others"), "%s: %s",
          caterva_status_name(status), err.message);
    for (int i = 0; i < FEW; i++) caterva_discard(arrays[i]);
    check_stored(1, 5);
    close_tree();
}

static void check_gone(caterva_status status)
{
    CHECK(status == CATERVA_EIO && strstr(err.message, "by others"), "%s: %s",
          caterva_status_name(status), err.message);
}

/* The file of an array without descriptor, or its group, has been renamed. */
static void test_moved(void)
{
    static const int64_t start[] = {0, 0}, stop[] = {1, 1};
    int32_t item;
    char file[SCRATCH_PATH + 50], elsewhere[SCRATCH_PATH + 60];
    for (int is_group = 0; is_group < 2; is_group++) {
        open_tree(0);
        open_some(FEW);
        fill(arrays[0], 1);
        file_of(file, 0);
        if (is_group) *strrchr(file, '/') = '\0';
        snprintf(elsewhere, sizeof elsewhere, "%s-moved", file);
        CHECK(rename(file, elsewhere) == 0, "%s", file);
        check_gone(caterva_tree_commit(tree, &err));
        check_gone(caterva_commit(arrays[0], &err));
        check_gone(caterva_read(arrays[0], start, stop, &item, sizeof item, &err));
        check_gone(caterva_close(arrays[0], &err));
        for (int i = 1; i < FEW; i++) caterva_discard(arrays[i]);
        CHECK(rename(elsewhere, file) == 0, "%s", file);
        close_tree();
    }
}

/* ---- Threads ------------------------------------------------------------------------ */

static atomic_int wrong;

/* Each thread writes arrays of its own, and reads those that are not written. */
static void *work(void *context)
{
    int own = *(int *)context;
    caterva_error e;
    static const int64_t start[] = {0, 0}, stop[] = {1, 1};
    for (int round = 0; round < 6; round++)
        for (int i = own; i < FEW; i += THREADS) {
            int32_t item = 1000 * round + i, back = -1;
            int other = (i * 7 + round) % 20;
            bool writes = i >= 20;
            if (writes && caterva_write(arrays[i], start, stop, &item, sizeof item, &e))
                atomic_fetch_add(&wrong, 1);
            if (caterva_read(arrays[i], start, stop, &back, sizeof back, &e) ||
                (writes && back != item))
                atomic_fetch_add(&wrong, 1);
            if (caterva_read(arrays[other], start, stop, &back, sizeof back, &e))
                atomic_fetch_add(&wrong, 1);
            if (writes && i % 5 == 0 && caterva_commit(arrays[i], &e))
                atomic_fetch_add(&wrong, 1);
        }
    return NULL;
}

static void test_threads(void)
{
    pthread_t threads[THREADS];
    int own[THREADS];
    open_tree(0);
    open_some(FEW);
    for (int t = 0; t < THREADS; t++) {
        own[t] = t;
        CHECK(pthread_create(&threads[t], NULL, work, &own[t]) == 0, "a thread");
    }
    for (int t = 0; t < THREADS; t++) pthread_join(threads[t], NULL);
    CHECK(wrong == 0, "%d reads or writes went wrong", (int)wrong);
    close_all(FEW);
    check_first(tree, "/g00/x00000", 5);
    close_tree();
}

/* ---- Killed ---------------------------------------------------------------------------- */

static int renames_left = -1; /* then the process is killed; -1: never */

int renameat(int from, const char *name, int to, const char *other)
{
    static int (*next)(int, const char *, int, const char *);
    if (!next) *(void **)&next = dlsym(RTLD_NEXT, "renameat");
    if (renames_left >= 0 && renames_left-- == 0) _exit(9);
    return next(from, name, to, other);
}

/* Commits changes of FEW arrays and as many new ones, and is killed at a rename: the first is
 * the journal's. */
static void commit_and_die(int at)
{
    int status;
    pid_t child = fork();
    if (child == 0) {
        open_tree(0);
        open_some(FEW);
        for (int i = 0; i < FEW; i++) fill(arrays[i], 100 * at + i);
        for (int i = FEW; i < 2 * FEW; i++) {
            make(i, 1);
            fill(arrays[i], 100 * at + i);
        }
        renames_left = at;
        _exit(caterva_tree_commit(tree, &err) == CATERVA_OK ? 0 : 1);
    }
    CHECK(child > 0 && waitpid(child, &status, 0) == child, "fork");
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 9, "rename %d: %x", at, status);
}

static void test_killed(void)
{
    static const int at[] = {0, 1, FEW / 2};
    int32_t first = 5;
    open_tree(0);
    open_some(2 * FEW);
    for (int i = 0; i < 2 * FEW; i++) fill(arrays[i], first + i);
    close_all(2 * FEW);
    close_tree();
    for (size_t n = 0; n < sizeof at / sizeof at[0]; n++) {
        commit_and_die(at[n]);
        if (at[n] > 0) first = 100 * at[n];
        CHECK_OK(caterva_tree_open(path, NULL, &tree, &err), err);
        check_stored(2 * FEW, first); /* with the journal */
        close_tree();
        open_tree(0); /* finishes the commit */
        check_stored(2 * FEW, first);
        close_tree();
    }
}

/* ---- Ended ------------------------------------------------------------------------------ */

/* A program that must exit at once leaves no temporary files, also not of arrays without
 * descriptors. */
static void test_abandon(void)
{
    int status;
    pid_t child = fork();
    if (child == 0) {
        open_tree(0);
        for (int i = 0; i < FEW; i++) make(i, 1);
        if (count_hidden("g00") == 0) _exit(2);
        caterva_delete_temporaries();
        _exit(count_hidden("g00") == 0 ? 0 : 1);
    }
    CHECK(child > 0 && waitpid(child, &status, 0) == child, "fork");
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%x", status);
}

int main(void)
{
    struct rlimit limit = {LIMIT, LIMIT};
    CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0, "setrlimit");
    scratch_path(path, "t.b2d");
    n_arrays = getenv("CATERVA_TEST_LONG") ? MOST : few_if_sanitized(3000, 1000);
    if (THREADS_ONLY) {
        open_tree(1);
        make_filled(FEW, 5, 0);
        close_all(FEW);
        close_tree();
        test_threads();
        return 0;
    }
    test_many();
    test_overwrite();
    test_drop();
    test_busy();
    test_changed();
    test_moved();
    test_threads();
    test_abandon();
    test_killed();
    return 0;
}
