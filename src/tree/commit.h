/* The commit of a tree, for who closes one. */
#ifndef CV_TREE_COMMIT_H
#define CV_TREE_COMMIT_H

#include "tree/handle.h"
#include <caterva_tree.h>

/* Commits pending attributes of groups alone. */
cv_status cv_tree_commit_groups(caterva_tree *tree, cv_error *err);

#endif
