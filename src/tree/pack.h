/* A tree made an archive, or a directory. */
#ifndef CV_TREE_PACK_H
#define CV_TREE_PACK_H

#include "tree/tree.h"

/* See caterva_tree_pack and caterva_tree_unpack; `options` are complete. */
cv_status cv_tree_pack(const cv_tree *tree, const char *path,
                       const caterva_tree_pack_options *options, cv_error *err);
cv_status cv_tree_unpack(const cv_tree *tree, const char *path,
                         const caterva_tree_pack_options *options, cv_error *err);

#endif
