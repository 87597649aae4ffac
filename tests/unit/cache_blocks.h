/* Blocks for a cache that a test creates: their bytes identify their key. */
#ifndef UNIT_CACHE_BLOCKS_H
#define UNIT_CACHE_BLOCKS_H

#include "engine/cache/cache.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { BLOCK = 1024 };

static inline cv_cache *make_cache(int64_t limit)
{
    cv_cache *cache = NULL;
    assert_int_equal(cv_cache_create(limit, &cache, NULL), CV_OK);
    return cache;
}

static inline cv_cache_key key_of(int64_t block)
{
    return (cv_cache_key){.frame = 1, .object = -1, .pos = 64, .block = (int32_t)block};
}

/* Fills in bytes that identify the key. */
static inline void fill(uint8_t *bytes, const cv_cache_key *key)
{
    memset(bytes, (int)(key->block * 7 + (int)key->generation), BLOCK);
    memcpy(bytes, key, sizeof *key);
}

static inline void insert(cv_cache *cache, const cv_cache_key *key, const void *bytes,
                          size_t size)
{
    const cv_cache_entrant entrant = {.size = size};
    cv_cached *room = cv_cache_reserve(cache, key, &entrant);
    if (!room) return;
    memcpy(room->bytes, bytes, size);
    cv_cache_settle(cache, room, true);
}

static inline void put(cv_cache *cache, const cv_cache_key *key)
{
    uint8_t bytes[BLOCK];
    fill(bytes, key);
    insert(cache, key, bytes, BLOCK);
}

/* 1: found and right, 0: not found, -1: found and wrong. */
static inline int look(cv_cache *cache, const cv_cache_key *key)
{
    uint8_t expected[BLOCK];
    cv_cached *found = cv_cache_find(cache, key);
    if (!found) return 0;
    fill(expected, key);
    bool right = memcmp(found->bytes, expected, BLOCK) == 0;
    cv_cache_release(cache, found, NULL, NULL);
    return right ? 1 : -1;
}

static inline caterva_cache_info counts_of(cv_cache *cache)
{
    caterva_cache_info counts = CATERVA_CACHE_INFO_INIT;
    cv_cache_measure(cache, &counts);
    return counts;
}

#endif
