/* Room: tree. Members whose header and directory contradict each other, for who repairs an
 * archive. Promises: whoever is believed has the checksum of the bytes that are there. Of two
 * names, which have none, both are kept for who reports it. */
#include "tree/zip_settle.h"

#include "base/crc.h"
#include "base/heap.h"
#include "tree/names.h"

#include <string.h>

enum { HEADER = CV_ZIP_LOCAL_SIZE + 16 * 1024, PIECE = 256 * 1024 };

typedef struct settling {
    const cv_zip_source *source;
    const cv_members *old;
    cv_members made;
    uint8_t *header, *bytes;
} settling;

/* ---- Who is right ----------------------------------------------------------------------- */

/* Whether `size` bytes from `pos` on have the checksum. */
static cv_status fits(const settling *s, uint64_t pos, uint64_t size, uint32_t crc, bool *out,
                      cv_error *err)
{
    uint32_t found = 0;
    *out = false;
    while (size > 0) {
        size_t done, wanted = size < PIECE ? (size_t)size : PIECE;
        CV_TRY(cv_zip_source_read(s->source, pos, s->bytes, wanted, &done, err));
        if (done < wanted) return CV_OK;
        found = cv_crc32(found, s->bytes, done);
        pos += done;
        size -= done;
    }
    *out = found == crc;
    return CV_OK;
}

/* Whether the bytes are there that `claim` says, from `at` behind the member's begin on. */
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

/* Where the header's lengths are damaged, too, its bytes end where the next one begins. */
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

/* ---- Names ------------------------------------------------------------------------------ */

static bool is_anothers(const settling *s, const cv_member *record, const char *path)
{
    for (size_t i = 0; i < s->old->n + s->old->n_replaced; i++)
        if (&s->old->list[i] != record && strcmp(s->old->list[i].path, path) == 0)
            return true;
    return false;
}

/* Whether other members lie where this one would. */
static bool has_group(const settling *s, const cv_member *record, const char *path)
{
    size_t size = cv_tree_parent(path, strlen(path));
    for (size_t i = 0; i < s->old->n + s->old->n_replaced; i++)
        if (&s->old->list[i] != record && strncmp(s->old->list[i].path, path, size) == 0 &&
            (size == 0 || s->old->list[i].path[size] == '/'))
            return true;
    return false;
}

/* Names that no flipped bit makes of others. */
static bool is_reserved(const char *path)
{
    const char *slash = strrchr(path, '/');
    return strcmp(path, CV_TREE_EMBED) == 0 ||
           strcmp(slash ? slash + 1 : path, CV_TREE_ATTRIBUTES ".b2f") == 0;
}

/* How much speaks for a name: none at all for what nobody may be called, or another is. */
static int sense_of(const settling *s, const cv_member *record, const char *path)
{
    if (cv_tree_check_path(path, strlen(path), NULL) != CV_OK) return 0;
    if (is_anothers(s, record, path)) return 0;
    if (!cv_tree_is_leaf(path) && !is_reserved(path)) return 1;
    return 2 + has_group(s, record, path) + 2 * is_reserved(path);
}

/* A length that is damaged does not change the name before the bytes. */
static bool has_name(const settling *s, const cv_zip_member *header, uint64_t data_at,
                     const cv_member *member, const char *path)
{
    size_t size = strlen(path);
    uint64_t extra = data_at - CV_ZIP_LOCAL_SIZE - header->name_size;
    uint64_t at = member->data_pos - member->header_pos;
    if (header->name_size != size && at != CV_ZIP_LOCAL_SIZE + size + extra) return false;
    return memcmp(s->header + CV_ZIP_LOCAL_SIZE, path, size) == 0;
}

/* ---- All members ------------------------------------------------------------------------ */

static cv_status add(settling *s, const cv_member *member, const char *path, cv_error *err)
{
    return cv_members_add(&s->made, member, path, strlen(path), err);
}

/* Under the name that more speaks for; the directory's is what other programs have shown. */
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
    size_t size = room < HEADER ? (size_t)room : HEADER;
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

static cv_status take(settling *s, const cv_member *record, cv_error *err)
{
    cv_error why = {.position = -1};
    cv_status status = cv_zip_directory_check(s->source, record, &why);
    if (status == CV_OK) return add(s, record, record->path, err);
    if (status == CATERVA_ECORRUPT) return settle(s, record, err);
    if (err) *err = why;
    return status;
}

/* Those that another one replaces come first: of one name the last one counts. */
static cv_status run(settling *s, cv_error *err)
{
    size_t n = s->old->n, all = n + s->old->n_replaced;
    for (size_t i = n; i < all; i++) CV_TRY(take(s, &s->old->list[i], err));
    for (size_t i = 0; i < n; i++) CV_TRY(take(s, &s->old->list[i], err));
    return CV_OK;
}

cv_status cv_zip_settle(const cv_zip_source *source, cv_members *members, cv_error *err)
{
    settling s = {.source = source, .old = members};
    s.header = cv_malloc(HEADER + PIECE);
    if (!s.header) return cv_fail_memory(err, HEADER + PIECE, "a zip archive");
    s.bytes = s.header + HEADER;
    cv_status status = run(&s, err);
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
