/* Trees as hierarchies of Zarr groups. */
#ifndef CV_TREE_ZARR_WRITE_H
#define CV_TREE_ZARR_WRITE_H

#include "tree/handle.h"

/* See caterva_tree_pack_options.zarr; `options` must be complete. */
cv_status cv_tree_write_zarr(caterva_tree *tree, const char *path,
                             const caterva_tree_pack_options *options, cv_error *err);

/* Appends the metadata that caterva_tree_zarr_metadata returns. */
cv_status cv_tree_describe_zarr(caterva_tree *tree, const char *group, cv_buffer *out,
                                cv_error *err);

#endif
