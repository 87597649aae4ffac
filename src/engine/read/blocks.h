/* Decodes blocks of any kind of chunk, for reads, partial writes, rebuilds and verify. */
#ifndef CV_ENGINE_BLOCKS_H
#define CV_ENGINE_BLOCKS_H

#include "engine/cache/cache.h"
#include "engine/run/worker.h"

/* Receives the wanted blocks of a chunk. */
typedef struct cv_block_sink {
    /* Returns where to decode the block (block_bytes), or NULL: to scratch memory, followed
     * by `take`. May be NULL. */
    uint8_t *(*place)(void *context, int64_t tag);
    void (*take)(void *context, int64_t tag, const uint8_t *block);
    /* The block is one item repeated; NULL: zero bytes. */
    void (*fill)(void *context, int64_t tag, const uint8_t *item);
    void *context;
    /* Returns cache memory to decode a block without a place into; NULL, also as a function:
     * the block is not cached. `settle` follows `take`, or a failure with `good` false. */
    uint8_t *(*room)(void *context, int64_t tag);
    void (*settle)(void *context, bool good);
    /* If `unshuffles` returns true, `take_shuffled` gets the block still shuffled, in place
     * of `take`. Only for blocks without place and room. May be NULL. */
    bool (*unshuffles)(void *context, int64_t tag);
    void (*take_shuffled)(void *context, int64_t tag, const uint8_t *shuffled);
    bool in_order; /* blocks come in the order of the list, else as stored */
} cv_block_sink;

/* Returns in *same whether all blocks are one item: *item, valid until the worker's next
 * chunk, or NULL for zeros. False for small chunks, whose layouts are not cached. */
cv_status cv_blocks_are_same(cv_frame *frame, const cv_snapshot *snapshot,
                             const cv_chunk_ref *ref, cv_worker *worker, bool *same,
                             const uint8_t **item, cv_error *err);

/* Most blocks of a list, but see cv_blocks_at_once. */
enum { CV_BLOCKS_AT_ONCE = 16384 };

/* Returns how many of `n` blocks to list at once. This bounds the list for hostile files.
 * Returns all if the chunk's blocks must be decoded together. */
cv_status cv_blocks_at_once(cv_frame *frame, const cv_snapshot *snapshot,
                            const cv_chunk_ref *ref, cv_worker *worker, int64_t n,
                            int64_t *at_once, cv_error *err);

/* Wanted blocks of one chunk, and the bytes that are already in memory. */
typedef struct cv_block_list {
    cv_wanted *wanted; /* `block` and `tag` are set; reordered, unless the sink is in order */
    int64_t n;
    const cv_layout *layout; /* of the chunk; NULL: neither it nor the bytes are in memory */
    bool is_placed;          /* `wanted` was set by cv_fetch_place; or, if CV_ACCESS_CHUNK, */
    const uint8_t *chunk;    /* all bytes of the chunk; NULL: not read */
} cv_block_list;

/* Decodes the listed blocks of the chunk at `ref`. Errors name the chunk. */
cv_status cv_decode_blocks(cv_frame *frame, const cv_snapshot *snapshot,
                           const cv_chunk_ref *ref, cv_worker *worker,
                           const cv_block_list *list, const cv_block_sink *sink,
                           cv_error *err);

#endif
