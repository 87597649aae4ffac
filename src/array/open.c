/* Room: array. Opens existing arrays, and opens them again. */
#include "array/open.h"

#include "array/array.h"
#include "array/library.h"
#include "base/heap.h"
#include "base/os.h"
#include "base/os_dir.h"
#include "engine/write/shard.h"
#include "format/json.h"
#include "format/values.h"
#include "store/custom.h"
#include "store/file.h"
#include "store/memory.h"
#include "store/open.h"
#include "store/path.h"
#include "store/place.h"
#include "store/zarr.h"

#include <caterva_remote.h>
#include <caterva_store.h>
#include <stdio.h>
#include <string.h>

/* ---- Options ------------------------------------------------------------------------- */

cv_status cv_array_open_options(const caterva_open_options *options,
                                caterva_open_options *out, cv_error *err)
{
    CV_TRY(cv_options_read(out, sizeof *out, options, "open options", err));
    if (out->mode != CATERVA_MODE_READ && out->mode != CATERVA_MODE_WRITE)
        return cv_fail(err, CATERVA_EINVAL, -1, "open mode %d is neither READ nor WRITE",
                       (int)out->mode);
    if (out->threads < 0)
        return cv_fail(err, CATERVA_EINVAL, -1, "threads is %d, less than 0", out->threads);
    if (out->durability < CATERVA_DURABILITY_FULL ||
        out->durability > CATERVA_DURABILITY_NONE)
        return cv_fail(err, CATERVA_EINVAL, -1, "durability %d is not known",
                       (int)out->durability);
    if (out->dirty_budget < 0)
        return cv_fail(err, CATERVA_EINVAL, -1, "dirty_budget is %lld, less than 0",
                       (long long)out->dirty_budget);
    CV_TRY(cv_progress_check(&out->progress, err));
    CV_TRY(cv_array_check_cache(out->cache_bytes, err));
    CV_TRY(cv_array_check_compact(out->compact_percent, err));
    if (out->keep_bytes < -1)
        return cv_fail(err, CATERVA_EINVAL, -1, "keep_bytes is %lld, less than -1",
                       (long long)out->keep_bytes);
    if (out->offset != 0 && out->mode == CATERVA_MODE_WRITE)
        return cv_fail(err, CATERVA_EINVAL, -1,
                       "a frame at an offset in its file is read-only");
    return CV_OK;
}

/* ---- Stores ------------------------------------------------------------------ */

const char *cv_tree_url_key(const char *url, size_t *path_size)
{
    for (const char *at = strstr(url, "::"); at; at = strstr(at + 1, "::")) {
        if (at == url || (at[2] && at[2] != '/')) continue;
        *path_size = (size_t)(at - url);
        return at[2] ? at + 2 : "/";
    }
    return NULL;
}

bool cv_array_is_leaf_url(const char *url)
{
    size_t size;
    cv_file_info info;
    return cv_tree_url_key(url, &size) && cv_dir_get_info(cv_dir_here, url, &info) != 0;
}

cv_status cv_array_open_session(const char *url, const caterva_remote_options *given,
                                cv_session **out, cv_error *err)
{
    caterva_remote_options remote = CATERVA_REMOTE_INIT;
    *out = NULL;
    if (given) CV_TRY(cv_options_copy(&remote, sizeof remote, given, "remote options", err));
    if (!cv_is_url(url)) return CV_OK;
    CV_TRY(cv_check_built(cv_wings.remote, "CATERVA_REMOTE", err));
    return cv_wings.remote->begin(url, &remote, out, err);
}

/* ---- Zarr arrays behind URLs: a request finds the number of axes in their metadata ----------- */

/* Whether it is the URL of a directory whose name says that it is a Zarr array. */
static bool is_zarr_url(const char *url)
{
    static const char suffix[] = ".zarr";
    size_t size = strlen(url), end = sizeof suffix - 1;
    while (size > 0 && url[size - 1] == '/') size--;
    return cv_is_url(url) && size > end && memcmp(url + size - end, suffix, end) == 0;
}

/* Whether a URL may be that of an array in a Zarr hierarchy, "x.zarr/g/y", and is not that of a frame
 * in a Zarr array, "x.zarr/g/y/c/0/0". */
static bool may_be_member(const char *url)
{
    size_t size = strlen(url);
    const char *root = strstr(url, ".zarr/");
    if (!root || strchr(url, '?') || is_zarr_url(url)) return false;
    while (size > 2 && url[size - 1] == '0' && url[size - 2] == '/') size -= 2;
    return !(url[size - 1] == 'c' && url[size - 2] == '/');
}

static char *url_in(const char *url, const char *name)
{
    size_t size = strlen(url), most = size + strlen(name) + 2;
    while (size > 0 && url[size - 1] == '/') size--;
    char *joined = cv_malloc(most);
    if (joined) (void)snprintf(joined, most, "%.*s/%s", (int)size, url, name);
    return joined;
}

/* Sets *ndim to the length of the member `shape`, or to -1 without this member. */
static cv_status count_axes(const cv_buffer *text, int *ndim, cv_error *err)
{
    cv_buffer value = {0};
    *ndim = -1;
    cv_status status = cv_json_to_msgpack((const char *)text->data, text->size, &value, err);
    cv_tokens tokens = cv_tokens_of(value.data, value.size);
    cv_token map = cv_token_next(&tokens);
    uint64_t n = status == CV_OK && map.kind == CV_TOKEN_MAP ? map.number : 0;
    for (uint64_t i = 0; i < n && *ndim < 0; i++) {
        cv_token key = cv_token_next(&tokens);
        cv_tokens ahead = tokens;
        cv_token shape = cv_token_next(&ahead);
        if (cv_token_is_text(&key, "shape") && shape.kind == CV_TOKEN_LIST &&
            shape.number <= CATERVA_MAX_DIMS)
            *ndim = (int)shape.number;
        cv_tokens_skip(&tokens);
    }
    cv_buffer_free(&value);
    return status == CATERVA_EINVAL ? CV_OK : status;
}

/* Whether a text names the codec of shards, which an array of one frame has. */
static bool has_shards(const cv_buffer *text)
{
    static const char name[] = "\"sharding_indexed\"";
    enum { SIZE = sizeof name - 1 };
    for (size_t i = 0; i + SIZE <= text->size; i++)
        if (memcmp(text->data + i, name, SIZE) == 0) return true;
    return false;
}

static cv_status read_all(cv_store *store, cv_buffer *out, cv_error *err)
{
    enum { MOST = 64 << 20 };
    uint64_t size;
    CV_TRY(cv_store_size(store, CV_FRAME_OBJECT, &size, err));
    if (size > MOST) size = 0; /* no metadata of an array */
    CV_TRY(cv_buffer_resize(out, (size_t)size, err));
    return cv_store_read(store, CV_FRAME_OBJECT, 0, out->data, out->size, err);
}

static cv_status fail_no_frame(const char *url, cv_error *err)
{
    return cv_fail(err, CATERVA_EUNSUPPORTED, -1,
                   "%s is a Zarr array whose chunks are not one frame of Blosc2: if caterva "
                   "serve offers it, open the file beside it (.b2nd, or .b2z of an archive)",
                   cv_show_path(url).text);
}

/* Sets *out to the URL of the frame in the Zarr array at `url`. */
static cv_status find_shard(cv_session *session, const char *url, cv_watch *watch, char **out,
                            cv_error *err)
{
    int ndim = -1;
    cv_store *store;
    cv_buffer text = {0};
    char *meta = url_in(url, CV_ZARR_META);
    if (!meta) return cv_fail_memory(err, strlen(url), "a URL");
    cv_status status = cv_wings.remote->open(session, meta, 0, watch, &store, err);
    cv_free(meta);
    CV_TRY(status);
    status = read_all(store, &text, err);
    if (status == CV_OK) status = count_axes(&text, &ndim, err);
    bool sharded = has_shards(&text);
    cv_store_close(store);
    cv_buffer_free(&text);
    CV_TRY(status);
    if (ndim >= 0 && !sharded) return fail_no_frame(url, err);
    if (ndim < 0)
        return cv_fail(err, CATERVA_EUNSUPPORTED, -1, "%s is no Zarr array of version 3: if it is a group, open one of its arrays",
                       cv_show_path(url).text);
    *out = url_in(url, cv_zarr_name_of(ndim).text);
    return *out ? CV_OK : cv_fail_memory(err, strlen(url), "a URL");
}

/* Sets *out as find_shard if the URL may be that of a Zarr array; otherwise to NULL. */
static cv_status find_zarr(cv_session *session, const char *url, cv_watch *watch, char **out,
                           cv_error *err)
{
    cv_error missing = {0};
    *out = NULL;
    if (is_zarr_url(url)) return find_shard(session, url, watch, out, err);
    if (!may_be_member(url)) return CV_OK;
    cv_status status = find_shard(session, url, watch, out, &missing);
    if (status == CATERVA_ENOTFOUND) return CV_OK; /* a frame with any name */
    if (status != CV_OK && err) *err = missing;
    return status;
}

/* Opens the store of a URL. The options `o` are complete. Sets *is_shard if it is that of a Zarr
 * array, which may be of another program. */
static cv_status open_remote(const char *url, const caterva_open_options *o, cv_store **out,
                             bool *is_shard, cv_error *err)
{
    cv_session *session;
    cv_watch watch;
    char *shard;
    if (o->mode == CATERVA_MODE_WRITE) CV_TRY(cv_refuse_url(url, err));
    CV_TRY(cv_array_open_session(url, o->remote, &session, err));
    cv_watch *reporting = cv_watch_open(&watch, &o->progress, NULL);
    cv_status status = find_zarr(session, url, reporting, &shard, err);
    if (status == CV_OK)
        status = cv_wings.remote->open(session, shard ? shard : url, o->offset, reporting,
                                       out, err);
    *is_shard = shard != NULL;
    cv_free(shard);
    cv_watch_destroy(&watch);
    cv_wings.remote->release(session); /* the store has its own reference */
    return status;
}

enum { KEEP_BYTES = 16 << 20 };

/* Opens the frame. Reports to the progress function of the options, because this may take long. */
static cv_status open_frame(cv_store *store, const caterva_open_options *o, cv_frame **out,
                            cv_error *err)
{
    cv_watch watch;
    cv_watch *reporting = cv_watch_open(&watch, &o->progress, NULL);
    if (store->is_far) store->watch = reporting; /* reset after the opening */
    cv_status status = cv_frame_open(store, o->durability, o->unchecked != 0, out, err);
    if (status == CV_OK) (*out)->store->watch = NULL;
    cv_watch_destroy(&watch);
    return status;
}

/* A commit would leave an index of blocks that may be overwritten later. Without the index, Zarr
 * readers find a wrong checksum in the last bytes of the frame. */
static cv_status end_zarr(cv_frame *frame, const caterva_open_options *o, cv_error *err)
{
    bool found;
    const cv_snapshot *state = frame->current;
    CV_TRY(cv_shard_find(frame, state, &found, err));
    if (!found) return CV_OK;
    if (!o->end_zarr)
        return cv_fail(err, CATERVA_EREADONLY, -1,
                       "the array is a Zarr array, too, which a write would end: copy it, or "
                       "set end_zarr");
    if (state->grid.n_chunks == 0)
        return cv_fail(err, CATERVA_EREADONLY, -1,
                       "the array is a Zarr array, too, and has no items: Zarr readers would not "
                       "notice that others are written; copy it");
    CV_TRY(cv_store_truncate(frame->store, CV_FRAME_OBJECT, state->header.frame_size, err));
    if (o->durability == CATERVA_DURABILITY_NONE) return CV_OK;
    return cv_store_sync(frame->store, CV_FRAME_OBJECT, err);
}

cv_status cv_array_open_store(cv_store *store, const caterva_open_options *o,
                              caterva_array **out, cv_error *err)
{
    cv_frame *frame;
    int64_t keep = o->keep_bytes == 0 ? KEEP_BYTES : o->keep_bytes;
    cv_store_file_keep(store, keep > 0 ? (uint64_t)keep : 0);
    CV_TRY(open_frame(store, o, &frame, err));
    if (frame->current->meta.plain && o->mode == CATERVA_MODE_WRITE) {
        cv_frame_close(frame);
        return cv_fail(err, CATERVA_EUNSUPPORTED, -1,
                       "a Blosc2 frame without the b2nd metalayer can only be read: "
                       "caterva_copy or `caterva convert` makes an n-d array of it");
    }
    cv_status ended = o->mode == CATERVA_MODE_WRITE ? end_zarr(frame, o, err) : CV_OK;
    if (ended != CV_OK) {
        cv_frame_close(frame);
        return ended;
    }
    CV_TRY(cv_array_new(frame, o->mode == CATERVA_MODE_WRITE, o->threads, out, err));
    (*out)->opened = *o;
    (*out)->opened.remote = NULL; /* the store has a copy */
    (*out)->compact_percent = o->compact_percent;
    (*out)->ahead.off = o->no_read_ahead != 0;
    if ((*out)->pending && o->dirty_budget > 0) (*out)->pending->budget = o->dirty_budget;
    cv_status status = cv_array_set_cache(*out, o->cache_bytes, err);
    if (status == CV_OK) status = cv_array_set_watch(*out, &o->progress, err);
    if (status == CV_OK) frame->store->watch = (*out)->watch;
    if (status != CV_OK) {
        cv_array_free(*out);
        *out = NULL;
    }
    return status;
}

/* ---- By URL -------------------------------------------------------------------------- */

/* Whether the shard is a frame, or a damaged one. */
static bool is_frame(const char *url, const caterva_open_options *o)
{
    cv_store *store;
    bool is_shard;
    char head[CV_ZARR_HEAD];
    if (open_remote(url, o, &store, &is_shard, NULL) != CV_OK) return true;
    cv_status status = cv_store_read(store, CV_FRAME_OBJECT, 0, head, sizeof head, NULL);
    cv_store_close(store);
    return status != CV_OK || cv_zarr_is_frame(head, sizeof head);
}

static cv_status open_url(const char *url, const caterva_open_options *o, caterva_array **out,
                          cv_error *err)
{
    cv_store *store;
    bool is_shard = false;
    cv_error damage = {0};
    if (cv_array_is_leaf_url(url)) {
        CV_TRY(cv_check_built(cv_wings.tree, "CATERVA_TREES", err));
        return cv_wings.tree->open_leaf(url, o, out, err);
    }
    if (cv_is_url(url))
        CV_TRY(open_remote(url, o, &store, &is_shard, err));
    else
        CV_TRY(cv_store_open(url, o->offset, o->mode == CATERVA_MODE_WRITE, &store, err));
    cv_status status = cv_array_open_store(store, o, out, &damage);
    if (is_shard && status == CATERVA_ECORRUPT && !is_frame(url, o)) return fail_no_frame(url, err);
    if (status == CV_OK) (*out)->is_far_zarr = is_shard;
    if (status != CV_OK && err) *err = damage;
    return status;
}

caterva_status caterva_open(const char *url, const caterva_open_options *options,
                            caterva_array **out, caterva_error *err)
{
    if (!url || !out) return cv_fail(err, CATERVA_EINVAL, -1, "url or out is NULL");
    *out = NULL;
    caterva_open_options o;
    CV_TRY(cv_array_open_options(options, &o, err));
    if (strcmp(url, "mem:") == 0)
        return cv_fail(err, CATERVA_EINVAL, -1,
                       "\"mem:\" cannot be opened: use caterva_frame_open");
    if (!*url) return cv_fail(err, CATERVA_EINVAL, -1, "the path is empty");
    if (o.mode == CATERVA_MODE_WRITE) CV_TRY(cv_refuse_url(url, err));
    bool is_remote = cv_is_url(url);
    /* The path is absolute, because the working directory may change. */
    char *path = is_remote ? cv_strdup(url) : cv_os_absolute(url);
    if (!path) return cv_fail_memory(err, strlen(url), "a path");
    /* A file is opened by the caller's path, because messages show this path. */
    cv_status status = open_url(cv_array_is_leaf_url(url) ? path : url, &o, out, err);
    if (status == CV_OK && !(*out)->path)
        (*out)->path = path;
    else
        cv_free(path);
    return status;
}

/* Exchanges the states of two handles. Locks and caches stay with their handles. */
static void swap_state(caterva_array *a, caterva_array *b)
{
    cv_frame *frame = a->frame;
    cv_snapshot *snapshot = a->snapshot;
    uint8_t *fill = a->fill;
    cv_item_type type = a->type;
    cv_description *description = a->description;
    a->frame = b->frame;
    a->snapshot = b->snapshot;
    a->layout = b->layout;
    a->metalayer = b->metalayer;
    a->fill = b->fill;
    a->type = b->type;
    a->description = b->description;
    b->frame = frame;
    b->snapshot = snapshot;
    b->fill = fill;
    b->type = type;
    b->description = description;
    a->frame->store->watch = a->watch;
    b->frame->store->watch = b->watch;
    cv_workers_swap(&a->workers, &b->workers);
}

caterva_status caterva_store_open(const caterva_store *store,
                                  const caterva_open_options *options, caterva_array **out,
                                  caterva_error *err)
{
    if (!store || !out) return cv_fail(err, CATERVA_EINVAL, -1, "store or out is NULL");
    *out = NULL;
    caterva_store given;
    caterva_open_options o;
    cv_store *own;
    CV_TRY(cv_options_copy(&given, sizeof given, store, "store", err));
    CV_TRY(cv_array_open_options(options, &o, err));
    if (o.offset != 0)
        return cv_fail(err, CATERVA_EINVAL, -1,
                       "the offset must be 0: the store begins with the frame");
    CV_TRY(cv_store_custom_open(&given, o.mode == CATERVA_MODE_WRITE, &own, err));
    CV_TRY(cv_array_open_store(own, &o, out, err));
    cv_store_custom_own(own);
    return CV_OK;
}

/* Opens the handle's source again. *out is NULL if the source cannot have changed. */
static cv_status open_again(const caterva_array *array, caterva_array **out, cv_error *err)
{
    caterva_open_options o = array->opened;
    cv_store *store = NULL;
    *out = NULL;
    o.cache_bytes = CATERVA_NONE; /* `array` gets the new state and keeps its cache */
    if (cv_wings.remote)
        CV_TRY(cv_wings.remote->reopen(array->frame->store, array->watch, &store, err));
    if (store) return cv_array_open_store(store, &o, out, err);
    for (const cv_attachment *a = array->attached; a; a = a->next)
        if (a->kind->reopen) return a->kind->reopen(a, array, &o, out, err);
    if (array->path && !cv_os_is_absolute(array->path) && !cv_is_url(array->path))
        return cv_fail(err, CATERVA_EIO, -1,
                       "the array cannot be opened again: its path was relative to a "
                       "directory that has no name");
    if (array->path) return open_url(array->url ? array->url : array->path, &o, out, err);
    CV_TRY(cv_store_custom_again(array->frame->store, &store, err));
    return store ? cv_array_open_store(store, &o, out, err) : CV_OK;
}

caterva_status caterva_refresh(caterva_array *array, caterva_error *err)
{
    CV_TRY(cv_array_check(array, err));
    if (array->pending) return CV_OK; /* a writer always has the current state */
    caterva_array *fresh;
    CV_TRY(open_again(array, &fresh, err));
    if (!fresh) return CV_OK;
    cv_tasks_suspend(&array->reads);
    cv_tasks_drain(&array->reads); /* reads end with the state in which they began */
    cv_prefetch_cancel(&array->prefetch);
    if (array->workers.cache) cv_cache_forget(array->workers.cache, array->frame->id);
    swap_state(array, fresh);
    cv_array_free(fresh);
    cv_tasks_resume(&array->reads);
    cv_tasks_report_drained(&array->reads);
    return CV_OK;
}

/* Copies the frame in pieces, so that the watch can stop the copy. */
static cv_status copy_pieces(const uint8_t *frame, size_t size, cv_watch *watch,
                             cv_store *store, cv_error *err)
{
    enum { PIECE = 8 << 20 };
    cv_watch_expect(watch, (int64_t)size);
    for (size_t done = 0; done < size;) {
        size_t n = size - done < PIECE ? size - done : PIECE;
        CV_TRY(cv_watch_tick(watch, 0, err));
        CV_TRY(cv_store_write(store, CV_FRAME_OBJECT, done, frame + done, n, err));
        cv_watch_add(watch, (int64_t)n);
        done += n;
    }
    return CV_OK;
}

static cv_status copy_watched(const void *frame, size_t size, const caterva_open_options *o,
                              cv_store *store, cv_error *err)
{
    cv_watch watch;
    cv_watch *reporting = cv_watch_open(&watch, &o->progress, NULL);
    return cv_watch_close(&watch, copy_pieces(frame, size, reporting, store, err));
}

static cv_status copy_to_memory(const void *frame, size_t size, const caterva_open_options *o,
                                cv_store **out, cv_error *err)
{
    cv_store *store;
    CV_TRY(cv_store_memory_create(&store, err));
    cv_status status = copy_watched(frame, size, o, store, err);
    if (status == CV_OK) status = cv_store_publish(store, false, err);
    if (status != CV_OK) {
        cv_store_close(store);
        return status;
    }
    *out = store;
    return CV_OK;
}

caterva_status caterva_frame_open(const void *frame, size_t size, int copy,
                                  const caterva_open_options *options, caterva_array **out,
                                  caterva_error *err)
{
    if (!frame || !out) return cv_fail(err, CATERVA_EINVAL, -1, "frame or out is NULL");
    *out = NULL;
    caterva_open_options o;
    CV_TRY(cv_array_open_options(options, &o, err));
    if (o.offset != 0)
        return cv_fail(err, CATERVA_EINVAL, -1,
                       "the offset must be 0: pass the address where the frame begins");
    if (o.mode == CATERVA_MODE_WRITE && !copy)
        return cv_fail(err, CATERVA_EINVAL, -1, "borrowed memory is read-only: pass copy 1");
    cv_store *store;
    if (copy)
        CV_TRY(copy_to_memory(frame, size, &o, &store, err));
    else
        CV_TRY(cv_store_memory_borrow(frame, size, &store, err));
    return cv_array_open_store(store, &o, out, err);
}
