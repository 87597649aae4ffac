/* Room: frame. Keeps layouts, and tells the chunks apart that one position held. */
#include "frame/layout_cache.h"

#include "base/arith.h"
#include "base/heap.h"

#include <stdlib.h>
#include <string.h>

enum { STRIPES = 16, WAYS = 4, MIN_SETS = 2, MAX_SETS = 1024, CACHE_BYTES = 4 << 20 };
enum { GENERATIONS = 256 };

/* A chunk has one set, chosen by its hash, and any place in it; who was used
 * last stands first, and a newcomer takes the place of the last. */
typedef struct set {
    cv_layout *ways[WAYS];
} set;

/* Every STRIPES-th set, under a lock that is held for a few instructions only. A cache
 * line of its own: threads that want different chunks do not meet. Sets are made when
 * the first layout is kept: most handles read a few chunks, and opening one that reads
 * none should not pay for them. */
typedef struct stripe {
    _Alignas(64) cv_mutex lock;
    set *sets; /* or NULL */
} stripe;

struct cv_layout_cache {
    cv_store *store;
    stripe stripes[STRIPES];
    atomic_uint generations[GENERATIONS]; /* shared by all positions of one hash */
    size_t n_sets;                        /* of all stripes */
    cv_mutex lock;                        /* over these: */
    bool has_looked;
    cv_layout_records *records; /* of the first snapshot that was read; or NULL */
};

cv_layout_cache *cv_layout_cache_new(cv_store *store, int64_t n_blocks)
{
    int64_t each = (int64_t)(sizeof(cv_block_range) + sizeof(uint32_t));
    int64_t entry = (int64_t)sizeof(cv_layout) + n_blocks * each;
    int64_t n = cv_max_i64(MIN_SETS, cv_min_i64(MAX_SETS, CACHE_BYTES / entry / WAYS));
    cv_layout_cache *cache = cv_aligned_alloc(_Alignof(cv_layout_cache), sizeof *cache);
    if (!cache) return NULL;
    memset(cache, 0, sizeof *cache);
    cache->store = store;
    cache->n_sets = (size_t)n;
    for (int i = 0; i < STRIPES; i++) cv_mutex_init(&cache->stripes[i].lock);
    cv_mutex_init(&cache->lock);
    return cache;
}

static size_t sets_of_stripe(const cv_layout_cache *cache)
{
    return (cache->n_sets + STRIPES - 1) / STRIPES;
}

static void release_sets(const cv_layout_cache *cache, stripe *s)
{
    for (size_t i = 0; s->sets && i < sets_of_stripe(cache); i++)
        for (int way = 0; way < WAYS; way++) cv_layout_release(s->sets[i].ways[way]);
    cv_free(s->sets);
    s->sets = NULL;
}

void cv_layout_cache_free(cv_layout_cache *cache)
{
    if (!cache) return;
    for (int i = 0; i < STRIPES; i++) {
        release_sets(cache, &cache->stripes[i]);
        cv_mutex_destroy(&cache->stripes[i].lock);
    }
    cv_mutex_destroy(&cache->lock);
    cv_free(cache->records);
    cv_free(cache);
}

void cv_layout_cache_clear(cv_layout_cache *cache)
{
    for (int i = 0; i < GENERATIONS; i++) atomic_fetch_add(&cache->generations[i], 1);
    for (int i = 0; i < STRIPES; i++) {
        cv_mutex_lock(&cache->stripes[i].lock);
        release_sets(cache, &cache->stripes[i]);
        cv_mutex_unlock(&cache->stripes[i].lock);
    }
}

static uint64_t hash_of(cv_object object, uint64_t pos)
{
    uint64_t key = pos ^ ((uint64_t)object << 32);
    return key * UINT64_C(0x9e3779b97f4a7c15); /* 2^64 / golden ratio: Knuth's hash */
}

static size_t set_of(const cv_layout_cache *cache, cv_object object, uint64_t pos)
{
    return (size_t)(hash_of(object, pos) >> 32) % cache->n_sets;
}

/* The set of a chunk, the stripe's lock held; NULL: it has none yet. */
static set *lock_set(cv_layout_cache *cache, cv_object object, uint64_t pos, stripe **locked)
{
    size_t i = set_of(cache, object, pos);
    stripe *s = *locked = &cache->stripes[i % STRIPES];
    cv_mutex_lock(&s->lock);
    return s->sets ? &s->sets[i / STRIPES] : NULL;
}

/* The same for one that is needed; NULL: no memory. */
static set *lock_new_set(cv_layout_cache *cache, cv_object object, uint64_t pos,
                         stripe **locked)
{
    set *found = lock_set(cache, object, pos, locked);
    if (found) return found;
    (*locked)->sets = cv_calloc(sets_of_stripe(cache), sizeof(set));
    return (*locked)->sets ? &(*locked)->sets[set_of(cache, object, pos) / STRIPES] : NULL;
}

/* Where the chunk stands in its set, if it has one; WAYS: nowhere. */
static int way_of(const set *s, cv_object object, uint64_t pos)
{
    int way = s ? 0 : WAYS;
    while (way < WAYS &&
           !(s->ways[way] && s->ways[way]->pos == pos && s->ways[way]->object == object))
        way++;
    return way;
}

/* Puts `first` before those that stood before `way`, and returns who stood there. */
static cv_layout *push_first(set *s, int way, cv_layout *first)
{
    cv_layout *gone = s->ways[way];
    for (; way > 0; way--) s->ways[way] = s->ways[way - 1];
    s->ways[0] = first;
    return gone;
}

static size_t generation_of(cv_object object, uint64_t pos)
{
    return (size_t)(hash_of(object, pos) >> 32) % GENERATIONS;
}

uint32_t cv_layout_generation(const cv_layout_cache *cache, cv_object object, uint64_t pos)
{
    return atomic_load_explicit(&cache->generations[generation_of(object, pos)],
                                memory_order_relaxed);
}

/* One that was read before its chunk was sealed is not what is looked for. */
static cv_layout *lookup(cv_layout_cache *cache, const cv_chunk_ref *ref, uint32_t name)
{
    stripe *locked;
    set *s = lock_set(cache, ref->object, ref->pos, &locked);
    int way = way_of(s, ref->object, ref->pos);
    cv_layout *found = way < WAYS && s->ways[way]->name == name ? s->ways[way] : NULL;
    if (found) {
        atomic_fetch_add_explicit(&found->references, 1, memory_order_relaxed);
        if (way > 0) push_first(s, way, found);
    }
    cv_mutex_unlock(&locked->lock);
    return found;
}

void cv_layout_cache_forget(cv_layout_cache *cache, cv_object object, uint64_t pos)
{
    atomic_fetch_add(&cache->generations[generation_of(object, pos)], 1);
    stripe *locked;
    set *s = lock_set(cache, object, pos, &locked);
    int way = way_of(s, object, pos);
    cv_layout *found = way < WAYS ? s->ways[way] : NULL;
    if (found) s->ways[way] = NULL;
    cv_mutex_unlock(&locked->lock);
    cv_layout_release(found);
}

/* Another thread may have been faster; there is one of a chunk all the same. Without
 * memory for its set it is not kept. */
void cv_layout_keep(cv_layout_cache *cache, const cv_chunk_ref *ref, cv_layout *layout)
{
    stripe *locked;
    atomic_fetch_add_explicit(&layout->references, 1, memory_order_relaxed);
    set *s = lock_new_set(cache, ref->object, ref->pos, &locked);
    int way = way_of(s, ref->object, ref->pos);
    cv_layout *gone = s ? push_first(s, way < WAYS ? way : WAYS - 1, layout) : layout;
    cv_mutex_unlock(&locked->lock);
    cv_layout_release(gone);
}

/* ---- Records ------------------------------------------------------------ */

/* Only what is read from afar comes with its end at hand; a writer's states change. What
 * cannot be read is as good as none. */
const cv_layout_records *cv_layout_cache_records(cv_layout_cache *cache,
                                                 const cv_snapshot *snapshot)
{
    cv_store *store = cache->store;
    if (!store->is_far || !store->ops->view || store->writable) return NULL;
    cv_mutex_lock(&cache->lock);
    if (!cache->has_looked)
        (void)cv_layout_records_new(cv_unconst(snapshot), store, &cache->records, NULL);
    cache->has_looked = true;
    const cv_layout_records *found = cache->records;
    cv_mutex_unlock(&cache->lock);
    return found && found->snapshot == snapshot ? found : NULL;
}

static cv_layout *take_record(cv_layout_cache *cache, const cv_snapshot *snapshot,
                              const cv_chunk_ref *ref)
{
    int64_t record;
    const cv_layout_records *records = cv_layout_cache_records(cache, snapshot);
    if (!records || !cv_layout_records_find(records, ref->chunk, &record)) return NULL;
    const uint8_t *bytes =
        cv_store_view(cache->store, CV_FRAME_OBJECT, cv_layout_record_pos(records, record),
                      records->area.record_size);
    cv_layout *layout = bytes ? cv_layout_of_record(records, cache->store, ref, bytes) : NULL;
    if (layout) cv_layout_keep(cache, ref, layout);
    return layout;
}

/* ---- One layout --------------------------------------------------------- */

cv_layout *cv_layout_find(cv_layout_cache *cache, const cv_snapshot *snapshot,
                          const cv_chunk_ref *ref)
{
    cv_layout *found = lookup(cache, ref, cv_layout_checked_name(snapshot, ref));
    return found || !cache->store->is_far ? found : take_record(cache, snapshot, ref);
}

cv_status cv_layout_get(cv_layout_cache *cache, const cv_snapshot *snapshot,
                        const cv_chunk_ref *ref, cv_layout **out, cv_error *err)
{
    *out = cv_layout_find(cache, snapshot, ref);
    if (*out) return CV_OK;
    CV_TRY(cv_layout_read(cache->store, snapshot, ref, NULL, out, err));
    cv_layout_keep(cache, ref, *out);
    return CV_OK;
}
