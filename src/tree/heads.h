/* The first bytes of the members of a tree, one after the other. Behind a URL those of many are
 * read at once. */
#ifndef CV_TREE_HEADS_H
#define CV_TREE_HEADS_H

#include "tree/tree.h"

typedef struct cv_heads {
    const cv_tree *tree; /* given, with its members; the rest zero */
    const cv_members *members;
    /* What was read ahead: the beginnings of members [first, stop), where an archive has them. */
    size_t first, stop;
    cv_buffer bytes;
    cv_store *again; /* read from there, and not what was read ahead; or NULL */
    size_t *places;  /* where each begins, stop - first + 1 of them */
} cv_heads;

/* As cv_tree_head, of one of the list. */
cv_status cv_heads_get(cv_heads *heads, const cv_member *member, uint8_t *dst, size_t size,
                       size_t *done, cv_error *err);
void cv_heads_free(cv_heads *heads);

#endif
