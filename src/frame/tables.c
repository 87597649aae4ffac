/* Room: frame. Block tables of chunks that are at hand whole. A name of 0 means
 * that no table is known, so a table whose checksum is 0 is not used: its chunk
 * stays unverified, one in 2^32. */
#include "frame/tables.h"

#include "base/heap.h"

cv_status cv_table_append(const cv_block_table *table, cv_buffer *out, uint32_t *name,
                          cv_error *err)
{
    size_t before = out->size;
    CV_TRY(cv_buffer_resize(out, before + cv_block_table_size(table->n), err));
    *name = cv_block_table_write(table, out->data + before);
    return CV_OK;
}

/* Memory for what a table of `n` blocks is made from. */
typedef struct parts {
    cv_block_range *ranges;
    uint32_t *sums;
} parts;

static cv_status new_parts(int64_t n, parts *out, cv_error *err)
{
    size_t size = (size_t)n * (sizeof(cv_block_range) + sizeof(uint32_t)) + 1;
    out->ranges = cv_malloc(size);
    out->sums = (uint32_t *)(out->ranges + n);
    return out->ranges ? CV_OK : cv_fail_memory(err, size, "a block table");
}

static cv_status make(const cv_chunk_header *header, const cv_chunk_expect *expect,
                      const uint8_t *chunk, cv_block_table *table, cv_block_range *ranges,
                      cv_error *err)
{
    bool listed = cv_block_starts_size(header) > 0;
    if (listed)
        CV_TRY(cv_block_starts_parse(header, chunk + CV_CHUNK_HEADER_SIZE, table->n, expect,
                                     ranges, err));
    cv_block_table_make(chunk, header, listed ? ranges : NULL, table);
    return CV_OK;
}

cv_status cv_table_make(const cv_grid *grid, const uint8_t *chunk, size_t size,
                        cv_buffer *out, uint32_t *name, cv_error *err)
{
    cv_chunk_expect expect = {
        .nbytes = grid->chunk_bytes,
        .block_size = grid->block_bytes,
        .item_size = grid->item_size,
        .max_cbytes = (int64_t)size,
    };
    cv_chunk_header header;
    CV_TRY(cv_chunk_header_parse(chunk, &expect, &header, err));
    cv_block_table table = {.n = cv_block_table_blocks(&header, grid->n_blocks)};
    parts memory;
    CV_TRY(new_parts(table.n, &memory, err));
    table.blocks = memory.sums;
    cv_status status = make(&header, &expect, chunk, &table, memory.ranges, err);
    if (status == CV_OK) status = cv_table_append(&table, out, name, err);
    cv_free(memory.ranges);
    return status;
}
