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
cv_status cv_change_remove(cv_tree *tree, const char *key, cv_error *err);
cv_status cv_change_move(cv_tree *tree, const char *from, const char *to, cv_error *err);

#endif
