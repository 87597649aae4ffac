/* Chooses chunk and block shapes, and divides copies between two partitions into slabs. */
#ifndef CV_ENGINE_PLAN_PARTITION_H
#define CV_ENGINE_PLAN_PARTITION_H

#include "base/grid.h"
#include "base/status.h"

/* Fills chunk_shape and block_shape (ndim entries). Copies a given shape, and chooses a shape if
 * the given one is NULL. CATERVA_EINVAL for impossible shapes and sizes. */
cv_status cv_partition_choose(int ndim, const int64_t *shape, int64_t item_size,
                              const int32_t *given_chunk_shape,
                              const int32_t *given_block_shape, int32_t *chunk_shape,
                              int32_t *block_shape, cv_error *err);

/* A copy between two partitions is divided into slabs: boxes, of which one at a time is in memory.
 * Slab edges are edges of new chunks, so that each new chunk is encoded once, whole. A source block
 * that a slab edge cuts is decoded for both slabs. So edges are placed where source blocks end, or
 * far apart.
 *
 *      source blocks   |    |    |    |    |    |    |
 *      new chunks      |  |  |  |  |  |  |  |  |  |  |
 *      slabs           |              |              |    6 blocks, 7 decoded */

typedef struct cv_slab_request {
    const cv_grid *to;
    const cv_grid *from;
    const int64_t *shift; /* item x of `to` is item x + shift of `from` */
    const int64_t *start; /* the box to copy, in items of `to`; begins at a chunk edge */
    const int64_t *stop;  /* its end: a chunk edge or the end of the shape */
    bool whole_chunks;    /* blocks of `from` are decoded with their whole chunk */
    int64_t memory;       /* most bytes of a slab; one new chunk is always allowed */
    int64_t enough;       /* bytes; a slab grows beyond this only to reduce decoding */
} cv_slab_request;

typedef struct cv_slabs {
    int ndim;
    int64_t start[CV_MAX_DIMS];
    int64_t stop[CV_MAX_DIMS];
    int64_t length[CV_MAX_DIMS]; /* of a slab; the last slab of an axis may be shorter */
    int64_t counts[CV_MAX_DIMS];
    int64_t n_slabs;
    int64_t n_bytes; /* of the largest slab */
} cv_slabs;

/* Chooses slabs of at most `memory` bytes that need little decoding. */
void cv_slabs_choose(const cv_slab_request *request, cv_slabs *out);

/* Returns the k-th slab, k in [0, n_slabs), in items of `to`. */
void cv_slabs_get(const cv_slabs *slabs, int64_t k, int64_t *start, int64_t *stop);

#endif
