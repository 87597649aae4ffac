/* Commits and reads of trees without memory: each allocation fails once. A failing call
 * returns CATERVA_ENOMEM, leaks nothing, and leaves everything as before or everything as
 * after. */
#include "check.h"
#include "failing_heap.h"
#include "scratch.h"

#include <caterva_tree.h>
#include <dirent.h>
#include <stdio.h>
#include <string.h>

static caterva_error err;
static char path[SCRATCH_PATH];

/* Open objects; closed after any failure. */
typedef struct work {
    caterva_tree *tree;
    caterva_array *arrays[3];
} work;

static const char *const keys[] = {"/a", "/g/b", "/g/h/new"};
static const int64_t start[] = {0}, stop[] = {40};

static caterva_create_options create_options(void)
{
    caterva_create_options o = CATERVA_CREATE_INIT;
    o.ndim = 1;
    o.shape = stop;
    o.dtype = "<i4";
    o.threads = 1;
    o.cache_bytes = -1;
    o.durability = CATERVA_DURABILITY_NONE;
    return o;
}

static caterva_status fill(caterva_array *array, int32_t value)
{
    int32_t items[40];
    for (int i = 0; i < 40; i++) items[i] = value + i;
    return caterva_write(array, start, stop, items, sizeof items, &err);
}

#define TRY(call)                                                                            \
    do {                                                                                     \
        caterva_status try_status_ = (call);                                                 \
        if (try_status_ != CATERVA_OK) return try_status_;                                   \
    } while (0)

static caterva_status create(work *w, int i, int32_t value)
{
    caterva_create_options o = create_options();
    TRY(caterva_tree_create_array(w->tree, keys[i], &o, &w->arrays[i], &err));
    return fill(w->arrays[i], value);
}

static caterva_status make(work *w)
{
    caterva_tree_options t = CATERVA_TREE_INIT;
    t.durability = CATERVA_DURABILITY_NONE;
    TRY(caterva_tree_create(path, &t, &w->tree, &err));
    TRY(create(w, 0, 100));
    TRY(create(w, 1, 200));
    TRY(caterva_tree_attr_set(w->tree, "/g", "k", "\x01", 1, &err));
    return caterva_tree_commit(w->tree, &err);
}

static caterva_status change(work *w)
{
    caterva_tree_options t = CATERVA_TREE_INIT;
    caterva_open_options o = CATERVA_OPEN_INIT;
    t.mode = o.mode = CATERVA_MODE_WRITE;
    t.durability = o.durability = CATERVA_DURABILITY_NONE;
    o.threads = 1;
    o.cache_bytes = -1;
    TRY(caterva_tree_open(path, &t, &w->tree, &err));
    for (int i = 0; i < 2; i++) {
        TRY(caterva_tree_open_array(w->tree, keys[i], &o, &w->arrays[i], &err));
        TRY(fill(w->arrays[i], 100 * (i + 1) + 1));
    }
    TRY(create(w, 2, 301));
    TRY(caterva_tree_attr_set(w->tree, "/g", "k", "\x02", 1, &err));
    return caterva_tree_commit(w->tree, &err);
}

/* Discards pending changes, as after an error. */
static void leave(work *w)
{
    for (int i = 0; i < 3; i++) caterva_discard(w->arrays[i]);
    if (w->tree) (void)caterva_tree_rollback(w->tree, NULL);
    (void)caterva_tree_close(w->tree, NULL);
    *w = (work){.tree = NULL};
}

/* ---- What is there ---------------------------------------------------------------------- */

/* The value of the first item; 0 if the array does not exist. */
static caterva_status value_of(caterva_tree *tree, const char *key, int32_t *value)
{
    int32_t items[40];
    caterva_array *array;
    caterva_open_options o = CATERVA_OPEN_INIT;
    o.threads = 1;
    o.cache_bytes = -1;
    *value = 0;
    caterva_status status = caterva_tree_open_array(tree, key, &o, &array, &err);
    if (status == CATERVA_ENOTFOUND) return CATERVA_OK;
    TRY(status);
    status = caterva_read(array, start, stop, items, sizeof items, &err);
    caterva_discard(array);
    TRY(status);
    for (int i = 0; i < 40; i++) CHECK(items[i] == items[0] + i, "%s: item %d", key, i);
    *value = items[0];
    return CATERVA_OK;
}

static caterva_status number_of(caterva_tree *tree, int32_t *number)
{
    void *value;
    size_t size;
    TRY(caterva_tree_attr_get(tree, "/g", "k", &value, &size, &err));
    *number = size == 1 ? *(uint8_t *)value : -1;
    caterva_free(value);
    return CATERVA_OK;
}

/* *state: 1 before the commit, 2 after it. */
static caterva_status look(caterva_tree *tree, int *state)
{
    int32_t a, b, c, k;
    size_t n;
    const char **names;
    const caterva_tree_list *list;
    caterva_tree_verify_result result = CATERVA_TREE_VERIFY_RESULT_INIT;
    TRY(value_of(tree, "/a", &a));
    TRY(value_of(tree, "/g/b", &b));
    TRY(value_of(tree, "/g/h/new", &c));
    TRY(number_of(tree, &k));
    TRY(caterva_tree_attr_list(tree, "/g", &names, &n, &err));
    caterva_free(names);
    TRY(caterva_tree_get_list(tree, NULL, &list, &err));
    caterva_tree_list_release(list);
    TRY(caterva_tree_verify(tree, NULL, NULL, &result, &err));
    CHECK(result.damages == 0, "%lld damages", (long long)result.damages);
    *state = a == 100 && b == 200 && c == 0 && k == 1     ? 1
             : a == 101 && b == 201 && c == 301 && k == 2 ? 2
                                                          : 0;
    CHECK(*state, "mixed: %d %d %d %d", a, b, c, k);
    return CATERVA_OK;
}

static caterva_status read_tree(int *state)
{
    caterva_tree *tree;
    TRY(caterva_tree_open(path, NULL, &tree, &err));
    caterva_status status = look(tree, state);
    caterva_tree_close(tree, NULL);
    return status;
}

/* ---- Sweeps ----------------------------------------------------------------------------- */

static void fresh_tree(void)
{
    work w = {.tree = NULL};
    scratch_remove(path);
    CHECK_OK(make(&w), err);
    leave(&w);
}

static void sweep_commits(void)
{
    int old = 0, new = 0;
    bool failed = true;
    for (long n = 0; failed; n++) {
        int state;
        work w = {.tree = NULL};
        fresh_tree();
        heap_arm(n);
        caterva_status status = change(&w);
        leave(&w);
        failed = heap_disarm();
        CHECK(heap_live() == 0, "allocation %ld fails: %d are not released", n, heap_live());
        CHECK(status == CATERVA_OK || status == CATERVA_ENOMEM || status == CATERVA_EIO,
              "allocation %ld fails: %s: %s", n, caterva_status_name(status), err.message);
        CHECK_OK(read_tree(&state), err);
        CHECK(status != CATERVA_OK || state == 2, "allocation %ld fails: not committed", n);
        old += state == 1;
        new += state == 2;
    }
    printf("%d commits without memory changed nothing, %d stand\n", old, new);
    CHECK(old > 50 && new > 0, "nothing was tried");
}

static void sweep_reads(void)
{
    bool failed = true;
    long n = 0;
    for (; failed; n++) {
        int state = 0;
        heap_arm(n);
        caterva_status status = read_tree(&state);
        failed = heap_disarm();
        CHECK(heap_live() == 0, "allocation %ld fails: %d are not released", n, heap_live());
        CHECK(status == CATERVA_ENOMEM || (status == CATERVA_OK && state == 2),
              "allocation %ld fails: %s, state %d: %s", n, caterva_status_name(status), state,
              err.message);
    }
    printf("%ld reads without memory\n", n);
}

/* ---- Zarr groups ------------------------------------------------------------------------ */

static caterva_status pack_for_zarr(const char *to)
{
    caterva_tree *tree;
    caterva_tree_pack_options o = CATERVA_TREE_PACK_INIT;
    o.zarr = o.overwrite = 1;
    o.durability = CATERVA_DURABILITY_NONE;
    TRY(caterva_tree_open(path, NULL, &tree, &err));
    caterva_status status = caterva_tree_pack(tree, to, &o, &err);
    caterva_tree_close(tree, NULL);
    return status;
}

static caterva_status read_zarr(const char *from, int *state)
{
    caterva_tree *tree;
    TRY(caterva_tree_open(from, NULL, &tree, &err));
    caterva_status status = look(tree, state);
    caterva_tree_close(tree, NULL);
    return status;
}

/* Number of names in the scratch directory. */
static int count_names(void)
{
    char folder[SCRATCH_PATH];
    int n = 0;
    DIR *dir = opendir(scratch_path(folder, "."));
    CHECK(dir != NULL, "cannot list %s", folder);
    while (readdir(dir)) n++;
    closedir(dir);
    return n;
}

/* Each run replaces what the run before made. */
static void sweep_zarr(void)
{
    char zarr[SCRATCH_PATH];
    bool failed = true;
    long n = 0;
    int state = 0, made = 0, before = 0;
    scratch_path(zarr, "t.zarr");
    CHECK_OK(pack_for_zarr(zarr), err);
    for (; failed; n++) {
        before = count_names();
        heap_arm(n);
        caterva_status status = pack_for_zarr(zarr);
        bool is_packed = status == CATERVA_OK;
        if (is_packed) status = read_zarr(zarr, &state);
        failed = heap_disarm();
        made += is_packed;
        CHECK(heap_live() == 0, "allocation %ld fails: %d are not released", n, heap_live());
        CHECK(status == CATERVA_ENOMEM || (status == CATERVA_OK && state == 2),
              "allocation %ld fails: %s, state %d: %s", n, caterva_status_name(status), state,
              err.message);
        /* one may be left that was replaced: without memory it is not removed */
        CHECK(count_names() <= before + is_packed, "allocation %ld fails: files are left", n);
        CHECK_OK(read_zarr(zarr, &state), err);
        CHECK(state == 2, "allocation %ld fails: state %d", n, state);
    }
    printf("%ld packs for Zarr without memory, %d were made\n", n, made);
    CHECK(made > 10 && n - made > 100, "nothing was tried");
}

int main(void)
{
    heap_install();
    scratch_path(path, "t.b2d");
    sweep_commits();
    sweep_reads();
    sweep_zarr();
    return 0;
}
