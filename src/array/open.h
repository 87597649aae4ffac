/* A store that holds an array becomes a handle. */
#ifndef CV_ARRAY_OPEN_H
#define CV_ARRAY_OPEN_H

#include "array/array.h"
#include "array/wings.h"

#include <caterva_remote.h>

/* Copies what a program gave over the defaults, and checks it. */
cv_status cv_array_open_options(const caterva_open_options *options,
                                caterva_open_options *out, cv_error *err);

/* Cuts "TREE::/g/x": returns the key behind the first "::" that a slash or nothing follows, or
 * NULL. "TREE::" has the key "/". */
const char *cv_tree_url_key(const char *url, size_t *path_size);

/* Whether the URL names an array in a tree: "TREE::/key", and no file has that whole name. */
bool cv_array_is_leaf_url(const char *url);

/* A session of a program's remote options (or NULL), to be released; NULL if `url` is no
 * URL. */
cv_status cv_array_open_session(const char *url, const caterva_remote_options *given,
                                cv_session **out, cv_error *err);

/* Opens the array in `store` with complete options; takes over the store, also on failure. */
cv_status cv_array_open_store(cv_store *store, const caterva_open_options *options,
                              caterva_array **out, cv_error *err);

#endif
