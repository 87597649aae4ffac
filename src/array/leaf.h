/* Arrays that are leaves of trees. */
#ifndef CV_ARRAY_LEAF_H
#define CV_ARRAY_LEAF_H

#include "array/array.h"
#include "tree/tree.h"

/* Opens the leaf of `key` as complete options say, and gives the handle its path. */
cv_status cv_array_open_leaf(const cv_tree *tree, const char *key,
                             const caterva_open_options *options, caterva_array **out,
                             cv_error *err);

/* Whether the URL names a leaf: "TREE::/key", and no file has that whole name. */
bool cv_array_is_leaf_url(const char *url);

/* The same by such a URL. */
cv_status cv_array_open_leaf_url(const char *url, const caterva_open_options *options,
                                 caterva_array **out, cv_error *err);

#endif
