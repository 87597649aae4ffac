/* The tree handle of the public API, shared by the files of this room. */
#ifndef CV_TREE_HANDLE_H
#define CV_TREE_HANDLE_H

#include "array/array.h"
#include "base/thread.h"
#include "store/place.h"
#include "tree/change.h"

#include <caterva_tree.h>

/* ---- Arrays open for writing ------------------------------------------------------------ */

/* An array's attachment: its entry in cv_writers, which the tree and its arrays share. */
typedef struct cv_tree_writer {
    cv_attachment base; /* first */
    struct cv_writers *writers;
    caterva_array *array;
    char *path; /* the array's file, relative to the tree */
    size_t place;
} cv_tree_writer;

typedef struct cv_writer_name cv_writer_name;

/* The arrays of one tree that are open for writing. */
typedef struct cv_writers {
    cv_mutex lock; /* guards all below; taken before the lock of any array */
    cv_tree_writer **list;
    size_t n, room;
    size_t references;
    cv_writer_name **names; /* hash table of names of arrays and their groups */
    size_t n_names, n_buckets;
} cv_writers;

/* Returns a list with one reference, or NULL without memory. */
cv_writers *cv_writers_new(void);
void cv_writers_release(cv_writers *writers); /* NULL is fine */

/* Adds the array under its path. Releasing the array's handle removes it. Takes constant time. */
cv_status cv_writers_join(cv_writers *writers, caterva_array *array, const char *path,
                          cv_error *err);

/* ---- The handle ------------------------------------------------------------------------- */

struct caterva_tree {
    cv_tree *tree;
    caterva_durability durability;
    cv_mutex lock; /* guards changes of keys and attributes */
    cv_writers *writers;
    cv_keeper *keeper; /* of the written files, if the tree is open for writing; else NULL */
    cv_groups groups;  /* pending attributes */
    bool unfinished;   /* a published commit could not be finished */
    cv_status failed;  /* of the last commit; if that failed, closing commits no groups */
    cv_watch watch;    /* tree->watch points here if the caller set `progress` */
};

/* CATERVA_EINVAL for a NULL handle. */
cv_status cv_tree_handle_check(const caterva_tree *tree, cv_error *err);

/* Begin and end a call that may take long. Everything that reports to the handle's watch must run
 * between the two, because otherwise a stop of an earlier call would count. */
void cv_tree_handle_begin(caterva_tree *tree);
cv_status cv_tree_handle_finish(caterva_tree *tree, cv_status status);

/* As cv_tree_handle_begin and cv_tree_handle_finish, and lock and unlock the handle. */
void cv_tree_handle_lock(caterva_tree *tree);
cv_status cv_tree_handle_unlock(caterva_tree *tree, cv_status status);

/* As cv_tree_check_writable; returns CATERVA_EIO if a published commit could not be finished. */
cv_status cv_tree_handle_check_writable(const caterva_tree *tree, cv_error *err);

/* Calls cv_tree_check_writable, and checks the key of a new thing. CATERVA_EEXIST: a pending array
 * or group of this handle has the key or contradicts it; CATERVA_EBUSY: an array that would be
 * overwritten is open for writing. cv_change_place checks committed files. */
typedef enum cv_new_thing {
    CV_NEW_ARRAY,
    CV_NEW_OVERWRITING_ARRAY,
    CV_NEW_GROUP
} cv_new_thing;
cv_status cv_tree_handle_check_free(const caterva_tree *tree, const char *key,
                                    cv_new_thing thing, cv_error *err);

/* Whether the key is an array that this handle has open for writing, or a group with one. */
bool cv_tree_handle_writes(const caterva_tree *tree, const char *key);

#endif
