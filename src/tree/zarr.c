/* Room: tree. Finds arrays and groups in a hierarchy of Zarr groups. Knows nothing of trees. */
#include "tree/zarr.h"

#include "format/zarr_meta.h"
#include "store/path.h"
#include "store/zarr.h"
#include "tree/names.h"

#include <stdio.h>
#include <string.h>

static cv_status add(cv_dir dir, const char *path, const char *file, const char *suffix,
                     cv_members *out, cv_error *err)
{
    cv_file_info info;
    cv_member member = {0};
    bool is_root = !*path;
    const char *slash = is_root || *suffix == '.' ? "" : "/";
    size_t size = strlen(path) + strlen(file) + strlen(suffix) + 2;
    char *text = cv_malloc(size);
    if (!text) return cv_fail_memory(err, size, "a path");
    (void)snprintf(text, size, "%s/%s", is_root ? "." : path, file);
    if (cv_dir_get_link_info(dir, text, &info) == 0) member.size = info.size;
    (void)snprintf(text, size, "%s%s%s", path, slash, suffix);
    cv_status status = cv_members_add(out, &member, text, strlen(text), err);
    cv_free(text);
    return status;
}

static cv_status add_node(cv_dir dir, const char *shown, const char *path, cv_members *out,
                          cv_error *err)
{
    cv_zarr_name shard;
    bool is_root = !*path;
    cv_zarr_node node = cv_zarr_look(dir, is_root ? "." : path, &shard);
    if (node == CV_ZARR_OTHER)
        return cv_fail(err, CATERVA_EUNSUPPORTED, -1,
                       "%.80s in %.120s is a Zarr array whose chunks are not one frame of "
                       "Blosc2: 'caterva convert' copies it to one",
                       path, shown);
    if (node == CV_ZARR_NONE) return CV_OK;
    cv_status named = is_root ? CV_OK : cv_tree_check_path(path, strlen(path), NULL);
    if (named == CATERVA_ENOMEM) return cv_fail_memory(err, strlen(path), "a path");
    if (named != CV_OK) return CV_OK; /* a name that no member of a tree has */
    if (node == CV_ZARR_ARRAY)
        return add(dir, path, shard.text, CV_TREE_ARRAY_SUFFIX, out, err);
    return add(dir, path, CV_ZARR_META, CV_TREE_ATTRIBUTES ".b2f", out, err);
}

cv_status cv_zarr_members(cv_dir dir, const char *shown, cv_members *out, cv_error *err)
{
    cv_buffer paths = {0};
    cv_status status = cv_zarr_list(dir, &paths, err);
    for (size_t at = 0; status == CV_OK && at < paths.size;) {
        const char *path = (const char *)paths.data + at;
        status = add_node(dir, shown, path, out, err);
        at += strlen(path) + 1;
    }
    cv_buffer_free(&paths);
    cv_members_complete(out);
    cv_members_hide(out);
    return status;
}

cv_status cv_zarr_member_path(cv_dir dir, const char *member, char **out, cv_error *err)
{
    cv_zarr_name shard;
    size_t stem = cv_tree_stem(member), size = stem + sizeof shard.text + 1;
    *out = cv_malloc(size);
    if (!*out) return cv_fail_memory(err, size, "a path");
    (void)snprintf(*out, size, "%.*s", (int)stem, member);
    if (cv_zarr_look(dir, *out, &shard) == CV_ZARR_ARRAY) {
        (void)snprintf(*out + stem, size - stem, "/%s", shard.text);
        return CV_OK;
    }
    cv_free(*out);
    return cv_fail(err, CATERVA_ENOTFOUND, -1, "%.*s is no array any more", (int)stem,
                   member);
}

static cv_status append(cv_buffer *to, const char *text, cv_error *err)
{
    return cv_buffer_append(to, text, strlen(text), err);
}

cv_status cv_zarr_consolidate(cv_dir dir, const caterva_tree_list *list, cv_buffer *out,
                              cv_error *err)
{
    for (size_t i = 0; i < list->n; i++) {
        const char *name = list->entries[i]->key + 1;
        CV_TRY(append(out, i > 0 ? ",\n" : "\n", err));
        CV_TRY(cv_zarr_string_write(name, out, err));
        CV_TRY(append(out, ": ", err));
        CV_TRY(cv_zarr_read_meta(dir, name, out, err));
    }
    return CV_OK;
}
