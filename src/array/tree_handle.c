/* Room: array. What every function of a tree asks of its handle. */
#include "array/tree_handle.h"

#include "tree/names.h"

#include <string.h>

cv_status cv_tree_handle_check(const caterva_tree *tree, cv_error *err)
{
    if (tree) return CV_OK;
    return cv_fail(err, CATERVA_EINVAL, -1, "the tree handle is NULL");
}

cv_status cv_tree_handle_check_writable(const caterva_tree *tree, cv_error *err)
{
    CV_TRY(cv_tree_handle_check(tree, err));
    CV_TRY(cv_tree_check_writable(tree->tree, err));
    if (!tree->unfinished) return CV_OK;
    return cv_fail(err, CATERVA_EIO, -1,
                   "a commit to %s could not be finished: close all and open the tree again",
                   tree->tree->shown.text);
}

/* ---- Calls ----------------------------------------------------------------- */

void cv_tree_handle_begin(caterva_tree *tree)
{
    if (tree->tree->watch) cv_watch_begin(tree->tree->watch);
}

cv_status cv_tree_handle_finish(caterva_tree *tree, cv_status status)
{
    if (tree->tree->watch) cv_watch_end(tree->tree->watch, status == CV_OK);
    return status;
}

void cv_tree_handle_lock(caterva_tree *tree)
{
    cv_mutex_lock(&tree->lock);
    cv_tree_handle_begin(tree);
}

cv_status cv_tree_handle_unlock(caterva_tree *tree, cv_status status)
{
    (void)cv_tree_handle_finish(tree, status);
    cv_mutex_unlock(&tree->lock);
    return status;
}

/* ---- Keys ------------------------------------------------------------------ */

/* "g/x.b2nd" is the path of "/g/x", or of something in it or around it. */
static cv_status check_beside(const caterva_tree *tree, const char *path, const char *key,
                              cv_new_thing thing, cv_error *err)
{
    const char *name = key + 1, *shown = tree->tree->shown.text;
    size_t size = strlen(name), stem = cv_tree_stem(path);
    size_t common = size < stem ? size : stem;
    if (strncmp(path, name, common) != 0) return CV_OK;
    if (size == stem) {
        if (thing == CV_NEW_OVERWRITING_ARRAY) return CV_OK;
        return cv_fail(err, CATERVA_EEXIST, -1, "%.80s in %s exists already", key, shown);
    }
    if (size > stem && name[stem] == '/')
        return cv_fail(err, CATERVA_EEXIST, -1,
                       "%.100s cannot be: %.100s is no group but a leaf", key, path);
    if (size < stem && path[size] == '/' && thing != CV_NEW_GROUP)
        return cv_fail(err, CATERVA_EEXIST, -1, "%.80s in %s is a group", key, shown);
    return CV_OK;
}

static cv_status check_groups(const caterva_tree *tree, const char *key, cv_error *err)
{
    for (size_t i = 0; i < tree->groups.n; i++) {
        const char *group = tree->groups.list[i].group;
        if (strcmp(group, key) == 0 || cv_tree_is_within(group, key))
            return cv_fail(err, CATERVA_EEXIST, -1, "%.80s in %s is a group", key,
                           tree->tree->shown.text);
    }
    return CV_OK;
}

cv_status cv_tree_handle_check_free(const caterva_tree *tree, const char *key,
                                    cv_new_thing thing, cv_error *err)
{
    cv_status status = CV_OK;
    cv_writers *w = tree->writers;
    CV_TRY(cv_tree_check_writable(tree->tree, err));
    if (key[0] != '/' || !key[1]) return CV_OK; /* refused as a key, or the root */
    cv_mutex_lock(&w->lock);
    for (size_t i = 0; i < w->n && status == CV_OK; i++)
        status = check_beside(tree, w->list[i].path, key, thing, err);
    cv_mutex_unlock(&w->lock);
    if (status != CV_OK || thing == CV_NEW_GROUP) return status;
    return check_groups(tree, key, err);
}
