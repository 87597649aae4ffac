/* Prefetch: decodes blocks into the cache in the background.
 *
 * A handle queues a few boxes. Pool threads take shares of the first box, a few blocks of one chunk
 * each, and cache the missing blocks as a read would. All queued boxes together may fill half of
 * the cache. Blocks beyond that are not prefetched, because a prefetch is only a hint.
 *
 * For a far store, a thread takes up to CV_PREFETCH_SHARES shares and fetches their bytes together.
 *
 * A share reads the present state of the handle, so no thread may write meanwhile. It takes no
 * lock, because the writer could be waiting for the share: instead, the exclusive user of the
 * handle suspends the job. */
#ifndef CV_ENGINE_READ_PREFETCH_H
#define CV_ENGINE_READ_PREFETCH_H

#include "engine/plan/plan.h"
#include "engine/read/source.h"
#include "engine/run/pool.h"

enum { CV_PREFETCH_BOXES = 8, CV_PREFETCH_SHARES = 64 };

typedef struct cv_prefetch_box {
    int64_t start[CV_MAX_DIMS];
    int64_t stop[CV_MAX_DIMS];
    int64_t chunk, block; /* the next share: k of cv_plan_chunk, j of cv_plan_block */
    bool of_scan;         /* queued by read-ahead */
} cv_prefetch_box;

typedef struct cv_prefetch {
    cv_source (*source)(void *owner); /* returns the source of a read through the handle */
    void *owner;
    cv_pool_job job;
    cv_watch watch; /* stops fetches from a far store */
    bool suspended; /* changed by the exclusive user of the handle */
    cv_mutex lock;
    int64_t room; /* bytes that the queued boxes may still add to the cache */
    int n_boxes;
    cv_prefetch_box boxes[CV_PREFETCH_BOXES];
} cv_prefetch;

/* At most `threads` - 1 pool threads work at once, because the caller works, too. */
void cv_prefetch_init(cv_prefetch *prefetch, cv_source (*source)(void *owner), void *owner,
                      int threads);
void cv_prefetch_destroy(cv_prefetch *prefetch); /* cancels first */

/* Queues the planned box. If `of_scan`, it replaces the waiting box of a scan. Any reading
 * thread. */
void cv_prefetch_add(cv_prefetch *prefetch, const cv_source *source, const cv_plan *plan,
                     bool of_scan);

/* For the exclusive user of the handle. cv_prefetch_suspend waits for shares under way (one for
 * each thread), or stops them if the store is far. cv_prefetch_resume continues with the queue. */
void cv_prefetch_suspend(cv_prefetch *prefetch);
void cv_prefetch_resume(cv_prefetch *prefetch);

/* Suspends the prefetch and empties its queue. */
void cv_prefetch_cancel(cv_prefetch *prefetch);

/* ---- Read-ahead ----
 *
 * Recognises scans by their reads, and prefetches the blocks that they will decode next.
 *
 * A scan is a series of boxes of equal extent, each shifted by the same step along one axis. Along
 * this axis, blocks form layers. When a scan enters a new layer, the part of the next layer that it
 * will touch first is prefetched:
 *
 *      layer    |  now      |  next     |
 *      planes   | . . p     |   q       |     p: the present box;  q: the first box of the
 *                                             scan that touches a later layer
 *
 * Handles a single scan only: with several readers or scans, all cores have work anyway. `thread`
 * is rarely written, so that threads do not contend for its cache line. */

typedef struct cv_scan {
    int64_t start[CV_MAX_DIMS]; /* the last box */
    int64_t stop[CV_MAX_DIMS];
    int axis;     /* the axis along which it moves, or -1 */
    int64_t step; /* in items */
    int n_steps;  /* equal steps in a row */
    int64_t next; /* first item, along the axis, of the last prefetched box; or -1 */
} cv_scan;

typedef struct cv_read_ahead {
    bool off;
    atomic_uintptr_t thread;       /* the scanning thread, or 0 */
    atomic_uint_least64_t seen;    /* time of its last read in ns, accurate to FRESH_NS */
    atomic_uint_least64_t crowded; /* time of the last read by another thread */
    char apart[64];                /* `scan` has another cache line */
    atomic_flag busy;
    cv_scan scan; /* used by the thread that holds `busy` */
} cv_read_ahead;

void cv_read_ahead_init(cv_read_ahead *ahead, bool off);

/* The reading thread calls this after each read of a box. Any number of threads. */
void cv_read_ahead_note(cv_read_ahead *ahead, cv_prefetch *prefetch, const cv_source *source,
                        const cv_plan *plan);

/* Adds a box to the scan. Returns true if the last steps were equal. Declared for tests. */
bool cv_scan_add(cv_scan *scan, const cv_plan *plan);

/* Returns, along the scan's axis, the first items [*first, *last) of a later layer that the scan
 * touches; false if it touches no later item. */
bool cv_scan_next(const cv_scan *scan, const cv_grid *grid, int64_t *first, int64_t *last);

#endif
