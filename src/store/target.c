/* Room: store. What a new array takes the place of. Must not know how: place.c moves. */
#include "store/target.h"

#include "base/os_file.h"
#include "store/descriptors.h"
#include "store/keeper.h"
#include "store/sframe.h"

/* ---- Opening -------------------------------------------------------------- */

/* Some systems lock only what is open for writing, and a file may allow less. */
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
    target->self = cv_dir_as_file(opened);
    return cv_open_file(opened, CV_SFRAME_FRAME, CV_OPEN_READ, 0, &target->frame);
}

static cv_status fail_to_open(int error, const cv_shown_path *shown, cv_error *err)
{
    if (error == ENOENT) return cv_fail_open(err, error, shown->text);
    return cv_fail_sys(err, error, "cannot see whether %s is in use", shown->text);
}

cv_status cv_target_open(cv_dir dir, const char *name, bool is_directory,
                         const cv_shown_path *shown, cv_target *out, cv_error *err)
{
    cv_target target = {.is_directory = is_directory};
    int error = is_directory ? open_directory(dir, name, &target)
                             : open_any_way(dir, name, &target.self);
    if (error) {
        cv_target_close(&target);
        return fail_to_open(error, shown, err);
    }
    *out = target;
    return CV_OK;
}

void cv_target_unlock(cv_target *target)
{
    if (target->borrowed || !target->is_locked) return;
    cv_file_unlock(target->is_directory ? target->lock : target->self);
    cv_file_close(&target->lock);
    target->is_locked = false;
}

void cv_target_close(cv_target *target)
{
    if (!target->borrowed) {
        cv_target_unlock(target);
        cv_file_close(&target->frame);
        cv_file_close(&target->lock);
        cv_file_close(&target->self);
    }
    *target = (cv_target){0};
}

/* ---- In use? -------------------------------------------------------------- */

bool cv_target_has_readers(const cv_target *target)
{
    return target->is_directory && cv_file_is_shared(target->self);
}

cv_status cv_target_refuse_readers(const cv_target *target, const cv_shown_path *shown,
                                   cv_error *err)
{
    if (!cv_target_has_readers(target)) return CV_OK;
    return cv_fail(err, CATERVA_EBUSY, -1,
                   "the directory %s is open for reading (by a copy of it, too)",
                   shown->text);
}

cv_status cv_target_ask(const cv_target *target, cv_dir dir, const cv_shown_path *shown,
                        cv_error *err)
{
    cv_file lock = {0};
    int error = 0;
    if (target->is_directory) /* no lock file: nobody ever wrote */
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

cv_status cv_target_lock(cv_target *target, cv_dir dir, const cv_shown_path *shown,
                         cv_error *err)
{
    int error = 0;
    CV_TRY(cv_target_refuse_readers(target, shown, err));
    if (target->is_directory)
        error = cv_open_file(cv_dir_of_file(target->self), CV_SFRAME_LOCK,
                             CV_OPEN_BOTH | CV_OPEN_CREATE, 0666, &target->lock);
    if (!error && !target->is_directory)
        error = cv_keeper_lock(dir, target->self);
    else if (!error)
        error = cv_file_lock(target->lock);
    if (error) return cv_fail_lock(err, error, shown->text);
    target->is_locked = true;
    return cv_target_refuse_readers(target, shown,
                                    err); /* no writer's open counts on it any more */
}

/* ---- Access --------------------------------------------------------------- */

/* Each class that may read (r) may also search (x), and only then has a file's bits. */
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

int cv_target_give(const cv_target *target, const cv_likeness *likeness, cv_file made,
                   cv_file frame)
{
    bool to_directory = cv_file_is_open(frame);
    if (!likeness->known) return 0;
    int error = 0;
    if (to_directory) error = cv_file_take_access(frame, &likeness->inner, target->frame);
    cv_file from = target->is_directory == to_directory ? target->self : (cv_file){0};
    return error ? error : cv_file_take_access(made, &likeness->outer, from);
}
