/* Room: store. Finds the frame in the directory of a Zarr array, and removes such a directory. */
#include "store/zarr.h"

#include "base/heap.h"
#include "store/descriptors.h"
#include "store/path.h"
#include "store/sframe.h"

#include <stdio.h>
#include <string.h>

static const char MAGIC[] = "b2frame"; /* with its NUL, from byte 2 on */
enum { AT_MAGIC = 2 };

cv_zarr_name cv_zarr_name_of(int ndim)
{
    cv_zarr_name name = {"c"};
    for (int d = 0; d < ndim; d++) memcpy(name.text + 1 + 2 * d, "/0", 3);
    return name;
}

static bool find_in(cv_dir at, cv_zarr_name *out)
{
    cv_file_info info;
    if (cv_dir_get_link_info(at, CV_ZARR_META, &info) || info.kind != CV_KIND_FILE)
        return false;
    for (int ndim = 0; ndim <= CATERVA_MAX_DIMS; ndim++) {
        *out = cv_zarr_name_of(ndim);
        if (cv_dir_get_link_info(at, out->text, &info)) return false;
        if (info.kind != CV_KIND_DIRECTORY) return info.kind == CV_KIND_FILE;
    }
    return false;
}

bool cv_zarr_find(cv_dir dir, const char *name, cv_zarr_name *out)
{
    cv_dir at;
    if (cv_open_dir(dir, name, CV_OPEN_NO_LINK, &at)) return false;
    bool found = find_in(at, out);
    cv_dir_close(&at);
    return found;
}

static bool is_frame(cv_dir dir, const char *name)
{
    cv_file file;
    uint8_t bytes[AT_MAGIC + sizeof MAGIC];
    size_t done = 0;
    if (cv_open_file(dir, name, CV_OPEN_READ, 0, &file)) return false;
    int error = cv_file_read(file, bytes, sizeof bytes, 0, &done);
    cv_file_close(&file);
    return !error && done == sizeof bytes &&
           memcmp(bytes + AT_MAGIC, MAGIC, sizeof MAGIC) == 0;
}

/* Whether the directory contains only the names `a`, `b` and `c`. */
static bool has_only(cv_dir dir, const char *name, const char *a, const char *b,
                     const char *c)
{
    cv_listing listing;
    const char *entry;
    int error = 0;
    bool only = true;
    if (cv_listing_open_at(dir, name, &listing)) return false;
    while (only && (entry = cv_listing_next(&listing, &error)))
        only = !strcmp(entry, a) || !strcmp(entry, b) || !strcmp(entry, c);
    cv_listing_close(&listing);
    return only && !error;
}

static bool is_array_in(cv_dir at)
{
    cv_zarr_name shard;
    if (!find_in(at, &shard) || !is_frame(at, shard.text)) return false;
    bool only = has_only(at, ".", CV_ZARR_META, CV_SFRAME_LOCK, "c");
    for (size_t end = strlen(shard.text); only && end > 1; end -= 2) {
        shard.text[end - 2] = '\0';
        only = has_only(at, shard.text, "0", "0", "0");
    }
    return only;
}

bool cv_zarr_is_array_at(cv_dir dir, const char *name)
{
    cv_dir at;
    if (cv_open_dir(dir, name, CV_OPEN_NO_LINK, &at)) return false;
    bool is_array = is_array_in(at);
    cv_dir_close(&at);
    return is_array;
}

cv_status cv_zarr_frame_path(const char *path, char **out, cv_error *err)
{
    cv_dir at;
    cv_file_info info;
    cv_zarr_name shard;
    *out = NULL;
    if (cv_open_dir(cv_dir_here, path, 0, &at)) return CV_OK;
    bool is_zarr = cv_dir_get_info(at, CV_ZARR_META, &info) == 0;
    bool is_ours = is_zarr && find_in(at, &shard) && is_frame(at, shard.text);
    cv_dir_close(&at);
    if (!is_zarr) return CV_OK;
    if (!is_ours)
        return cv_fail(err, CATERVA_EUNSUPPORTED, -1,
                       "%s is a Zarr array or group whose chunks are not one frame of Blosc2",
                       cv_show_path(path).text);
    size_t size = strlen(path) + sizeof shard.text + 1;
    *out = cv_malloc(size);
    if (!*out) return cv_fail_memory(err, size, "a path");
    (void)snprintf(*out, size, "%s/%s", path, shard.text);
    return CV_OK;
}

void cv_zarr_remove_at(cv_dir dir, const char *name)
{
    cv_dir at;
    cv_file_info info;
    if (cv_open_dir(dir, name, CV_OPEN_NO_LINK, &at)) return;
    (void)cv_dir_remove(at, CV_ZARR_META);
    cv_zarr_name shard = {"c"};
    int ndim = 0;
    while (ndim < CATERVA_MAX_DIMS && cv_dir_get_link_info(at, shard.text, &info) == 0 &&
           info.kind == CV_KIND_DIRECTORY)
        shard = cv_zarr_name_of(++ndim);
    (void)cv_dir_remove(at, shard.text);
    for (; ndim > 0; ndim--) {
        shard = cv_zarr_name_of(ndim - 1);
        (void)cv_dir_remove_directory(at, shard.text);
    }
    (void)cv_dir_remove(at, CV_SFRAME_LOCK);
    cv_dir_close(&at);
    (void)cv_dir_remove_directory(dir, name);
}
