/* Room: array. Attributes of groups. What is pending of a group is the whole leaf that it is
 * going to have; it is read like one that is stored. */
#include "array/embedded.h"
#include "array/tree_handle.h"
#include "base/heap.h"
#include "frame/attributes.h"
#include "frame/snapshot.h"
#include "store/memory.h"
#include "tree/change.h"
#include "tree/find.h"
#include "tree/make.h"
#include "tree/names.h"

#include <string.h>

/* ---- The leaf ------------------------------------------------------------- */

static cv_status open_stored(const cv_tree *tree, const char *group, cv_store **out,
                             cv_error *err)
{
    cv_leaf leaf;
    cv_status status = CV_OK;
    *out = NULL;
    CV_TRY(cv_tree_find_attributes(tree, group, &leaf, err));
    if (leaf.is_embedded)
        status = cv_embedded_store(tree, &leaf, out, err);
    else if (leaf.path)
        status = cv_tree_store(tree, &leaf.member, out, err);
    cv_leaf_free(&leaf);
    return status;
}

/* *out NULL: the group has none. CATERVA_ENOTFOUND: there is no such group. */
static cv_status load(const caterva_tree *tree, const char *group, cv_snapshot **out,
                      cv_error *err)
{
    cv_store *store;
    cv_error reason = {0};
    const cv_buffer *pending = cv_groups_find(&tree->groups, group);
    *out = NULL;
    if (pending)
        CV_TRY(cv_store_memory_borrow(pending->data, pending->size, &store, err));
    else
        CV_TRY(open_stored(tree->tree, group, &store, err));
    if (!store) return CV_OK;
    cv_status status = cv_snapshot_load_any(store, out, &reason);
    cv_store_close(store);
    if (status == CV_OK) return CV_OK;
    (void)cv_fail(err, status, reason.position, "the attributes of %.60s in %.60s: %.120s",
                  group, tree->tree->shown.text, reason.message);
    if (err) err->sys_errno = reason.sys_errno;
    return status;
}

static cv_status check(const caterva_tree *tree, const char **group, cv_error *err)
{
    CV_TRY(cv_tree_handle_check(tree, err));
    if (!*group) *group = "/";
    return cv_tree_check_key(*group, err);
}

/* ---- Reading ---------------------------------------------------------------- */

/* One block: the pointers, and the names behind them. */
static cv_status copy_names(const cv_attributes *all, const char ***names, size_t *n,
                            cv_error *err)
{
    size_t count = all ? (size_t)all->n : 0, size = (count + 1) * sizeof(char *);
    for (size_t i = 0; i < count; i++) size += strlen(all->list[i].name) + 1;
    const char **list = cv_malloc(size);
    if (!list) return cv_fail_memory(err, size, "names of attributes");
    char *at = (char *)(list + count + 1);
    for (size_t i = 0; i < count; i++) {
        size_t length = strlen(all->list[i].name) + 1;
        memcpy(at, all->list[i].name, length);
        list[i] = at;
        at += length;
    }
    list[count] = NULL;
    *names = list;
    *n = count;
    return CV_OK;
}

static cv_status list(const caterva_tree *tree, const char *group, const char ***names,
                      size_t *n, cv_error *err)
{
    cv_snapshot *state;
    const cv_attributes *all = NULL;
    CV_TRY(load(tree, group, &state, err));
    cv_status status = state ? cv_snapshot_attributes(state, &all, err) : CV_OK;
    if (status == CV_OK) status = copy_names(all, names, n, err);
    cv_snapshot_release(state);
    return status;
}

caterva_status caterva_tree_attr_list(caterva_tree *tree, const char *group,
                                      const char ***names, size_t *n, caterva_error *err)
{
    CV_TRY(check(tree, &group, err));
    if (!names || !n) return cv_fail(err, CATERVA_EINVAL, -1, "names or n is NULL");
    cv_tree_handle_lock(tree);
    return cv_tree_handle_unlock(tree, list(tree, group, names, n, err));
}

static cv_status get(const caterva_tree *tree, const char *group, const char *name,
                     cv_buffer *value, cv_error *err)
{
    cv_snapshot *state;
    const cv_attributes *all;
    const cv_attribute *found;
    CV_TRY(load(tree, group, &state, err));
    if (!state) return cv_fail(err, CATERVA_ENOTFOUND, -1, "no attribute \"%.100s\"", name);
    cv_status status = cv_snapshot_attributes(state, &all, err);
    if (status == CV_OK) status = cv_attributes_find(all, name, &found, err);
    if (status == CV_OK) status = cv_attribute_value(found, value, tree->tree->watch, err);
    if (status == CV_OK) status = cv_buffer_reserve(value, 1, err); /* never NULL */
    cv_snapshot_release(state);
    return status;
}

caterva_status caterva_tree_attr_get(caterva_tree *tree, const char *group, const char *name,
                                     void **value, size_t *size, caterva_error *err)
{
    cv_buffer buffer = {0};
    CV_TRY(check(tree, &group, err));
    if (!name || !value || !size)
        return cv_fail(err, CATERVA_EINVAL, -1, "name, value or size is NULL");
    cv_tree_handle_lock(tree);
    cv_status status = cv_tree_handle_unlock(tree, get(tree, group, name, &buffer, err));
    if (status != CV_OK) {
        cv_buffer_free(&buffer);
        return status;
    }
    *value = buffer.data;
    *size = buffer.size;
    return CV_OK;
}

/* ---- Changing --------------------------------------------------------------- */

/* The leaf with these attributes is pending. */
static cv_status put(caterva_tree *tree, const char *group, const cv_snapshot *old,
                     const cv_attribute *attributes, int n, cv_error *err)
{
    cv_placed placed = {.watch = tree->tree->watch};
    cv_buffer frame = {0};
    CV_TRY(cv_attributes_place(attributes, n, NULL, 0, &placed, err));
    cv_status status =
        cv_make_group_with(placed.layers, placed.n, old ? &old->header : NULL, &frame, err);
    cv_placed_free(&placed);
    if (status == CV_OK) return cv_groups_set(&tree->groups, group, &frame, err);
    cv_buffer_free(&frame);
    return status;
}

static cv_status replace(caterva_tree *tree, const char *group, const cv_snapshot *old,
                         const char *name, const cv_attribute *added, cv_error *err)
{
    int n;
    cv_attribute *attributes;
    const cv_attributes *all = NULL;
    if (old && old->grid.n_chunks > 0)
        return cv_fail(err, CATERVA_EUNSUPPORTED, -1,
                       "the attributes of %.80s stand in a frame with items, which is not "
                       "changed here",
                       group);
    if (old) CV_TRY(cv_snapshot_attributes(old, &all, err));
    CV_TRY(cv_attributes_replace(all, name, added, &attributes, &n, err));
    cv_status status = put(tree, group, old, attributes, n, err);
    cv_free(attributes);
    return status;
}

static cv_status change(caterva_tree *tree, const char *group, const char *name,
                        const cv_attribute *added, cv_error *err)
{
    cv_snapshot *old = NULL;
    cv_error why = {0};
    if (!cv_groups_find(&tree->groups, group)) {
        CV_TRY(cv_tree_handle_check_free(tree, group, CV_NEW_GROUP, err));
        CV_TRY(cv_change_check_group(tree->tree, group, err));
    }
    cv_status status = load(tree, group, &old, &why);
    if (status == CATERVA_ENOTFOUND && added) status = CV_OK; /* a new group */
    if (status != CV_OK && err) *err = why;
    if (status == CV_OK) status = replace(tree, group, old, name, added, err);
    cv_snapshot_release(old);
    return status;
}

caterva_status caterva_tree_attr_set(caterva_tree *tree, const char *group, const char *name,
                                     const void *value, size_t size, caterva_error *err)
{
    CV_TRY(check(tree, &group, err));
    CV_TRY(cv_tree_handle_check_writable(tree, err));
    CV_TRY(cv_attributes_check_name(name, err));
    if (!value && size > 0) return cv_fail(err, CATERVA_EINVAL, -1, "value is NULL");
    cv_attribute added = {
        .name = name, .form = CV_ATTRIBUTE_RAW, .data = value, .size = size};
    cv_tree_handle_lock(tree);
    return cv_tree_handle_unlock(tree, change(tree, group, name, &added, err));
}

caterva_status caterva_tree_attr_remove(caterva_tree *tree, const char *group,
                                        const char *name, caterva_error *err)
{
    CV_TRY(check(tree, &group, err));
    CV_TRY(cv_tree_handle_check_writable(tree, err));
    CV_TRY(cv_attributes_check_name(name, err));
    cv_tree_handle_lock(tree);
    return cv_tree_handle_unlock(tree, change(tree, group, name, NULL, err));
}
