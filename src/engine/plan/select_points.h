/* The kind of selection that is a list of points. */
#ifndef CV_ENGINE_SELECT_POINTS_H
#define CV_ENGINE_SELECT_POINTS_H

#include "engine/plan/select_kind.h"

/* Plans `n` points, as in cv_selection. */
cv_status cv_select_points_init(cv_select_plan *plan, const int64_t *points, int64_t n,
                                cv_error *err);

/* Plans plan->mask, of which few items are selected, as points. */
cv_status cv_select_few_init(cv_select_plan *plan, cv_error *err);

#endif
