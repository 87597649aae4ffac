/* Room: tree. The tree handle: the checks of every public function, and the list of arrays open for
 * writing. A hash table of the arrays' names allows to check a new name in constant time. */
#include "tree/handle.h"

#include "base/heap.h"
#include "tree/names.h"

#include <caterva_tree.h>
#include <string.h>

cv_writers *cv_writers_new(void)
{
    cv_writers *writers = cv_calloc(1, sizeof *writers);
    if (!writers) return NULL;
    cv_mutex_init(&writers->lock);
    writers->references = 1;
    return writers;
}

void cv_writers_release(cv_writers *writers)
{
    if (!writers) return;
    cv_mutex_lock(&writers->lock);
    bool is_last = --writers->references == 0;
    cv_mutex_unlock(&writers->lock);
    if (!is_last) return;
    cv_mutex_destroy(&writers->lock);
    cv_free(writers->list);
    cv_free(writers->names);
    cv_free(writers);
}

/* ---- Names ---------------------------------------------------------------- */

struct cv_writer_name {
    cv_writer_name *next; /* in the same bucket */
    size_t n_arrays;      /* arrays with this name */
    size_t n_below;       /* arrays below this group */
    size_t size;
    char text[];
};

static size_t hash(const char *name, size_t size)
{
    uint64_t h = 14695981039346656037U; /* FNV-1a */
    for (size_t i = 0; i < size; i++) h = (h ^ (unsigned char)name[i]) * 1099511628211U;
    return (size_t)(h ^ h >> 32);
}

/* Returns the link to the name, or the end of its bucket. The table must not be empty. */
static cv_writer_name **find(const cv_writers *w, const char *name, size_t size)
{
    cv_writer_name **link = &w->names[hash(name, size) & (w->n_buckets - 1)];
    while (*link && ((*link)->size != size || memcmp((*link)->text, name, size) != 0))
        link = &(*link)->next;
    return link;
}

static cv_status grow(cv_writers *w, cv_error *err)
{
    size_t n = w->n_buckets ? 2 * w->n_buckets : 16, n_old = w->n_buckets;
    cv_writer_name **old = w->names, **names = cv_calloc(n, sizeof(cv_writer_name *));
    if (!names) return cv_fail_memory(err, n * sizeof *names, "the names of a tree");
    w->names = names;
    w->n_buckets = n;
    for (size_t i = 0; i < n_old; i++)
        for (cv_writer_name *next, *name = old[i]; name; name = next) {
            next = name->next;
            name->next = NULL;
            *find(w, name->text, name->size) = name;
        }
    cv_free(old);
    return CV_OK;
}

static cv_status enter(cv_writers *w, const char *name, size_t size, cv_writer_name **out,
                       cv_error *err)
{
    if (w->n_names >= w->n_buckets) CV_TRY(grow(w, err));
    cv_writer_name **link = find(w, name, size);
    if (!*link) {
        *link = cv_calloc(1, sizeof **link + size);
        if (!*link) return cv_fail_memory(err, size, "a name");
        (*link)->size = size;
        memcpy((*link)->text, name, size);
        w->n_names++;
    }
    *out = *link;
    return CV_OK;
}

static void drop_if_unused(cv_writers *w, cv_writer_name **link)
{
    cv_writer_name *name = *link;
    if (!name || name->n_arrays + name->n_below > 0) return;
    *link = name->next;
    w->n_names--;
    cv_free(name);
}

/* Removes an array from the counts of its name and of the groups around it, from the innermost to
 * those longer than `down_to` bytes. */
static void uncount(cv_writers *w, const char *path, size_t down_to)
{
    size_t stem = cv_tree_stem(path);
    for (size_t size = stem; size > down_to; size = cv_tree_parent(path, size)) {
        cv_writer_name **link = find(w, path, size);
        --*(size == stem ? &(*link)->n_arrays : &(*link)->n_below);
        drop_if_unused(w, link);
    }
}

static cv_status count(cv_writers *w, const char *path, cv_error *err)
{
    cv_writer_name *name = NULL;
    size_t stem = cv_tree_stem(path);
    for (size_t size = stem; size > 0; size = cv_tree_parent(path, size)) {
        cv_status status = enter(w, path, size, &name, err);
        if (status != CV_OK) {
            uncount(w, path, size);
            return status;
        }
        ++*(size == stem ? &name->n_arrays : &name->n_below);
    }
    return CV_OK;
}

/* What a name "g/x" (without suffix) means among arrays open for writing. Requires the lock. */
typedef enum name_use {
    CV_NAME_FREE,
    CV_NAME_OF_ARRAY,
    CV_NAME_OF_GROUP /* arrays lie below it */
} name_use;

static name_use use_of(const cv_writers *w, const char *name, size_t size)
{
    const cv_writer_name *found = w->n_buckets ? *find(w, name, size) : NULL;
    if (!found) return CV_NAME_FREE;
    return found->n_arrays > 0 ? CV_NAME_OF_ARRAY : CV_NAME_OF_GROUP;
}

static cv_status add(cv_writers *w, cv_tree_writer *writer, cv_error *err)
{
    cv_tree_writer **grown = cv_grow(w->list, w->n, &w->room, sizeof *grown);
    if (!grown) return cv_fail_memory(err, w->room * sizeof *grown, "the arrays of a tree");
    w->list = grown;
    CV_TRY(count(w, writer->path, err));
    writer->place = w->n;
    w->list[w->n++] = writer;
    w->references++;
    return CV_OK;
}

static void free_writer(cv_tree_writer *writer)
{
    cv_free(writer->path);
    cv_free(writer);
}

static void leave(cv_attachment *self)
{
    cv_tree_writer *writer = (cv_tree_writer *)self;
    cv_writers *w = writer->writers;
    cv_mutex_lock(&w->lock);
    uncount(w, writer->path, 0);
    cv_tree_writer *last = w->list[--w->n];
    w->list[writer->place] = last;
    last->place = writer->place;
    cv_mutex_unlock(&w->lock);
    cv_writers_release(w);
    free_writer(writer);
}

cv_status cv_writers_join(cv_writers *writers, caterva_array *array, const char *path,
                          cv_error *err)
{
    static const cv_attachment_kind kind = {.free = leave};
    cv_tree_writer *writer = cv_calloc(1, sizeof *writer);
    if (!writer) return cv_fail_memory(err, sizeof *writer, "a writer");
    writer->writers = writers;
    writer->array = array;
    writer->path = cv_strdup(path);
    cv_status status = CV_OK;
    if (!writer->path) status = cv_fail_memory(err, strlen(path), "a path");
    if (status == CV_OK) {
        cv_mutex_lock(&writers->lock);
        status = add(writers, writer, err);
        if (status == CV_OK) cv_array_attach(array, &kind, &writer->base);
        cv_mutex_unlock(&writers->lock);
    }
    if (status != CV_OK) free_writer(writer);
    return status;
}

cv_status cv_tree_handle_check(const caterva_tree *tree, cv_error *err)
{
    if (tree) return CV_OK;
    return cv_fail(err, CATERVA_EINVAL, -1, "the tree handle is NULL");
}

cv_status cv_tree_handle_check_writable(const caterva_tree *tree, cv_error *err)
{
    CV_TRY(cv_tree_handle_check(tree, err));
    CV_TRY(cv_tree_check_writable(tree->tree, err));
    if (!tree->unfinished) return CV_OK;
    return cv_fail(err, CATERVA_EIO, -1,
                   "a commit to %s could not be finished: close all handles of the tree and "
                   "open it again",
                   tree->tree->shown.text);
}

void cv_tree_handle_begin(caterva_tree *tree)
{
    if (tree->tree->watch) cv_watch_begin(tree->tree->watch);
}

cv_status cv_tree_handle_finish(caterva_tree *tree, cv_status status)
{
    if (tree->tree->watch) cv_watch_end(tree->tree->watch, status == CV_OK);
    return status;
}

void cv_tree_handle_lock(caterva_tree *tree)
{
    cv_mutex_lock(&tree->lock);
    cv_tree_handle_begin(tree);
}

cv_status cv_tree_handle_unlock(caterva_tree *tree, cv_status status)
{
    (void)cv_tree_handle_finish(tree, status);
    cv_mutex_unlock(&tree->lock);
    return status;
}

/* Checks the key against the names of arrays open for writing and of their groups. */
static cv_status check_writers(const caterva_tree *tree, const char *key, cv_new_thing thing,
                               cv_error *err)
{
    const char *name = key + 1, *shown = tree->tree->shown.text;
    size_t size = strlen(name);
    name_use use = use_of(tree->writers, name, size);
    if (use == CV_NAME_OF_ARRAY && thing == CV_NEW_OVERWRITING_ARRAY)
        return cv_fail(err, CATERVA_EBUSY, -1, "%.80s in %s is open for writing", key, shown);
    if (use == CV_NAME_OF_ARRAY)
        return cv_fail(err, CATERVA_EEXIST, -1, "%.80s in %s exists already", key, shown);
    if (use == CV_NAME_OF_GROUP && thing != CV_NEW_GROUP)
        return cv_fail(err, CATERVA_EEXIST, -1, "%.80s in %s is a group", key, shown);
    while ((size = cv_tree_parent(name, size)) > 0)
        if (use_of(tree->writers, name, size) == CV_NAME_OF_ARRAY)
            return cv_fail(err, CATERVA_EEXIST, -1,
                           "cannot create %.80s: /%.*s in %s is not a group", key, (int)size,
                           name, shown);
    return CV_OK;
}

static cv_status check_groups(const caterva_tree *tree, const char *key, cv_error *err)
{
    for (size_t i = 0; i < tree->groups.n; i++) {
        const char *group = tree->groups.list[i].group;
        if (strcmp(group, key) == 0 || cv_tree_is_within(group, key))
            return cv_fail(err, CATERVA_EEXIST, -1, "%.80s in %s is a group", key,
                           tree->tree->shown.text);
    }
    return CV_OK;
}

cv_status cv_tree_handle_check_free(const caterva_tree *tree, const char *key,
                                    cv_new_thing thing, cv_error *err)
{
    cv_writers *w = tree->writers;
    CV_TRY(cv_tree_check_writable(tree->tree, err));
    if (key[0] != '/' || !key[1]) return CV_OK; /* invalid (refused later), or the root */
    cv_mutex_lock(&w->lock);
    cv_status status = check_writers(tree, key, thing, err);
    cv_mutex_unlock(&w->lock);
    if (status != CV_OK || thing == CV_NEW_GROUP) return status;
    return check_groups(tree, key, err);
}

bool cv_tree_handle_writes(const caterva_tree *tree, const char *key)
{
    cv_mutex_lock(&tree->writers->lock);
    bool writes = *key && use_of(tree->writers, key + 1, strlen(key + 1)) != CV_NAME_FREE;
    cv_mutex_unlock(&tree->writers->lock);
    return writes;
}
