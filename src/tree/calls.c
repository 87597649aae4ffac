/* Room: tree. The public functions on trees check arguments, take locks, and call other modules. */
#include "array/create.h"
#include "array/open.h"
#include "base/heap.h"
#include "store/file.h"
#include "tree/change.h"
#include "tree/handle.h"
#include "tree/leaf.h"
#include "tree/make.h"
#include "tree/names.h"
#include "tree/tree.h"
#include "tree/zarr_write.h"

#include <caterva_tree.h>
#include <string.h>

static cv_status check_durability(caterva_durability durability, cv_error *err)
{
    if (durability >= CATERVA_DURABILITY_FULL && durability <= CATERVA_DURABILITY_NONE)
        return CV_OK;
    return cv_fail(err, CATERVA_EINVAL, -1, "durability %d is unknown", (int)durability);
}

static cv_status copy_options(const caterva_tree_options *options, caterva_tree_options *out,
                              cv_error *err)
{
    CV_TRY(cv_options_read(out, sizeof *out, options, "tree options", err));
    CV_TRY(cv_progress_check(&out->progress, err));
    if (out->mode != CATERVA_MODE_READ && out->mode != CATERVA_MODE_WRITE)
        return cv_fail(err, CATERVA_EINVAL, -1, "tree mode %d is neither READ nor WRITE",
                       (int)out->mode);
    return check_durability(out->durability, err);
}

/* Takes ownership of `inner`, also on failure. */
static cv_status new_tree(cv_tree *inner, const caterva_tree_options *o, caterva_tree **out,
                          cv_error *err)
{
    caterva_tree *tree = cv_calloc(1, sizeof *tree);
    if (!tree) {
        cv_tree_close(inner);
        return cv_fail_memory(err, sizeof *tree, "a tree handle");
    }
    cv_status status = CV_OK;
    tree->writers = cv_writers_new();
    if (!tree->writers) status = cv_fail_memory(err, sizeof *tree->writers, "a tree handle");
    if (status == CV_OK && inner->writable)
        status = cv_keeper_new(inner->dir, inner->path, &tree->keeper, err);
    if (status != CV_OK) {
        cv_tree_close(inner);
        cv_writers_release(tree->writers);
        cv_free(tree);
        return status;
    }
    inner->durable = o->durability != CATERVA_DURABILITY_NONE;
    tree->tree = inner;
    tree->durability = o->durability;
    cv_mutex_init(&tree->lock);
    cv_watch_init(&tree->watch, &o->progress);
    if (o->progress.report) inner->watch = &tree->watch;
    *out = tree;
    return CV_OK;
}

static cv_status open_inner(const char *path, const caterva_tree_options *o, cv_tree **out,
                            cv_error *err)
{
    cv_session *session;
    cv_watch watch;
    if (o->mode == CATERVA_MODE_WRITE) CV_TRY(cv_refuse_url(path, err));
    CV_TRY(cv_array_open_session(path, o->remote, &session, err));
    cv_watch *reporting = cv_watch_open(&watch, &o->progress, NULL);
    cv_status status = cv_tree_open(path, session, reporting, out, err);
    cv_watch_destroy(&watch);
    if (session) cv_wings.remote->release(session);
    CV_TRY(status);
    status = o->mode == CATERVA_MODE_WRITE ? cv_tree_lock(*out, err) : CV_OK;
    if (status != CV_OK) cv_tree_close(*out);
    return status;
}

/* Deletes files that stopped or killed deletions left. Closes the tree on failure. */
static cv_status sweep(caterva_tree **tree, cv_error *err)
{
    cv_tree_handle_begin(*tree);
    cv_status status = cv_tree_handle_finish(*tree, cv_change_sweep((*tree)->tree, err));
    if (status == CV_OK) return CV_OK;
    (void)caterva_tree_close(*tree, NULL);
    *tree = NULL;
    return status;
}

caterva_status caterva_tree_open(const char *path, const caterva_tree_options *options,
                                 caterva_tree **out, caterva_error *err)
{
    caterva_tree_options o;
    if (!path || !out) return cv_fail(err, CATERVA_EINVAL, -1, "path or out is NULL");
    *out = NULL;
    CV_TRY(copy_options(options, &o, err));
    cv_tree *inner;
    CV_TRY(open_inner(path, &o, &inner, err));
    CV_TRY(new_tree(inner, &o, out, err));
    return o.mode == CATERVA_MODE_WRITE ? sweep(out, err) : CV_OK;
}

caterva_status caterva_tree_state_id(caterva_tree *tree, uint8_t out[CATERVA_STATE_ID],
                                     caterva_error *err)
{
    CV_TRY(cv_tree_handle_check(tree, err));
    if (!out) return cv_fail(err, CATERVA_EINVAL, -1, "out is NULL");
    return cv_tree_identify(tree->tree, out, err);
}

/* ---- Arrays ------------------------------------------------------------------------- */

/* Adds the array to the handles that the tree commits. Frees it on failure. */
static cv_status join(caterva_tree *tree, caterva_array **array, cv_error *err)
{
    const char *path = (*array)->path + strlen(tree->tree->path) + 1;
    cv_status status =
        tree->keeper ? cv_store_file_rest((*array)->frame->store, tree->keeper, path, err)
                     : CV_OK;
    if (status == CV_OK) status = cv_writers_join(tree->writers, *array, path, err);
    if (status == CV_OK) return CV_OK;
    cv_array_free(*array);
    *array = NULL;
    return status;
}

caterva_status caterva_tree_open_array(caterva_tree *tree, const char *key,
                                       const caterva_open_options *options,
                                       caterva_array **out, caterva_error *err)
{
    caterva_open_options o;
    CV_TRY(cv_tree_handle_check(tree, err));
    if (!key || !out) return cv_fail(err, CATERVA_EINVAL, -1, "key or out is NULL");
    *out = NULL;
    CV_TRY(cv_array_open_options(options, &o, err));
    if (o.mode == CATERVA_MODE_WRITE && tree->tree->form == CV_TREE_DIRECTORY)
        CV_TRY(cv_tree_handle_check_writable(tree, err));
    cv_tree_handle_begin(tree);
    cv_status status = cv_array_open_leaf(tree->tree, key, &o, out, err);
    CV_TRY(cv_tree_handle_finish(tree, status));
    return o.mode == CATERVA_MODE_WRITE ? join(tree, out, err) : CV_OK;
}

/* ---- Changes ------------------------------------------------------------------------ */

caterva_status caterva_tree_create(const char *path, const caterva_tree_options *options,
                                   caterva_tree **out, caterva_error *err)
{
    caterva_tree_options o;
    if (!path || !out) return cv_fail(err, CATERVA_EINVAL, -1, "path or out is NULL");
    *out = NULL;
    CV_TRY(copy_options(options, &o, err));
    o.mode = CATERVA_MODE_WRITE;
    CV_TRY(cv_make_tree(path, o.durability != CATERVA_DURABILITY_NONE, err));
    cv_tree *inner;
    CV_TRY(open_inner(path, &o, &inner, err));
    return new_tree(inner, &o, out, err);
}

caterva_status caterva_tree_create_array(caterva_tree *tree, const char *key,
                                         const caterva_create_options *options,
                                         caterva_array **out, caterva_error *err)
{
    caterva_create_options o;
    char *path;
    CV_TRY(cv_tree_handle_check(tree, err));
    if (!key || !options || !out)
        return cv_fail(err, CATERVA_EINVAL, -1, "key, options or out is NULL");
    *out = NULL;
    CV_TRY(cv_options_copy(&o, sizeof o, options, "create options", err));
    if (o.layout == CATERVA_LAYOUT_SPARSE)
        return cv_fail(err, CATERVA_EINVAL, -1, "an array in a tree is one file");
    cv_tree_handle_lock(tree);
    cv_new_thing made = o.overwrite ? CV_NEW_OVERWRITING_ARRAY : CV_NEW_ARRAY;
    cv_status status = cv_tree_handle_check_free(tree, key, made, err);
    if (status == CV_OK)
        status = cv_change_place(tree->tree, key, o.overwrite != 0, &path, err);
    if (status == CV_OK) {
        status = cv_array_create(path, &o, NULL, out, err);
        cv_free(path);
    }
    if (status == CV_OK) status = join(tree, out, err);
    return cv_tree_handle_unlock(tree, status);
}

caterva_status caterva_tree_create_group(caterva_tree *tree, const char *key,
                                         caterva_error *err)
{
    CV_TRY(cv_tree_handle_check(tree, err));
    if (!key) return cv_fail(err, CATERVA_EINVAL, -1, "key is NULL");
    cv_tree_handle_lock(tree);
    cv_status status = cv_tree_handle_check_free(tree, key, CV_NEW_GROUP, err);
    if (status == CV_OK) status = cv_change_group(tree->tree, key, err);
    return cv_tree_handle_unlock(tree, status);
}

caterva_status caterva_tree_delete(caterva_tree *tree, const char *key, caterva_error *err)
{
    CV_TRY(cv_tree_handle_check(tree, err));
    if (!key) return cv_fail(err, CATERVA_EINVAL, -1, "key is NULL");
    bool gone;
    cv_tree_handle_lock(tree);
    bool is_written = cv_tree_handle_writes(tree, key);
    cv_status status = cv_change_remove(tree->tree, key, is_written, &gone, err);
    if (gone) (void)cv_groups_move(&tree->groups, key, NULL, NULL);
    return cv_tree_handle_unlock(tree, status);
}

caterva_status caterva_tree_move(caterva_tree *tree, const char *from, const char *to,
                                 caterva_error *err)
{
    CV_TRY(cv_tree_handle_check(tree, err));
    if (!from || !to) return cv_fail(err, CATERVA_EINVAL, -1, "from or to is NULL");
    cv_tree_handle_lock(tree);
    cv_status status = cv_tree_handle_check_free(tree, to, CV_NEW_ARRAY, err);
    bool is_written = cv_tree_handle_writes(tree, from);
    if (status == CV_OK) status = cv_change_move(tree->tree, from, to, is_written, err);
    if (status == CV_OK) status = cv_groups_move(&tree->groups, from, to, err);
    return cv_tree_handle_unlock(tree, status);
}

/* ---- Packing and unpacking -------------------------------------------------------------- */

static cv_status check_packing(const caterva_tree *tree, const char *path,
                               const caterva_tree_pack_options *options,
                               caterva_tree_pack_options *out, cv_error *err)
{
    CV_TRY(cv_tree_handle_check(tree, err));
    if (!path) return cv_fail(err, CATERVA_EINVAL, -1, "path is NULL");
    CV_TRY(cv_options_read(out, sizeof *out, options, "pack options", err));
    CV_TRY(cv_progress_check(&out->progress, err));
    return check_durability(out->durability, err);
}

caterva_status caterva_tree_pack(caterva_tree *tree, const char *path,
                                 const caterva_tree_pack_options *options, caterva_error *err)
{
    caterva_tree_pack_options o;
    CV_TRY(check_packing(tree, path, options, &o, err));
    if (o.zarr) return cv_tree_write_zarr(tree, path, &o, err);
    cv_tree_handle_lock(tree);
    return cv_tree_handle_unlock(tree, cv_tree_pack(tree->tree, path, &o, err));
}

cv_status cv_tree_pack_for_zarr(const char *path, const char *to,
                                const caterva_progress *progress, cv_error *err)
{
    caterva_tree *tree;
    caterva_tree_pack_options o = CATERVA_TREE_PACK_INIT;
    o.zarr = 1;
    o.durability = CATERVA_DURABILITY_NONE;
    o.progress = *progress;
    CV_TRY(caterva_tree_open(path, NULL, &tree, err));
    cv_status status = caterva_tree_pack(tree, to, &o, err);
    (void)caterva_tree_close(tree, NULL);
    return status;
}

caterva_status caterva_tree_unpack(caterva_tree *tree, const char *path,
                                   const caterva_tree_pack_options *options,
                                   caterva_error *err)
{
    caterva_tree_pack_options o;
    CV_TRY(check_packing(tree, path, options, &o, err));
    cv_tree_handle_lock(tree);
    return cv_tree_handle_unlock(tree, cv_tree_unpack(tree->tree, path, &o, err));
}

caterva_status caterva_tree_zarr_metadata(caterva_tree *tree, const char *group, char **text,
                                          size_t *size, caterva_error *err)
{
    cv_buffer out = {0};
    CV_TRY(cv_tree_handle_check(tree, err));
    if (!group || !text || !size)
        return cv_fail(err, CATERVA_EINVAL, -1, "group, text or size is NULL");
    *text = NULL;
    *size = 0;
    cv_status status = cv_tree_describe_zarr(tree, group, &out, err);
    if (status == CV_OK) status = cv_buffer_append(&out, "", 1, err);
    if (status != CV_OK) {
        cv_buffer_free(&out);
        return status;
    }
    *text = (char *)out.data;
    *size = out.size - 1;
    return CV_OK;
}
