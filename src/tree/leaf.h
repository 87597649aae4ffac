/* Arrays that are leaves of trees. */
#ifndef CV_TREE_LEAF_H
#define CV_TREE_LEAF_H

#include "array/array.h"
#include "tree/catalog.h"
#include "tree/find.h"
#include "tree/tree.h"

/* The bytes inside embed.b2e. Any thread. Release with cv_embedded_close. */
cv_status cv_embedded_open(const cv_tree *tree, cv_embed_bytes *out, cv_error *err);
void cv_embedded_close(cv_embed_bytes *bytes);

/* The store of one leaf in them, to be read. */
cv_status cv_embedded_store(const cv_tree *tree, const cv_leaf *leaf, cv_store **out,
                            cv_error *err);

/* ---- leaf ----
 * Arrays that are leaves of trees. */

/* Opens the leaf of `key` as complete options say, and gives the handle its path. */
cv_status cv_array_open_leaf(const cv_tree *tree, const char *key,
                             const caterva_open_options *options, caterva_array **out,
                             cv_error *err);

/* Whether the URL names a leaf: "TREE::/key", and no file has that whole name. */
bool cv_array_is_leaf_url(const char *url);

/* The same by such a URL; of a tree behind a URL in a session that there is (or NULL, of one
 * on this machine). */
cv_status cv_array_open_leaf_url(const char *url, const caterva_open_options *options,
                                 caterva_array **out, cv_error *err);
cv_status cv_array_open_leaf_in(cv_session *session, const char *url,
                                const caterva_open_options *options, caterva_array **out,
                                cv_error *err);

/* By such a URL, what is a file: the path of a leaf that exists in a directory, to be changed
 * as any file; or the path that a new array may have, its groups made (and the tree, where
 * there is nothing of a name that ends with ".b2d"). Owned: cv_free.
 * CATERVA_EREADONLY for archives, CATERVA_EBUSY while the tree is open for writing. */
cv_status cv_array_leaf_file(const char *url, char **path, cv_error *err);
cv_status cv_array_leaf_place(const char *url, bool overwrite, char **path, cv_error *err);

/* The path that parts of the array at any URL lie beside: of a leaf of a directory its file's,
 * whether it is there yet or not; any other URL as it is, beside which there are none where it
 * is no path. Owned: cv_free. */
cv_status cv_array_parts_place(const char *url, char **path, cv_error *err);

#endif
