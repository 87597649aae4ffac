/* The face of this room: arrays in trees, by URLs "TREE::/key" (cv_array_is_leaf_url). The
 * public functions of caterva_tree.h are beside it. */
#ifndef CV_TREE_TREE_H
#define CV_TREE_TREE_H

#include "array/array.h"
#include "array/wings.h"

/* Opens the array as complete options say; a tree behind a URL in a new session. */
cv_status cv_tree_open_leaf_url(const char *url, const caterva_open_options *options,
                                caterva_array **out, cv_error *err);

/* The file path of an array in a directory, owned (cv_free). CATERVA_EREADONLY for archives,
 * CATERVA_EBUSY while the tree is open for writing. */
cv_status cv_tree_leaf_file(const char *url, char **path, cv_error *err);

/* The path for a new array, owned (cv_free). Makes its groups, and a missing tree whose name
 * ends with ".b2d". Errors as above. */
cv_status cv_tree_leaf_place(const char *url, bool overwrite, char **path, cv_error *err);

/* The path that parts of the array lie beside: its file in a directory, whether it exists or
 * not; else the URL. Owned: cv_free. */
cv_status cv_tree_parts_place(const char *url, char **path, cv_error *err);

/* Whether a tree of any form is at `path`. */
bool cv_is_tree(const char *path);

/* Opens an archive to be published: CATERVA_EUNSUPPORTED for anything else, CATERVA_ECORRUPT
 * if it is damaged. */
cv_status cv_archive_open(const char *path, cv_archive *out, cv_error *err);

/* Compares members with their checksums in the archive, CATERVA_ECORRUPT. Of members that are
 * deflated or replaced by another of the name only the headers are checked. */
cv_status cv_archive_check(const cv_archive *archive, cv_watch *watch, cv_error *err);
void cv_archive_close(cv_archive *archive); /* of zeros is fine */

#endif
