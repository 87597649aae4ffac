/* The block cache: decoded blocks, bounded in bytes; one for the process, or a handle's
 * own.
 *
 * Finding. A key names a block as it is stored, not its place in the array, so a commit
 * invalidates only chunks that it replaced. No stale block is found, because:
 *   1. `frame` is unique to one opening of one frame in the process. Handles share the
 *      budget, never a block; caterva_refresh opens anew and gets a new number.
 *   2. While a handle has a snapshot, the bytes of its chunks do not change
 *      (frame/commit.c); positions are reused only when no reader needs them.
 *   3. Before this handle's writer reuses a position, or a rollback frees it, its
 *      `generation` changes (cv_layout_generation), with no read of the handle under
 *      way. Chunk files of a directory never reuse numbers.
 *   4. Blocks are added under the key made before their bytes were fetched.
 *
 * Eviction. Newcomers queue until they have half of the cache; at the head they leave,
 * unless they were of use. Those of use join a second queue and leave at its head unless
 * they were of use again, up to seven times (CLOCK with a small count). Of the two heads
 * the one that has waited longer leaves: when a program turns to other blocks, all old ones
 * give way step by step, and not only half a cache.
 *
 * Hits by a passing scan (cv_sweep) are no use; a block that a scan has finished leaves
 * first, and the next one reuses its memory while cached by the processor. A prefetched
 * block counts as most used until it is found. What may enter depends on the request, see
 * cv_cache_entrant.
 *
 * Any thread may call anything but cv_cache_free. Shards have locks, held for moments. */
#ifndef CV_ENGINE_CACHE_CACHE_H
#define CV_ENGINE_CACHE_CACHE_H

#include "base/status.h"
#include "base/thread.h"
#include "engine/plan/plan.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A block by name. */
typedef struct cv_cache_key {
    uint64_t frame; /* cv_frame.id */
    int64_t object; /* cv_object: the frame, or a chunk file */
    uint64_t pos;   /* of the chunk in the object */
    uint32_t generation;
    int32_t block; /* number in the chunk */
} cv_cache_key;

/* How successive reads use a cached block. A scan goes through it once, from end to end:
 * its many hits do not make the block worth keeping. Repeated and random reads do. */

/* Any thread may note; of two at once one may be lost. */
typedef struct cv_sweep {
    atomic_int_least64_t last; /* byte of the first item of the last part; -1: none yet */
    atomic_int way;            /* of its last step: 1 to the end, -1 back; 0: none yet */
} cv_sweep;

typedef enum cv_step {
    CV_STEP_ON,   /* the first part, or on behind the last one, the same way */
    CV_STEP_LAST, /* the same, and there is nothing behind it that way */
    CV_STEP_BACK  /* to what was read before, or another way */
} cv_step;

void cv_sweep_init(cv_sweep *sweep);

/* Notes the next part, and says how it follows the one before. */
cv_step cv_sweep_note(cv_sweep *sweep, const cv_grid *grid, const cv_block_job *part);

/* A block in the cache, or being added. The user of the block owns `bytes`, `sweep` and
 * `is_rotated` (see walk.c); all else is the cache's. */
typedef struct cv_cached {
    cv_cache_key key;
    uint64_t hash;
    struct cv_cached *chained; /* next in its bucket */
    struct cv_cached *before, *behind;
    size_t size; /* of its bytes */
    uint8_t *bytes;
    struct cv_slab *slab; /* that they are a piece of; NULL: from malloc */
    cv_sweep sweep;
    bool is_rotated;
    bool ahead;    /* not yet found; under the shard's lock, once in the table */
    size_t queue;  /* its number */
    uint64_t time; /* when it joined its line; under the queue's lock */
    bool is_used;  /* which line that is; the same */
    /* Grows under the shard's lock only. */
    atomic_int pins;
    /* Up to 7, since it was last at a head; -1: prefetched, and not found yet. */
    atomic_int uses;
} cv_cached;

typedef struct cv_cache cv_cache;

enum { CV_CACHE_BYTES = 64 << 20 }; /* the default limit of the shared cache */

/* The process's cache. Survives fork: a child has its own copy. */
cv_cache *cv_cache_shared(void);

cv_status cv_cache_create(int64_t limit, cv_cache **out, cv_error *err);
void cv_cache_free(cv_cache *cache); /* the shared one and NULL: does nothing */

/* Bounds the entries' bytes with their overhead; 0: nothing enters. The excess leaves at
 * once. */
void cv_cache_set_limit(cv_cache *cache, int64_t limit);

int64_t cv_cache_limit(const cv_cache *cache);

/* Whether it has room for all blocks of an array of that grid when it has no others. */
bool cv_cache_fits(const cv_cache *cache, const cv_grid *grid);

/* The block, or NULL. It stays where it is until cv_cache_release. */
cv_cached *cv_cache_find(cv_cache *cache, const cv_cache_key *key);

/* Releases a found block. `part` is the box's part of it, NULL for other requests. The last
 * step of a scan lets it leave next, unless it was of use or the whole array fits. */
void cv_cache_release(cv_cache *cache, cv_cached *found, const cv_grid *grid,
                      const cv_block_job *part);

/* Whether it is there; counts neither as found nor as missed. */
bool cv_cache_holds(cv_cache *cache, const cv_cache_key *key);

/* A block that may enter. */
typedef struct cv_cache_entrant {
    size_t size;
    /* Bytes of all blocks that the request may add; 0: admitted unseen. A request gets at
     * most three quarters of the cache, less what blocks of use have. A larger one adds a
     * share of its blocks, picked by hash, so that it finds the same share when it is
     * repeated. */
    int64_t request_bytes;
    bool ahead; /* it was not asked for yet: a prefetch, always admitted */
} cv_cache_entrant;

/* Reserves room for a block; NULL: not admitted, or no memory, which is no error. The
 * caller writes the bytes; other threads find the block once it is settled. */
cv_cached *cv_cache_reserve(cv_cache *cache, const cv_cache_key *key,
                            const cv_cache_entrant *entrant);

/* Adds a reserved block if it is `good`, else frees its room. The pointer becomes
 * invalid. */
void cv_cache_settle(cv_cache *cache, cv_cached *reserved, bool good);

/* Drops all blocks of a frame; none of them may be in use. */
void cv_cache_forget(cv_cache *cache, uint64_t frame);

bool cv_cache_is_empty(const cv_cache *cache);

void cv_cache_measure(cv_cache *cache, caterva_cache_info *out);

#endif
