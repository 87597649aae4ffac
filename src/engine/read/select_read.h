/* Reading what a selection's plan names. */
#ifndef CV_ENGINE_SELECT_READ_H
#define CV_ENGINE_SELECT_READ_H

#include "engine/items/convert.h"
#include "engine/plan/select_kind.h"
#include "engine/read/walk_run.h"

/* Copies the selected items to the buffer whose first item is `dst`. With a conversion
 * (NULL: none) the plan is of a grid whose items have the converted size. Any thread. */
cv_status cv_select_read(const cv_source *source, const cv_select_plan *plan,
                         const cv_conversion *conversion, uint8_t *dst, cv_error *err);

/* The same; a chunk that cannot be read does not end it. */
cv_status cv_select_read_skipping(const cv_source *source, const cv_select_plan *plan,
                                  const cv_conversion *conversion, uint8_t *dst,
                                  const cv_skip *skip, cv_error *err);

#endif
