/* A failing system call is an error of the library's call, and never damage: for files in
 * trees, and for chunks. This program replaces the system calls, which fail for one file. */
#include "support/check.h"
#include "support/scratch.h"

#include "caterva.h"
#include "caterva_upkeep.h"
#include "caterva_tree.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#if defined(__linux__) && defined(__LP64__)

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

/* ---- A file that cannot be read ------------------------------------------------------------ */

typedef enum call { NO_CALL, OPEN, LOOK, READ } call;

static struct {
    call call;
    int error;
    const char *name; /* suffix of the file's paths */
    off_t from;       /* reads from there on fail */
    int refused;
} fault;

static int is_hit(call which, const char *path)
{
    size_t size = strlen(path), length = fault.name ? strlen(fault.name) : 0;
    if (fault.call != which || size < length || strcmp(path + size - length, fault.name) != 0)
        return 0;
    fault.refused++;
    errno = fault.error;
    return 1;
}

static int is_read_hit(int fd, off_t end)
{
    char link[64], path[4096];
    if (fault.call != READ || end <= fault.from) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, path, sizeof path - 1);
    path[n > 0 ? n : 0] = '\0';
    return is_hit(READ, path);
}

int openat(int dir, const char *path, int flags, ...)
{
    va_list arguments;
    va_start(arguments, flags);
    mode_t mode = flags & O_CREAT ? va_arg(arguments, mode_t) : 0;
    va_end(arguments);
    return is_hit(OPEN, path) ? -1 : (int)syscall(SYS_openat, dir, path, flags, mode);
}

int fstatat(int dir, const char *path, struct stat *out, int flags)
{
    return is_hit(LOOK, path) ? -1 : (int)syscall(SYS_newfstatat, dir, path, out, flags);
}

ssize_t pread(int fd, void *dst, size_t size, off_t pos)
{
    if (is_read_hit(fd, pos + (off_t)size)) return -1;
    return (ssize_t)syscall(SYS_pread64, fd, dst, size, pos);
}

/* What pread becomes with _FORTIFY_SOURCE, which Ubuntu's compiler sets. */
ssize_t __pread64_chk(int fd, void *dst, size_t size, off_t pos, size_t room);
ssize_t __pread64_chk(int fd, void *dst, size_t size, off_t pos, size_t room)
{
    return size <= room ? pread(fd, dst, size, pos) : -1;
}

ssize_t preadv2(int fd, const struct iovec *to, int n, off_t pos, int flags)
{
    (void)fd, (void)to, (void)n, (void)pos, (void)flags;
    errno = EOPNOTSUPP;
    return -1;
}

static void refuse(call which, int error, const char *name, off_t from)
{
    fault.call = which;
    fault.error = error;
    fault.name = name;
    fault.from = from;
    fault.refused = 0;
}

static void allow(void) { fault.call = NO_CALL; }

/* ---- Trees --------------------------------------------------------------------------------- */

static caterva_error err;
static char tree_path[SCRATCH_PATH], array_path[SCRATCH_PATH], other_path[SCRATCH_PATH];

/* Fills the array with items that no codec compresses, in four chunks. */
static void fill(caterva_array *array)
{
    static const int64_t start[] = {0}, stop[] = {64000};
    static int32_t items[64000];
    uint32_t value = 1;
    for (int i = 0; i < 64000; i++)
        items[i] = (int32_t)(value = value * 1664525u + 1013904223u);
    CHECK_OK(caterva_write(array, start, stop, items, sizeof items, &err), err);
    CHECK_OK(caterva_close(array, &err), err);
}

static caterva_create_options options_of(caterva_layout layout)
{
    static const int64_t shape[] = {64000};
    static const int32_t chunk[] = {16000};
    caterva_create_options o = CATERVA_CREATE_INIT;
    o.ndim = 1;
    o.shape = shape;
    o.chunk_shape = chunk;
    o.dtype = "<i4";
    o.layout = layout;
    return o;
}

static void make_tree(void)
{
    static const char *const keys[] = {"/a", "/g/b", "/g/c"};
    caterva_tree *tree;
    caterva_create_options o = options_of(CATERVA_LAYOUT_CONTIGUOUS);
    scratch_remove(scratch_path(tree_path, "t.b2d"));
    CHECK_OK(caterva_tree_create(tree_path, NULL, &tree, &err), err);
    for (int i = 0; i < 3; i++) {
        caterva_array *array;
        CHECK_OK(caterva_tree_create_array(tree, keys[i], &o, &array, &err), err);
        fill(array);
    }
    CHECK_OK(caterva_tree_attr_set(tree, "/g", "title", "\xa1x", 2, &err), err);
    CHECK_OK(caterva_tree_close(tree, &err), err);
}

static void expect(caterva_status status, const char *what)
{
    if (status != CATERVA_EIO || fault.refused == 0)
        fail_msg("%s: %s after %d refusals: %s", what, caterva_status_name(status),
                 fault.refused, status == CATERVA_OK ? "" : err.message);
    if (err.sys_errno != fault.error)
        fail_msg("%s: errno %d, not %d: %s", what, err.sys_errno, fault.error, err.message);
}

static caterva_status list(caterva_tree *tree, int *n)
{
    const caterva_tree_list *all;
    caterva_status status = caterva_tree_get_list(tree, NULL, &all, &err);
    if (status == CATERVA_OK) {
        *n = (int)all->n;
        caterva_tree_list_release(all);
    }
    return status;
}

static caterva_status verify_tree(caterva_tree *tree)
{
    caterva_tree_verify_result result = CATERVA_TREE_VERIFY_RESULT_INIT;
    return caterva_tree_verify(tree, NULL, NULL, &result, &err);
}

static caterva_status open_array(caterva_tree *tree, const char *key)
{
    caterva_array *array;
    caterva_status status = caterva_tree_open_array(tree, key, NULL, &array, &err);
    if (status == CATERVA_OK) caterva_discard(array);
    return status;
}

static caterva_status repair_tree(const char *output)
{
    caterva_tree_repair_options o = CATERVA_TREE_REPAIR_INIT;
    caterva_tree_repair_result result = CATERVA_TREE_REPAIR_RESULT_INIT;
    o.output = output;
    return caterva_tree_repair(tree_path, &o, &result, &err);
}

static void members_that_cannot_be_read(void **state)
{
    static const int errors[] = {EACCES, EIO, EMFILE, ENFILE, ESTALE};
    static const call calls[] = {OPEN, LOOK, READ};
    int n;
    caterva_tree *tree;
    (void)state;
    make_tree();
    CHECK_OK(caterva_tree_open(tree_path, NULL, &tree, &err), err);
    for (int i = 0; i < 15; i++) {
        call which = calls[i % 3];
        if (which == OPEN && (errors[i / 3] == EMFILE || errors[i / 3] == ENFILE))
            continue; /* waits for a free descriptor */
        refuse(which, errors[i / 3], "b.b2nd", 0);
        expect(list(tree, &n), "list");
        expect(verify_tree(tree), "verify");
        expect(open_array(tree, "/g/b"), "open");
        expect(repair_tree(scratch_path(other_path, "repaired.b2d")), "repair to an output");
        assert_int_not_equal(access(other_path, F_OK), 0);
        expect(repair_tree(NULL), "repair");
        allow();
        CHECK_OK(list(tree, &n), err);
        assert_int_equal(n, 4);
        CHECK_OK(verify_tree(tree), err);
    }
    caterva_tree_close(tree, NULL);
}

static void attributes_that_cannot_be_read(void **state)
{
    static const call calls[] = {OPEN, LOOK, READ};
    size_t n;
    const char **names;
    caterva_tree *tree;
    (void)state;
    make_tree();
    CHECK_OK(caterva_tree_open(tree_path, NULL, &tree, &err), err);
    for (int i = 0; i < 3; i++) {
        refuse(calls[i], EACCES, "__vlmeta__.b2f", 0);
        expect(caterva_tree_attr_list(tree, "/g", &names, &n, &err), "attributes");
        expect(verify_tree(tree), "verify");
        expect(repair_tree(NULL), "repair");
        allow();
    }
    CHECK_OK(caterva_tree_attr_list(tree, "/g", &names, &n, &err), err);
    assert_int_equal(n, 1);
    caterva_free(names);
    caterva_tree_close(tree, NULL);
}

/* The frame is not set aside, and not replaced by an empty one. */
static void a_trees_own_frame_that_cannot_be_read(void **state)
{
    static const call calls[] = {OPEN, READ};
    char aside[SCRATCH_PATH], embed[SCRATCH_PATH];
    struct stat before, after;
    (void)state;
    make_tree();
    CHECK(stat(scratch_path(embed, "t.b2d/embed.b2e"), &before) == 0, "%s", embed);
    for (int i = 0; i < 2; i++) {
        refuse(calls[i], EACCES, "embed.b2e", 0);
        expect(repair_tree(NULL), "repair");
        allow();
        CHECK(stat(embed, &after) == 0 && after.st_ino == before.st_ino, "%s", embed);
        assert_int_not_equal(access(scratch_path(aside, "t.b2d/embed.b2e.damaged"), F_OK), 0);
    }
    refuse(LOOK, EACCES, "embed.b2e", 0);
    caterva_tree *tree;
    expect(caterva_tree_open(tree_path, NULL, &tree, &err), "open");
    allow();
}

/* ---- Chunks -------------------------------------------------------------------------------- */

static void count(void *context, const caterva_damage *damage)
{
    (void)damage;
    ++*(int *)context;
}

static caterva_status read_around(caterva_array *array, int *n)
{
    static int32_t items[64000];
    caterva_selection all = CATERVA_SELECTION_INIT;
    caterva_buffer buffer = CATERVA_BUFFER_INIT;
    caterva_skip_options o = CATERVA_SKIP_INIT;
    buffer.data = items;
    buffer.size = sizeof items;
    o.on_damage = count;
    o.context = n;
    *n = 0;
    return caterva_read_skipping(array, &all, &buffer, &o, &err);
}

static caterva_status verify(caterva_array *array, int64_t *n)
{
    caterva_verify_result result = CATERVA_VERIFY_RESULT_INIT;
    caterva_status status = caterva_verify(array, NULL, &result, &err);
    *n = result.damages;
    return status;
}

static caterva_status repair(const char *output)
{
    caterva_repair_options o = CATERVA_REPAIR_INIT;
    caterva_repair_result result = CATERVA_REPAIR_RESULT_INIT;
    o.output = output;
    return caterva_repair(array_path, &o, &result, &err);
}

static caterva_array *make_array(caterva_layout layout)
{
    caterva_array *array;
    caterva_open_options o = CATERVA_OPEN_INIT;
    const caterva_create_options made = options_of(layout);
    scratch_remove(scratch_path(array_path, "a.b2nd"));
    CHECK_OK(caterva_create(array_path, &made, &array, &err), err);
    fill(array);
    o.cache_bytes = -1;
    CHECK_OK(caterva_open(array_path, &o, &array, &err), err);
    return array;
}

static void chunks_that_cannot_be_read(void **state)
{
    int n;
    int64_t damages;
    (void)state;
    caterva_array *array = make_array(CATERVA_LAYOUT_CONTIGUOUS);
    scratch_remove(scratch_path(other_path, "r.b2nd"));
    refuse(READ, EIO, "a.b2nd", 100000);
    expect(read_around(array, &n), "read around damage");
    expect(verify(array, &damages), "verify");
    expect(repair(other_path), "repair");
    assert_int_not_equal(access(other_path, F_OK), 0);
    allow();
    CHECK_OK(read_around(array, &n), err);
    assert_int_equal(n, 0);
    CHECK_OK(verify(array, &damages), err);
    assert_int_equal(damages, 0);
    caterva_discard(array);
}

/* An unreadable header is not a damaged one: no older state is used. */
static void a_header_that_cannot_be_read(void **state)
{
    (void)state;
    caterva_discard(make_array(CATERVA_LAYOUT_CONTIGUOUS));
    scratch_remove(scratch_path(other_path, "r.b2nd"));
    refuse(READ, EIO, "a.b2nd", 0);
    expect(repair(other_path), "repair");
    expect(repair(NULL), "repair in place");
    assert_int_not_equal(access(other_path, F_OK), 0);
    allow();
}

/* The file of a chunk may be missing, which is damage; an unreadable one is an error. */
static void files_of_chunks(void **state)
{
    static const call calls[] = {OPEN, READ};
    int n;
    int64_t damages;
    char chunk[SCRATCH_PATH];
    (void)state;
    caterva_array *array = make_array(CATERVA_LAYOUT_SPARSE);
    for (int i = 0; i < 2; i++) {
        refuse(calls[i], EACCES, "2.chunk", 0);
        expect(read_around(array, &n), "read around damage");
        expect(verify(array, &damages), "verify");
        allow();
    }
    caterva_discard(array);
    CHECK(unlink(scratch_path(chunk, "a.b2nd/00000002.chunk")) == 0, "%s", chunk);
    CHECK_OK(caterva_open(array_path, NULL, &array, &err), err);
    CHECK_OK(read_around(array, &n), err);
    assert_int_equal(n, 1);
    CHECK_OK(verify(array, &damages), err);
    assert_int_equal(damages, 1);
    CHECK(unlink(scratch_path(chunk, "a.b2nd/chunks.b2frame")) == 0, "%s", chunk);
    assert_int_equal(read_around(array, &n), CATERVA_ENOTFOUND);
    assert_int_equal(verify(array, &damages), CATERVA_ENOTFOUND);
    caterva_discard(array);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(members_that_cannot_be_read),
        cmocka_unit_test(attributes_that_cannot_be_read),
        cmocka_unit_test(a_trees_own_frame_that_cannot_be_read),
        cmocka_unit_test(chunks_that_cannot_be_read),
        cmocka_unit_test(a_header_that_cannot_be_read),
        cmocka_unit_test(files_of_chunks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

int main(void) { return 0; } /* no system calls that this program could replace */

#endif
