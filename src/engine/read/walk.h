/* The walk: from what is wanted of an array to its decoded items, whoever wants them.
 *
 *     request     which chunks, and which blocks of each: a box, another selection, or
 *        |        chunks by their numbers
 *      walk       each block once:  dirty?  in the cache?  else fetched and decoded
 *        |
 *     delivery    what becomes of it: copied out, folded, put in a place, only kept
 *
 * The walk alone knows dirty blocks, the cache, fetching and decoding, and what the cache
 * keeps: a block that is wanted in part may be wanted again, one that is wanted whole has
 * been seen, unless most blocks of the box are cut by its faces, as of a box that moves
 * and wants its inside again. Of a request larger than the cache a share of the blocks is
 * kept (cv_cache_admits). What was found says by how its parts follow each other whether
 * it will be wanted again (cache/sweep.h). Of an array that fits the cache all stays at
 * the first touch; only what a request wants whole that wants all blocks does not until
 * it comes again, nor what a fold wants whole: who has seen everything has it. A source
 * that says `scan` has nothing kept.
 *
 * A delivery is a few functions and a context. They get the chunk of the walk and a tag,
 * the number of the block among those that the request touches in the chunk; of a
 * request by number it is the block's number. A function that there is no use for is
 * NULL. They are called by the thread that works on the chunk, in no order unless the
 * delivery asks for one; those of different chunks, and of different shares of one, at
 * the same time.
 *
 * A box is what most reads want and a good part of a small one is planning: it is planned
 * by direct calls, blocks are looked for in batches, and leading chunks whose blocks are
 * all there decoded are read by the caller's thread without a worker, as they are for
 * other small requests. */
#ifndef CV_ENGINE_WALK_H
#define CV_ENGINE_WALK_H

#include "engine/read/walk_chunk.h"

/* Plans nothing, touches nothing; any number of threads may then use the walk. */
void cv_walk_init(cv_walk *walk, const cv_source *source, cv_request request,
                  const cv_delivery *delivery, void *context);

/* The k-th touched chunk's share `share` of `n_shares`, on the calling thread, delivered
 * with `context` in place of the walk's. */
typedef struct cv_share {
    int64_t chunk; /* k, in [0, n_chunks); by number: the chunk */
    int64_t share;
    int64_t n_shares;
} cv_share;
cv_status cv_walk_share(const cv_walk *walk, const cv_share *share, void *context,
                        cv_worker *worker, cv_error *err);

/* The same in two steps, blocks [first, last) of those that are touched. */
cv_status cv_walk_enter(cv_walk_chunk *chunk, const cv_walk *walk, int64_t k,
                        cv_worker *worker, cv_error *err);
cv_status cv_walk_blocks(cv_walk_chunk *chunk, int64_t first, int64_t last, cv_error *err);

/* For stages, as a cv_stage_list_fn: what of the k-th touched chunk would have to be read now.
 * The context is the walk. */
cv_status cv_walk_list_missing(void *walk, int64_t k, cv_worker *worker, cv_stage_list *list,
                               cv_error *err);

/* The walk has a stage from now on, for up to `threads` threads and of so much `memory`, 0:
 * the usual. Destroy that in any case. */
cv_status cv_walk_set_stage(cv_walk *walk, int threads, int64_t memory, cv_stage *stage,
                            cv_error *err);

/* For waves. Of a chunk that was entered: delivers all that is there decoded, and leaves the
 * other blocks at worker->wanted[0..chunk->n_wanted). Then the chunk is entered anew where
 * its blocks are, with what was found out of it: nothing is read. CATERVA_ENOMEM where the
 * delivery had no memory. */
cv_status cv_walk_find(cv_walk_chunk *chunk, cv_error *err);
void cv_walk_enter_found(cv_walk_chunk *chunk, const cv_walk *walk, int64_t k,
                         const cv_chunk_ref *ref, cv_worker *worker);
cv_status cv_walk_check(const cv_walk_chunk *chunk, cv_error *err);

/* Of a request by number: blocks worker->wanted[0..*n), as they are stored, whatever is
 * dirty. After a failure *n are left that may not have been delivered. */
cv_status cv_walk_listed(const cv_walk *walk, int64_t chunk, cv_worker *worker, int64_t *n,
                         cv_error *err);

/* Walks over leading chunks whose blocks are all there decoded, without a worker, and
 * counts them; for deliveries that need none for what was found. */
cv_status cv_walk_decoded(const cv_walk *walk, int64_t *n_done, cv_error *err);

#endif
