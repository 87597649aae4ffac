/* What chunks are, and the space that they take, without decoding any. */
#ifndef CV_ENGINE_READ_MEASURE_H
#define CV_ENGINE_READ_MEASURE_H

#include "base/watch.h"
#include "frame/frame.h"
#include <caterva_upkeep.h>

/* Counts stored and special chunks, live and dead bytes. */
cv_status cv_measure(cv_frame *frame, cv_snapshot *snapshot, cv_watch *watch,
                     caterva_space *out, cv_error *err);

/* One chunk's kind and place. */
cv_status cv_describe_chunk(cv_frame *frame, cv_snapshot *snapshot, int64_t chunk,
                            caterva_chunk_info *out, cv_error *err);

#endif
