/* Room: array. Trees for the program: what it gives is checked here, all else is the
 * room tree's. */
#include "array/embedded.h"
#include "array/leaf.h"
#include "array/opened.h"
#include "base/heap.h"
#include "tree/names.h"

#include <string.h>

struct caterva_tree {
    cv_tree *tree;
    caterva_tree_options options;
};

static cv_status check_tree(const caterva_tree *tree, cv_error *err)
{
    if (tree) return CV_OK;
    return cv_fail(err, CATERVA_EINVAL, -1, "the tree handle is NULL");
}

/* ---- Opening ------------------------------------------------------------------------ */

static cv_status copy_options(const caterva_tree_options *options, caterva_tree_options *out,
                              cv_error *err)
{
    static const caterva_tree_options defaults = CATERVA_TREE_INIT;
    CV_TRY(cv_options_copy(out, sizeof *out, options ? options : &defaults, "tree options",
                           err));
    if (out->mode == CATERVA_MODE_READ) return CV_OK;
    return cv_fail(err, CATERVA_EINVAL, -1, "tree mode %d is not READ", (int)out->mode);
}

caterva_status caterva_tree_open(const char *path, const caterva_tree_options *options,
                                 caterva_tree **out, caterva_error *err)
{
    caterva_tree_options o;
    if (!path || !out) return cv_fail(err, CATERVA_EINVAL, -1, "path or out is NULL");
    *out = NULL;
    CV_TRY(copy_options(options, &o, err));
    caterva_tree *tree = cv_calloc(1, sizeof *tree);
    if (!tree) return cv_fail_memory(err, sizeof *tree, "a tree handle");
    tree->options = o;
    cv_status status = cv_tree_open(path, &tree->tree, err);
    if (status != CV_OK) {
        cv_free(tree);
        return status;
    }
    *out = tree;
    return CV_OK;
}

caterva_status caterva_tree_close(caterva_tree *tree, caterva_error *err)
{
    (void)err; /* nothing can be lost of a tree that was read */
    if (!tree) return CV_OK;
    cv_tree_close(tree->tree);
    cv_free(tree);
    return CV_OK;
}

/* ---- Listing ------------------------------------------------------------------------ */

static bool has_embedded(const cv_contents *c)
{
    for (size_t i = 0; i < c->embed.n; i++)
        if (c->embed.list[i].what == CV_EMBED_LEAF) return true;
    return false;
}

static cv_status list(const cv_tree *tree, const cv_contents *contents, const char *group,
                      const caterva_tree_list **out, cv_error *err)
{
    cv_embed_bytes bytes = {0};
    if (!cv_contents_has_group(contents, group))
        return cv_fail(err, CATERVA_ENOTFOUND, -1, "there is no group %.80s in %s", group,
                       tree->shown.text);
    if (has_embedded(contents)) CV_TRY(cv_embedded_open(tree, &bytes, err));
    cv_status status = cv_catalog_make(tree, contents, &bytes, group, out, err);
    cv_embedded_close(&bytes);
    return status;
}

caterva_status caterva_tree_get_list(caterva_tree *tree, const char *group,
                                     const caterva_tree_list **out, caterva_error *err)
{
    cv_contents own;
    const cv_contents *contents;
    CV_TRY(check_tree(tree, err));
    if (!out) return cv_fail(err, CATERVA_EINVAL, -1, "out is NULL");
    *out = NULL;
    if (!group) group = "/";
    CV_TRY(cv_tree_check_key(group, err));
    cv_status status = cv_tree_look(tree->tree, &own, &contents, err);
    if (status == CV_OK) status = list(tree->tree, contents, group, out, err);
    cv_contents_free(&own);
    return status;
}

void caterva_tree_list_release(const caterva_tree_list *list) { cv_catalog_free(list); }

/* ---- Arrays ------------------------------------------------------------------------- */

caterva_status caterva_tree_open_array(caterva_tree *tree, const char *key,
                                       const caterva_open_options *options,
                                       caterva_array **out, caterva_error *err)
{
    caterva_open_options o;
    CV_TRY(check_tree(tree, err));
    if (!key || !out) return cv_fail(err, CATERVA_EINVAL, -1, "key or out is NULL");
    *out = NULL;
    CV_TRY(cv_array_open_options(options, &o, err));
    return cv_array_open_leaf(tree->tree, key, &o, out, err);
}
