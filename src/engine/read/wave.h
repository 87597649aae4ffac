/* A walk in waves, for bytes that are far: first the layouts of all touched chunks are read
 * together, then all their wanted blocks, which are decoded as they arrive. */
#ifndef CV_ENGINE_WAVE_H
#define CV_ENGINE_WAVE_H

#include "engine/read/walk.h"

/* Whether the chunks of the walk from number `first_chunk` on are better read in waves: the
 * store is far, or one look says that they are not in memory. */
bool cv_wave_is_worth(const cv_walk *walk, int64_t first_chunk);

/* Reads and delivers them, with up to `helpers` threads beside the caller's. Bounded memory,
 * however much is wanted. For deliveries that keep no order. */
cv_status cv_wave_run(const cv_walk *walk, int64_t first_chunk, int helpers, cv_error *err);

#endif
