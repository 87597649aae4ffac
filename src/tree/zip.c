/* Room: tree. Records of zip archives. Never reads outside the given bytes, and rejects numbers
 * that do not fit the file. Independent of the contents of members and of the rules for names. */
#include "tree/zip.h"

#include "base/arith.h"

#include <string.h>

/* All numbers of all records; each record uses some of them. */
typedef struct numbers {
    uint64_t signature, made_by, needs, flags, method, time, date, crc;
    uint64_t packed_size, size, name_size, extra_size, comment_size, disk, inner, outer;
    uint64_t header_pos, rest_size, disk_n, n, directory_size, directory_pos, end_pos, disks;
} numbers;

typedef struct field {
    uint8_t width;
    uint8_t at; /* index of the field in `numbers` */
} field;

#define F(width, name)                                                                       \
    {                                                                                        \
        width, (uint8_t)(offsetof(numbers, name) / sizeof(uint64_t))                         \
    }

static const field local_fields[] = {F(4, signature), F(2, needs),       F(2, flags),
                                     F(2, method),    F(2, time),        F(2, date),
                                     F(4, crc),       F(4, packed_size), F(4, size),
                                     F(2, name_size), F(2, extra_size)};

static const field record_fields[] = {
    F(4, signature), F(2, made_by),    F(2, needs),        F(2, flags),       F(2, method),
    F(2, time),      F(2, date),       F(4, crc),          F(4, packed_size), F(4, size),
    F(2, name_size), F(2, extra_size), F(2, comment_size), F(2, disk),        F(2, inner),
    F(4, outer),     F(4, header_pos)};

static const field end_fields[] = {
    F(4, signature), F(2, disk),           F(2, disks),         F(2, disk_n),
    F(2, n),         F(4, directory_size), F(4, directory_pos), F(2, comment_size)};

static const field end64_fields[] = {
    F(4, signature),      F(8, rest_size),    F(2, made_by), F(2, needs),
    F(4, disk),           F(4, disks),        F(8, disk_n),  F(8, n),
    F(8, directory_size), F(8, directory_pos)};

static const field locator_fields[] = {F(4, signature), F(4, disk), F(8, end_pos),
                                       F(4, disks)};

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))
#define READ(table, bytes, out) read_fields(table, COUNT(table), bytes, out)
#define WRITE(table, values, out, err) write_fields(table, COUNT(table), values, out, err)

enum {
    LOCAL = 0x04034b50,
    RECORD = 0x02014b50,
    END = 0x06054b50,
    END64 = 0x06064b50,
    LOCATOR = 0x07064b50
};
enum { LOCATOR_SIZE = 20, END64_SIZE = 56, END64_REST = END64_SIZE - 12 };
enum { PLAIN_VERSION = 20, ZIP64_VERSION = 45, UNIX = 3 << 8, FIRST_DAY = 0x21 };
static const uint64_t regular_file = (uint64_t)0100644 << 16;
static const uint64_t wide16 = UINT16_MAX, wide32 = UINT32_MAX;

static void read_fields(const field *fields, size_t n, const uint8_t *bytes, numbers *out)
{
    uint64_t *values = &out->signature;
    for (size_t i = 0; i < n; i++) {
        uint64_t value = 0;
        for (int k = fields[i].width - 1; k >= 0; k--) value = value << 8 | bytes[k];
        values[fields[i].at] = value;
        bytes += fields[i].width;
    }
}

static cv_status write_fields(const field *fields, size_t n, const numbers *in,
                              cv_buffer *out, cv_error *err)
{
    const uint64_t *values = &in->signature;
    for (size_t i = 0; i < n; i++) {
        uint8_t bytes[8];
        cv_store_le64(bytes, values[fields[i].at]);
        CV_TRY(cv_buffer_append(out, bytes, fields[i].width, err));
    }
    return CV_OK;
}

static cv_status torn(cv_error *err, uint64_t pos, const char *what)
{
    return cv_fail(err, CATERVA_ECORRUPT, (int64_t)pos, "the zip archive %s", what);
}

/* Finds the last position where an end, with its comment, fits into the bytes. */
static const uint8_t *find_end(const uint8_t *tail, size_t size, numbers *out)
{
    static const uint8_t mark[4] = {'P', 'K', 5, 6};
    if (size < CV_ZIP_END_SIZE) return NULL;
    for (size_t at = size - CV_ZIP_END_SIZE + 1; at-- > 0;) {
        if (memcmp(tail + at, mark, sizeof mark) != 0) continue;
        READ(end_fields, tail + at, out);
        if (out->comment_size <= size - at - CV_ZIP_END_SIZE) return tail + at;
    }
    return NULL;
}

/* Reads the zip64 end, which lies right before its locator, if there is one. */
static cv_status read_end64(const uint8_t *tail, const uint8_t **end, uint64_t tail_pos,
                            numbers *out, cv_error *err)
{
    numbers locator, wide;
    size_t at = (size_t)(*end - tail);
    if (at < LOCATOR_SIZE) return CV_OK;
    READ(locator_fields, *end - LOCATOR_SIZE, &locator);
    if (locator.signature != LOCATOR) return CV_OK;
    if (at < LOCATOR_SIZE + END64_SIZE)
        return torn(err, tail_pos,
                    "has no room for the zip64 end that its locator announces");
    READ(end64_fields, *end - LOCATOR_SIZE - END64_SIZE, &wide);
    if (wide.signature != END64)
        return torn(err, tail_pos + at, "announces a zip64 end, but has none");
    bool is_last = locator.disks <= 1 || locator.disks == wide.disk + 1;
    if (locator.disk > wide.disk || !is_last)
        return cv_fail(
            err, CATERVA_ECORRUPT, (int64_t)(tail_pos + at),
            "the zip archive's end is damaged: one record calls this part %llu of %llu, "
            "another calls it part %llu; repair finds the members without these records",
            (unsigned long long)locator.disk + 1, (unsigned long long)locator.disks,
            (unsigned long long)wide.disk + 1);
    *end -= LOCATOR_SIZE + END64_SIZE;
    *out = wide;
    return CV_OK;
}

/* Checks the numbers of parts. If the directory begins in the last part, that part has all records;
 * else fewer. Other combinations are damage. */
static cv_status check_parts(const numbers *end, uint64_t end_pos, cv_error *err)
{
    bool begins_here = end->disk == end->disks, has_all = end->disk_n == end->n;
    if (end->disk == 0 && begins_here && has_all) return CV_OK;
    bool agrees = begins_here ? has_all : end->disks < end->disk && end->disk_n < end->n;
    if (agrees)
        return cv_fail(err, CATERVA_EUNSUPPORTED, (int64_t)end_pos,
                       "the zip archive is part %llu of several",
                       (unsigned long long)end->disk + 1);
    return cv_fail(
        err, CATERVA_ECORRUPT, (int64_t)end_pos,
        "the zip archive's end is damaged: according to it, this is part %llu, the directory "
        "begins in part %llu, and this part has %llu of %llu members; repair finds the "
        "members without the end",
        (unsigned long long)end->disk + 1, (unsigned long long)end->disks + 1,
        (unsigned long long)end->disk_n, (unsigned long long)end->n);
}

static cv_status check_end(const numbers *end, uint64_t end_pos, cv_zip_end *out,
                           cv_error *err)
{
    uint64_t sum;
    *out = (cv_zip_end){.n_members = end->n, .directory_size = end->directory_size};
    if (end->directory_size <= end_pos) out->directory_pos = end_pos - end->directory_size;
    CV_TRY(check_parts(end, end_pos, err));
    if (!cv_add_u64(end->directory_pos, end->directory_size, &sum) || sum > end_pos)
        return cv_fail(
            err, CATERVA_ECORRUPT, (int64_t)end_pos,
            "the zip archive's directory of %llu bytes at %llu does not fit before "
            "its end at byte %llu",
            (unsigned long long)end->directory_size, (unsigned long long)end->directory_pos,
            (unsigned long long)end_pos);
    if (end->n > end->directory_size / CV_ZIP_RECORD_SIZE)
        return cv_fail(
            err, CATERVA_ECORRUPT, (int64_t)end_pos,
            "the zip archive claims %llu members, but its directory of %llu bytes has "
            "room for %llu",
            (unsigned long long)end->n, (unsigned long long)end->directory_size,
            (unsigned long long)(end->directory_size / CV_ZIP_RECORD_SIZE));
    out->shift = end_pos - sum;
    return CV_OK;
}

cv_status cv_zip_end_parse(const uint8_t *tail, size_t size, uint64_t file_size,
                           cv_zip_end *out, cv_error *err)
{
    numbers n;
    uint64_t tail_pos = file_size - size;
    const uint8_t *end = find_end(tail, size, &n);
    if (!end) return torn(err, file_size, "has no end: it was cut, or is not a zip archive");
    CV_TRY(read_end64(tail, &end, tail_pos, &n, err));
    return check_end(&n, tail_pos + (uint64_t)(end - tail), out, err);
}

cv_status cv_zip_record_peek(const uint8_t *bytes, uint64_t pos, size_t *size, cv_error *err)
{
    numbers n;
    READ(record_fields, bytes, &n);
    if (n.signature != RECORD)
        return cv_fail(err, CATERVA_ECORRUPT, (int64_t)pos,
                       "the zip archive's directory has no record at byte %llu",
                       (unsigned long long)pos);
    *size = CV_ZIP_RECORD_SIZE + (size_t)(n.name_size + n.extra_size + n.comment_size);
    return CV_OK;
}

/* Reads a number that did not fit its field from the next 8 bytes of the zip64 field. */
static bool widen(uint64_t *value, const uint8_t **bytes, size_t *left)
{
    if (*value != wide32) return true;
    if (*left < 8) return false;
    *value = cv_load_le64(*bytes);
    *bytes += 8;
    *left -= 8;
    return true;
}

static bool widen_all(const uint8_t *extra, size_t size, numbers *n)
{
    while (size >= 4) {
        size_t id = extra[0] | (size_t)extra[1] << 8,
               length = extra[2] | (size_t)extra[3] << 8;
        const uint8_t *value = extra + 4;
        size -= 4;
        if (length > size) break;
        size_t left = length;
        if (id == 1)
            return widen(&n->size, &value, &left) && widen(&n->packed_size, &value, &left) &&
                   widen(&n->header_pos, &value, &left);
        extra = value + length;
        size -= length;
    }
    return n->size != wide32 && n->packed_size != wide32 && n->header_pos != wide32;
}

cv_status cv_zip_record_parse(const uint8_t *bytes, size_t size, uint64_t pos,
                              cv_zip_member *out, cv_error *err)
{
    numbers n;
    size_t whole;
    CV_TRY(cv_zip_record_peek(bytes, pos, &whole, err));
    if (whole > size)
        return cv_fail(err, CATERVA_ECORRUPT, (int64_t)pos,
                       "the record at byte %llu is longer than the zip archive's directory",
                       (unsigned long long)pos);
    READ(record_fields, bytes, &n);
    const uint8_t *name = bytes + CV_ZIP_RECORD_SIZE;
    if (!widen_all(name + n.name_size, (size_t)n.extra_size, &n))
        return cv_fail(err, CATERVA_ECORRUPT, (int64_t)pos,
                       "the record at byte %llu lacks the zip64 sizes that it announces",
                       (unsigned long long)pos);
    *out = (cv_zip_member){.name = name,
                           .name_size = (uint16_t)n.name_size,
                           .needs = (uint16_t)n.needs,
                           .flags = (uint16_t)n.flags,
                           .method = (uint16_t)n.method,
                           .crc = (uint32_t)n.crc,
                           .packed_size = n.packed_size,
                           .size = n.size,
                           .header_pos = n.header_pos};
    return CV_OK;
}

/* Reads the header of `member` and checks its name and method against the directory. */
static cv_status read_local(const uint8_t *bytes, size_t size, uint64_t pos,
                            const cv_zip_member *member, numbers *out, cv_error *err)
{
    size_t name_size = member->name_size;
    *out = (numbers){0};
    if (size >= CV_ZIP_LOCAL_SIZE) READ(local_fields, bytes, out);
    if (out->signature != LOCAL || out->name_size != name_size ||
        size < CV_ZIP_LOCAL_SIZE + name_size ||
        memcmp(bytes + CV_ZIP_LOCAL_SIZE, member->name, name_size) != 0)
        return cv_fail(
            err, CATERVA_ECORRUPT, (int64_t)pos,
            "no member begins at byte %llu of the zip archive, where its directory "
            "has one",
            (unsigned long long)pos);
    if (out->method == member->method && !((out->flags ^ member->flags) & CV_ZIP_ENCRYPTED))
        return CV_OK;
    return cv_fail(err, CATERVA_ECORRUPT, (int64_t)pos,
                   "the member at byte %llu is not stored as the zip archive's directory "
                   "states",
                   (unsigned long long)pos);
}

cv_status cv_zip_local_parse(const uint8_t *bytes, size_t size, uint64_t pos,
                             const cv_zip_member *member, uint64_t *data_at, cv_error *err)
{
    numbers n;
    CV_TRY(read_local(bytes, size, pos, member, &n, err));
    *data_at = CV_ZIP_LOCAL_SIZE + (size_t)(n.name_size + n.extra_size);
    return CV_OK;
}

/* Whether the header or its extra fields state the sizes. `bytes` may end inside these fields. */
static bool says_sizes(const uint8_t *bytes, size_t size, numbers *n)
{
    size_t begin = CV_ZIP_LOCAL_SIZE + (size_t)n->name_size, left = size - begin;
    size_t extra = n->extra_size < left ? (size_t)n->extra_size : left;
    if (!widen_all(bytes + begin, extra, n)) return false;
    return !(n->flags & CV_ZIP_STREAMED) || n->size > 0 || n->packed_size > 0;
}

/* Checks the flags. Versions may differ in archives of other programs. A flag determines the
 * encoding of the name, so header and directory must agree on it. */
static cv_status check_flags(const numbers *n, uint64_t pos, const cv_zip_member *member,
                             cv_error *err)
{
    enum { NEWEST = 63 };
    bool is_known = n->needs <= NEWEST && member->needs <= NEWEST;
    bool is_same = is_known || n->needs == member->needs;
    if (is_same && !((n->flags ^ member->flags) & (CV_ZIP_REFUSED | CV_ZIP_UTF8)))
        return CV_OK;
    return cv_fail(
        err, CATERVA_ECORRUPT, (int64_t)pos,
        "the member at byte %llu needs version %llu and has the flags %04x by its header, "
        "but %u and %04x by the zip archive's directory",
        (unsigned long long)pos, (unsigned long long)n->needs, (unsigned)n->flags,
        (unsigned)member->needs, (unsigned)member->flags);
}

cv_status cv_zip_local_check(const uint8_t *bytes, size_t size, uint64_t pos,
                             const cv_zip_member *member, uint64_t *data_at, cv_error *err)
{
    numbers n;
    CV_TRY(read_local(bytes, size, pos, member, &n, err));
    CV_TRY(check_flags(&n, pos, member, err));
    *data_at = CV_ZIP_LOCAL_SIZE + n.name_size + n.extra_size;
    bool is_silent = !says_sizes(bytes, size, &n) && (n.flags & CV_ZIP_STREAMED);
    bool is_same = n.packed_size == member->packed_size && n.size == member->size &&
                   n.crc == member->crc;
    if (is_silent || is_same) return CV_OK;
    return cv_fail(err, CATERVA_ECORRUPT, (int64_t)pos,
                   "the member at byte %llu has %llu bytes and the checksum %08x by its "
                   "header, but %llu and %08x by the zip archive's directory",
                   (unsigned long long)pos, (unsigned long long)n.packed_size,
                   (unsigned)n.crc, (unsigned long long)member->packed_size,
                   (unsigned)member->crc);
}

bool cv_zip_local_read(const uint8_t *bytes, size_t size, cv_zip_member *out,
                       uint64_t *data_at)
{
    numbers n = {0};
    if (size < CV_ZIP_LOCAL_SIZE) return false;
    READ(local_fields, bytes, &n);
    const uint8_t *name = bytes + CV_ZIP_LOCAL_SIZE;
    if (n.signature != LOCAL || n.name_size + n.extra_size > size - CV_ZIP_LOCAL_SIZE)
        return false;
    if (!widen_all(name + n.name_size, (size_t)n.extra_size, &n)) return false;
    out->name = name;
    out->name_size = (uint16_t)n.name_size;
    out->needs = (uint16_t)n.needs;
    out->flags = (uint16_t)n.flags;
    out->method = (uint16_t)n.method;
    out->crc = (uint32_t)n.crc;
    out->packed_size = n.packed_size;
    out->size = n.size;
    *data_at = CV_ZIP_LOCAL_SIZE + n.name_size + n.extra_size;
    return true;
}

/* ---- Writing ---------------------------------------------------------------- */

/* Moves a number that is too large for its field to the zip64 field. */
static cv_status narrow(uint64_t *value, cv_buffer *extra, cv_error *err)
{
    uint8_t bytes[8];
    if (*value < wide32) return CV_OK;
    cv_store_le64(bytes, *value);
    *value = wide32;
    return cv_buffer_append(extra, bytes, sizeof bytes, err);
}

static numbers numbers_of(const cv_zip_member *m)
{
    return (numbers){.needs = PLAIN_VERSION,
                     .made_by = UNIX | PLAIN_VERSION,
                     .flags = m->flags,
                     .method = m->method,
                     .date = FIRST_DAY,
                     .crc = m->crc,
                     .packed_size = m->packed_size,
                     .size = m->size,
                     .name_size = m->name_size};
}

/* Fills the head that is reserved for the extra field; removes the head if the field is empty. */
static void finish_extra(numbers *n, cv_buffer *wide)
{
    uint8_t head[4] = {1, 0, (uint8_t)(wide->size - 4), 0};
    if (wide->size == sizeof head) {
        wide->size = 0;
        return;
    }
    memcpy(wide->data, head, sizeof head);
    n->extra_size = wide->size;
    n->needs = ZIP64_VERSION;
    n->made_by = UNIX | ZIP64_VERSION;
}

/* Makes the zip64 field of a local header, which has both sizes or neither. */
static cv_status local_extra(numbers *n, cv_buffer *wide, cv_error *err)
{
    CV_TRY(cv_buffer_resize(wide, 4, err));
    if (n->size >= wide32 || n->packed_size >= wide32) {
        uint8_t bytes[16];
        cv_store_le64(bytes, n->size);
        cv_store_le64(bytes + 8, n->packed_size);
        n->size = n->packed_size = wide32;
        CV_TRY(cv_buffer_append(wide, bytes, sizeof bytes, err));
    }
    finish_extra(n, wide);
    return CV_OK;
}

static cv_status record_extra(numbers *n, cv_buffer *wide, cv_error *err)
{
    CV_TRY(cv_buffer_resize(wide, 4, err));
    CV_TRY(narrow(&n->size, wide, err));
    CV_TRY(narrow(&n->packed_size, wide, err));
    CV_TRY(narrow(&n->header_pos, wide, err));
    finish_extra(n, wide);
    return CV_OK;
}

cv_status cv_zip_local_write(const cv_zip_member *m, cv_buffer *out, cv_error *err)
{
    numbers n = numbers_of(m);
    cv_buffer wide = {0};
    n.signature = LOCAL;
    cv_status status = local_extra(&n, &wide, err);
    if (status == CV_OK) status = WRITE(local_fields, &n, out, err);
    if (status == CV_OK) status = cv_buffer_append(out, m->name, m->name_size, err);
    if (status == CV_OK) status = cv_buffer_append(out, wide.data, wide.size, err);
    cv_buffer_free(&wide);
    return status;
}

cv_status cv_zip_record_write(const cv_zip_member *m, cv_buffer *out, cv_error *err)
{
    numbers n = numbers_of(m);
    cv_buffer wide = {0};
    n.signature = RECORD;
    n.outer = regular_file;
    n.header_pos = m->header_pos;
    cv_status status = record_extra(&n, &wide, err);
    if (status == CV_OK) status = WRITE(record_fields, &n, out, err);
    if (status == CV_OK) status = cv_buffer_append(out, m->name, m->name_size, err);
    if (status == CV_OK) status = cv_buffer_append(out, wide.data, wide.size, err);
    cv_buffer_free(&wide);
    return status;
}

static uint64_t at_most(uint64_t value, uint64_t most) { return value < most ? value : most; }

cv_status cv_zip_end_write(const cv_zip_end *e, cv_buffer *out, cv_error *err)
{
    numbers n = {.n = e->n_members,
                 .disk_n = e->n_members,
                 .directory_size = e->directory_size,
                 .directory_pos = e->directory_pos,
                 .needs = ZIP64_VERSION,
                 .made_by = UNIX | ZIP64_VERSION,
                 .rest_size = END64_REST,
                 .end_pos = e->directory_pos + e->directory_size,
                 .disks = 0};
    if (n.n >= wide16 || n.directory_size >= wide32 || n.directory_pos >= wide32) {
        n.signature = END64;
        CV_TRY(WRITE(end64_fields, &n, out, err));
        n.signature = LOCATOR;
        n.disks = 1;
        CV_TRY(WRITE(locator_fields, &n, out, err));
        n.disks = 0;
    }
    n.signature = END;
    n.n = n.disk_n = at_most(n.n, wide16);
    n.directory_size = at_most(n.directory_size, wide32);
    n.directory_pos = at_most(n.directory_pos, wide32);
    return WRITE(end_fields, &n, out, err);
}
