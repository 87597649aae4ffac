/* Room: store. A sparse frame: a directory with chunks.b2frame and one file for
 * each chunk. Chunk files are written once under an id of their own; a commit
 * puts a new chunks.b2frame in the place of the old one by rename, so the frame
 * is never changed in place and a reader that has it open keeps what it began
 * with. Everything is done relative to the open directory: its own rename at
 * publishing changes nothing here.
 *
 * The writer's lock lies on a file of its own, because chunks.b2frame is
 * another file after each commit. */
#include "base/os.h"
#include "store/chunk_files.h"
#include "store/internal.h"
#include "store/temporaries.h"
#include "store/sframe.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct directory_store {
    cv_store base;
    int dir_fd;
    int lock_fd;                 /* -1: opened for reading */
    int frame_fd;                /* -1: none yet */
    pthread_rwlock_t frame_lock; /* over frame_fd: held while it is used */
    cv_chunk_files chunks;
    cv_place place; /* of a created one; closed: dir_fd is -1 */
    cv_shown_path shown;
} directory_store;

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
    int fd;
    bool is_chunk;
    cv_chunk_handle chunk;
} held_object;

static cv_status hold(directory_store *d, cv_object object, held_object *held, cv_error *err)
{
    *held = (held_object){.is_chunk = object >= 0};
    if (held->is_chunk) {
        int error = cv_chunk_acquire(&d->chunks, object, &held->chunk);
        held->fd = held->chunk.fd;
        if (error == ENOENT) return fail_missing(d, object, err);
        return error ? fail_object(d, object, error, "open", err) : CV_OK;
    }
    pthread_rwlock_rdlock(&d->frame_lock);
    held->fd = d->frame_fd;
    if (held->fd >= 0) return CV_OK;
    pthread_rwlock_unlock(&d->frame_lock);
    return fail_missing(d, object, err);
}

static void let_go(directory_store *d, held_object held)
{
    if (held.is_chunk)
        cv_chunk_release(held.chunk);
    else
        pthread_rwlock_unlock(&d->frame_lock);
}

static void use_frame(directory_store *d, int fd)
{
    pthread_rwlock_wrlock(&d->frame_lock);
    int old = d->frame_fd;
    d->frame_fd = fd;
    pthread_rwlock_unlock(&d->frame_lock);
    if (old >= 0) close(old);
}

/* A writer elsewhere may have put a new frame in place. Asking for the frame's
 * size, with which every look at a frame begins, turns to the new one; reads
 * in between stay with one and the same file. */
static void follow_frame(directory_store *d)
{
    int fd;
    pthread_rwlock_rdlock(&d->frame_lock);
    bool current = cv_os_names_fd_at(d->dir_fd, CV_SFRAME_FRAME, d->frame_fd);
    pthread_rwlock_unlock(&d->frame_lock);
    if (current) return;
    if (cv_os_open_at(d->dir_fd, CV_SFRAME_FRAME, O_RDONLY, 0, &fd) == 0) use_frame(d, fd);
}

static cv_status directory_size(cv_store *store, cv_object object, uint64_t *size,
                                cv_error *err)
{
    directory_store *d = (directory_store *)store;
    held_object held;
    struct stat st;
    if (object == CV_FRAME_OBJECT && !store->writable) follow_frame(d);
    CV_TRY(hold(d, object, &held, err));
    int error = fstat(held.fd, &st) ? errno : 0;
    let_go(d, held);
    if (error) return fail_object(d, object, error, "look at", err);
    *size = (uint64_t)st.st_size;
    return CV_OK;
}

static cv_status directory_read(cv_store *store, cv_object object, uint64_t pos, void *dst,
                                size_t size, cv_error *err)
{
    directory_store *d = (directory_store *)store;
    held_object held;
    struct stat st = {0};
    size_t done;
    CV_TRY(hold(d, object, &held, err));
    int error = cv_os_read(held.fd, dst, size, pos, &done);
    if (!error && done < size) error = fstat(held.fd, &st) ? errno : 0;
    let_go(d, held);
    if (error) return fail_object(d, object, error, "read", err);
    if (done == size) return CV_OK;
    return cv_fail_past_end(err, object_name(object).text, pos, size, (uint64_t)st.st_size);
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

static cv_status directory_write(cv_store *store, cv_object object, uint64_t pos,
                                 const void *src, size_t size, cv_error *err)
{
    directory_store *d = (directory_store *)store;
    cv_chunk_handle chunk;
    CV_TRY(check_chunk(store, object, err));
    /* At 0 a chunk begins: what an earlier crash left under its id goes. */
    int error = cv_chunk_acquire_writable(&d->chunks, object, pos == 0, &chunk);
    if (error) return fail_object(d, object, error, "create", err);
    error = cv_os_write(chunk.fd, src, size, pos);
    cv_chunk_release(chunk);
    return error ? fail_object(d, object, error, "write", err) : CV_OK;
}

static cv_status directory_truncate(cv_store *store, cv_object object, uint64_t size,
                                    cv_error *err)
{
    directory_store *d = (directory_store *)store;
    cv_chunk_handle chunk;
    CV_TRY(check_chunk(store, object, err));
    int error = cv_chunk_acquire_writable(&d->chunks, object, false, &chunk);
    if (error) return fail_object(d, object, error, "open", err);
    error = size > INT64_MAX ? EFBIG : ftruncate(chunk.fd, (off_t)size) ? errno : 0;
    cv_chunk_release(chunk);
    return error ? fail_object(d, object, error, "cut", err) : CV_OK;
}

/* Of a directory, CV_FRAME_OBJECT means the names in it: the bytes of the
 * frame itself are synced by replace. */
static cv_status directory_sync(cv_store *store, cv_object object, cv_error *err)
{
    directory_store *d = (directory_store *)store;
    if (object == CV_FRAME_OBJECT) {
        int error = cv_os_sync_directory(d->dir_fd);
        if (!error) return CV_OK;
        return cv_fail_sys(err, error, "cannot sync the directory %s", d->shown.text);
    }
    held_object held;
    CV_TRY(hold(d, object, &held, err));
    int error = cv_os_sync_data(held.fd);
    let_go(d, held);
    return error ? fail_object(d, object, error, "sync", err) : CV_OK;
}

/* Everything but the rename. Returns an errno number. */
static int write_new_frame(directory_store *d, const void *bytes, size_t size, bool durable,
                           int *fd)
{
    int error =
        cv_os_open_at(d->dir_fd, CV_SFRAME_NEW_FRAME, O_RDWR | O_CREAT | O_TRUNC, 0666, fd);
    if (error) return error;
    error = cv_os_write(*fd, bytes, size, 0);
    if (!error && durable) error = cv_os_sync_data(*fd);
    if (!error && renameat(d->dir_fd, CV_SFRAME_NEW_FRAME, d->dir_fd, CV_SFRAME_FRAME))
        error = errno;
    if (!error) return 0;
    close(*fd);
    unlinkat(d->dir_fd, CV_SFRAME_NEW_FRAME, 0);
    return error;
}

static cv_status directory_replace(cv_store *store, const void *bytes, size_t size,
                                   bool durable, cv_error *err)
{
    directory_store *d = (directory_store *)store;
    int fd;
    CV_TRY(cv_store_check_writable(store, err));
    int error = write_new_frame(d, bytes, size, durable, &fd);
    if (error)
        return cv_fail_sys(err, error, "cannot replace the frame of %s", d->shown.text);
    use_frame(d, fd);
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
    int error = cv_sframe_list(d->dir_fd, objects, n);
    if (!error) return CV_OK;
    if (error == ENOMEM) return cv_fail_memory(err, *n * sizeof **objects, "a list of files");
    return cv_fail_sys(err, error, "cannot list the directory %s", d->shown.text);
}

static bool directory_has_readers(cv_store *store)
{
    return cv_os_is_shared(((directory_store *)store)->dir_fd);
}

/* ---- Publishing and closing --------------------------------------------- */

static cv_status directory_publish(cv_store *store, bool durable, cv_error *err)
{
    directory_store *d = (directory_store *)store;
    if (store->published) return CV_OK;
    cv_status status = cv_place_publish(&d->place, durable, &store->published, err);
    if (store->published) cv_place_close(&d->place);
    return status;
}

static void close_if_open(int fd)
{
    if (fd >= 0) close(fd);
}

static void directory_close(cv_store *store)
{
    directory_store *d = (directory_store *)store;
    cv_chunk_files_close(&d->chunks);
    if (!store->published) cv_place_remove_temp(&d->place);
    cv_place_close(&d->place);
    close_if_open(d->frame_fd);
    close_if_open(d->lock_fd);
    close_if_open(d->dir_fd);
    pthread_rwlock_destroy(&d->frame_lock);
    free(d);
}

static const cv_store_ops directory_ops = {
    .name = "directory",
    .size = directory_size,
    .read = directory_read,
    .write = directory_write,
    .truncate = directory_truncate,
    .sync = directory_sync,
    .replace = directory_replace,
    .remove = directory_remove,
    .list = directory_list,
    .publish = directory_publish,
    .has_readers = directory_has_readers,
    .close = directory_close,
};

/* ---- Opening ------------------------------------------------------------ */

/* Takes over `dir_fd` and, when not NULL, `place`, also on failure. */
static cv_status new_store(int dir_fd, const char *path, cv_place *place,
                           directory_store **out, cv_error *err)
{
    directory_store *d = calloc(1, sizeof *d);
    if (!d) {
        if (place) {
            cv_place_remove_temp(place);
            cv_place_close(place);
        }
        close(dir_fd);
        return cv_fail_memory(err, sizeof *d, "a store");
    }
    d->base = (cv_store){.ops = &directory_ops, .has_chunk_objects = true};
    d->base.published = place == NULL;
    d->dir_fd = dir_fd;
    d->lock_fd = -1;
    d->frame_fd = -1;
    d->place = place ? *place : (cv_place){.dir_fd = -1};
    if (place) cv_temporaries_add(&d->place);
    d->shown = cv_show_path(path);
    pthread_rwlock_init(&d->frame_lock, NULL);
    cv_chunk_files_init(&d->chunks, dir_fd);
    *out = d;
    return CV_OK;
}

static cv_status take_lock(directory_store *d, cv_error *err)
{
    int error = cv_os_open_at(d->dir_fd, CV_SFRAME_LOCK, O_RDWR | O_CREAT, 0666, &d->lock_fd);
    if (!error) error = cv_os_lock(d->lock_fd);
    if (error) return cv_fail_lock(err, error, d->shown.text);
    d->base.writable = true;
    return CV_OK;
}

static cv_status open_frame(directory_store *d, cv_error *err)
{
    int error = cv_os_open_at(d->dir_fd, CV_SFRAME_FRAME, O_RDONLY, 0, &d->frame_fd);
    if (!error) return CV_OK;
    if (error == ENOENT)
        return cv_fail(err, CATERVA_ENOTFOUND, -1,
                       "the directory %s holds no array: it has no %s", d->shown.text,
                       CV_SFRAME_FRAME);
    return fail_object(d, CV_FRAME_OBJECT, error, "open", err);
}

static cv_status open_once(const char *path, bool writable, directory_store **out,
                           cv_error *err)
{
    int dir_fd = -1;
    int error = cv_os_open_at(AT_FDCWD, path, O_RDONLY | O_DIRECTORY, 0, &dir_fd);
    struct stat st;
    if (error == ENOTDIR && stat(path, &st) == 0) /* else a part of the path is missing */
        return cv_fail_sys(err, ENOTDIR, "cannot open %s", cv_show_path(path).text);
    if (error) return cv_fail_open(err, error, path);
    if (!writable) (void)cv_os_share(dir_fd); /* before the frame that it keeps alive */
    CV_TRY(new_store(dir_fd, path, NULL, out, err));
    cv_status status = open_frame(*out, err); /* first: a lock file only in arrays */
    if (status == CV_OK && writable) status = take_lock(*out, err);
    if (status != CV_OK) directory_close(&(*out)->base);
    return status;
}

/* Between opening and locking another process may publish over the path: a
 * lock in a directory without its name would exclude nobody. */
cv_status cv_store_directory_open(const char *path, bool writable, cv_store **out,
                                  cv_error *err)
{
    for (;;) {
        directory_store *d = NULL;
        CV_TRY(open_once(path, writable, &d, err));
        assert(d);
        if (!writable || cv_os_names_fd_at(AT_FDCWD, path, d->dir_fd)) {
            if (writable) follow_frame(d); /* as it is now that nobody can replace it */
            *out = &d->base;
            return CV_OK;
        }
        directory_close(&d->base);
    }
}

cv_status cv_store_directory_create(const char *path, bool overwrite, cv_store **out,
                                    cv_error *err)
{
    cv_place place;
    int dir_fd = -1;
    CV_TRY(cv_place_open(path, overwrite, &place, err));
    place.is_directory = true;
    int error = cv_os_create_temp_directory_at(place.dir_fd, place.name, place.temp, &dir_fd);
    if (error) {
        cv_status status = cv_fail_sys(err, error, "cannot create %s", place.shown.text);
        cv_place_close(&place);
        return status;
    }
    directory_store *d = NULL;
    CV_TRY(new_store(dir_fd, path, &place, &d, err));
    cv_status status = take_lock(d, err);
    if (status != CV_OK) {
        directory_close(&d->base);
        return status;
    }
    *out = &d->base;
    return CV_OK;
}
