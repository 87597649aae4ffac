/* The handle of a tree behind the public API, shared by this room's files. */
#ifndef CV_TREE_HANDLE_H
#define CV_TREE_HANDLE_H

#include "array/array.h"
#include "base/thread.h"
#include "store/place.h"
#include "tree/change.h"

#include <caterva_tree.h>

/* ---- Arrays that are open for writing: shared by the tree and the arrays --------------- */

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

/* Adds the array with that path until its handle is released. Takes constant time. */
cv_status cv_writers_join(cv_writers *writers, caterva_array *array, const char *path,
                          cv_error *err);

/* ---- The handle ---- */

struct caterva_tree {
    cv_tree *tree;
    caterva_durability durability;
    cv_mutex lock; /* one change of keys or attributes at a time */
    cv_writers *writers;
    cv_keeper *keeper; /* of the files of writers, for a tree that is written; else NULL */
    cv_groups groups;  /* attributes that are pending */
    bool unfinished;   /* a commit stands that could not be finished */
    cv_status failed;  /* how the last commit did: nothing of it may be committed alone */
    cv_watch watch;    /* tree->watch, if there is one */
};

/* CATERVA_EINVAL for a NULL handle. */
cv_status cv_tree_handle_check(const caterva_tree *tree, cv_error *err);

/* Begin and end a call that may be long. Everything that reports to the handle's watch lies
 * between them, or stops of earlier calls would count. */
void cv_tree_handle_begin(caterva_tree *tree);
cv_status cv_tree_handle_finish(caterva_tree *tree, cv_status status);

/* The same with the handle's lock. */
void cv_tree_handle_lock(caterva_tree *tree);
cv_status cv_tree_handle_unlock(caterva_tree *tree, cv_status status);

/* As cv_tree_check_writable; CATERVA_EIO when a commit stands that
 * could not be finished. */
cv_status cv_tree_handle_check_writable(const caterva_tree *tree, cv_error *err);

/* CATERVA_EEXIST if a pending array or group of this handle is in the way of the key; an
 * array open for writing there is not if the new one overwrites it. Also checks what
 * cv_tree_check_writable does. cv_change_place checks committed files. */
typedef enum cv_new_thing {
    CV_NEW_ARRAY,
    CV_NEW_OVERWRITING_ARRAY,
    CV_NEW_GROUP
} cv_new_thing;
cv_status cv_tree_handle_check_free(const caterva_tree *tree, const char *key,
                                    cv_new_thing thing, cv_error *err);

#endif
