/* Verification of a whole array. */
#ifndef CV_UPKEEP_VERIFY_H
#define CV_UPKEEP_VERIFY_H

#include "engine/read/read.h"
#include <caterva_upkeep.h>

static inline bool cv_is_lost(const uint8_t *lost, int64_t chunk)
{
    return lost[chunk / 8] >> chunk % 8 & 1;
}

/* Checks chunks and attributes of the source's snapshot as caterva_verify does. The options are
 * complete. The committed state must not change meanwhile. `lost` (or NULL) has one bit for each
 * chunk, which is set if the chunk is damaged or shares bytes with another. */
cv_status cv_verify(const cv_source *source, const caterva_verify_options *options,
                    uint8_t *lost, caterva_verify_result *result, cv_error *err);

#endif
