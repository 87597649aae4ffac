/* The chunk index of a committed state, read from the frame: one entry of it, or all. */
#ifndef CV_FRAME_INDEX_READ_H
#define CV_FRAME_INDEX_READ_H

#include "frame/chunk_ref.h"

/* The decoded index; reads and decodes it the first time. Any thread. */
cv_status cv_snapshot_index(cv_snapshot *snapshot, cv_store *store, const cv_index **out,
                            cv_error *err);

/* Where a chunk of the committed state is. The first few of a large index are
 * looked up in their block alone; who asks more often has it decoded whole. Any
 * thread. */
cv_status cv_snapshot_find(cv_snapshot *snapshot, cv_store *store, int64_t chunk,
                           cv_chunk_ref *out, cv_error *err);

#endif
