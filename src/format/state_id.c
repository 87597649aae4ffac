/* Room: format. Identifiers of states; pure. */
#include "format/state_id.h"

#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

/* Each part is hashed with the hash of those before it as its seed, so that bytes that move
 * from one part to the next change the result. */
void cv_state_id(const cv_state_part *parts, size_t n, uint8_t out[CV_STATE_ID])
{
    XXH128_hash_t hash = {0};
    for (size_t i = 0; i < n; i++) {
        XXH128_hash_t part = XXH3_128bits_withSeed(parts[i].bytes, parts[i].size, hash.low64);
        hash.low64 = part.low64;
        hash.high64 = (hash.high64 << 1 | hash.high64 >> 63) ^ part.high64;
    }
    XXH128_canonical_t canonical;
    XXH128_canonicalFromHash(&canonical, hash);
    memcpy(out, canonical.digest, CV_STATE_ID);
}
