/* An entry of the block cache, and the hash table that finds it: a part of cache.c,
 * which has many of them and locks each. */
#ifndef CV_ENGINE_CACHE_TABLE_H
#define CV_ENGINE_CACHE_TABLE_H

#include "engine/cache/block_memory.h"
#include "engine/cache/cache_key.h"
#include "engine/cache/sweep.h"

#include <stdatomic.h>

struct cv_cached {
    cv_cache_key key;
    uint64_t hash;
    cv_cached *chained; /* next in its bucket */
    cv_cached *before, *behind;
    size_t size; /* of its bytes */
    cv_block_bytes memory;
    cv_sweep sweep;
    bool rotated;
    bool ahead;    /* not yet found; under the shard's lock, once in the table */
    size_t queue;  /* its number */
    uint64_t time; /* when it joined its line; under the queue's lock */
    bool is_used;  /* which line that is; the same */
    /* Grows under the shard's lock only. */
    atomic_int pins;
    /* Up to CV_CACHE_MOST_USES, since it was last at a head; -1: it came ahead and is
     * being used for the first time, which does not count. */
    atomic_int uses;
};

enum { CV_CACHE_FIRST_BUCKETS = 64 };

typedef struct cv_cache_table {
    cv_cached **buckets; /* `first`, or larger and owned */
    size_t n_buckets;    /* a power of two */
    size_t n_entries;
    cv_cached *first[CV_CACHE_FIRST_BUCKETS];
} cv_cache_table;

void cv_cache_table_init(cv_cache_table *table); /* of zeros */
void cv_cache_table_free(cv_cache_table *table); /* which is empty */

static inline cv_cached **cv_cache_bucket(const cv_cache_table *table, uint64_t hash)
{
    return &table->buckets[hash & (table->n_buckets - 1)];
}

/* The entry of this hash and key, or NULL. */
static inline cv_cached *cv_cache_table_find(const cv_cache_table *table, uint64_t hash,
                                             const cv_cache_key *key)
{
    cv_cached *entry = *cv_cache_bucket(table, hash);
    while (entry && !(entry->hash == hash && cv_is_same_key(&entry->key, key)))
        entry = entry->chained;
    return entry;
}

/* Entries carry their key and its hash. Without memory for more buckets chains grow. */
void cv_cache_table_add(cv_cache_table *table, cv_cached *entry);
void cv_cache_table_remove(cv_cache_table *table, cv_cached *entry);

#endif
