/* Small arrays in a tree, for tests of trees: 3 x 4 items that count up from a first
 * value. */
#ifndef TEST_SMALL_TREE_H
#define TEST_SMALL_TREE_H

#include "check.h"
#include "scratch.h"

#include <caterva.h>
#include <caterva_tree.h>

#include <dirent.h>
#include <stdio.h>
#include <string.h>

static caterva_error err;
static char path[SCRATCH_PATH];
static caterva_tree *tree; /* at `path`, open for writing */

static inline caterva_create_options create_options(void)
{
    static const int64_t shape[] = {3, 4};
    caterva_create_options o = CATERVA_CREATE_INIT;
    o.ndim = 2;
    o.shape = shape;
    o.dtype = "<i4";
    return o;
}

static inline void fill(caterva_array *array, int32_t first)
{
    static const int64_t start[] = {0, 0}, stop[] = {3, 4};
    int32_t items[12];
    for (int i = 0; i < 12; i++) items[i] = first + i;
    CHECK_OK(caterva_write(array, start, stop, items, sizeof items, &err), err);
}

/* Returns a new array with its items, not committed yet. */
static inline caterva_array *begin(const char *key, int32_t first, int overwrite)
{
    caterva_array *array;
    caterva_create_options o = create_options();
    o.overwrite = overwrite;
    CHECK_OK(caterva_tree_create_array(tree, key, &o, &array, &err), err);
    fill(array, first);
    return array;
}

static inline void put(const char *key, int32_t first, int overwrite)
{
    CHECK_OK(caterva_close(begin(key, first, overwrite), &err), err);
}

static inline void check_first(caterva_tree *t, const char *key, int32_t first)
{
    static const int64_t start[] = {0, 0}, stop[] = {3, 4};
    int32_t items[12];
    caterva_array *array;
    CHECK_OK(caterva_tree_open_array(t, key, NULL, &array, &err), err);
    CHECK_OK(caterva_read(array, start, stop, items, sizeof items, &err), err);
    for (int i = 0; i < 12; i++) CHECK(items[i] == first + i, "%s: %d", key, items[i]);
    caterva_discard(array);
}

static inline void check_list(caterva_tree *t, const char *expected)
{
    char text[2000] = "";
    const caterva_tree_list *list;
    CHECK_OK(caterva_tree_get_list(t, NULL, &list, &err), err);
    for (size_t i = 0; i < list->n; i++) {
        const caterva_tree_entry *entry = list->entries[i];
        strcat(strcat(text, entry->key), entry->kind == CATERVA_TREE_GROUP ? "/ " : " ");
    }
    caterva_tree_list_release(list);
    CHECK(strcmp(text, expected) == 0, "listed: %s\nnot:    %s", text, expected);
}

static inline void refused(caterva_status status, caterva_status expected, const char *words)
{
    CHECK(status == expected && strstr(err.message, words), "%s instead of %s \"%s\": %s",
          caterva_status_name(status), caterva_status_name(expected), words, err.message);
}

/* Checks that a directory contains only what belongs there. */
static inline int count_files(const char *name)
{
    char where[SCRATCH_PATH];
    DIR *dir = opendir(scratch_path(where, name));
    int n = 0;
    CHECK(dir, "%s", where);
    for (struct dirent *entry; (entry = readdir(dir));) n += entry->d_name[0] != '.';
    closedir(dir);
    return n;
}

#endif
