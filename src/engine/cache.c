/* Room: engine. Decoded blocks that may be wanted again. What a block means, and
 * who wants it, is not known here: bytes under a key.
 *
 *     shards:  a table of entries             found by hash
 *     queues:  head <-> ... <-> tail          who leaves comes from a head
 *
 * Each shard has a lock, so that threads which find blocks seldom meet; finding
 * does not touch the queues. Each queue has one, and serves a part of the shards, so
 * that threads which put blocks in seldom meet. Who needs room looks at the head of
 * the newcomer's queue first, then of the next ones: blocks in use leave no sooner
 * than from a single queue; with more queues they would. Queue before shard.
 *
 * An entry is in table and queue, or belongs to the one thread that puts it in.
 * `pins` counts who is copying out of it; a pinned one stays. The bytes are not
 * part of it: entries are looked at far more often than bytes, and close together
 * they stay in the processor's caches. */
#include "engine/cache.h"

#include "engine/cache_table.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { N_SHARDS = 32, N_QUEUES = 8, MOST_USES = 3 };

typedef struct shard {
    _Alignas(64) pthread_mutex_t lock;
    uint64_t hits, misses;
    cv_cache_table table;
} shard;

typedef struct line {
    cv_cached *head, *tail;
    int64_t bytes;
} line;

typedef struct queue {
    _Alignas(64) pthread_mutex_t lock;
    line new, known; /* known: it was found when it came to the head of `new` */
    size_t n_entries;
    uint64_t inserted, prefetched, evicted;
} queue;

struct cv_cache {
    shard shards[N_SHARDS];
    queue queues[N_QUEUES];
    _Alignas(64) cv_block_memory memory;
    /* Of entries, and of those on their way in; seldom changes while it is full. */
    _Alignas(64) atomic_int_least64_t bytes;
    /* A line of its own: every reader looks at it, hardly anybody writes. */
    _Alignas(64) atomic_int_least64_t limit;
};

/* ---- Making and releasing ----------------------------------------------- */

static void init(cv_cache *cache, int64_t limit)
{
    atomic_init(&cache->bytes, 0);
    atomic_init(&cache->limit, limit);
    cv_block_memory_init(&cache->memory);
    for (int i = 0; i < N_QUEUES; i++) pthread_mutex_init(&cache->queues[i].lock, NULL);
    for (int i = 0; i < N_SHARDS; i++) {
        shard *s = &cache->shards[i];
        pthread_mutex_init(&s->lock, NULL);
        cv_cache_table_init(&s->table);
    }
}

/* The process-wide state that DESIGN allows. */
static cv_cache shared;
static pthread_once_t shared_once = PTHREAD_ONCE_INIT;

static void before_fork(void)
{
    cv_cache_shared(); /* not before all of it is initialised */
    for (int i = 0; i < N_QUEUES; i++) pthread_mutex_lock(&shared.queues[i].lock);
    for (int i = 0; i < N_SHARDS; i++) pthread_mutex_lock(&shared.shards[i].lock);
    pthread_mutex_lock(&shared.memory.lock);
}

static void after_fork_in_parent(void)
{
    pthread_mutex_unlock(&shared.memory.lock);
    for (int i = 0; i < N_SHARDS; i++) pthread_mutex_unlock(&shared.shards[i].lock);
    for (int i = 0; i < N_QUEUES; i++) pthread_mutex_unlock(&shared.queues[i].lock);
}

/* All is whole, because all locks were held; who held pins is gone. */
static void after_fork_in_child(void)
{
    pthread_mutex_init(&shared.memory.lock, NULL);
    for (int i = 0; i < N_SHARDS; i++) pthread_mutex_init(&shared.shards[i].lock, NULL);
    for (int i = 0; i < N_QUEUES; i++) {
        queue *q = &shared.queues[i];
        pthread_mutex_init(&q->lock, NULL);
        for (cv_cached *e = q->new.head; e; e = e->behind) atomic_store(&e->pins, 0);
        for (cv_cached *e = q->known.head; e; e = e->behind) atomic_store(&e->pins, 0);
    }
}

static void init_shared(void)
{
    init(&shared, CV_CACHE_BYTES);
    pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

cv_cache *cv_cache_shared(void)
{
    pthread_once(&shared_once, init_shared);
    return &shared;
}

cv_status cv_cache_create(int64_t limit, cv_cache **out, cv_error *err)
{
    cv_cache *cache = aligned_alloc(_Alignof(cv_cache), sizeof *cache);
    if (!cache) return cv_fail_memory(err, sizeof *cache, "a block cache");
    memset(cache, 0, sizeof *cache);
    init(cache, limit);
    *out = cache;
    return CV_OK;
}

void cv_cache_free(cv_cache *cache)
{
    if (!cache || cache == &shared) return;
    cv_cache_set_limit(cache, 0);
    for (int i = 0; i < N_SHARDS; i++) {
        shard *s = &cache->shards[i];
        cv_cache_table_free(&s->table);
        pthread_mutex_destroy(&s->lock);
    }
    for (int i = 0; i < N_QUEUES; i++) pthread_mutex_destroy(&cache->queues[i].lock);
    cv_block_memory_destroy(&cache->memory);
    free(cache);
}

/* ---- Hashing ------------------------------------------------------------ */

static size_t shard_number(uint64_t hash) { return hash >> 59; } /* N_SHARDS is 2^5 */
static size_t queue_number(uint64_t hash) { return shard_number(hash) % N_QUEUES; }

/* ---- A queue, its lock held ------------------------------------------------ */

static int64_t cost_of(size_t size) { return (int64_t)(sizeof(cv_cached) + size); }

static line *join(queue *q, cv_cached *entry, bool is_known)
{
    line *l = is_known ? &q->known : &q->new;
    entry->is_known = is_known;
    l->bytes += cost_of(entry->size);
    q->n_entries++;
    return l;
}

static void enqueue(queue *q, cv_cached *entry, bool is_known)
{
    line *l = join(q, entry, is_known);
    entry->before = l->tail;
    entry->behind = NULL;
    *(l->tail ? &l->tail->behind : &l->head) = entry;
    l->tail = entry;
}

static void enqueue_first(queue *q, cv_cached *entry, bool is_known)
{
    line *l = join(q, entry, is_known);
    entry->before = NULL;
    entry->behind = l->head;
    *(l->head ? &l->head->before : &l->tail) = entry;
    l->head = entry;
}

static void dequeue(queue *q, cv_cached *entry)
{
    line *l = entry->is_known ? &q->known : &q->new;
    *(entry->before ? &entry->before->behind : &l->head) = entry->behind;
    *(entry->behind ? &entry->behind->before : &l->tail) = entry->before;
    l->bytes -= cost_of(entry->size);
    q->n_entries--;
}

/* Takes an entry out of table and queue, unless somebody copies out of it. */
static bool take_out(cv_cache *cache, queue *q, cv_cached *entry)
{
    shard *s = &cache->shards[shard_number(entry->hash)];
    pthread_mutex_lock(&s->lock);
    bool is_free = atomic_load_explicit(&entry->pins, memory_order_acquire) == 0;
    if (is_free) cv_cache_table_remove(&s->table, entry);
    pthread_mutex_unlock(&s->lock);
    if (is_free) dequeue(q, entry);
    return is_free;
}

/* Newcomers leave before those that were found, but not while they have less than
 * their share, half of the cache, and others are there. */
static bool known_leave(const cv_cache *cache, const queue *q)
{
    int64_t limit = atomic_load_explicit(&cache->limit, memory_order_relaxed);
    return q->known.head && q->new.bytes <= limit / 2 / N_QUEUES;
}

/* Who is next, when it can leave; else it steps back to the end. */
static cv_cached *turn(cv_cache *cache, queue *q)
{
    cv_cached *entry = known_leave(cache, q) ? q->known.head : q->new.head;
    if (!entry) return NULL;
    int uses = atomic_load_explicit(&entry->uses, memory_order_relaxed);
    if (uses == 0 && take_out(cache, q, entry)) {
        q->evicted++;
        return entry;
    }
    if (uses > 0) atomic_store_explicit(&entry->uses, uses - 1, memory_order_relaxed);
    dequeue(q, entry);
    enqueue(q, entry, entry->is_known || uses > 0);
    return NULL;
}

/* Who leaves next, from queue `first` on; NULL: nobody can. Each step back in a
 * queue is paid for by a block found before, and after so many no uses are left. */
static cv_cached *take_victim(cv_cache *cache, size_t first)
{
    size_t longest = 0;
    for (size_t i = 0; i / N_QUEUES <= MOST_USES * longest; i++) {
        queue *q = &cache->queues[(first + i) % N_QUEUES];
        pthread_mutex_lock(&q->lock);
        if (q->n_entries > longest) longest = q->n_entries;
        cv_cached *victim = turn(cache, q);
        pthread_mutex_unlock(&q->lock);
        if (victim) return victim;
    }
    return NULL;
}

/* ---- Room ---------------------------------------------------------------- */

static cv_cached *new_entry(cv_cache *cache, size_t size)
{
    cv_cached *entry = malloc(sizeof *entry);
    if (!entry) return NULL;
    entry->memory = cv_block_memory_get(&cache->memory, size);
    entry->size = size;
    if (entry->memory.bytes) return entry;
    free(entry);
    return NULL;
}

static void subtract(cv_cache *cache, int64_t cost)
{
    atomic_fetch_sub_explicit(&cache->bytes, cost, memory_order_relaxed);
}

static bool is_over(const cv_cache *cache)
{
    return atomic_load_explicit(&cache->bytes, memory_order_relaxed) >
           atomic_load_explicit(&cache->limit, memory_order_relaxed);
}

static void drop(cv_cache *cache, cv_cached *entry)
{
    subtract(cache, cost_of(entry->size));
    cv_block_memory_free(&cache->memory, entry->memory);
    free(entry);
}

/* Lets entries leave until the bytes counted fit. */
static void make_room(cv_cache *cache, size_t first)
{
    while (is_over(cache)) {
        cv_cached *victim = take_victim(cache, first);
        if (!victim) break;
        first = queue_number(victim->hash) + 1;
        drop(cache, victim);
    }
}

void cv_cache_set_limit(cv_cache *cache, int64_t limit)
{
    atomic_store(&cache->limit, limit);
    make_room(cache, 0);
}

int64_t cv_cache_limit(const cv_cache *cache)
{
    return atomic_load_explicit(&cache->limit, memory_order_relaxed);
}

bool cv_cache_admits(const cv_cache *cache, const cv_cache_key *key, int64_t wanted_bytes)
{
    int64_t share = atomic_load_explicit(&cache->limit, memory_order_relaxed) / 4 * 3;
    if (wanted_bytes <= share) return true;
    /* Bits of the hash that choose neither shard nor bucket. */
    double place = (double)(cv_hash_of_key(key) >> 27 & 0xFFFFFFFF) / 4294967296.0;
    return place * (double)wanted_bytes < (double)share;
}

/* ---- Finding and putting in ----------------------------------------------- */

cv_cached *cv_cache_find(cv_cache *cache, const cv_cache_key *key)
{
    uint64_t hash = cv_hash_of_key(key);
    shard *s = &cache->shards[shard_number(hash)];
    pthread_mutex_lock(&s->lock);
    cv_cached *found = cv_cache_table_find(&s->table, hash, key);
    if (found) {
        atomic_fetch_add_explicit(&found->pins, 1, memory_order_relaxed);
        int uses = atomic_load_explicit(&found->uses, memory_order_relaxed);
        uses = found->ahead ? 0 : uses + 1;
        found->ahead = false;
        if (uses <= MOST_USES)
            atomic_store_explicit(&found->uses, uses, memory_order_relaxed);
        s->hits++;
    } else {
        s->misses++;
    }
    pthread_mutex_unlock(&s->lock);
    return found;
}

void cv_cache_release(cv_cached *found)
{
    atomic_fetch_sub_explicit(&found->pins, 1, memory_order_release);
}

void cv_cache_release_spent(cv_cache *cache, cv_cached *found)
{
    if (atomic_load_explicit(&found->uses, memory_order_relaxed) == 0) {
        queue *q = &cache->queues[queue_number(found->hash)];
        pthread_mutex_lock(&q->lock);
        dequeue(q, found);
        enqueue_first(q, found, known_leave(cache, q));
        pthread_mutex_unlock(&q->lock);
    }
    cv_cache_release(found);
}

bool cv_cache_holds(cv_cache *cache, const cv_cache_key *key)
{
    uint64_t hash = cv_hash_of_key(key);
    shard *s = &cache->shards[shard_number(hash)];
    pthread_mutex_lock(&s->lock);
    bool holds = cv_cache_table_find(&s->table, hash, key) != NULL;
    pthread_mutex_unlock(&s->lock);
    return holds;
}

const uint8_t *cv_cached_bytes(const cv_cached *found) { return found->memory.bytes; }

/* Of a full cache, who leaves when it has `size` bytes, still counted; else it has
 * left. NULL: none. */
static cv_cached *take_over(cv_cache *cache, size_t first, size_t size)
{
    int64_t bytes = atomic_load_explicit(&cache->bytes, memory_order_relaxed);
    int64_t limit = atomic_load_explicit(&cache->limit, memory_order_relaxed);
    if (bytes > limit || bytes + cost_of(size) <= limit) return NULL;
    cv_cached *victim = take_victim(cache, first);
    if (!victim || victim->size == size) return victim;
    drop(cache, victim);
    return NULL;
}

/* An entry in no table, counted, with memory for `size` bytes; NULL: no room. */
static cv_cached *take_room(cv_cache *cache, size_t first, size_t size)
{
    int64_t cost = cost_of(size);
    if (cost > atomic_load_explicit(&cache->limit, memory_order_relaxed)) return NULL;
    cv_cached *entry = take_over(cache, first, size);
    if (entry) return entry;
    atomic_fetch_add_explicit(&cache->bytes, cost, memory_order_relaxed);
    make_room(cache, first);
    if (!is_over(cache)) entry = new_entry(cache, size);
    if (!entry) subtract(cache, cost);
    return entry;
}

/* False when another thread was faster. */
static bool link_entry(cv_cache *cache, cv_cached *entry)
{
    shard *s = &cache->shards[shard_number(entry->hash)];
    queue *q = &cache->queues[queue_number(entry->hash)];
    pthread_mutex_lock(&q->lock);
    pthread_mutex_lock(&s->lock);
    bool ahead = entry->ahead; /* as long as nobody can find it */
    bool is_new = !cv_cache_table_find(&s->table, entry->hash, &entry->key);
    if (is_new) cv_cache_table_add(&s->table, entry);
    pthread_mutex_unlock(&s->lock);
    if (is_new) {
        enqueue(q, entry, false);
        q->inserted++;
        q->prefetched += ahead;
    }
    pthread_mutex_unlock(&q->lock);
    return is_new;
}

cv_cached *cv_cache_reserve(cv_cache *cache, const cv_cache_key *key, size_t size)
{
    uint64_t hash = cv_hash_of_key(key);
    cv_cached *entry = take_room(cache, queue_number(hash), size);
    if (!entry) return NULL;
    entry->key = *key;
    entry->hash = hash;
    entry->rotated = entry->ahead = false;
    atomic_init(&entry->pins, 0);
    atomic_init(&entry->uses, 0);
    return entry;
}

uint8_t *cv_cached_room(cv_cached *reserved) { return reserved->memory.bytes; }

bool cv_cached_is_rotated(const cv_cached *found) { return found->rotated; }

void cv_cached_mark_rotated(cv_cached *reserved) { reserved->rotated = true; }

void cv_cached_mark_ahead(cv_cached *reserved)
{
    reserved->ahead = true;
    atomic_store_explicit(&reserved->uses, MOST_USES, memory_order_relaxed);
}

void cv_cache_settle(cv_cache *cache, cv_cached *reserved, bool good)
{
    if (!good || !link_entry(cache, reserved)) drop(cache, reserved);
}

void cv_cache_insert(cv_cache *cache, const cv_cache_key *key, const void *bytes, size_t size)
{
    cv_cached *entry = cv_cache_reserve(cache, key, size);
    if (!entry) return;
    memcpy(entry->memory.bytes, bytes, size);
    cv_cache_settle(cache, entry, true);
}

static void forget_in(cv_cache *cache, queue *q, const line *l, uint64_t frame)
{
    for (cv_cached *entry = l->head, *next; entry; entry = next) {
        next = entry->behind;
        if (entry->key.frame == frame && take_out(cache, q, entry)) drop(cache, entry);
    }
}

void cv_cache_forget(cv_cache *cache, uint64_t frame)
{
    for (int i = 0; i < N_QUEUES; i++) {
        queue *q = &cache->queues[i];
        pthread_mutex_lock(&q->lock);
        forget_in(cache, q, &q->new, frame);
        forget_in(cache, q, &q->known, frame);
        pthread_mutex_unlock(&q->lock);
    }
}

bool cv_cache_is_empty(const cv_cache *cache)
{
    return atomic_load_explicit(&cache->bytes, memory_order_relaxed) == 0;
}

void cv_cache_measure(cv_cache *cache, caterva_cache_counts *out)
{
    *out = (caterva_cache_counts){.limit = atomic_load(&cache->limit),
                                  .bytes = atomic_load(&cache->bytes)};
    for (int i = 0; i < N_SHARDS; i++) {
        shard *s = &cache->shards[i];
        pthread_mutex_lock(&s->lock);
        out->hits += (int64_t)s->hits;
        out->misses += (int64_t)s->misses;
        pthread_mutex_unlock(&s->lock);
    }
    for (int i = 0; i < N_QUEUES; i++) {
        queue *q = &cache->queues[i];
        pthread_mutex_lock(&q->lock);
        out->inserted += (int64_t)q->inserted;
        out->prefetched += (int64_t)q->prefetched;
        out->evicted += (int64_t)q->evicted;
        out->blocks += (int64_t)q->n_entries;
        pthread_mutex_unlock(&q->lock);
    }
}
