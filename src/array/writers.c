/* Room: array. Who is open for writing through a tree. */
#include "array/writers.h"

#include "base/heap.h"

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
    cv_free(writers);
}

static cv_status add(cv_writers *w, const cv_writer_entry *entry, cv_error *err)
{
    if (w->n == w->room) {
        size_t room = w->room ? 2 * w->room : 8;
        cv_writer_entry *grown =
            cv_realloc(w->list, w->n * sizeof *grown, room * sizeof *grown);
        if (!grown) return cv_fail_memory(err, room * sizeof *grown, "the arrays of a tree");
        w->list = grown;
        w->room = room;
    }
    w->list[w->n++] = *entry;
    w->references++;
    return CV_OK;
}

cv_status cv_writers_join(cv_writers *writers, void *array, const char *path, cv_error *err)
{
    cv_writer_entry entry = {.array = array, .path = cv_strdup(path)};
    if (!entry.path) return cv_fail_memory(err, strlen(path), "a path");
    cv_mutex_lock(&writers->lock);
    cv_status status = add(writers, &entry, err);
    cv_mutex_unlock(&writers->lock);
    if (status != CV_OK) cv_free(entry.path);
    return status;
}

void cv_writers_leave(cv_writers *w, const void *array)
{
    size_t i = 0;
    cv_mutex_lock(&w->lock);
    while (w->list[i].array != array) i++;
    cv_free(w->list[i].path);
    w->list[i] = w->list[--w->n];
    cv_mutex_unlock(&w->lock);
    cv_writers_release(w);
}
