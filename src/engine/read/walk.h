/* The walk: from what is wanted of an array to its decoded items.
 *
 *     request     which chunks, and which blocks of each: a box, another selection, or
 *        |        chunks by their numbers
 *      walk       each block once:  dirty?  in the cache?  else fetched and decoded
 *        |
 *     delivery    what becomes of it: copied out, folded, put in a place, only kept
 *
 * The walk decides what the cache keeps. Blocks wanted in part may be wanted again; those
 * wanted whole are not, unless most blocks of the box are cut by its faces, as by a moving
 * box. Of a request larger than the cache a share is kept (cv_cache_entrant). cv_sweep
 * tells scans from repeated use. Of an array that fits the cache all is kept, except blocks
 * wanted whole by a request for all blocks until it is repeated, or by a fold. With `scan`
 * nothing is kept.
 *
 * A delivery has functions (or NULL) and a context. They get the walk's chunk and a tag:
 * the block's number among the touched ones, or, for requests by number, in the chunk. The
 * working thread calls them, unordered unless the delivery asks for order; different chunks
 * and shares in parallel.
 *
 * Planning is much of a small box read: boxes are planned by direct calls, blocks looked up
 * in batches, and small requests read leading decoded chunks on the caller's thread without
 * a worker. */
#ifndef CV_ENGINE_READ_WALK_H
#define CV_ENGINE_READ_WALK_H

#include "base/grid.h"
#include "engine/items/copy.h"
#include "engine/plan/plan.h"
#include "engine/plan/select_plan.h"
#include "engine/read/blocks.h"
#include "engine/read/source.h"

/* What is wanted, borrowed: one of the two, or neither, which is whole chunks. */
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
    /* In place of `take`, for a block of a box that was found: its wanted items where
     * they lie, which may be rotated. Needs no worker. */
    void (*take_items)(const cv_walk_chunk *chunk, const cv_block_job *block,
                       cv_strided items);
    /* All that is wanted of the chunk is one item; NULL: zero bytes. */
    void (*fill_chunk)(const cv_walk_chunk *chunk, const uint8_t *item);
    bool needs_worker; /* also for what was found; with take_items it does not matter */
    bool asks_first;   /* whether a chunk is one item everywhere, for fill_chunk */
    bool in_order;     /* blocks of a share come in the order of their tags */
    bool once;         /* what is wanted whole has been seen, whatever fits the cache */
    bool counts;       /* what was delivered may not come a second time */
    bool only_missing; /* nothing becomes of blocks that are there; others are kept */
} cv_delivery;

typedef struct cv_walk {
    const cv_source *source;
    cv_request request;
    const cv_delivery *delivery;
    void *context; /* the delivery's */
    cv_cache *cache;
    int64_t n_chunks;  /* touched */
    int64_t n_blocks;  /* of them, or about so many */
    int64_t bytes;     /* of those, decoded */
    bool keep_covered; /* blocks wanted whole may enter the cache, too */
    bool again;        /* all of the array was wanted before */
    cv_stage *stage;   /* of whose units touched chunk k is number k; or NULL */
    /* How it is cut into parts, see cv_walk_part; init: a part for each touched chunk. */
    int64_t first_chunk; /* those before it are done */
    int64_t n_shares;    /* of each chunk */
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
    bool fits;    /* the array in the cache: what is wanted in part stays */
    bool stays;   /* the same of what is wanted whole */
    bool failed;  /* the delivery had no memory */
    /* The walk's own. */
    cv_cache_key key;            /* where the chunk is stored */
    const cv_dirty_chunk *dirty; /* or NULL */
    cv_block_job block;          /* of `tag`, the last one planned */
    int64_t tag;
    cv_cached *room; /* in the cache, for the block being decoded; not in it yet */
    int64_t n_wanted;
    cv_block_sink sink;
};

/* ---- The walk ---- */

/* Sets *out to the key of block 0 of the stored chunk at `ref`. */
void cv_block_key(const cv_frame *frame, const cv_chunk_ref *ref, cv_cache_key *out);

/* Plans nothing, touches nothing; any number of threads may then use the walk. */
void cv_walk_init(cv_walk *walk, const cv_source *source, cv_request request,
                  const cv_delivery *delivery, void *context);

/* Walks over a part: share part % n_shares of touched chunk first_chunk + part / n_shares.
 * A cv_job_fn on the cv_walk. */
cv_status cv_walk_part(void *walk, int64_t part, cv_worker *worker, cv_error *err);

/* The same in two steps, blocks [first, last) of those that are touched. */
cv_status cv_walk_enter(cv_walk_chunk *chunk, const cv_walk *walk, int64_t k,
                        cv_worker *worker, cv_error *err);
cv_status cv_walk_blocks(cv_walk_chunk *chunk, int64_t first, int64_t last, cv_error *err);

/* A cv_stage_list_fn on the walk: what the k-th touched chunk would have to read now. */
cv_status cv_walk_list_missing(void *walk, int64_t k, cv_worker *worker, cv_stage_list *list,
                               cv_error *err);

/* Gives the walk a stage for `threads` threads and `memory` bytes (0: usual). Destroy it
 * always. */
cv_status cv_walk_set_stage(cv_walk *walk, int threads, int64_t memory, cv_stage *stage,
                            cv_error *err);

/* For waves. The first enters the k-th touched chunk, delivers its decoded blocks, and
 * leaves the others at worker->wanted[0..chunk->n_wanted); delivers unstored chunks, and
 * those larger than a wave, whole. Does nothing above `room` blocks. The second decodes and
 * delivers some of those left, of the chunk at `ref`. */
cv_status cv_walk_find(const cv_walk *walk, int64_t k, int64_t room, cv_worker *worker,
                       cv_walk_chunk *chunk, cv_error *err);
cv_status cv_walk_decode(const cv_walk *walk, int64_t k, const cv_chunk_ref *ref,
                         const cv_block_list *list, cv_worker *worker, cv_error *err);

/* For requests by number: delivers blocks worker->wanted[0..*n) as stored, even if dirty.
 * After a failure *n are left, maybe undelivered. */
cv_status cv_walk_listed(const cv_walk *walk, int64_t chunk, cv_worker *worker, int64_t *n,
                         cv_error *err);

/* Delivers leading chunks that are all decoded, without a worker, and moves first_chunk
 * behind them. */
cv_status cv_walk_decoded(cv_walk *walk, cv_error *err);

/* ---- Places: blocks put whole into a chunk in stored order, or into the memory of dirty
 * blocks. Requests are by number ---- */

/* Where blocks go, block_bytes each. */
typedef struct cv_places {
    uint8_t *chunk;         /* one behind the other; or, where it is NULL, */
    uint8_t *const *blocks; /* by the block's number */
} cv_places;

extern const cv_delivery cv_to_places; /* its context is a cv_places */

/* Decodes chunk `chunk` with pending changes into `dst`, chunk_bytes in stored order. Any
 * thread. */
cv_status cv_chunk_fill(const cv_source *source, int64_t chunk, uint8_t *dst,
                        cv_worker *worker, cv_error *err);

#endif
