/* Room: format. The copy of a header, bytes <-> struct, and the search for it.
 * Knows nothing of where a file has room for one. */
#include "format/header_copy.h"

#include "base/arith.h"
#include "base/crc.h"
#include "format/frame_header.h"

#include <string.h>

static const uint8_t magic[8] = "cv-head\x01";

enum {
    COMMIT_AT = sizeof magic,
    SIZE_AT = COMMIT_AT + 8,
    HEADER_AT = SIZE_AT + 4,
    CHECKSUM_SIZE = 4
};

uint64_t cv_header_copy_size(uint32_t header_size)
{
    if (header_size > CV_HEADER_COPY_MAX) return 0;
    return (uint64_t)HEADER_AT + header_size + CHECKSUM_SIZE;
}

void cv_header_copy_write(uint64_t commit, const uint8_t *header, uint32_t header_size,
                          uint8_t *out)
{
    size_t covered = (size_t)HEADER_AT + header_size;
    memcpy(out, magic, sizeof magic);
    cv_store_le64(out + COMMIT_AT, commit);
    cv_store_le32(out + SIZE_AT, header_size);
    memcpy(out + HEADER_AT, header, header_size);
    cv_store_le32(out + covered, cv_crc32c(0, out, covered));
}

static cv_status check_place(const cv_header_copy *copy, cv_error *err)
{
    cv_frame_header header;
    if (cv_frame_header_parse(copy->header, copy->header_size, &header, NULL) != CV_OK)
        return cv_fail(err, CATERVA_ECORRUPT, (int64_t)copy->pos,
                       "header copy: what it holds is no frame header");
    uint64_t place = header.frame_size; /* of a directory's: right behind it */
    if (!header.sparse) place = (uint64_t)header.cbytes + header.header_size - copy->size;
    if (header.header_size == copy->header_size && place == copy->pos) return CV_OK;
    return cv_fail(err, CATERVA_ECORRUPT, (int64_t)copy->pos,
                   "header copy: it is of a frame that has it at byte %lld",
                   (long long)place);
}

cv_status cv_header_copy_parse(const uint8_t *bytes, size_t size, uint64_t pos,
                               cv_header_copy *out, cv_error *err)
{
    if (size < HEADER_AT || memcmp(bytes, magic, sizeof magic) != 0)
        return cv_fail(err, CATERVA_ECORRUPT, (int64_t)pos, "no header copy");
    cv_header_copy copy = {
        .commit = cv_load_le64(bytes + COMMIT_AT),
        .header = bytes + HEADER_AT,
        .header_size = cv_load_le32(bytes + SIZE_AT),
        .pos = pos,
    };
    copy.size = cv_header_copy_size(copy.header_size);
    if (copy.size == 0 || copy.size > size)
        return cv_fail(err, CATERVA_ECORRUPT, (int64_t)pos,
                       "header copy: claims a header of %u bytes, %zu are left",
                       copy.header_size, size - HEADER_AT);
    CV_TRY(check_place(&copy, err));
    size_t covered = (size_t)HEADER_AT + copy.header_size;
    if (cv_load_le32(bytes + covered) != cv_crc32c(0, bytes, covered))
        return cv_fail(err, CATERVA_ECORRUPT, (int64_t)pos,
                       "header copy: its checksum does not fit");
    *out = copy;
    return CV_OK;
}

bool cv_header_copy_before(const uint8_t *bytes, size_t size, uint64_t pos, size_t *at,
                           cv_header_copy *out)
{
    while (*at > 0) {
        --*at;
        if (bytes[*at] == magic[0] &&
            cv_header_copy_parse(bytes + *at, size - *at, pos + *at, out, NULL) == CV_OK)
            return true;
    }
    return false;
}
