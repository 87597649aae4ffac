/* Prefetch: blocks decoded into the cache in the background.
 *
 * A handle queues a few boxes. Pool threads take shares of the first one, a few blocks of
 * one chunk each, and cache the missing ones as a read would. All queued boxes together get
 * half of the cache; the excess is dropped, since a prefetch is a hint.
 *
 * For a far store a thread takes up to CV_PREFETCH_SHARES shares and fetches their bytes
 * together.
 *
 * A share reads the handle's present state, so nothing may be written meanwhile. It takes
 * no lock, which the writer could wait for: an exclusive user suspends the job. */
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
 * Recognises scans by their reads, and prefetches what they will decode next.
 *
 * A scan is boxes of one extent, each shifted by the same step along one axis, in which
 * blocks form layers. In each new layer, the part of the next one that the scan meets first
 * is prefetched:
 *
 *      layer    |  now      |  next     |
 *      planes   | . . p     |   q       |     q: the first box of the scan that
 *                                             touches an item of a later layer
 *
 * Only for a single scan: with several readers or scans the processor has work. The
 * scanning thread is rarely written, so that threads do not share cache lines. */

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
