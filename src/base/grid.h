/* The grid: how an n-dimensional shape is divided into chunks and blocks. A pure value, computed
 * and checked for overflow once; all later code relies on it.
 *
 *      shape 5 x 5, chunks 4 x 3, blocks 3 x 2
 *
 *        chunk 0   | chunk 1          a chunk is stored as whole blocks:
 *        . . : . - | . . : - -        blocks in C order over block_counts,
 *        . . : . - | . . : - -        items in C order inside each block.
 *        . . : . - | . . : - -        "-" pads the chunk to ext_chunk_shape
 *        ----+-----|-----+----        (a multiple of block_shape), and the
 *        . . : . - | . . : - -        last chunk of an axis may also extend
 *        - - : - - | - - : - -        beyond the array's shape.
 *
 * Item i of axis d is in chunk i / c, there in block (i % c) / b, at (i % c) % b in the block.
 * Sizes are in items unless the name says bytes. */
#ifndef CV_BASE_GRID_H
#define CV_BASE_GRID_H

#include "base/status.h"

#define CV_MAX_DIMS CATERVA_MAX_DIMS

/* C-Blosc2's limits. Sizes of chunks and blocks are int32. The number of chunks is limited because
 * the index, an int64 for each chunk, is itself a chunk. */
#define CV_MAX_CHUNK_BYTES ((int64_t)INT32_MAX - 32)
#define CV_MAX_BLOCK_BYTES ((int64_t)536866816)
#define CV_MAX_CHUNKS (CV_MAX_CHUNK_BYTES / (int64_t)sizeof(int64_t))

typedef struct cv_grid {
    int ndim;                             /* 0..16; with 0 there is one chunk of one item */
    int32_t item_size;                    /* bytes, >= 1 */
    int64_t shape[CV_MAX_DIMS];           /* >= 0 */
    int64_t chunk_shape[CV_MAX_DIMS];     /* >= 1 (a stored 0 is read as 1) */
    int64_t block_shape[CV_MAX_DIMS];     /* >= 1 */
    int64_t ext_chunk_shape[CV_MAX_DIMS]; /* chunk_shape rounded up to blocks */
    int64_t chunk_counts[CV_MAX_DIMS];    /* chunks along each axis; 0 where shape is 0 */
    int64_t block_counts[CV_MAX_DIMS];    /* blocks of a chunk along each axis */
    int64_t chunk_strides[CV_MAX_DIMS];   /* increment of the chunk number per chunk index */
    int64_t block_strides[CV_MAX_DIMS];   /* increment of the block number per block index */
    int64_t item_strides[CV_MAX_DIMS];    /* bytes inside a block, per item */
    int64_t n_items;                      /* items of the array */
    int64_t n_chunks;
    int64_t n_blocks;     /* blocks of one chunk */
    int64_t n_all_blocks; /* blocks of all chunks, without those that hold only padding */
    int64_t chunk_bytes;  /* decoded size of a chunk: ext_chunk_shape items */
    int64_t block_bytes;
    int64_t total_bytes; /* n_items * item_size */
} cv_grid;

/* Computes the grid. CATERVA_EINVAL names the axis and the number that exceeds the format's limits.
 * Chunk and block edges may be 0 only on axes with shape 0. */
cv_status cv_grid_init(cv_grid *grid, int ndim, const int64_t *shape,
                       const int32_t *chunk_shape, const int32_t *block_shape,
                       int64_t item_size, cv_error *err);

/* Converts a chunk number to its index along each axis. */
void cv_grid_chunk_index(const cv_grid *grid, int64_t chunk, int64_t *index);

/* Converts a block number in a chunk to its index along each axis. */
void cv_grid_block_index(const cv_grid *grid, int64_t block, int64_t *index);

#endif
