/* The block table: checksums of one stored chunk, so that reading a block
 * checks the block and not the chunk. It stands right behind its chunk, where
 * other readers see dead space. Little-endian, like the chunk:
 *
 *     0  "cvbt"
 *     4  u32      n: blocks with bytes of their own, 0 for a repeated item
 *     8  u32      CRC32C of what stands before the first block: header, block
 *                 starts, dictionary; of the whole chunk when n is 0
 *    12  u32 x n  CRC32C of each block's bytes, in block order
 *  12+4n u32      CRC32C of the table up to here: the table's name, which the
 *                 seal's chunk list keeps
 */
#ifndef CV_FORMAT_BLOCK_TABLE_H
#define CV_FORMAT_BLOCK_TABLE_H

#include "format/chunk_header.h"

typedef struct cv_block_table {
    uint32_t head;    /* CRC32C of the bytes before the first block */
    int64_t n;        /* blocks */
    uint32_t *blocks; /* n entries; the caller's memory */
} cv_block_table;

/* Bytes of the table of a chunk with `n` blocks. */
static inline size_t cv_block_table_size(int64_t n) { return 16 + 4 * (size_t)n; }

/* How many blocks the table of such a chunk lists, when its grid has
 * `n_blocks`: none where the chunk is one repeated item. */
int64_t cv_block_table_blocks(const cv_chunk_header *header, int64_t n_blocks);

/* Where block `i` of the chunk stands: as `ranges` says, or plainly behind the
 * header where the chunk is stored without compression (ranges NULL). */
cv_block_range cv_block_table_range(const cv_chunk_header *header,
                                    const cv_block_range *ranges, int64_t i);

/* Where the head ends: the first byte of any block, or the chunk's end. */
int32_t cv_block_table_head(const cv_chunk_header *header, const cv_block_range *ranges,
                            int64_t n);

/* Checksums `chunk` (header->cbytes bytes) whole. table->n and table->blocks
 * are given. */
void cv_block_table_make(const uint8_t *chunk, const cv_chunk_header *header,
                         const cv_block_range *ranges, cv_block_table *table);

/* Writes cv_block_table_size bytes and returns the table's name. */
uint32_t cv_block_table_write(const cv_block_table *table, uint8_t *out);

/* The name of a written table of `n` blocks, without looking at the rest. */
uint32_t cv_block_table_name(const uint8_t *bytes, int64_t n);

/* Reads it back; table->n and table->blocks are given. False unless the bytes
 * are a table of n blocks that agrees with its own name. */
bool cv_block_table_read(const uint8_t *bytes, cv_block_table *table);

#endif
