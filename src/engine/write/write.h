/* Boxes and selections written into what is pending. */
#ifndef CV_ENGINE_WRITE_WRITE_H
#define CV_ENGINE_WRITE_WRITE_H

#include "engine/pending/pending.h"
#include "engine/plan/plan.h"
#include "engine/plan/select_plan.h"

/* Fills blocks worker->wanted[0..*n) of the chunk, by number, into their dirty memory, from
 * the cache or decoded; the cache keeps none. After a failure *n are left whose memory is
 * undefined. */
cv_status cv_patch_fill(cv_pending *pending, const cv_dirty_chunk *dirty, cv_worker *worker,
                        int64_t *n, cv_error *err);

/* Writes the planned box from `src`, C order: covered chunks are encoded at once, other
 * blocks become dirty. One write at a time. */
cv_status cv_write_box(cv_pending *pending, const cv_plan *plan, const void *src,
                       cv_error *err);

/* Writes the selected items from the buffer whose first item is `src`: touched blocks
 * become dirty. The caller holds the handle alone. */
cv_status cv_select_write(cv_pending *pending, const cv_select_plan *plan, const uint8_t *src,
                          cv_error *err);

#endif
