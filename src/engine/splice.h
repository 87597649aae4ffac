/* Rebuilding a chunk at the cost of its dirty blocks. */
#ifndef CV_ENGINE_SPLICE_H
#define CV_ENGINE_SPLICE_H

#include "engine/pending.h"

/* Encodes the dirty blocks, copies the compressed bytes of all others as they
 * are, and leaves the new chunk in worker->encoded. *spliced is false, and
 * nothing done, where that cannot be: the stored chunk is memcpyed, has a
 * dictionary or delta, was encoded another way, or the result would be larger
 * than the data; the chunk must then be encoded whole. The one place that
 * decides. */
cv_status cv_splice_chunk(cv_pending *pending, cv_worker *worker, const cv_dirty_chunk *dirty,
                          bool *spliced, cv_error *err);

#endif
