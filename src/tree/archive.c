/* Room: tree. Reads the directory of an archive from a file or a store, in pieces; for repairs,
 * finds members without the directory. Members must not overlap, must lie inside the file, and must
 * have safe names. Only repairs compare checksums of contents here. */
#include "tree/archive.h"

#include "base/arith.h"
#include "base/crc.h"
#include "base/heap.h"
#include "store/reading.h"
#include "store/store.h"
#include "tree/names.h"
#include "tree/zip.h"

#include <stdlib.h>
#include <string.h>

enum {
    PIECE = 256 * 1024,
    LONGEST_RECORD = CV_ZIP_RECORD_SIZE + 3 * UINT16_MAX,
    PER_LOOK = 1024 /* members between two checks of the watch: about a millisecond */
};

static cv_status source_size(const cv_zip_source *source, const cv_shown_path *shown,
                             uint64_t *size, cv_error *err)
{
    if (source->store) return cv_store_size(source->store, CV_FRAME_OBJECT, size, err);
    int error = cv_file_size(source->file, size);
    return error ? cv_fail_sys(err, error, "cannot look at %s", shown->text) : CV_OK;
}

static cv_status read_store(cv_store *store, uint64_t pos, void *dst, size_t size,
                            size_t *done, cv_error *err)
{
    uint64_t end;
    CV_TRY(cv_store_size(store, CV_FRAME_OBJECT, &end, err));
    uint64_t left = pos < end ? end - pos : 0;
    *done = size < left ? size : (size_t)left;
    return *done ? cv_store_read(store, CV_FRAME_OBJECT, pos, dst, *done, err) : CV_OK;
}

cv_status cv_zip_source_read(const cv_zip_source *source, uint64_t pos, void *dst,
                             size_t size, size_t *done, cv_error *err)
{
    if (source->store) return read_store(source->store, pos, dst, size, done, err);
    int error = cv_file_read(source->file, dst, size, pos, done);
    if (!error) return CV_OK;
    return cv_fail_sys(err, error, "cannot read %zu bytes at %llu of the zip archive", size,
                       (unsigned long long)pos);
}

static cv_status read_bytes(const cv_zip_source *source, uint64_t pos, void *dst, size_t size,
                            cv_error *err)
{
    size_t done;
    CV_TRY(cv_zip_source_read(source, pos, dst, size, &done, err));
    if (done == size) return CV_OK;
    return cv_fail_past_end(err, "the zip archive", pos, size, pos + done);
}

/* ---- The directory -------------------------------------------------------------- */

/* Finds the end in the last 64 KiB, which a remote store has in memory, if the comment is short. */
static bool find_end(const cv_zip_source *source, uint64_t file_size, cv_zip_end *out)
{
    enum { AT_HAND = 64 * 1024 };
    if (!source->store || file_size <= AT_HAND) return false;
    const uint8_t *tail =
        cv_store_view(source->store, CV_FRAME_OBJECT, file_size - AT_HAND, AT_HAND);
    return tail && cv_zip_end_parse(tail, AT_HAND, file_size, out, NULL) == CV_OK;
}

static cv_status read_end(const cv_zip_source *source, uint64_t file_size, cv_zip_end *out,
                          cv_error *err)
{
    if (find_end(source, file_size, out)) return CV_OK;
    size_t size = file_size < CV_ZIP_END_SEARCH ? (size_t)file_size : CV_ZIP_END_SEARCH;
    uint8_t *tail = cv_malloc(size);
    if (!tail) return cv_fail_memory(err, size, "the end of a zip archive");
    cv_status status = read_bytes(source, file_size - size, tail, size, err);
    if (status == CV_OK) status = cv_zip_end_parse(tail, size, file_size, out, err);
    cv_free(tail);
    return status;
}

enum { HEAD = 8192 }; /* bytes; exceeds a header with the longest name */

/* Whether a file that claims to be the last of several parts contains the first member. */
static bool is_whole(const cv_zip_source *source, const cv_zip_end *end)
{
    uint8_t bytes[HEAD], head[HEAD];
    size_t n = 0, at = 0;
    size_t size = end->directory_size < HEAD ? (size_t)end->directory_size : HEAD;
    uint64_t data_at;
    cv_zip_member record;
    return cv_zip_source_read(source, end->directory_pos, bytes, size, &n, NULL) == CV_OK &&
           n >= CV_ZIP_RECORD_SIZE &&
           cv_zip_record_parse(bytes, n, end->directory_pos, &record, NULL) == CV_OK &&
           cv_zip_source_read(source, record.header_pos, head, HEAD, &at, NULL) == CV_OK &&
           cv_zip_local_parse(head, at, record.header_pos, &record, &data_at, NULL) == CV_OK;
}

static cv_status find_directory(const cv_zip_source *source, uint64_t file_size,
                                cv_zip_end *out, cv_error *err)
{
    cv_error why = {.position = -1};
    *out = (cv_zip_end){0};
    cv_status status = read_end(source, file_size, out, &why);
    if (status == CATERVA_EUNSUPPORTED && is_whole(source, out))
        return cv_fail(
            err, CATERVA_ECORRUPT, why.position,
            "the zip archive's end is damaged: it calls this one of several parts, but the "
            "archive is whole; repair finds the members without the end");
    if (status != CV_OK && err) *err = why;
    return status;
}

/* Adds a member to the list. Skips directories, whose names end with a slash. */
static cv_status take(const cv_zip_member *record, const cv_zip_end *end, cv_members *out,
                      cv_error *err)
{
    const char *name = (const char *)record->name;
    uint64_t data, stop;
    bool is_directory = record->name_size > 1 && name[record->name_size - 1] == '/';
    CV_TRY(cv_tree_check_path(name, (size_t)record->name_size - is_directory, err));
    cv_member member = {.size = record->packed_size,
                        .full_size = record->size,
                        .crc = record->crc,
                        .needs = record->needs,
                        .flags = record->flags,
                        .method = record->method};
    if (!cv_add_u64(record->header_pos, end->shift, &member.header_pos) ||
        !cv_add_u64(member.header_pos, CV_ZIP_LOCAL_SIZE + (uint64_t)record->name_size,
                    &data) ||
        !cv_add_u64(data, record->packed_size, &stop) || stop > end->directory_pos)
        return cv_fail(err, CATERVA_ECORRUPT, (int64_t)end->directory_pos,
                       "a member of %llu bytes at %llu does not lie before the zip archive's "
                       "directory at %llu",
                       (unsigned long long)record->packed_size,
                       (unsigned long long)record->header_pos,
                       (unsigned long long)end->directory_pos);
    if (record->method == CV_ZIP_STORED && record->packed_size != record->size)
        return cv_fail(
            err, CATERVA_ECORRUPT, (int64_t)member.header_pos,
            "a stored member at byte %llu of the zip archive has %llu bytes packed, but "
            "%llu unpacked",
            (unsigned long long)member.header_pos, (unsigned long long)record->packed_size,
            (unsigned long long)record->size);
    if (is_directory && record->size > 0)
        return cv_fail(err, CATERVA_ECORRUPT, (int64_t)member.header_pos,
                       "a directory at byte %llu of the zip archive has %llu bytes",
                       (unsigned long long)member.header_pos,
                       (unsigned long long)record->size);
    member.end = stop;
    return is_directory ? CV_OK : cv_members_add(out, &member, name, record->name_size, err);
}

/* Progress through the directory. bytes[at, size) are not parsed yet and begin at `pos`. */
typedef struct scan {
    const cv_zip_source *source;
    const cv_zip_end *end;
    uint8_t *bytes;
    size_t at, size;
    uint64_t pos, left; /* `left`: bytes of the directory that are not in memory yet */
} scan;

static cv_status fill(scan *s, cv_error *err)
{
    if (s->size - s->at >= LONGEST_RECORD || s->left == 0) return CV_OK;
    memmove(s->bytes, s->bytes + s->at, s->size - s->at);
    s->size -= s->at;
    s->at = 0;
    size_t room = PIECE + LONGEST_RECORD - s->size;
    size_t more = s->left < room ? (size_t)s->left : room;
    CV_TRY(read_bytes(s->source, s->pos + s->size, s->bytes + s->size, more, err));
    s->size += more;
    s->left -= more;
    return CV_OK;
}

static cv_status next_record(scan *s, cv_members *out, cv_error *err)
{
    size_t size, left;
    cv_zip_member record;
    CV_TRY(fill(s, err));
    left = s->size - s->at;
    if (left < CV_ZIP_RECORD_SIZE)
        return cv_fail(err, CATERVA_ECORRUPT, (int64_t)s->pos,
                       "the zip archive's directory ends within a record at byte %llu",
                       (unsigned long long)s->pos);
    CV_TRY(cv_zip_record_peek(s->bytes + s->at, s->pos, &size, err));
    CV_TRY(cv_zip_record_parse(s->bytes + s->at, left, s->pos, &record, err));
    CV_TRY(take(&record, s->end, out, err));
    s->at += size;
    s->pos += size;
    return CV_OK;
}

static cv_status read_records(const cv_zip_source *source, const cv_zip_end *end,
                              cv_members *out, cv_error *err)
{
    scan s = {.source = source, .end = end, .pos = end->directory_pos};
    s.left = end->directory_size;
    s.bytes = cv_malloc(PIECE + LONGEST_RECORD);
    if (!s.bytes) return cv_fail_memory(err, PIECE + LONGEST_RECORD, "a zip directory");
    cv_status status = CV_OK;
    for (uint64_t i = 0; i < end->n_members && status == CV_OK; i++) {
        status = next_record(&s, out, err);
        if (status == CV_OK && i % PER_LOOK == 0)
            status = cv_watch_tick(source->watch, 0, err);
    }
    uint64_t stop = end->directory_pos + end->directory_size;
    if (status == CV_OK && s.pos != stop)
        status =
            cv_fail(err, CATERVA_ECORRUPT, (int64_t)s.pos,
                    "the zip archive's directory has %llu bytes after its %llu members",
                    (unsigned long long)(stop - s.pos), (unsigned long long)end->n_members);
    cv_free(s.bytes);
    return status;
}

static int compare_places(const void *x, const void *y)
{
    const cv_member *a = *(const cv_member *const *)x, *b = *(const cv_member *const *)y;
    return (a->header_pos > b->header_pos) - (a->header_pos < b->header_pos);
}

/* Checks that members do not overlap. Changes member.end from the end of the member's data to the
 * beginning of the next member. */
static cv_status check_apart(cv_members *m, uint64_t directory_pos, cv_error *err)
{
    if (m->n == 0) return CV_OK;
    cv_member **sorted = cv_malloc(m->n * sizeof *sorted);
    if (!sorted) return cv_fail_memory(err, m->n * sizeof *sorted, "the members of a tree");
    for (size_t i = 0; i < m->n; i++) sorted[i] = &m->list[i];
    qsort(sorted, m->n, sizeof *sorted, compare_places);
    cv_status status = CV_OK;
    for (size_t i = 0; i < m->n && status == CV_OK; i++) {
        uint64_t next = i + 1 < m->n ? sorted[i + 1]->header_pos : directory_pos;
        if (sorted[i]->end > next)
            status = cv_fail(err, CATERVA_ECORRUPT, (int64_t)next,
                             "two members of the zip archive overlap at byte %llu",
                             (unsigned long long)next);
        sorted[i]->end = next;
    }
    cv_free(sorted);
    return status;
}

cv_status cv_zip_directory_read(const cv_zip_source *source, const cv_shown_path *shown,
                                cv_members *out, cv_error *err)
{
    uint64_t size;
    cv_zip_end end;
    cv_members members = {0};
    CV_TRY(source_size(source, shown, &size, err));
    CV_TRY(find_directory(source, size, &end, err));
    cv_status status = read_records(source, &end, &members, err);
    if (status == CV_OK) status = check_apart(&members, end.directory_pos, err);
    if (status != CV_OK) {
        cv_members_free(&members);
        return status;
    }
    cv_members_complete(&members);
    *out = members;
    return CV_OK;
}

/* ---- One member --------------------------------------------------------------------- */

static cv_status check_stored(const cv_member *member, cv_error *err)
{
    bool is_encrypted = member->flags & CV_ZIP_ENCRYPTED;
    if (member->method == CV_ZIP_STORED && !is_encrypted) return CV_OK;
    return cv_fail(err, CATERVA_EUNSUPPORTED, (int64_t)member->header_pos,
                   "member %s of the zip archive is %s, and only members stored without "
                   "compression and encryption can be read in place: unpack it",
                   cv_show_path(member->path).text,
                   is_encrypted                        ? "encrypted"
                   : member->method == CV_ZIP_DEFLATED ? "deflated"
                                                       : "compressed");
}

/* Whether the bytes read ahead contain the whole local header, with the lengths that it states. */
static bool is_ahead(const cv_zip_source *source, const cv_member *member)
{
    const uint8_t *b = source->ahead;
    if (!b || source->ahead_pos != member->header_pos) return false;
    if (source->ahead_size < CV_ZIP_LOCAL_SIZE) return false;
    size_t name = (size_t)b[26] | (size_t)b[27] << 8,
           extra = (size_t)b[28] | (size_t)b[29] << 8;
    return source->ahead_size >= CV_ZIP_LOCAL_SIZE + name + extra;
}

/* Reads a member's beginning, at most up to the next member, or takes the bytes read ahead. */
static cv_status read_local(const cv_zip_source *source, const cv_member *member,
                            uint8_t head[HEAD], size_t *n, cv_error *err)
{
    uint64_t room = member->end - member->header_pos;
    size_t size = room < HEAD ? (size_t)room : HEAD;
    if (!is_ahead(source, member))
        return cv_zip_source_read(source, member->header_pos, head, size, n, err);
    *n = source->ahead_size < size ? source->ahead_size : size;
    memcpy(head, source->ahead, *n);
    return CV_OK;
}

/* Checks that the member's data, `at` bytes after its header, end before the next member. */
static cv_status check_room(const cv_member *member, uint64_t at, cv_error *err)
{
    uint64_t room = member->end - member->header_pos;
    if (at <= room && member->size <= room - at) return CV_OK;
    return cv_fail(err, CATERVA_ECORRUPT, (int64_t)member->header_pos,
                   "the member at byte %llu of the zip archive reaches into the next one",
                   (unsigned long long)member->header_pos);
}

typedef struct looking {
    cv_zip_source source;
    const cv_member *member;
    uint64_t pos;
    uint8_t *dst;
    size_t size, done;
    bool is_check; /* the header must agree with all fields of the directory */
} looking;

static cv_zip_member record_of(const cv_member *member)
{
    return (cv_zip_member){.name = (const uint8_t *)member->path,
                           .name_size = (uint16_t)strlen(member->path),
                           .needs = member->needs,
                           .flags = member->flags,
                           .method = member->method,
                           .crc = member->crc,
                           .packed_size = member->size,
                           .size = member->full_size};
}

static cv_status locate(void *context, cv_error *err)
{
    looking *l = context;
    const cv_member *member = l->member;
    uint8_t head[HEAD];
    size_t n;
    uint64_t at = 0;
    const cv_zip_member record = record_of(member);
    CV_TRY(read_local(&l->source, member, head, &n, err));
    l->source.ahead = NULL; /* another attempt reads from the store */
    CV_TRY((l->is_check ? cv_zip_local_check : cv_zip_local_parse)(
        head, n, member->header_pos, &record, &at, err));
    CV_TRY(check_room(member, at, err));
    l->pos = member->header_pos + at;
    l->done = 0;
    if (at < n) l->done = n - (size_t)at;
    if (l->done > member->size) l->done = (size_t)member->size;
    if (l->done > l->size) l->done = l->size;
    if (l->done > 0) memcpy(l->dst, head + at, l->done);
    return CV_OK;
}

/* Locates the data. Wrong bytes of a store are read again. */
static cv_status look(looking *l, cv_error *err)
{
    cv_store *store = l->source.is_once ? NULL : l->source.store;
    const cv_doubted twice = {.store = store, .read = locate, .context = l};
    return cv_store_doubting(&twice, err);
}

cv_status cv_zip_directory_check(const cv_zip_source *source, const cv_member *member,
                                 cv_error *err)
{
    looking l = {.source = *source, .member = member, .is_check = true};
    return look(&l, err);
}

cv_status cv_zip_directory_locate(const cv_zip_source *source, const cv_member *member,
                                  uint64_t *pos, uint8_t *dst, size_t size, size_t *done,
                                  cv_error *err)
{
    looking l = {.source = *source, .member = member, .dst = dst, .size = size};
    l.is_check = source->store && !source->is_lenient;
    bool is_near = !source->store || is_ahead(source, member);
    if (is_near && check_stored(member, NULL) != CV_OK) /* the header must agree */
        CV_TRY(cv_zip_directory_check(source, member, err));
    CV_TRY(check_stored(member, err));
    *done = 0;
    *pos = member->data_pos;
    if (member->data_pos > 0) return CV_OK;
    CV_TRY(look(&l, err));
    *pos = l.pos;
    *done = l.done;
    return CV_OK;
}

cv_status cv_zip_directory_head(const cv_zip_source *source, const cv_member *member,
                                uint8_t *dst, size_t size, size_t *done, cv_error *err)
{
    uint64_t pos;
    *done = 0;
    CV_TRY(cv_zip_directory_locate(source, member, &pos, dst, size, done, err));
    size_t wanted = member->size < size ? (size_t)member->size : size, more;
    if (*done == wanted) return CV_OK;
    CV_TRY(cv_zip_source_read(source, pos + *done, dst + *done, wanted - *done, &more, err));
    *done += more;
    return CV_OK;
}

/* ---- Members found without a directory, for repairs ------------------------------------- */

enum {
    HEADER = CV_ZIP_LOCAL_SIZE + 16 * 1024, /* with the longest valid name */
    RESCUE_PIECE = 256 * 1024
};

typedef struct rescue {
    const cv_zip_source *source;
    uint64_t size; /* of the file */
    uint8_t *bytes;
    cv_members *out;
    bool has_gaps; /* bytes that belong to no member */
    bool is_ended; /* the directory was reached */
    bool is_embed; /* the last member is embed.b2e, which writers put last */
} rescue;

static const uint8_t mark[4] = {'P', 'K', 3, 4}, directory_mark[4] = {'P', 'K', 1, 2};

/* Finds the next position, from `pos` on, where a local header may begin, or the file's end. */
static cv_status find_mark(const rescue *r, uint64_t pos, uint64_t *out, cv_error *err)
{
    size_t done = 0;
    *out = r->size;
    for (; pos < r->size; pos += done - sizeof mark + 1) {
        CV_TRY(cv_zip_source_read(r->source, pos, r->bytes, RESCUE_PIECE, &done, err));
        if (done < sizeof mark) return CV_OK;
        for (size_t at = 0; at + sizeof mark <= done; at++) {
            const uint8_t *next = memchr(r->bytes + at, mark[0], done - sizeof mark + 1 - at);
            if (!next) break;
            at = (size_t)(next - r->bytes);
            if (memcmp(next, mark, sizeof mark) != 0) continue;
            *out = pos + at;
            return CV_OK;
        }
    }
    return CV_OK;
}

static cv_status skip(rescue *r, size_t done, uint64_t pos, uint64_t *next, cv_error *err)
{
    r->is_ended = done >= sizeof mark && memcmp(r->bytes, directory_mark, sizeof mark) == 0;
    r->has_gaps = r->has_gaps || !r->is_ended;
    *next = r->size;
    return r->is_ended ? CV_OK : find_mark(r, pos + 1, next, err);
}

/* Adds the member whose header begins at `pos`, if there is one. *next: where to continue. */
static cv_status rescue_member(rescue *r, uint64_t pos, uint64_t *next, cv_error *err)
{
    size_t done;
    cv_zip_member found;
    uint64_t data_at;
    CV_TRY(cv_zip_source_read(r->source, pos, r->bytes, HEADER, &done, err));
    if (!cv_zip_local_read(r->bytes, done, &found, &data_at) ||
        cv_tree_check_path((const char *)found.name, found.name_size, NULL) != CV_OK)
        return skip(r, done, pos, next, err);
    cv_member member = {.header_pos = pos,
                        .size = found.packed_size,
                        .full_size = found.size,
                        .crc = found.crc,
                        .flags = found.flags,
                        .method = found.method};
    char *name = cv_strndup((const char *)found.name, found.name_size);
    if (!name) return cv_fail_memory(err, found.name_size, "a name");
    uint64_t data = pos + data_at, room = r->size - data;
    cv_status status = CV_OK;
    bool is_cut = found.packed_size > room || (found.flags & CV_ZIP_STREAMED);
    member.end = data + found.packed_size;
    if (is_cut) status = find_mark(r, data, &member.end, err);
    if (is_cut) member.size = member.end - data;
    *next = member.end;
    r->has_gaps = r->has_gaps || found.packed_size > room;
    r->is_embed = strcmp(name, CV_TREE_EMBED) == 0;
    if (status == CV_OK) status = cv_members_add(r->out, &member, name, found.name_size, err);
    cv_free(name);
    return status;
}

static cv_status rescue_all(rescue *r, cv_error *err)
{
    uint64_t pos;
    CV_TRY(find_mark(r, 0, &pos, err));
    r->has_gaps = pos > 0;
    while (pos < r->size) CV_TRY(rescue_member(r, pos, &pos, err));
    return CV_OK;
}

cv_status cv_zip_rescue(const cv_zip_source *source, cv_members *out, bool *is_all,
                        cv_error *err)
{
    cv_members members = {0};
    rescue r = {.source = source, .out = &members};
    int error = cv_file_size(source->file, &r.size);
    if (error) return cv_fail_sys(err, error, "cannot look at the zip archive");
    r.bytes = cv_malloc(RESCUE_PIECE);
    if (!r.bytes) return cv_fail_memory(err, RESCUE_PIECE, "a zip archive");
    cv_status status = rescue_all(&r, err);
    cv_free(r.bytes);
    if (status != CV_OK) {
        cv_members_free(&members);
        return status;
    }
    *is_all = !r.has_gaps && (r.is_ended || r.is_embed);
    cv_members_complete(&members);
    *out = members;
    return CV_OK;
}

/* ---- Contradictions ---------------------------------------------------------------------
 *
 * For repairs. If header and directory of a member differ, the one whose checksum matches the bytes
 * counts. Names have no checksum: both are kept for the report. */

enum { SETTLE_HEADER = CV_ZIP_LOCAL_SIZE + 16 * 1024, SETTLE_PIECE = 256 * 1024 };

typedef struct settling {
    const cv_zip_source *source;
    const cv_members *old;
    cv_members made;
    uint8_t *header, *bytes;
} settling;

/* Whether `size` bytes from `pos` on have the checksum. */
static cv_status fits(const settling *s, uint64_t pos, uint64_t size, uint32_t crc, bool *out,
                      cv_error *err)
{
    uint32_t found = 0;
    *out = false;
    while (size > 0) {
        size_t done, wanted = size < SETTLE_PIECE ? (size_t)size : SETTLE_PIECE;
        CV_TRY(cv_zip_source_read(s->source, pos, s->bytes, wanted, &done, err));
        if (done < wanted) return CV_OK;
        found = cv_crc32(found, s->bytes, done);
        pos += done;
        size -= done;
    }
    *out = found == crc;
    return CV_OK;
}

/* Accepts a claim (of header or directory) if the bytes at header_pos + at have its checksum. */
static cv_status try_claim(const settling *s, const cv_member *claim, uint64_t at,
                           cv_member *out, cv_error *err)
{
    bool is_right;
    uint64_t room = claim->end - claim->header_pos;
    bool is_stored = claim->method == CV_ZIP_STORED && !(claim->flags & CV_ZIP_REFUSED);
    if (!is_stored || out->is_settled || at > room || claim->size > room - at) return CV_OK;
    uint64_t pos = claim->header_pos + at;
    CV_TRY(fits(s, pos, claim->size, claim->crc, &is_right, err));
    if (!is_right) return CV_OK;
    *out = *claim;
    out->data_pos = pos;
    out->is_settled = true;
    return CV_OK;
}

static cv_member claim_of(const cv_zip_member *header, const cv_member *record)
{
    cv_member claim = *record;
    claim.size = header->packed_size;
    claim.full_size = header->size;
    claim.crc = header->crc;
    claim.needs = header->needs;
    claim.flags = header->flags;
    claim.method = header->method;
    return claim;
}

/* Tries both claims. If the header's lengths are damaged, the data end at the next member. */
static cv_status try_both(const settling *s, const cv_member *record,
                          const cv_zip_member *header, uint64_t data_at, cv_member *out,
                          cv_error *err)
{
    uint64_t room = record->end - record->header_pos;
    if (header->name) {
        const cv_member claim = claim_of(header, record);
        CV_TRY(try_claim(s, &claim, data_at, out, err));
        CV_TRY(try_claim(s, record, data_at, out, err));
    }
    CV_TRY(try_claim(s, record, CV_ZIP_LOCAL_SIZE + strlen(record->path), out, err));
    return record->size < room ? try_claim(s, record, room - record->size, out, err) : CV_OK;
}

static bool is_anothers(const settling *s, const cv_member *record, const char *path)
{
    for (size_t i = 0; i < s->old->n + s->old->n_replaced; i++)
        if (&s->old->list[i] != record && strcmp(s->old->list[i].path, path) == 0)
            return true;
    return false;
}

/* Whether the group of the path has other members. */
static bool has_group(const settling *s, const cv_member *record, const char *path)
{
    size_t size = cv_tree_parent(path, strlen(path));
    for (size_t i = 0; i < s->old->n + s->old->n_replaced; i++)
        if (&s->old->list[i] != record && strncmp(s->old->list[i].path, path, size) == 0 &&
            (size == 0 || s->old->list[i].path[size] == '/'))
            return true;
    return false;
}

/* Whether the name is reserved, and therefore plausible: a flipped bit hardly produces one. */
static bool is_reserved(const char *path)
{
    const char *slash = strrchr(path, '/');
    return strcmp(path, CV_TREE_EMBED) == 0 ||
           strcmp(slash ? slash + 1 : path, CV_TREE_ATTRIBUTES ".b2f") == 0;
}

/* Returns how plausible a name is; 0: invalid, or the name of another member. */
static int sense_of(const settling *s, const cv_member *record, const char *path)
{
    if (cv_tree_check_path(path, strlen(path), NULL) != CV_OK) return 0;
    if (is_anothers(s, record, path)) return 0;
    if (!cv_tree_is_leaf(path) && !is_reserved(path)) return 1;
    return 2 + has_group(s, record, path) + 2 * is_reserved(path);
}

/* Whether the header has this name. Compares bytes, so a damaged length does not matter. */
static bool has_name(const settling *s, const cv_zip_member *header, uint64_t data_at,
                     const cv_member *member, const char *path)
{
    size_t size = strlen(path);
    uint64_t extra = data_at - CV_ZIP_LOCAL_SIZE - header->name_size;
    uint64_t at = member->data_pos - member->header_pos;
    if (header->name_size != size && at != CV_ZIP_LOCAL_SIZE + size + extra) return false;
    return memcmp(s->header + CV_ZIP_LOCAL_SIZE, path, size) == 0;
}

static cv_status add(settling *s, const cv_member *member, const char *path, cv_error *err)
{
    return cv_members_add(&s->made, member, path, strlen(path), err);
}

/* Adds the member by the more plausible name; if equal, the directory's, as other programs do. */
static cv_status add_named(settling *s, const cv_member *member, const cv_member *record,
                           const char *name, cv_error *err)
{
    bool is_headers = sense_of(s, record, name) > sense_of(s, record, record->path);
    CV_TRY(add(s, member, is_headers ? name : record->path, err));
    return cv_members_add_name(&s->made, is_headers ? record->path : name, err);
}

static cv_status settle(settling *s, const cv_member *record, cv_error *err)
{
    size_t done;
    uint64_t data_at = 0, room = record->end - record->header_pos;
    cv_zip_member header = {.name = NULL};
    cv_member member = *record;
    size_t size = room < SETTLE_HEADER ? (size_t)room : SETTLE_HEADER;
    CV_TRY(cv_zip_source_read(s->source, record->header_pos, s->header, size, &done, err));
    if (!cv_zip_local_read(s->header, done, &header, &data_at)) header.name = NULL;
    CV_TRY(try_both(s, record, &header, data_at, &member, err));
    if (!member.is_settled || !header.name ||
        has_name(s, &header, data_at, &member, record->path))
        return add(s, &member, record->path, err);
    char *name = cv_strndup((const char *)header.name, header.name_size);
    if (!name) return cv_fail_memory(err, header.name_size, "a name");
    cv_status status = add_named(s, &member, record, name, err);
    cv_free(name);
    return status;
}

static cv_status settle_member(settling *s, const cv_member *record, cv_error *err)
{
    cv_error why = {.position = -1};
    cv_status status = cv_zip_directory_check(s->source, record, &why);
    if (status == CV_OK) return add(s, record, record->path, err);
    if (status == CATERVA_ECORRUPT) return settle(s, record, err);
    if (err) *err = why;
    return status;
}

/* Settles all members. Replaced ones come first, because the last member of a name counts. */
static cv_status settle_all(settling *s, cv_error *err)
{
    size_t n = s->old->n, all = n + s->old->n_replaced;
    for (size_t i = n; i < all; i++) CV_TRY(settle_member(s, &s->old->list[i], err));
    for (size_t i = 0; i < n; i++) CV_TRY(settle_member(s, &s->old->list[i], err));
    return CV_OK;
}

cv_status cv_zip_settle(const cv_zip_source *source, cv_members *members, cv_error *err)
{
    settling s = {.source = source, .old = members};
    s.header = cv_malloc(SETTLE_HEADER + SETTLE_PIECE);
    if (!s.header) return cv_fail_memory(err, SETTLE_HEADER + SETTLE_PIECE, "a zip archive");
    s.bytes = s.header + SETTLE_HEADER;
    cv_status status = settle_all(&s, err);
    cv_free(s.header);
    if (status != CV_OK) {
        cv_members_free(&s.made);
        return status;
    }
    cv_members_complete(&s.made);
    cv_members_free(members);
    *members = s.made;
    return CV_OK;
}
