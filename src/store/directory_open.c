/* Room: store. Opening, creating and deleting directories of arrays: locks, names, and
 * who may see the files. */
#include "store/directory_open.h"

#include "store/descriptors.h"
#include "store/directory.h"
#include "store/sframe.h"

#include <assert.h>

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
    CV_TRY(cv_directory_new(dir, path, NULL, out, err));
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
    CV_TRY(cv_directory_new(dir, place->shown.text, place, &d, err));
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

cv_status cv_store_directory_create_over(cv_store *old, cv_store **out, cv_error *err)
{
    const directory_store *d = (directory_store *)old;
    cv_place place;
    CV_TRY(cv_home_place(&d->home, cv_directory_self(d), d->frame, &d->shown, &place, err));
    return create_at(&place, out, err);
}

/* ---- Deleting ----------------------------------------------------------- */

/* Who came to read since we asked, and found the name, keeps the files: it comes back. */
static cv_status delete_at(directory_store *d, cv_place *place, cv_error *err)
{
    int error = EEXIST;
    for (int tries = 0; error == EEXIST && tries < 100; tries++) {
        cv_os_temp_name(place->name, "deleted", place->temp);
        error = cv_dir_rename_new(place->dir, place->name, place->temp);
    }
    if (error) return cv_fail_sys(err, error, "cannot delete %s", d->shown.text);
    cv_status status = cv_target_refuse_readers(&place->old, &d->shown, err);
    if (status == CV_OK)
        cv_sframe_remove_at(place->dir, place->temp);
    else if (cv_dir_rename_new(place->dir, place->temp, place->name) != 0)
        return CV_OK; /* a new one is there already: the reader keeps its own */
    return status;
}

cv_status cv_store_directory_delete(cv_store *store, cv_error *err)
{
    directory_store *d = (directory_store *)store;
    cv_place place;
    CV_TRY(cv_home_place(&d->home, cv_directory_self(d), d->frame, &d->shown, &place, err));
    cv_status status = cv_home_check(&d->home, cv_directory_self(d), &d->shown, err);
    if (status == CV_OK) status = cv_target_refuse_readers(&place.old, &d->shown, err);
    if (status == CV_OK && !cv_sframe_is_array_at(place.dir, place.name))
        status = cv_fail(err, CATERVA_EEXIST, -1,
                         "%s holds other files than the array's: not deleted", d->shown.text);
    if (status == CV_OK) status = delete_at(d, &place, err);
    cv_place_close(&place);
    return status;
}
