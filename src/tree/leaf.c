/* Room: tree. Arrays that are leaves of trees: opens, places and finds them by key and URL. A leaf
 * in a file, or a member of an archive, is a store like any other. */
#include "tree/leaf.h"

#include "array/library.h"
#include "array/open.h"
#include "base/heap.h"
#include "engine/read/read.h"
#include "store/file.h"
#include "store/store.h"
#include "tree/change.h"
#include "tree/make.h"
#include "tree/names.h"
#include "tree/tree.h"

#include <stdio.h>
#include <string.h>

/* ---- Leaves inside embed.b2e ---------------------------------------------------------------
 *
 * embed.b2e is an array of bytes, and a leaf in it is a store that reads through this array.
 * Only blocks that contain requested bytes are decoded; the shared cache keeps them. */

static cv_status read_bytes(void *context, uint64_t pos, void *dst, size_t size,
                            cv_error *err)
{
    int64_t start = (int64_t)pos, stop = start + (int64_t)size;
    cv_source source = cv_array_source(context); /* for a handle that only reads */
    cv_plan plan;
    CV_TRY(cv_plan_box(&source.snapshot->grid, &start, &stop, &plan, err));
    return cv_read_box(&source, &plan, dst, err);
}

/* Uses one thread, because the reader may itself be a pool thread. */
cv_status cv_embedded_open(const cv_tree *tree, cv_embed_bytes *out, cv_error *err)
{
    cv_store *store;
    cv_frame *frame;
    caterva_array *array;
    CV_TRY(cv_tree_embed_store(tree, &store, err));
    CV_TRY(cv_frame_open_any(store, &frame, err));
    if (frame->current->grid.item_size != 1 || frame->current->grid.ndim != 1) {
        cv_frame_close(frame);
        return cv_fail(err, CATERVA_ECORRUPT, -1, "%s in %s does not hold bytes",
                       CV_TREE_EMBED, tree->shown.text);
    }
    CV_TRY(cv_array_new(frame, false, 1, &array, err));
    cv_status status = cv_array_set_cache(array, 0, err);
    if (status != CV_OK) {
        cv_array_free(array);
        return status;
    }
    *out = (cv_embed_bytes){.context = array, .read = read_bytes};
    return CV_OK;
}

void cv_embedded_close(cv_embed_bytes *bytes)
{
    cv_array_free(bytes->context);
    *bytes = (cv_embed_bytes){0};
}

typedef struct embedded_store {
    cv_store base;
    cv_embed_bytes bytes;
    uint64_t offset, size;
} embedded_store;

static cv_status embedded_size(cv_store *store, cv_object object, uint64_t *size,
                               cv_error *err)
{
    CV_TRY(cv_store_check_frame(store, object, err));
    *size = ((const embedded_store *)store)->size;
    return CV_OK;
}

static cv_status embedded_read(cv_store *store, cv_object object, uint64_t pos, void *dst,
                               size_t size, cv_error *err)
{
    const embedded_store *e = (const embedded_store *)store;
    CV_TRY(cv_store_check_frame(store, object, err));
    if (pos > e->size || size > e->size - pos)
        return cv_fail_past_end(err, "the leaf in embed.b2e", pos, size, e->size);
    if (size == 0) return CV_OK;
    return e->bytes.read(e->bytes.context, e->offset + pos, dst, size, err);
}

static void embedded_close(cv_store *store)
{
    cv_embedded_close(&((embedded_store *)store)->bytes);
    cv_free(store);
}

static const cv_store_ops embedded_ops = {
    .name = "leaf in embed.b2e",
    .size = embedded_size,
    .read = embedded_read,
    .close = embedded_close,
};

cv_status cv_embedded_store(const cv_tree *tree, const cv_leaf *leaf, cv_store **out,
                            cv_error *err)
{
    embedded_store *e = cv_calloc(1, sizeof *e);
    if (!e) return cv_fail_memory(err, sizeof *e, "a leaf");
    e->base = (cv_store){.ops = &embedded_ops, .published = true};
    e->offset = leaf->offset;
    e->size = leaf->size;
    cv_status status = cv_embedded_open(tree, &e->bytes, err);
    if (status != CV_OK) {
        cv_free(e);
        return status;
    }
    *out = &e->base;
    return CV_OK;
}

/* ---- Opening a leaf ------------------------------------------------------------------ */

static cv_status check_mode(const cv_tree *tree, const cv_leaf *leaf, const char *key,
                            const caterva_open_options *o, cv_error *err)
{
    if (o->offset != 0)
        return cv_fail(err, CATERVA_EINVAL, -1, "an array in a tree has no offset");
    if (o->mode == CATERVA_MODE_READ) return CV_OK;
    if (leaf->is_embedded)
        return cv_fail(err, CATERVA_EREADONLY, -1,
                       "%.80s lies inside %s of %s and is read-only", key, CV_TREE_EMBED,
                       tree->shown.text);
    if (tree->form == CV_TREE_DIRECTORY) return cv_tree_check_own(tree, key, err);
    if (tree->form == CV_TREE_ZARR)
        return cv_fail(
            err, CATERVA_EREADONLY, -1,
            "%.80s in %s is a Zarr array, too: write the tree from which it was made", key,
            tree->shown.text);
    return cv_fail(err, CATERVA_EREADONLY, -1,
                   "%s is an archive, which never changes in place: unpack it to write to "
                   "%.80s",
                   tree->shown.text, key);
}

/* Makes "TREE::/key". */
static cv_status url_of(const cv_tree *tree, const char *key, char **out, cv_error *err)
{
    size_t size = strlen(tree->path) + strlen(key) + 3;
    *out = cv_malloc(size);
    if (!*out) return cv_fail_memory(err, size, "a path");
    (void)snprintf(*out, size, "%s::%s", tree->path, key);
    return CV_OK;
}

/* Finishes an interrupted commit before an array is opened for writing by its URL. While the
 * commit's writer lives, it keeps the tree and the files locked, and nothing is done. */
static cv_status finish_commit(const cv_tree *tree, cv_error *err)
{
    cv_tree *own;
    cv_journal journal;
    if (tree->form != CV_TREE_DIRECTORY || tree->writable) return CV_OK;
    CV_TRY(cv_journal_look(tree->dir, tree->shown.text, &journal, err));
    bool stands = journal.n > 0;
    cv_journal_free(&journal);
    if (!stands) return CV_OK;
    CV_TRY(cv_tree_open(tree->path, NULL, NULL, &own, err));
    cv_error reason = {0};
    cv_status status = cv_tree_lock(own, &reason);
    cv_tree_close(own);
    if (status != CV_OK && status != CATERVA_EBUSY && err) *err = reason;
    return status == CATERVA_EBUSY ? CV_OK : status;
}

/* Checks that no unfinished commit includes the file. While the file is locked, no new one can. */
static cv_status check_settled(const cv_tree *tree, const char *path, cv_error *err)
{
    cv_journal journal;
    CV_TRY(cv_journal_look(tree->dir, tree->shown.text, &journal, err));
    bool found = cv_journal_find(&journal, path) != NULL;
    cv_journal_free(&journal);
    if (!found) return CV_OK;
    return cv_fail(
        err, tree->writable ? CATERVA_EIO : CATERVA_EBUSY, -1,
        "a commit to %s is not finished: close all handles of the tree and open it again",
        tree->shown.text);
}

static cv_status open_to_write(const cv_tree *tree, const cv_leaf *leaf, const char *path,
                               cv_store **out, cv_error *err)
{
    CV_TRY(cv_store_file_open(path, 0, true, out, err));
    cv_status status = check_settled(tree, leaf->path, err);
    if (status != CV_OK) cv_store_close(*out);
    return status;
}

static cv_status open_file(const cv_tree *tree, const cv_leaf *leaf, const char *key,
                           const caterva_open_options *o, caterva_array **out, cv_error *err)
{
    char *path, *url = NULL;
    cv_store *store;
    bool writes = o->mode == CATERVA_MODE_WRITE;
    CV_TRY(cv_tree_path(tree, leaf->path, &path, err));
    cv_status status = writes ? CV_OK : url_of(tree, key, &url, err);
    if (status == CV_OK)
        status = writes ? open_to_write(tree, leaf, path, &store, err)
                        : cv_tree_store(tree, &leaf->member, &store, err);
    if (status == CV_OK) status = cv_array_open_store(store, o, out, err);
    if (status != CV_OK) {
        cv_free(path);
        cv_free(url);
        return status;
    }
    (*out)->path = path;
    (*out)->url = url;
    return CV_OK;
}

static cv_status open_read_only(const cv_tree *tree, const cv_leaf *leaf, const char *key,
                                const caterva_open_options *o, caterva_array **out,
                                cv_error *err)
{
    char *url;
    cv_store *store;
    CV_TRY(tree->form == CV_TREE_ZARR ? cv_tree_path(tree, key + 1, &url, err)
                                      : url_of(tree, key, &url, err));
    cv_status status = leaf->is_embedded ? cv_embedded_store(tree, leaf, &store, err)
                                         : cv_tree_store(tree, &leaf->member, &store, err);
    if (status == CV_OK) status = cv_array_open_store(store, o, out, err);
    if (status == CV_OK)
        (*out)->path = url;
    else
        cv_free(url);
    return status;
}

typedef struct kept_session {
    cv_attachment base; /* first */
    cv_session *session;
} kept_session;

static cv_status open_in(cv_session *session, const char *url, const caterva_open_options *o,
                         caterva_array **out, cv_error *err);

static cv_status reopen(const cv_attachment *self, const caterva_array *array,
                        const caterva_open_options *o, caterva_array **out, cv_error *err)
{
    return open_in(((const kept_session *)self)->session, array->path, o, out, err);
}

static void free_session(cv_attachment *self)
{
    cv_wings.remote->release(((kept_session *)self)->session);
    cv_free(self);
}

static cv_status keep_session(caterva_array *array, const cv_tree *tree, cv_error *err)
{
    static const cv_attachment_kind kind = {.reopen = reopen, .free = free_session};
    kept_session *kept = cv_malloc(sizeof *kept);
    if (!kept) return cv_fail_memory(err, sizeof *kept, "a session");
    kept->session = cv_wings.remote->session(tree->store);
    cv_wings.remote->retain(kept->session);
    cv_array_attach(array, &kind, &kept->base);
    return CV_OK;
}

cv_status cv_array_open_leaf(const cv_tree *tree, const char *key,
                             const caterva_open_options *o, caterva_array **out,
                             cv_error *err)
{
    cv_leaf leaf;
    if (o->mode == CATERVA_MODE_WRITE) CV_TRY(finish_commit(tree, err));
    CV_TRY(cv_tree_find(tree, key, &leaf, err));
    cv_status status = check_mode(tree, &leaf, key, o, err);
    if (status == CV_OK)
        status = !leaf.is_embedded && tree->form == CV_TREE_DIRECTORY
                     ? open_file(tree, &leaf, key, o, out, err)
                     : open_read_only(tree, &leaf, key, o, out, err);
    cv_leaf_free(&leaf);
    if (status != CV_OK || !tree->store) return status;
    status = keep_session(*out, tree, err);
    if (status == CV_OK) return CV_OK;
    cv_array_free(*out);
    *out = NULL;
    return status;
}

/* Opens the tree of a URL "TREE::/key". The progress in the options reports the opening, too. */
static cv_status open_tree_of(cv_session *session, const char *url,
                              const caterva_open_options *o, const char **key, cv_tree **out,
                              cv_error *err)
{
    size_t size;
    cv_watch watch;
    *key = cv_tree_url_key(url, &size);
    char *path = cv_strndup(url, size);
    if (!path) return cv_fail_memory(err, size, "a path");
    cv_watch *reporting = cv_watch_open(&watch, o ? &o->progress : NULL, NULL);
    cv_status status = cv_tree_open(path, session, reporting, out, err);
    cv_watch_destroy(&watch);
    cv_free(path);
    return status;
}

static cv_status open_in(cv_session *session, const char *url, const caterva_open_options *o,
                         caterva_array **out, cv_error *err)
{
    const char *key;
    cv_tree *tree;
    CV_TRY(open_tree_of(session, url, o, &key, &tree, err));
    cv_status status = cv_array_open_leaf(tree, key, o, out, err);
    cv_tree_close(tree);
    return status;
}

cv_status cv_tree_open_leaf_url(const char *url, const caterva_open_options *o,
                                caterva_array **out, cv_error *err)
{
    cv_session *session;
    CV_TRY(cv_array_open_session(url, o->remote, &session, err));
    cv_status status = open_in(session, url, o, out, err);
    if (session) cv_wings.remote->release(session);
    return status;
}

static cv_status file_of(const cv_tree *tree, const char *key, char **path, cv_error *err)
{
    static const caterva_open_options writing = {.mode = CATERVA_MODE_WRITE};
    cv_leaf leaf;
    CV_TRY(finish_commit(tree, err));
    CV_TRY(cv_tree_find(tree, key, &leaf, err));
    cv_status status = check_mode(tree, &leaf, key, &writing, err);
    if (status == CV_OK) status = check_settled(tree, leaf.path, err);
    if (status == CV_OK) status = cv_tree_path(tree, leaf.path, path, err);
    cv_leaf_free(&leaf);
    return status;
}

cv_status cv_tree_leaf_file(const char *url, char **path, cv_error *err)
{
    const char *key;
    cv_tree *tree;
    CV_TRY(open_tree_of(NULL, url, NULL, &key, &tree, err));
    cv_status status = file_of(tree, key, path, err);
    cv_tree_close(tree);
    return status;
}

/* Makes the tree of a URL "NEW.b2d::/key" if it does not exist. */
static cv_status make_tree_of(const char *url, cv_error *err)
{
    size_t size;
    cv_file_info info;
    (void)cv_tree_url_key(url, &size);
    if (size < 5 || memcmp(url + size - 4, ".b2d", 4) != 0) return CV_OK;
    char *path = cv_strndup(url, size);
    if (!path) return cv_fail_memory(err, size, "a path");
    cv_status status = CV_OK;
    if (cv_dir_get_info(cv_dir_here, path, &info) == ENOENT)
        status = cv_make_tree(path, true, err);
    cv_free(path);
    return status;
}

cv_status cv_tree_leaf_place(const char *url, bool overwrite, char **path, cv_error *err)
{
    const char *key;
    cv_tree *tree;
    CV_TRY(make_tree_of(url, err));
    CV_TRY(open_tree_of(NULL, url, NULL, &key, &tree, err));
    cv_status status = cv_tree_lock(tree, err);
    tree->durable = true; /* the array's durability is not known here */
    if (status == CV_OK) status = cv_change_place(tree, key, overwrite, path, err);
    cv_tree_close(tree);
    return status;
}

/* Makes "TREE/g/x.b2nd" from a tree and "/g/x". */
static cv_status join_leaf(const char *tree, const char *key, const char *suffix, char **out,
                           cv_error *err)
{
    size_t size = strlen(tree) + strlen(key) + CV_TREE_LONGEST_SUFFIX + 1;
    *out = NULL;
    CV_TRY(cv_tree_check_file(key + 1, err));
    *out = cv_malloc(size);
    if (!*out) return cv_fail_memory(err, size, "a path");
    (void)snprintf(*out, size, "%s%s%s", tree, key, suffix);
    return CV_OK;
}

/* Returns the path of the leaf beside which a folder of parts exists, else that of "KEY.b2nd". */
static cv_status parts_place(const char *tree, const char *key, char **path, cv_error *err)
{
    for (int i = 0; i < CV_TREE_SUFFIXES; i++) {
        bool found = false;
        CV_TRY(join_leaf(tree, key, cv_tree_suffixes[i], path, err));
        cv_status status =
            cv_wings.jobs ? cv_wings.jobs->has_folder(*path, &found, err) : CV_OK;
        if (status == CV_OK && found) return CV_OK;
        cv_free(*path);
        *path = NULL;
        if (status != CV_OK) return status;
    }
    return join_leaf(tree, key, CV_TREE_ARRAY_SUFFIX, path, err);
}

cv_status cv_tree_parts_place(const char *url, char **path, cv_error *err)
{
    size_t size;
    cv_file_info info;
    const char *key = cv_tree_url_key(url, &size);
    char *tree = cv_strndup(url, size);
    if (!tree) return cv_fail_memory(err, size, "a path");
    cv_status status = CV_OK;
    *path = NULL;
    if (cv_dir_get_info(cv_dir_here, tree, &info) == 0 && info.kind == CV_KIND_DIRECTORY) {
        status = cv_tree_check_key(key, err);
        if (status == CV_OK) status = parts_place(tree, key, path, err);
    } else {
        *path = cv_strdup(url);
        if (!*path) status = cv_fail_memory(err, strlen(url), "a path");
    }
    cv_free(tree);
    return status;
}
