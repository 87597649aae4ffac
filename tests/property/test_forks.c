/* Forked children that continue, without using the library or exiting at once: the parent's
 * new arrays remain its own, its locks end when it closes, and its files do not grow. And in
 * a program without standard streams, array files do not get their descriptors. */
#include "caterva.h"
#include "caterva_upkeep.h"
#include "caterva_tree.h"

#include "support/check.h"
#include "support/scratch.h"

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { N = 4000, COMMITS = 40 };

static int32_t items[N];
static caterva_layout layout;
static char path[SCRATCH_PATH];

static caterva_array *create(void)
{
    static const int64_t shape[] = {N};
    static const int32_t chunks[] = {500};
    caterva_create_options o = CATERVA_CREATE_INIT;
    caterva_array *array;
    caterva_error err;
    o.ndim = 1, o.shape = shape, o.chunk_shape = chunks, o.dtype = "<i4";
    o.layout = layout, o.overwrite = 1, o.durability = CATERVA_DURABILITY_NONE;
    CHECK_OK(caterva_create(path, &o, &array, &err), err);
    return array;
}

static void write_all(caterva_array *array, int32_t first)
{
    const int64_t start[] = {0}, stop[] = {N};
    caterva_error err;
    for (int32_t i = 0; i < N; i++) items[i] = first + i * i % 977;
    CHECK_OK(caterva_write(array, start, stop, items, sizeof items, &err), err);
}

static void expect_all(caterva_array *array)
{
    const int64_t start[] = {0}, stop[] = {N};
    static int32_t got[N];
    caterva_error err;
    CHECK_OK(caterva_read(array, start, stop, got, sizeof got, &err), err);
    CHECK(memcmp(got, items, sizeof got) == 0, "other items");
}

static caterva_array *open_array(caterva_mode mode)
{
    caterva_open_options o = CATERVA_OPEN_INIT;
    caterva_array *array;
    caterva_error err;
    o.mode = mode, o.durability = CATERVA_DURABILITY_NONE;
    CHECK_OK(caterva_open(path, &o, &array, &err), err);
    return array;
}

/* A child that waits to be killed. */
static pid_t bystander(void)
{
    fflush(NULL);
    pid_t child = fork();
    CHECK(child >= 0, "fork");
    if (child == 0)
        for (;;) pause();
    return child;
}

static void dismiss(pid_t child)
{
    int status;
    CHECK(kill(child, SIGKILL) == 0 && waitpid(child, &status, 0) == child, "a child");
}

static int wait_for(pid_t child)
{
    int status;
    CHECK(waitpid(child, &status, 0) == child, "waitpid");
    return status;
}

/* ---- What is tested --------------------------------------------------------------- */

static void a_child_abandons_only_its_own(void)
{
    caterva_error err;
    caterva_array *array = create();
    write_all(array, 1);
    fflush(NULL);
    pid_t child = fork();
    CHECK(child >= 0, "fork");
    if (child == 0) {
        caterva_delete_temporaries();
        _exit(0);
    }
    CHECK(wait_for(child) == 0, "the child");
    CHECK_OK(caterva_close(array, &err), err);
    array = open_array(CATERVA_MODE_READ);
    expect_all(array);
    CHECK_OK(caterva_close(array, &err), err);
}

static void closing_ends_locks(void)
{
    caterva_error err;
    caterva_array *writer = open_array(CATERVA_MODE_WRITE),
                  *reader = open_array(CATERVA_MODE_READ);
    pid_t child = bystander();
    CHECK_OK(caterva_close(writer, &err), err);
    CHECK_OK(caterva_close(reader, &err), err);
    writer = open_array(CATERVA_MODE_WRITE);
    write_all(writer, 2);
    CHECK_OK(caterva_close(writer, &err), err);
    CHECK_OK(caterva_compact(path, NULL, &err), err);
    dismiss(child);
}

/* Closing in a child does not release the parent's lock. */
static void a_child_that_closes_takes_no_lock(void)
{
    caterva_error err;
    caterva_array *writer = open_array(CATERVA_MODE_WRITE), *other;
    caterva_open_options o = CATERVA_OPEN_INIT;
    o.mode = CATERVA_MODE_WRITE;
    fflush(NULL);
    pid_t child = fork();
    CHECK(child >= 0, "fork");
    if (child == 0) {
        caterva_discard(writer);
        _exit(0);
    }
    CHECK(wait_for(child) == 0, "the child");
    CHECK(caterva_open(path, &o, &other, &err) == CATERVA_EBUSY, "a second writer came in");
    write_all(writer, 3);
    CHECK_OK(caterva_close(writer, &err), err);
}

/* Returns in the parent after the child has applied `what` to the array and ended. */
static void in_a_child(void (*what)(caterva_array *), caterva_array *array)
{
    fflush(NULL);
    pid_t child = fork();
    CHECK(child >= 0, "fork");
    if (child == 0) {
        what(array);
        _exit(0);
    }
    CHECK(wait_for(child) == 0, "the child");
}

static void close_pending(caterva_array *array)
{
    caterva_error err;
    CHECK(caterva_close(array, &err) == CATERVA_EBUSY, "closed: %s", err.message);
}

static void close_unchanged(caterva_array *array)
{
    caterva_error err;
    CHECK_OK(caterva_close(array, &err), err);
}

static void change(caterva_array *array)
{
    caterva_error err;
    int32_t item = 7;
    const int64_t start[] = {0}, stop[] = {1};
    CHECK(caterva_write(array, start, stop, &item, sizeof item, &err) == CATERVA_EBUSY,
          "written: %s", err.message);
    CHECK(caterva_attr_set(array, "a", "b", 1, &err) == CATERVA_EBUSY, "set");
    CHECK(caterva_commit(array, &err) == CATERVA_EBUSY, "committed");
    caterva_discard(array);
}

/* A child cannot change the parent's array through its handle. */
static void a_child_changes_nothing(void)
{
    static void (*const deeds[])(caterva_array *) = {close_pending, caterva_discard, change};
    caterva_error err;
    for (size_t i = 0; i < sizeof deeds / sizeof deeds[0]; i++)
        for (int is_new = 0; is_new < 2; is_new++) {
            caterva_array *array = is_new ? create() : open_array(CATERVA_MODE_WRITE);
            write_all(array, (int32_t)i);
            in_a_child(deeds[i], array);
            CHECK_OK(caterva_close(array, &err), err);
            array = open_array(CATERVA_MODE_READ);
            expect_all(array);
            CHECK_OK(caterva_close(array, &err), err);
        }
    caterva_array *array = open_array(CATERVA_MODE_WRITE);
    in_a_child(close_unchanged, array);
    write_all(array, 9);
    CHECK_OK(caterva_close(array, &err), err);
}

static long long stored_bytes(void)
{
    struct stat st;
    CHECK(stat(path, &st) == 0, "stat");
    return st.st_size;
}

/* A reader that refreshes needs no old state, although a child was forked meanwhile. */
static void files_do_not_grow(void)
{
    caterva_error err;
    caterva_array *writer = open_array(CATERVA_MODE_WRITE),
                  *reader = open_array(CATERVA_MODE_READ);
    pid_t child = bystander();
    long long early = 0;
    for (int i = 0; i < COMMITS; i++) {
        write_all(writer, 100 * i);
        CHECK_OK(caterva_commit(writer, &err), err);
        CHECK_OK(caterva_refresh(reader, &err), err);
        expect_all(reader);
        if (i == 4) early = stored_bytes();
    }
    CHECK(stored_bytes() <= early + early / 2, "%lld bytes became %lld", early,
          stored_bytes());
    CHECK_OK(caterva_close(reader, &err), err);
    CHECK_OK(caterva_close(writer, &err), err);
    dismiss(child);
}

/* Messages to a missing stderr do not go to an array file. */
static void streams_are_not_files(void)
{
    fflush(NULL);
    pid_t child = fork();
    CHECK(child >= 0, "fork");
    if (child == 0) {
        for (int fd = 0; fd < 3; fd++) close(fd);
        caterva_open_options o = CATERVA_OPEN_INIT;
        caterva_array *array;
        o.mode = CATERVA_MODE_WRITE;
        if (caterva_open(path, &o, &array, NULL) != CATERVA_OK) _exit(1);
        for (int fd = 0; fd < 3; fd++)
            if (write(fd, "lost", 4) != -1) _exit(2);
        caterva_discard(array);
        _exit(0);
    }
    CHECK(wait_for(child) == 0, "a stream was a file of the array's");
    caterva_error err;
    caterva_array *array = open_array(CATERVA_MODE_READ);
    expect_all(array);
    CHECK_OK(caterva_close(array, &err), err);
}

/* ---- Trees ------------------------------------------------------------------------ */

static caterva_tree *open_tree(bool create)
{
    caterva_tree_options o = CATERVA_TREE_INIT;
    caterva_tree *tree;
    caterva_error err;
    o.mode = CATERVA_MODE_WRITE, o.durability = CATERVA_DURABILITY_NONE;
    CHECK_OK((create ? caterva_tree_create : caterva_tree_open)(path, &o, &tree, &err), err);
    return tree;
}

static caterva_array *pending_in_tree(caterva_tree *tree, const char *key)
{
    static const int64_t shape[] = {N};
    caterva_create_options o = CATERVA_CREATE_INIT;
    caterva_array *array;
    caterva_error err;
    o.ndim = 1, o.shape = shape, o.dtype = "<i4";
    CHECK_OK(caterva_tree_create_array(tree, key, &o, &array, &err), err);
    write_all(array, 1);
    CHECK_OK(caterva_tree_attr_set(tree, "/g", key + 1, "\x01", 1, &err), err);
    return array;
}

/* Returns the number of a change that a forked child could make to the tree, or 0. */
static int change_anything(caterva_tree *tree)
{
    static const int64_t shape[] = {N};
    caterva_create_options o = CATERVA_CREATE_INIT;
    caterva_open_options writing = CATERVA_OPEN_INIT;
    caterva_array *array;
    char packed[SCRATCH_PATH + 8];
    o.ndim = 1, o.shape = shape, o.dtype = "<i4";
    writing.mode = CATERVA_MODE_WRITE;
    (void)snprintf(packed, sizeof packed, "%s.b2z", path);
    caterva_status got[] = {
        caterva_tree_commit(tree, NULL),
        caterva_tree_rollback(tree, NULL),
        caterva_tree_create_array(tree, "/c", &o, &array, NULL),
        caterva_tree_open_array(tree, "/x", &writing, &array, NULL),
        caterva_tree_create_group(tree, "/h", NULL),
        caterva_tree_move(tree, "/x", "/y", NULL),
        caterva_tree_delete(tree, "/x", NULL),
        caterva_tree_attr_set(tree, "/g", "c", "\x01", 1, NULL),
        caterva_tree_attr_delete(tree, "/g", "x", NULL),
        caterva_tree_pack(tree, packed, NULL, NULL),
        caterva_tree_unpack(tree, packed, NULL, NULL),
        caterva_tree_close(tree, NULL),
    };
    for (int i = 0; i < (int)(sizeof got / sizeof got[0]); i++)
        if (got[i] != CATERVA_EBUSY) return i + 1;
    return 0;
}

static void expect_attributes(caterva_tree *tree, size_t expected)
{
    const char **names;
    size_t n;
    caterva_error err;
    CHECK_OK(caterva_tree_attr_list(tree, "/g", &names, &n, &err), err);
    caterva_free(names);
    CHECK(n == expected, "%zu attributes", n);
}

/* Pending changes and the lock remain the parent's until it closes the tree. */
static void a_child_leaves_a_tree_alone(void)
{
    caterva_error err;
    caterva_tree *tree = open_tree(true);
    caterva_array *x = pending_in_tree(tree, "/x");
    CHECK_OK(caterva_tree_commit(tree, &err), err);
    CHECK_OK(caterva_close(x, &err), err);
    x = pending_in_tree(tree, "/y");
    fflush(NULL);
    pid_t child = fork();
    CHECK(child >= 0, "fork");
    if (child == 0) _exit(change_anything(tree));
    int status = wait_for(child);
    CHECK(status == 0, "a child changed the parent's tree: %d", WEXITSTATUS(status));
    caterva_tree *reader;
    CHECK_OK(caterva_tree_open(path, NULL, &reader, &err), err);
    expect_attributes(reader, 1);
    child = bystander();
    CHECK_OK(caterva_tree_commit(tree, &err), err);
    CHECK_OK(caterva_close(x, &err), err);
    CHECK_OK(caterva_tree_close(tree, &err), err);
    tree = open_tree(false);
    expect_attributes(tree, 2);
    expect_attributes(reader, 2);
    CHECK_OK(caterva_tree_delete(tree, "/x", &err), err);
    CHECK_OK(caterva_tree_delete(tree, "/y", &err), err);
    CHECK_OK(caterva_tree_close(reader, &err), err);
    CHECK_OK(caterva_tree_close(tree, &err), err);
    dismiss(child);
}

int main(void)
{
    static const caterva_layout layouts[] = {CATERVA_LAYOUT_CONTIGUOUS,
                                             CATERVA_LAYOUT_SPARSE};
    for (int i = 0; i < 2; i++) {
        layout = layouts[i];
        scratch_path(path, i ? "forks-directory" : "forks-file");
        a_child_abandons_only_its_own();
        closing_ends_locks();
        a_child_that_closes_takes_no_lock();
        a_child_changes_nothing();
        if (layout == CATERVA_LAYOUT_CONTIGUOUS) files_do_not_grow();
        streams_are_not_files();
        scratch_remove(path);
    }
    scratch_path(path, "forks-tree");
    a_child_leaves_a_tree_alone();
    scratch_remove(path);
    return 0;
}
