/* Room: base. Open directories on a POSIX system. With the other os*.c and thread.c what
 * a port writes anew. Promises: every new descriptor is close-on-exec. Must not know what
 * the directories are for. */
#include "base/os_dir.h"

#include "base/heap.h"
#include "base/os_posix.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifdef STATX_INO
#include <sys/sysmacros.h>
#endif

const cv_dir cv_dir_here = {AT_FDCWD + 1};

void cv_dir_close(cv_dir *dir)
{
    if (cv_dir_is_open(*dir) && !cv_dir_is_here(*dir)) close(cv_posix_dir(*dir));
    *dir = (cv_dir){0};
}

/* ---- Opening ------------------------------------------------------------ */

/* In a program that was started without its standard streams, a file of ours could take
 * the place of one, and what is meant for stderr would be written into it. */
static int keep_off_streams(int *fd)
{
    enum { FIRST = 3 };
    if (*fd >= FIRST) return 0;
    int moved = fcntl(*fd, F_DUPFD_CLOEXEC, FIRST);
    int error = moved < 0 ? errno : 0;
    close(*fd);
    *fd = moved;
    return error;
}

/* With close-on-exec, and never hanging on a pipe. */
static int open_at(cv_dir dir, const char *name, int flags, uint32_t mode, int *number)
{
    int fd;
    do {
        fd = openat(cv_posix_dir(dir), name, flags | O_CLOEXEC | O_NONBLOCK, (mode_t)mode);
    } while (fd < 0 && errno == EINTR);
    int error = fd < 0 ? errno : keep_off_streams(&fd);
    *number = error ? 0 : fd + 1;
    return error;
}

static int flags_of(unsigned how)
{
    int flags = O_RDONLY;
    if (how & CV_OPEN_WRITE) flags = how & CV_OPEN_READ ? O_RDWR : O_WRONLY;
    if (how & CV_OPEN_CREATE) flags |= O_CREAT;
    if (how & CV_OPEN_NEW) flags |= O_EXCL;
    if (how & CV_OPEN_EMPTY) flags |= O_TRUNC;
    if (how & CV_OPEN_NO_LINK) flags |= O_NOFOLLOW;
    return flags;
}

int cv_dir_open_file(cv_dir dir, const char *name, unsigned how, uint32_t mode, cv_file *out)
{
    return open_at(dir, name, flags_of(how), mode, &out->number);
}

int cv_dir_open(cv_dir dir, const char *name, unsigned how, cv_dir *out)
{
    return open_at(dir, name, flags_of(how) | O_DIRECTORY, 0, &out->number);
}

int cv_dir_open_names(const char *path, cv_dir *out)
{
#if defined(O_PATH)
    enum { FLAGS = O_PATH };
#elif defined(O_SEARCH)
    enum { FLAGS = O_SEARCH };
#else
    enum { FLAGS = O_RDONLY };
#endif
    return open_at(cv_dir_here, path, FLAGS | O_DIRECTORY, 0, &out->number);
}

/* ---- Asking ------------------------------------------------------------- */

static int get_info(cv_dir dir, const char *name, int flags, cv_file_info *out)
{
    struct stat st;
    if (fstatat(cv_posix_dir(dir), name, &st, flags)) return errno;
    *out = cv_posix_info(&st);
    return 0;
}

int cv_dir_get_info(cv_dir dir, const char *name, cv_file_info *out)
{
    return get_info(dir, name, 0, out);
}

int cv_dir_get_link_info(cv_dir dir, const char *name, cv_file_info *out)
{
    return get_info(dir, name, AT_SYMLINK_NOFOLLOW, out);
}

/* Linux since 6.13: who has asked for a file's times has its next write enter a new one,
 * into the journal, too. A write and a look by fstatat 2.9 us, without the times 1.9. */
bool cv_dir_leads_to(cv_dir dir, const char *name, uint64_t device, uint64_t inode)
{
    cv_file_info info = {0};
#ifdef STATX_INO
    struct statx found;
    if (statx(cv_posix_dir(dir), name, 0, STATX_INO, &found) == 0)
        return found.stx_ino == inode &&
               makedev(found.stx_dev_major, found.stx_dev_minor) == device;
#endif
    return cv_dir_get_info(dir, name, &info) == 0 && info.device == device &&
           info.inode == inode;
}

static bool are_same(const cv_file_info *a, const cv_file_info *b)
{
    return a->device == b->device && a->inode == b->inode;
}

bool cv_dir_names(cv_dir dir, const char *name, cv_file file)
{
    cv_file_info opened = {0}, named = {0};
    return cv_file_get_info(file, &opened) == 0 && cv_dir_get_info(dir, name, &named) == 0 &&
           are_same(&opened, &named);
}

bool cv_os_same_file(const char *a, const char *b)
{
    cv_file_info x = {0}, y = {0};
    return cv_dir_get_info(cv_dir_here, a, &x) == 0 &&
           cv_dir_get_info(cv_dir_here, b, &y) == 0 && are_same(&x, &y);
}

char *cv_os_absolute(const char *path)
{
    char *parent = path[0] == '/' ? NULL : getcwd(NULL, 0); /* as long as it takes */
    if (!parent) return cv_strdup(path);
    size_t size = strlen(parent) + strlen(path) + 2;
    char *joined = cv_malloc(size);
    if (joined) (void)snprintf(joined, size, "%s/%s", parent, path);
    free(parent);
    return joined;
}

char *cv_os_real_path(const char *path)
{
    char *found = realpath(path, NULL); /* the C library's memory */
    char *copy = found ? cv_strdup(found) : NULL;
    free(found);
    return copy;
}

/* ---- Changing ----------------------------------------------------------- */

int cv_dir_sync(cv_dir dir)
{
    int failed;
    do {
        failed = fsync(cv_posix_dir(dir));
    } while (failed && errno == EINTR);
    return failed && errno != EINVAL && errno != ENOTSUP ? errno : 0;
}

int cv_dir_sync_all(cv_dir dir)
{
#ifdef __linux__
    return syncfs(cv_posix_dir(dir)) ? errno : 0;
#else
    (void)dir;
    return ENOTSUP;
#endif
}

int cv_dir_remove(cv_dir dir, const char *name)
{
    return unlinkat(cv_posix_dir(dir), name, 0) ? errno : 0;
}

int cv_dir_remove_directory(cv_dir dir, const char *name)
{
    return unlinkat(cv_posix_dir(dir), name, AT_REMOVEDIR) ? errno : 0;
}

/* ---- Listing ------------------------------------------------------------ */

int cv_listing_open(cv_dir dir, cv_listing *out)
{
    *out = (cv_listing){.system = fdopendir(cv_posix_dir(dir)), .dir = dir};
    if (out->system) return 0;
    int error = errno;
    cv_dir_close(&dir);
    return error;
}

static bool is_dots(const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

const char *cv_listing_next(cv_listing *listing, int *error)
{
    struct dirent *entry;
    do {
        errno = 0;
        entry = readdir(listing->system);
    } while (entry && is_dots(entry->d_name));
    *error = entry ? 0 : errno;
    return entry ? entry->d_name : NULL;
}

void cv_listing_close(cv_listing *listing)
{
    closedir(listing->system);
    *listing = (cv_listing){0};
}
