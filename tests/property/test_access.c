/* Access rights do not change: permissions, owner, group and attributes of what is replaced,
 * by every function that replaces, and of what a commit adds to a directory. At no moment do
 * more users have access to the new file than to the old one. */
#include "small_array.h"

#include <caterva_upkeep.h>
#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#ifdef __linux__
#include <sys/xattr.h>
#endif

enum { OTHER_USER = 4321, OTHER_GROUP = 8765 };

static char folder[SCRATCH_PATH], target[PATH_SIZE];
static bool is_root;

static void fill(uint8_t items[N], int seed)
{
    for (int i = 0; i < N; i++) items[i] = (uint8_t)(i * 7 + i / 100 + seed);
}

/* ---- Access ---------------------------------------------------------------- */

typedef struct access_of {
    mode_t mode;
    uid_t user;
    gid_t group;
} access_of;

static access_of access_at(const char *path)
{
    struct stat st;
    CHECK(stat(path, &st) == 0, "%s is not there", path);
    return (access_of){st.st_mode & 07777, st.st_uid, st.st_gid};
}

static void set_access(const char *path, access_of a)
{
    if (is_root) CHECK(chown(path, a.user, a.group) == 0, "chown %s", path);
    CHECK(chmod(path, a.mode) == 0, "chmod %s", path);
}

static void expect_access(const char *path, access_of a, const char *when)
{
    access_of b = access_at(path);
    CHECK(a.mode == b.mode, "%s: %s has mode %o instead of %o", when, path, (unsigned)b.mode,
          (unsigned)a.mode);
    if (is_root)
        CHECK(a.user == b.user && a.group == b.group, "%s: %s belongs to %d:%d", when, path,
              (int)b.user, (int)b.group);
}

/* Calls `visit` with every file of the array's directory. */
static void each_file(access_of a, const char *when,
                      void (*visit)(const char *path, access_of a, const char *when))
{
    char path[PATH_SIZE + 300];
    DIR *dir = opendir(target);
    CHECK(dir, "%s", target);
    for (struct dirent *e; (e = readdir(dir)) != NULL;) {
        snprintf(path, sizeof path, "%s/%s", target, e->d_name);
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0) visit(path, a, when);
    }
    closedir(dir);
}

static void set_one(const char *path, access_of a, const char *when)
{
    (void)when;
    set_access(path, a);
}

/* ---- Ways to replace ------------------------------------------------------- */

typedef enum way { CREATE, COPY, COMPACT, N_WAYS } way;

static const char *const way_names[] = {"create", "copy", "compact"};

static void create(caterva_layout layout)
{
    uint8_t items[N];
    caterva_error err;
    caterva_array *array = NULL;
    caterva_create_options options = drawn(layout);
    fill(items, 0);
    CHECK_OK(caterva_create_from_memory(target, &options, items, N, &array, &err), err);
    CHECK_OK(caterva_close(array, &err), err);
}

static void copy(caterva_layout layout)
{
    uint8_t items[N];
    caterva_error err;
    caterva_array *array = NULL;
    caterva_create_options options = drawn(layout);
    caterva_copy_options how = CATERVA_COPY_INIT;
    options.layout = CATERVA_LAYOUT_CONTIGUOUS;
    fill(items, 0);
    CHECK_OK(caterva_create_from_memory("mem:", &options, items, N, &array, &err), err);
    options = (caterva_create_options)CATERVA_CREATE_INIT;
    options.overwrite = 1;
    options.layout = layout;
    how.create = &options;
    CHECK_OK(caterva_copy(array, target, &how, NULL, &err), err);
    caterva_discard(array);
}

static void replace(way w, caterva_layout layout)
{
    caterva_error err;
    if (w == CREATE) create(layout);
    if (w == COPY) copy(layout);
    if (w == COMPACT) CHECK_OK(caterva_compact(target, NULL, &err), err);
}

static void write_some(int seed)
{
    uint8_t items[N];
    caterva_error err;
    caterva_array *array = NULL;
    caterva_open_options options = CATERVA_OPEN_INIT;
    options.mode = CATERVA_MODE_WRITE;
    options.durability = CATERVA_DURABILITY_NONE;
    fill(items, seed);
    CHECK_OK(caterva_open(target, &options, &array, &err), err);
    CHECK_OK(caterva_write(array, origin, shape, items, N, &err), err);
    CHECK_OK(caterva_close(array, &err), err);
}

/* ---- The checks ------------------------------------------------------------ */

static const mode_t modes[] = {0600, 0640, 0666, 0444};

static void of_files(mode_t mode)
{
    access_of a = {mode, OTHER_USER, OTHER_GROUP};
    for (int w = 0; w < N_WAYS; w++) {
        scratch_remove(target);
        create(CATERVA_LAYOUT_CONTIGUOUS);
        if (w == COMPACT && !is_root && !(mode & 0200)) continue;
        set_access(target, a);
        replace((way)w, CATERVA_LAYOUT_CONTIGUOUS);
        expect_access(target, a, way_names[w]);
    }
}

/* The directory's own rights, setgid included, and those of its frame for all its files. */
static void of_directories(mode_t mode)
{
    access_of outer = {02000 | mode | (mode & 0444) >> 2, OTHER_USER, OTHER_GROUP};
    access_of inner = {mode, OTHER_USER, OTHER_GROUP};
    if (!is_root) outer.mode |= 0700, inner.mode |= 0600;
    for (int w = 0; w < N_WAYS; w++) {
        scratch_remove(target);
        create(CATERVA_LAYOUT_SPARSE);
        each_file(inner, "", set_one);
        set_access(target, outer);
        write_some(3); /* chunk files and a frame of a commit */
        each_file(inner, "a commit", expect_access);
        replace((way)w, CATERVA_LAYOUT_SPARSE);
        expect_access(target, outer, way_names[w]);
        each_file(inner, way_names[w], expect_access);
    }
}

/* A directory gets the rights of a replaced file, and a file those of a replaced directory
 * and its frame. */
static void of_other_kinds(void)
{
    access_of file = {0640, OTHER_USER, OTHER_GROUP};
    access_of outer = {0750, OTHER_USER, OTHER_GROUP};
    access_of open_inner = {0664, OTHER_USER, OTHER_GROUP};
    for (int w = CREATE; w <= COPY; w++) {
        scratch_remove(target);
        create(CATERVA_LAYOUT_CONTIGUOUS);
        set_access(target, file);
        replace((way)w, CATERVA_LAYOUT_SPARSE);
        expect_access(target, outer, "a directory for a file");
        each_file(file, "a directory for a file", expect_access);

        each_file(open_inner, "", set_one);
        replace((way)w, CATERVA_LAYOUT_CONTIGUOUS);
        file.mode = 0660; /* others may not search the directory, its group may write */
        expect_access(target, file, "a file for a directory");
        file.mode = 0640;
    }
}

/* Under a temporary name, only the owner has access. */
static void unpublished_is_closed(caterva_layout layout)
{
    caterva_error err;
    caterva_array *array = NULL;
    uint8_t items[N];
    char path[PATH_SIZE + 300];
    caterva_create_options options = drawn(layout);
    scratch_remove(target);
    create(CATERVA_LAYOUT_CONTIGUOUS);
    CHECK(chmod(target, 0600) == 0, "chmod");
    fill(items, 1);
    CHECK_OK(caterva_create(target, &options, &array, &err), err);
    CHECK_OK(caterva_write(array, origin, shape, items, N, &err), err);
    int n = 0;
    DIR *dir = opendir(folder);
    CHECK(dir, "opendir");
    for (struct dirent *e; (e = readdir(dir)) != NULL;) {
        if (strncmp(e->d_name, ".target.tmp-", 12) != 0) continue;
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        CHECK((access_at(path).mode & 077) == 0, "mode %o", (unsigned)access_at(path).mode);
        n++;
    }
    closedir(dir);
    CHECK(n == 1, "%d temporary names", n);
    CHECK(unlink(target) == 0, "unlink"); /* it was private, the new one is to be */
    CHECK_OK(caterva_close(array, &err), err);
    CHECK((access_at(target).mode & 077) == 0, "mode %o", (unsigned)access_at(target).mode);
}

/* New files follow the umask. */
static void new_ones_follow_umask(caterva_layout layout)
{
    scratch_remove(target);
    umask(027);
    create(layout);
    mode_t wanted = layout == CATERVA_LAYOUT_SPARSE ? 0750 : 0640;
    CHECK(access_at(target).mode == wanted, "mode %o", (unsigned)access_at(target).mode);
    umask(022);
}

static void of_attributes(caterva_layout layout)
{
#ifdef __linux__
    char value[8] = "";
    scratch_remove(target);
    create(layout);
    if (setxattr(target, "user.origin", "lab", 3, 0) != 0) {
        puts("no extended attributes here: not tested");
        return;
    }
    for (int w = 0; w < N_WAYS; w++) {
        replace((way)w, layout);
        CHECK(getxattr(target, "user.origin", value, sizeof value) == 3 &&
                  memcmp(value, "lab", 3) == 0,
              "%s drops attributes", way_names[w]);
    }
#else
    (void)layout;
#endif
}

int main(void)
{
    umask(022);
    is_root = geteuid() == 0;
    scratch_path(folder, "arrays");
    CHECK(mkdir(folder, 0777) == 0, "mkdir");
    snprintf(target, sizeof target, "%s/target", folder);
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
        of_files(modes[i]);
        of_directories(modes[i]);
    }
    of_other_kinds();
    for (int i = 0; i < 2; i++) {
        caterva_layout layout = i ? CATERVA_LAYOUT_SPARSE : CATERVA_LAYOUT_CONTIGUOUS;
        unpublished_is_closed(layout);
        new_ones_follow_umask(layout);
        of_attributes(layout);
    }
    scratch_remove(target);
    return 0;
}
