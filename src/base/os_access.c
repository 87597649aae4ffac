/* Room: base. Who may do what with a file of a POSIX system; the lists of access and the
 * extended attributes beside the permissions differ even between those. With the other
 * os*.c and thread.c what a port writes anew. */
#include "base/os_access.h"

#include "base/heap.h"
#include "base/os_posix.h"

#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

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

/* *mode: what may be allowed, given who owns the file then. */
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

/* A file system without permissions refuses: they are all alike there. */
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

/* A list of another group would speak of ours as of that group. */
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
