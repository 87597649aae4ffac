/* What a handle has written and not committed: chunks in the transaction, and decoded dirty
 * blocks that wait, so that many small writes into one chunk cost one rebuild. The handle's
 * lock admits readers or one write; threads of a write work on separate chunks or blocks. */
#ifndef CV_ENGINE_PENDING_PENDING_H
#define CV_ENGINE_PENDING_PENDING_H

#include "base/heap.h"
#include "engine/run/pool.h"
#include "engine/run/worker.h"
#include "frame/txn.h"

/* The place between encoding and storage, where one chunk waits that another thread puts. */
typedef enum cv_behind_place {
    CV_PLACE_FREE,
    CV_PLACE_FULL,
    CV_PLACE_AT_WORK
} cv_behind_place;

typedef struct cv_behind {
    cv_pool_job job;
    cv_txn *txn;
    int cores;     /* of the machine */
    bool crowded;  /* other processes encode on them: there is none for this */
    size_t least;  /* bytes of an encoded chunk that is worth it */
    bool active;   /* between begin and end */
    cv_mutex lock; /* of all below */
    cv_behind_place place;
    int64_t chunk; /* whose it is */
    cv_buffer encoded;
    cv_status status; /* of the first one that could not be put */
    cv_error error;
} cv_behind;

/* Puts the chunk, now or soon; *encoded loses its contents. Any thread of the request. */
cv_status cv_behind_put(cv_behind *behind, int64_t chunk, cv_buffer *encoded, cv_error *err);

/* Ends the request: returns when all is put, with `status` or the first failure of a put. */
cv_status cv_behind_end(cv_behind *behind, cv_status status, cv_error *err);

enum { CV_DIRTY_BUDGET = 64 << 20, CV_SPARE_BLOCKS = 64, CV_SPARE_BYTES = 8 << 20 };

/* The dirty blocks of one chunk, decoded, NULL where a block is clean. */
typedef struct cv_dirty_chunk {
    int64_t chunk;
    int64_t n_dirty;
    struct cv_dirty_chunk *next; /* in its bucket */
    uint8_t *blocks[];           /* n_blocks of the grid */
} cv_dirty_chunk;

typedef struct cv_pending {
    cv_frame *frame;
    cv_txn *txn;
    cv_workers *workers;
    int threads;
    cv_behind behind;       /* chunks that are put while others are encoded */
    cv_watch *watch;        /* who hears of what is decoded and encoded; or NULL */
    int64_t least_gathered; /* decoded bytes of a chunk that is gathered as it is encoded */
    int64_t budget;         /* bytes of dirty blocks; above it they are flushed */
    uint8_t *fill;          /* one item: what cells hold that nobody has written */
    cv_ref_kind fill_kind;  /* how the index says so */
    bool fill_is_stored;    /* it cannot: a chunk of the repeated item is stored */
    bool fill_is_due;       /* new: UNINIT chunks hold the fill */
    uint32_t fill_name;     /* of the block table of a stored fill; 0: not known yet */
    bool broken;            /* a merge, or a change of shape, failed half-way */
    cv_mutex lock;          /* guards all below inside a write */
    int64_t bytes;
    cv_dirty_chunk **buckets;
    size_t n_buckets; /* a power of two, or 0 */
    size_t n_chunks;
    size_t n_whole;                   /* of them, those that are dirty to their last block */
    uint8_t *spares[CV_SPARE_BLOCKS]; /* memory of former dirty blocks */
    int n_spares;
} cv_pending;

cv_status cv_pending_create(cv_frame *frame, cv_workers *workers, int threads,
                            cv_pending **out, cv_error *err);
void cv_pending_free(cv_pending *pending); /* drops everything */

/* The state with what is pending; NULL: nothing is, a commit would change nothing. */
cv_snapshot *cv_pending_state(const cv_pending *pending);

/* The dirty blocks of a chunk, or NULL. For readers under the handle's lock and the chunk's
 * thread. */
cv_dirty_chunk *cv_pending_find(cv_pending *pending, int64_t chunk);

/* The same, made when missing. */
cv_status cv_pending_get(cv_pending *pending, int64_t chunk, cv_dirty_chunk **out,
                         cv_error *err);

/* Makes block `block` dirty; *out is its memory, undefined at first. Threads may add
 * different blocks of one chunk. */
cv_status cv_pending_add_block(cv_pending *pending, cv_dirty_chunk *dirty, int64_t block,
                               uint8_t **out, cv_error *err);

/* Makes a dirty block clean again: what was written to it is lost. */
void cv_pending_remove_block(cv_pending *pending, cv_dirty_chunk *dirty, int64_t block);

/* Forgets the dirty blocks of a chunk, if any. */
void cv_pending_drop(cv_pending *pending, int64_t chunk);

bool cv_pending_over_budget(cv_pending *pending);

/* Idle threads for each of `n_chunks` parallel chunks, and how many of them are worth
 * waking for `n` jobs of `bytes` decoded bytes. */
int cv_pending_idle(const cv_pending *pending, int64_t n_chunks);
int cv_pending_helpers(int idle, int64_t n, int64_t bytes);

/* Puts chunks while others are encoded, for up to `n_chunks` with `helpers` other threads,
 * until cv_behind_end. */
void cv_pending_put_behind(cv_pending *pending, int64_t n_chunks, int helpers);

/* Whether chunks are too small to be cut among threads: a single wholly dirty one then
 * waits for others. */
bool cv_pending_queues(const cv_pending *pending);

/* True when enough of them wait to keep all threads busy. */
bool cv_pending_queue_is_full(const cv_pending *pending);

/* Sets what new cells hold: `item`, or zeros for NULL. */
cv_status cv_pending_set_fill(cv_pending *pending, const uint8_t *item, cv_error *err);

/* Makes every chunk of a new array the fill. If no index entry can express it, the index
 * says UNINIT until the first commit stores it. */
void cv_pending_fill(cv_pending *pending);

/* Where a chunk is, pending changes and a fill that is due included. Any thread. */
cv_status cv_pending_where(cv_pending *pending, int64_t chunk, cv_chunk_ref *out,
                           cv_error *err);

/* Renumbers dirty blocks after cv_txn_reshape, and drops those of dropped chunks; `from` is
 * the old grid. */
void cv_pending_renumber(cv_pending *pending, const cv_reshape *reshape, const cv_grid *from);

/* Before a change: CATERVA_EIO if the disk's state is unknown, CATERVA_EROLLBACK if a
 * rollback is needed. */
cv_status cv_pending_check(const cv_pending *pending, cv_error *err);

/* The latter alone: for who reads what is pending. */
cv_status cv_pending_check_whole(const cv_pending *pending, cv_error *err);

void cv_pending_rollback(cv_pending *pending);

#endif
