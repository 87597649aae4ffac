/* The arrays that are open for writing through one handle of a tree: those that its commit
 * commits. The list is the tree's and theirs: it lasts as long as one of them. */
#ifndef CV_ARRAY_WRITERS_H
#define CV_ARRAY_WRITERS_H

#include "base/status.h"
#include "base/thread.h"

typedef struct cv_writer_entry {
    void *array;
    char *path; /* of its file from the tree */
} cv_writer_entry;

typedef struct cv_writers {
    cv_mutex lock; /* guards all below; taken before any lock of an array */
    cv_writer_entry *list;
    size_t n, room;
    size_t references;
} cv_writers;

/* With one reference, or NULL without memory. */
cv_writers *cv_writers_new(void);
void cv_writers_release(cv_writers *writers); /* NULL is fine */

/* The array, whose file has that path, is one of them until it leaves, which it does before
 * it is freed, without any lock. */
cv_status cv_writers_join(cv_writers *writers, void *array, const char *path, cv_error *err);
void cv_writers_leave(cv_writers *writers, const void *array);

#endif
