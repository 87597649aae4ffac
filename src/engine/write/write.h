/* Writing a box into what is pending. */
#ifndef CV_ENGINE_WRITE_H
#define CV_ENGINE_WRITE_H

#include "engine/pending/pending.h"
#include "engine/plan/plan.h"

/* Takes the planned box from `src`, C order. Chunks that the box covers are
 * encoded at once; blocks of others become dirty. One write at a time. */
cv_status cv_write_box(cv_pending *pending, const cv_plan *plan, const void *src,
                       cv_error *err);

#endif
