/* What the cache keeps of a walk; walk.h says by which rule. */
#ifndef CV_ENGINE_WALK_KEEP_H
#define CV_ENGINE_WALK_KEEP_H

#include "engine/read/walk_chunk.h"

/* All of the array fits the cache of the walk, which has one. */
bool cv_walk_array_fits(const cv_walk *walk);

/* Fills the chunk's sink, for blocks that are decoded: the delivery has them, and the cache
 * those that it keeps. */
void cv_walk_connect(cv_walk_chunk *chunk);

#endif
