/* The plan of a box: the chunks that it touches, the blocks of each, and where each block's
 * part is in the caller's buffer.
 *
 * A plan is a small value: the k-th touched chunk, and the j-th block of a touched chunk, are
 * computed on demand, so that a box over a million chunks costs no memory. Several threads
 * may use one plan.
 *
 *     box [start, stop)                    a chunk job: the box inside
 *      +----+----+----+                    the chunk, and its blocks
 *      |  ..|....|..  |  touched 0..2      +--+--+
 *      |  ..|....|..  |                    | :|..|   . wanted items
 *      +----+----+----+                    +--+--+
 */
#ifndef CV_ENGINE_PLAN_H
#define CV_ENGINE_PLAN_H

#include "base/grid.h"

typedef struct cv_plan {
    const cv_grid *grid;        /* borrowed */
    int64_t start[CV_MAX_DIMS]; /* the box, in items of the array */
    int64_t stop[CV_MAX_DIMS];
    int64_t buffer_strides[CV_MAX_DIMS]; /* caller's buffer, bytes per item */
    int64_t first_chunk[CV_MAX_DIMS];    /* touched chunks: an n-d range */
    int64_t chunk_counts[CV_MAX_DIMS];
    int64_t n_chunks; /* touched; 0 for an empty box */
    int64_t n_items;  /* of the box */
} cv_plan;

/* One touched chunk. Coordinates are items from the chunk's first item. */
typedef struct cv_chunk_job {
    int64_t chunk;           /* number in the array */
    int64_t lo[CV_MAX_DIMS]; /* the box inside the chunk: [lo, hi) */
    int64_t hi[CV_MAX_DIMS];
    int64_t valid[CV_MAX_DIMS];       /* items inside chunk and array shape */
    int64_t first_block[CV_MAX_DIMS]; /* touched blocks: an n-d range */
    int64_t block_counts[CV_MAX_DIMS];
    int64_t n_blocks;   /* touched */
    int64_t buffer_pos; /* byte of item `lo` in the buffer */
} cv_chunk_job;

/* The part of the box in one block. */
typedef struct cv_block_job {
    int64_t block;              /* number in the chunk */
    int64_t shape[CV_MAX_DIMS]; /* items wanted along each axis */
    int64_t block_pos;          /* byte of the first wanted item in the block */
    int64_t buffer_pos;         /* byte of this item in the caller's buffer */
    bool whole;                 /* every item of the block is wanted */
    bool covers;                /* every item of the block inside chunk and array is wanted */
    bool ends;                  /* the last item inside chunk and array is wanted */
} cv_block_job;

/* Plans a box in C order. CATERVA_ERANGE unless 0 <= start <= stop <= shape. */
cv_status cv_plan_box(const cv_grid *grid, const int64_t *start, const int64_t *stop,
                      cv_plan *out, cv_error *err);

/* Returns the k-th touched chunk, k in [0, n_chunks). */
void cv_plan_chunk(const cv_plan *plan, int64_t k, cv_chunk_job *out);

/* Returns the j-th touched block of a job, j in [0, n_blocks). */
void cv_plan_block(const cv_plan *plan, const cv_chunk_job *job, int64_t j,
                   cv_block_job *out);

/* Returns the j of cv_plan_block for block `block` of the chunk; -1 if the block is not touched. */
int64_t cv_plan_find_block(const cv_plan *plan, const cv_chunk_job *job, int64_t block);

/* Counts the touched blocks of a non-empty box. Some blocks are wanted whole: at least *n_whole. */
int64_t cv_plan_count_blocks(const cv_plan *plan, int64_t *n_whole);

/* Returns whether the box contains every item of the chunk inside the array. */
bool cv_chunk_job_covers(const cv_plan *plan, const cv_chunk_job *job);

/* Returns whether whole blocks have the same strides in the caller's buffer as stored. Then they
 * can be decoded into the buffer. */
bool cv_plan_block_contiguous(const cv_plan *plan);

#endif
