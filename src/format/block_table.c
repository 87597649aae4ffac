/* Room: format. Checksums of a chunk's blocks, bytes <-> struct. */
#include "format/block_table.h"

#include "base/arith.h"
#include "base/crc.h"

#include <string.h>

static const char MAGIC[4] = {'c', 'v', 'b', 't'};

enum { AT_COUNT = 4, AT_HEAD = 8, AT_BLOCKS = 12 };

int64_t cv_block_table_blocks(const cv_chunk_header *header, int64_t n_blocks)
{
    return header->special == CV_SPECIAL_NONE ? n_blocks : 0;
}

cv_block_range cv_block_table_range(const cv_chunk_header *header,
                                    const cv_block_range *ranges, int64_t i)
{
    if (ranges) return ranges[i];
    int64_t start = CV_CHUNK_HEADER_SIZE + i * header->block_size;
    int64_t end = cv_min_i64(start + header->block_size, header->cbytes);
    return (cv_block_range){(int32_t)start, (int32_t)end};
}

int32_t cv_block_table_head(const cv_chunk_header *header, const cv_block_range *ranges,
                            int64_t n)
{
    int32_t head = header->cbytes;
    for (int64_t i = 0; i < n; i++) {
        int32_t start = cv_block_table_range(header, ranges, i).start;
        if (start < head) head = start;
        if (!ranges) break; /* the first is the lowest */
    }
    return head;
}

void cv_block_table_make(const uint8_t *chunk, const cv_chunk_header *header,
                         const cv_block_range *ranges, cv_block_table *table)
{
    table->head = cv_crc32c(0, chunk, (size_t)cv_block_table_head(header, ranges, table->n));
    for (int64_t i = 0; i < table->n; i++) {
        cv_block_range range = cv_block_table_range(header, ranges, i);
        table->blocks[i] =
            cv_crc32c(0, chunk + range.start, (size_t)(range.end - range.start));
    }
}

uint32_t cv_block_table_write(const cv_block_table *table, uint8_t *out)
{
    memcpy(out, MAGIC, sizeof MAGIC);
    cv_store_le32(out + AT_COUNT, (uint32_t)table->n);
    cv_store_le32(out + AT_HEAD, table->head);
    for (int64_t i = 0; i < table->n; i++)
        cv_store_le32(out + AT_BLOCKS + 4 * i, table->blocks[i]);
    size_t before = AT_BLOCKS + 4 * (size_t)table->n;
    uint32_t name = cv_crc32c(0, out, before);
    cv_store_le32(out + before, name);
    return name;
}

uint32_t cv_block_table_name(const uint8_t *bytes, int64_t n)
{
    return cv_load_le32(bytes + AT_BLOCKS + 4 * n);
}

bool cv_block_table_read(const uint8_t *bytes, cv_block_table *table)
{
    if (memcmp(bytes, MAGIC, sizeof MAGIC) != 0 ||
        cv_load_le32(bytes + AT_COUNT) != (uint32_t)table->n)
        return false;
    size_t before = AT_BLOCKS + 4 * (size_t)table->n;
    if (cv_crc32c(0, bytes, before) != cv_block_table_name(bytes, table->n)) return false;
    table->head = cv_load_le32(bytes + AT_HEAD);
    for (int64_t i = 0; i < table->n; i++)
        table->blocks[i] = cv_load_le32(bytes + AT_BLOCKS + 4 * i);
    return true;
}
