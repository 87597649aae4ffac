/* Prefetch: blocks decoded into the cache in the background, before anybody asks
 * for them.
 *
 * A handle has a queue of a few boxes. Pool threads take shares of the first one, a
 * few blocks of one chunk each, and put those that are missing into the cache, as a
 * read of the box would. The shares of all boxes in the queue together get half of
 * the cache; what is behind that is left out, and so is a box for which the queue has
 * no place: a prefetch is a hint.
 *
 * Of a far store a thread takes as many shares as there are, each a chunk's, up to
 * CV_PREFETCH_SHARES: their bytes are fetched together, then decoded.
 *
 * Each share reads what the handle shows at that moment, as any reader does, and
 * holds nothing of it longer. So it needs what readers need: that nobody writes
 * through the handle meanwhile. It takes no lock for it, on which a pool thread would
 * wait that the writer may want; who has the handle alone suspends the job. */
#ifndef CV_ENGINE_READ_PREFETCH_H
#define CV_ENGINE_READ_PREFETCH_H

#include "engine/plan/plan.h"
#include "engine/read/source.h"
#include "engine/run/pool.h"

enum { CV_PREFETCH_BOXES = 8, CV_PREFETCH_SHARES = 64 };

typedef struct cv_prefetch_box {
    int64_t start[CV_MAX_DIMS];
    int64_t stop[CV_MAX_DIMS];
    int64_t chunk,
        block;    /* the next share: of the k-th touched chunk, its j-th touched block */
    bool of_scan; /* made by read-ahead */
} cv_prefetch_box;

typedef struct cv_prefetch {
    cv_source (*source)(void *owner); /* what a read through the handle stands on */
    void *owner;
    cv_pool_job job;
    cv_watch watch; /* of what is fetched from a far store: told to stop */
    bool suspended; /* changed by who has the handle alone */
    cv_mutex lock;
    int64_t room; /* bytes that the boxes of the queue may still put in */
    int n_boxes;
    cv_prefetch_box boxes[CV_PREFETCH_BOXES];
} cv_prefetch;

/* On at most `threads` - 1 threads at once, the caller's being one. */
void cv_prefetch_init(cv_prefetch *prefetch, cv_source (*source)(void *owner), void *owner,
                      int threads);
void cv_prefetch_destroy(cv_prefetch *prefetch); /* cancels */

/* Queues the planned box and returns. `of_scan`: replaces a waiting scan's box. Any reading
 * thread. */
void cv_prefetch_add(cv_prefetch *prefetch, const cv_source *source, const cv_plan *plan,
                     bool of_scan);

/* For the exclusive user of the handle: waits for shares under way, one per thread (far
 * ones are given up), and later resumes. */
void cv_prefetch_suspend(cv_prefetch *prefetch);
void cv_prefetch_resume(cv_prefetch *prefetch);

/* The same as suspend, and the queue is emptied. */
void cv_prefetch_cancel(cv_prefetch *prefetch);

/* ---- Read-ahead ----
 *
 * A scan is recognised by its reads, and what it will decode next is
 * prefetched.
 *
 * A scan is boxes of one extent, each the one before shifted by the same step along
 * one axis. Blocks along that axis stand in layers; when a read of a scan has come to
 * a layer, the part of the next one that the scan will meet first is prefetched:
 *
 *      layer    |  now      |  next     |
 *      planes   | . . p     |   q       |     q: the first box of the scan that
 *                                             touches an item of a later layer
 *
 * Only a scan that is alone: when several threads read through the handle, or several
 * scans of the process are being read ahead of already, the processor has work.
 *
 * Which thread scans is looked up at each read and hardly ever written, so that
 * threads do not take cache lines from one another; what it has read is its own. */

typedef struct cv_scan {
    int64_t start[CV_MAX_DIMS]; /* the last box */
    int64_t stop[CV_MAX_DIMS];
    int axis;     /* along which it moved, or -1 */
    int64_t step; /* by so many items */
    int n_steps;  /* equal ones, one after another */
    int64_t next; /* first item of the box prefetched last, along the axis, or -1 */
} cv_scan;

typedef struct cv_read_ahead {
    bool off;
    atomic_uintptr_t thread;       /* that scans, or 0 */
    atomic_uint_least64_t seen;    /* when it read, in ns; not kept to the last read */
    atomic_uint_least64_t crowded; /* when another one did */
    char apart[64];                /* what all threads read from what one writes */
    atomic_flag busy;
    cv_scan scan; /* of the thread that holds `busy` */
} cv_read_ahead;

void cv_read_ahead_init(cv_read_ahead *ahead, bool off);

/* Called after each read of a box, by the reading thread. Any number of threads. */
void cv_read_ahead_note(cv_read_ahead *ahead, cv_prefetch *prefetch, const cv_source *source,
                        const cv_plan *plan);

/* Pure parts. Adds a box to the scan; true while it goes on in equal steps. */
bool cv_scan_add(cv_scan *scan, const cv_plan *plan);

/* What the scan first touches of a later layer: [*first, *last) of its axis. False:
 * nothing. */
bool cv_scan_next(const cv_scan *scan, const cv_grid *grid, int64_t *first, int64_t *last);

#endif
