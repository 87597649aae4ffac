/* Changes of a tree that is a directory, open for writing: what stands at which key. The
 * bytes of arrays are their handles' business. */
#ifndef CV_TREE_CHANGE_H
#define CV_TREE_CHANGE_H

#include "tree/tree.h"

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
