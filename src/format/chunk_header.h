/* The header and block starts of a Blosc2 chunk, checked before libblosc2 reads them. See
 * README_CHUNK_FORMAT.rst of C-Blosc2. */
#ifndef CV_FORMAT_CHUNK_HEADER_H
#define CV_FORMAT_CHUNK_HEADER_H

#include "base/status.h"

enum { CV_CHUNK_HEADER_SIZE = 32 };

typedef enum cv_special {
    CV_SPECIAL_NONE = 0,
    CV_SPECIAL_ZEROS = 1,
    CV_SPECIAL_NAN = 2,
    CV_SPECIAL_VALUE = 3, /* one repeated item, stored behind the header */
    CV_SPECIAL_UNINIT = 4
} cv_special;

typedef struct cv_chunk_header {
    uint8_t version;
    uint8_t codec_version;
    bool memcpyed; /* uncompressed; data at byte 32, no block starts */
    bool split;    /* one stream per byte of an item */
    bool has_dict; /* a dictionary follows the block starts */
    bool big_endian;
    bool lazy;
    bool vl_blocks;
    bool instrumented;
    cv_special special;
    uint8_t codec;    /* as in chunks: blosclz 0, lz4/lz4hc 1, zlib 3, zstd 4, plug-in 6 */
    uint8_t codec_id; /* id of the plug-in if codec is 6 */
    uint8_t codec_meta;
    uint8_t type_size; /* 1 if the item is longer than 255 bytes */
    uint8_t filters[6], filters_meta[6];
    int32_t nbytes, cbytes;
    int32_t block_size; /* the stored size, or without streams the expected size */
} cv_chunk_header;

/* The values that a chunk must match, from the grid and the store. */
typedef struct cv_chunk_expect {
    int64_t chunk;      /* its number, -1 for the index, -2 for an attribute; for messages */
    int64_t pos;        /* frame position, for messages */
    int64_t nbytes;     /* decoded size; -1 accepts any (attributes) */
    int64_t block_size; /* decoded size of a block; 0 accepts any (index, attributes) */
    int64_t item_size;  /* 0 accepts any */
    int64_t max_cbytes; /* bytes available in the store */
} cv_chunk_expect;

/* Parses 32 bytes. Checks sizes, flags, version, codec, filters, special kind and payload against
 * `expect`. On CATERVA_EUNSUPPORTED, the message names the unknown id. */
cv_status cv_chunk_header_parse(const uint8_t *bytes, const cv_chunk_expect *expect,
                                cv_chunk_header *out, cv_error *err);

/* Sets the chunk's size in the bytes of a header. An uncompressed chunk becomes one whose blocks have
 * one stream each, of this codec, without filters. */
void cv_chunk_header_set_size(uint8_t *bytes, int32_t cbytes);
void cv_chunk_header_set_streams(uint8_t *bytes, int codec, int32_t block_size);

/* The compressed bytes of a block in its chunk: [start, end). */
typedef struct cv_block_range {
    int32_t start;
    int32_t end;
} cv_block_range;

/* Returns the bytes of block starts behind the header: 4 per block; 0 if memcpyed or special. */
int32_t cv_block_starts_size(const cv_chunk_header *header);

/* Decodes `n_blocks` starts (cv_block_starts_size bytes) into ranges. A block ends at the next
 * larger start or at the chunk's end. Checks that each block begins behind the starts and behind
 * the size of a dictionary, and at least 4 bytes before the chunk's end. `starts` and `out` must
 * not overlap. */
cv_status cv_block_starts_parse(const cv_chunk_header *header, const uint8_t *starts,
                                int64_t n_blocks, const cv_chunk_expect *expect,
                                cv_block_range *out, cv_error *err);

/* ---- The block table ----
 *
 * Checksums of one stored chunk: one for each block, and one for the bytes before the blocks. The
 * table is right behind the chunk; other readers treat it as dead space. Little-endian:
 *
 *    0       "cvbt"
 *    4  u32  n: number of blocks, 0 for a special chunk
 *    8  u32  if n > 0, CRC32C of the bytes before the first block (header, block
 *            starts, dictionary); if n is 0, CRC32C of the whole chunk
 *   12  u32  CRC32C of each block's bytes, n times, in block order
 *       u32  CRC32C of all of the above: the table's name in the seal's chunk list */

typedef struct cv_block_table {
    uint32_t head;    /* CRC32C of the bytes before the first block */
    int64_t n;        /* number of blocks */
    uint32_t *blocks; /* n entries, allocated by the caller */
} cv_block_table;

/* Returns the bytes of the table of a chunk with `n` blocks. */
static inline size_t cv_block_table_size(int64_t n) { return 16 + 4 * (size_t)n; }

/* Returns the number of blocks in a chunk's table: 0 for a special chunk, else `n_blocks`. */
int64_t cv_block_table_blocks(const cv_chunk_header *header, int64_t n_blocks);

/* Returns ranges[i] or, if `ranges` is NULL, the range of block `i` of an uncompressed chunk. */
cv_block_range cv_block_table_range(const cv_chunk_header *header,
                                    const cv_block_range *ranges, int64_t i);

/* Returns the end of the head, which is the part of the chunk before its first block. */
int32_t cv_block_table_head(const cv_chunk_header *header, const cv_block_range *ranges,
                            int64_t n);

/* Computes the checksums of `chunk`. The caller has set table->n and table->blocks. */
void cv_block_table_make(const uint8_t *chunk, const cv_chunk_header *header,
                         const cv_block_range *ranges, cv_block_table *table);

/* Writes cv_block_table_size bytes and returns the table's name. */
uint32_t cv_block_table_write(const cv_block_table *table, uint8_t *out);

/* Returns the name of a written table of `n` blocks, without checking the table. */
uint32_t cv_block_table_name(const uint8_t *bytes, int64_t n);

/* Reads a table; the caller has set table->n and table->blocks. False unless the table has n blocks
 * and matches its name. */
bool cv_block_table_read(const uint8_t *bytes, cv_block_table *table);

#endif
