/* The kind of selection that takes of each axis a slice or a list. */
#ifndef CV_ENGINE_SELECT_AXES_H
#define CV_ENGINE_SELECT_AXES_H

#include "engine/plan/select_kind.h"

/* Plans plan->axes. */
cv_status cv_select_axes_init(cv_select_plan *plan, cv_error *err);

/* All that a plan without lists takes of a chunk, as one part: of its places only the
 * buffer's are told. */
void cv_select_axes_chunk_part(const cv_select_plan *plan, const cv_select_chunk *chunk,
                               cv_part *out);

/* True when all steps are 1: [start, stop), `strides` and `buffer_pos` then say
 * all, and nothing was allocated. */
bool cv_select_plan_is_box(const cv_select_plan *plan, int64_t *start, int64_t *stop);

#endif
