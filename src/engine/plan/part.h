/* A part: the items that a selection takes from one block, and their copy between block and buffer,
 * in either direction. Along each axis the items have a constant step, or are a list of picks. */
#ifndef CV_ENGINE_PLAN_PART_H
#define CV_ENGINE_PLAN_PART_H

#include "base/grid.h"
#include "base/watch.h"

/* The two sides of a copy. */
typedef enum cv_side { CV_IN_BLOCK = 0, CV_IN_BUFFER = 1 } cv_side;

/* One wanted item: its positions in the block and in the result. */
typedef struct cv_pick {
    int64_t at[2]; /* by cv_side */
} cv_pick;

typedef struct cv_buckets {
    cv_pick *picks;        /* sorted by chunk, block, item; repeated items as requested */
    int64_t *blocks;       /* n_blocks numbers: chunk * blocks_per_chunk + block */
    int64_t *block_starts; /* n_blocks + 1 positions in picks */
    int64_t *chunk_starts; /* n_chunks + 1 positions in blocks */
    int64_t n_picks;
    cv_watch *watch;  /* counts bytes that a large sort moves; or NULL */
    int64_t n_blocks; /* blocks that hold a wanted item */
    int64_t n_chunks;
} cv_buckets;

/* Defines the number of an item before grouping: (chunk * blocks_per_chunk + block) *
 * items_per_block + position in the block. */
typedef struct cv_numbering {
    int64_t blocks_per_chunk;
    int64_t items_per_block;
} cv_numbering;

/* Allocates `n` picks of 16 bytes; the sort needs as much memory again. The caller fills them in
 * the order of the request: at[CV_IN_BLOCK] is the item's number, at[CV_IN_BUFFER] its position. */
cv_status cv_buckets_init(cv_buckets *buckets, int64_t n, cv_watch *watch, cv_error *err);
void cv_buckets_free(cv_buckets *buckets);

/* Sorts and groups the picks; at[CV_IN_BLOCK] becomes the position in the block. */
cv_status cv_buckets_group(cv_buckets *buckets, cv_numbering numbering, cv_error *err);

typedef struct cv_part {
    int ndim;
    int64_t item_size;
    int64_t n[CV_MAX_DIMS];            /* items along each axis, >= 1 */
    const cv_pick *picks[CV_MAX_DIMS]; /* n picks, or NULL: constant step */
    const uint8_t *mask; /* one axis: takes items where the mask is not 0; or NULL */
    int64_t strides[2][CV_MAX_DIMS]; /* by cv_side: bytes per step, or per unit of `at` */
    int64_t pos[2];                  /* by cv_side: byte of the first item, without picks */
} cv_part;

/* Copies the part's items from `src`, which is side `from`, to `dst`. If an item is repeated,
 * the last copy wins. */
void cv_part_copy(const cv_part *part, cv_side from, const uint8_t *src, uint8_t *dst);

/* Writes `item` to all buffer positions of the part, whose block is this item repeated. */
void cv_part_fill(const cv_part *part, const uint8_t *item, uint8_t *dst);

#endif
