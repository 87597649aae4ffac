/* Reading a box. */
#ifndef CV_ENGINE_READ_H
#define CV_ENGINE_READ_H

#include "engine/read/walk_run.h"

/* Copies the planned box into `dst`, C order. Any thread. */
cv_status cv_read_box(const cv_source *source, const cv_plan *plan, void *dst, cv_error *err);

/* The same; a chunk that cannot be read does not end it. */
cv_status cv_read_box_skipping(const cv_source *source, const cv_plan *plan, void *dst,
                               const cv_skip *skip, cv_error *err);

#endif
