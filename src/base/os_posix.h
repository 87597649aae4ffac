/* Shared by the os*.c files of a POSIX system only. */
#ifndef CV_BASE_OS_POSIX_H
#define CV_BASE_OS_POSIX_H

#include "base/os_handle.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

/* Return the descriptor. It is -1, which every call refuses, if the file is not open. */
static inline int cv_posix_fd(cv_file file) { return file.number - 1; }
static inline int cv_posix_dir(cv_dir dir) { return dir.number - 1; }

/* Flushes the file and the drive's cache. On macOS fsync does not flush that cache, but some file
 * systems support only fsync. */
static inline int cv_posix_flush(int fd)
{
#ifdef __APPLE__
    int failed = fcntl(fd, F_FULLFSYNC);
    if (!failed || errno == EINTR) return failed;
#endif
    return fsync(fd);
}

static inline cv_file_kind cv_posix_kind(mode_t mode)
{
    if (S_ISREG(mode)) return CV_KIND_FILE;
    if (S_ISDIR(mode)) return CV_KIND_DIRECTORY;
    return S_ISLNK(mode) ? CV_KIND_LINK : CV_KIND_OTHER;
}

static inline uint64_t cv_posix_changed(const struct stat *st)
{
    const struct timespec t = st->st_mtim;
    return t.tv_sec < 0 ? 0 : (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static inline cv_file_info cv_posix_info(const struct stat *st)
{
    return (cv_file_info){.kind = cv_posix_kind(st->st_mode),
                          .size = (uint64_t)st->st_size,
                          .n_names = (uint64_t)st->st_nlink,
                          .device = (uint64_t)st->st_dev,
                          .inode = (uint64_t)st->st_ino,
                          .changed_ns = cv_posix_changed(st)};
}

#endif
