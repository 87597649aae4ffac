/* Room: tree. Copies bytes of files. Knows nothing of where they go. */
#include "tree/copy.h"

#include "base/arith.h"
#include "base/crc.h"
#include "base/heap.h"
#include "store/descriptors.h"
#include "store/place.h"
#include "tree/names.h"
#include "tree/zip_directory.h"

#include <string.h>

enum { PIECE = 1 << 20 };

static cv_status open_locked(cv_copy_source *s, cv_error *err)
{
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
                           "%s is behind a URL: fetch it whole to unpack it",
                           tree->shown.text);
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

static cv_status tell(cv_copy_watch *w, size_t size, cv_error *err)
{
    w->done += (int64_t)size;
    if (!w->tell || w->tell(w->context, w->done, w->total) == 0) return CV_OK;
    return cv_fail(err, CATERVA_ESTOPPED, -1, "stopped after %lld of %lld bytes",
                   (long long)w->done, (long long)w->total);
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

cv_status cv_copy_bytes(const cv_copy_source *s, cv_file to, uint64_t pos,
                        cv_copy_watch *watch, uint32_t *crc, cv_error *err)
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
        if (status == CV_OK) status = tell(watch, size, err);
        at += size;
    }
    cv_free(bytes);
    return status == CV_OK ? check_crc(s, *crc, err) : status;
}

cv_status cv_copy_check(const cv_copy_source *s, cv_copy_watch *watch, cv_error *err)
{
    uint8_t *bytes = cv_malloc(PIECE);
    if (!bytes) return cv_fail_memory(err, PIECE, "a checksum");
    cv_status status = CV_OK;
    uint32_t crc = 0;
    for (uint64_t at = 0; at < s->size && status == CV_OK;) {
        size_t size = piece_at(s, at);
        status = read_piece(s, bytes, at, size, err);
        if (status == CV_OK) crc = cv_crc32(crc, bytes, size);
        if (status == CV_OK) status = tell(watch, size, err);
        at += size;
    }
    cv_free(bytes);
    return status == CV_OK ? check_crc(s, crc, err) : status;
}

cv_status cv_copy_look(const cv_tree *tree, cv_contents *own, const cv_contents **out,
                       int64_t *total, cv_error *err)
{
    *own = (cv_contents){0};
    if (tree->form == CV_TREE_FILE)
        return cv_fail(err, CATERVA_EUNSUPPORTED, -1,
                       "%s is one file with all arrays inside it: copy its arrays one by one",
                       tree->shown.text);
    CV_TRY(cv_tree_look(tree, own, out, err));
    if (tree->form != CV_TREE_DIRECTORY)
        cv_watch_expect(tree->watch, (int64_t)(*out)->members.n);
    *total = 0;
    for (size_t i = 0; i < (*out)->members.n; i++)
        *total += (int64_t)(*out)->members.list[i].size;
    return CV_OK;
}
