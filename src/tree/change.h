/* Changes of a tree that is a directory, open for writing: what stands at which key. The
 * bytes of arrays are their handles' business. */
#ifndef CV_TREE_CHANGE_H
#define CV_TREE_CHANGE_H

#include "base/os_dir.h"
#include "tree/opened.h"

typedef struct cv_group_change {
    char *group;
    cv_buffer frame;
    char *path;                 /* of its file from the tree: "g/__vlmeta__.b2f" */
    char temp[CV_OS_TEMP_NAME]; /* beside it, while it is committed; "": none */
} cv_group_change;

typedef struct cv_groups {
    cv_group_change *list;
    size_t n, room;
} cv_groups;

/* The pending leaf of the group, or NULL. */
const cv_buffer *cv_groups_find(const cv_groups *groups, const char *group);

/* Takes over the frame, also on failure. */
cv_status cv_groups_set(cv_groups *groups, const char *group, cv_buffer *frame,
                        cv_error *err);

/* What is pending of the group `from` and below it: has another key from now on, or, `to`
 * NULL, is dropped. Without memory it is dropped, too. */
cv_status cv_groups_move(cv_groups *groups, const char *from, const char *to, cv_error *err);

void cv_groups_clear(cv_groups *groups);

/* The commit, in steps: writes all under temporary names; gives them their names; or takes
 * them away again. The first may be stopped by the tree's watch, which hears of each group. */
cv_status cv_groups_prepare(cv_groups *groups, const cv_tree *tree, bool durable,
                            cv_error *err);
cv_status cv_groups_complete(const cv_groups *groups, const cv_tree *tree, bool durable,
                             cv_error *err);
void cv_groups_abandon(cv_groups *groups, const cv_tree *tree);

/* ---- Changes of keys ----
 * Changes of a tree that is a directory, open for writing: what stands at which key. The
 * bytes of arrays are their handles' business. */

/* Whether a new array may have the key, its groups made: *path is the file that it is to
 * be, "PATH/g/x.b2nd". Owned: cv_free. */
cv_status cv_change_place(cv_tree *tree, const char *key, bool overwrite, char **path,
                          cv_error *err);

/* Whether the group may have attributes set: it is one, "/" among them, or may be one.
 * Nothing is made. */
cv_status cv_change_check_group(const cv_tree *tree, const char *key, cv_error *err);

cv_status cv_change_group(cv_tree *tree, const char *key, cv_error *err);

/* *gone: there is nothing of that key any more, also after a failure. A group goes from view
 * at once, and then its files; where the tree's watch stops that (CATERVA_ESTOPPED), or the
 * process dies, they lie in a hidden directory, which the next removal sweeps away. */
cv_status cv_change_remove(cv_tree *tree, const char *key, bool *gone, cv_error *err);

/* Removes what is left of groups that went from view. Does what it can, and fails only when
 * the tree's watch says stop. */
cv_status cv_change_sweep(const cv_tree *tree, cv_error *err);

cv_status cv_change_move(cv_tree *tree, const char *from, const char *to, cv_error *err);

#endif
