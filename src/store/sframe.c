/* Room: store. Which files make a directory an array, and the removal of just
 * these: a file of somebody else is never removed, and keeps its directory. */
#include "store/sframe.h"

#include "store/descriptors.h"

#include "base/os.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
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
    if (cv_open_at(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0, &fd) != 0)
        return NULL;
    DIR *dir = fdopendir(fd);
    if (!dir) close(fd);
    return dir;
}

/* Or none any more: a writer that closes removes old chunks. */
static bool is_regular_file_at(int dir_fd, const char *name)
{
    struct stat st;
    if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) != 0) return errno == ENOENT;
    return S_ISREG(st.st_mode);
}

/* Appends to a list that grows by doubling. Returns 0 or ENOMEM. */
static int append_id(cv_object **ids, size_t *n, cv_object id)
{
    bool is_full = (*n & (*n - 1)) == 0; /* 0 or a power of two */
    if (is_full) {
        cv_object *grown = realloc(*ids, (*n ? *n * 2 : 1) * sizeof grown[0]);
        if (!grown) return ENOMEM;
        *ids = grown;
    }
    (*ids)[(*n)++] = id;
    return 0;
}

int cv_sframe_list(int dir_fd, cv_object **ids, size_t *n)
{
    *ids = NULL;
    *n = 0;
    DIR *dir = open_directory_at(dir_fd, ".");
    if (!dir) return errno;
    int error = 0;
    for (;;) {
        errno = 0;
        struct dirent *e = readdir(dir);
        if (!e) error = errno;
        if (!e || error) break;
        unsigned long long id = is_chunk_name(e->d_name) ? strtoull(e->d_name, NULL, 16) : 0;
        bool is_ours = id <= INT64_MAX && is_chunk_name(e->d_name) &&
                       strcmp(cv_sframe_chunk_name((cv_object)id).text, e->d_name) == 0;
        if (is_ours) error = append_id(ids, n, (cv_object)id);
        if (error) break;
    }
    closedir(dir);
    if (!error) return 0;
    free(*ids);
    *ids = NULL;
    *n = 0;
    return error;
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
