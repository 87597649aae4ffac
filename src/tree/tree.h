/* The face of this room: arrays in trees, by URLs "TREE::/key" (cv_array_is_leaf_url). The room
 * also implements the public functions of caterva_tree.h. */
#ifndef CV_TREE_TREE_H
#define CV_TREE_TREE_H

#include "array/array.h"
#include "array/wings.h"

/* Opens the array. `options` must be complete. Opens a tree behind a URL in a new session. */
cv_status cv_tree_open_leaf_url(const char *url, const caterva_open_options *options,
                                caterva_array **out, cv_error *err);

/* Returns the path of an array's file in a directory, owned (cv_free). CATERVA_EREADONLY for
 * archives, CATERVA_EBUSY while the tree is open for writing. */
cv_status cv_tree_leaf_file(const char *url, char **path, cv_error *err);

/* Returns the path for a new array, owned (cv_free). Creates its groups, and a missing tree whose
 * name ends with ".b2d". Errors are those of cv_tree_leaf_file. */
cv_status cv_tree_leaf_place(const char *url, bool overwrite, char **path, cv_error *err);

/* Returns the path beside which the parts of the array's jobs lie: in a directory the path of the
 * array's file, which need not exist; else the URL. Owned: cv_free. */
cv_status cv_tree_parts_place(const char *url, char **path, cv_error *err);

/* Whether `path` is a tree of any form. */
bool cv_is_tree(const char *path);

/* Writes the tree at `path` as a new hierarchy of Zarr groups, which is not synced. */
cv_status cv_tree_pack_for_zarr(const char *path, const char *to,
                                const caterva_progress *progress, cv_error *err);

/* Opens an archive to publish it. CATERVA_EUNSUPPORTED: no archive; CATERVA_ECORRUPT: damaged. */
cv_status cv_archive_open(const char *path, cv_archive *out, cv_error *err);

/* Compares the members with their checksums in the archive; CATERVA_ECORRUPT if one differs. Of
 * members that are compressed, or replaced by another of the same name, checks only the headers. */
cv_status cv_archive_check(const cv_archive *archive, cv_watch *watch, cv_error *err);
void cv_archive_close(cv_archive *archive); /* all zeros is fine */

#endif
