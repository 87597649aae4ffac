/* Writes boxes and selections into pending changes. */
#ifndef CV_ENGINE_WRITE_WRITE_H
#define CV_ENGINE_WRITE_WRITE_H

#include "engine/pending/pending.h"
#include "engine/plan/plan.h"
#include "engine/plan/select_plan.h"

/* Decodes the blocks worker->wanted[0..*n) of the chunk, by number, to their dirty memory. Uses
 * cached blocks, but caches no block. After a failure, worker->wanted[0..*n) are undefined. */
cv_status cv_patch_fill(cv_pending *pending, const cv_dirty_chunk *dirty, cv_worker *worker,
                        int64_t *n, cv_error *err);

/* Writes the planned box from `src`, in C order. Encodes chunks that the box covers; touched blocks
 * of other chunks become dirty. One write at a time. */
cv_status cv_write_box(cv_pending *pending, const cv_plan *plan, const void *src,
                       cv_error *err);

/* Writes the selected items from the buffer whose first item is `src`; touched blocks become
 * dirty. The caller has exclusive use of the handle. */
cv_status cv_select_write(cv_pending *pending, const cv_select_plan *plan, const uint8_t *src,
                          cv_error *err);

#endif
