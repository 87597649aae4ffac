/* Arrays that are leaves of trees. */
#ifndef CV_TREE_LEAF_H
#define CV_TREE_LEAF_H

#include "array/array.h"
#include "tree/opened.h"

/* The decompressed bytes of embed.b2e. */
typedef struct cv_embed_bytes {
    void *context;
    /* Reads `size` decompressed bytes at `pos`, all of which must exist. */
    cv_status (*read)(void *context, uint64_t pos, void *dst, size_t size, cv_error *err);
} cv_embed_bytes;

/* Opens the bytes inside embed.b2e. Thread: any. Release with cv_embedded_close. */
cv_status cv_embedded_open(const cv_tree *tree, cv_embed_bytes *out, cv_error *err);
void cv_embedded_close(cv_embed_bytes *bytes);

/* Opens a leaf inside embed.b2e as a store for reading. */
cv_status cv_embedded_store(const cv_tree *tree, const cv_leaf *leaf, cv_store **out,
                            cv_error *err);

/* Opens the leaf of `key` with complete options, and sets the path of the handle. */
cv_status cv_array_open_leaf(const cv_tree *tree, const char *key,
                             const caterva_open_options *options, caterva_array **out,
                             cv_error *err);

#endif
