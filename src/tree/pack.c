/* Room: tree. Archives and directories made of trees. Promises: both appear whole or not at
 * all; a directory is not written to by others meanwhile.
 *
 * A member's checksum is known once its bytes were copied, its header stands before them:
 * the header is written last. */
#include "tree/pack.h"

#include "base/crc.h"
#include "store/descriptors.h"
#include "store/place.h"
#include "tree/copy.h"
#include "tree/files_below.h"
#include "tree/make.h"
#include "tree/names.h"

#include <string.h>

/* ---- The archive ------------------------------------------------------------------------ */

typedef struct archive {
    cv_file file;
    uint64_t pos;        /* where the next member begins */
    cv_buffer directory; /* its records so far */
    uint64_t n;
    cv_copy_watch *watch;
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
                           .name_size = (uint16_t)strlen(name), /* checked: 4000 at most */
                           .flags = is_ascii(name) ? 0 : CV_ZIP_UTF8,
                           .method = CV_ZIP_STORED,
                           .packed_size = size,
                           .size = size,
                           .header_pos = a->pos};
}

/* The member is complete: its header, and its record in the directory. */
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
    CV_TRY(cv_zip_local_write(&m, header, err)); /* how long it is */
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

/* The last member, also of an archive that had none. */
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
        if (strcmp(c->members.list[i].path, CV_TREE_EMBED) != 0) {
            CV_TRY(add_member(a, tree, &c->members.list[i], err));
            CV_TRY(cv_watch_tick(tree->watch, 1, err));
        }
    CV_TRY(add_embed(a, tree, c, err));
    return finish_archive(a, err);
}

/* ---- Its place -------------------------------------------------------------------------- */

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

/* The new file is locked from the beginning, as one that is written. */
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
                           cv_copy_watch *watch, bool durable, cv_error *err)
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

/* ---- The tree that is copied -------------------------------------------------------------- */

/* Nobody makes or removes files meanwhile, but who has it open for writing already: we. A
 * commit that is not finished is: what is copied is files. */
static cv_status hold(const cv_tree *tree, cv_error *err)
{
    if (tree->writable)
        return cv_tree_check_writable(tree, err); /* which we hold, or a parent */
    if (tree->form != CV_TREE_DIRECTORY) return CV_OK;
    int error = cv_file_lock(cv_dir_as_file(tree->dir));
    if (error) return cv_fail_lock(err, error, tree->path);
    cv_status status = cv_journal_finish(tree->dir, tree->path, tree->shown.text, err);
    if (status != CV_OK) cv_file_unlock(cv_dir_as_file(tree->dir));
    return status;
}

static void let_go(const cv_tree *tree)
{
    if (tree->form == CV_TREE_DIRECTORY && !tree->writable)
        cv_file_unlock(cv_dir_as_file(tree->dir));
}

static cv_copy_watch watch_of(const caterva_tree_pack_options *o, int64_t total)
{
    return (cv_copy_watch){.tell = o->on_progress, .context = o->context, .total = total};
}

static cv_status pack_held(const cv_tree *tree, const char *path,
                           const caterva_tree_pack_options *o, cv_error *err)
{
    cv_place place;
    cv_contents own;
    int64_t total;
    const cv_contents *contents;
    CV_TRY(cv_place_open(path, o->overwrite != 0, &place, err));
    cv_status status = cv_copy_look(tree, &own, &contents, &total, err);
    if (status == CV_OK) {
        cv_copy_watch watch = watch_of(o, total);
        bool durable = o->durability != CATERVA_DURABILITY_NONE;
        status = pack_into(&place, tree, contents, &watch, durable, err);
    }
    cv_contents_free(&own);
    cv_place_close(&place);
    return status;
}

cv_status cv_tree_pack(const cv_tree *tree, const char *path,
                       const caterva_tree_pack_options *o, cv_error *err)
{
    CV_TRY(hold(tree, err));
    cv_status status = pack_held(tree, path, o, err);
    let_go(tree);
    return status;
}

/* ---- A directory ---------------------------------------------------------------------------- */

static cv_status unpack_member(const cv_tree *tree, const cv_member *member, cv_dir dir,
                               cv_copy_watch *watch, cv_error *err)
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
        status = cv_fail_sys(err, error, "cannot make %s", cv_show_path(member->path).text);
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

/* `paths`: one behind the other, each with its NUL; the first is the tree's own, and empty. */
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

/* Many files are synced together with all else of their file system, where that can be: one
 * after the other they would take minutes. */
static cv_status sync_unpacked(const cv_new_directory *made, size_t n_files, cv_error *err)
{
    enum { MANY = 100 };
    cv_members files = {0};
    cv_buffer directories = {0};
    int error = n_files > MANY ? cv_dir_sync_all(made->dir) : ENOTSUP;
    if (!error) return CV_OK;
    if (error != ENOTSUP) return cv_fail_sys(err, error, "cannot sync %s", made->shown.text);
    cv_status status =
        cv_all_files_below(made->dir, made->shown.text, NULL, 0, &files, &directories, err);
    cv_members_complete(&files);
    if (status == CV_OK) status = sync_files(made->dir, &files, err);
    if (status == CV_OK) status = sync_directories(made->dir, &directories, err);
    cv_buffer_free(&directories);
    cv_members_free(&files);
    return status;
}

static cv_status unpack_into(const cv_tree *tree, const cv_contents *c,
                             cv_new_directory *made, cv_copy_watch *watch, bool durable,
                             cv_error *err)
{
    cv_buffer embed = {0};
    for (size_t i = 0; i < c->members.n; i++) /* a journal in an archive is nobody's */
        if (strcmp(c->members.list[i].path, CV_TREE_JOURNAL) != 0) {
            CV_TRY(unpack_member(tree, &c->members.list[i], made->dir, watch, err));
            CV_TRY(cv_watch_tick(tree->watch, 1, err));
        }
    if (!c->has_embed) {
        cv_status status = cv_make_embed(&embed, err);
        if (status == CV_OK)
            status = cv_make_file(made->dir, CV_TREE_EMBED, &embed, false, err);
        cv_buffer_free(&embed);
        CV_TRY(status);
    }
    if (durable) CV_TRY(sync_unpacked(made, c->members.n, err));
    return cv_new_directory_publish(made, durable, err);
}

static cv_status unpack_held(const cv_tree *tree, const char *path,
                             const caterva_tree_pack_options *o, cv_error *err)
{
    cv_contents own;
    int64_t total;
    cv_new_directory made;
    const cv_contents *contents;
    CV_TRY(cv_new_directory_open(path, &made, err));
    cv_status status = cv_copy_look(tree, &own, &contents, &total, err);
    if (status == CV_OK) {
        cv_copy_watch watch = watch_of(o, total);
        bool durable = o->durability != CATERVA_DURABILITY_NONE;
        status = unpack_into(tree, contents, &made, &watch, durable, err);
    }
    cv_contents_free(&own);
    cv_new_directory_close(&made);
    return status;
}

cv_status cv_tree_unpack(const cv_tree *tree, const char *path,
                         const caterva_tree_pack_options *o, cv_error *err)
{
    CV_TRY(hold(tree, err));
    cv_status status = unpack_held(tree, path, o, err);
    let_go(tree);
    return status;
}
