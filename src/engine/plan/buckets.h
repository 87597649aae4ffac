/* Wanted items of any order, put in the order of the blocks that hold them, so
 * that each block is decoded once however its items are asked for.
 *
 *     indices  7 2 9 2 ...   ->   chunk 0      chunk 2
 *     as asked                    block 1 4    block 0      one bucket each
 *                                 2 2 | 7      9
 *
 * The same grouping serves a list of indices along one axis, where chunks and
 * blocks are those of that axis, and a list of points of the whole array. */
#ifndef CV_ENGINE_BUCKETS_H
#define CV_ENGINE_BUCKETS_H

#include "base/watch.h"

/* The two places of a wanted item, and of a copy between them. */
typedef enum cv_side { CV_IN_BLOCK = 0, CV_IN_BUFFER = 1 } cv_side;

/* One wanted item: its number inside the block, and its number in the result. */
typedef struct cv_pick {
    int64_t at[2]; /* by cv_side */
} cv_pick;

typedef struct cv_buckets {
    cv_pick *picks;        /* by chunk, block, item; repeats in the order asked */
    int64_t *blocks;       /* n_blocks numbers: chunk * blocks_per_chunk + block */
    int64_t *block_starts; /* n_blocks + 1 positions in picks */
    int64_t *chunk_starts; /* n_chunks + 1 positions in blocks */
    int64_t n_picks;
    cv_watch *watch;  /* hears of the sorting of very many, in bytes moved; or NULL */
    int64_t n_blocks; /* that hold a wanted item */
    int64_t n_chunks;
} cv_buckets;

/* How items are numbered before grouping: ((chunk * blocks_per_chunk) + block)
 * * items_per_block + item. */
typedef struct cv_numbering {
    int64_t blocks_per_chunk;
    int64_t items_per_block;
} cv_numbering;

/* Room for `n` picks, to be filled in the order asked: at[CV_IN_BLOCK] the item's
 * number as above, at[CV_IN_BUFFER] its place in the result. 16 bytes each,
 * twice that while they are sorted. */
cv_status cv_buckets_init(cv_buckets *buckets, int64_t n, cv_watch *watch, cv_error *err);
void cv_buckets_free(cv_buckets *buckets);

/* Sorts and groups the filled picks; at[CV_IN_BLOCK] is the number inside the
 * block from then on. */
cv_status cv_buckets_group(cv_buckets *buckets, cv_numbering numbering, cv_error *err);

#endif
