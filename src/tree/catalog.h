/* What is in a tree: a list for the program, made once and never changed. */
#ifndef CV_TREE_CATALOG_H
#define CV_TREE_CATALOG_H

#include "tree/opened.h"

#include <caterva_tree.h>

/* Who reads what lies inside embed.b2e. */
typedef struct cv_embed_bytes {
    void *context;
    /* Reads up to `size` decompressed bytes at `pos`, all of which are there. */
    cv_status (*read)(void *context, uint64_t pos, void *dst, size_t size, cv_error *err);
} cv_embed_bytes;

/* Lists the group and all below it; "" is the whole tree. CATERVA_ENOTFOUND: there is no
 * such group. The tree's watch counts files and what lies inside embed.b2e. Release with
 * cv_catalog_free. */
cv_status cv_catalog_make(const cv_tree *tree, const cv_contents *contents,
                          const cv_embed_bytes *bytes, const char *group,
                          const caterva_tree_list **out, cv_error *err);
void cv_catalog_free(const caterva_tree_list *list); /* NULL is fine */

#endif
