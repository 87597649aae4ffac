/* Opens a handle on a store that contains an array. */
#ifndef CV_ARRAY_OPEN_H
#define CV_ARRAY_OPEN_H

#include "array/array.h"
#include "array/wings.h"

#include <caterva_remote.h>

/* Copies the caller's options (or NULL) to `out`, and checks them. */
cv_status cv_array_open_options(const caterva_open_options *options,
                                caterva_open_options *out, cv_error *err);

/* Splits "TREE::/g/x" into the path "TREE", of *path_size bytes, and the key "/g/x". Returns the
 * key; NULL if `url` has no key. The separator is the first "::" that has a path before it and a
 * slash or nothing behind it. The key of "TREE::" is "/". */
const char *cv_tree_url_key(const char *url, size_t *path_size);

/* Returns true if the URL names an array in a tree ("TREE::/key") and is not the name of a file. */
bool cv_array_is_leaf_url(const char *url);

/* Makes a session from the caller's remote options (or NULL). The caller releases *out, which is
 * NULL if `url` is not a URL. */
cv_status cv_array_open_session(const char *url, const caterva_remote_options *given,
                                cv_session **out, cv_error *err);

/* Opens the array in `store` with complete options. Owns the store, even on failure. */
cv_status cv_array_open_store(cv_store *store, const caterva_open_options *options,
                              caterva_array **out, cv_error *err);

#endif
