/* Changes of groups' attributes that are pending: for each group the whole new leaf. */
#ifndef CV_TREE_GROUPS_H
#define CV_TREE_GROUPS_H

#include "base/os_dir.h"
#include "tree/tree.h"

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

#endif
