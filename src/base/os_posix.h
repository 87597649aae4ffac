/* What the os*.c files of a POSIX system share. For them only. */
#ifndef CV_BASE_OS_POSIX_H
#define CV_BASE_OS_POSIX_H

#include "base/os_dir.h"

#include <sys/stat.h>

/* Of none it is -1, which every call refuses. */
static inline int cv_posix_fd(cv_file file) { return file.number - 1; }
static inline int cv_posix_dir(cv_dir dir) { return dir.number - 1; }

cv_file_info cv_posix_info(const struct stat *st);

#endif
