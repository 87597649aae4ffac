/* Decodes blocks of any kind of chunk, for reads, partial writes, rebuilds and verify. */
#ifndef CV_ENGINE_BLOCKS_H
#define CV_ENGINE_BLOCKS_H

#include "engine/cache/cache.h"
#include "engine/run/worker.h"

/* Receives the wanted blocks of a chunk. */
typedef struct cv_block_sink {
    /* Returns where to decode the block (block_bytes). If the function or its result is NULL, the
     * block is decoded to scratch memory and passed to `take`. */
    uint8_t *(*place)(void *context, int64_t tag);
    void (*take)(void *context, int64_t tag, const uint8_t *block);
    /* Receives a block that is `item` repeated; NULL means zero bytes. */
    void (*fill)(void *context, int64_t tag, const uint8_t *item);
    void *context;
    /* Returns cache memory for a block that has no place. If the function or its result is NULL,
     * the block is not cached. `settle` is called after `take`, or after a failure with `good`
     * false. */
    uint8_t *(*room)(void *context, int64_t tag);
    void (*settle)(void *context, bool good);
    /* If `unshuffles` returns true, `take_shuffled` is called instead of `take` and gets the block
     * still shuffled. Only for blocks without place and room. `unshuffles` may be NULL. */
    bool (*unshuffles)(void *context, int64_t tag);
    void (*take_shuffled)(void *context, int64_t tag, const uint8_t *shuffled);
    bool in_order; /* blocks are delivered in the order of the list, else as stored */
} cv_block_sink;

/* Returns in *same whether all blocks are one item: *item (NULL: zeros), valid until the worker's
 * next chunk. *same is false for small chunks, whose layouts are not cached. */
cv_status cv_blocks_are_same(cv_frame *frame, const cv_snapshot *snapshot,
                             const cv_chunk_ref *ref, cv_worker *worker, bool *same,
                             const uint8_t **item, cv_error *err);

/* Maximum number of blocks in a list, unless cv_blocks_at_once allows more. */
enum { CV_BLOCKS_AT_ONCE = 16384 };

/* Returns in *at_once how many of `n` blocks one list should have: few, because a hostile file may
 * claim many blocks, but all if the chunk's blocks must be decoded together. */
cv_status cv_blocks_at_once(cv_frame *frame, const cv_snapshot *snapshot,
                            const cv_chunk_ref *ref, cv_worker *worker, int64_t n,
                            int64_t *at_once, cv_error *err);

/* Wanted blocks of one chunk, and the bytes that are already in memory. */
typedef struct cv_block_list {
    cv_wanted *wanted; /* `block` and `tag` are set; reordered, unless the sink is in order */
    int64_t n;
    const cv_layout *layout; /* the chunk's; NULL: layout and bytes are not in memory */
    bool is_placed;          /* cv_fetch_place has set the bytes of `wanted` */
    const uint8_t *chunk;    /* for CV_ACCESS_CHUNK: all bytes of the chunk; NULL: not read */
} cv_block_list;

/* Decodes the listed blocks of the chunk at `ref`. Errors name the chunk. */
cv_status cv_decode_blocks(cv_frame *frame, const cv_snapshot *snapshot,
                           const cv_chunk_ref *ref, cv_worker *worker,
                           const cv_block_list *list, const cv_block_sink *sink,
                           cv_error *err);

#endif
