/* Room: store. Which files make a directory an array, and the removal of just
 * these: a file of somebody else is never removed, and keeps its directory. */
#include "store/sframe.h"

#include "base/os.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* C-Blosc2's own lock file. */
static const char foreign_lock[] = ".b2lock";

static const char chunk_suffix[] = ".chunk";

cv_chunk_name cv_sframe_chunk_name(cv_object id)
{
    cv_chunk_name name;
    (void)snprintf(name.text, sizeof name.text, "%08llX%s", (unsigned long long)id,
                   chunk_suffix);
    return name;
}

static bool is_chunk_name(const char *name)
{
    size_t digits = strspn(name, "0123456789ABCDEFabcdef");
    return digits >= 8 && digits <= 16 && strcmp(name + digits, chunk_suffix) == 0;
}

static bool is_array_name(const char *name)
{
    return is_chunk_name(name) || strcmp(name, CV_SFRAME_FRAME) == 0 ||
           strcmp(name, CV_SFRAME_NEW_FRAME) == 0 || strcmp(name, CV_SFRAME_LOCK) == 0 ||
           strcmp(name, foreign_lock) == 0;
}

static bool is_dots(const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

static DIR *open_directory_at(int dir_fd, const char *name)
{
    int fd;
    if (cv_os_open_at(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0, &fd) != 0)
        return NULL;
    DIR *dir = fdopendir(fd);
    if (!dir) close(fd);
    return dir;
}

static bool is_regular_file_at(int dir_fd, const char *name)
{
    struct stat st;
    return fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode);
}

bool cv_sframe_is_array_at(int dir_fd, const char *name)
{
    DIR *dir = open_directory_at(dir_fd, name);
    if (!dir) return false;
    bool has_frame = false, is_array = true;
    errno = 0;
    for (struct dirent *e; is_array && (e = readdir(dir)) != NULL; errno = 0) {
        if (is_dots(e->d_name)) continue;
        is_array = is_array_name(e->d_name) && is_regular_file_at(dirfd(dir), e->d_name);
        has_frame = has_frame || strcmp(e->d_name, CV_SFRAME_FRAME) == 0;
    }
    bool read_all = errno == 0;
    closedir(dir);
    return is_array && has_frame && read_all;
}

/* One pass; some systems lose their place in a directory that changes. */
static bool remove_files_at(int dir_fd, const char *name)
{
    bool removed = false;
    DIR *dir = open_directory_at(dir_fd, name);
    if (!dir) return false;
    for (struct dirent *e; (e = readdir(dir)) != NULL;)
        if (is_array_name(e->d_name) && unlinkat(dirfd(dir), e->d_name, 0) == 0)
            removed = true;
    closedir(dir);
    return removed;
}

void cv_sframe_remove_at(int dir_fd, const char *name)
{
    bool progress = true;
    while (progress && unlinkat(dir_fd, name, AT_REMOVEDIR) != 0)
        progress = remove_files_at(dir_fd, name);
}
