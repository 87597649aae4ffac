/* Room: tree. The arrays that are open for writing through a tree, and a hash table of their
 * names: whether a new name is free takes the same time among ten and ten thousand. */
#include "tree/writers.h"

#include "base/heap.h"
#include "tree/names.h"

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
    cv_writer_name *next; /* in its bucket */
    size_t n_arrays;      /* of that name */
    size_t n_below;       /* arrays of which it is a group */
    size_t size;
    char text[];
};

static size_t hash(const char *name, size_t size)
{
    uint64_t h = 14695981039346656037U; /* FNV-1a */
    for (size_t i = 0; i < size; i++) h = (h ^ (unsigned char)name[i]) * 1099511628211U;
    return (size_t)(h ^ h >> 32);
}

/* The link that leads to the name, or the end of its bucket. The table is not empty. */
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

/* The name, with nothing counted yet where it is new. */
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

/* Takes an array off its name and off the groups around it, up to the one of `down_to`
 * bytes, which is left as it is. */
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

cv_writer_use cv_writers_use(const cv_writers *w, const char *name, size_t size)
{
    const cv_writer_name *found = w->n_buckets ? *find(w, name, size) : NULL;
    if (!found) return CV_NAME_FREE;
    return found->n_arrays > 0 ? CV_NAME_OF_ARRAY : CV_NAME_OF_GROUP;
}

/* ---- The list ------------------------------------------------------------- */

static cv_status add(cv_writers *w, cv_tree_writer *writer, cv_error *err)
{
    if (w->n == w->room) {
        size_t room = w->room ? 2 * w->room : 8;
        cv_tree_writer **grown = cv_realloc(w->list, w->n * sizeof *grown, room * sizeof *grown);
        if (!grown) return cv_fail_memory(err, room * sizeof *grown, "the arrays of a tree");
        w->list = grown;
        w->room = room;
    }
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
        cv_mutex_unlock(&writers->lock);
    }
    if (status == CV_OK)
        cv_array_attach(array, &kind, &writer->base);
    else
        free_writer(writer);
    return status;
}
