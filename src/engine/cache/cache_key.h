/* A block in the cache by name, what it is found by, and the hash of that. What a key
 * means, and why it never names a stale block, is told in cache.h. */
#ifndef CV_ENGINE_CACHE_KEY_H
#define CV_ENGINE_CACHE_KEY_H

#include <stdbool.h>
#include <stdint.h>

/* A block in the cache; what it is made of is the cache's business (cache_table.h). */
typedef struct cv_cached cv_cached;

typedef struct cv_cache_key {
    uint64_t frame; /* cv_frame.id */
    int64_t object; /* cv_object: the frame, or a chunk file */
    uint64_t pos;   /* of the chunk in the object */
    uint32_t generation;
    int32_t block; /* number in the chunk */
} cv_cache_key;

static inline bool cv_is_same_key(const cv_cache_key *a, const cv_cache_key *b)
{
    return a->pos == b->pos && a->block == b->block && a->frame == b->frame &&
           a->object == b->object && a->generation == b->generation;
}

static inline uint64_t cv_mix(uint64_t x)
{
    x ^= x >> 32; /* the finisher of SplitMix64's kin: Pelle Evensen's rrmxmx, cut */
    x *= UINT64_C(0xd6e8feb86659fd93);
    x ^= x >> 32;
    x *= UINT64_C(0xd6e8feb86659fd93);
    return x ^ x >> 32;
}

static inline uint64_t cv_hash_of_key(const cv_cache_key *key)
{
    uint64_t chunk = key->pos + UINT64_C(0x9e3779b97f4a7c15) * (uint64_t)key->object;
    uint64_t rest = key->frame << 40 ^ (uint64_t)key->generation << 20 ^ (uint64_t)key->block;
    return cv_mix(cv_mix(chunk) + rest);
}

#endif
