/* The arrays that are open for writing through one handle of a tree: those that its commit
 * commits. The list is the tree's and theirs: it lasts as long as one of them. */
#ifndef CV_TREE_WRITERS_H
#define CV_TREE_WRITERS_H

#include "array/array.h"
#include "base/status.h"
#include "base/thread.h"

/* An array's attachment: its place in the list. */
typedef struct cv_tree_writer {
    cv_attachment base; /* first */
    struct cv_writers *writers;
    caterva_array *array;
    char *path; /* of its file from the tree */
    size_t place;
} cv_tree_writer;

typedef struct cv_writer_name cv_writer_name;

typedef struct cv_writers {
    cv_mutex lock; /* guards all below; taken before any lock of an array */
    cv_tree_writer **list;
    size_t n, room;
    size_t references;
    cv_writer_name **names; /* a table of the names of arrays and of the groups around them */
    size_t n_names, n_buckets;
} cv_writers;

/* With one reference, or NULL without memory. */
cv_writers *cv_writers_new(void);
void cv_writers_release(cv_writers *writers); /* NULL is fine */

/* Adds the array, whose file has that path, until its handle is released. Adding and leaving
 * take the same time whatever the number of arrays. */
cv_status cv_writers_join(cv_writers *writers, caterva_array *array, const char *path,
                          cv_error *err);

/* What the arrays make of a name, which is a path without its suffix: "g/x". Call with the
 * lock. */
typedef enum cv_writer_use {
    CV_NAME_FREE,
    CV_NAME_OF_ARRAY,
    CV_NAME_OF_GROUP /* arrays are below it */
} cv_writer_use;
cv_writer_use cv_writers_use(const cv_writers *writers, const char *name, size_t size);

#endif
