/* Opens a handle on a store that contains an array. */
#ifndef CV_ARRAY_OPEN_H
#define CV_ARRAY_OPEN_H

#include "array/array.h"
#include "array/wings.h"

#include <caterva_remote.h>

/* Copies a program's options over the defaults, and checks them. */
cv_status cv_array_open_options(const caterva_open_options *options,
                                caterva_open_options *out, cv_error *err);

/* Divides "TREE::/g/x". Returns the key behind the first "::" that is followed by a slash or
 * nothing, or NULL. "TREE::" has the key "/". */
const char *cv_tree_url_key(const char *url, size_t *path_size);

/* Whether the URL names an array in a tree: "TREE::/key", unless a file has this whole name. */
bool cv_array_is_leaf_url(const char *url);

/* Makes a session from a program's remote options (or NULL). The caller releases it. NULL if `url`
 * is not a URL. */
cv_status cv_array_open_session(const char *url, const caterva_remote_options *given,
                                cv_session **out, cv_error *err);

/* Opens the array in `store` with complete options. Owns the store, even on failure. */
cv_status cv_array_open_store(cv_store *store, const caterva_open_options *options,
                              caterva_array **out, cv_error *err);

#endif
