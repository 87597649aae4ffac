/* Room: store. Selects the kind of store for a path. Refuses operations that a store lacks. */
#include "store/open.h"

#include "base/heap.h"
#include "base/os_dir.h"
#include "base/os_file.h"
#include "store/descriptors.h"
#include "store/directory.h"
#include "store/file.h"
#include "store/memory.h"
#include "store/path.h"
#include "store/store.h"
#include "store/zarr.h"

#include <string.h>

cv_status cv_store_open(const char *path, uint64_t offset, bool writable, cv_store **out,
                        cv_error *err)
{
    cv_file_info info;
    if (writable) CV_TRY(cv_refuse_url(path, err));
    if (cv_dir_get_info(cv_dir_here, path, &info) != 0 || info.kind != CV_KIND_DIRECTORY)
        return cv_store_file_open(path, offset, writable, out, err);
    if (offset != 0)
        return cv_fail(err, CATERVA_EINVAL, -1, "%.150s is a directory, which has no offsets",
                       path);
    char *frame; /* of a Zarr array */
    CV_TRY(cv_zarr_frame_path(path, &frame, err));
    if (!frame) return cv_store_directory_open(path, writable, out, err);
    cv_status status = cv_store_file_open(frame, 0, writable, out, err);
    cv_free(frame);
    return status;
}

cv_status cv_store_create(const char *path, caterva_layout layout, bool overwrite,
                          cv_store **out, cv_error *err)
{
    bool is_directory = layout == CATERVA_LAYOUT_SPARSE;
    bool is_memory = strcmp(path, "mem:") == 0;
    if (is_memory && is_directory)
        return cv_fail(err, CATERVA_EINVAL, -1, "an array in memory cannot be a directory");
    CV_TRY(cv_refuse_url(path, err));
    if (is_memory) return cv_store_memory_create(out, err);
    return is_directory ? cv_store_directory_create(path, overwrite, out, err)
                        : cv_store_file_create(path, overwrite, out, err);
}

cv_status cv_store_create_over(cv_store *old, cv_store **out, cv_error *err)
{
    if (!old->ops->create_over)
        return cv_fail(err, CATERVA_EINVAL, -1, "a %s cannot be replaced by a new one",
                       old->ops->name);
    CV_TRY(cv_store_check_writable(old, err));
    return old->ops->create_over(old, out, err);
}

cv_status cv_store_delete(cv_store *store, cv_watch *watch, cv_error *err)
{
    if (!store->ops->unlink)
        return cv_fail(err, CATERVA_EINVAL, -1, "a %s cannot be deleted", store->ops->name);
    CV_TRY(cv_store_check_writable(store, err));
    return store->ops->unlink(store, watch, err);
}

/* ---- Bytes appended to a file ---- */

static int sync_parent(const char *path)
{
    char *parent = cv_strdup(path);
    if (!parent) return ENOMEM;
    char *slash = strrchr(parent, '/');
    if (slash) slash[slash == parent] = '\0';
    cv_dir dir;
    int error = cv_open_dir(cv_dir_here, slash ? parent : ".", 0, &dir);
    cv_free(parent);
    if (error) return error;
    error = cv_dir_sync(dir);
    cv_dir_close(&dir);
    return error;
}

/* Repeats if another process replaced the file between opening and locking. */
static cv_status open_locked(const char *path, cv_file *file, cv_error *err)
{
    for (;;) {
        unsigned how = CV_OPEN_BOTH | CV_OPEN_CREATE;
        int error = cv_open_file(cv_dir_here, path, how, 0666, file);
        if (error) return cv_fail_open(err, error, path);
        error = cv_file_lock(*file);
        if (!error && cv_dir_names(cv_dir_here, path, *file)) return CV_OK;
        cv_file_close(file);
        if (error) return cv_fail_lock(err, error, path);
    }
}

/* Opens and locks the file, then reads its length. */
static cv_status open_end(const char *path, cv_file *file, uint64_t *end, cv_error *err)
{
    cv_file_info info;
    cv_status status = CV_OK;
    CV_TRY(open_locked(path, file, err));
    int error = cv_file_get_info(*file, &info);
    if (error)
        status = cv_fail_open(err, error, path);
    else if (info.kind != CV_KIND_FILE)
        status = cv_fail(err, CATERVA_EIO, -1, "%s is not a regular file",
                         cv_show_path(path).text);
    if (status != CV_OK) {
        cv_file_close(file);
        return status;
    }
    *end = info.size;
    return CV_OK;
}

/* Writes the bytes. Returns 0 or an errno number. If 0, *stopped is the watch's status. */
static int write_pieces(const cv_append *a, cv_file file, uint64_t pos, cv_status *stopped,
                        cv_error *err)
{
    enum { PIECE = 8 << 20 };
    const uint8_t *bytes = a->bytes;
    cv_watch_expect(a->watch, (int64_t)a->size);
    for (size_t done = 0; done < a->size;) {
        size_t size = a->size - done < PIECE ? a->size - done : PIECE;
        *stopped = cv_watch_tick(a->watch, 0, err);
        if (*stopped != CV_OK) return 0;
        int error = cv_file_write(file, bytes + done, size, pos + done);
        if (error) return error;
        cv_watch_add(a->watch, (int64_t)size);
        done += size;
    }
    return 0;
}

cv_status cv_store_file_append(const cv_append *a, uint64_t *pos, cv_error *err)
{
    cv_file file;
    cv_status status = CV_OK;
    CV_TRY(cv_refuse_url(a->path, err));
    CV_TRY(open_end(a->path, &file, pos, err));
    int error = write_pieces(a, file, *pos, &status, err);
    if (!error && status == CV_OK && a->durable) {
        error = cv_file_sync(file);
        if (!error && *pos == 0) error = sync_parent(a->path);
    }
    bool is_cut = !error && status == CV_OK;
    if (!is_cut) is_cut = cv_file_truncate(file, *pos) == 0;
    if (!error && status == CV_OK && !cv_dir_names(cv_dir_here, a->path, file))
        status = cv_fail(err, CATERVA_EIO, -1,
                         "%s was moved, deleted or replaced by others meanwhile",
                         cv_show_path(a->path).text);
    if (error)
        status = cv_fail_sys(err, error, "cannot append to %s%s", cv_show_path(a->path).text,
                             is_cut ? "" : ", or restore its length");
    cv_file_unlock(file);
    cv_file_close(&file);
    return status;
}

/* ---- Another header ----
 *
 * A store that returns another header instead of its first bytes: the header that a commit of
 * several frames has decided on but not yet written. */

typedef struct headed_store {
    cv_store base;
    cv_store *inner;
    cv_buffer head;
} headed_store;

static cv_store *inner_of(cv_store *store) { return ((headed_store *)store)->inner; }

static cv_status headed_size(cv_store *store, cv_object object, uint64_t *size, cv_error *err)
{
    return cv_store_size(inner_of(store), object, size, err);
}

static void headed_stamp(cv_store *store, cv_stamp *out)
{
    *out = cv_store_stamp(inner_of(store));
}

static void put_head(const headed_store *h, uint64_t pos, void *dst, size_t size)
{
    if (pos >= h->head.size || size == 0) return;
    size_t from = (size_t)pos, left = h->head.size - from;
    memcpy(dst, h->head.data + from, size < left ? size : left);
}

static cv_status headed_read(cv_store *store, cv_object object, uint64_t pos, void *dst,
                             size_t size, cv_error *err)
{
    const headed_store *h = (const headed_store *)store;
    CV_TRY(cv_store_read(h->inner, object, pos, dst, size, err));
    put_head(h, pos, dst, size);
    return CV_OK;
}

static cv_at_once headed_read_at_once(cv_store *store, const cv_store_range *r)
{
    cv_at_once result = cv_store_read_at_once(inner_of(store), r);
    if (result == CV_AT_ONCE_READ)
        put_head((const headed_store *)store, r->pos, r->dst, r->size);
    return result;
}

static void headed_reads_state(cv_store *store, uint64_t state)
{
    cv_store_reads_state(inner_of(store), state);
}

static void headed_close(cv_store *store)
{
    headed_store *h = (headed_store *)store;
    cv_store_close(h->inner);
    cv_buffer_free(&h->head);
    cv_free(h);
}

static const cv_store_ops headed_ops = {
    .name = "file with another header",
    .stamp = headed_stamp,
    .size = headed_size,
    .read = headed_read,
    .read_at_once = headed_read_at_once,
    .reads_state = headed_reads_state,
    .close = headed_close,
};

cv_status cv_store_headed(cv_store *inner, const void *head, size_t size, cv_store **out,
                          cv_error *err)
{
    headed_store *h = cv_calloc(1, sizeof *h);
    if (!h) return cv_fail_memory(err, sizeof *h, "a store");
    cv_status status = cv_buffer_append(&h->head, head, size, err);
    if (status != CV_OK) {
        cv_free(h);
        return status;
    }
    h->base = (cv_store){.ops = &headed_ops, .published = true};
    h->base.opened = inner->opened;
    h->inner = inner;
    *out = &h->base;
    return CV_OK;
}
