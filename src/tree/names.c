/* Room: tree. Names of leaves and groups. They come from foreign files, so each is checked before
 * it is used. */
#include "tree/names.h"

#include "array/wings.h"
#include "base/heap.h"
#include "base/os_dir.h"

#include <string.h>

/* Limits of a path's bytes, from file systems, and of its parts. */
enum { LONGEST = 4000, DEEPEST = 64 };

static bool is_bad_part(const char *part, size_t size)
{
    return size == 0 || (size == 1 && part[0] == '.') ||
           (size == 2 && part[0] == '.' && part[1] == '.');
}

static const char *fault_of(const char *path, size_t size)
{
    const char *end = path + size;
    int n_parts = 0;
    if (size > LONGEST) return "has more than 4000 bytes";
    if (size > 0 && *path == '/') return "begins at the root";
    for (const char *part = path; part <= end;) {
        const char *slash = memchr(part, '/', (size_t)(end - part));
        const char *stop = slash ? slash : end;
        if (is_bad_part(part, (size_t)(stop - part)))
            return "has a part that is empty, \".\" or \"..\"";
        part = stop + 1;
        if (++n_parts > DEEPEST) return "has more than 64 parts";
    }
    for (const char *at = path; at < end; at++)
        if ((unsigned char)*at < ' ' || *at == 0x7f) return "has a control character";
    return NULL;
}

static cv_status check(const char *path, size_t size, cv_status code, cv_error *err)
{
    char shown[100];
    char *text = cv_strndup(path, size);
    if (!text) return cv_fail_memory(err, size, "a name");
    const char *fault = fault_of(path, size);
    if (!fault && !cv_is_utf8(text)) fault = "is not UTF-8";
    cv_show_text(shown, sizeof shown, text);
    cv_free(text);
    if (!fault) return CV_OK;
    return cv_fail(err, code, -1, "the name \"%s\" in a tree %s", shown, fault);
}

cv_status cv_tree_check_path(const char *path, size_t size, cv_error *err)
{
    return check(path, size, CATERVA_ECORRUPT, err);
}

cv_status cv_tree_check_key(const char *key, cv_error *err)
{
    if (key[0] != '/')
        return cv_fail(err, CATERVA_EINVAL, -1,
                       "\"%.100s\" is not a key of a tree: keys begin with a slash", key);
    return key[1] ? check(key + 1, strlen(key + 1), CATERVA_EINVAL, err) : CV_OK;
}

cv_status cv_tree_check_file(const char *path, cv_error *err)
{
    char shown[100];
    if (cv_os_can_name(path)) return CV_OK;
    cv_show_text(shown, sizeof shown, path);
    return cv_fail(err, CATERVA_EUNSUPPORTED, -1,
                   "no file of this system can have the name \"%s\"", shown);
}

/* ---- Parts of names --------------------------------------------------------------------- */

size_t cv_tree_stem(const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    const char *dot = strrchr(name, '.');
    return dot && dot > name ? (size_t)(dot - path) : strlen(path);
}

const char *const cv_tree_suffixes[CV_TREE_SUFFIXES] = {CV_TREE_ARRAY_SUFFIX, ".b2f", ".b2b"};

bool cv_tree_is_leaf(const char *path)
{
    const char *suffix = path + cv_tree_stem(path);
    bool found = false;
    for (int i = 0; i < CV_TREE_SUFFIXES; i++)
        found = found || strcmp(suffix, cv_tree_suffixes[i]) == 0;
    return found;
}

bool cv_tree_is_job_folder(const char *name, size_t size)
{
    static const char parts[] = CV_JOB_FOLDERS;
    size_t length = sizeof parts - 1;
    if (size <= length || memcmp(name + size - length, parts, length) != 0) return false;
    for (int i = 0; i < CV_TREE_SUFFIXES; i++) {
        size_t n = strlen(cv_tree_suffixes[i]);
        if (size > n + length && !memcmp(name + size - length - n, cv_tree_suffixes[i], n))
            return true;
    }
    return false;
}

cv_status cv_tree_check_groups(const char *path, bool is_group, cv_error *err)
{
    while (*path) {
        size_t size = strcspn(path, "/");
        bool is_file = !path[size] && !is_group;
        if (!is_file && cv_tree_is_job_folder(path, size))
            return cv_fail(
                err, CATERVA_EINVAL, -1,
                "a group cannot have the name \"%.*s\", which is reserved for the parts "
                "of an array's jobs",
                (int)(size < 100 ? size : 100), path);
        path += size + (path[size] == '/');
    }
    return CV_OK;
}

bool cv_tree_is_named(const char *key, size_t size, const char *name)
{
    size_t length = strlen(name);
    return size > length && key[size - length - 1] == '/' &&
           memcmp(key + size - length, name, length) == 0;
}

size_t cv_tree_parent(const char *key, size_t size)
{
    while (size > 0 && key[--size] != '/') continue;
    return size;
}

bool cv_tree_is_within(const char *key, const char *group)
{
    size_t size = strlen(group);
    if (size == 1) size = 0; /* "/" */
    return strncmp(key, group, size) == 0 && key[size] == '/';
}

bool cv_tree_is_path_in(const char *path, const char *folder)
{
    size_t size = strlen(folder);
    return size == 0 || (strncmp(path, folder, size) == 0 && path[size] == '/');
}

int cv_tree_compare(const char *a, const char *b)
{
    while (*a && *a == *b) a++, b++;
    int x = *a == '/' ? 1 : (unsigned char)*a, y = *b == '/' ? 1 : (unsigned char)*b;
    return (x > y) - (x < y);
}
