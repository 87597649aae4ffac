/* Room: base. Open directories on POSIX. A port rewrites os*.c and thread.c. All descriptors are
 * close-on-exec. */
#include "base/os_dir.h"

#include "base/heap.h"
#include "base/os_posix.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

/* ---- Directories ---- */

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

/* Moves a descriptor out of the numbers of the standard streams. If stderr were closed, a file
 * could get its number, and messages written to stderr would go into the file. */
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

/* Opens `name` with close-on-exec. Does not block on a pipe. */
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

/* ---- Information -------------------------------------------------------- */

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

/* Does not query the file's times: since Linux 6.13 a write after such a query sets new times, and
 * also writes them to the journal. A write and fstatat take 2.9 us with times, 1.9 us without. */
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

/* macOS ignores case on its usual file systems, and has the spelling with an open file. */
bool cv_dir_is_spelled(cv_dir dir, const char *path)
{
#ifdef __APPLE__
    cv_file file = {0};
    char found[PATH_MAX];
    size_t size = strlen(path);
    if (open_at(dir, path, O_EVTONLY, 0, &file.number)) return true;
    bool has_path = fcntl(cv_posix_fd(file), F_GETPATH, found) == 0;
    cv_file_close(&file);
    if (!has_path || strlen(found) < size) return true;
    const char *end = found + strlen(found) - size; /* another path if there are links */
    return strcmp(end, path) == 0 || strcasecmp(end, path) != 0;
#else
    (void)dir, (void)path;
    return true;
#endif
}

bool cv_os_can_name(const char *path)
{
    (void)path;
    return true;
}

void cv_os_use_slashes(char *path) { (void)path; }

bool cv_os_is_absolute(const char *path) { return path[0] == '/'; }

char *cv_os_absolute(const char *path)
{
    char *parent =
        cv_os_is_absolute(path) ? NULL : getcwd(NULL, 0); /* allocates for any length */
    if (!parent) return cv_strdup(path);
    size_t size = strlen(parent) + strlen(path) + 2;
    char *joined = cv_malloc(size);
    if (joined) (void)snprintf(joined, size, "%s/%s", parent, path);
    free(parent);
    return joined;
}

char *cv_os_real_path(const char *path)
{
    char *found = realpath(path, NULL); /* allocated by the C library */
    char *copy = found ? cv_strdup(found) : NULL;
    free(found);
    return copy;
}

/* ---- Changing ----------------------------------------------------------- */

int cv_dir_sync(cv_dir dir)
{
    int failed;
    do {
        failed = cv_posix_flush(cv_posix_dir(dir));
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

/* ---- Names ----
 *
 * Some systems have special calls for renames. */

#ifdef __linux__
#include <sys/syscall.h>
#endif

/* ---- Renaming ----------------------------------------------------------- */

typedef enum rename_how { RENAME_TO_NEW, RENAME_BOTH_WAYS } rename_how;

/* Renames without replacing `to`, or exchanges names. ENOTSUP if the (file) system cannot. */
static int rename_specially(cv_dir dir, const char *from, const char *to, rename_how how)
{
    int failed = -1;
    errno = ENOTSUP;
#if defined(__linux__) && defined(SYS_renameat2)
    /* Flag 1 is RENAME_NOREPLACE, 2 is RENAME_EXCHANGE: some headers lack these names. */
    unsigned flags = how == RENAME_TO_NEW ? 1u : 2u;
    failed =
        (int)syscall(SYS_renameat2, cv_posix_dir(dir), from, cv_posix_dir(dir), to, flags);
#elif defined(__APPLE__)
    unsigned flags = how == RENAME_TO_NEW ? RENAME_EXCL : RENAME_SWAP;
    failed = renameatx_np(cv_posix_dir(dir), from, cv_posix_dir(dir), to, flags);
#else
    (void)dir, (void)from, (void)to, (void)how;
#endif
    if (!failed) return 0;
    return errno == EINVAL || errno == ENOSYS ? ENOTSUP : errno;
}

int cv_dir_rename(cv_dir dir, const char *from, const char *to)
{
    return renameat(cv_posix_dir(dir), from, cv_posix_dir(dir), to) ? errno : 0;
}

/* A rename may replace an empty directory. So an empty directory, created exclusively, first
 * reserves `to`. */
static int rename_directory_new(cv_dir dir, const char *from, const char *to)
{
    if (mkdirat(cv_posix_dir(dir), to, 0777)) return errno;
    int error = cv_dir_rename(dir, from, to);
    if (error) (void)cv_dir_remove_directory(dir, to);
    return error;
}

static int rename_file_new(cv_dir dir, const char *from, const char *to)
{
    if (linkat(cv_posix_dir(dir), from, cv_posix_dir(dir), to, 0) == 0)
        return cv_dir_remove(dir, from);
    if (errno == EEXIST) return EEXIST;

    /* the file system has no hard links: an empty file reserves the name for a moment */
    cv_file file;
    unsigned how = CV_OPEN_WRITE | CV_OPEN_CREATE | CV_OPEN_NEW;
    int error = cv_dir_open_file(dir, to, how, 0666, &file);
    if (error) return error;
    cv_file_close(&file);
    error = cv_dir_rename(dir, from, to);
    if (error) (void)cv_dir_remove(dir, to);
    return error;
}

int cv_dir_rename_new_portable(cv_dir dir, const char *from, const char *to)
{
    cv_file_info info = {0};
    int error = cv_dir_get_link_info(dir, from, &info);
    if (error) return error;
    return info.kind == CV_KIND_DIRECTORY ? rename_directory_new(dir, from, to)
                                          : rename_file_new(dir, from, to);
}

int cv_dir_rename_new(cv_dir dir, const char *from, const char *to)
{
    int error = rename_specially(dir, from, to, RENAME_TO_NEW);
    return error == ENOTSUP ? cv_dir_rename_new_portable(dir, from, to) : error;
}

int cv_dir_link(cv_dir dir, const char *from, cv_dir other, const char *to)
{
    return linkat(cv_posix_dir(dir), from, cv_posix_dir(other), to, 0) ? errno : 0;
}

int cv_dir_exchange(cv_dir dir, const char *a, const char *b)
{
    return rename_specially(dir, a, b, RENAME_BOTH_WAYS);
}

int cv_dir_make(cv_dir dir, const char *name, uint32_t mode)
{
    return mkdirat(cv_posix_dir(dir), name, (mode_t)mode) ? errno : 0;
}

/* ---- Access ----
 *
 * Access control lists and extended attributes differ even between POSIX systems. */

#ifdef __linux__
#include <sys/xattr.h>
#endif

int cv_file_get_access(cv_file file, cv_os_access *out)
{
    struct stat st;
    if (fstat(cv_posix_fd(file), &st)) return errno;
    *out = (cv_os_access){(uint32_t)st.st_mode & 07777, st.st_uid, st.st_gid};
    return 0;
}

/* Sets owner and group if the system permits it. Sets *mode to the permissions that are safe with
 * the owner and group that the file then has. */
static int give_owner(cv_file file, const cv_os_access *access, uint32_t *mode)
{
    cv_os_access own = {0};
    int error = cv_file_get_access(file, &own);
    if (error) return error;
    bool same = own.user == access->user && own.group == access->group;
    if (!same && fchown(cv_posix_fd(file), access->user, access->group) != 0 &&
        own.group != access->group)
        (void)!fchown(cv_posix_fd(file), (uid_t)-1, access->group);
    error = cv_file_get_access(file, &own);
    *mode = access->mode & 07777;
    if (own.user != access->user) *mode &= ~(uint32_t)S_ISUID;
    if (own.group == access->group) return error;
    uint32_t everybody = *mode & *mode >> 3 & 7;
    *mode = (*mode & ~(uint32_t)(S_ISGID | 077)) | everybody << 3 | everybody;
    return error;
}

/* Sets permissions. Ignores errors of file systems that store no permissions. */
static int give_mode(cv_file file, uint32_t mode)
{
    if (fchmod(cv_posix_fd(file), (mode_t)mode) == 0) return 0;
    bool has_none = errno == EPERM || errno == ENOTSUP || errno == ENOSYS || errno == EINVAL;
    return has_none ? 0 : errno;
}

int cv_file_set_access(cv_file file, const cv_os_access *access)
{
    uint32_t mode;
    int error = give_owner(file, access, &mode);
    return error ? error : give_mode(file, mode);
}

#ifdef __linux__
static const char access_list[] = "system.posix_acl_access";
static const char default_list[] = "system.posix_acl_default";

static void copy_attribute(int fd, int from, const char *name)
{
    ssize_t size = fgetxattr(from, name, NULL, 0);
    char *value = size < 0 ? NULL : cv_malloc((size_t)size + 1);
    if (!value) return;
    size = fgetxattr(from, name, value, (size_t)size);
    if (size >= 0) (void)!fsetxattr(fd, name, value, (size_t)size, 0);
    cv_free(value);
}

static void copy_attributes(int fd, int from, bool with_lists)
{
    ssize_t size = flistxattr(from, NULL, 0);
    char *names = size <= 0 ? NULL : cv_malloc((size_t)size);
    if (!names) return;
    size = flistxattr(from, names, (size_t)size);
    for (ssize_t at = 0; at < size; at += (ssize_t)strlen(names + at) + 1) {
        const char *name = names + at;
        bool is_list = strcmp(name, access_list) == 0 || strcmp(name, default_list) == 0;
        bool is_users = strncmp(name, "user.", 5) == 0;
        if (is_users || (is_list && with_lists)) copy_attribute(fd, from, name);
    }
    cv_free(names);
}

/* Replaces the access control lists of `file` by those of `from`, whose group is `group`, and
 * copies "user." attributes. Omits the lists if `file` has another group, because their entry for
 * the owning group is meant for the group of `from`. */
static void take_attributes(cv_file file, cv_file from, uint32_t group)
{
    cv_os_access own = {0};
    (void)!fremovexattr(cv_posix_fd(file), access_list);
    (void)!fremovexattr(cv_posix_fd(file), default_list);
    if (!cv_file_is_open(from) || cv_file_get_access(file, &own)) return;
    copy_attributes(cv_posix_fd(file), cv_posix_fd(from), own.group == group);
}
#else
static void take_attributes(cv_file file, cv_file from, uint32_t group)
{
    (void)file, (void)from, (void)group;
}
#endif

int cv_file_take_access(cv_file file, const cv_os_access *access, cv_file from)
{
    uint32_t mode;
    int error = give_owner(file, access, &mode);
    if (error) return error;
    take_attributes(file, from, access->group);
    return give_mode(file, mode);
}
