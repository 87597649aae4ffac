/* The whole walk at once. */
#ifndef CV_ENGINE_WALK_RUN_H
#define CV_ENGINE_WALK_RUN_H

#include "engine/read/damage.h"
#include "engine/read/walk.h"

/* What a read puts in the place of damaged chunks, and whom it tells; calls never
 * overlap, any thread. */
typedef struct cv_skip {
    const uint8_t *fill; /* one item; NULL: zeros */
    cv_damage_sink sink;
} cv_skip;

/* Walks over all of it, on as many threads as are worth waking. */
cv_status cv_walk_run(cv_walk *walk, cv_error *err);

/* The same; a chunk that cannot be read does not end it. The delivery has fill_chunk, or
 * fill. */
cv_status cv_walk_run_skipping(cv_walk *walk, const cv_skip *skip, cv_error *err);

#endif
