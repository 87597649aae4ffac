/* Hierarchies of Zarr v3 groups as trees, which are read-only:
 *
 *     t.zarr/zarr.json           the root: attributes, and the metadata of all members
 *     t.zarr/g/zarr.json         the group "/g": attributes
 *     t.zarr/g/x/zarr.json, ...  the array "/g/x", as store/zarr.h describes
 *
 * Their members have the paths that they have in other trees: "g/x.b2nd", "g/__vlmeta__.b2f". */
#ifndef CV_TREE_ZARR_H
#define CV_TREE_ZARR_H

#include "tree/members.h"

#include <caterva_tree.h>

/* Adds the arrays and groups below `dir`. CATERVA_EUNSUPPORTED names an array that is no frame. */
cv_status cv_zarr_members(cv_dir dir, const char *shown, cv_members *out, cv_error *err);

/* Sets *out to the path of an array's frame in the hierarchy. Owned: cv_free. */
cv_status cv_zarr_member_path(cv_dir dir, const char *member, char **out, cv_error *err);

/* Appends the metadata of all entries, as the members of a JSON object. */
cv_status cv_zarr_consolidate(cv_dir dir, const caterva_tree_list *list, cv_buffer *out,
                              cv_error *err);

#endif
