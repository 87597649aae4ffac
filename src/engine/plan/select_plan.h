/* From a selection to its plan, whatever its kind. */
#ifndef CV_ENGINE_SELECT_PLAN_H
#define CV_ENGINE_SELECT_PLAN_H

#include "engine/plan/select_kind.h"

/* Plans a selection of at least one item; `strides` are the buffer's, bytes, one
 * for each axis of the result. `watch`, or NULL, hears of the sorting of very many items and
 * may stop it. Release with cv_select_plan_free, also after a failure. */
cv_status cv_select_plan_init(cv_select_plan *plan, const cv_selection *selection,
                              const int64_t *strides, cv_watch *watch, cv_error *err);
void cv_select_plan_free(cv_select_plan *plan);

#endif
