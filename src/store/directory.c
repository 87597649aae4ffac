/* Room: store. A sparse frame: a directory with chunks.b2frame and a file for each chunk. A chunk
 * file is written once, under its own id. A commit replaces chunks.b2frame by a rename, so that
 * open readers keep the old frame. Therefore the writer locks a separate file. All names are
 * relative to the open directory, because publishing renames the directory. */
#include "store/directory.h"

#include "base/heap.h"
#include "store/path.h"
#include "store/reading.h"
#include "store/sframe.h"
#include "store/store.h"

#include <assert.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

typedef struct directory_store {
    cv_store base;
    cv_dir dir;
    cv_file lock;         /* not open if the store is read-only */
    cv_file frame;        /* not open if not created yet, or closed to save descriptors */
    uint8_t *frame_bytes; /* the frame in memory, if a reader closed its file; or NULL */
    uint64_t frame_size;  /* bytes of frame_bytes */
    cv_rwlock frame_lock; /* guards the three members above, also while they are used */
    cv_fd_holder holder;  /* closes idle chunk files, and the frame of a reader */
    cv_chunk_files chunks;
    cv_shared_chunks shared; /* chunks shared since the frame was last replaced */
    cv_place place;          /* names of a created store; closed when published */
    cv_home home;            /* name of a published store open for writing */
    cv_shown_path shown;
} directory_store;

static inline cv_file directory_self(const directory_store *d)
{
    return cv_dir_as_file(d->dir);
}

/* ---- Messages ----------------------------------------------------------- */

static cv_chunk_name object_name(cv_object object)
{
    if (object >= 0) return cv_sframe_chunk_name(object);
    return (cv_chunk_name){CV_SFRAME_FRAME};
}

static cv_status fail_missing(const directory_store *d, cv_object object, cv_error *err)
{
    return cv_fail(err, CATERVA_ENOTFOUND, -1, "%s has no %s", d->shown.text,
                   object_name(object).text);
}

static cv_status fail_object(const directory_store *d, cv_object object, int sys_errno,
                             const char *what, cv_error *err)
{
    return cv_fail_sys(err, sys_errno, "cannot %s %s in %s", what, object_name(object).text,
                       d->shown.text);
}

/* ---- Reading ------------------------------------------------------------ */

typedef struct held_object {
    cv_file file;
    const uint8_t *bytes; /* the frame if it is in memory; else NULL */
    uint64_t size;        /* number of `bytes` */
    bool is_chunk;
    cv_chunk_handle chunk;
} held_object;

static cv_status hold(directory_store *d, cv_object object, held_object *held, cv_error *err)
{
    *held = (held_object){.is_chunk = object >= 0};
    if (held->is_chunk) {
        int error = cv_chunk_acquire(&d->chunks, object, &held->chunk);
        held->file = held->chunk.file;
        if (error == ENOENT) return fail_missing(d, object, err);
        return error ? fail_object(d, object, error, "open", err) : CV_OK;
    }
    cv_rwlock_read(&d->frame_lock);
    held->file = d->frame;
    held->bytes = d->frame_bytes;
    held->size = d->frame_size;
    if (cv_file_is_open(held->file) || held->bytes) return CV_OK;
    cv_rwlock_unlock(&d->frame_lock);
    return fail_missing(d, object, err);
}

static void let_go(directory_store *d, held_object held)
{
    if (held.is_chunk)
        cv_chunk_release(held.chunk);
    else
        cv_rwlock_unlock(&d->frame_lock);
}

static int size_of_held(const held_object *held, uint64_t *size)
{
    *size = held->size;
    return held->bytes ? 0 : cv_file_size(held->file, size);
}

static int read_held(const held_object *held, void *dst, size_t size, uint64_t pos,
                     size_t *done)
{
    if (!held->bytes) return cv_file_read(held->file, dst, size, pos, done);
    uint64_t left = pos < held->size ? held->size - pos : 0;
    *done = size < left ? size : (size_t)left;
    if (*done > 0) memcpy(dst, held->bytes + pos, *done);
    return 0;
}

static cv_status directory_check_frame(cv_store *store, cv_error *err)
{
    cv_file_info info;
    directory_store *d = (directory_store *)store;
    int error = cv_dir_get_info(d->dir, CV_SFRAME_FRAME, &info);
    if (error == ENOENT) return fail_missing(d, CV_FRAME_OBJECT, err);
    return error ? fail_object(d, CV_FRAME_OBJECT, error, "look at", err) : CV_OK;
}

static void use_frame(directory_store *d, cv_file frame)
{
    cv_rwlock_write(&d->frame_lock);
    cv_file old = d->frame;
    d->frame = frame;
    cv_free(d->frame_bytes);
    d->frame_bytes = NULL;
    cv_rwlock_unlock(&d->frame_lock);
    cv_file_close(&old);
}

/* Copies the frame to memory and closes its file. This is safe because a writer of this library
 * replaces the file but never changes it. Returns the number of closed files. Call with frame_lock
 * for writing. */
static int move_frame_to_memory(directory_store *d)
{
    enum { MOST = 16 << 20 };
    uint64_t stored;
    size_t done;
    if (!cv_file_is_open(d->frame)) return 0;
    if (cv_file_size(d->frame, &stored) || stored > MOST) return 0;
    size_t size = (size_t)stored;
    uint8_t *bytes = cv_malloc(size + 1);
    if (!bytes) return 0;
    if (cv_file_read(d->frame, bytes, size, 0, &done) || done < size) {
        cv_free(bytes);
        return 0;
    }
    cv_file_close(&d->frame);
    d->frame_bytes = bytes;
    d->frame_size = size;
    return 1;
}

static int give_up(cv_fd_holder *holder)
{
    directory_store *d =
        (directory_store *)((char *)holder - offsetof(directory_store, holder));
    int n = cv_chunk_files_give_up(&d->chunks);
    if (n > 0 || d->base.writable) return n;
    if (!cv_rwlock_try_write(&d->frame_lock)) return 0;
    n = move_frame_to_memory(d);
    cv_rwlock_unlock(&d->frame_lock);
    return n;
}

static void directory_share_descriptors(directory_store *d)
{
    d->holder.give_up = give_up;
    cv_fd_holder_add(&d->holder);
}

/* Opens the new frame if another writer has replaced the frame. Every load of a state first gets
 * the frame's size, which calls this function. Later reads use the file that it opened. */
static void directory_follow(directory_store *d)
{
    cv_file frame;
    cv_rwlock_read(&d->frame_lock);
    bool current = cv_dir_names(d->dir, CV_SFRAME_FRAME, d->frame);
    cv_rwlock_unlock(&d->frame_lock);
    if (current) return;
    if (cv_open_file(d->dir, CV_SFRAME_FRAME, CV_OPEN_READ, 0, &frame) == 0)
        use_frame(d, frame);
}

static cv_status directory_size(cv_store *store, cv_object object, uint64_t *size,
                                cv_error *err)
{
    directory_store *d = (directory_store *)store;
    held_object held;
    if (object == CV_FRAME_OBJECT && !store->writable) directory_follow(d);
    CV_TRY(hold(d, object, &held, err));
    int error = size_of_held(&held, size);
    let_go(d, held);
    return error ? fail_object(d, object, error, "look at", err) : CV_OK;
}

/* The file's time is part of the stamp, because other programs change the frame's file in place. A
 * frame in memory has a stamp of zeros: its state is loaded already. */
static void directory_stamp(cv_store *store, cv_stamp *out)
{
    directory_store *d = (directory_store *)store;
    cv_file_info info;
    cv_rwlock_read(&d->frame_lock);
    int error = cv_file_is_open(d->frame) ? cv_file_get_info(d->frame, &info) : ENOENT;
    cv_rwlock_unlock(&d->frame_lock);
    if (error) return;
    *out = (cv_stamp){.object = info.inode, .time = info.changed_ns, .size = info.size};
}

static cv_status directory_read(cv_store *store, cv_object object, uint64_t pos, void *dst,
                                size_t size, cv_error *err)
{
    directory_store *d = (directory_store *)store;
    held_object held;
    uint64_t end = 0;
    size_t done;
    CV_TRY(hold(d, object, &held, err));
    int error = read_held(&held, dst, size, pos, &done);
    if (!error && done < size) error = size_of_held(&held, &end);
    let_go(d, held);
    if (error) return fail_object(d, object, error, "read", err);
    if (done == size) return CV_OK;
    return cv_fail_past_end(err, object_name(object).text, pos, size, end);
}

static cv_at_once directory_read_at_once(cv_store *store, const cv_store_range *r)
{
    directory_store *d = (directory_store *)store;
    held_object held;
    cv_at_once result = CV_AT_ONCE_UNKNOWN; /* a later read reports errors */
    if (hold(d, r->object, &held, NULL) != CV_OK) return result;
    if (!held.bytes) result = cv_file_read_at_once(held.file, r->dst, r->size, r->pos);
    let_go(d, held);
    return result;
}

static void hint_range(cv_store *store, const cv_store_range *range)
{
    directory_store *d = (directory_store *)store;
    held_object held;
    if (hold(d, range->object, &held, NULL) != CV_OK) return;
    if (!held.bytes) cv_file_fetch(held.file, range->pos, range->size);
    let_go(d, held);
}

static cv_status directory_read_many(cv_store *store, const cv_store_range *ranges, size_t n,
                                     const cv_arrivals *arrivals, cv_error *err)
{
    return cv_store_read_deep(store, ranges, n, arrivals, hint_range, err);
}

/* ---- Changing ----------------------------------------------------------- */

/* Refuses to write the frame, which only `replace` changes. */
static cv_status check_chunk(const cv_store *store, cv_object object, cv_error *err)
{
    CV_TRY(cv_store_check_writable(store, err));
    if (object >= 0) return CV_OK;
    return cv_fail(err, CATERVA_EINVAL, -1,
                   "the frame of a directory is replaced, not written");
}

static cv_status directory_write(cv_store *store, cv_object object, uint64_t pos,
                                 const void *src, size_t size, cv_error *err)
{
    directory_store *d = (directory_store *)store;
    cv_chunk_handle chunk;
    CV_TRY(check_chunk(store, object, err));
    /* At position 0, replaces a file that a crash left under this id, which may be shared. */
    int error = cv_chunk_acquire_writable(&d->chunks, object, pos == 0, &chunk);
    if (error) return fail_object(d, object, error, "create", err);
    error = cv_file_write(chunk.file, src, size, pos);
    cv_chunk_release(chunk);
    return error ? fail_object(d, object, error, "write", err) : CV_OK;
}

/* Gets the access that new chunk files get. Returns false if it is unknown. */
static bool access_of_new(const directory_store *d, cv_os_access *out)
{
    *out = d->chunks.access;
    if (!d->chunks.has_access && cv_file_get_access(d->lock, out)) return false;
    out->mode &= 0666;
    return true;
}

static bool has_owner(cv_file file, const cv_os_access *access)
{
    cv_os_access is = {0};
    return cv_file_get_access(file, &is) == 0 && is.user == access->user &&
           is.group == access->group;
}

/* Sets the mode of a linked chunk file, which the umask of the part's writer may have changed. This
 * changes the mode of the part's file, too, even if the merge is rolled back. That is acceptable:
 * readers of the array may read what is merged into the array. */
static bool give_mode(cv_file file, const cv_os_access *access)
{
    cv_os_access is = {0};
    if (cv_file_get_access(file, &is)) return false;
    if (is.mode == access->mode) return true;
    return cv_file_set_access(file, access) == 0 && cv_file_get_access(file, &is) == 0 &&
           is.mode == access->mode;
}

/* Links a chunk file. Sets its mode once the new name is known to be this file, not a symlink. */
static bool link_chunk(directory_store *d, cv_object object, directory_store *other,
                       cv_object there, cv_file file)
{
    cv_os_access access;
    if (!access_of_new(d, &access) || !has_owner(file, &access)) return false;
    if (cv_chunk_link(&d->chunks, object, &other->chunks, there, file)) return false;
    if (give_mode(file, &access) && cv_shared_chunks_add(&d->shared, object, file))
        return true;
    (void)cv_chunk_remove(&d->chunks, object);
    return false;
}

static bool directory_share(cv_store *store, cv_object object, cv_store *from,
                            cv_object there, uint64_t size)
{
    directory_store *d = (directory_store *)store, *other = (directory_store *)from;
    cv_chunk_handle chunk;
    uint64_t found;
    if (check_chunk(store, object, NULL) != CV_OK) return false;
    if (cv_chunk_acquire(&other->chunks, there, &chunk)) return false;
    bool shared = cv_file_size(chunk.file, &found) == 0 && found == size &&
                  link_chunk(d, object, other, there, chunk.file);
    cv_chunk_release(chunk);
    return shared;
}

static cv_status directory_truncate(cv_store *store, cv_object object, uint64_t size,
                                    cv_error *err)
{
    directory_store *d = (directory_store *)store;
    cv_chunk_handle chunk;
    CV_TRY(check_chunk(store, object, err));
    int error = cv_chunk_acquire_writable(&d->chunks, object, false, &chunk);
    if (error) return fail_object(d, object, error, "open", err);
    error = cv_file_truncate(chunk.file, size);
    cv_chunk_release(chunk);
    return error ? fail_object(d, object, error, "cut", err) : CV_OK;
}

/* For CV_FRAME_OBJECT, syncs the directory's names, because `replace` has synced the bytes. */
static cv_status directory_sync(cv_store *store, cv_object object, cv_error *err)
{
    directory_store *d = (directory_store *)store;
    if (object == CV_FRAME_OBJECT) {
        int error = cv_dir_sync(d->dir);
        if (!error) return CV_OK;
        return cv_fail_sys(err, error, "cannot sync the directory %s", d->shown.text);
    }
    held_object held;
    CV_TRY(hold(d, object, &held, err));
    int error = cv_file_sync(held.file);
    let_go(d, held);
    return error ? fail_object(d, object, error, "sync", err) : CV_OK;
}

/* Gives the new frame the access of the current frame or of the array that will be replaced.
 * Returns an errno number. */
static int give_frame_access(const directory_store *d, cv_file frame)
{
    cv_file old;
    cv_os_access access;
    int error = cv_open_file(d->dir, CV_SFRAME_FRAME, CV_OPEN_READ, 0, &old);
    if (error == ENOENT)
        return d->chunks.has_access ? cv_file_set_access(frame, &d->chunks.access) : 0;
    if (error) return error;
    error = cv_file_get_access(old, &access);
    if (!error) error = cv_file_take_access(frame, &access, old);
    cv_file_close(&old);
    return error;
}

/* Writes the new frame under a temporary name and renames it. Returns 0 or an errno number. */
static int write_new_frame(directory_store *d, const void *bytes, size_t size, bool durable,
                           cv_file *out)
{
    uint32_t mode = d->chunks.has_access ? 0600 : 0666;
    unsigned how = CV_OPEN_BOTH | CV_OPEN_CREATE | CV_OPEN_NEW;
    (void)cv_dir_remove(d->dir, CV_SFRAME_NEW_FRAME); /* a crash may have left it */
    int error = cv_open_file(d->dir, CV_SFRAME_NEW_FRAME, how, mode, out);
    if (error) return error;
    if (d->chunks.has_access) error = give_frame_access(d, *out);
    if (!error) error = cv_file_write(*out, bytes, size, 0);
    if (!error && durable) error = cv_file_sync(*out);
    if (!error) error = cv_dir_rename(d->dir, CV_SFRAME_NEW_FRAME, CV_SFRAME_FRAME);
    if (!error) return 0;
    cv_file_close(out);
    (void)cv_dir_remove(d->dir, CV_SFRAME_NEW_FRAME);
    return error;
}

static cv_status directory_replace(cv_store *store, const void *bytes, size_t size,
                                   bool durable, cv_error *err)
{
    directory_store *d = (directory_store *)store;
    cv_file frame;
    CV_TRY(cv_store_check_writable(store, err));
    CV_TRY(cv_shared_chunks_check(&d->shared, d->dir, err));
    int error = write_new_frame(d, bytes, size, durable, &frame);
    if (error)
        return cv_fail_sys(err, error, "cannot replace the frame of %s", d->shown.text);
    use_frame(d, frame);
    cv_shared_chunks_forget(&d->shared);
    return CV_OK;
}

static cv_status directory_remove(cv_store *store, cv_object object, cv_error *err)
{
    directory_store *d = (directory_store *)store;
    CV_TRY(check_chunk(store, object, err));
    int error = cv_chunk_remove(&d->chunks, object);
    return error ? fail_object(d, object, error, "remove", err) : CV_OK;
}

static cv_status directory_list(cv_store *store, cv_object **objects, size_t *n,
                                cv_error *err)
{
    directory_store *d = (directory_store *)store;
    int error = cv_sframe_list(d->dir, objects, n);
    if (!error) return CV_OK;
    if (error == ENOMEM) return cv_fail_memory(err, *n * sizeof **objects, "a list of files");
    return cv_fail_sys(err, error, "cannot list the directory %s", d->shown.text);
}

/* ---- Opening and closing ----
 *
 * Operations on the directory as a whole: readers, name, locks, access, open, create, publish,
 * close, delete. */

/* ---- Readers ------------------------------------------------------------ */

static void directory_reads_state(cv_store *store, uint64_t state)
{
    cv_file self = directory_self((directory_store *)store);
    if (state)
        (void)cv_file_share_number(self, state);
    else
        cv_file_unshare(self);
}

static bool directory_has_readers(cv_store *store)
{
    return cv_file_is_shared(directory_self((directory_store *)store));
}

static bool directory_has_others(cv_store *store, uint64_t state)
{
    return cv_file_is_shared_but(directory_self((directory_store *)store), state);
}

/* ---- Publishing and closing --------------------------------------------- */

/* Updates the access of all files if the access of the replaced array has changed since the files
 * were created. */
static int give_files_access(directory_store *d)
{
    cv_likeness like = cv_target_likeness(&d->place.old, true);
    const cv_os_access *a = &d->chunks.access, *b = &like.inner;
    cv_object *ids;
    size_t n;
    like.inner.mode &= 0666;
    bool same = a->mode == b->mode && a->user == b->user && a->group == b->group;
    if (!like.known || (d->chunks.has_access && same)) return 0;
    cv_chunk_files_set_access(&d->chunks, b);
    int error = cv_file_set_access(d->lock, b);
    if (!error) error = cv_sframe_list(d->dir, &ids, &n);
    if (error) return error;
    for (size_t i = 0; i < n && !error; i++) {
        cv_chunk_handle chunk;
        error = cv_chunk_acquire(&d->chunks, ids[i], &chunk);
        if (error) break;
        error = cv_file_set_access(chunk.file, b);
        cv_chunk_release(chunk);
    }
    cv_free(ids);
    return error;
}

static cv_status directory_publish(cv_store *store, bool durable, cv_error *err)
{
    directory_store *d = (directory_store *)store;
    if (store->published) return CV_OK;
    cv_status status = cv_place_publish(&d->place, directory_self(d), d->frame, durable,
                                        &store->published, err);
    if (!store->published) return status;
    cv_home_take(&d->place, directory_self(d), &d->home);
    int error = give_files_access(d);
    if (!d->place.is_left) cv_place_close(&d->place);
    if (status == CV_OK && error)
        status =
            cv_fail_sys(err, error, "cannot set the access of files in %s", d->shown.text);
    return status;
}

/* Also fails if another program replaced the frame: a commit would undo its change. */
static cv_status directory_check_name(cv_store *store, cv_error *err)
{
    directory_store *d = (directory_store *)store;
    CV_TRY(cv_home_check(&d->home, directory_self(d), &d->shown, err));
    cv_rwlock_read(&d->frame_lock);
    bool current = cv_dir_names(d->dir, CV_SFRAME_FRAME, d->frame);
    cv_rwlock_unlock(&d->frame_lock);
    if (current) return CV_OK;
    return cv_fail(err, CATERVA_EIO, -1, "%s of %s was replaced or deleted by others",
                   CV_SFRAME_FRAME, d->shown.text);
}

static void directory_close(cv_store *store)
{
    directory_store *d = (directory_store *)store;
    if (d->holder.give_up) cv_fd_holder_remove(&d->holder);
    cv_chunk_files_close(&d->chunks);
    if (!store->published && !cv_store_is_parents(store)) cv_place_remove_temp(&d->place);
    cv_place_close(&d->place);
    cv_home_close(&d->home);
    cv_file_close(&d->frame);
    cv_free(d->frame_bytes);
    if (cv_os_has_forked(store->opened)) {
        cv_file_unlock(d->lock);
        cv_file_unlock(directory_self(d));
    }
    cv_file_close(&d->lock);
    cv_dir_close(&d->dir);
    cv_shared_chunks_destroy(&d->shared);
    cv_rwlock_destroy(&d->frame_lock);
    cv_free(d);
}

static cv_status directory_create_over(cv_store *old, cv_store **out, cv_error *err);
static cv_status directory_unlink(cv_store *store, cv_watch *watch, cv_error *err);

static const cv_store_ops directory_ops = {
    .name = "directory",
    .stamp = directory_stamp,
    .size = directory_size,
    .check_frame = directory_check_frame,
    .read = directory_read,
    .read_many = directory_read_many,
    .read_at_once = directory_read_at_once,
    .write = directory_write,
    .share = directory_share,
    .truncate = directory_truncate,
    .sync = directory_sync,
    .replace = directory_replace,
    .remove = directory_remove,
    .list = directory_list,
    .publish = directory_publish,
    .reads_state = directory_reads_state,
    .has_readers = directory_has_readers,
    .has_others = directory_has_others,
    .check_name = directory_check_name,
    .create_over = directory_create_over,
    .unlink = directory_unlink,
    .close = directory_close,
};

/* ---- Creating ----------------------------------------------------------- */

/* Makes a store of the open directory. Takes `dir` and `place` (or NULL), even on failure. */
static cv_status new_store(cv_dir dir, const char *path, cv_place *place,
                           directory_store **out, cv_error *err)
{
    directory_store *d = cv_calloc(1, sizeof *d);
    if (!d) {
        if (place) {
            cv_place_remove_temp(place);
            cv_place_close(place);
        }
        cv_dir_close(&dir);
        return cv_fail_memory(err, sizeof *d, "a store");
    }
    d->base = (cv_store){.ops = &directory_ops, .has_chunk_objects = true};
    d->base.published = place == NULL;
    d->base.opened = cv_os_now();
    d->base.slow_writes = true;
    d->dir = dir;
    if (place) {
        d->place = *place;
        cv_place_list(&d->place);
    }
    d->shown = cv_show_path(path);
    cv_rwlock_init(&d->frame_lock);
    cv_shared_chunks_init(&d->shared);
    cv_chunk_files_init(&d->chunks, dir);
    *out = d;
    return CV_OK;
}

/* ---- Opening ------------------------------------------------------------ */

static cv_status take_lock(directory_store *d, cv_error *err)
{
    uint32_t mode = d->chunks.has_access ? 0600 : 0666;
    int error = cv_open_file(d->dir, CV_SFRAME_LOCK, CV_OPEN_BOTH, 0, &d->lock);
    bool is_new = error == ENOENT;
    if (is_new)
        error = cv_open_file(d->dir, CV_SFRAME_LOCK, CV_OPEN_BOTH | CV_OPEN_CREATE, mode,
                             &d->lock);
    if (!error) error = cv_file_lock(d->lock);
    if (!error && is_new && d->chunks.has_access)
        error = cv_file_set_access(d->lock, &d->chunks.access);
    if (error) return cv_fail_lock(err, error, d->shown.text);
    d->base.writable = true;
    return CV_OK;
}

static cv_status open_frame(directory_store *d, cv_error *err)
{
    int error = cv_open_file(d->dir, CV_SFRAME_FRAME, CV_OPEN_READ, 0, &d->frame);
    if (!error) return CV_OK;
    if (error == ENOENT)
        return cv_fail(err, CATERVA_ENOTFOUND, -1,
                       "the directory %s holds no array: it has no %s", d->shown.text,
                       CV_SFRAME_FRAME);
    return cv_fail_sys(err, error, "cannot open %s in %s", CV_SFRAME_FRAME, d->shown.text);
}

/* Makes new files get the access of the frame. */
static void take_access(directory_store *d)
{
    cv_os_access access;
    if (cv_file_get_access(d->frame, &access) == 0)
        cv_chunk_files_set_access(&d->chunks, &access);
}

static cv_status open_once(const char *path, bool writable, directory_store **out,
                           cv_error *err)
{
    cv_dir dir;
    cv_file_info info;
    int error = cv_open_dir(cv_dir_here, path, 0, &dir);
    /* ENOTDIR from a component of the path means that the path does not exist */
    if (error == ENOTDIR && cv_dir_get_info(cv_dir_here, path, &info) == 0)
        return cv_fail_sys(err, ENOTDIR, "cannot open %s", cv_show_path(path).text);
    if (error) return cv_fail_open(err, error, path);
    /* lock before the frame is opened: this lock protects the frame's chunks */
    if (!writable) (void)cv_file_share(cv_dir_as_file(dir));
    CV_TRY(new_store(dir, path, NULL, out, err));
    directory_store *d = *out;
    cv_status status = open_frame(d, err); /* only an array may get a lock file */
    if (status == CV_OK && writable) {
        take_access(d);
        status = take_lock(d, err);
        if (status == CV_OK)
            status = cv_home_find(path, directory_self(d), true, &d->home, err);
    }
    if (status != CV_OK) cv_store_close(&d->base);
    return status;
}

/* Repeats if another process published over the path before the lock was taken. Then the directory
 * has lost its name: a writer's lock in it excludes no writer, and a reader's lock was too late. */
cv_status cv_store_directory_open(const char *path, bool writable, cv_store **out,
                                  cv_error *err)
{
    enum { READER_TRIES = 100 }; /* then a reader does without the check */
    for (int i = 0;; i++) {
        directory_store *d = NULL;
        CV_TRY(open_once(path, writable, &d, err));
        assert(d);
        bool is_it = writable ? cv_home_leads_to(&d->home, directory_self(d))
                              : cv_dir_names(cv_dir_here, path, directory_self(d));
        if (is_it || (!writable && i == READER_TRIES)) {
            if (writable) directory_follow(d); /* no writer replaces this frame now */
            directory_share_descriptors(d);
            *out = &d->base;
            return CV_OK;
        }
        cv_store_close(&d->base);
    }
}

static cv_status create_at(cv_place *place, cv_store **out, cv_error *err)
{
    cv_dir dir;
    place->is_directory = true;
    cv_likeness like = cv_target_likeness(&place->old, true);
    int error = cv_place_create_directory(place, &dir);
    if (error) {
        cv_status status = cv_fail_sys(err, error, "cannot create %s", place->shown.text);
        cv_place_close(place);
        return status;
    }
    directory_store *d = NULL;
    CV_TRY(new_store(dir, place->shown.text, place, &d, err));
    if (like.known) cv_chunk_files_set_access(&d->chunks, &like.inner);
    cv_status status = take_lock(d, err);
    if (status != CV_OK) {
        cv_store_close(&d->base);
        return status;
    }
    directory_share_descriptors(d);
    *out = &d->base;
    return CV_OK;
}

cv_status cv_store_directory_create(const char *path, bool overwrite, cv_store **out,
                                    cv_error *err)
{
    cv_place place;
    CV_TRY(cv_place_open(path, overwrite, &place, err));
    return create_at(&place, out, err);
}

static cv_status directory_create_over(cv_store *old, cv_store **out, cv_error *err)
{
    const directory_store *d = (directory_store *)old;
    cv_place place;
    CV_TRY(cv_home_place(&d->home, directory_self(d), d->frame, &d->shown, &place, err));
    return create_at(&place, out, err);
}

/* ---- Deleting ----------------------------------------------------------- */

static cv_status fail_left(const directory_store *d, const cv_place *place, size_t n,
                           cv_error *err)
{
    return cv_fail(
        err, CATERVA_ESTOPPED, -1,
        "stopped: %s is deleted, but the rest of it is left in %s beside it, after "
        "%zu deleted chunk files",
        d->shown.text, place->temp, n);
}

/* Renames the directory and deletes it. Restores the name if a reader opened the directory
 * meanwhile, or if the watch stops the call before a file is deleted. */
static cv_status delete_at(directory_store *d, cv_place *place, cv_watch *watch,
                           cv_error *err)
{
    int error = EEXIST;
    for (int tries = 0; error == EEXIST && tries < 100; tries++) {
        cv_os_temp_name(place->name, "deleted", place->temp);
        error = cv_dir_rename_new(place->dir, place->name, place->temp);
    }
    if (error) return cv_fail_sys(err, error, "cannot delete %s", d->shown.text);
    size_t n = 0;
    cv_status status = cv_target_refuse_readers(&place->old, &d->shown, err);
    if (status == CV_OK)
        status = cv_sframe_delete_at(place->dir, place->temp, watch, &n, err);
    if (n > 0 && status != CV_OK) return fail_left(d, place, n, err);
    if (status == CV_OK || cv_dir_rename_new(place->dir, place->temp, place->name) == 0)
        return status;
    if (status == CATERVA_ESTOPPED) cv_sframe_remove_at(place->dir, place->temp);
    return CV_OK; /* a new array has the name; readers keep the old */
}

static cv_status directory_unlink(cv_store *store, cv_watch *watch, cv_error *err)
{
    directory_store *d = (directory_store *)store;
    cv_place place;
    CV_TRY(cv_home_place(&d->home, directory_self(d), d->frame, &d->shown, &place, err));
    cv_status status = cv_home_check(&d->home, directory_self(d), &d->shown, err);
    if (status == CV_OK) status = cv_target_refuse_readers(&place.old, &d->shown, err);
    if (status == CV_OK && !cv_sframe_is_array_at(place.dir, place.name))
        status = cv_fail(err, CATERVA_EEXIST, -1,
                         "%s contains files that do not belong to the array: not deleted",
                         d->shown.text);
    if (status == CV_OK) status = delete_at(d, &place, watch, err);
    cv_place_close(&place);
    return status;
}
