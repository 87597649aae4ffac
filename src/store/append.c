/* Room: store. Bytes behind the end of a file. */
#include "store/append.h"

#include "base/os.h"
#include "store/descriptors.h"
#include "store/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int sync_parent(const char *path)
{
    char *parent = strdup(path);
    if (!parent) return ENOMEM;
    char *slash = strrchr(parent, '/');
    if (slash) slash[slash == parent] = '\0';
    int fd;
    int error = cv_open_at(AT_FDCWD, slash ? parent : ".", O_RDONLY | O_DIRECTORY, 0, &fd);
    free(parent);
    if (error) return error;
    error = cv_os_sync_directory(fd);
    close(fd);
    return error;
}

/* Between opening and locking another process may put another file there. */
static cv_status open_locked(const char *path, int *fd, cv_error *err)
{
    for (;;) {
        int error = cv_open_at(AT_FDCWD, path, O_RDWR | O_CREAT, 0666, fd);
        if (error) return cv_fail_open(err, error, path);
        error = cv_os_lock(*fd);
        if (!error && cv_os_names_fd_at(AT_FDCWD, path, *fd)) return CV_OK;
        close(*fd);
        if (error) return cv_fail_lock(err, error, path);
    }
}

/* Locked before its length is looked at. */
static cv_status open_end(const char *path, int *fd, uint64_t *end, cv_error *err)
{
    struct stat st = {0};
    cv_status status = CV_OK;
    CV_TRY(open_locked(path, fd, err));
    if (fstat(*fd, &st))
        status = cv_fail_open(err, errno, path);
    else if (!S_ISREG(st.st_mode))
        status = cv_fail(err, CATERVA_EIO, -1, "%s is not a regular file",
                         cv_show_path(path).text);
    if (status != CV_OK) {
        close(*fd);
        return status;
    }
    *end = (uint64_t)st.st_size;
    return CV_OK;
}

cv_status cv_store_file_append(const char *path, const void *bytes, size_t size, bool durable,
                               uint64_t *pos, cv_error *err)
{
    int fd;
    CV_TRY(open_end(path, &fd, pos, err));
    int error = cv_os_write(fd, bytes, size, *pos);
    if (!error && durable) error = cv_os_sync_data(fd);
    if (!error && durable && *pos == 0) error = sync_parent(path);
    cv_status status = CV_OK;
    if (!error && !cv_os_names_fd_at(AT_FDCWD, path, fd))
        status = cv_fail(err, CATERVA_EIO, -1,
                         "%s was moved, deleted or replaced by others meanwhile",
                         cv_show_path(path).text);
    if (error) {
        bool cut = ftruncate(fd, (off_t)*pos) == 0;
        status = cv_fail_sys(err, error, "cannot append to %s%s", cv_show_path(path).text,
                             cut ? "" : ", whose end is not as it was");
    }
    cv_os_unlock(fd);
    close(fd);
    return status;
}
