/* Room: base. Part of os.c: who may do what with a file. What differs between systems is
 * the lists of access and the extended attributes beside the permissions. */
#include "base/os.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#ifdef __linux__
#include <sys/xattr.h>
#endif

int cv_os_get_access(int fd, cv_os_access *out)
{
    struct stat st;
    if (fstat(fd, &st)) return errno;
    *out = (cv_os_access){(uint32_t)st.st_mode & 07777, st.st_uid, st.st_gid};
    return 0;
}

/* *mode: what may be allowed, given who owns the file then. */
static int give_owner(int fd, const cv_os_access *access, uint32_t *mode)
{
    cv_os_access own;
    int error = cv_os_get_access(fd, &own);
    if (error) return error;
    bool same = own.user == access->user && own.group == access->group;
    if (!same && fchown(fd, access->user, access->group) != 0 && own.group != access->group)
        (void)!fchown(fd, (uid_t)-1, access->group);
    error = cv_os_get_access(fd, &own);
    *mode = access->mode & 07777;
    if (own.user != access->user) *mode &= ~(uint32_t)S_ISUID;
    if (own.group == access->group) return error;
    uint32_t everybody = *mode & *mode >> 3 & 7;
    *mode = (*mode & ~(uint32_t)(S_ISGID | 077)) | everybody << 3 | everybody;
    return error;
}

/* A file system without permissions refuses: they are all alike there. */
static int give_mode(int fd, uint32_t mode)
{
    if (fchmod(fd, (mode_t)mode) == 0) return 0;
    bool has_none = errno == EPERM || errno == ENOTSUP || errno == ENOSYS || errno == EINVAL;
    return has_none ? 0 : errno;
}

int cv_os_set_access(int fd, const cv_os_access *access)
{
    uint32_t mode;
    int error = give_owner(fd, access, &mode);
    return error ? error : give_mode(fd, mode);
}

#ifdef __linux__
static const char access_list[] = "system.posix_acl_access";
static const char default_list[] = "system.posix_acl_default";

static void copy_attribute(int fd, int from, const char *name)
{
    ssize_t size = fgetxattr(from, name, NULL, 0);
    char *value = size < 0 ? NULL : malloc((size_t)size + 1);
    if (!value) return;
    size = fgetxattr(from, name, value, (size_t)size);
    if (size >= 0) (void)!fsetxattr(fd, name, value, (size_t)size, 0);
    free(value);
}

static void copy_attributes(int fd, int from, bool with_lists)
{
    ssize_t size = flistxattr(from, NULL, 0);
    char *names = size <= 0 ? NULL : malloc((size_t)size);
    if (!names) return;
    size = flistxattr(from, names, (size_t)size);
    for (ssize_t at = 0; at < size; at += (ssize_t)strlen(names + at) + 1) {
        const char *name = names + at;
        bool is_list = strcmp(name, access_list) == 0 || strcmp(name, default_list) == 0;
        bool is_users = strncmp(name, "user.", 5) == 0;
        if (is_users || (is_list && with_lists)) copy_attribute(fd, from, name);
    }
    free(names);
}

/* A list of another group would speak of ours as of that group. */
static void take_attributes(int fd, int from, uint32_t group)
{
    cv_os_access own;
    (void)!fremovexattr(fd, access_list);
    (void)!fremovexattr(fd, default_list);
    if (from < 0 || cv_os_get_access(fd, &own)) return;
    copy_attributes(fd, from, own.group == group);
}
#else
static void take_attributes(int fd, int from, uint32_t group)
{
    (void)fd, (void)from, (void)group;
}
#endif

int cv_os_take_access(int fd, const cv_os_access *access, int from)
{
    uint32_t mode;
    int error = give_owner(fd, access, &mode);
    if (error) return error;
    take_attributes(fd, from, access->group);
    return give_mode(fd, mode);
}
