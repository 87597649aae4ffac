/* Room: store. Publishing: the new array is complete under a temporary name and
 * takes the target's name in one step. Promises: an old array is either still
 * in its place, or the new one is, whole; only regular files and directories
 * that are arrays are ever replaced, and none that somebody writes, nor a
 * directory that somebody reads. Must not know what is inside the files. */
#include "store/place.h"

#include "base/heap.h"
#include "store/descriptors.h"
#include "store/sframe.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* ---- Finding ------------------------------------------------------------ */

/* A symbolic link that leads nowhere, for that is where it would have been followed. */
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

/* What stands at the target, or CATERVA_EEXIST when it must stay there. */
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
    if (*kind == TARGET_DIRECTORY && !cv_sframe_is_array_at(place->dir, place->name))
        return refuse_target(place, "is a directory that is not an array: not replaced", err);
    if (*kind == TARGET_FILE && info.kind != CV_KIND_FILE)
        return refuse_target(place, "is not a regular file: not replaced", err);
    return CV_OK;
}

/* Opens what stands there, as place->old. What stood there before is kept where nothing
 * does now: a new array is still to be accessible like it. */
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

/* Early: nobody should work for an hour to be refused then. */
static cv_status ask_old(cv_place *place, cv_error *err)
{
    target_kind kind;
    CV_TRY(check_target(place, &kind, err));
    cv_status status = open_old(place, kind, err);
    if (status == CATERVA_ENOTFOUND) return CV_OK;
    if (status == CV_OK && cv_file_is_open(place->old.self))
        status = cv_target_ask(&place->old, place->dir, &place->shown, err);
    return status;
}

/* The path without trailing slashes and, where something is to be overwritten,
 * without symbolic links. Owned. */
static cv_status resolve(const char *path, bool overwrite, char **out, cv_error *err)
{
    *out = overwrite ? cv_os_real_path(path) : NULL;
    return *out ? CV_OK : cv_strip_slashes(path, out, err);
}

/* Cuts `resolved` into the opened directory and the name in it. */
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
    return cv_fail_sys(err, error, "cannot create %s: its directory", place->shown.text);
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
    if (status == CV_OK) status = ask_old(&place, err);
    cv_free(resolved);
    if (status != CV_OK) {
        cv_place_close(&place);
        return status;
    }
    *out = place;
    return CV_OK;
}

/* The directory that was replaced goes when its last reader has gone. */
void cv_place_close(cv_place *place)
{
    cv_temporaries_remove(&place->listed);
    if (place->is_left && !cv_target_has_readers(&place->old)) cv_place_remove_temp(place);
    cv_target_close(&place->old);
    cv_dir_close(&place->dir);
    cv_free(place->name);
    place->name = NULL;
    place->is_left = false;
}

/* ---- The new one -------------------------------------------------------- */

int cv_place_create_file(cv_place *place, cv_file *out)
{
    uint32_t mode = cv_file_is_open(place->old.self) ? 0600 : 0666;
    return cv_open_temp_file(place->dir, place->name, mode, place->temp, out);
}

/* Lists of access that its files would inherit are the old one's from the beginning. */
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

/* Readers may need what is left. */
static void remove_listed(cv_temporary *temporary)
{
    cv_place *place = (cv_place *)((char *)temporary - offsetof(cv_place, listed));
    if (!place->is_left) cv_place_remove_temp(place);
}

void cv_place_list(cv_place *place) { cv_temporaries_add(&place->listed, remove_listed); }

/* ---- Publishing --------------------------------------------------------- */

/* For file systems that cannot exchange two names: the old one steps aside,
 * and comes back when the new one cannot take its place. Either way the
 * temporary name is the old one's afterwards. Returns an errno number. */
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

/* One attempt, given what stood at the target a moment ago. *displaced: the
 * old one now has the temporary name. Returns an errno number. */
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

/* The caller has locked it: nothing else may be replaced. */
static cv_status check_held(const cv_place *place, cv_error *err)
{
    if (cv_dir_names(place->dir, place->name, place->old.self))
        return cv_target_refuse_readers(&place->old, &place->shown, err);
    return cv_fail(err, CATERVA_EIO, -1, "%s was moved, deleted or replaced by others",
                   place->shown.text);
}

/* Whether it was locked before, and stands there still. */
static bool holds_old(const cv_place *place, target_kind kind)
{
    const cv_target *old = &place->old;
    return old->is_locked && old->is_directory == (kind == TARGET_DIRECTORY) &&
           cv_dir_names(place->dir, place->name, old->self);
}

/* Locks what stands there. CATERVA_ENOTFOUND: by now it is something else. */
static cv_status hold_old(cv_place *place, target_kind kind, cv_error *err)
{
    if (place->is_held) return check_held(place, err);
    if (kind != TARGET_FILE && kind != TARGET_DIRECTORY) return CV_OK;
    if (holds_old(place, kind))
        return cv_target_refuse_readers(&place->old, &place->shown, err);
    CV_TRY(open_old(place, kind, err));
    CV_TRY(cv_target_lock(&place->old, place->dir, &place->shown, err));
    if (cv_dir_names(place->dir, place->name, place->old.self)) return CV_OK;
    return cv_fail(err, CATERVA_ENOTFOUND, -1, "%s was replaced", place->shown.text);
}

/* Gives the new files what access the old one allows. */
static cv_status liken(const cv_place *place, cv_file made, cv_file frame, cv_error *err)
{
    cv_likeness like = cv_target_likeness(&place->old, place->is_directory);
    int error = cv_target_give(&place->old, &like, made, frame);
    if (!error) return CV_OK;
    return cv_fail_sys(err, error, "cannot give %s the access of the one that it replaces",
                       place->shown.text);
}

/* Others may create and remove the target meanwhile: look again then. */
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
        CV_TRY(liken(place, made, frame, err));
        error = move_once(place, kind, displaced);
        if (!error) return CV_OK;
        if (error != EEXIST && error != ENOENT && error != EISDIR && error != ENOTDIR) break;
    }
    if (error == EEXIST) return refuse_target(place, "exists already", err);
    return cv_fail_sys(err, error, "cannot put %s in place", place->shown.text);
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
    return cv_fail(err, CATERVA_EBUSY, -1, "%s is replaced by others again and again",
                   place->shown.text);
}

void cv_place_let_go(cv_place *place)
{
    if (!place->is_held) cv_target_unlock(&place->old);
}

/* A reader may have come to a directory after the last look: one that found it at its
 * name before it was displaced goes on reading there, and it is left until then. */
cv_status cv_place_publish(cv_place *place, cv_file made, cv_file frame, bool durable,
                           bool *moved, cv_error *err)
{
    bool displaced = false;
    *moved = false;
    CV_TRY(move(place, made, frame, &displaced, err));
    *moved = true;

    int error = durable ? cv_dir_sync(place->dir) : 0;
    if (error) /* a displaced array stays: it may be the one a power loss leaves */
        return cv_fail_sys(err, error, "cannot sync the directory of %s", place->shown.text);
    place->is_left = displaced && cv_target_has_readers(&place->old);
    if (displaced && !place->is_left) cv_place_remove_temp(place);
    return CV_OK;
}

static void remove_temp_in(cv_dir dir, const char *temp)
{
    if (cv_dir_remove(dir, temp) == 0) return;
    cv_sframe_remove_at(dir, temp);
}

/* Not through `dir` where that comes and goes: another thread may be closing it. */
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
