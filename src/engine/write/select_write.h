/* Writing what a selection's plan names. */
#ifndef CV_ENGINE_SELECT_WRITE_H
#define CV_ENGINE_SELECT_WRITE_H

#include "engine/pending/pending.h"
#include "engine/plan/select_kind.h"

/* Writes the selected items from the buffer whose first item is `src`: touched blocks become
 * dirty. The caller holds the handle alone. */
cv_status cv_select_write(cv_pending *pending, const cv_select_plan *plan, const uint8_t *src,
                          cv_error *err);

#endif
