/* Room: tree. An archive read from its begin, for who repairs it. Promises: members lie apart
 * from each other and inside the file, under names that lead nowhere else. What they hold is
 * as good as it is: checksums are for others to compare. */
#include "tree/zip_rescue.h"

#include "base/heap.h"
#include "tree/names.h"

#include <string.h>

enum {
    HEADER = CV_ZIP_LOCAL_SIZE + 16 * 1024, /* of a member with the longest good name */
    PIECE = 256 * 1024
};

typedef struct rescue {
    const cv_zip_source *source;
    uint64_t size; /* of the file */
    uint8_t *bytes;
    cv_members *out;
    bool has_gaps; /* bytes that no member holds */
    bool is_ended; /* where the directory begins */
    bool is_embed; /* the last member is embed.b2e, which comes last */
} rescue;

static const uint8_t mark[4] = {'P', 'K', 3, 4}, directory_mark[4] = {'P', 'K', 1, 2};

/* Where a local header may begin, from `pos` on; the file's end when nowhere. */
static cv_status find_mark(const rescue *r, uint64_t pos, uint64_t *out, cv_error *err)
{
    size_t done = 0;
    *out = r->size;
    for (; pos < r->size; pos += done - sizeof mark + 1) {
        CV_TRY(cv_zip_source_read(r->source, pos, r->bytes, PIECE, &done, err));
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

static bool is_good(const cv_zip_member *m)
{
    return cv_tree_check_path((const char *)m->name, m->name_size, NULL) == CV_OK;
}

static cv_status skip(rescue *r, size_t done, uint64_t pos, uint64_t *next, cv_error *err)
{
    r->is_ended = done >= sizeof mark && memcmp(r->bytes, directory_mark, sizeof mark) == 0;
    r->has_gaps = r->has_gaps || !r->is_ended;
    *next = r->size;
    return r->is_ended ? CV_OK : find_mark(r, pos + 1, next, err);
}

/* The member whose header begins at `pos`, if one does; *next is where to look on. */
static cv_status take(rescue *r, uint64_t pos, uint64_t *next, cv_error *err)
{
    size_t done;
    cv_zip_member found;
    uint64_t data_at;
    CV_TRY(cv_zip_source_read(r->source, pos, r->bytes, HEADER, &done, err));
    if (!cv_zip_local_read(r->bytes, done, &found, &data_at) || !is_good(&found))
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

static cv_status run(rescue *r, cv_error *err)
{
    uint64_t pos;
    CV_TRY(find_mark(r, 0, &pos, err));
    r->has_gaps = pos > 0;
    while (pos < r->size) CV_TRY(take(r, pos, &pos, err));
    return CV_OK;
}

cv_status cv_zip_rescue(const cv_zip_source *source, cv_members *out, bool *is_all,
                        cv_error *err)
{
    cv_members members = {0};
    rescue r = {.source = source, .out = &members};
    int error = cv_file_size(source->file, &r.size);
    if (error) return cv_fail_sys(err, error, "cannot look at the zip archive");
    r.bytes = cv_malloc(PIECE);
    if (!r.bytes) return cv_fail_memory(err, PIECE, "a zip archive");
    cv_status status = run(&r, err);
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
