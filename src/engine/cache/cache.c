/* Room: engine/cache. Decoded blocks that may be wanted again. What a block means, and
 * who wants it, is not known here: bytes under a key.
 *
 *     shards:  a table of entries             found by hash
 *     queues:  head <-> ... <-> tail          who leaves comes from a head
 *
 * Each shard has a lock, so that threads which find blocks seldom meet; finding
 * does not touch the queues. Each queue has one, and serves a part of the threads: who
 * puts a block in takes the memory of one that the same thread put in, which its core
 * knows. Only from a queue whose head has waited for much longer does it take that, so
 * that in the end blocks leave as from a single queue. Queue before shard.
 *
 * An entry is in table and queue, or belongs to the one thread that puts it in.
 * `pins` counts who is copying out of it; a pinned one stays. The bytes are not
 * part of it: entries are looked at far more often than bytes, and close together
 * they stay in the processor's caches. */
#include "engine/cache/cache.h"

#include "base/arith.h"
#include "base/heap.h"
#include "base/thread.h"
#include "engine/cache/cache_queue.h"

#include <stdlib.h>
#include <string.h>

enum { N_SHARDS = 32, N_QUEUES = 8 };

/* When the clock moves on, when the other queues' heads are looked at, and how many steps
 * back are taken before another queue is asked. */
enum { BLOCKS_PER_TICK = 16, BLOCKS_PER_LOOK = 8, STEPS_BACK = 4 };

typedef struct shard {
    _Alignas(64) cv_mutex lock;
    uint64_t hits, misses;
    cv_cache_table table;
} shard;

struct cv_cache {
    shard shards[N_SHARDS];
    cv_cache_queue queues[N_QUEUES];
    _Alignas(64) cv_block_memory memory;
    /* Of entries, and of those on their way in; seldom changes while it is full. */
    _Alignas(64) atomic_int_least64_t bytes;
    /* A line of its own: every reader looks at it, hardly anybody writes. */
    _Alignas(64) atomic_int_least64_t limit;
    /* Of entries of use; and ticks, one for so many that a queue got. */
    _Alignas(64) atomic_int_least64_t used_bytes;
    atomic_uint_least64_t clock;
};

/* ---- Making and releasing ----------------------------------------------- */

static void init(cv_cache *cache, int64_t limit)
{
    atomic_init(&cache->bytes, 0);
    atomic_init(&cache->limit, limit);
    cv_block_memory_init(&cache->memory);
    atomic_init(&cache->clock, 1);
    atomic_init(&cache->used_bytes, 0);
    for (int i = 0; i < N_QUEUES; i++)
        cv_cache_queue_init(&cache->queues[i], &cache->used_bytes);
    for (int i = 0; i < N_SHARDS; i++) {
        shard *s = &cache->shards[i];
        cv_mutex_init(&s->lock);
        cv_cache_table_init(&s->table);
    }
}

/* The process-wide state that DESIGN allows. */
static cv_cache shared;
static cv_once shared_once = CV_ONCE_INIT;

static void before_fork(void)
{
    cv_cache_shared(); /* not before all of it is initialised */
    for (int i = 0; i < N_QUEUES; i++) cv_mutex_lock(&shared.queues[i].lock);
    for (int i = 0; i < N_SHARDS; i++) cv_mutex_lock(&shared.shards[i].lock);
    cv_mutex_lock(&shared.memory.lock);
}

static void after_fork(void)
{
    cv_mutex_unlock(&shared.memory.lock);
    for (int i = 0; i < N_SHARDS; i++) cv_mutex_unlock(&shared.shards[i].lock);
    for (int i = 0; i < N_QUEUES; i++) cv_mutex_unlock(&shared.queues[i].lock);
}

/* All is whole, because all locks were held; who held pins is gone. */
static void after_fork_in_child(void)
{
    for (int i = 0; i < N_QUEUES; i++) {
        cv_cache_queue *q = &shared.queues[i];
        for (cv_cached *e = q->fresh.head; e; e = e->behind) atomic_store(&e->pins, 0);
        for (cv_cached *e = q->used.head; e; e = e->behind) atomic_store(&e->pins, 0);
    }
    after_fork();
}

static void init_shared(void)
{
    init(&shared, CV_CACHE_BYTES);
    cv_thread_on_fork(CV_FORK_LOCKS, before_fork, after_fork, after_fork_in_child);
}

cv_cache *cv_cache_shared(void)
{
    cv_once_run(&shared_once, init_shared);
    return &shared;
}

cv_status cv_cache_create(int64_t limit, cv_cache **out, cv_error *err)
{
    cv_cache *cache = cv_aligned_alloc(_Alignof(cv_cache), sizeof *cache);
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
        cv_mutex_destroy(&s->lock);
    }
    for (int i = 0; i < N_QUEUES; i++) cv_mutex_destroy(&cache->queues[i].lock);
    cv_block_memory_destroy(&cache->memory);
    cv_free(cache);
}

/* ---- Numbers ------------------------------------------------------------- */

static size_t shard_number(uint64_t hash) { return hash >> 59; } /* N_SHARDS is 2^5 */

/* The same as long as the thread lives. */
static size_t queue_number(void)
{
    static atomic_uint n_threads;
    static _Thread_local unsigned number; /* from 1; 0: none yet */
    if (number == 0)
        number =
            1 + atomic_fetch_add_explicit(&n_threads, 1, memory_order_relaxed) % N_QUEUES;
    return number - 1;
}

static uint64_t time_of(const cv_cache *cache)
{
    return atomic_load_explicit(&cache->clock, memory_order_relaxed);
}

/* ---- Who leaves ---------------------------------------------------------- */

/* Takes an entry out of table and queue, unless somebody copies out of it. The queue's
 * lock is held. */
static bool take_out(cv_cache *cache, cv_cache_queue *q, cv_cached *entry)
{
    shard *s = &cache->shards[shard_number(entry->hash)];
    cv_mutex_lock(&s->lock);
    bool is_free = atomic_load_explicit(&entry->pins, memory_order_acquire) == 0;
    if (is_free) cv_cache_table_remove(&s->table, entry);
    cv_mutex_unlock(&s->lock);
    if (is_free) cv_cache_queue_remove(q, entry);
    return is_free;
}

/* Who is next and can leave. NULL: a few are not and have stepped back, or nobody is. */
static cv_cached *take_head(cv_cache *cache, cv_cache_queue *q)
{
    for (int i = 0; i < STEPS_BACK; i++) {
        cv_cached *entry = cv_cache_queue_head(q);
        if (!entry) return NULL;
        if (atomic_load_explicit(&entry->uses, memory_order_relaxed) <= 0 &&
            take_out(cache, q, entry)) {
            q->evicted++;
            return entry;
        }
        cv_cache_queue_step_back(q, entry, time_of(cache));
    }
    return NULL;
}

/* Who leaves next, from queue `first` on; NULL: nobody can. Each step back in a
 * queue is paid for by a use before, and after so many no uses are left. */
static cv_cached *take_victim(cv_cache *cache, size_t first)
{
    size_t longest = 0;
    for (size_t i = 0; i / N_QUEUES <= CV_CACHE_MOST_USES * longest; i++) {
        cv_cache_queue *q = &cache->queues[(first + i) % N_QUEUES];
        if (atomic_load_explicit(&q->head_time, memory_order_relaxed) == CV_CACHE_NOBODY)
            continue;
        cv_mutex_lock(&q->lock);
        if (q->n_entries > longest) longest = q->n_entries;
        cv_cached *victim = take_head(cache, q);
        cv_mutex_unlock(&q->lock);
        if (victim) return victim;
    }
    return NULL;
}

/* The queue whose head has waited for longest; queue `own`, unless that one has waited
 * for a quarter longer: memory changes cores then. */
static size_t oldest_queue(const cv_cache *cache, size_t own)
{
    uint64_t now = time_of(cache);
    uint64_t time = atomic_load_explicit(&cache->queues[own].head_time, memory_order_relaxed);
    uint64_t wait = time < now ? now - time : 0; /* none, if nobody waits */
    size_t oldest = own;
    wait += wait / 4;
    for (size_t i = 0; i < N_QUEUES; i++) {
        time = atomic_load_explicit(&cache->queues[i].head_time, memory_order_relaxed);
        if (i == own || time >= now || now - time <= wait) continue;
        wait = now - time;
        oldest = i;
    }
    return oldest;
}

/* The queue that a thread of queue `own` takes from. */
static size_t choose_source(cv_cache *cache, size_t own)
{
    cv_cache_queue *q = &cache->queues[own];
    unsigned n = atomic_load_explicit(&q->n_asked, memory_order_relaxed);
    atomic_store_explicit(&q->n_asked, n + 1, memory_order_relaxed);
    if (n % BLOCKS_PER_LOOK != 0)
        return atomic_load_explicit(&q->source, memory_order_relaxed);
    size_t source = oldest_queue(cache, own);
    atomic_store_explicit(&q->source, source, memory_order_relaxed);
    return source;
}

/* ---- Room ---------------------------------------------------------------- */

static cv_cached *new_entry(cv_cache *cache, size_t size)
{
    cv_cached *entry = cv_malloc(sizeof *entry);
    if (!entry) return NULL;
    entry->memory = cv_block_memory_get(&cache->memory, size);
    entry->size = size;
    if (entry->memory.bytes) return entry;
    cv_free(entry);
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
    subtract(cache, cv_cache_cost(entry->size));
    cv_block_memory_free(&cache->memory, entry->memory);
    cv_free(entry);
}

/* Lets entries leave until the bytes counted fit. */
static void make_room(cv_cache *cache)
{
    size_t own = queue_number();
    while (is_over(cache)) {
        cv_cached *victim = take_victim(cache, choose_source(cache, own));
        if (!victim) break;
        drop(cache, victim);
    }
}

void cv_cache_set_limit(cv_cache *cache, int64_t limit)
{
    atomic_store(&cache->limit, limit);
    make_room(cache);
}

int64_t cv_cache_limit(const cv_cache *cache)
{
    return atomic_load_explicit(&cache->limit, memory_order_relaxed);
}

int64_t cv_cache_capacity(const cv_cache *cache, size_t size)
{
    return cv_cache_limit(cache) / cv_cache_cost(size);
}

/* What those of use leave to newcomers, half of the cache or more, less an eighth: the
 * blocks of a share must not push each other out. */
static int64_t share_of_request(const cv_cache *cache)
{
    int64_t limit = atomic_load_explicit(&cache->limit, memory_order_relaxed);
    int64_t used = atomic_load_explicit(&cache->used_bytes, memory_order_relaxed);
    int64_t left = cv_max_i64(limit / 2, limit - used);
    return cv_min_i64(left / 8 * 7, limit / 4 * 3);
}

bool cv_cache_admits(const cv_cache *cache, const cv_cache_key *key, int64_t wanted_bytes)
{
    int64_t share = share_of_request(cache);
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
    cv_mutex_lock(&s->lock);
    cv_cached *found = cv_cache_table_find(&s->table, hash, key);
    if (found) {
        atomic_fetch_add_explicit(&found->pins, 1, memory_order_relaxed);
        if (found->ahead) atomic_store_explicit(&found->uses, -1, memory_order_relaxed);
        found->ahead = false;
        s->hits++;
    } else {
        s->misses++;
    }
    cv_mutex_unlock(&s->lock);
    return found;
}

static void unpin(cv_cached *found)
{
    atomic_fetch_sub_explicit(&found->pins, 1, memory_order_release);
}

void cv_cache_release(cv_cached *found)
{
    int uses = atomic_load_explicit(&found->uses, memory_order_relaxed);
    if (uses < CV_CACHE_MOST_USES)
        atomic_store_explicit(&found->uses, uses + 1, memory_order_relaxed);
    unpin(found);
}

void cv_cache_release_passed(cv_cache *cache, cv_cached *found, bool is_last)
{
    int uses = atomic_load_explicit(&found->uses, memory_order_relaxed);
    if (uses < 0) atomic_store_explicit(&found->uses, 0, memory_order_relaxed);
    if (is_last && uses <= 0) {
        cv_cache_queue *q = &cache->queues[found->queue];
        cv_mutex_lock(&q->lock);
        cv_cache_queue_move_first(q, found);
        cv_mutex_unlock(&q->lock);
    }
    unpin(found);
}

bool cv_cache_holds(cv_cache *cache, const cv_cache_key *key)
{
    uint64_t hash = cv_hash_of_key(key);
    shard *s = &cache->shards[shard_number(hash)];
    cv_mutex_lock(&s->lock);
    bool holds = cv_cache_table_find(&s->table, hash, key) != NULL;
    cv_mutex_unlock(&s->lock);
    return holds;
}

const uint8_t *cv_cached_bytes(const cv_cached *found) { return found->memory.bytes; }

/* Of a full cache, who leaves when it has `size` bytes, still counted; else it has
 * left. NULL: none. */
static cv_cached *take_over(cv_cache *cache, size_t size)
{
    int64_t bytes = atomic_load_explicit(&cache->bytes, memory_order_relaxed);
    int64_t limit = atomic_load_explicit(&cache->limit, memory_order_relaxed);
    if (bytes > limit || bytes + cv_cache_cost(size) <= limit) return NULL;
    cv_cached *victim = take_victim(cache, choose_source(cache, queue_number()));
    if (!victim || victim->size == size) return victim;
    drop(cache, victim);
    return NULL;
}

/* An entry in no table, counted, with memory for `size` bytes; NULL: no room. */
static cv_cached *take_room(cv_cache *cache, size_t size)
{
    int64_t cost = cv_cache_cost(size);
    if (cost > atomic_load_explicit(&cache->limit, memory_order_relaxed)) return NULL;
    cv_cached *entry = take_over(cache, size);
    if (entry) return entry;
    atomic_fetch_add_explicit(&cache->bytes, cost, memory_order_relaxed);
    make_room(cache);
    if (!is_over(cache)) entry = new_entry(cache, size);
    if (!entry) subtract(cache, cost);
    return entry;
}

/* False when another thread was faster. */
static bool link_entry(cv_cache *cache, cv_cached *entry)
{
    shard *s = &cache->shards[shard_number(entry->hash)];
    entry->queue = queue_number();
    cv_cache_queue *q = &cache->queues[entry->queue];
    cv_mutex_lock(&q->lock);
    cv_mutex_lock(&s->lock);
    bool ahead = entry->ahead; /* as long as nobody can find it */
    bool is_new = !cv_cache_table_find(&s->table, entry->hash, &entry->key);
    if (is_new) cv_cache_table_add(&s->table, entry);
    cv_mutex_unlock(&s->lock);
    if (is_new) {
        cv_cache_queue_add(q, entry, false, time_of(cache));
        q->inserted++;
        q->prefetched += ahead;
        if (q->inserted % BLOCKS_PER_TICK == 0)
            atomic_fetch_add_explicit(&cache->clock, 1, memory_order_relaxed);
    }
    cv_mutex_unlock(&q->lock);
    return is_new;
}

cv_cached *cv_cache_reserve(cv_cache *cache, const cv_cache_key *key, size_t size)
{
    cv_cached *entry = take_room(cache, size);
    if (!entry) return NULL;
    entry->key = *key;
    entry->hash = cv_hash_of_key(key);
    entry->rotated = entry->ahead = false;
    cv_sweep_init(&entry->sweep);
    atomic_init(&entry->pins, 0);
    atomic_init(&entry->uses, 0);
    return entry;
}

uint8_t *cv_cached_room(cv_cached *reserved) { return reserved->memory.bytes; }

bool cv_cached_is_rotated(const cv_cached *found) { return found->rotated; }

cv_sweep *cv_cached_sweep(cv_cached *found) { return &found->sweep; }

void cv_cached_mark_rotated(cv_cached *reserved) { reserved->rotated = true; }

void cv_cached_mark_ahead(cv_cached *reserved)
{
    reserved->ahead = true;
    atomic_store_explicit(&reserved->uses, CV_CACHE_MOST_USES, memory_order_relaxed);
}

void cv_cache_settle(cv_cache *cache, cv_cached *reserved, bool good)
{
    if (!good || !link_entry(cache, reserved)) drop(cache, reserved);
}

static void forget_in(cv_cache *cache, cv_cache_queue *q, const cv_cache_line *line,
                      uint64_t frame)
{
    for (cv_cached *entry = line->head, *next; entry; entry = next) {
        next = entry->behind;
        if (entry->key.frame == frame && take_out(cache, q, entry)) drop(cache, entry);
    }
}

void cv_cache_forget(cv_cache *cache, uint64_t frame)
{
    for (int i = 0; i < N_QUEUES; i++) {
        cv_cache_queue *q = &cache->queues[i];
        cv_mutex_lock(&q->lock);
        forget_in(cache, q, &q->fresh, frame);
        forget_in(cache, q, &q->used, frame);
        cv_mutex_unlock(&q->lock);
    }
}

bool cv_cache_is_empty(const cv_cache *cache)
{
    return atomic_load_explicit(&cache->bytes, memory_order_relaxed) == 0;
}

void cv_cache_measure(cv_cache *cache, caterva_cache_info *out)
{
    *out = (caterva_cache_info){.limit = atomic_load(&cache->limit),
                                .bytes = atomic_load(&cache->bytes)};
    for (int i = 0; i < N_SHARDS; i++) {
        shard *s = &cache->shards[i];
        cv_mutex_lock(&s->lock);
        out->hits += (int64_t)s->hits;
        out->misses += (int64_t)s->misses;
        cv_mutex_unlock(&s->lock);
    }
    for (int i = 0; i < N_QUEUES; i++) {
        cv_cache_queue *q = &cache->queues[i];
        cv_mutex_lock(&q->lock);
        out->inserted += (int64_t)q->inserted;
        out->prefetched += (int64_t)q->prefetched;
        out->evicted += (int64_t)q->evicted;
        out->blocks += (int64_t)q->n_entries;
        cv_mutex_unlock(&q->lock);
    }
}
