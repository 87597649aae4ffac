/* Room: tree. What new trees are made of. Promises: a tree or file that is made appears
 * whole or not at all; what python-blosc2 wants to find in every tree is there. */
#include "tree/make.h"

#include "base/heap.h"
#include "codec/encode.h"
#include "format/frame_header.h"
#include "format/seal.h"
#include "store/descriptors.h"
#include "store/fallbacks.h"
#include "tree/files_below.h"
#include "tree/names.h"

#include <string.h>

/* ---- Frames without chunks ------------------------------------------------------------ */

/* The header first learns its own size, then that of the frame. */
static cv_status write_frame(cv_frame_header *h, const cv_metalayer *attributes, int n,
                             cv_buffer *out, cv_error *err)
{
    cv_buffer trailer = {0};
    cv_status status = cv_trailer_write(attributes, n, &trailer, err);
    for (int pass = 0; pass < 2 && status == CV_OK; pass++) {
        out->size = 0;
        status = cv_frame_header_write(h, out, err);
        h->frame_size = h->header_size + trailer.size;
    }
    if (status == CV_OK) status = cv_buffer_append(out, trailer.data, trailer.size, err);
    cv_buffer_free(&trailer);
    return status;
}

static cv_frame_header header_of(int32_t chunk_size, int16_t threads)
{
    enum { ZSTD = 5, LEVEL = 5, FORWARD_COMPATIBLE = 3 };
    return (cv_frame_header){.version = CV_FRAME_VERSION,
                             .codec = ZSTD,
                             .level = LEVEL,
                             .split_mode = FORWARD_COMPATIBLE,
                             .type_size = 1,
                             .chunk_size = chunk_size,
                             .encode_threads = threads,
                             .decode_threads = threads,
                             .filters = {0, 0, 0, 0, 0, CATERVA_FILTER_SHUFFLE}};
}

/* {"version": 1} and {"embed_map": {}, "current_offset": 0} */
static const char version[] = "\x81\xa7version\x01";
static const char nothing[] = "\x82\xa9"
                              "embed_map\x80\xae"
                              "current_offset\x00";

cv_status cv_make_embed(cv_buffer *out, cv_error *err)
{
    enum { CHUNK_SIZE = 8192, THREADS = 2 };
    cv_buffer value = {0};
    cv_metalayer attribute = {.name = "estore_metadata"};
    cv_frame_header h = header_of(CHUNK_SIZE, THREADS);
    h.has_attributes = true;
    h.n_metalayers = 1;
    h.metalayers[0] = (cv_metalayer){
        .name = "b2tree", .data = (const uint8_t *)version, .size = sizeof version - 1};
    cv_codec_spec spec = {.codec = h.codec,
                          .level = h.level,
                          .split_mode = h.split_mode,
                          .filters = {0, 0, 0, 0, 0, CATERVA_FILTER_SHUFFLE},
                          .item_size = 1};
    cv_status status = cv_encode_bytes(&spec, nothing, sizeof nothing - 1, &value, err);
    attribute.data = value.data;
    attribute.size = (uint32_t)value.size;
    if (status == CV_OK) status = write_frame(&h, &attribute, 1, out, err);
    cv_buffer_free(&value);
    return status;
}

cv_status cv_make_group(cv_buffer *out, cv_error *err)
{
    enum { CHUNK_SIZE = 1 << 24, THREADS = 1 };
    cv_frame_header h = header_of(CHUNK_SIZE, THREADS);
    return write_frame(&h, NULL, 0, out, err);
}

cv_status cv_make_group_with(const cv_metalayer *attributes, int n,
                             const cv_frame_header *like, cv_buffer *out, cv_error *err)
{
    enum { CHUNK_SIZE = 1 << 24, THREADS = 1 };
    cv_frame_header h = like ? *like : header_of(CHUNK_SIZE, THREADS);
    h.has_attributes = n > 0;
    CV_TRY(write_frame(&h, attributes, n, out, err));
    cv_seal_root_write(out->data + h.header_size, out->size - h.header_size, out->data,
                       h.header_size);
    return CV_OK;
}

/* ---- Files ---------------------------------------------------------------------------- */

static cv_status fail_making(const char *name, int error, cv_error *err)
{
    cv_shown_path shown = cv_show_path(name);
    if (error == EEXIST)
        return cv_fail(err, CATERVA_EEXIST, -1, "%s is there already", shown.text);
    return cv_fail_sys(err, error, "cannot make %s", shown.text);
}

/* The folder that `name` is in, from `dir` on. */
static int sync_folder_of(cv_dir dir, const char *name)
{
    cv_dir folder;
    size_t size = cv_tree_parent(name, strlen(name));
    char *path = size ? cv_strndup(name, size) : cv_strdup(".");
    if (!path) return ENOMEM;
    int error = cv_open_dir(dir, path, 0, &folder);
    cv_free(path);
    if (error) return error;
    error = cv_dir_sync(folder);
    cv_dir_close(&folder);
    return error;
}

static int make_folder(cv_dir dir, const char *path, bool durable)
{
    int error = cv_dir_make(dir, path);
    if (!error && durable) error = sync_folder_of(dir, path);
    return error == EEXIST ? 0 : error;
}

cv_status cv_make_parents(cv_dir dir, const char *name, bool durable, cv_error *err)
{
    char *path = cv_strdup(name);
    if (!path) return cv_fail_memory(err, strlen(name), "a path");
    int error = 0;
    for (char *at = strchr(path, '/'); at && !error; at = strchr(at + 1, '/')) {
        *at = '\0';
        error = make_folder(dir, path, durable);
        *at = '/';
    }
    cv_free(path);
    return error ? fail_making(name, error, err) : CV_OK;
}

/* Under another name first: what has its name is whole. */
cv_status cv_make_file(cv_dir dir, const char *name, const cv_buffer *bytes, bool durable,
                       cv_error *err)
{
    cv_file file;
    char temp[CV_OS_TEMP_NAME];
    CV_TRY(cv_make_parents(dir, name, durable, err));
    int error = cv_open_temp_file(dir, "embed", 0666, temp, &file);
    if (error) return fail_making(name, error, err);
    error = cv_file_write(file, bytes->data, bytes->size, 0);
    if (!error && durable) error = cv_file_sync(file);
    cv_file_close(&file);
    if (!error) error = cv_dir_rename_new(dir, temp, name);
    if (error) (void)cv_dir_remove(dir, temp);
    if (!error && durable) error = sync_folder_of(dir, name);
    return error ? fail_making(name, error, err) : CV_OK;
}

static cv_status open_parent_of(cv_dir dir, const char *name, cv_dir *out, cv_error *err)
{
    const char *slash = strrchr(name, '/');
    char *parent = slash ? cv_strndup(name, (size_t)(slash - name)) : cv_strdup(".");
    if (!parent) return cv_fail_memory(err, strlen(name), "a path");
    int error = cv_open_dir(dir, parent, 0, out);
    cv_free(parent);
    return error ? fail_making(name, error, err) : CV_OK;
}

cv_status cv_make_temp(cv_dir dir, const char *name, const cv_buffer *bytes, bool durable,
                       char temp[CV_OS_TEMP_NAME], cv_error *err)
{
    cv_file file;
    cv_dir parent;
    const char *slash = strrchr(name, '/');
    CV_TRY(cv_make_parents(dir, name, durable, err));
    CV_TRY(open_parent_of(dir, name, &parent, err));
    int error = cv_open_temp_file(parent, slash ? slash + 1 : name, 0666, temp, &file);
    if (!error) {
        error = cv_file_write(file, bytes->data, bytes->size, 0);
        if (!error && durable) error = cv_file_sync(file);
        cv_file_close(&file);
        if (error) (void)cv_dir_remove(parent, temp);
    }
    cv_dir_close(&parent);
    return error ? fail_making(name, error, err) : CV_OK;
}

/* ---- Directories ------------------------------------------------------------------------ */

static cv_status open_parent(char *path, cv_new_directory *out, cv_error *err)
{
    char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    out->name = cv_strdup(name);
    if (!out->name) return cv_fail_memory(err, strlen(name), "a path");
    const char *parent = !slash ? "." : slash == path ? "/" : path;
    if (slash) *slash = '\0';
    int error = cv_open_dir(cv_dir_here, parent, 0, &out->parent);
    if (error)
        return cv_fail_sys(err, error, "cannot make %s: its directory", out->shown.text);
    cv_file_info info;
    if (cv_dir_get_link_info(out->parent, out->name, &info) == 0)
        return fail_making(out->shown.text, EEXIST, err);
    return CV_OK;
}

cv_status cv_new_directory_open(const char *path, cv_new_directory *out, cv_error *err)
{
    char *stripped;
    cv_new_directory made = {.shown = cv_show_path(path)};
    if (!*path) return cv_fail(err, CATERVA_EINVAL, -1, "the path is empty");
    CV_TRY(cv_refuse_url(path, err));
    CV_TRY(cv_strip_slashes(path, &stripped, err));
    cv_status status = open_parent(stripped, &made, err);
    cv_free(stripped);
    if (status == CV_OK) {
        int error =
            cv_dir_create_temp_directory(made.parent, made.name, 0777, made.temp, &made.dir);
        if (error) status = fail_making(made.shown.text, error, err);
        if (error) made.dir = (cv_dir){0};
    }
    if (status != CV_OK) {
        cv_new_directory_close(&made);
        return status;
    }
    *out = made;
    return CV_OK;
}

cv_status cv_new_directory_publish(cv_new_directory *made, bool durable, cv_error *err)
{
    int error = durable ? cv_dir_sync(made->dir) : 0;
    if (!error) error = cv_dir_rename_new(made->parent, made->temp, made->name);
    if (error) return fail_making(made->shown.text, error, err);
    made->published = true;
    error = durable ? cv_dir_sync(made->parent) : 0;
    return error ? fail_making(made->shown.text, error, err) : CV_OK;
}

void cv_new_directory_close(cv_new_directory *made)
{
    if (cv_dir_is_open(made->dir) && !made->published) {
        (void)cv_remove_all(made->dir, made->shown.text, NULL, 0, NULL);
        (void)cv_dir_remove_directory(made->parent, made->temp);
    }
    cv_dir_close(&made->dir);
    cv_dir_close(&made->parent);
    cv_free(made->name);
    *made = (cv_new_directory){.shown = made->shown};
}

static cv_status fill_tree(cv_new_directory *made, bool durable, cv_error *err)
{
    cv_buffer embed = {0};
    cv_status status = cv_make_embed(&embed, err);
    if (status == CV_OK)
        status = cv_make_file(made->dir, CV_TREE_EMBED, &embed, durable, err);
    cv_buffer_free(&embed);
    return status == CV_OK ? cv_new_directory_publish(made, durable, err) : status;
}

cv_status cv_make_tree(const char *path, bool durable, cv_error *err)
{
    cv_new_directory made;
    CV_TRY(cv_new_directory_open(path, &made, err));
    cv_status status = fill_tree(&made, durable, err);
    cv_new_directory_close(&made);
    return status;
}

/* Directories go from below: each after what its path begins. */
static cv_status remove_directories(cv_dir dir, const cv_buffer *paths, cv_watch *watch,
                                    cv_error *err)
{
    size_t at = paths->size;
    const char *text = (const char *)paths->data;
    while (at > 1) {
        for (at--; at > 0 && text[at - 1]; at--) continue;
        if (text[at]) (void)cv_dir_remove_directory(dir, text + at);
        CV_TRY(cv_watch_tick(watch, 0, err));
    }
    return CV_OK;
}

static cv_status remove_files(cv_dir dir, const cv_members *files, cv_watch *watch,
                              cv_error *err)
{
    for (size_t i = 0; i < files->n; i++) {
        (void)cv_dir_remove(dir, files->list[i].path);
        CV_TRY(cv_watch_tick(watch, 1, err));
    }
    return CV_OK;
}

cv_status cv_remove_all(cv_dir dir, const char *shown, cv_watch *watch, int64_t announced,
                        cv_error *err)
{
    cv_members files = {0};
    cv_buffer directories = {0};
    cv_error reason = {0};
    cv_status status =
        cv_all_files_below(dir, shown, watch, announced, &files, &directories, &reason);
    cv_members_complete(&files);
    if (status != CATERVA_ESTOPPED) status = remove_files(dir, &files, watch, &reason);
    if (status == CV_OK) status = remove_directories(dir, &directories, watch, &reason);
    cv_buffer_free(&directories);
    cv_members_free(&files);
    if (status != CV_OK && err) *err = reason;
    return status;
}
