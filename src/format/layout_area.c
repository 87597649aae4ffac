/* Room: format. Layouts in one place, bytes <-> struct. Which chunks have a record, and what
 * is done with it, is not known here. */
#include "format/layout_area.h"

#include "base/arith.h"
#include "base/crc.h"
#include "format/block_table.h"

#include <string.h>

static const uint8_t magic[CV_LAYOUTS_MARK] = "cv-lays\x01";

enum { COUNT_AT = 8, SIZE_AT = 16, NAMES_AT = 20, CHECKSUM_AT = 24 };

void cv_layouts_mark_write(uint8_t out[CV_LAYOUTS_MARK]) { memcpy(out, magic, sizeof magic); }

void cv_layouts_footer_write(const cv_layouts_footer *footer, uint8_t out[CV_LAYOUTS_FOOTER])
{
    memcpy(out, magic, sizeof magic);
    cv_store_le64(out + COUNT_AT, (uint64_t)footer->n);
    cv_store_le32(out + SIZE_AT, footer->record_size);
    cv_store_le32(out + NAMES_AT, footer->names);
    cv_store_le32(out + CHECKSUM_AT, cv_crc32c(0, out, CHECKSUM_AT));
}

bool cv_layouts_footer_read(const uint8_t bytes[CV_LAYOUTS_FOOTER], cv_layouts_footer *out)
{
    if (memcmp(bytes, magic, sizeof magic) != 0 ||
        cv_load_le32(bytes + CHECKSUM_AT) != cv_crc32c(0, bytes, CHECKSUM_AT))
        return false;
    *out = (cv_layouts_footer){.n = (int64_t)cv_load_le64(bytes + COUNT_AT),
                               .record_size = cv_load_le32(bytes + SIZE_AT),
                               .names = cv_load_le32(bytes + NAMES_AT)};
    return out->n > 0 && out->n <= INT32_MAX && out->record_size > 0 &&
           out->record_size <= CV_MOST_RECORD;
}

uint64_t cv_layouts_size(const cv_layouts_footer *footer)
{
    uint64_t records = (uint64_t)footer->n * footer->record_size; /* of 31 and 20 bits */
    return CV_LAYOUTS_MARK + records + CV_LAYOUTS_FOOTER;
}

uint32_t cv_layouts_record_size(int64_t n_blocks)
{
    enum { TWO_SUMS = 8 }; /* of a block: where it starts, and its checksum */
    int64_t fixed = CV_CHUNK_HEADER_SIZE + (int64_t)cv_block_table_size(0);
    if (n_blocks > (CV_MOST_RECORD - fixed) / TWO_SUMS) return 0;
    return (uint32_t)(fixed + TWO_SUMS * n_blocks);
}

uint32_t cv_layouts_names(uint32_t before, uint32_t page_sum)
{
    uint8_t bytes[4];
    cv_store_le32(bytes, page_sum);
    return cv_crc32c(before, bytes, sizeof bytes);
}

bool cv_record_find_parts(const uint8_t *record, size_t size, int64_t n_blocks,
                          cv_record_parts *out)
{
    cv_chunk_expect expect = {.nbytes = -1, .max_cbytes = INT32_MAX};
    cv_chunk_header header;
    if (size < CV_CHUNK_HEADER_SIZE ||
        cv_chunk_header_parse(record, &expect, &header, NULL) != CV_OK)
        return false;
    bool is_special = header.special != CV_SPECIAL_NONE;
    int64_t head = is_special ? header.cbytes
                              : CV_CHUNK_HEADER_SIZE + (int64_t)cv_block_starts_size(&header);
    out->head_size = (size_t)head;
    out->table_size = cv_block_table_size(cv_block_table_blocks(&header, n_blocks));
    return out->head_size <= size && out->table_size <= size - out->head_size;
}
