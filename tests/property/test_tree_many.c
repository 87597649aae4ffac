/* The number of system calls of one call on a tree, among a hundred arrays and among
 * thousands: it must not grow with their number. Counted in this program's own openat,
 * fstatat and readdir, which the library calls. */
#include "small_tree.h"

#include <caterva_tree.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/stat.h>

enum { FEW = 100, MANY = 2000 };

static caterva_array *arrays[MANY];

/* ---- Counted ------------------------------------------------------------------ */

static long n_calls;

int openat(int dir, const char *name, int flags, ...)
{
    static int (*next)(int, const char *, int, ...);
    va_list rest;
    va_start(rest, flags);
    mode_t mode = flags & O_CREAT ? va_arg(rest, mode_t) : 0;
    va_end(rest);
    if (!next) *(void **)&next = dlsym(RTLD_NEXT, "openat");
    n_calls++;
    return next(dir, name, flags, mode);
}

int fstatat(int dir, const char *name, struct stat *st, int flags)
{
    static int (*next)(int, const char *, struct stat *, int);
    if (!next) *(void **)&next = dlsym(RTLD_NEXT, "fstatat");
    n_calls++;
    return next(dir, name, st, flags);
}

struct dirent *readdir(DIR *dir)
{
    static struct dirent *(*next)(DIR *);
    if (!next) *(void **)&next = dlsym(RTLD_NEXT, "readdir");
    n_calls++;
    return next(dir);
}

/* ---- Created ------------------------------------------------------------------ */

static void make(int i)
{
    char key[40];
    caterva_create_options o = create_options();
    o.durability = CATERVA_DURABILITY_NONE;
    snprintf(key, sizeof key, "/group/more/x%04d", i);
    CHECK_OK(caterva_tree_create_array(tree, key, &o, &arrays[i], &err), err);
    fill(arrays[i], i);
}

/* Creates arrays up to the n-th and returns the system calls that the last of them took. */
static long work_of_last(int from, int n)
{
    long before = 0;
    for (int i = from; i < n; i++) {
        before = n_calls;
        make(i);
        CHECK_OK(caterva_close(arrays[i], &err), err);
    }
    return n_calls - before;
}

static void test_create(void)
{
    long few = work_of_last(0, FEW), many = work_of_last(FEW, MANY);
    CHECK(few > 4, "%ld calls: they are not counted", few);
    CHECK(many <= 2 * few, "%ld calls among %d arrays, %ld among %d", few, FEW, many, MANY);
}

int main(void)
{
    caterva_tree_options o = CATERVA_TREE_INIT;
    o.durability = CATERVA_DURABILITY_NONE;
    CHECK_OK(caterva_tree_create(scratch_path(path, "t.b2d"), &o, &tree, &err), err);
    test_create();
    CHECK_OK(caterva_tree_close(tree, &err), err);
    return 0;
}
