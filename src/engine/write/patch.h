/* What a write into part of a block needs first: the block as it is stored. */
#ifndef CV_ENGINE_PATCH_H
#define CV_ENGINE_PATCH_H

#include "engine/pending/pending.h"

/* Puts blocks worker->wanted[0..*n) of the chunk, by their numbers, into their dirty
 * memory: those in the cache from there, the others decoded. None of them is kept:
 * what was stored of a dirty block nobody asks for. After a failure *n are left in the
 * list whose memory may hold nothing. */
cv_status cv_patch_fill(cv_pending *pending, const cv_dirty_chunk *dirty, cv_worker *worker,
                        int64_t *n, cv_error *err);

#endif
