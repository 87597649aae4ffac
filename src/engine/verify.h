/* Checking a whole array. */
#ifndef CV_ENGINE_VERIFY_H
#define CV_ENGINE_VERIFY_H

#include "engine/worker.h"

/* Checks every chunk of a snapshot, and its attributes. As caterva_verify says;
 * options are complete. */
cv_status cv_verify(cv_frame *frame, cv_snapshot *snapshot, cv_workers *workers, int threads,
                    const caterva_verify_options *options, caterva_verify_result *result,
                    cv_error *err);

/* Counts stored and special chunks, live and dead bytes. */
cv_status cv_measure(cv_frame *frame, cv_snapshot *snapshot, caterva_space *out,
                     cv_error *err);

/* One chunk's kind and place. */
cv_status cv_describe_chunk(cv_frame *frame, cv_snapshot *snapshot, int64_t chunk,
                            caterva_chunk_info *out, cv_error *err);

#endif
