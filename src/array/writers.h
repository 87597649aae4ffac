/* The arrays that are open for writing through one handle of a tree: those that its commit
 * commits. The list is the tree's and theirs: it lasts as long as one of them. */
#ifndef CV_ARRAY_WRITERS_H
#define CV_ARRAY_WRITERS_H

#include "base/status.h"
#include "base/thread.h"

typedef struct cv_writer_entry {
    void *array;
    char *path;    /* of its file from the tree */
    size_t *place; /* the array's own note of where it is in the list */
} cv_writer_entry;

typedef struct cv_writer_name cv_writer_name;

typedef struct cv_writers {
    cv_mutex lock; /* guards all below; taken before any lock of an array */
    cv_writer_entry *list;
    size_t n, room;
    size_t references;
    cv_writer_name **names; /* a table of the names of arrays and of the groups around them */
    size_t n_names, n_buckets;
} cv_writers;

/* With one reference, or NULL without memory. */
cv_writers *cv_writers_new(void);
void cv_writers_release(cv_writers *writers); /* NULL is fine */

/* The array, whose file has that path, is one of them until it leaves, which it does before
 * it is freed, without any lock. *place, which is the array's, belongs to the list meanwhile.
 * Both take the same time whatever the number of arrays. */
cv_status cv_writers_join(cv_writers *writers, void *array, size_t *place, const char *path,
                          cv_error *err);
void cv_writers_leave(cv_writers *writers, const size_t *place);

/* What the arrays make of a name, which is a path without its suffix: "g/x". Call with the
 * lock. */
typedef enum cv_writer_use {
    CV_NAME_FREE,
    CV_NAME_OF_ARRAY,
    CV_NAME_OF_GROUP /* arrays are below it */
} cv_writer_use;
cv_writer_use cv_writers_use(const cv_writers *writers, const char *name, size_t size);

#endif
