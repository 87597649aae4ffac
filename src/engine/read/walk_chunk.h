/* What a walk is made of: what is wanted, what becomes of it, and the chunk that it is at.
 * Who walks, and by which rules, is walk.h. */
#ifndef CV_ENGINE_WALK_CHUNK_H
#define CV_ENGINE_WALK_CHUNK_H

#include "engine/items/copy.h"
#include "engine/plan/plan.h"
#include "engine/plan/select_kind.h"
#include "engine/read/blocks.h"
#include "engine/read/source.h"
#include "engine/read/stage.h"

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
    bool is_full; /* the cache had no room */
    bool fits;    /* the array in the cache: what is wanted in part stays */
    bool stays;   /* the same of what is wanted whole */
    bool failed;  /* the delivery had no memory */
    /* The walk's own. */
    cv_cache_key key;            /* where the chunk is stored */
    const cv_dirty_chunk *dirty; /* or NULL */
    cv_block_job block;          /* of the tag last asked for; of boxes */
    int64_t tag;
    cv_cached *room; /* in the cache, for the block being decoded; not in it yet */
    int64_t n_wanted;
    cv_block_sink sink;
};

/* Whether it touches every block of the array. */
static inline bool cv_walk_wants_all(const cv_walk *walk)
{
    return walk->n_blocks >= walk->source->snapshot->grid.n_all_blocks;
}

/* Aims the chunk at the k-th that its walk's request touches. */
static inline void cv_walk_plan_chunk(cv_walk_chunk *c, int64_t k)
{
    const cv_request *r = &c->walk->request;
    if (r->box) {
        cv_plan_chunk(r->box, k, &c->at.box);
        c->chunk = c->at.box.chunk;
        c->n_blocks = c->at.box.n_blocks;
    } else if (r->selection) {
        r->selection->ops->chunk(r->selection, k, &c->at.selection);
        c->chunk = c->at.selection.chunk;
        c->n_blocks = c->at.selection.n_blocks;
    } else {
        c->chunk = k;
        c->n_blocks = c->walk->source->snapshot->grid.n_blocks;
    }
}

/* False: the touched block holds nothing that is wanted. Of what is no box the block's
 * number is known, and whether it is covered. */
static inline bool cv_walk_plan_block(const cv_walk_chunk *c, int64_t tag, cv_block_job *out)
{
    const cv_request *r = &c->walk->request;
    if (r->box) {
        cv_plan_block(r->box, &c->at.box, tag, out);
        return true;
    }
    cv_select_block block = {.block = tag, .wanted = true, .covers = true};
    if (r->selection) r->selection->ops->block(r->selection, &c->at.selection, tag, &block);
    out->block = block.block;
    out->covers = block.covers;
    return block.wanted;
}

/* Of a box: touched block `tag`. */
static inline const cv_block_job *cv_walk_block(cv_walk_chunk *c, int64_t tag)
{
    if (c->tag != tag) (void)cv_walk_plan_block(c, tag, &c->block);
    c->tag = tag;
    return &c->block;
}

#endif
