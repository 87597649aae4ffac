/* Decodes blocks of any kind of chunk, for reads, partial writes, rebuilds and verify. */
#ifndef CV_ENGINE_BLOCKS_H
#define CV_ENGINE_BLOCKS_H

#include "engine/cache/cache.h"
#include "engine/run/worker.h"

/* What becomes of wanted block `tag`. */
typedef struct cv_block_sink {
    /* Where to decode the block (block_bytes), or NULL: to scratch, then `take`. May be
     * NULL. */
    uint8_t *(*place)(void *context, int64_t tag);
    void (*take)(void *context, int64_t tag, const uint8_t *block);
    /* The block is one item repeated; NULL: zero bytes. */
    void (*fill)(void *context, int64_t tag, const uint8_t *item);
    void *context;
    /* Cache room for a block without a place, decoded there; NULL, also as a function: not
     * kept. `settle` follows `take`, or with `good` false a failure. */
    uint8_t *(*room)(void *context, int64_t tag);
    void (*settle)(void *context, bool good);
    /* Instead of `take`, if `unshuffles`: the block still shuffled. Not with place or room.
     * May be NULL. */
    bool (*unshuffles)(void *context, int64_t tag);
    void (*take_shuffled)(void *context, int64_t tag, const uint8_t *shuffled);
    bool in_order; /* blocks come in the order of the list, else as they are stored */
} cv_block_sink;

/* Whether all blocks are one item: *item, valid until the worker's next chunk, or NULL for
 * zeros. False for small chunks, whose layouts are not kept. */
cv_status cv_blocks_are_same(cv_frame *frame, const cv_snapshot *snapshot,
                             const cv_chunk_ref *ref, cv_worker *worker, bool *same,
                             const uint8_t **item, cv_error *err);

/* Blocks in a list: for more ask the next function. */
enum { CV_BLOCKS_AT_ONCE = 16384 };

/* How many of `n` blocks to request at once, which bounds the list for hostile files: all,
 * if the chunk's bytes are as many or must be decoded together. */
cv_status cv_blocks_at_once(cv_frame *frame, const cv_snapshot *snapshot,
                            const cv_chunk_ref *ref, cv_worker *worker, int64_t n,
                            int64_t *at_once, cv_error *err);

/* Blocks of one chunk, and what of them is at hand. */
typedef struct cv_block_list {
    cv_wanted *wanted; /* `block` and `tag` filled; reordered, unless the sink wants its order */
    int64_t n;
    const cv_layout *layout; /* of the chunk; NULL: not at hand, and so is nothing below */
    bool is_placed;          /* all were placed by cv_fetch_place; or, if CV_ACCESS_CHUNK, */
    const uint8_t *chunk;    /* all bytes of the chunk; NULL: not read */
} cv_block_list;

/* Decodes the listed blocks of the chunk at `ref`. Errors name the chunk. */
cv_status cv_decode_blocks(cv_frame *frame, const cv_snapshot *snapshot,
                           const cv_chunk_ref *ref, cv_worker *worker,
                           const cv_block_list *list, const cv_block_sink *sink,
                           cv_error *err);

#endif
