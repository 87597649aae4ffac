/* Room: store. A sparse frame: a directory with chunks.b2frame and one file for
 * each chunk. Chunk files are written once under an id of their own; a commit
 * puts a new chunks.b2frame in the place of the old one by rename, so the frame
 * is never changed in place and a reader that has it open keeps what it began
 * with. Everything is done relative to the open directory: its own rename at
 * publishing changes nothing here.
 *
 * The writer's lock lies on a file of its own, because chunks.b2frame is
 * another file after each commit. */
#include "store/directory.h"

#include "base/heap.h"
#include "store/deep.h"
#include "store/descriptors.h"
#include "store/sframe.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* ---- Words -------------------------------------------------------------- */

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

/* EIO of one object: "cannot <what> ...". */
static cv_status fail_object(const directory_store *d, cv_object object, int sys_errno,
                             const char *what, cv_error *err)
{
    return cv_fail_sys(err, sys_errno, "cannot %s %s in %s", what, object_name(object).text,
                       d->shown.text);
}

/* ---- Reading ------------------------------------------------------------ */

/* An object held open: the frame under its lock, or a chunk. */
typedef struct held_object {
    cv_file file;
    const uint8_t *bytes; /* instead of the file, when it is in memory */
    uint64_t size;        /* of them */
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

cv_status cv_directory_check_frame(cv_store *store, cv_error *err)
{
    cv_file_info info;
    directory_store *d = (directory_store *)store;
    int error = cv_dir_get_info(d->dir, CV_SFRAME_FRAME, &info);
    if (error == ENOENT) return fail_missing(d, CV_FRAME_OBJECT, err);
    return error ? fail_object(d, CV_FRAME_OBJECT, error, "look at", err) : CV_OK;
}

/* The open frame; takes it over. */
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

/* A frame is never changed in its place: a copy is as good. With the lock. */
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

void cv_directory_share_descriptors(directory_store *d)
{
    d->holder.give_up = give_up;
    cv_fd_holder_add(&d->holder);
}

/* A writer elsewhere may have put a new frame in place. Asking for the frame's
 * size, with which every look at a frame begins, turns to the new one; reads
 * in between stay with one and the same file. */
void cv_directory_follow(directory_store *d)
{
    cv_file frame;
    cv_rwlock_read(&d->frame_lock);
    bool current = cv_dir_names(d->dir, CV_SFRAME_FRAME, d->frame);
    cv_rwlock_unlock(&d->frame_lock);
    if (current) return;
    if (cv_open_file(d->dir, CV_SFRAME_FRAME, CV_OPEN_READ, 0, &frame) == 0)
        use_frame(d, frame);
}

cv_status cv_directory_size(cv_store *store, cv_object object, uint64_t *size, cv_error *err)
{
    directory_store *d = (directory_store *)store;
    held_object held;
    if (object == CV_FRAME_OBJECT && !store->writable) cv_directory_follow(d);
    CV_TRY(hold(d, object, &held, err));
    int error = size_of_held(&held, size);
    let_go(d, held);
    return error ? fail_object(d, object, error, "look at", err) : CV_OK;
}

/* The frame's file is never changed in place by this library, but by others. One that was
 * given up keeps its zeros: the state was loaded before. */
void cv_directory_stamp(cv_store *store, cv_stamp *out)
{
    directory_store *d = (directory_store *)store;
    cv_file_info info;
    cv_rwlock_read(&d->frame_lock);
    int error = cv_file_is_open(d->frame) ? cv_file_get_info(d->frame, &info) : ENOENT;
    cv_rwlock_unlock(&d->frame_lock);
    if (error) return;
    *out = (cv_stamp){.object = info.inode, .time = info.changed_ns, .size = info.size};
}

cv_status cv_directory_read(cv_store *store, cv_object object, uint64_t pos, void *dst,
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

cv_at_once cv_directory_read_at_once(cv_store *store, const cv_store_range *r)
{
    directory_store *d = (directory_store *)store;
    held_object held;
    cv_at_once result = CV_AT_ONCE_UNKNOWN; /* where it fails, the read says why */
    if (hold(d, r->object, &held, NULL) != CV_OK) return result;
    if (!held.bytes) result = cv_file_read_at_once(held.file, r->dst, r->size, r->pos);
    let_go(d, held);
    return result;
}

static void ask_for(cv_store *store, const cv_store_range *range)
{
    directory_store *d = (directory_store *)store;
    held_object held;
    if (hold(d, range->object, &held, NULL) != CV_OK) return;
    if (!held.bytes) cv_file_fetch(held.file, range->pos, range->size);
    let_go(d, held);
}

cv_status cv_directory_read_many(cv_store *store, const cv_store_range *ranges, size_t n,
                                 const cv_arrivals *arrivals, cv_error *err)
{
    return cv_store_read_deep(store, ranges, n, arrivals, ask_for, err);
}

/* ---- Changing ----------------------------------------------------------- */

/* The frame changes by replace, the chunks are written once. */
static cv_status check_chunk(const cv_store *store, cv_object object, cv_error *err)
{
    CV_TRY(cv_store_check_writable(store, err));
    if (object >= 0) return CV_OK;
    return cv_fail(err, CATERVA_EINVAL, -1,
                   "the frame of a directory is replaced, not written");
}

cv_status cv_directory_write(cv_store *store, cv_object object, uint64_t pos, const void *src,
                             size_t size, cv_error *err)
{
    directory_store *d = (directory_store *)store;
    cv_chunk_handle chunk;
    CV_TRY(check_chunk(store, object, err));
    /* At 0 a chunk begins: what an earlier crash left under its id goes, which may be one
     * that is shared. */
    int error = cv_chunk_acquire_writable(&d->chunks, object, pos == 0, &chunk);
    if (error) return fail_object(d, object, error, "create", err);
    error = cv_file_write(chunk.file, src, size, pos);
    cv_chunk_release(chunk);
    return error ? fail_object(d, object, error, "write", err) : CV_OK;
}

/* What a file that is made here would be given. */
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

/* Who made it may have had another umask. Its other name has no more than these permissions
 * either from then on, whatever becomes of what is pending here: who may read the array may
 * read what is merged into it. */
static bool give_mode(cv_file file, const cv_os_access *access)
{
    cv_os_access is = {0};
    if (cv_file_get_access(file, &is)) return false;
    if (is.mode == access->mode) return true;
    return cv_file_set_access(file, access) == 0 && cv_file_get_access(file, &is) == 0 &&
           is.mode == access->mode;
}

/* The mode is given when it is sure that the name is the file's own and no symbolic link. */
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

bool cv_directory_share(cv_store *store, cv_object object, cv_store *from, cv_object there,
                        uint64_t size)
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

cv_status cv_directory_truncate(cv_store *store, cv_object object, uint64_t size,
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

/* Of a directory, CV_FRAME_OBJECT means the names in it: the bytes of the
 * frame itself are synced by replace. */
cv_status cv_directory_sync(cv_store *store, cv_object object, cv_error *err)
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

/* The frame as it stands lets in whom the new one will; before the first one, what the
 * array replaces says it. Returns an errno number. */
static int liken_frame(const directory_store *d, cv_file frame)
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

/* Everything but the rename. Returns an errno number. */
static int write_new_frame(directory_store *d, const void *bytes, size_t size, bool durable,
                           cv_file *out)
{
    uint32_t mode = d->chunks.has_access ? 0600 : 0666;
    unsigned how = CV_OPEN_BOTH | CV_OPEN_CREATE | CV_OPEN_NEW;
    (void)cv_dir_remove(d->dir, CV_SFRAME_NEW_FRAME); /* what a crash left */
    int error = cv_open_file(d->dir, CV_SFRAME_NEW_FRAME, how, mode, out);
    if (error) return error;
    if (d->chunks.has_access) error = liken_frame(d, *out);
    if (!error) error = cv_file_write(*out, bytes, size, 0);
    if (!error && durable) error = cv_file_sync(*out);
    if (!error) error = cv_dir_rename(d->dir, CV_SFRAME_NEW_FRAME, CV_SFRAME_FRAME);
    if (!error) return 0;
    cv_file_close(out);
    (void)cv_dir_remove(d->dir, CV_SFRAME_NEW_FRAME);
    return error;
}

cv_status cv_directory_replace(cv_store *store, const void *bytes, size_t size, bool durable,
                               cv_error *err)
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

cv_status cv_directory_remove(cv_store *store, cv_object object, cv_error *err)
{
    directory_store *d = (directory_store *)store;
    CV_TRY(check_chunk(store, object, err));
    int error = cv_chunk_remove(&d->chunks, object);
    return error ? fail_object(d, object, error, "remove", err) : CV_OK;
}

cv_status cv_directory_list(cv_store *store, cv_object **objects, size_t *n, cv_error *err)
{
    directory_store *d = (directory_store *)store;
    int error = cv_sframe_list(d->dir, objects, n);
    if (!error) return CV_OK;
    if (error == ENOMEM) return cv_fail_memory(err, *n * sizeof **objects, "a list of files");
    return cv_fail_sys(err, error, "cannot list the directory %s", d->shown.text);
}
