/* Changes of keys, and of attributes of groups, in a tree that is a directory open for writing. */
#ifndef CV_TREE_CHANGE_H
#define CV_TREE_CHANGE_H

#include "base/os_dir.h"
#include "tree/opened.h"

/* A pending change: the new leaf with a group's attributes. */
typedef struct cv_group_change {
    char *group;
    cv_buffer frame;
    char *path;                 /* of the leaf, relative to the tree: "g/__vlmeta__.b2f" */
    char temp[CV_OS_TEMP_NAME]; /* temporary name during a commit; "": none */
} cv_group_change;

typedef struct cv_groups {
    cv_group_change *list;
    size_t n, room;
} cv_groups;

/* Returns the pending leaf of the group, or NULL. */
const cv_buffer *cv_groups_find(const cv_groups *groups, const char *group);

/* Sets the pending leaf. Takes ownership of the frame, also on failure. */
cv_status cv_groups_set(cv_groups *groups, const char *group, cv_buffer *frame,
                        cv_error *err);

/* Moves the pending changes of the group `from`, and of groups below it, to `to`. Drops the changes
 * if `to` is NULL or memory is lacking. */
cv_status cv_groups_move(cv_groups *groups, const char *from, const char *to, cv_error *err);
void cv_groups_clear(cv_groups *groups);

/* The steps of a commit. cv_groups_prepare writes all leaves under temporary names; then
 * cv_groups_complete renames them, or cv_groups_abandon deletes them. The tree's watch counts
 * groups, and may stop cv_groups_prepare. */
cv_status cv_groups_prepare(cv_groups *groups, const cv_tree *tree, bool durable,
                            cv_error *err);
cv_status cv_groups_complete(const cv_groups *groups, const cv_tree *tree, bool durable,
                             cv_error *err);
void cv_groups_abandon(cv_groups *groups, const cv_tree *tree);

/* Checks that a new array may have the key, and creates its groups. *path: the path for the array's
 * file, "TREE/g/x.b2nd", owned: cv_free. */
cv_status cv_change_place(cv_tree *tree, const char *key, bool overwrite, char **path,
                          cv_error *err);

/* Checks that the group, which may be "/" or not exist yet, may have attributes. */
cv_status cv_change_check_group(const cv_tree *tree, const char *key, cv_error *err);

cv_status cv_change_group(cv_tree *tree, const char *key, cv_error *err);

/* Deletes an array or group. If `is_written`, the caller has an array there open for writing:
 * nothing is deleted, and the call fails with CATERVA_EBUSY or another obstacle. *gone: the key no
 * longer exists; may be true after a failure. A group disappears at once; then its files are
 * deleted. If the watch stops this (CATERVA_ESTOPPED), the remaining files stay in a hidden
 * directory, which the next deletion or opening for writing deletes. */
cv_status cv_change_remove(cv_tree *tree, const char *key, bool is_written, bool *gone,
                           cv_error *err);

/* Deletes hidden directories of deleted groups, best effort; fails only if stopped. */
cv_status cv_change_sweep(const cv_tree *tree, cv_error *err);

cv_status cv_change_move(cv_tree *tree, const char *from, const char *to, bool is_written,
                         cv_error *err);

#endif
