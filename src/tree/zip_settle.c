/* Room: tree. Members whose header and directory contradict each other, for who repairs an
 * archive. Promises: whoever is believed has the checksum of the bytes that are there. */
#include "tree/zip_settle.h"

#include "base/crc32.h"
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
    bool is_stored = claim->method == CV_ZIP_STORED && !(claim->flags & CV_ZIP_ENCRYPTED);
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

static bool collides(const settling *s, const cv_member *record)
{
    const cv_member *replaced = s->old->list + s->old->n;
    if (record >= replaced) return true;
    for (size_t i = 0; i < s->old->n_replaced; i++)
        if (strcmp(replaced[i].path, record->path) == 0) return true;
    return false;
}

static bool is_known(const char *path)
{
    return cv_tree_is_leaf(path) || strcmp(path, CV_TREE_EMBED) == 0;
}

/* Whether the member is to be called as its header says: `name`. */
static bool takes_name(const settling *s, const cv_member *record, const char *name)
{
    if (cv_tree_check_path(name, strlen(name), NULL) != CV_OK) return false;
    return collides(s, record) || (is_known(name) && !is_known(record->path));
}

/* ---- All members ------------------------------------------------------------------------ */

static cv_status add(settling *s, const cv_member *member, const char *path, cv_error *err)
{
    return cv_members_add(&s->made, member, path, strlen(path), err);
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
    if (!member.is_settled || !header.name) return add(s, &member, record->path, err);
    char *name = cv_strndup((const char *)header.name, header.name_size);
    if (!name) return cv_fail_memory(err, header.name_size, "a name");
    cv_status status =
        add(s, &member, takes_name(s, record, name) ? name : record->path, err);
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
