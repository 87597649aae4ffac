/* The walk: from the wanted part of an array to its decoded items.
 *
 *     request     which chunks, and which blocks of each: a box, another selection, or
 *        |        chunks by number
 *      walk       each block once:  dirty?  in the cache?  else fetched and decoded
 *        |
 *     delivery    copies a block out, folds it, puts it in place, or only caches it
 *
 * The walk decides which decoded blocks the cache keeps:
 *   - Blocks wanted in part are kept: they may be wanted again.
 *   - Blocks wanted whole are kept if most blocks of the box are cut by its faces, because a box
 *     that moves reads them again. If the array fits the cache they are kept, too, but not by a
 *     fold and not by the first request for all blocks.
 *   - If the request is larger than the cache, a share of its blocks is kept (cv_cache_entrant).
 *   - Nothing is kept if source->scan is set.
 * cv_sweep distinguishes scans from repeated use.
 *
 * A delivery has a context and functions, which may be NULL. Functions get the walk's chunk and a
 * tag: the number of the block among the touched ones or, for requests by number, in the chunk.
 * They are called on the thread that does the part: for different chunks and shares in parallel,
 * for the blocks of a share in no order, unless in_order is set.
 *
 * Planning takes much of the time of a small box read. So boxes are planned by direct calls, and
 * blocks are looked up in batches. The leading chunks of a small request that are decoded already
 * are delivered on the caller's thread, without a worker. */
#ifndef CV_ENGINE_READ_WALK_H
#define CV_ENGINE_READ_WALK_H

#include "base/grid.h"
#include "engine/items/copy.h"
#include "engine/plan/plan.h"
#include "engine/plan/select_plan.h"
#include "engine/read/blocks.h"
#include "engine/read/source.h"

/* The wanted part, borrowed. If both are NULL: whole chunks by number. */
typedef struct cv_request {
    const cv_plan *box;
    const cv_select_plan *selection;
} cv_request;

typedef struct cv_walk_chunk cv_walk_chunk;

typedef struct cv_delivery {
    /* As in cv_block_sink; `context` is the cv_walk_chunk. */
    uint8_t *(*place)(void *chunk, int64_t tag);
    void (*take)(void *chunk, int64_t tag, const uint8_t *block);
    void (*fill)(void *chunk, int64_t tag, const uint8_t *item);
    bool (*unshuffles)(void *chunk, int64_t tag);
    void (*take_shuffled)(void *chunk, int64_t tag, const uint8_t *shuffled);
    /* Called instead of `take` for a block of a box that is dirty or cached. `items` are the wanted
     * items in the block, which may be rotated. The function needs no worker. */
    void (*take_items)(const cv_walk_chunk *chunk, const cv_block_job *block,
                       cv_strided items);
    /* Receives a chunk whose wanted items all equal `item`; NULL means zero bytes. */
    void (*fill_chunk)(const cv_walk_chunk *chunk, const uint8_t *item);
    bool needs_worker; /* even cached blocks need a worker; ignored with take_items */
    bool asks_first;   /* fill_chunk is called if the whole chunk is one item */
    bool in_order;     /* the blocks of a share come in the order of their tags */
    bool once;         /* blocks wanted whole are not kept if the array fits */
    bool counts;       /* a delivered block must not be delivered again */
    bool only_missing; /* skips dirty and cached blocks; the cache keeps all others */
} cv_delivery;

typedef struct cv_walk {
    const cv_source *source;
    cv_request request;
    const cv_delivery *delivery;
    void *context; /* the delivery's */
    cv_cache *cache;
    int64_t n_chunks;  /* touched chunks */
    int64_t n_blocks;  /* touched blocks, or an estimate */
    int64_t bytes;     /* decoded bytes of these blocks */
    bool keep_covered; /* blocks wanted whole may enter the cache */
    bool again;        /* an earlier request wanted all blocks and had to decode */
    cv_stage *stage;   /* its unit k is touched chunk k; or NULL */
    /* The parts of cv_walk_part. cv_walk_init makes one part of each touched chunk. */
    int64_t first_chunk; /* earlier chunks are done */
    int64_t n_shares;    /* per chunk */
} cv_walk;

/* One chunk of a walk. */
struct cv_walk_chunk {
    const cv_walk *walk;
    cv_worker *worker;
    void *context; /* the delivery's */
    int64_t chunk; /* number in the array */
    int64_t n_blocks;
    union {
        cv_chunk_job box;
        cv_select_chunk selection;
    } at;
    cv_chunk_ref ref;
    bool is_full; /* the cache had no room for the last block */
    bool fits;    /* the array fits the cache: blocks wanted in part are kept */
    bool stays;   /* even blocks wanted whole are kept */
    bool failed;  /* the delivery ran out of memory */
    /* Private to the walk. */
    cv_cache_key key;            /* identifies the stored chunk */
    const cv_dirty_chunk *dirty; /* or NULL */
    cv_block_job block;          /* the last planned block, whose number is `tag` */
    int64_t tag;
    cv_cached *room; /* reserved in the cache for the block being decoded */
    int64_t n_wanted;
    cv_block_sink sink;
};

/* ---- The walk ---- */

/* Sets *out to the key of block 0 of the stored chunk at `ref`. */
void cv_block_key(const cv_frame *frame, const cv_chunk_ref *ref, cv_cache_key *out);

/* Initialises a walk; does no I/O. Any number of threads may then use it. */
void cv_walk_init(cv_walk *walk, const cv_source *source, cv_request request,
                  const cv_delivery *delivery, void *context);

/* Does part `part`: share part % n_shares of touched chunk first_chunk + part / n_shares. This is a
 * cv_job_fn whose context is the walk. */
cv_status cv_walk_part(void *walk, int64_t part, cv_worker *worker, cv_error *err);

/* Do a part in two steps: enter the k-th touched chunk, then do its touched blocks [first,
 * last). */
cv_status cv_walk_enter(cv_walk_chunk *chunk, const cv_walk *walk, int64_t k,
                        cv_worker *worker, cv_error *err);
cv_status cv_walk_blocks(cv_walk_chunk *chunk, int64_t first, int64_t last, cv_error *err);

/* Lists the stored bytes that the k-th touched chunk would read now. This is a cv_stage_list_fn
 * whose context is the walk. */
cv_status cv_walk_list_missing(void *walk, int64_t k, cv_worker *worker, cv_stage_list *list,
                               cv_error *err);

/* Gives the walk a stage for `threads` threads and `memory` bytes (0: the default). The caller
 * destroys the stage, even after a failure. */
cv_status cv_walk_set_stage(cv_walk *walk, int threads, int64_t memory, cv_stage *stage,
                            cv_error *err);

/* For waves. cv_walk_find enters the k-th touched chunk, delivers its dirty and cached blocks, and
 * leaves the others in worker->wanted[0..chunk->n_wanted). A chunk that is not stored, or has more
 * than CV_WAVE_BLOCKS blocks, is delivered completely. If the chunk has more than `room` blocks,
 * nothing is done. cv_walk_decode decodes and delivers listed blocks of the chunk at `ref`. */
cv_status cv_walk_find(const cv_walk *walk, int64_t k, int64_t room, cv_worker *worker,
                       cv_walk_chunk *chunk, cv_error *err);
cv_status cv_walk_decode(const cv_walk *walk, int64_t k, const cv_chunk_ref *ref,
                         const cv_block_list *list, cv_worker *worker, cv_error *err);

/* For requests by number: delivers the blocks worker->wanted[0..*n) of a chunk from cache or store,
 * not from dirty blocks. After a failure, worker->wanted[0..*n) may not have been delivered. */
cv_status cv_walk_listed(const cv_walk *walk, int64_t chunk, cv_worker *worker, int64_t *n,
                         cv_error *err);

/* Delivers, without a worker, leading chunks whose blocks are all dirty or cached, and moves
 * first_chunk behind them. */
cv_status cv_walk_decoded(cv_walk *walk, cv_error *err);

/* ---- Places: a delivery that decodes whole blocks to given memory, for requests by number --- */

/* Destinations of blocks, block_bytes each. */
typedef struct cv_places {
    uint8_t *chunk;         /* memory of all blocks, in stored order; or NULL and `blocks`: */
    uint8_t *const *blocks; /* memory of each block, by block number */
} cv_places;

extern const cv_delivery cv_to_places; /* the context is a cv_places */

/* Decodes a chunk, with pending changes, to `dst`: chunk_bytes in stored order. Any thread. */
cv_status cv_chunk_fill(const cv_source *source, int64_t chunk, uint8_t *dst,
                        cv_worker *worker, cv_error *err);

#endif
