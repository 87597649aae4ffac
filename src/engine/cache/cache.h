/* The block cache: decoded blocks, bounded in bytes. One cache serves the process; a handle can
 * have its own.
 *
 * Lookup. A key names a stored block, not a place in the array, so a commit invalidates only
 * the chunks that it replaced. A lookup never returns a stale block, because:
 *   1. `frame` is unique to one opening of one frame in the process. Handles share the
 *      budget, but no blocks; caterva_refresh opens anew and gets a new number.
 *   2. While a handle has a snapshot, the bytes of its chunks do not change
 *      (frame/commit.c). Positions are reused only when no reader needs them.
 *   3. The `generation` of a position (cv_layout_generation) changes before the handle's writer
 *      reuses the position, or a rollback frees it. No read of the handle runs then. Chunk files
 *      of a directory never reuse numbers.
 *   4. A block is added under the key that was made before its bytes were fetched.
 *
 * Eviction. A queue has two lines, `fresh` and `used`. A new block joins the end of `fresh`. The
 * next block to leave is the head of `used` if `fresh` has at most half of the bytes, else the head
 * that joined its line earlier. So when a program turns to other blocks, these replace all old
 * blocks step by step, not only half of them. If a head has uses left (at most seven), it is not
 * evicted: it loses one use and goes to the end of `used` (CLOCK with a small count).
 *
 * Hits by a scan (cv_sweep) do not count as uses. A block that a scan has finished is evicted next,
 * and its memory is reused while it is in the processor's cache. A prefetched block has the maximum
 * of uses until a read finds it. cv_cache_entrant describes which blocks are admitted.
 *
 * Threads: any thread may call any function except cv_cache_free. Locks are held briefly. */
#ifndef CV_ENGINE_CACHE_CACHE_H
#define CV_ENGINE_CACHE_CACHE_H

#include "base/status.h"
#include "base/thread.h"
#include "engine/plan/plan.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct cv_cache_key {
    uint64_t frame; /* cv_frame.id */
    int64_t object; /* cv_object: the frame, or a chunk file */
    uint64_t pos;   /* of the chunk in the object */
    uint32_t generation;
    int32_t block; /* number in the chunk */
} cv_cache_key;

/* How successive reads use a cached block. A scan reads the block once from end to end; its many
 * hits are no reason to keep the block, but repeated and random reads are. Any thread may call
 * cv_sweep_note; one of two concurrent notes may be lost. */
typedef struct cv_sweep {
    atomic_int_least64_t last; /* where the last part begins; -1: no part yet */
    atomic_int way; /* direction of the last step: 1 forward, -1 backward, 0 no step */
} cv_sweep;

typedef enum cv_step {
    CV_STEP_ON,   /* the first part, or one that follows in the same direction */
    CV_STEP_LAST, /* like CV_STEP_ON, but no items follow in its direction */
    CV_STEP_BACK  /* overlaps what was read before, or changes direction */
} cv_step;

void cv_sweep_init(cv_sweep *sweep);

/* Records the part of the block that a read uses. Returns how it follows the previous part. */
cv_step cv_sweep_note(cv_sweep *sweep, const cv_grid *grid, const cv_block_job *part);

/* A block in the cache, or being added. The user of the block owns `bytes`, `sweep` and
 * `is_rotated` (see walk.c); the cache owns the other members. */
typedef struct cv_cached {
    cv_cache_key key;
    uint64_t hash;
    struct cv_cached *chained; /* next in its bucket */
    struct cv_cached *before, *behind;
    size_t size; /* number of bytes */
    uint8_t *bytes;
    struct cv_slab *slab; /* the slab that `bytes` is a piece of; NULL: from malloc */
    cv_sweep sweep;
    bool is_rotated;
    bool ahead;    /* prefetched, and no read has found it yet; under the shard's lock */
    size_t queue;  /* index of its queue */
    uint64_t time; /* clock when it joined its line; under the queue's lock */
    bool is_used;  /* in the `used` line; under the queue's lock */
    /* Number of threads that read the block. Increased only under the shard's lock. */
    atomic_int pins;
    /* Uses left, up to 7. -1: a prefetched block was found for the first time and is not
     * released yet; this read does not count as a use. */
    atomic_int uses;
} cv_cached;

typedef struct cv_cache cv_cache;

enum { CV_CACHE_BYTES = 64 << 20 }; /* the default limit of the shared cache */

/* The cache of the process. After a fork, the child has its own copy. */
cv_cache *cv_cache_shared(void);

cv_status cv_cache_create(int64_t limit, cv_cache **out, cv_error *err);
void cv_cache_free(cv_cache *cache); /* does nothing for NULL and the shared cache */

/* Limits the bytes of entries with their overhead, and evicts the excess; 0 disables the cache. */
void cv_cache_set_limit(cv_cache *cache, int64_t limit);

int64_t cv_cache_limit(const cv_cache *cache);

/* Returns whether all blocks of an array with that grid fit into an otherwise empty cache. */
bool cv_cache_fits(const cv_cache *cache, const cv_grid *grid);

/* Returns the block, or NULL. The block cannot be evicted until cv_cache_release. */
cv_cached *cv_cache_find(cv_cache *cache, const cv_cache_key *key);

/* Releases a found block. `part` is the part of the block that a box read; NULL for other requests.
 * After the last step of a scan the block is evicted next, unless it has uses or the array fits. */
void cv_cache_release(cv_cache *cache, cv_cached *found, const cv_grid *grid,
                      const cv_block_job *part);

/* Returns whether the block is cached. Counts neither a hit nor a miss. */
bool cv_cache_holds(cv_cache *cache, const cv_cache_key *key);

/* Describes a block for admission. */
typedef struct cv_cache_entrant {
    size_t size;
    /* Bytes of all blocks that the request may add; 0: always admitted. A request gets at most
     * three quarters of the cache, less the bytes of used blocks. A larger request adds a share of
     * its blocks, chosen by hash, so that a repeated request finds the same share. */
    int64_t request_bytes;
    bool ahead; /* a prefetch: always admitted */
} cv_cache_entrant;

/* Reserves memory for a block. Returns NULL, which is not an error, if the block is not admitted or
 * memory is short. The caller writes the bytes; cv_cache_settle lets other threads find them. */
cv_cached *cv_cache_reserve(cv_cache *cache, const cv_cache_key *key,
                            const cv_cache_entrant *entrant);

/* Adds a reserved block if it is `good`, else frees it. `reserved` becomes invalid. */
void cv_cache_settle(cv_cache *cache, cv_cached *reserved, bool good);

/* Removes all blocks of a frame. None of them may be pinned. */
void cv_cache_forget(cv_cache *cache, uint64_t frame);

bool cv_cache_is_empty(const cv_cache *cache);

void cv_cache_measure(cv_cache *cache, caterva_cache_info *out);

#endif
