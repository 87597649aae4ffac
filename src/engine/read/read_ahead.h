/* Read-ahead: a scan is recognised by its reads, and what it will decode next is
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
#ifndef CV_ENGINE_READ_AHEAD_H
#define CV_ENGINE_READ_AHEAD_H

#include "engine/read/prefetch.h"

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

/* After each read of a box through the handle, by the thread that read. Any number
 * of threads. */
void cv_read_ahead_note(cv_read_ahead *ahead, cv_prefetch *prefetch, const cv_source *source,
                        const cv_plan *plan);

/* The parts of it that only compute. Adds a box to the scan; true when it goes on in
 * equal steps. */
bool cv_scan_add(cv_scan *scan, const cv_plan *plan);

/* What a scan at this box will touch first of a later layer: [*first, *last) along its
 * axis. False: nothing is left. */
bool cv_scan_next(const cv_scan *scan, const cv_grid *grid, int64_t *first, int64_t *last);

#endif
