/* Room: store. What a new array takes the place of. Must not know how: place.c moves. */
#include "store/target.h"

#include "store/descriptors.h"
#include "store/sframe.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

const cv_target cv_target_nothing = {.fd = -1, .lock_fd = -1, .frame_fd = -1};

/* ---- Opening -------------------------------------------------------------- */

/* Some systems lock only what is open for writing, and a file may allow less. */
static int open_any_way(int dir_fd, const char *name, int *fd)
{
    static const int ways[] = {O_RDWR, O_RDONLY, O_WRONLY};
    int error = 0;
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        error = cv_open_at(dir_fd, name, ways[i] | O_NOFOLLOW, 0, fd);
        if (!error || error == ENOENT) break;
    }
    return error;
}

static cv_status fail_to_open(int error, const cv_shown_path *shown, cv_error *err)
{
    if (error == ENOENT) return cv_fail_open(err, error, shown->text);
    return cv_fail_sys(err, error, "cannot see whether %s is in use", shown->text);
}

cv_status cv_target_open(int dir_fd, const char *name, bool is_directory,
                         const cv_shown_path *shown, cv_target *out, cv_error *err)
{
    cv_target target = cv_target_nothing;
    target.is_directory = is_directory;
    int error = is_directory ? cv_open_at(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW,
                                          0, &target.fd)
                             : open_any_way(dir_fd, name, &target.fd);
    if (!error && is_directory)
        error = cv_open_at(target.fd, CV_SFRAME_FRAME, O_RDONLY, 0, &target.frame_fd);
    if (error) {
        cv_target_close(&target);
        return fail_to_open(error, shown, err);
    }
    *out = target;
    return CV_OK;
}

static void close_if_open(int fd)
{
    if (fd >= 0) close(fd);
}

void cv_target_close(cv_target *target)
{
    if (!target->borrowed) {
        if (target->is_locked)
            cv_os_unlock(target->is_directory ? target->lock_fd : target->fd);
        close_if_open(target->frame_fd);
        close_if_open(target->lock_fd);
        close_if_open(target->fd);
    }
    *target = cv_target_nothing;
}

/* ---- In use? -------------------------------------------------------------- */

bool cv_target_has_readers(const cv_target *target)
{
    return target->is_directory && cv_os_is_shared(target->fd);
}

cv_status cv_target_refuse_readers(const cv_target *target, const cv_shown_path *shown,
                                   cv_error *err)
{
    if (!cv_target_has_readers(target)) return CV_OK;
    return cv_fail(err, CATERVA_EBUSY, -1,
                   "the directory %s is open for reading (by a copy of it, too)",
                   shown->text);
}

cv_status cv_target_ask(const cv_target *target, const cv_shown_path *shown, cv_error *err)
{
    int fd = target->fd;
    int error = 0;
    if (target->is_directory) /* no lock file: nobody ever wrote */
        error = cv_open_at(target->fd, CV_SFRAME_LOCK, O_RDONLY, 0, &fd);
    if (!error) error = cv_os_ask_lock(fd);
    if (target->is_directory) close_if_open(fd);
    if (error && error != ENOENT) return cv_fail_lock(err, error, shown->text);
    return cv_target_refuse_readers(target, shown, err);
}

cv_status cv_target_lock(cv_target *target, const cv_shown_path *shown, cv_error *err)
{
    int error = 0;
    CV_TRY(cv_target_refuse_readers(target, shown, err));
    if (target->is_directory)
        error =
            cv_open_at(target->fd, CV_SFRAME_LOCK, O_RDWR | O_CREAT, 0666, &target->lock_fd);
    if (!error) error = cv_os_lock(target->is_directory ? target->lock_fd : target->fd);
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
    if (target->fd < 0 || cv_os_get_access(target->fd, &outer)) return like;
    frame = outer;
    if (target->frame_fd >= 0 && cv_os_get_access(target->frame_fd, &frame)) return like;
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

int cv_target_give(const cv_target *target, const cv_likeness *likeness, int fd, int frame_fd)
{
    bool to_directory = frame_fd >= 0;
    if (!likeness->known) return 0;
    int error = 0;
    if (to_directory) error = cv_os_take_access(frame_fd, &likeness->inner, target->frame_fd);
    int from = target->is_directory == to_directory ? target->fd : -1;
    return error ? error : cv_os_take_access(fd, &likeness->outer, from);
}
