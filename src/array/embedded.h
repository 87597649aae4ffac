/* Leaves that lie inside a tree's embed.b2e. */
#ifndef CV_ARRAY_EMBEDDED_H
#define CV_ARRAY_EMBEDDED_H

#include "array/array.h"
#include "tree/catalog.h"
#include "tree/find.h"

/* The bytes inside embed.b2e. Any thread. Release with cv_embedded_close. */
cv_status cv_embedded_open(const cv_tree *tree, cv_embed_bytes *out, cv_error *err);
void cv_embedded_close(cv_embed_bytes *bytes);

/* The store of one leaf in them, to be read. */
cv_status cv_embedded_store(const cv_tree *tree, const cv_leaf *leaf, cv_store **out,
                            cv_error *err);

#endif
