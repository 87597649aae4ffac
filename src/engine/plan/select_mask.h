/* The kind of selection that is a mask of the array's shape. */
#ifndef CV_ENGINE_SELECT_MASK_H
#define CV_ENGINE_SELECT_MASK_H

#include "engine/plan/select_kind.h"

/* Plans plan->mask; as points, where few items are selected. */
cv_status cv_select_mask_init(cv_select_plan *plan, cv_error *err);

#endif
