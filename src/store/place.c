/* Room: store. Installs a complete new array under the target's name in one step: at any time the
 * old or the new array has the name. Replaces only regular files and array directories that are not
 * being written, and no directory that is being read. Does not know the contents of the files. */
#include "store/place.h"

#include "base/heap.h"
#include "base/thread.h"
#include "store/descriptors.h"
#include "store/sframe.h"
#include "store/zarr.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* ---- Temporaries ----
 *
 * The list's lock also prevents a temporary from being removed while its place is being closed. */

static cv_mutex list_lock = CV_MUTEX_INIT;
static cv_temporary *list;

/* Adds a temporary, which must not move while it is in the list. */
static void temporaries_add(cv_temporary *temporary, void (*remove)(cv_temporary *temporary))
{
    cv_thread_hold_on_fork(&list_lock);
    cv_mutex_lock(&list_lock);
    temporary->remove = remove;
    temporary->is_listed = true;
    temporary->made = cv_os_now();
    temporary->before = NULL;
    temporary->next = list;
    if (list) list->before = temporary;
    list = temporary;
    cv_mutex_unlock(&list_lock);
}

void cv_temporaries_remove(cv_temporary *temporary)
{
    if (!temporary->is_listed) return;
    cv_mutex_lock(&list_lock);
    *(temporary->before ? &temporary->before->next : &list) = temporary->next;
    if (temporary->next) temporary->next->before = temporary->before;
    temporary->is_listed = false;
    cv_mutex_unlock(&list_lock);
}

void cv_temporaries_abandon(void)
{
    cv_mutex_lock(&list_lock);
    for (cv_temporary *temporary = list; temporary; temporary = temporary->next)
        if (!cv_os_is_other_process(temporary->made)) /* not the parent's */
            temporary->remove(temporary);
    cv_mutex_unlock(&list_lock);
}

/* ---- The keeper ---- */

cv_status cv_keeper_new(cv_dir dir, const char *shown, cv_keeper **out, cv_error *err)
{
    cv_keeper *keeper = cv_calloc(1, sizeof *keeper);
    if (!keeper) return cv_fail_memory(err, sizeof *keeper, "a tree handle");
    int error = cv_open_dir(dir, ".", 0, &keeper->root);
    if (error) {
        cv_free(keeper);
        return cv_fail_open(err, error, shown);
    }
    atomic_init(&keeper->references, 1);
    *out = keeper;
    return CV_OK;
}

cv_keeper *cv_keeper_retain(cv_keeper *keeper)
{
    atomic_fetch_add(&keeper->references, 1);
    return keeper;
}

void cv_keeper_release(cv_keeper *keeper)
{
    if (!keeper || atomic_fetch_sub(&keeper->references, 1) > 1) return;
    cv_dir_close(&keeper->root);
    cv_free(keeper);
}

/* Replaces *dir by its parent. Returns false at the root or on an error. */
static bool go_up(cv_dir *dir)
{
    cv_dir above;
    cv_file_info own, parent;
    if (cv_open_dir(*dir, "..", 0, &above)) return false;
    bool is_higher = cv_file_get_info(cv_dir_as_file(*dir), &own) == 0 &&
                     cv_file_get_info(cv_dir_as_file(above), &parent) == 0 &&
                     (own.inode != parent.inode || own.device != parent.device);
    cv_dir_close(dir);
    *dir = above;
    return is_higher;
}

bool cv_keeper_has(cv_dir dir, cv_file file)
{
    cv_dir at;
    cv_file_info info;
    if (cv_file_get_info(file, &info) || cv_open_dir(dir, ".", 0, &at)) return false;
    bool found = false;
    do {
        found = cv_file_is_marked(cv_dir_as_file(at), info.inode);
    } while (!found && go_up(&at));
    cv_dir_close(&at);
    return found;
}

int cv_keeper_ask(cv_dir dir, cv_file file)
{
    int error = cv_file_ask_lock(file);
    return !error && cv_keeper_has(dir, file) ? EWOULDBLOCK : error;
}

/* Locks before it checks, so that no mark can be set between the check and the lock. The file's
 * writer retries if it finds this lock. */
int cv_keeper_lock(cv_dir dir, cv_file file)
{
    int error = cv_file_lock(file);
    if (error || !cv_keeper_has(dir, file)) return error;
    cv_file_unlock(file);
    return EWOULDBLOCK;
}

/* ---- Opening -------------------------------------------------------------- */

/* Opens the file in the first of three ways that is permitted. Some systems can lock a file only if
 * it is open for writing. */
static int open_any_way(cv_dir dir, const char *name, cv_file *out)
{
    static const unsigned ways[] = {CV_OPEN_BOTH, CV_OPEN_READ, CV_OPEN_WRITE};
    int error = 0;
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        error = cv_open_file(dir, name, ways[i] | CV_OPEN_NO_LINK, 0, out);
        if (!error || error == ENOENT) break;
    }
    return error;
}

static int open_directory(cv_dir dir, const char *name, cv_target *target)
{
    cv_dir opened;
    int error = cv_open_dir(dir, name, CV_OPEN_NO_LINK, &opened);
    if (error) return error;
    cv_zarr_name shard;
    cv_zarr_node node = cv_zarr_look(dir, name, &shard);
    const char *frame = node == CV_ZARR_NONE    ? CV_SFRAME_FRAME
                        : node == CV_ZARR_ARRAY ? shard.text
                                                : CV_ZARR_META;
    target->self = cv_dir_as_file(opened);
    target->is_zarr = node != CV_ZARR_NONE;
    return cv_open_file(opened, frame, CV_OPEN_READ, 0, &target->frame);
}

cv_status cv_target_open(cv_dir dir, const char *name, bool is_directory,
                         const cv_shown_path *shown, cv_target *out, cv_error *err)
{
    cv_target target = {.is_directory = is_directory};
    int error = is_directory ? open_directory(dir, name, &target)
                             : open_any_way(dir, name, &target.self);
    if (error) {
        cv_target_close(&target);
        return error == ENOENT ? cv_fail_open(err, error, shown->text)
                               : cv_fail_sys(err, error, "cannot check whether %s is in use",
                                             shown->text);
    }
    *out = target;
    return CV_OK;
}

static void target_unlock(cv_target *target)
{
    if (target->borrowed || !target->is_locked) return;
    cv_file_unlock(target->is_directory ? target->lock : target->self);
    cv_file_close(&target->lock);
    target->is_locked = false;
}

void cv_target_close(cv_target *target)
{
    if (!target->borrowed) {
        target_unlock(target);
        cv_file_close(&target->frame);
        cv_file_close(&target->lock);
        cv_file_close(&target->self);
    }
    *target = (cv_target){0};
}

/* ---- Whether the target is in use ---------------------------------------- */

static bool target_has_readers(const cv_target *target)
{
    return target->is_directory && cv_file_is_shared(target->self);
}

cv_status cv_target_refuse_readers(const cv_target *target, const cv_shown_path *shown,
                                   cv_error *err)
{
    if (!target_has_readers(target)) return CV_OK;
    return cv_fail(err, CATERVA_EBUSY, -1,
                   "the directory %s is open for reading (a copy in progress reads it, too)",
                   shown->text);
}

/* CATERVA_EBUSY if the target is being written, or is a directory being read. The result may be
 * outdated immediately. `dir` is the directory that contains the target. */
static cv_status check_unused(const cv_target *target, cv_dir dir, const cv_shown_path *shown,
                              cv_error *err)
{
    cv_file lock = {0};
    int error = 0;
    if (target->is_zarr)
        error = cv_file_again(target->frame, &lock);
    else if (target->is_directory) /* ENOENT if no writer ever locked it */
        error = cv_open_file(cv_dir_of_file(target->self), CV_SFRAME_LOCK, CV_OPEN_READ, 0,
                             &lock);
    if (!error && !target->is_directory)
        error = cv_keeper_ask(dir, target->self);
    else if (!error)
        error = cv_file_ask_lock(lock);
    cv_file_close(&lock);
    if (error && error != ENOENT) return cv_fail_lock(err, error, shown->text);
    return cv_target_refuse_readers(target, shown, err);
}

static cv_status target_lock(cv_target *target, cv_dir dir, const cv_shown_path *shown,
                             cv_error *err)
{
    int error = 0;
    CV_TRY(cv_target_refuse_readers(target, shown, err));
    if (target->is_zarr)
        error = cv_file_again(target->frame, &target->lock); /* its writers lock the frame */
    else if (target->is_directory)
        error = cv_open_file(cv_dir_of_file(target->self), CV_SFRAME_LOCK,
                             CV_OPEN_BOTH | CV_OPEN_CREATE, 0666, &target->lock);
    if (!error && !target->is_directory)
        error = cv_keeper_lock(dir, target->self);
    else if (!error)
        error = cv_file_lock(target->lock);
    if (error) return cv_fail_lock(err, error, shown->text);
    target->is_locked = true;
    /* check again, because a reader may have opened the target meanwhile */
    return cv_target_refuse_readers(target, shown, err);
}

/* ---- Access --------------------------------------------------------------- */

/* Convert the mode of a replaced file to that of a directory, or the reverse. Users who may read
 * the file may search the directory. Users who may not search the directory get no permissions for
 * the file. */
static uint32_t directory_mode(uint32_t file_mode)
{
    return (file_mode & 0777) | (file_mode & 0444) >> 2;
}

static uint32_t file_mode(uint32_t frame_mode, uint32_t directory_mode)
{
    uint32_t search = directory_mode & 0111;
    return frame_mode & (search | search << 1 | search << 2) & 0666;
}

cv_likeness cv_target_likeness(const cv_target *target, bool to_directory)
{
    cv_likeness like = {0};
    cv_os_access outer, frame;
    if (!cv_file_is_open(target->self) || cv_file_get_access(target->self, &outer))
        return like;
    frame = outer;
    if (cv_file_is_open(target->frame) && cv_file_get_access(target->frame, &frame))
        return like;
    like = (cv_likeness){.known = true, .outer = outer, .inner = frame};
    if (to_directory && !target->is_directory) {
        like.outer.mode = directory_mode(outer.mode);
        like.inner.mode &= 0666;
    } else if (!to_directory && target->is_directory) {
        like.outer = frame;
        like.outer.mode = file_mode(frame.mode, outer.mode);
    }
    return like;
}

/* Gives the new file or directory, and `frame` if it is open, the access `likeness`, and the
 * attributes and access control lists of the target. Returns 0 or an errno number. */
static int target_give_access(const cv_target *target, const cv_likeness *likeness,
                              cv_file made, cv_file frame)
{
    bool to_directory = cv_file_is_open(frame);
    if (!likeness->known) return 0;
    int error = 0;
    if (to_directory) error = cv_file_take_access(frame, &likeness->inner, target->frame);
    cv_file from = target->is_directory == to_directory ? target->self : (cv_file){0};
    return error ? error : cv_file_take_access(made, &likeness->outer, from);
}

/* ---- Finding ------------------------------------------------------------ */

/* TARGET_LINK is a symbolic link that leads nowhere. Other symbolic links were followed before. */
typedef enum target_kind {
    TARGET_NONE,
    TARGET_LINK,
    TARGET_FILE,
    TARGET_DIRECTORY
} target_kind;

static cv_status refuse_target(const cv_place *place, const char *why, cv_error *err)
{
    return cv_fail(err, CATERVA_EEXIST, -1, "%s %s", place->shown.text, why);
}

/* Sets *kind to the kind of the target. CATERVA_EEXIST if the target must not be replaced. */
static cv_status check_target(const cv_place *place, target_kind *kind, cv_error *err)
{
    cv_file_info info;
    *kind = TARGET_NONE;
    int error = cv_dir_get_link_info(place->dir, place->name, &info);
    if (error == ENOENT) return CV_OK;
    if (error) return cv_fail_sys(err, error, "cannot look at %s", place->shown.text);
    if (!place->overwrite) return refuse_target(place, "exists already", err);

    *kind = info.kind == CV_KIND_DIRECTORY ? TARGET_DIRECTORY
            : info.kind == CV_KIND_LINK    ? TARGET_LINK
                                           : TARGET_FILE;
    bool is_array =
        *kind != TARGET_DIRECTORY || cv_sframe_is_array_at(place->dir, place->name);
    if (!is_array) CV_TRY(cv_zarr_check_own(place->dir, place->name, &is_array, err));
    if (!is_array)
        return refuse_target(place, "is a directory that is not an array: not replaced", err);
    if (*kind == TARGET_FILE && info.kind != CV_KIND_FILE)
        return refuse_target(place, "is not a regular file: not replaced", err);
    return CV_OK;
}

/* Opens the target as place->old. If the target does not exist any more, keeps the previous
 * place->old, whose access the new array gets. */
static cv_status open_old(cv_place *place, target_kind kind, cv_error *err)
{
    cv_target found = {0};
    if (kind != TARGET_FILE && kind != TARGET_DIRECTORY) return CV_OK;
    CV_TRY(cv_target_open(place->dir, place->name, kind == TARGET_DIRECTORY, &place->shown,
                          &found, err));
    cv_target_close(&place->old);
    place->old = found;
    return CV_OK;
}

/* Called before the array is written, so that an hour of work is not refused at its end. */
static cv_status check_old(cv_place *place, cv_error *err)
{
    target_kind kind;
    CV_TRY(check_target(place, &kind, err));
    cv_status status = open_old(place, kind, err);
    if (status == CATERVA_ENOTFOUND) return CV_OK;
    if (status == CV_OK && cv_file_is_open(place->old.self))
        status = check_unused(&place->old, place->dir, &place->shown, err);
    return status;
}

/* Returns the path without trailing slashes and, with `overwrite`, without symbolic links.
 * Release with cv_free. */
static cv_status resolve(const char *path, bool overwrite, char **out, cv_error *err)
{
    *out = overwrite ? cv_os_real_path(path) : NULL;
    return *out ? CV_OK : cv_strip_slashes(path, out, err);
}

static cv_status split(char *resolved, cv_place *place, cv_error *err)
{
    char *slash = strrchr(resolved, '/');
    const char *name = slash ? slash + 1 : resolved;
    place->name = cv_strdup(name);
    if (!place->name) return cv_fail_memory(err, strlen(name) + 1, "a path");

    const char *parent = !slash ? "." : slash == resolved ? "/" : resolved;
    if (slash) *slash = '\0';
    int error = cv_open_dir(cv_dir_here, parent, 0, &place->dir);
    if (!error) return CV_OK;
    return cv_fail_sys(err, error, "cannot create %s: cannot open its directory",
                       place->shown.text);
}

cv_status cv_place_open(const char *path, bool overwrite, cv_place *out, cv_error *err)
{
    cv_place place = {.overwrite = overwrite, .shown = cv_show_path(path)};
    char *resolved;
    if (!*path) return cv_fail(err, CATERVA_EINVAL, -1, "the path is empty");
    CV_TRY(cv_refuse_url(path, err));
    CV_TRY(resolve(path, overwrite, &resolved, err));

    cv_status status = split(resolved, &place, err);
    if (status == CV_OK && !*place.name)
        status = refuse_target(&place, "is the root directory", err);
    if (status == CV_OK) status = check_old(&place, err);
    cv_free(resolved);
    if (status != CV_OK) {
        cv_place_close(&place);
        return status;
    }
    *out = place;
    return CV_OK;
}

/* Removes the replaced directory if its last reader has closed it. */
void cv_place_close(cv_place *place)
{
    cv_temporaries_remove(&place->listed);
    if (place->is_left && !target_has_readers(&place->old)) cv_place_remove_temp(place);
    cv_target_close(&place->old);
    cv_dir_close(&place->dir);
    cv_free(place->name);
    place->name = NULL;
    place->is_left = false;
}

/* ---- The new array ------------------------------------------------------ */

int cv_place_create_file(cv_place *place, cv_file *out)
{
    uint32_t mode = cv_file_is_open(place->old.self) ? 0600 : 0666;
    return cv_open_temp_file(place->dir, place->name, mode, place->temp, out);
}

/* If a directory is replaced, sets its access control lists now, because new files inherit them. */
int cv_place_create_directory(cv_place *place, cv_dir *out)
{
    bool is_new = !cv_file_is_open(place->old.self);
    uint32_t mode = is_new ? 0777 : 0700;
    int error;
    do {
        error = cv_dir_create_temp_directory(place->dir, place->name, mode, place->temp, out);
    } while (cv_descriptors_make_room(error));
    if (error || is_new) return error;
    cv_likeness like = cv_target_likeness(&place->old, true);
    if (!like.known) return 0;
    like.outer.mode = 0700;
    cv_file from = place->old.is_directory ? place->old.self : (cv_file){0};
    error = cv_file_take_access(cv_dir_as_file(*out), &like.outer, from);
    if (!error) return 0;
    cv_place_remove_temp(place);
    cv_dir_close(out);
    return error;
}

cv_status cv_place_path(const cv_place *place, const char *path, const char *member,
                        char **out, cv_error *err)
{
    char *target;
    CV_TRY(resolve(path, place->overwrite, &target, err));
    char *slash = strrchr(target, '/');
    int parent = slash ? (int)(slash + 1 - target) : 0;
    size_t size = (size_t)parent + strlen(place->temp) + strlen(member) + 2;
    *out = cv_malloc(size);
    if (*out)
        (void)snprintf(*out, size, "%.*s%s%s%s", parent, target, place->temp,
                       *member ? "/" : "", member);
    cv_free(target);
    return *out ? CV_OK : cv_fail_memory(err, size, "a path");
}

/* Removes a listed temporary, unless it is a replaced directory, which readers may need. */
static void remove_listed(cv_temporary *temporary)
{
    cv_place *place = (cv_place *)((char *)temporary - offsetof(cv_place, listed));
    if (!place->is_left) cv_place_remove_temp(place);
}

void cv_place_list(cv_place *place) { temporaries_add(&place->listed, remove_listed); }

/* ---- Publishing --------------------------------------------------------- */

/* For file systems that cannot exchange names: renames the target to a third name, and back if the
 * second rename fails. On success the old array has the temporary name. Returns an errno number. */
static int step_aside(cv_place *place)
{
    char aside[CV_OS_TEMP_NAME];
    cv_os_temp_name(place->name, "old", aside);
    int error = cv_dir_rename_new(place->dir, place->name, aside);
    if (error) return error;
    error = cv_dir_rename_new(place->dir, place->temp, place->name);
    if (error) {
        cv_dir_rename_new(place->dir, aside, place->name);
        return error;
    }
    memcpy(place->temp, aside, sizeof aside);
    return 0;
}

/* Renames the temporary to the target, which was of `kind` before. Sets *displaced to whether the
 * old array has the temporary name. Returns an errno number. */
static int move_once(cv_place *place, target_kind kind, bool *displaced)
{
    *displaced = false;
    if (kind == TARGET_NONE) return cv_dir_rename_new(place->dir, place->temp, place->name);
    if (kind != TARGET_DIRECTORY && !place->is_directory)
        return cv_dir_rename(place->dir, place->temp, place->name);

    int error = cv_dir_exchange(place->dir, place->temp, place->name);
    if (error == ENOTSUP) error = step_aside(place);
    *displaced = !error;
    return error;
}

/* Checks that the target is the array whose lock the caller holds: only that may be replaced. */
static cv_status check_held(const cv_place *place, cv_error *err)
{
    if (cv_dir_names(place->dir, place->name, place->old.self))
        return cv_target_refuse_readers(&place->old, &place->shown, err);
    return cv_fail(err, CATERVA_EIO, -1, "%s was moved, deleted or replaced by others",
                   place->shown.text);
}

static bool holds_old(const cv_place *place, target_kind kind)
{
    const cv_target *old = &place->old;
    return old->is_locked && old->is_directory == (kind == TARGET_DIRECTORY) &&
           cv_dir_names(place->dir, place->name, old->self);
}

/* Locks the target. CATERVA_ENOTFOUND if it is another file or directory now. */
static cv_status hold_old(cv_place *place, target_kind kind, cv_error *err)
{
    if (place->is_held) return check_held(place, err);
    if (kind != TARGET_FILE && kind != TARGET_DIRECTORY) return CV_OK;
    if (holds_old(place, kind))
        return cv_target_refuse_readers(&place->old, &place->shown, err);
    CV_TRY(open_old(place, kind, err));
    CV_TRY(target_lock(&place->old, place->dir, &place->shown, err));
    if (cv_dir_names(place->dir, place->name, place->old.self)) return CV_OK;
    return cv_fail(err, CATERVA_ENOTFOUND, -1, "%s was replaced", place->shown.text);
}

static cv_status give_access(const cv_place *place, cv_file made, cv_file frame,
                             cv_error *err)
{
    cv_likeness like = cv_target_likeness(&place->old, place->is_directory);
    int error = target_give_access(&place->old, &like, made, frame);
    if (!error) return CV_OK;
    return cv_fail_sys(err, error,
                       "cannot give %s the permissions of the array that it replaces",
                       place->shown.text);
}

/* Repeats if other processes create or remove the target meanwhile. */
static cv_status move(cv_place *place, cv_file made, cv_file frame, bool *displaced,
                      cv_error *err)
{
    enum { TRIES = 20 };
    int error = ENOENT;
    for (int i = 0; i < TRIES; i++) {
        target_kind kind;
        CV_TRY(check_target(place, &kind, err));
        cv_status status = hold_old(place, kind, err);
        if (status == CATERVA_ENOTFOUND) continue;
        CV_TRY(status);
        CV_TRY(give_access(place, made, frame, err));
        error = move_once(place, kind, displaced);
        if (!error) return CV_OK;
        if (error != EEXIST && error != ENOENT && error != EISDIR && error != ENOTDIR) break;
    }
    if (error == EEXIST) return refuse_target(place, "exists already", err);
    return cv_fail_sys(err, error, "cannot rename the new array to %s", place->shown.text);
}

cv_status cv_place_hold(cv_place *place, cv_error *err)
{
    enum { TRIES = 20 };
    for (int i = 0; i < TRIES; i++) {
        target_kind kind;
        CV_TRY(check_target(place, &kind, err));
        cv_status status = hold_old(place, kind, err);
        if (status != CATERVA_ENOTFOUND) return status;
    }
    return cv_fail(err, CATERVA_EBUSY, -1, "%s is being replaced repeatedly by others",
                   place->shown.text);
}

void cv_place_let_go(cv_place *place)
{
    if (!place->is_held) target_unlock(&place->old);
}

/* A replaced directory is kept while it is being read. */
cv_status cv_place_publish(cv_place *place, cv_file made, cv_file frame, bool durable,
                           bool *moved, cv_error *err)
{
    bool displaced = false;
    *moved = false;
    CV_TRY(move(place, made, frame, &displaced, err));
    *moved = true;

    int error = durable ? cv_dir_sync(place->dir) : 0;
    if (error) /* keep the old array: after a crash the target may be it */
        return cv_fail_sys(err, error, "cannot sync the directory of %s", place->shown.text);
    place->is_left = displaced && target_has_readers(&place->old);
    if (displaced && !place->is_left) cv_place_remove_temp(place);
    return CV_OK;
}

static void remove_temp_in(cv_dir dir, const char *temp)
{
    if (cv_dir_remove(dir, temp) == 0) return;
    cv_zarr_remove_at(dir, temp);
    cv_sframe_remove_at(dir, temp);
}

/* If the place has a folder, opens the folder, because another thread may be closing `dir`. */
void cv_place_remove_temp(cv_place *place)
{
    cv_dir dir;
    if (!place->folder) {
        remove_temp_in(place->dir, place->temp);
    } else if (cv_open_dir(place->root, place->folder, 0, &dir) == 0) {
        remove_temp_in(dir, place->temp);
        cv_dir_close(&dir);
    }
}

/* ---- The home ----
 *
 * The home of a file keeps the file's directory open. The home of a directory finds the parent
 * through "..", without another descriptor. */

/* ---- Finding -------------------------------------------------------------- */

/* Stores the file's numbers, with which a commit checks the name in a single system call. */
static void remember(cv_home *home, cv_file self)
{
    cv_file_info info = {0};
    if (home->is_directory)
        (void)cv_dir_get_info(cv_dir_of_file(self), "..", &info);
    else
        (void)cv_file_get_info(self, &info);
    home->device = info.device;
    home->inode = info.inode;
}

static cv_status name_in_parent(const char *name, cv_home *out, cv_error *err)
{
    size_t size = strlen(name) + sizeof "../";
    out->name = cv_malloc(size);
    if (!out->name) return cv_fail_memory(err, size, "a path");
    (void)snprintf(out->name, size, "%s%s", out->is_directory ? "../" : "", name);
    return CV_OK;
}

/* If the directory cannot be opened, the home's name is the path from the current directory. */
static cv_status find_file(char *path, cv_home *out, cv_error *err)
{
    char *slash = strrchr(path, '/');
    bool opened = false;
    if (slash && slash[1]) {
        *slash = '\0';
        int error;
        do {
            error = cv_dir_open_names(slash == path ? "/" : path, &out->dir);
        } while (cv_descriptors_make_room(error));
        opened = error == 0;
        *slash = '/';
    }
    if (!opened) out->dir = cv_dir_here;
    return name_in_parent(opened ? slash + 1 : path, out, err);
}

cv_status cv_home_find(const char *path, cv_file self, bool is_directory, cv_home *out,
                       cv_error *err)
{
    *out = (cv_home){.is_directory = is_directory};
    char *real = cv_os_real_path(path);
    if (!real) real = cv_strdup(path);
    if (!real) return cv_fail_memory(err, strlen(path) + 1, "a path");
    const char *slash = strrchr(real, '/');
    cv_status status = CV_OK;
    if (is_directory && slash && slash[1]) {
        status = name_in_parent(slash + 1, out, err);
    } else {
        out->is_directory = false; /* the root, or an unresolved path */
        status = find_file(real, out, err);
    }
    remember(out, self);
    cv_free(real);
    if (status != CV_OK) cv_home_close(out);
    return status;
}

void cv_home_take(const cv_place *place, cv_file self, cv_home *out)
{
    *out = (cv_home){.is_directory = place->is_directory};
    remember(out, self);
    if (!place->is_directory) (void)cv_open_dir(place->dir, ".", 0, &out->dir);
    if (place->is_directory || cv_dir_is_open(out->dir))
        (void)name_in_parent(place->name, out, NULL); /* not checked if NULL */
}

void cv_home_close(cv_home *home)
{
    cv_dir_close(&home->dir);
    cv_free(home->name);
    *home = (cv_home){0};
}

/* ---- Checking the name ---------------------------------------------------- */

static bool stands_at(const cv_home *home, cv_dir dir, const char *name)
{
    return cv_dir_leads_to(dir, name, home->device, home->inode);
}

static cv_dir dir_of(const cv_home *home, cv_file self)
{
    return home->is_directory ? cv_dir_of_file(self) : home->dir;
}

bool cv_home_leads_to(const cv_home *home, cv_file self)
{
    if (!home->name) return true;
    if (!home->is_directory) return stands_at(home, home->dir, home->name);
    cv_dir own = cv_dir_of_file(self);
    return stands_at(home, own, "..") && cv_dir_names(own, home->name, self);
}

cv_status cv_home_check(const cv_home *home, cv_file self, const cv_shown_path *shown,
                        cv_error *err)
{
    cv_file_info there, own;
    if (cv_home_leads_to(home, self)) return CV_OK;
    bool is_there = cv_dir_get_link_info(dir_of(home, self), home->name, &there) == 0;
    bool is_gone = cv_file_get_info(self, &own) == 0 && own.n_names == 0;
    const char *what = is_there && !home->is_directory ? "was replaced by another file"
                       : is_gone                       ? "was deleted"
                                                       : "was moved or replaced";
    return cv_fail(
        err, CATERVA_EIO, -1,
        "%s %s by others while it was open for writing: its name does not lead to it",
        shown->text, what);
}

/* ---- Taking the name ------------------------------------------------------ */

static int open_parent(const cv_home *home, cv_file self, cv_dir *out)
{
    if (home->is_directory) return cv_open_dir(cv_dir_of_file(self), "..", 0, out);
    if (!cv_dir_is_here(home->dir)) return cv_open_dir(home->dir, ".", 0, out);
    const char *slash = strrchr(home->name, '/');
    char *parent =
        slash ? cv_strndup(home->name, (size_t)(slash - home->name) + 1) : cv_strdup(".");
    if (!parent) return ENOMEM;
    int error = cv_open_dir(cv_dir_here, parent, 0, out);
    cv_free(parent);
    return error;
}

cv_status cv_home_place(const cv_home *home, cv_file self, cv_file frame,
                        const cv_shown_path *shown, cv_place *out, cv_error *err)
{
    cv_place place = {.overwrite = true, .shown = *shown};
    if (!home->name) return cv_fail(err, CATERVA_EIO, -1, "%s has no name", shown->text);
    const char *slash = strrchr(home->name, '/');
    place.name = cv_strdup(slash ? slash + 1 : home->name);
    if (!place.name) return cv_fail_memory(err, strlen(home->name), "a path");
    int error = open_parent(home, self, &place.dir);
    if (error) {
        cv_free(place.name);
        return cv_fail_sys(err, error, "cannot open the directory of %s", shown->text);
    }
    place.old = (cv_target){
        .self = self, .frame = frame, .is_directory = home->is_directory, .borrowed = true};
    place.is_held = true;
    *out = place;
    return CV_OK;
}
