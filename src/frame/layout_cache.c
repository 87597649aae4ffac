/* Room: frame. Keeps layouts, and tells the chunks apart that one position held. */
#include "frame/layout.h"

#include "base/arith.h"

#include <stdlib.h>
#include <string.h>

enum { STRIPES = 16, WAYS = 4, MIN_SETS = 2, MAX_SETS = 1024, CACHE_BYTES = 4 << 20 };
enum { GENERATIONS = 256 };

/* A cache line of its own: threads that want different chunks do not meet. */
typedef struct stripe {
    _Alignas(64) pthread_mutex_t lock;
} stripe;

/* A chunk has one set, chosen by its hash, and any place in it; who was used
 * last stands first, and a newcomer takes the place of the last. A stripe of
 * locks guards the sets; it is held for a few instructions only. */
typedef struct set {
    cv_layout *ways[WAYS];
} set;

struct cv_layout_cache {
    stripe stripes[STRIPES];
    atomic_uint generations[GENERATIONS]; /* shared by all positions of one hash */
    size_t n_sets;
    set sets[];
};

cv_layout_cache *cv_layout_cache_new(int64_t n_blocks)
{
    int64_t each = (int64_t)(sizeof(cv_block_range) + sizeof(uint32_t));
    int64_t entry = (int64_t)sizeof(cv_layout) + n_blocks * each;
    int64_t n = cv_max_i64(MIN_SETS, cv_min_i64(MAX_SETS, CACHE_BYTES / entry / WAYS));
    cv_layout_cache *cache;
    size_t size = sizeof *cache + (size_t)n * sizeof cache->sets[0];
    size = (size_t)cv_ceil_div((int64_t)size, _Alignof(cv_layout_cache)) *
           _Alignof(cv_layout_cache);
    cache = aligned_alloc(_Alignof(cv_layout_cache), size);
    if (!cache) return NULL;
    memset(cache, 0, size);
    cache->n_sets = (size_t)n;
    for (int i = 0; i < STRIPES; i++) pthread_mutex_init(&cache->stripes[i].lock, NULL);
    return cache;
}

static void release_set(set *s)
{
    for (int i = 0; i < WAYS; i++) cv_layout_release(s->ways[i]);
    *s = (set){{NULL}};
}

void cv_layout_cache_free(cv_layout_cache *cache)
{
    if (!cache) return;
    for (size_t i = 0; i < cache->n_sets; i++) release_set(&cache->sets[i]);
    for (int i = 0; i < STRIPES; i++) pthread_mutex_destroy(&cache->stripes[i].lock);
    free(cache);
}

void cv_layout_cache_clear(cv_layout_cache *cache)
{
    for (int i = 0; i < GENERATIONS; i++) atomic_fetch_add(&cache->generations[i], 1);
    for (size_t i = 0; i < cache->n_sets; i++) {
        pthread_mutex_t *lock = &cache->stripes[i % STRIPES].lock;
        pthread_mutex_lock(lock);
        release_set(&cache->sets[i]);
        pthread_mutex_unlock(lock);
    }
}

static uint64_t hash_of(cv_object object, uint64_t pos)
{
    uint64_t key = pos ^ ((uint64_t)object << 32);
    return key * UINT64_C(0x9e3779b97f4a7c15); /* 2^64 / golden ratio: Knuth's hash */
}

/* The set of a chunk, its lock held. */
static set *lock_set(cv_layout_cache *cache, cv_object object, uint64_t pos,
                     pthread_mutex_t **lock)
{
    size_t i = (size_t)(hash_of(object, pos) >> 32) % cache->n_sets;
    *lock = &cache->stripes[i % STRIPES].lock;
    pthread_mutex_lock(*lock);
    return &cache->sets[i];
}

/* Where the chunk stands in its set; WAYS: nowhere. */
static int way_of(const set *s, cv_object object, uint64_t pos)
{
    int way = 0;
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

uint32_t cv_layout_generation(const cv_frame *frame, cv_object object, uint64_t pos)
{
    return atomic_load_explicit(&frame->layouts->generations[generation_of(object, pos)],
                                memory_order_relaxed);
}

/* One that was read before its chunk was sealed is not what is looked for. */
static cv_layout *lookup(cv_layout_cache *cache, const cv_chunk_ref *ref, uint32_t name)
{
    pthread_mutex_t *lock;
    set *s = lock_set(cache, ref->object, ref->pos, &lock);
    int way = way_of(s, ref->object, ref->pos);
    cv_layout *found = way < WAYS && s->ways[way]->name == name ? s->ways[way] : NULL;
    if (found) {
        atomic_fetch_add_explicit(&found->references, 1, memory_order_relaxed);
        if (way > 0) push_first(s, way, found);
    }
    pthread_mutex_unlock(lock);
    return found;
}

void cv_layout_cache_forget(cv_layout_cache *cache, cv_object object, uint64_t pos)
{
    atomic_fetch_add(&cache->generations[generation_of(object, pos)], 1);
    pthread_mutex_t *lock;
    set *s = lock_set(cache, object, pos, &lock);
    int way = way_of(s, object, pos);
    cv_layout *found = way < WAYS ? s->ways[way] : NULL;
    if (found) s->ways[way] = NULL;
    pthread_mutex_unlock(lock);
    cv_layout_release(found);
}

/* Another thread may have been faster; there is one of a chunk all the same. */
static void keep(cv_layout_cache *cache, const cv_chunk_ref *ref, cv_layout *layout)
{
    pthread_mutex_t *lock;
    atomic_fetch_add_explicit(&layout->references, 1, memory_order_relaxed);
    set *s = lock_set(cache, ref->object, ref->pos, &lock);
    int way = way_of(s, ref->object, ref->pos);
    cv_layout *gone = push_first(s, way < WAYS ? way : WAYS - 1, layout);
    pthread_mutex_unlock(lock);
    cv_layout_release(gone);
}

cv_status cv_layout_get(cv_frame *frame, const cv_snapshot *snapshot, const cv_chunk_ref *ref,
                        cv_layout **out, cv_error *err)
{
    *out = lookup(frame->layouts, ref, cv_layout_checked_name(snapshot, ref));
    if (*out) return CV_OK;
    CV_TRY(cv_layout_read(frame, snapshot, ref, NULL, out, err));
    keep(frame->layouts, ref, *out);
    return CV_OK;
}
