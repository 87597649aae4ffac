/* Room: tree. Makes trees, archives and directories, and copies their files. New ones appear whole
 * or not at all, with the files that python-blosc2 needs. A directory is locked while copied. */
#include "tree/make.h"

#include "base/arith.h"
#include "base/crc.h"
#include "codec/encode.h"
#include "format/seal.h"
#include "store/descriptors.h"
#include "store/place.h"
#include "store/store.h"
#include "tree/archive.h"
#include "tree/names.h"
#include "tree/zip.h"

#include <caterva_tree.h>
#include <string.h>

/* ---- Copying bytes of files ---------------------------------------------------------- */

enum { PIECE = 1 << 20 };

static cv_status open_locked(cv_copy_source *s, cv_error *err)
{
    if (s->member->is_unreadable) return cv_fail_unreadable(s->member->path, err);
    int error = cv_open_file(s->tree->dir, s->member->path, CV_OPEN_READ, 0, &s->file);
    if (error) return cv_fail_open(err, error, s->member->path);
    error = cv_keeper_lock(s->tree->dir, s->file);
    if (error) return cv_fail_lock(err, error, s->member->path);
    error = cv_file_size(s->file, &s->size);
    if (!error) return CV_OK;
    return cv_fail_sys(err, error, "cannot look at %s", cv_show_path(s->member->path).text);
}

cv_status cv_copy_source_open(const cv_tree *tree, const cv_member *member,
                              cv_copy_source *out, cv_error *err)
{
    size_t done;
    *out = (cv_copy_source){.tree = tree, .member = member, .size = member->size};
    if (tree->form == CV_TREE_ARCHIVE) {
        const cv_zip_source source = cv_tree_source(tree);
        if (tree->store)
            return cv_fail(err, CATERVA_EUNSUPPORTED, -1,
                           "%s is behind a URL: download it to unpack it", tree->shown.text);
        out->file = tree->file;
        return cv_zip_directory_locate(&source, member, &out->pos, NULL, 0, &done, err);
    }
    cv_status status = open_locked(out, err);
    if (status != CV_OK) cv_copy_source_close(out);
    return status;
}

void cv_copy_source_close(cv_copy_source *s)
{
    if (s->tree->form == CV_TREE_DIRECTORY) cv_file_close(&s->file);
}

static cv_status read_piece(const cv_copy_source *s, uint8_t *bytes, uint64_t at, size_t size,
                            cv_error *err)
{
    size_t done;
    int error = cv_file_read(s->file, bytes, size, s->pos + at, &done);
    if (!error && done < size)
        return cv_fail_past_end(err, cv_show_path(s->member->path).text, at, size, at + done);
    if (!error) return CV_OK;
    return cv_fail_sys(err, error, "cannot read %s", cv_show_path(s->member->path).text);
}

static cv_status write_piece(const cv_copy_source *s, const uint8_t *bytes, size_t size,
                             cv_file to, uint64_t pos, cv_error *err)
{
    int error = cv_file_write(to, bytes, size, pos);
    if (!error) return CV_OK;
    return cv_fail_sys(err, error, "cannot copy %s", cv_show_path(s->member->path).text);
}

static size_t piece_at(const cv_copy_source *s, uint64_t at)
{
    return s->size - at < PIECE ? (size_t)(s->size - at) : PIECE;
}

static cv_status check_crc(const cv_copy_source *s, uint32_t crc, cv_error *err)
{
    if (s->tree->form != CV_TREE_ARCHIVE || s->any_checksum || crc == s->member->crc)
        return CV_OK;
    return cv_fail(err, CATERVA_ECORRUPT, (int64_t)s->pos,
                   "member %s of %s is damaged: its checksum is %08x, it should be %08x",
                   cv_show_path(s->member->path).text, s->tree->shown.text, crc,
                   s->member->crc);
}

cv_status cv_copy_bytes(const cv_copy_source *s, cv_file to, uint64_t pos, cv_watch *watch,
                        uint32_t *crc, cv_error *err)
{
    uint8_t *bytes = cv_malloc(PIECE);
    if (!bytes) return cv_fail_memory(err, PIECE, "a copy");
    cv_status status = CV_OK;
    *crc = 0;
    for (uint64_t at = 0; at < s->size && status == CV_OK;) {
        size_t size = piece_at(s, at);
        status = read_piece(s, bytes, at, size, err);
        if (status == CV_OK) status = write_piece(s, bytes, size, to, pos + at, err);
        if (status == CV_OK) *crc = cv_crc32(*crc, bytes, size);
        if (status == CV_OK) status = cv_watch_tick(watch, (int64_t)size, err);
        at += size;
    }
    cv_free(bytes);
    return status == CV_OK ? check_crc(s, *crc, err) : status;
}

cv_status cv_copy_check(const cv_copy_source *s, cv_watch *watch, cv_error *err)
{
    uint8_t *bytes = cv_malloc(PIECE);
    if (!bytes) return cv_fail_memory(err, PIECE, "a checksum");
    cv_status status = CV_OK;
    uint32_t crc = 0;
    for (uint64_t at = 0; at < s->size && status == CV_OK;) {
        size_t size = piece_at(s, at);
        status = read_piece(s, bytes, at, size, err);
        if (status == CV_OK) crc = cv_crc32(crc, bytes, size);
        if (status == CV_OK) status = cv_watch_tick(watch, (int64_t)size, err);
        at += size;
    }
    cv_free(bytes);
    return status == CV_OK ? check_crc(s, crc, err) : status;
}

/* Returns the contents of the tree, an archive or a directory, and announces their bytes. */
static cv_status copy_look(const cv_tree *tree, cv_watch *watch, cv_contents *own,
                           const cv_contents **out, cv_error *err)
{
    *own = (cv_contents){0};
    if (tree->form == CV_TREE_FILE || tree->form == CV_TREE_ZARR)
        return cv_fail(err, CATERVA_EUNSUPPORTED, -1, "%s is %s: copy its arrays one by one",
                       tree->shown.text,
                       tree->form == CV_TREE_ZARR
                           ? "a Zarr group"
                           : "a single file with all arrays inside it");
    CV_TRY(cv_tree_look(tree, own, out, err));
    if (tree->form == CV_TREE_DIRECTORY) /* the look listed its files */
        cv_watch_add(tree->watch, (int64_t)(*out)->members.n * CV_FILE_BYTES);
    for (size_t i = 0; i < (*out)->members.n; i++)
        cv_watch_expect(watch, (int64_t)(*out)->members.list[i].size);
    return CV_OK;
}

/* ---- Frames without chunks ------------------------------------------------------------ */

/* Writes a frame without chunks. The first pass finds the header's size, the second stores it. */
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
        return cv_fail(err, CATERVA_EEXIST, -1, "%s exists already", shown.text);
    return cv_fail_sys(err, error, "cannot create %s", shown.text);
}

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

cv_status cv_check_spelling(cv_dir dir, const char *name, cv_error *err)
{
    if (cv_dir_is_spelled(dir, name)) return CV_OK;
    return cv_fail(err, CATERVA_EEXIST, -1,
                   "cannot create %.80s: the directory has a name that differs only in case, "
                   "and its file system ignores case",
                   cv_show_path(name).text);
}

cv_status cv_make_parents(cv_dir dir, const char *name, bool durable, cv_error *err)
{
    CV_TRY(cv_check_spelling(dir, name, err));
    char *path = cv_strdup(name);
    if (!path) return cv_fail_memory(err, strlen(name), "a path");
    int error = 0;
    for (char *at = strchr(path, '/'); at && !error; at = strchr(at + 1, '/')) {
        *at = '\0';
        error = cv_dir_make(dir, path, 0777);
        if (!error && durable) error = sync_folder_of(dir, path);
        if (error == EEXIST) error = 0;
        *at = '/';
    }
    cv_free(path);
    return error ? fail_making(name, error, err) : CV_OK;
}

/* Writes under a temporary name first, so that a named file is always complete. */
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
        return cv_fail_sys(err, error, "cannot create %s: its directory", out->shown.text);
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

/* Deletes directories in reverse order: each after those below it. */
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
        CV_TRY(cv_watch_tick(watch, CV_FILE_BYTES, err));
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

void cv_remove_empty(cv_dir dir, const char *name)
{
    cv_dir empty;
    cv_members files = {0};
    cv_buffer below = {0};
    if (cv_open_dir(dir, name, CV_OPEN_NO_LINK, &empty)) return;
    cv_status status = cv_all_files_below(empty, name, NULL, 0, &files, &below, NULL);
    if (status == CV_OK && files.n == 0) (void)remove_directories(empty, &below, NULL, NULL);
    cv_buffer_free(&below);
    cv_members_free(&files);
    cv_dir_close(&empty);
    (void)cv_dir_remove_directory(dir, name);
}

/* ---- The archive ------------------------------------------------------------------------ */

typedef struct archive {
    cv_file file;
    uint64_t pos;        /* where the next member will begin */
    cv_buffer directory; /* the records so far */
    uint64_t n;
    cv_watch *watch;
} archive;

static cv_status write_at(const archive *a, const cv_buffer *bytes, uint64_t pos,
                          cv_error *err)
{
    int error = cv_file_write(a->file, bytes->data, bytes->size, pos);
    if (!error) return CV_OK;
    return cv_fail_sys(err, error, "cannot write %zu bytes of the archive", bytes->size);
}

static bool is_ascii(const char *text)
{
    while (*text && !((unsigned char)*text & 0x80)) text++;
    return !*text;
}

static cv_zip_member new_member(const archive *a, const char *name, uint64_t size)
{
    return (cv_zip_member){.name = (const uint8_t *)name,
                           .name_size = (uint16_t)strlen(name), /* checked: at most 4000 */
                           .flags = is_ascii(name) ? 0 : CV_ZIP_UTF8,
                           .method = CV_ZIP_STORED,
                           .packed_size = size,
                           .size = size,
                           .header_pos = a->pos};
}

static cv_status finish_member(archive *a, const cv_zip_member *m, cv_buffer *header,
                               cv_error *err)
{
    header->size = 0;
    CV_TRY(cv_zip_local_write(m, header, err));
    CV_TRY(write_at(a, header, a->pos, err));
    CV_TRY(cv_zip_record_write(m, &a->directory, err));
    a->pos += header->size + m->size;
    a->n++;
    return CV_OK;
}

static cv_status copy_member(archive *a, const cv_copy_source *source, cv_buffer *header,
                             cv_error *err)
{
    cv_zip_member m = new_member(a, source->member->path, source->size);
    CV_TRY(cv_zip_local_write(&m, header, err)); /* for the header's size */
    CV_TRY(cv_copy_bytes(source, a->file, a->pos + header->size, a->watch, &m.crc, err));
    return finish_member(a, &m, header, err);
}

static cv_status add_member(archive *a, const cv_tree *tree, const cv_member *member,
                            cv_error *err)
{
    cv_copy_source source;
    cv_buffer header = {0};
    CV_TRY(cv_copy_source_open(tree, member, &source, err));
    cv_status status = copy_member(a, &source, &header, err);
    cv_copy_source_close(&source);
    cv_buffer_free(&header);
    return status;
}

static cv_status add_bytes(archive *a, const char *name, const cv_buffer *bytes,
                           cv_error *err)
{
    cv_buffer header = {0};
    cv_zip_member m = new_member(a, name, bytes->size);
    m.crc = cv_crc32(0, bytes->data, bytes->size);
    cv_status status = cv_zip_local_write(&m, &header, err);
    if (status == CV_OK) status = write_at(a, bytes, a->pos + header.size, err);
    if (status == CV_OK) status = finish_member(a, &m, &header, err);
    cv_buffer_free(&header);
    return status;
}

static cv_status add_embed(archive *a, const cv_tree *tree, const cv_contents *c,
                           cv_error *err)
{
    cv_buffer bytes = {0};
    const cv_member *embed = cv_members_find(&c->members, CV_TREE_EMBED);
    if (embed) return add_member(a, tree, embed, err);
    cv_status status = cv_make_embed(&bytes, err);
    if (status == CV_OK) status = add_bytes(a, CV_TREE_EMBED, &bytes, err);
    cv_buffer_free(&bytes);
    return status;
}

static cv_status finish_archive(archive *a, cv_error *err)
{
    cv_zip_end end = {
        .n_members = a->n, .directory_pos = a->pos, .directory_size = a->directory.size};
    CV_TRY(cv_zip_end_write(&end, &a->directory, err));
    return write_at(a, &a->directory, a->pos, err);
}

static cv_status write_archive(archive *a, const cv_tree *tree, const cv_contents *c,
                               cv_error *err)
{
    for (size_t i = 0; i < c->members.n; i++)
        if (strcmp(c->members.list[i].path, CV_TREE_EMBED) != 0)
            CV_TRY(add_member(a, tree, &c->members.list[i], err));
    CV_TRY(add_embed(a, tree, c, err));
    return finish_archive(a, err);
}

static cv_status publish(cv_place *place, cv_file file, bool durable, cv_error *err)
{
    bool moved;
    int error = durable ? cv_file_sync(file) : 0;
    if (error) return cv_fail_sys(err, error, "cannot sync %s", place->shown.text);
    cv_status status = cv_place_publish(place, file, (cv_file){0}, durable, &moved, err);
    if (moved) cv_temporaries_remove(&place->listed);
    if (!moved) cv_place_remove_temp(place);
    return status;
}

/* Creates the new file, locked from the beginning like any file being written. */
static cv_status create(cv_place *place, cv_file *out, cv_error *err)
{
    int error = cv_place_create_file(place, out);
    if (error) return cv_fail_sys(err, error, "cannot create %s", place->shown.text);
    cv_place_list(place);
    error = cv_file_lock(*out);
    if (!error) return CV_OK;
    cv_place_remove_temp(place);
    cv_file_close(out);
    return cv_fail_lock(err, error, place->shown.text);
}

static cv_status pack_into(cv_place *place, const cv_tree *tree, const cv_contents *c,
                           cv_watch *watch, bool durable, cv_error *err)
{
    archive a = {.watch = watch};
    CV_TRY(create(place, &a.file, err));
    cv_status status = write_archive(&a, tree, c, err);
    if (status == CV_OK)
        status = publish(place, a.file, durable, err);
    else
        cv_place_remove_temp(place);
    cv_buffer_free(&a.directory);
    cv_file_close(&a.file);
    return status;
}

cv_status cv_tree_hold(const cv_tree *tree, cv_error *err)
{
    if (tree->writable)
        return cv_tree_check_writable(tree, err); /* locked by us or our parent */
    if (tree->form != CV_TREE_DIRECTORY) return CV_OK;
    int error = cv_file_lock(cv_dir_as_file(tree->dir));
    if (error) return cv_fail_lock(err, error, tree->path);
    cv_status status = cv_journal_finish(tree->dir, tree->path, tree->shown.text, err);
    if (status != CV_OK) cv_file_unlock(cv_dir_as_file(tree->dir));
    return status;
}

void cv_tree_let_go(const cv_tree *tree)
{
    if (tree->form == CV_TREE_DIRECTORY && !tree->writable)
        cv_file_unlock(cv_dir_as_file(tree->dir));
}

cv_status cv_tree_check_outside(const cv_tree *tree, const char *path, cv_error *err)
{
    if (tree->form != CV_TREE_DIRECTORY && tree->form != CV_TREE_ZARR) return CV_OK;
    char *whole = cv_os_absolute(path);
    if (!whole) return cv_fail_memory(err, strlen(path), "a path");
    bool is_inside = cv_tree_is_path_in(whole, tree->path);
    cv_free(whole);
    if (!is_inside) return CV_OK;
    return cv_fail(err, CATERVA_EINVAL, -1,
                   "%s lies inside the tree %s, from which it would be made",
                   cv_show_path(path).text, tree->shown.text);
}

static cv_status pack_held(const cv_tree *tree, const char *path,
                           const caterva_tree_pack_options *o, cv_error *err)
{
    cv_place place;
    cv_watch watch;
    cv_contents own;
    const cv_contents *contents;
    bool durable = o->durability != CATERVA_DURABILITY_NONE;
    CV_TRY(cv_tree_check_outside(tree, path, err));
    CV_TRY(cv_place_open(path, o->overwrite != 0, &place, err));
    cv_watch *reporting = cv_watch_open(&watch, &o->progress, tree->watch);
    cv_status status = copy_look(tree, reporting, &own, &contents, err);
    if (status == CV_OK) status = pack_into(&place, tree, contents, reporting, durable, err);
    cv_contents_free(&own);
    cv_place_close(&place);
    return cv_watch_close(&watch, status);
}

cv_status cv_tree_pack(const cv_tree *tree, const char *path,
                       const caterva_tree_pack_options *o, cv_error *err)
{
    CV_TRY(cv_tree_hold(tree, err));
    cv_status status = pack_held(tree, path, o, err);
    cv_tree_let_go(tree);
    return status;
}

static cv_status unpack_member(const cv_tree *tree, const cv_member *member, cv_dir dir,
                               cv_watch *watch, cv_error *err)
{
    uint32_t crc;
    cv_file file;
    cv_copy_source source;
    CV_TRY(cv_make_parents(dir, member->path, false, err));
    CV_TRY(cv_copy_source_open(tree, member, &source, err));
    unsigned how = CV_OPEN_WRITE | CV_OPEN_CREATE | CV_OPEN_NEW;
    int error = cv_open_file(dir, member->path, how, 0666, &file);
    cv_status status = CV_OK;
    if (error) {
        status = cv_fail_sys(err, error, "cannot create %s", cv_show_path(member->path).text);
    } else {
        status = cv_copy_bytes(&source, file, 0, watch, &crc, err);
        cv_file_close(&file);
    }
    cv_copy_source_close(&source);
    return status;
}

static cv_status sync_files(cv_dir dir, const cv_members *files, cv_error *err)
{
    for (size_t i = 0; i < files->n; i++) {
        cv_file file;
        int error = cv_open_file(dir, files->list[i].path, CV_OPEN_READ, 0, &file);
        if (!error) error = cv_file_sync(file);
        cv_file_close(&file);
        if (error) return cv_fail_sys(err, error, "cannot sync a file of the tree");
    }
    return CV_OK;
}

/* Syncs directories. `paths`: one after another, each with its NUL; "" is the tree itself. */
static cv_status sync_directories(cv_dir dir, const cv_buffer *paths, cv_error *err)
{
    const char *path = (const char *)paths->data;
    for (size_t at = 0; at < paths->size; at += strlen(path + at) + 1) {
        cv_dir one;
        int error = cv_open_dir(dir, path[at] ? path + at : ".", 0, &one);
        if (!error) error = cv_dir_sync(one);
        cv_dir_close(&one);
        if (error) return cv_fail_sys(err, error, "cannot sync a group of the tree");
    }
    return CV_OK;
}

/* Many files are synced by one sync of the file system, if possible: one by one takes minutes. */
cv_status cv_sync_below(cv_dir dir, const char *shown, size_t n_files, cv_error *err)
{
    enum { MANY = 100 };
    cv_members files = {0};
    cv_buffer directories = {0};
    int error = n_files > MANY ? cv_dir_sync_all(dir) : ENOTSUP;
    if (!error) return CV_OK;
    if (error != ENOTSUP) return cv_fail_sys(err, error, "cannot sync %s", shown);
    cv_status status = cv_all_files_below(dir, shown, NULL, 0, &files, &directories, err);
    cv_members_complete(&files);
    if (status == CV_OK) status = sync_files(dir, &files, err);
    if (status == CV_OK) status = sync_directories(dir, &directories, err);
    cv_buffer_free(&directories);
    cv_members_free(&files);
    return status;
}

static cv_status unpack_into(const cv_tree *tree, const cv_contents *c,
                             cv_new_directory *made, cv_watch *watch, bool durable,
                             cv_error *err)
{
    cv_buffer embed = {0};
    for (size_t i = 0; i < c->members.n; i++)
        CV_TRY(cv_tree_check_groups(c->members.list[i].path, false, err));
    for (size_t i = 0; i < c->members.n; i++)
        CV_TRY(unpack_member(tree, &c->members.list[i], made->dir, watch, err));
    if (!c->has_embed) {
        cv_status status = cv_make_embed(&embed, err);
        if (status == CV_OK)
            status = cv_make_file(made->dir, CV_TREE_EMBED, &embed, false, err);
        cv_buffer_free(&embed);
        CV_TRY(status);
    }
    if (durable) CV_TRY(cv_sync_below(made->dir, made->shown.text, c->members.n, err));
    return cv_new_directory_publish(made, durable, err);
}

static cv_status unpack_held(const cv_tree *tree, const char *path,
                             const caterva_tree_pack_options *o, cv_error *err)
{
    cv_watch watch;
    cv_contents own;
    cv_new_directory made;
    const cv_contents *contents;
    bool durable = o->durability != CATERVA_DURABILITY_NONE;
    CV_TRY(cv_new_directory_open(path, &made, err));
    cv_watch *reporting = cv_watch_open(&watch, &o->progress, tree->watch);
    cv_status status = copy_look(tree, reporting, &own, &contents, err);
    if (status == CV_OK) status = unpack_into(tree, contents, &made, reporting, durable, err);
    cv_contents_free(&own);
    cv_new_directory_close(&made);
    return cv_watch_close(&watch, status);
}

cv_status cv_tree_unpack(const cv_tree *tree, const char *path,
                         const caterva_tree_pack_options *o, cv_error *err)
{
    CV_TRY(cv_tree_hold(tree, err));
    cv_status status = unpack_held(tree, path, o, err);
    cv_tree_let_go(tree);
    return status;
}
