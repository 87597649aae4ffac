/* Who may do what with a file or directory. Functions that return int return 0 or an errno
 * number. */
#ifndef CV_BASE_OS_ACCESS_H
#define CV_BASE_OS_ACCESS_H

#include "base/os_file.h"

/* Permissions, owner and group. */
typedef struct cv_os_access {
    uint32_t mode;
    uint32_t user, group;
} cv_os_access;

int cv_file_get_access(cv_file file, cv_os_access *out);

/* Makes a file of the caller's own accessible like that. Where the process may not give
 * it the owner or group, the new group gets no more than everybody has. */
int cv_file_set_access(cv_file file, const cv_os_access *access);

/* The same, and nobody else gets access by inherited lists: it has those of `from`, and
 * its extended attributes ("user."), where the system has such; `from` none: none. What
 * cannot be set of those is left out. */
int cv_file_take_access(cv_file file, const cv_os_access *access, cv_file from);

#endif
