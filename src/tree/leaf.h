/* Arrays that are leaves of trees. */
#ifndef CV_TREE_LEAF_H
#define CV_TREE_LEAF_H

#include "array/array.h"
#include "tree/opened.h"

/* Reads what lies inside embed.b2e. */
typedef struct cv_embed_bytes {
    void *context;
    /* Reads up to `size` decompressed bytes at `pos`, all of which are there. */
    cv_status (*read)(void *context, uint64_t pos, void *dst, size_t size, cv_error *err);
} cv_embed_bytes;

/* The bytes inside embed.b2e. Any thread. Release with cv_embedded_close. */
cv_status cv_embedded_open(const cv_tree *tree, cv_embed_bytes *out, cv_error *err);
void cv_embedded_close(cv_embed_bytes *bytes);

/* The store of one leaf in them, to be read. */
cv_status cv_embedded_store(const cv_tree *tree, const cv_leaf *leaf, cv_store **out,
                            cv_error *err);

/* Opens the leaf of `key` as complete options say, and gives the handle its path. */
cv_status cv_array_open_leaf(const cv_tree *tree, const char *key,
                             const caterva_open_options *options, caterva_array **out,
                             cv_error *err);

#endif
