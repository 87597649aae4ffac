/* Commits of trees: several arrays, new ones and attributes of groups change together or not
 * at all. Readers see what an unfinished commit has promised, and the next writer finishes
 * it. */
#include "check.h"
#include "scratch.h"

#include "store/descriptors.h"
#include "tree/handle.h"
#include "tree/names.h"

#include <caterva_tree.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static caterva_error err;
static char path[SCRATCH_PATH];
static caterva_tree *tree;

/* ---- Arrays --------------------------------------------------------------------------- */

static caterva_create_options create_options(int64_t n)
{
    static int64_t shape[2];
    static const int32_t chunk[] = {4, 4}, block[] = {2, 4};
    caterva_create_options o = CATERVA_CREATE_INIT;
    shape[0] = n;
    shape[1] = 4;
    o.ndim = 2;
    o.shape = shape;
    o.chunk_shape = chunk;
    o.block_shape = block;
    o.dtype = "<i4";
    return o;
}

/* Row r holds value + r. */
static void fill(caterva_array *array, int64_t n, int32_t value)
{
    int64_t start[] = {0, 0}, stop[] = {n, 4};
    int32_t *items = check_alloc((size_t)n * 16);
    for (int64_t i = 0; i < 4 * n; i++) items[i] = value + (int32_t)(i / 4);
    CHECK_OK(caterva_write(array, start, stop, items, (size_t)n * 16, &err), err);
    free(items);
}

static caterva_array *create(const char *key, int64_t n, int32_t value)
{
    caterva_array *array;
    caterva_create_options o = create_options(n);
    o.overwrite = 1;
    CHECK_OK(caterva_tree_create_array(tree, key, &o, &array, &err), err);
    fill(array, n, value);
    return array;
}

static caterva_array *open_to(caterva_mode mode, const char *key)
{
    caterva_array *array;
    caterva_open_options o = CATERVA_OPEN_INIT;
    o.mode = mode;
    CHECK_OK(caterva_tree_open_array(tree, key, &o, &array, &err), err);
    return array;
}

/* The value of the first row, if all rows are as made by fill; -1: there is no such array. */
static int32_t value_of(caterva_array *array, int64_t *n)
{
    const caterva_info *info;
    CHECK_OK(caterva_info_get(array, &info, &err), err);
    int64_t start[] = {0, 0}, stop[] = {info->shape[0], 4};
    size_t size = (size_t)info->shape[0] * 16;
    int32_t *items = check_alloc(size);
    CHECK_OK(caterva_read(array, start, stop, items, size, &err), err);
    int32_t first = info->shape[0] > 0 ? items[0] : 0;
    for (int64_t i = 0; i < 4 * info->shape[0]; i++)
        CHECK(items[i] == first + (int32_t)(i / 4), "item %lld is %d", (long long)i,
              items[i]);
    *n = info->shape[0];
    caterva_info_release(info);
    free(items);
    return first;
}

static int32_t stored(const char *where, const char *key, int64_t *n)
{
    char url[SCRATCH_PATH + 40];
    caterva_array *array;
    snprintf(url, sizeof url, "%s::%s", where, key);
    caterva_status status = caterva_open(url, NULL, &array, &err);
    *n = 0;
    if (status == CATERVA_ENOTFOUND) return -1;
    CHECK_OK(status, err);
    int32_t value = value_of(array, n);
    CHECK_OK(caterva_refresh(array, &err), err);
    CHECK(value_of(array, n) == value, "another state after a refresh");
    caterva_discard(array);
    return value;
}

static void check_stored(const char *key, int64_t n, int32_t value)
{
    int64_t found_n;
    int32_t found = stored(path, key, &found_n);
    CHECK(found == value && (value < 0 || found_n == n), "%s: %lld rows from %d", key,
          (long long)found_n, found);
}

static void refused(caterva_status status, caterva_status expected, const char *words)
{
    CHECK(status == expected && strstr(err.message, words), "%s instead of %s \"%s\": %s",
          caterva_status_name(status), caterva_status_name(expected), words, err.message);
}

/* ---- Attributes ----------------------------------------------------------------------- */

static void set_number(const char *group, const char *name, uint8_t value)
{
    CHECK_OK(caterva_tree_attr_set(tree, group, name, &value, 1, &err), err);
}

/* A number below 128, or -1: it does not exist. */
static int number_of(caterva_tree *t, const char *group, const char *name)
{
    void *value;
    size_t size;
    caterva_status status = caterva_tree_attr_get(t, group, name, &value, &size, &err);
    if (status == CATERVA_ENOTFOUND) return -1;
    CHECK_OK(status, err);
    CHECK(size == 1, "%zu bytes", size);
    int number = *(uint8_t *)value;
    caterva_free(value);
    return number;
}

static int stored_number(const char *group, const char *name)
{
    caterva_tree *reader;
    CHECK_OK(caterva_tree_open(path, NULL, &reader, &err), err);
    int number = number_of(reader, group, name);
    CHECK_OK(caterva_tree_close(reader, &err), err);
    return number;
}

/* But for the file that has the locks of a directory on Windows. */
static int count_hidden(const char *name)
{
    char where[SCRATCH_PATH];
    DIR *dir = opendir(scratch_path(where, name));
    int n = 0;
    CHECK(dir, "%s", where);
    for (struct dirent *entry; (entry = readdir(dir));)
        n += entry->d_name[0] == '.' && strcmp(entry->d_name, ".") != 0 &&
             strcmp(entry->d_name, "..") != 0 &&
             strcmp(entry->d_name, ".caterva.lock") != 0;
    closedir(dir);
    return n;
}

/* ---- Commits -------------------------------------------------------------------------- */

static void open_tree(void)
{
    caterva_tree_options writing = CATERVA_TREE_INIT;
    writing.mode = CATERVA_MODE_WRITE;
    CHECK_OK(caterva_tree_open(path, &writing, &tree, &err), err);
}

static void test_together(void)
{
    CHECK_OK(caterva_tree_create(scratch_path(path, "t.b2d"), NULL, &tree, &err), err);
    caterva_array *a = create("/a", 8, 10), *b = create("/g/b", 4, 20);
    set_number("/g", "n", 1);
    set_number("/", "top", 2);
    set_number("/later/h", "x", 3);
    check_stored("/a", 0, -1);
    CHECK(stored_number("/g", "n") == -1, "seen too early");
    CHECK(number_of(tree, "/g", "n") == 1, "not seen by its handle");
    CHECK_OK(caterva_tree_commit(tree, &err), err);
    check_stored("/a", 8, 10);
    check_stored("/g/b", 4, 20);
    CHECK(stored_number("/g", "n") == 1 && stored_number("/", "top") == 2 &&
              stored_number("/later/h", "x") == 3,
          "attributes");

    /* Growth, a new array, an existing one, and an unchanged one. */
    caterva_array *c = create("/g/c", 4, 30);
    int64_t shape[] = {12, 4};
    CHECK_OK(caterva_resize(a, shape, &err), err);
    fill(a, 12, 11);
    fill(b, 4, 21);
    CHECK_OK(caterva_attr_set(b, "units", "\xa1K", 2, &err), err);
    set_number("/g", "n", 4);
    check_stored("/a", 8, 10);
    CHECK_OK(caterva_tree_commit(tree, &err), err);
    check_stored("/a", 12, 11);
    check_stored("/g/b", 4, 21);
    check_stored("/g/c", 4, 30);
    CHECK(stored_number("/g", "n") == 4, "attributes");
    CHECK_OK(caterva_tree_commit(tree, &err), err); /* of nothing */
    CHECK(count_hidden("t.b2d") == 0 && count_hidden("t.b2d/g") == 0, "leftovers");

    /* The handles remain usable, separately and together. */
    fill(a, 12, 12);
    CHECK_OK(caterva_commit(a, &err), err);
    fill(a, 12, 13);
    fill(c, 4, 31);
    CHECK_OK(caterva_tree_commit(tree, &err), err);
    CHECK_OK(caterva_close(c, &err), err);
    fill(a, 12, 14);
    CHECK_OK(caterva_tree_commit(tree, &err), err);
    check_stored("/a", 12, 14);
    check_stored("/g/c", 4, 31);
    CHECK_OK(caterva_close(a, &err), err);
    CHECK_OK(caterva_close(b, &err), err);
    CHECK_OK(caterva_tree_close(tree, &err), err);
}

static void test_rollback(void)
{
    open_tree();
    caterva_array *a = open_to(CATERVA_MODE_WRITE, "/a"), *d = create("/d", 4, 40);
    fill(a, 12, 90);
    set_number("/g", "n", 9);
    set_number("/g", "m", 9);
    CHECK_OK(caterva_tree_rollback(tree, &err), err);
    CHECK(number_of(tree, "/g", "n") == 4 && number_of(tree, "/g", "m") == -1, "kept");
    caterva_discard(d);
    CHECK_OK(caterva_tree_commit(tree, &err), err);
    check_stored("/a", 12, 14);
    check_stored("/d", 0, -1);
    CHECK_OK(caterva_close(a, &err), err);

    /* A close commits attributes. */
    set_number("/g", "n", 5);
    CHECK_OK(caterva_tree_attr_delete(tree, "/", "top", &err), err);
    CHECK_OK(caterva_tree_close(tree, &err), err);
    CHECK(stored_number("/g", "n") == 5 && stored_number("/", "top") == -1, "not committed");
}

/* The array outlives the tree's handle, and is a single array then. */
static void test_outlives(void)
{
    open_tree();
    caterva_array *a = open_to(CATERVA_MODE_WRITE, "/a");
    fill(a, 12, 15);
    CHECK_OK(caterva_tree_close(tree, &err), err);
    open_tree();
    CHECK_OK(caterva_tree_commit(tree, &err), err);
    check_stored("/a", 12, 14);
    CHECK_OK(caterva_close(a, &err), err);
    check_stored("/a", 12, 15);
    CHECK_OK(caterva_tree_close(tree, &err), err);
}

static void test_refusals(void)
{
    caterva_tree *reader;
    uint8_t one = 1;
    CHECK_OK(caterva_tree_open(path, NULL, &reader, &err), err);
    refused(caterva_tree_commit(reader, &err), CATERVA_EREADONLY, "reading");
    refused(caterva_tree_rollback(reader, &err), CATERVA_EREADONLY, "reading");
    refused(caterva_tree_attr_set(reader, "/g", "n", &one, 1, &err), CATERVA_EREADONLY,
            "reading");
    const char **names;
    size_t n;
    refused(caterva_tree_attr_list(reader, "/none", &names, &n, &err), CATERVA_ENOTFOUND,
            "/none");
    CHECK_OK(caterva_tree_attr_list(reader, "/", &names, &n, &err), err);
    CHECK(n == 0 && names[0] == NULL, "%zu", n);
    caterva_free(names);
    CHECK_OK(caterva_tree_attr_list(reader, NULL, &names, &n, &err), err);
    caterva_free(names);
    CHECK_OK(caterva_tree_attr_list(reader, "/g", &names, &n, &err), err);
    CHECK(n == 1 && strcmp(names[0], "n") == 0, "%zu", n);
    caterva_free(names);
    CHECK_OK(caterva_tree_close(reader, &err), err);
    open_tree();
    refused(caterva_tree_attr_set(tree, "/a", "n", &one, 1, &err), CATERVA_EEXIST, "leaf");
    refused(caterva_tree_attr_set(tree, "/a/b/c", "n", &one, 1, &err), CATERVA_EEXIST,
            "leaf");
    refused(caterva_tree_attr_set(tree, "/g/__vlmeta__", "n", &one, 1, &err), CATERVA_EINVAL,
            "name");
    refused(caterva_tree_attr_set(tree, "g", "n", &one, 1, &err), CATERVA_EINVAL, "slash");
    refused(caterva_tree_attr_set(tree, "/g", "", &one, 1, &err), CATERVA_EINVAL, "name");
    refused(caterva_tree_attr_delete(tree, "/g", "none", &err), CATERVA_ENOTFOUND, "none");
    refused(caterva_tree_attr_delete(tree, "/nowhere", "none", &err), CATERVA_ENOTFOUND,
            "/nowhere");
    CHECK_OK(caterva_tree_close(tree, &err), err);
}

/* Pending attributes move with their group. */
static void test_moves(void)
{
    open_tree();
    set_number("/m/n", "x", 1);
    CHECK_OK(caterva_tree_commit(tree, &err), err);
    set_number("/m/n", "x", 2);
    CHECK_OK(caterva_tree_move(tree, "/m", "/q", &err), err);
    CHECK(number_of(tree, "/q/n", "x") == 2, "%d", number_of(tree, "/q/n", "x"));
    CHECK_OK(caterva_tree_commit(tree, &err), err);
    CHECK(stored_number("/q/n", "x") == 2, "not moved");
    set_number("/q/n", "x", 3);
    CHECK_OK(caterva_tree_delete(tree, "/q", &err), err);
    CHECK_OK(caterva_tree_commit(tree, &err), err);
    CHECK(number_of(tree, "/q/n", "x") == -1, "still there");
    CHECK_OK(caterva_tree_close(tree, &err), err);
}

/* 200 attributes, and names longer than C-Blosc2 supports. */
static void test_many_attributes(void)
{
    char name[80];
    size_t n;
    const char **names;
    open_tree();
    for (int i = 0; i < 200; i++) {
        snprintf(name, sizeof name, "%s%d",
                 i % 3 ? "a" : "straight_vertical_longitude_from_pole", i);
        set_number("/many", name, (uint8_t)(i % 100));
    }
    CHECK_OK(caterva_tree_close(tree, &err), err);
    open_tree();
    CHECK_OK(caterva_tree_attr_list(tree, "/many", &names, &n, &err), err);
    CHECK(n == 200, "%zu names", n);
    caterva_free(names);
    for (int i = 0; i < 200; i++) {
        snprintf(name, sizeof name, "%s%d",
                 i % 3 ? "a" : "straight_vertical_longitude_from_pole", i);
        CHECK(number_of(tree, "/many", name) == i % 100, "%s", name);
    }
    CHECK_OK(caterva_tree_delete(tree, "/many", &err), err);
    CHECK_OK(caterva_tree_close(tree, &err), err);
}

int main(void)
{
    test_together();
    test_rollback();
    test_outlives();
    test_refusals();
    test_moves();
    test_many_attributes();
    return 0;
}
