/* Room: store. The name that leads to a store. A file's is kept with the directory that it
 * is in; a directory finds its own through "..", which costs no descriptor. */
#include "store/home.h"

#include "base/heap.h"
#include "store/descriptors.h"

#include <stdio.h>
#include <string.h>

/* ---- Finding -------------------------------------------------------------- */

/* So that a look at the name, which every commit takes, is one call. */
static void remember(cv_home *home, cv_file self)
{
    cv_file_info info = {0};
    if (home->is_directory)
        (void)cv_dir_get_info(cv_dir_of_file(self), "..", &info);
    else
        (void)cv_file_get_info(self, &info);
    home->device = info.device;
    home->inode = info.inode;
}

static cv_status name_in_parent(const char *name, cv_home *out, cv_error *err)
{
    size_t size = strlen(name) + sizeof "../";
    out->name = cv_malloc(size);
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
            error = cv_dir_open_names(slash == path ? "/" : path, &out->dir);
        } while (cv_descriptors_make_room(error));
        opened = error == 0;
        *slash = '/';
    }
    if (!opened) out->dir = cv_dir_here;
    return name_in_parent(opened ? slash + 1 : path, out, err);
}

cv_status cv_home_find(const char *path, cv_file self, bool is_directory, cv_home *out,
                       cv_error *err)
{
    *out = (cv_home){.is_directory = is_directory};
    char *real = cv_os_real_path(path);
    if (!real) real = cv_strdup(path);
    if (!real) return cv_fail_memory(err, strlen(path) + 1, "a path");
    const char *slash = strrchr(real, '/');
    cv_status status = CV_OK;
    if (is_directory && slash && slash[1]) {
        status = name_in_parent(slash + 1, out, err);
    } else {
        out->is_directory = false; /* the root directory, or an unknown way: by its path */
        status = find_file(real, out, err);
    }
    remember(out, self);
    cv_free(real);
    if (status != CV_OK) cv_home_close(out);
    return status;
}

void cv_home_take(const cv_place *place, cv_file self, cv_home *out)
{
    *out = (cv_home){.is_directory = place->is_directory};
    remember(out, self);
    if (!place->is_directory) (void)cv_open_dir(place->dir, ".", 0, &out->dir);
    if (place->is_directory || cv_dir_is_open(out->dir))
        (void)name_in_parent(place->name, out, NULL); /* NULL: not asked for */
}

void cv_home_close(cv_home *home)
{
    cv_dir_close(&home->dir);
    cv_free(home->name);
    *home = (cv_home){0};
}

/* ---- Asking --------------------------------------------------------------- */

/* What was remembered stands there. */
static bool stands_at(const cv_home *home, cv_dir dir, const char *name)
{
    return cv_dir_leads_to(dir, name, home->device, home->inode);
}

/* Where its name is looked up. */
static cv_dir dir_of(const cv_home *home, cv_file self)
{
    return home->is_directory ? cv_dir_of_file(self) : home->dir;
}

bool cv_home_leads_to(const cv_home *home, cv_file self)
{
    if (!home->name) return true;
    if (!home->is_directory) return stands_at(home, home->dir, home->name);
    cv_dir own = cv_dir_of_file(self);
    return stands_at(home, own, "..") && cv_dir_names(own, home->name, self);
}

cv_status cv_home_check(const cv_home *home, cv_file self, const cv_shown_path *shown,
                        cv_error *err)
{
    cv_file_info there, own;
    if (cv_home_leads_to(home, self)) return CV_OK;
    bool is_there = cv_dir_get_link_info(dir_of(home, self), home->name, &there) == 0;
    bool is_gone = cv_file_get_info(self, &own) == 0 && own.n_names == 0;
    const char *what = is_there && !home->is_directory ? "was replaced by another file"
                       : is_gone                       ? "was deleted"
                                                       : "was moved or replaced";
    return cv_fail(err, CATERVA_EIO, -1,
                   "%s %s by others while it was open for writing: it is not at its name",
                   shown->text, what);
}

/* ---- Taking the name ------------------------------------------------------ */

static int open_parent(const cv_home *home, cv_file self, cv_dir *out)
{
    if (home->is_directory) return cv_open_dir(cv_dir_of_file(self), "..", 0, out);
    if (!cv_dir_is_here(home->dir)) return cv_open_dir(home->dir, ".", 0, out);
    const char *slash = strrchr(home->name, '/');
    char *parent =
        slash ? cv_strndup(home->name, (size_t)(slash - home->name) + 1) : cv_strdup(".");
    if (!parent) return ENOMEM;
    int error = cv_open_dir(cv_dir_here, parent, 0, out);
    cv_free(parent);
    return error;
}

cv_status cv_home_place(const cv_home *home, cv_file self, cv_file frame,
                        const cv_shown_path *shown, cv_place *out, cv_error *err)
{
    cv_place place = {.overwrite = true, .shown = *shown};
    if (!home->name) return cv_fail(err, CATERVA_EIO, -1, "%s has no name", shown->text);
    const char *slash = strrchr(home->name, '/');
    place.name = cv_strdup(slash ? slash + 1 : home->name);
    if (!place.name) return cv_fail_memory(err, strlen(home->name), "a path");
    int error = open_parent(home, self, &place.dir);
    if (error) {
        cv_free(place.name);
        return cv_fail_sys(err, error, "cannot open the directory of %s", shown->text);
    }
    place.old = (cv_target){
        .self = self, .frame = frame, .is_directory = home->is_directory, .borrowed = true};
    place.is_held = true;
    *out = place;
    return CV_OK;
}
