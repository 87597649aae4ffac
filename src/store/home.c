/* Room: store. The name that leads to a store. A file's is kept with the directory that it
 * is in; a directory finds its own through "..", which costs no descriptor. */
#include "store/home.h"

#include "store/descriptors.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

const cv_home cv_home_unknown = {.dir_fd = -1};

/* ---- Finding -------------------------------------------------------------- */

/* So that a look at the name, which every commit takes, is one call. */
static void remember(cv_home *home, int fd)
{
    struct stat st = {0};
    if (home->is_directory)
        (void)!fstatat(fd, "..", &st, 0);
    else
        (void)!fstat(fd, &st);
    home->device = (uint64_t)st.st_dev;
    home->inode = (uint64_t)st.st_ino;
}

static cv_status name_in_parent(const char *name, cv_home *out, cv_error *err)
{
    size_t size = strlen(name) + sizeof "../";
    out->name = malloc(size);
    if (!out->name) return cv_fail_memory(err, size, "a path");
    (void)snprintf(out->name, size, "%s%s", out->is_directory ? "../" : "", name);
    return CV_OK;
}

/* A directory above that may not even be searched through leaves the path as it is. */
static cv_status find_file(char *path, cv_home *out, cv_error *err)
{
    char *slash = strrchr(path, '/');
    bool opened = false;
    if (slash && slash[1]) {
        *slash = '\0';
        int error;
        do {
            error = cv_os_open_names(slash == path ? "/" : path, &out->dir_fd);
        } while (cv_descriptors_make_room(error));
        opened = error == 0;
        *slash = '/';
    }
    if (!opened) out->dir_fd = AT_FDCWD;
    return name_in_parent(opened ? slash + 1 : path, out, err);
}

cv_status cv_home_find(const char *path, int fd, bool is_directory, cv_home *out,
                       cv_error *err)
{
    *out = cv_home_unknown;
    out->is_directory = is_directory;
    char *real = realpath(path, NULL);
    if (!real) real = strdup(path);
    if (!real) return cv_fail_memory(err, strlen(path) + 1, "a path");
    const char *slash = strrchr(real, '/');
    cv_status status = CV_OK;
    if (is_directory && slash && slash[1]) {
        status = name_in_parent(slash + 1, out, err);
    } else {
        out->is_directory = false; /* the root directory, or an unknown way: by its path */
        status = find_file(real, out, err);
    }
    remember(out, fd);
    free(real);
    if (status != CV_OK) cv_home_close(out);
    return status;
}

void cv_home_take(const cv_place *place, int fd, cv_home *out)
{
    *out = cv_home_unknown;
    out->is_directory = place->is_directory;
    remember(out, fd);
    if (!place->is_directory &&
        cv_open_at(place->dir_fd, ".", O_RDONLY | O_DIRECTORY, 0, &out->dir_fd))
        out->dir_fd = -1;
    if (place->is_directory || out->dir_fd >= 0)
        (void)name_in_parent(place->name, out, NULL); /* NULL: not asked for */
}

void cv_home_close(cv_home *home)
{
    if (home->dir_fd >= 0) close(home->dir_fd);
    free(home->name);
    *home = cv_home_unknown;
}

/* ---- Asking --------------------------------------------------------------- */

/* What was remembered stands there. */
static bool stands_at(const cv_home *home, int dir_fd, const char *name)
{
    struct stat st;
    if (fstatat(dir_fd, name, &st, 0)) return false;
    return (uint64_t)st.st_dev == home->device && (uint64_t)st.st_ino == home->inode;
}

bool cv_home_leads_to(const cv_home *home, int fd)
{
    if (!home->name) return true;
    if (!home->is_directory) return stands_at(home, home->dir_fd, home->name);
    return stands_at(home, fd, "..") && cv_os_names_fd_at(fd, home->name, fd);
}

cv_status cv_home_check(const cv_home *home, int fd, const cv_shown_path *shown,
                        cv_error *err)
{
    struct stat there, own = {0};
    if (cv_home_leads_to(home, fd)) return CV_OK;
    bool is_there = fstatat(home->is_directory ? fd : home->dir_fd, home->name, &there,
                            AT_SYMLINK_NOFOLLOW) == 0;
    bool is_gone = fstat(fd, &own) == 0 && own.st_nlink == 0;
    const char *what = is_there && !home->is_directory ? "was replaced by another file"
                       : is_gone                       ? "was deleted"
                                                       : "was moved or replaced";
    return cv_fail(err, CATERVA_EIO, -1,
                   "%s %s by others while it was open for writing: it is not at its name",
                   shown->text, what);
}

/* ---- Taking the name ------------------------------------------------------ */

static int open_parent(const cv_home *home, int fd, int *dir_fd)
{
    int flags = O_RDONLY | O_DIRECTORY;
    if (home->is_directory) return cv_open_at(fd, "..", flags, 0, dir_fd);
    if (home->dir_fd != AT_FDCWD) return cv_open_at(home->dir_fd, ".", flags, 0, dir_fd);
    const char *slash = strrchr(home->name, '/');
    char *parent =
        slash ? strndup(home->name, (size_t)(slash - home->name) + 1) : strdup(".");
    if (!parent) return ENOMEM;
    int error = cv_open_at(AT_FDCWD, parent, flags, 0, dir_fd);
    free(parent);
    return error;
}

cv_status cv_home_place(const cv_home *home, int fd, int frame_fd, const cv_shown_path *shown,
                        cv_place *out, cv_error *err)
{
    cv_place place = {.dir_fd = -1, .overwrite = true, .shown = *shown};
    if (!home->name) return cv_fail(err, CATERVA_EIO, -1, "%s has no name", shown->text);
    const char *slash = strrchr(home->name, '/');
    place.name = strdup(slash ? slash + 1 : home->name);
    if (!place.name) return cv_fail_memory(err, strlen(home->name), "a path");
    int error = open_parent(home, fd, &place.dir_fd);
    if (error) {
        free(place.name);
        return cv_fail_sys(err, error, "cannot open the directory of %s", shown->text);
    }
    place.old = (cv_target){.fd = fd,
                            .lock_fd = -1,
                            .frame_fd = frame_fd,
                            .is_directory = home->is_directory,
                            .borrowed = true};
    place.is_held = true;
    *out = place;
    return CV_OK;
}
