/* Room: engine/cache. The hash tables of the block cache. Nothing here locks. */
#include "engine/cache/cache_table.h"

#include "base/heap.h"

#include <string.h>

void cv_cache_table_init(cv_cache_table *t)
{
    t->buckets = t->first;
    t->n_buckets = CV_CACHE_FIRST_BUCKETS;
}

void cv_cache_table_free(cv_cache_table *t)
{
    if (t->buckets != t->first) cv_free(t->buckets);
}

static void add_to_bucket(cv_cache_table *t, cv_cached *entry)
{
    cv_cached **bucket = cv_cache_bucket(t, entry->hash);
    entry->chained = *bucket;
    *bucket = entry;
}

/* Twice the buckets, once they have an entry each. Without memory the chains
 * grow instead. */
static void grow(cv_cache_table *t)
{
    size_t n_old = t->n_buckets;
    cv_cached **old = t->buckets;
    cv_cached **buckets = cv_calloc(n_old * 2, sizeof buckets[0]);
    if (!buckets) return;
    t->buckets = buckets;
    t->n_buckets = n_old * 2;
    for (size_t i = 0; i < n_old; i++) {
        for (cv_cached *e = old[i], *next; e; e = next) {
            next = e->chained;
            add_to_bucket(t, e);
        }
    }
    if (old != t->first) cv_free(old);
}

void cv_cache_table_add(cv_cache_table *t, cv_cached *entry)
{
    if (t->n_entries >= t->n_buckets) grow(t);
    add_to_bucket(t, entry);
    t->n_entries++;
}

void cv_cache_table_remove(cv_cache_table *t, cv_cached *entry)
{
    cv_cached **link = cv_cache_bucket(t, entry->hash);
    while (*link != entry) link = &(*link)->chained;
    *link = entry->chained;
    if (--t->n_entries > 0 || t->buckets == t->first) return;
    cv_free(t->buckets); /* an empty one needs no memory */
    memset(t->first, 0, sizeof t->first);
    t->buckets = t->first;
    t->n_buckets = CV_CACHE_FIRST_BUCKETS;
}
