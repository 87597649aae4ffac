/* What a write into part of a block needs first: the block as it is stored. */
#ifndef CV_ENGINE_PATCH_H
#define CV_ENGINE_PATCH_H

#include "engine/pending/pending.h"

/* Decodes blocks worker->wanted[0..n) of the chunk at `ref` (cv_pending_where),
 * whose tags are their numbers, into their dirty memory. */
cv_status cv_patch_decode(const cv_pending *pending, const cv_dirty_chunk *dirty,
                          const cv_chunk_ref *ref, cv_worker *worker, int64_t n,
                          cv_error *err);

#endif
