/* Room: store. The store of a directory as a whole: who reads it, its name, locks and who
 * may see the files; opening, creating, publishing, closing and deleting it. What its bytes
 * are is told in directory.c. */
#include "store/directory_open.h"

#include "base/heap.h"
#include "store/descriptors.h"
#include "store/directory.h"
#include "store/sframe.h"

#include <assert.h>

/* ---- Who reads it ------------------------------------------------------- */

static void directory_reads_state(cv_store *store, uint64_t state)
{
    cv_file self = cv_directory_self((directory_store *)store);
    if (state)
        (void)cv_file_share_number(self, state);
    else
        cv_file_unshare(self);
}

static bool directory_has_readers(cv_store *store)
{
    return cv_file_is_shared(cv_directory_self((directory_store *)store));
}

static bool directory_has_others(cv_store *store, uint64_t state)
{
    return cv_file_is_shared_but(cv_directory_self((directory_store *)store), state);
}

/* ---- Publishing and closing --------------------------------------------- */

/* What is replaced may have been given other access since the files were made. */
static int liken_files(directory_store *d)
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
    cv_status status = cv_place_publish(&d->place, cv_directory_self(d), d->frame, durable,
                                        &store->published, err);
    if (!store->published) return status;
    cv_home_take(&d->place, cv_directory_self(d), &d->home);
    int error = liken_files(d);
    if (!d->place.is_left) cv_place_close(&d->place);
    if (status == CV_OK && error)
        status =
            cv_fail_sys(err, error, "cannot set the access of files in %s", d->shown.text);
    return status;
}

/* Also the frame must be the one that was put there last: a commit would undo what
 * others have put in its place. */
static cv_status directory_check_name(cv_store *store, cv_error *err)
{
    directory_store *d = (directory_store *)store;
    CV_TRY(cv_home_check(&d->home, cv_directory_self(d), &d->shown, err));
    cv_rwlock_read(&d->frame_lock);
    bool current = cv_dir_names(d->dir, CV_SFRAME_FRAME, d->frame);
    cv_rwlock_unlock(&d->frame_lock);
    if (current) return CV_OK;
    return cv_fail(err, CATERVA_EIO, -1, "others replaced or deleted %s of %s",
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
        cv_file_unlock(cv_directory_self(d));
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
    .stamp = cv_directory_stamp,
    .size = cv_directory_size,
    .check_frame = cv_directory_check_frame,
    .read = cv_directory_read,
    .read_many = cv_directory_read_many,
    .read_at_once = cv_directory_read_at_once,
    .write = cv_directory_write,
    .share = cv_directory_share,
    .truncate = cv_directory_truncate,
    .sync = cv_directory_sync,
    .replace = cv_directory_replace,
    .remove = cv_directory_remove,
    .list = cv_directory_list,
    .publish = directory_publish,
    .reads_state = directory_reads_state,
    .has_readers = directory_has_readers,
    .has_others = directory_has_others,
    .check_name = directory_check_name,
    .create_over = directory_create_over,
    .unlink = directory_unlink,
    .close = directory_close,
};

/* ---- Making ------------------------------------------------------------- */

/* A store of nothing but the open directory. Takes over `dir` and, when it is not NULL,
 * `place`, also on failure. */
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

/* New files let in whom the frame does. */
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
    if (error == ENOTDIR && cv_dir_get_info(cv_dir_here, path, &info) ==
                                0) /* else a part of the path is missing */
        return cv_fail_sys(err, ENOTDIR, "cannot open %s", cv_show_path(path).text);
    if (error) return cv_fail_open(err, error, path);
    if (!writable)
        (void)cv_file_share(cv_dir_as_file(dir)); /* before the frame that it keeps alive */
    CV_TRY(new_store(dir, path, NULL, out, err));
    directory_store *d = *out;
    cv_status status = open_frame(d, err); /* first: a lock file only in arrays */
    if (status == CV_OK && writable) {
        take_access(d);
        status = take_lock(d, err);
        if (status == CV_OK)
            status = cv_home_find(path, cv_directory_self(d), true, &d->home, err);
    }
    if (status != CV_OK) cv_store_close(&d->base);
    return status;
}

/* Between opening and locking another process may publish over the path: a
 * lock in a directory without its name would exclude nobody, and a reader's there may
 * come too late to keep the files. */
cv_status cv_store_directory_open(const char *path, bool writable, cv_store **out,
                                  cv_error *err)
{
    enum { READER_TRIES = 100 }; /* what only reads also opens where names are odd */
    for (int i = 0;; i++) {
        directory_store *d = NULL;
        CV_TRY(open_once(path, writable, &d, err));
        assert(d);
        bool is_it = writable ? cv_home_leads_to(&d->home, cv_directory_self(d))
                              : cv_dir_names(cv_dir_here, path, cv_directory_self(d));
        if (is_it || (!writable && i == READER_TRIES)) {
            if (writable)
                cv_directory_follow(d); /* as it is now that nobody can replace it */
            cv_directory_share_descriptors(d);
            *out = &d->base;
            return CV_OK;
        }
        cv_store_close(&d->base);
    }
}

/* Takes over the place, also on failure. */
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
    cv_directory_share_descriptors(d);
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
    CV_TRY(cv_home_place(&d->home, cv_directory_self(d), d->frame, &d->shown, &place, err));
    return create_at(&place, out, err);
}

/* ---- Deleting ----------------------------------------------------------- */

static cv_status fail_left(const directory_store *d, const cv_place *place, size_t n,
                           cv_error *err)
{
    return cv_fail(
        err, CATERVA_ESTOPPED, -1,
        "stopped: %s is deleted, but for what is left of it in %s beside it, after "
        "%zu files of chunks",
        d->shown.text, place->temp, n);
}

/* Who came to read since we asked, and found the name, keeps the files: it comes back. So it
 * does for who stops before a file is gone. */
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
    return CV_OK; /* a new one is there already: a reader keeps its own */
}

static cv_status directory_unlink(cv_store *store, cv_watch *watch, cv_error *err)
{
    directory_store *d = (directory_store *)store;
    cv_place place;
    CV_TRY(cv_home_place(&d->home, cv_directory_self(d), d->frame, &d->shown, &place, err));
    cv_status status = cv_home_check(&d->home, cv_directory_self(d), &d->shown, err);
    if (status == CV_OK) status = cv_target_refuse_readers(&place.old, &d->shown, err);
    if (status == CV_OK && !cv_sframe_is_array_at(place.dir, place.name))
        status = cv_fail(err, CATERVA_EEXIST, -1,
                         "%s holds other files than the array's: not deleted", d->shown.text);
    if (status == CV_OK) status = delete_at(d, &place, watch, err);
    cv_place_close(&place);
    return status;
}
