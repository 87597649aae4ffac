/* Room: store. Finds the frames in the directories of Zarr arrays and groups, and removes such
 * directories. */
#include "store/zarr.h"

#include "base/arith.h"
#include "base/heap.h"
#include "store/descriptors.h"
#include "store/path.h"
#include "store/sframe.h"

#include <stdio.h>
#include <string.h>

cv_zarr_name cv_zarr_name_of(int ndim)
{
    cv_zarr_name name = {"c"};
    for (int d = 0; d < ndim; d++) memcpy(name.text + 1 + 2 * d, "/0", 3);
    return name;
}

/* ---- One directory -------------------------------------------------------------- */

/* Reads up to `size` bytes from the beginning of a file; returns their number. */
static size_t read_head(cv_dir dir, const char *name, void *bytes, size_t size)
{
    cv_file file;
    size_t done = 0;
    if (cv_open_file(dir, name, CV_OPEN_READ | CV_OPEN_NO_LINK, 0, &file)) return 0;
    int error = cv_file_read(file, bytes, size, 0, &done);
    cv_file_close(&file);
    return error ? 0 : done;
}

/* The shards of other writers begin with a chunk or an index, which have none of these bytes in
 * common. */
bool cv_zarr_is_frame(const char *bytes, size_t size)
{
    static const char first[CV_ZARR_HEAD] = "\x9e\xa8"
                                            "b2frame"; /* and its NUL */
    size_t equal = 0;
    for (size_t i = 0; i < size; i++) equal += bytes[i] == first[i];
    return equal >= sizeof first / 2;
}

static bool is_frame(cv_dir dir, const char *name)
{
    char bytes[CV_ZARR_HEAD];
    size_t size = read_head(dir, name, bytes, sizeof bytes);
    return cv_zarr_is_frame(bytes, size);
}

/* Whether Caterva wrote the metadata, and no other program has replaced the frame by a shard of its
 * own, which begins with a Blosc 1 buffer or with the index. */
static bool was_frame(cv_dir at, const char *name)
{
    static const char words[] =
        "{\n  \"zarr_format\": 3,\n  \"node_type\": \"array\",\n  \"shape\": [";
    static const char codec[] = "\n  \"codecs\": [{\"name\": \"sharding_indexed\"";
    char text[8192];
    uint8_t head[4];
    size_t size = read_head(at, CV_ZARR_META, text, sizeof text - 1);
    text[size] = '\0';
    if (strncmp(text, words, sizeof words - 1) != 0 || !strstr(text, codec)) return false;
    if (read_head(at, name, head, sizeof head) < sizeof head) return true;
    bool is_blosc = head[0] > 0 && head[0] <= 2 && head[1] == 1;
    return !is_blosc && cv_load_le32(head) != UINT32_MAX;
}

static bool find_shard(cv_dir at, cv_zarr_name *out)
{
    cv_file_info info;
    for (int ndim = 0; ndim <= CATERVA_MAX_DIMS; ndim++) {
        *out = cv_zarr_name_of(ndim);
        if (cv_dir_get_link_info(at, out->text, &info)) return false;
        if (info.kind != CV_KIND_DIRECTORY)
            return is_frame(at, out->text) || was_frame(at, out->text);
    }
    return false;
}

/* Our metadata begin with these words. Those of other programs may have them later, without effect
 * on more than the message. */
static bool is_group(cv_dir at)
{
    static const char words[] = "\"node_type\":\"group\"";
    char text[4096], *end = text;
    size_t size = read_head(at, CV_ZARR_META, text, sizeof text - 1);
    for (size_t i = 0; i < size; i++)
        if (text[i] && !strchr(" \t\r\n", text[i])) *end++ = text[i];
    *end = '\0';
    return strstr(text, words) && strstr(text, "\"zarr_format\":3");
}

static cv_zarr_node look_in(cv_dir at, cv_zarr_name *shard)
{
    cv_file_info info;
    if (cv_dir_get_link_info(at, CV_ZARR_META, &info) || info.kind != CV_KIND_FILE)
        return CV_ZARR_NONE;
    if (find_shard(at, shard)) return CV_ZARR_ARRAY;
    return is_group(at) ? CV_ZARR_GROUP : CV_ZARR_OTHER;
}

cv_zarr_node cv_zarr_look(cv_dir dir, const char *name, cv_zarr_name *shard)
{
    cv_dir at;
    if (cv_open_dir(dir, name, CV_OPEN_NO_LINK, &at)) return CV_ZARR_NONE;
    cv_zarr_node node = look_in(at, shard);
    cv_dir_close(&at);
    return node;
}

/* ---- A hierarchy ---------------------------------------------------------------- */

static const char *name_at(const cv_buffer *paths, size_t at)
{
    const char *path = (const char *)paths->data + at;
    return *path ? path : ".";
}

/* Appends the directory `name` of the one at `at`, if it is one. `path`: memory that is kept. */
static cv_status list_name(cv_dir root, cv_buffer *paths, size_t at, const char *name,
                           cv_buffer *path, cv_error *err)
{
    cv_file_info info;
    const char *parent = (const char *)paths->data + at;
    size_t size = strlen(parent), room = size + strlen(name) + 2;
    CV_TRY(cv_buffer_resize(path, room, err));
    (void)snprintf((char *)path->data, room, "%s%s%s", parent, size ? "/" : "", name);
    bool is_directory = cv_dir_get_link_info(root, (const char *)path->data, &info) == 0 &&
                        info.kind == CV_KIND_DIRECTORY;
    return is_directory ? cv_buffer_append(paths, path->data, room - !size, err) : CV_OK;
}

static cv_status list_one(cv_dir root, cv_buffer *paths, size_t at, cv_buffer *path,
                          cv_error *err)
{
    cv_listing listing;
    const char *name;
    cv_status status = CV_OK;
    int error = cv_listing_open_at(root, name_at(paths, at), &listing);
    if (error) return cv_fail_sys(err, error, "cannot list %.200s", name_at(paths, at));
    while (status == CV_OK && (name = cv_listing_next(&listing, &error)))
        status = list_name(root, paths, at, name, path, err);
    cv_listing_close(&listing);
    if (status != CV_OK || !error) return status;
    return cv_fail_sys(err, error, "cannot list %.200s", name_at(paths, at));
}

cv_status cv_zarr_list(cv_dir root, cv_buffer *paths, cv_error *err)
{
    cv_buffer path = {0};
    size_t at = paths->size;
    cv_status status = cv_buffer_append(paths, "", 1, err);
    while (status == CV_OK && at < paths->size) {
        status = list_one(root, paths, at, &path, err);
        at += strlen((const char *)paths->data + at) + 1;
    }
    cv_buffer_free(&path);
    return status;
}

/* Whether a file that is not metadata belongs to an array: a shard, or the lock of its writers. */
static bool is_own_file(cv_dir dir, const char *name, bool has_meta)
{
    if (strcmp(name, CV_SFRAME_LOCK) == 0) return has_meta;
    return strcmp(name, has_meta ? "c" : "0") == 0 && is_frame(dir, name);
}

/* Whether the directory contains directories, metadata and a shard only. One without metadata is a
 * part of a shard's path. */
static bool is_own(cv_dir root, const char *path)
{
    cv_dir at;
    cv_listing listing = {.system = NULL};
    cv_file_info info;
    cv_zarr_name shard;
    const char *name, *last = strrchr(path, '/');
    int error = 0;
    last = last ? last + 1 : path;
    if (cv_open_dir(root, path, CV_OPEN_NO_LINK, &at)) return false;
    cv_zarr_node node = look_in(at, &shard);
    bool has_meta = node != CV_ZARR_NONE;
    bool own = has_meta ? node != CV_ZARR_OTHER : !strcmp(last, "c") || !strcmp(last, "0");
    if (cv_listing_open_at(at, ".", &listing)) own = false;
    while (own && (name = cv_listing_next(&listing, &error))) {
        if (cv_dir_get_link_info(at, name, &info))
            own = false;
        else if (info.kind == CV_KIND_DIRECTORY)
            own = has_meta || strcmp(name, "0") == 0;
        else if (info.kind != CV_KIND_FILE || strcmp(name, CV_ZARR_META) != 0)
            own = info.kind == CV_KIND_FILE && is_own_file(at, name, has_meta);
    }
    cv_listing_close(&listing);
    cv_dir_close(&at);
    return own && !error;
}

cv_status cv_zarr_check_own(cv_dir dir, const char *name, bool *own, cv_error *err)
{
    cv_dir root;
    cv_zarr_name shard;
    cv_buffer paths = {0};
    *own = false;
    if (cv_open_dir(dir, name, CV_OPEN_NO_LINK, &root)) return CV_OK;
    *own = look_in(root, &shard) != CV_ZARR_NONE;
    cv_status status = *own ? cv_zarr_list(root, &paths, err) : CV_OK;
    for (size_t at = 0; *own && at < paths.size; at += strlen((char *)paths.data + at) + 1)
        *own = is_own(root, name_at(&paths, at));
    cv_buffer_free(&paths);
    cv_dir_close(&root);
    return status;
}

static void remove_in(cv_dir root, const char *path)
{
    static const char *const files[] = {CV_ZARR_META, CV_SFRAME_LOCK, "c", "0"};
    cv_dir at;
    if (cv_open_dir(root, path, CV_OPEN_NO_LINK, &at)) return;
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
        (void)cv_dir_remove(at, files[i]);
    cv_dir_close(&at);
    (void)cv_dir_remove_directory(root, path);
}

/* Needs no memory. */
static void remove_array(cv_dir root)
{
    for (int ndim = CATERVA_MAX_DIMS; ndim >= 0; ndim--) {
        cv_zarr_name path = cv_zarr_name_of(ndim);
        if (cv_dir_remove(root, path.text)) (void)cv_dir_remove_directory(root, path.text);
    }
    remove_in(root, ".");
}

void cv_zarr_remove_at(cv_dir dir, const char *name)
{
    cv_dir root;
    cv_buffer paths = {0};
    if (cv_open_dir(dir, name, CV_OPEN_NO_LINK, &root)) return;
    remove_array(root);
    if (cv_dir_remove_directory(dir, name)) (void)cv_zarr_list(root, &paths, NULL);
    for (size_t end = paths.size; end > 0;) { /* children first */
        size_t at = end - 1;
        while (at > 0 && paths.data[at - 1]) at--;
        remove_in(root, name_at(&paths, at));
        end = at;
    }
    cv_buffer_free(&paths);
    cv_dir_close(&root);
    (void)cv_dir_remove_directory(dir, name);
}

/* ---- Metadata ------------------------------------------------------------------- */

static cv_status fail_meta(int error, const char *what, const char *name, cv_error *err)
{
    return cv_fail_sys(err, error, "cannot %s %s in %s", what, CV_ZARR_META,
                       cv_show_path(name).text);
}

cv_status cv_zarr_read_meta(cv_dir dir, const char *name, cv_buffer *out, cv_error *err)
{
    cv_dir at;
    cv_file file = {0};
    uint64_t size = 0;
    size_t done = 0, before = out->size;
    cv_status status = CV_OK;
    int error = cv_open_dir(dir, name, 0, &at);
    if (error) return fail_meta(error, "read", name, err);
    error = cv_open_file(at, CV_ZARR_META, CV_OPEN_READ, 0, &file);
    if (!error) error = cv_file_size(file, &size);
    if (!error) status = cv_buffer_resize(out, before + cv_size((int64_t)size), err);
    if (!error && status == CV_OK)
        error = cv_file_read(file, out->data + before, cv_size((int64_t)size), 0, &done);
    if (status == CV_OK) out->size = before + done;
    cv_file_close(&file);
    cv_dir_close(&at);
    return error ? fail_meta(error, "read", name, err) : status;
}

cv_status cv_zarr_write_meta(cv_dir dir, const char *name, const cv_buffer *meta,
                             cv_error *err)
{
    cv_dir at;
    cv_file file = {0};
    int error = cv_open_dir(dir, name, CV_OPEN_NO_LINK, &at);
    if (error) return fail_meta(error, "write", name, err);
    error = cv_open_file(at, CV_ZARR_META, CV_OPEN_WRITE | CV_OPEN_CREATE | CV_OPEN_NEW, 0666,
                         &file);
    if (!error) error = cv_file_write(file, meta->data, meta->size, 0);
    cv_file_close(&file);
    cv_dir_close(&at);
    return error ? fail_meta(error, "write", name, err) : CV_OK;
}

/* ---- By path -------------------------------------------------------------------- */

cv_status cv_zarr_frame_path(const char *path, char **out, cv_error *err)
{
    cv_dir at;
    cv_zarr_name shard;
    *out = NULL;
    if (cv_open_dir(cv_dir_here, path, 0, &at)) return CV_OK;
    cv_zarr_node node = look_in(at, &shard);
    cv_dir_close(&at);
    if (node == CV_ZARR_NONE) return CV_OK;
    if (node == CV_ZARR_GROUP)
        return cv_fail(
            err, CATERVA_EUNSUPPORTED, -1,
            "%s is a group of Zarr arrays, not an array: open it as a tree, or one "
            "of its arrays",
            cv_show_path(path).text);
    if (node == CV_ZARR_OTHER)
        return cv_fail(err, CATERVA_EUNSUPPORTED, -1,
                       "%s is a Zarr array whose chunks are not one frame of Blosc2: "
                       "'caterva convert' copies it to one",
                       cv_show_path(path).text);
    size_t size = strlen(path) + sizeof shard.text + 1;
    *out = cv_malloc(size);
    if (!*out) return cv_fail_memory(err, size, "a path");
    (void)snprintf(*out, size, "%s/%s", path, shard.text);
    return CV_OK;
}
