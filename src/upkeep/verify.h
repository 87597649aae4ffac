/* Checking a whole array. */
#ifndef CV_UPKEEP_VERIFY_H
#define CV_UPKEEP_VERIFY_H

#include "engine/read/read.h"
#include <caterva_upkeep.h>

static inline bool cv_is_lost(const uint8_t *lost, int64_t chunk)
{
    return lost[chunk / 8] >> chunk % 8 & 1;
}

/* Checks every chunk of the source's snapshot, and its attributes, as caterva_verify
 * says; options are complete. What is committed must stay what it is until the end.
 * `lost`, where it is not NULL, has a bit for each chunk, which is set when the chunk is
 * damaged; of two that share bytes both are. */
cv_status cv_verify(const cv_source *source, const caterva_verify_options *options,
                    uint8_t *lost, caterva_verify_result *result, cv_error *err);

#endif
