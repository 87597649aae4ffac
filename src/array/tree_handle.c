/* Room: array. What every function of a tree asks of its handle. */
#include "array/tree_handle.h"

cv_status cv_tree_handle_check(const caterva_tree *tree, cv_error *err)
{
    if (tree) return CV_OK;
    return cv_fail(err, CATERVA_EINVAL, -1, "the tree handle is NULL");
}

cv_status cv_tree_handle_check_writable(const caterva_tree *tree, cv_error *err)
{
    CV_TRY(cv_tree_handle_check(tree, err));
    CV_TRY(cv_tree_check_writable(tree->tree, err));
    if (!tree->unfinished) return CV_OK;
    return cv_fail(err, CATERVA_EIO, -1,
                   "a commit to %s could not be finished: close all and open the tree again",
                   tree->tree->shown.text);
}
