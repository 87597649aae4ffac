/* Room: tree. What every public function asks of its handle. */
#include "tree/handle.h"

#include "tree/names.h"

#include <caterva_tree.h>
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

/* Writers have the names of the arrays that they hold, and of the groups around them. */
static cv_status check_writers(const caterva_tree *tree, const char *key, cv_new_thing thing,
                               cv_error *err)
{
    const char *name = key + 1, *shown = tree->tree->shown.text;
    size_t size = strlen(name);
    cv_writer_use use = cv_writers_use(tree->writers, name, size);
    if (use == CV_NAME_OF_ARRAY && thing != CV_NEW_OVERWRITING_ARRAY)
        return cv_fail(err, CATERVA_EEXIST, -1, "%.80s in %s exists already", key, shown);
    if (use == CV_NAME_OF_GROUP && thing != CV_NEW_GROUP)
        return cv_fail(err, CATERVA_EEXIST, -1, "%.80s in %s is a group", key, shown);
    while ((size = cv_tree_parent(name, size)) > 0)
        if (cv_writers_use(tree->writers, name, size) == CV_NAME_OF_ARRAY)
            return cv_fail(err, CATERVA_EEXIST, -1,
                           "cannot create %.80s: /%.*s in %s is not a group", key, (int)size,
                           name, shown);
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
    cv_writers *w = tree->writers;
    CV_TRY(cv_tree_check_writable(tree->tree, err));
    if (key[0] != '/' || !key[1]) return CV_OK; /* refused as a key, or the root */
    cv_mutex_lock(&w->lock);
    cv_status status = check_writers(tree, key, thing, err);
    cv_mutex_unlock(&w->lock);
    if (status != CV_OK || thing == CV_NEW_GROUP) return status;
    return check_groups(tree, key, err);
}
