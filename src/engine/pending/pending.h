/* The uncommitted changes of a handle: chunks in the transaction, and dirty blocks, which are kept
 * decoded so that many small writes into one chunk cost one rebuild. The handle's lock admits
 * readers or one write; the threads of a write work on different chunks or blocks. */
#ifndef CV_ENGINE_PENDING_PENDING_H
#define CV_ENGINE_PENDING_PENDING_H

#include "base/heap.h"
#include "engine/run/pool.h"
#include "engine/run/worker.h"
#include "frame/txn.h"

/* The slot between encoding and storage: one encoded chunk, which another thread will put. */
typedef enum cv_behind_place {
    CV_PLACE_FREE,
    CV_PLACE_FULL,
    CV_PLACE_AT_WORK /* a thread puts the chunk */
} cv_behind_place;

typedef struct cv_behind {
    cv_pool_job job;
    cv_txn *txn;
    int cores;     /* of the machine */
    bool crowded;  /* other processes use the cores: the slot is not used */
    size_t least;  /* bytes; smaller encoded chunks are put directly */
    bool active;   /* between cv_behind_begin and cv_behind_end */
    cv_mutex lock; /* protects the members below */
    cv_behind_place place;
    int64_t chunk; /* number of the chunk in the slot */
    cv_buffer encoded;
    cv_status status; /* of the first put that failed, with `error` */
    cv_error error;
} cv_behind;

/* Puts the chunk into the transaction, now or on another thread; *encoded loses its contents.
 * Any thread of the request. */
cv_status cv_behind_put(cv_behind *behind, int64_t chunk, cv_buffer *encoded, cv_error *err);

/* Ends the request when its chunks are put. Returns `status` or, if CV_OK, that of the puts. */
cv_status cv_behind_end(cv_behind *behind, cv_status status, cv_error *err);

enum { CV_DIRTY_BUDGET = 64 << 20, CV_SPARE_BLOCKS = 64, CV_SPARE_BYTES = 8 << 20 };

/* The dirty blocks of one chunk, decoded; NULL where a block is clean. */
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
    cv_behind behind;       /* puts chunks while others are encoded */
    cv_watch *watch;        /* counts bytes decoded and encoded; or NULL */
    int64_t least_gathered; /* in decoded bytes; larger chunks are gathered during encoding */
    int64_t budget;         /* bytes of dirty blocks; above it they are flushed */
    uint8_t *fill;          /* the item that unwritten space has */
    cv_ref_kind fill_kind;  /* the index entry that expresses the fill */
    bool fill_is_stored;    /* no index entry can express the fill: chunks store it */
    bool fill_is_due;       /* new array: UNINIT chunks hold the fill */
    uint32_t fill_name;     /* name of a fill chunk's block table; 0: not yet known */
    bool broken;            /* a merge or a change of shape failed half-way */
    bool unsettled;         /* attributes that were set are not in the transaction */
    cv_mutex lock;          /* protects all members below during a write */
    int64_t bytes;
    cv_dirty_chunk **buckets;
    size_t n_buckets; /* a power of two, or 0 */
    size_t n_chunks;
    size_t n_whole;                   /* chunks whose blocks are all dirty */
    uint8_t *spares[CV_SPARE_BLOCKS]; /* memory of former dirty blocks */
    int n_spares;
} cv_pending;

cv_status cv_pending_create(cv_frame *frame, cv_workers *workers, int threads,
                            cv_pending **out, cv_error *err);
void cv_pending_free(cv_pending *pending); /* discards all changes */

/* Returns the state that includes pending changes; NULL if nothing is pending. */
cv_snapshot *cv_pending_state(const cv_pending *pending);

/* Returns the dirty blocks of a chunk, or NULL. For readers under the handle's lock, and for
 * the thread that works on the chunk. */
cv_dirty_chunk *cv_pending_find(cv_pending *pending, int64_t chunk);

/* Like cv_pending_find, but creates the entry if it is missing. */
cv_status cv_pending_get(cv_pending *pending, int64_t chunk, cv_dirty_chunk **out,
                         cv_error *err);

/* Makes block `block` dirty. *out is the block's memory, uninitialised. Several threads may add
 * different blocks of one chunk. */
cv_status cv_pending_add_block(cv_pending *pending, cv_dirty_chunk *dirty, int64_t block,
                               uint8_t **out, cv_error *err);

/* Makes a dirty block clean; its contents are lost. */
void cv_pending_remove_block(cv_pending *pending, cv_dirty_chunk *dirty, int64_t block);

/* Discards the dirty blocks of a chunk, if any. */
void cv_pending_drop(cv_pending *pending, int64_t chunk);

bool cv_pending_over_budget(cv_pending *pending);

/* cv_pending_idle returns the idle threads for each of `n_chunks` chunks that are worked on in
 * parallel. cv_pending_helpers returns how many of `idle` threads to wake for `n` jobs, which have
 * `bytes` decoded bytes together. */
int cv_pending_idle(const cv_pending *pending, int64_t n_chunks);
int cv_pending_helpers(int idle, int64_t n, int64_t bytes);

/* Begins a request of up to `n_chunks` chunks with `helpers` other threads. Until cv_behind_end,
 * chunks may be put while others are encoded. */
void cv_pending_put_behind(cv_pending *pending, int64_t n_chunks, int helpers);

/* Returns whether chunks are too small to be split among threads. Then a single wholly dirty chunk
 * is queued until there are others. */
bool cv_pending_queues(const cv_pending *pending);

/* Returns whether enough wholly dirty chunks wait to keep all threads busy. */
bool cv_pending_queue_is_full(const cv_pending *pending);

/* Sets the fill to `item`; NULL: zeros. */
cv_status cv_pending_set_fill(cv_pending *pending, const uint8_t *item, cv_error *err);

/* Makes the fill the value of every chunk of a new array. If no index entry can express the fill,
 * the index has UNINIT entries until the first commit stores the fill in chunks. */
void cv_pending_fill(cv_pending *pending);

/* Finds a chunk, including pending changes and the fill. Any thread. */
cv_status cv_pending_where(cv_pending *pending, int64_t chunk, cv_chunk_ref *out,
                           cv_error *err);

/* Renumbers dirty chunks after cv_txn_reshape from grid `from`. Discards chunks outside. */
void cv_pending_renumber(cv_pending *pending, const cv_reshape *reshape, const cv_grid *from);

/* Checks whether a change may begin. CATERVA_EIO: the state on disk is unknown; CATERVA_EROLLBACK:
 * a rollback is needed. */
cv_status cv_pending_check(const cv_pending *pending, cv_error *err);

/* Checks only whether a rollback is needed; for readers of pending changes. */
cv_status cv_pending_check_whole(const cv_pending *pending, cv_error *err);

void cv_pending_rollback(cv_pending *pending);

#endif
