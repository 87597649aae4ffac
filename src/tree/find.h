/* A leaf by its key. */
#ifndef CV_TREE_FIND_H
#define CV_TREE_FIND_H

#include "tree/opened.h"

/* Where a leaf is: a file of the tree, or bytes in its embed.b2e. */
typedef struct cv_leaf {
    bool is_embedded;
    uint64_t offset, size; /* of an embedded one: in the decompressed bytes */
    cv_member member;      /* of a file */
    char *path;            /* of the file from the tree; member.path is this. Owned */
} cv_leaf;

/* CATERVA_ENOTFOUND when there is nothing of that key, CATERVA_EUNSUPPORTED for a group, a
 * reference to elsewhere, or one of python-blosc2's objects. Release with cv_leaf_free. */
cv_status cv_tree_find(const cv_tree *tree, const char *key, cv_leaf *out, cv_error *err);
void cv_leaf_free(cv_leaf *leaf);

/* CATERVA_EREADONLY when the key lies inside one of python-blosc2's objects, such as a
 * column of a table: its other parts would not follow. Of a tree that is a directory. */
cv_status cv_tree_check_own(const cv_tree *tree, const char *key, cv_error *err);

/* Whether a file of a directory has the key, as python-blosc2 names it. */
bool cv_tree_has_file(const cv_tree *tree, const char *key);

/* Whether anything in a directory has the name of a leaf of that key, with a suffix other than
 * `but` (NULL: with any), or might have: the answer is true, too, when that is not known. */
bool cv_tree_has_leaf(const cv_tree *tree, const char *key, const char *but);

/* Where the attributes of a group are: a leaf, or neither path nor embedded: it has none.
 * CATERVA_ENOTFOUND when there is no such group. Release with cv_leaf_free. */
cv_status cv_tree_find_attributes(const cv_tree *tree, const char *group, cv_leaf *out,
                                  cv_error *err);

/* The file that they are in or can be: "g/__vlmeta__.b2f". Owned: cv_free. */
cv_status cv_tree_attributes_path(const char *group, char **out, cv_error *err);

/* Whether there is such a group; "/" is there always. */
bool cv_contents_has_group(const cv_contents *contents, const char *key);

#endif
