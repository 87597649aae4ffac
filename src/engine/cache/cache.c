/* Room: engine/cache. Stores decoded blocks under keys and does not interpret them.
 *
 *     shards:  a table of entries             found by hash
 *     queues:  head <-> ... <-> tail          evicted at a head
 *
 * Each shard has a lock, so that lookups rarely contend; a lookup does not touch queues. Each queue
 * has a lock and serves some of the threads. A thread evicts from its own queue, so that a new
 * block reuses memory that is in the cache of the thread's core. If the head of another queue has
 * waited much longer, that head is evicted instead: the order is close to that of a single queue.
 * Lock order: queue, then shard or block memory.
 *
 * An entry is in a table and a queue, or belongs to the thread that adds it. `pins` counts
 * the threads that copy from it; a pinned entry is not evicted. The bytes are allocated apart
 * from the entries, so that entries are dense in processor caches. */
#include "engine/cache/cache.h"

#include "base/arith.h"
#include "base/heap.h"
#include "base/os.h"

#include <stdlib.h>
#include <string.h>

/* ---- Block memory: slabs of equal pieces, with a free list each -------------------- */

typedef struct cv_slab cv_slab;

/* Memory for blocks. Empty if all members except the lock are zero. Any thread may use it. */
typedef struct cv_block_memory {
    cv_mutex lock;
    cv_slab *open; /* slabs with a free piece; full slabs are in no list */
} cv_block_memory;

/* Blocks outside these limits come from malloc. One small block in use would keep a whole slab.
 * Large blocks get pages of their own from malloc. */
enum { SMALLEST = 16 * 1024, LARGEST = CV_LARGE_PAGE / 8, LINE = 64 };

typedef struct free_piece {
    struct free_piece *next;
} free_piece;

struct cv_slab {
    cv_slab *before, *behind; /* neighbours in the list of open slabs */
    uint8_t *bytes;
    size_t piece_size;
    size_t n_used;  /* allocated pieces */
    size_t n_begun; /* pieces that were ever allocated; the memory behind them is untouched */
    free_piece *free;
};

static bool is_full(const cv_slab *slab)
{
    return !slab->free && (slab->n_begun + 1) * slab->piece_size > CV_LARGE_PAGE;
}

static void add_open(cv_block_memory *memory, cv_slab *slab)
{
    slab->before = NULL;
    slab->behind = memory->open;
    if (slab->behind) slab->behind->before = slab;
    memory->open = slab;
}

static void remove_open(cv_block_memory *memory, cv_slab *slab)
{
    *(slab->before ? &slab->before->behind : &memory->open) = slab->behind;
    if (slab->behind) slab->behind->before = slab->before;
}

static cv_slab *new_slab(cv_block_memory *memory, size_t piece_size)
{
    cv_slab *slab = cv_malloc(sizeof *slab);
    uint8_t *bytes = cv_large_pages(CV_LARGE_PAGE);
    if (!slab || !bytes) {
        cv_free(slab);
        cv_free(bytes);
        return NULL;
    }
    *slab = (cv_slab){.bytes = bytes, .piece_size = piece_size};
    add_open(memory, slab);
    return slab;
}

static uint8_t *take_piece(cv_slab *slab)
{
    slab->n_used++;
    free_piece *piece = slab->free;
    if (!piece) return slab->bytes + slab->n_begun++ * slab->piece_size;
    slab->free = piece->next;
    return (uint8_t *)piece;
}

/* Allocates the entry's bytes, aligned to 64. */
static bool take_memory(cv_block_memory *memory, cv_cached *entry)
{
    size_t size = entry->size;
    entry->slab = NULL;
    if (size < SMALLEST || size > LARGEST) return (entry->bytes = cv_malloc(size)) != NULL;
    /* One cache line of padding: blocks a power of two apart would compete for the same sets
     * of the processor caches when a column is read. */
    size_t piece_size = (size + LINE - 1) / LINE * LINE + LINE;
    cv_mutex_lock(&memory->lock);
    cv_slab *slab = memory->open;
    while (slab && slab->piece_size != piece_size) slab = slab->behind;
    if (!slab) slab = new_slab(memory, piece_size);
    if (slab) {
        entry->bytes = take_piece(slab);
        entry->slab = slab;
        if (is_full(slab)) remove_open(memory, slab);
    }
    cv_mutex_unlock(&memory->lock);
    return slab != NULL;
}

/* Frees the entry's bytes. Also frees their slab if no other piece of the slab is in use. */
static void give_memory(cv_block_memory *memory, const cv_cached *entry)
{
    cv_slab *slab = entry->slab;
    if (!slab) {
        cv_free(entry->bytes);
        return;
    }
    cv_mutex_lock(&memory->lock);
    bool was_full = is_full(slab);
    free_piece *piece = (free_piece *)(void *)entry->bytes;
    piece->next = slab->free;
    slab->free = piece;
    bool is_last = --slab->n_used == 0;
    if (was_full && !is_last) add_open(memory, slab);
    if (!was_full && is_last) remove_open(memory, slab);
    cv_mutex_unlock(&memory->lock);
    if (!is_last) return;
    cv_free(slab->bytes);
    cv_free(slab);
}

/* ---- Keys ------------------------------------------------------------------ */

static inline bool is_same_key(const cv_cache_key *a, const cv_cache_key *b)
{
    return a->pos == b->pos && a->block == b->block && a->frame == b->frame &&
           a->object == b->object && a->generation == b->generation;
}

static inline uint64_t mix(uint64_t x)
{
    x ^= x >> 32; /* degski's 64-bit mixer */
    x *= UINT64_C(0xd6e8feb86659fd93);
    x ^= x >> 32;
    x *= UINT64_C(0xd6e8feb86659fd93);
    return x ^ x >> 32;
}

static inline uint64_t hash_of(const cv_cache_key *key)
{
    uint64_t chunk = key->pos + UINT64_C(0x9e3779b97f4a7c15) * (uint64_t)key->object;
    uint64_t rest = key->frame << 40 ^ (uint64_t)key->generation << 20 ^ (uint64_t)key->block;
    return mix(mix(chunk) + rest);
}

/* ---- Sweeps ------------------------------------------------------------------ */

/* Returns whether `part` and the part `step` bytes before it are disjoint: along the outermost axis
 * of the step, `part` is not longer than the step. */
static bool is_apart(const cv_grid *grid, const cv_block_job *part, int64_t step)
{
    for (int d = 0; d < grid->ndim; d++)
        if (grid->item_strides[d] <= step)
            return part->shape[d] * grid->item_strides[d] <= step;
    return false;
}

void cv_sweep_init(cv_sweep *sweep)
{
    atomic_init(&sweep->last, -1);
    atomic_init(&sweep->way, 0);
}

/* Inline, because every hit calls it. */
static inline cv_step note(cv_sweep *sweep, const cv_grid *grid, const cv_block_job *part)
{
    int64_t last = atomic_load_explicit(&sweep->last, memory_order_relaxed);
    int before = atomic_load_explicit(&sweep->way, memory_order_relaxed);
    int64_t step = last < 0 ? 0 : part->block_pos - last;
    int way = (step > 0) - (step < 0);
    bool is_on = last < 0 || (before + way != 0 && is_apart(grid, part, step * way));
    atomic_store_explicit(&sweep->last, part->block_pos, memory_order_relaxed);
    atomic_store_explicit(&sweep->way, way, memory_order_relaxed);
    if (!is_on) return CV_STEP_BACK;
    bool at_end = way < 0 || part->ends, at_begin = way > 0 || part->block_pos == 0;
    return at_end && at_begin ? CV_STEP_LAST : CV_STEP_ON;
}

cv_step cv_sweep_note(cv_sweep *sweep, const cv_grid *grid, const cv_block_job *part)
{
    return note(sweep, grid, part);
}

/* ---- Hash tables; callers hold the shard's lock --------------------------------- */

enum { FIRST_BUCKETS = 64 };

typedef struct hash_table {
    cv_cached **buckets; /* `first`, or a larger array that the table owns */
    size_t n_buckets;    /* a power of two */
    size_t n_entries;
    cv_cached *first[FIRST_BUCKETS];
} hash_table;

static inline cv_cached **bucket_of(const hash_table *table, uint64_t hash)
{
    return &table->buckets[hash & (table->n_buckets - 1)];
}

static inline cv_cached *table_find(const hash_table *table, uint64_t hash,
                                    const cv_cache_key *key)
{
    cv_cached *entry = *bucket_of(table, hash);
    while (entry && !(entry->hash == hash && is_same_key(&entry->key, key)))
        entry = entry->chained;
    return entry;
}

static void add_to_bucket(hash_table *t, cv_cached *entry)
{
    cv_cached **bucket = bucket_of(t, entry->hash);
    entry->chained = *bucket;
    *bucket = entry;
}

/* Doubles the number of buckets. If memory runs out, the chains grow instead. */
static void grow(hash_table *t)
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

static void table_add(hash_table *t, cv_cached *entry)
{
    if (t->n_entries >= t->n_buckets) grow(t);
    add_to_bucket(t, entry);
    t->n_entries++;
}

static void table_remove(hash_table *t, cv_cached *entry)
{
    cv_cached **link = bucket_of(t, entry->hash);
    while (*link != entry) link = &(*link)->chained;
    *link = entry->chained;
    if (--t->n_entries > 0 || t->buckets == t->first) return;
    cv_free(t->buckets); /* an empty table uses `first` again */
    memset(t->first, 0, sizeof t->first);
    t->buckets = t->first;
    t->n_buckets = FIRST_BUCKETS;
}

/* ---- Eviction queues -------------------------------------------------------------- */

enum { MOST_USES = 7 }; /* uses above this are not counted */

typedef struct queue_line {
    cv_cached *head, *tail;
    int64_t bytes;
} queue_line;

/* The blocks that some of the threads have added, in two lines. */
typedef struct queue {
    _Alignas(64) cv_mutex lock; /* protects the members up to `evicted` */
    queue_line fresh, used;
    size_t n_entries;
    uint64_t inserted, prefetched, evicted;
    /* The queue from which threads of this queue evict, and how often these threads have asked. */
    atomic_size_t source;
    atomic_uint n_asked;
    /* When the next head to be evicted joined its line, or NONE. Read without the lock. */
    atomic_uint_least64_t head_time;
    atomic_int_least64_t *used_bytes; /* the cache's member */
} queue;

#define NONE UINT64_MAX

static inline int64_t cost_of(size_t size) { return (int64_t)(sizeof(cv_cached) + size); }

static queue_line *line_of(queue *q, const cv_cached *entry)
{
    return entry->is_used ? &q->used : &q->fresh;
}

/* Returns whether the head of `used` is evicted next: if `fresh` has at most half of the
 * bytes, or the head of `used` is older. */
static bool used_leave(const queue *q)
{
    if (!q->used.head) return false;
    return q->fresh.bytes <= q->used.bytes || q->used.head->time < q->fresh.head->time;
}

static cv_cached *head_of(const queue *q)
{
    return used_leave(q) ? q->used.head : q->fresh.head;
}

static void publish_head(queue *q)
{
    const cv_cached *head = head_of(q);
    uint64_t time = head ? head->time : NONE;
    if (time != atomic_load_explicit(&q->head_time, memory_order_relaxed))
        atomic_store_explicit(&q->head_time, time, memory_order_relaxed);
}

static void add_bytes(queue *q, queue_line *line, int64_t bytes)
{
    line->bytes += bytes;
    if (line == &q->used)
        atomic_fetch_add_explicit(q->used_bytes, bytes, memory_order_relaxed);
}

static queue_line *join(queue *q, cv_cached *entry, bool is_used, uint64_t time)
{
    entry->is_used = is_used;
    entry->time = time;
    queue_line *line = line_of(q, entry);
    add_bytes(q, line, cost_of(entry->size));
    q->n_entries++;
    return line;
}

static void leave(queue *q, cv_cached *entry)
{
    queue_line *line = line_of(q, entry);
    *(entry->before ? &entry->before->behind : &line->head) = entry->behind;
    *(entry->behind ? &entry->behind->before : &line->tail) = entry->before;
    add_bytes(q, line, -cost_of(entry->size));
    q->n_entries--;
}

/* Appends the entry to a line. */
static void queue_add(queue *q, cv_cached *entry, bool is_used, uint64_t time)
{
    queue_line *line = join(q, entry, is_used, time);
    entry->before = line->tail;
    entry->behind = NULL;
    *(line->tail ? &line->tail->behind : &line->head) = entry;
    line->tail = entry;
    publish_head(q);
}

/* Makes the entry the next one to be evicted. */
static void queue_move_first(queue *q, cv_cached *entry)
{
    leave(q, entry);
    queue_line *line = join(q, entry, used_leave(q), 0);
    entry->before = NULL;
    entry->behind = line->head;
    *(line->head ? &line->head->before : &line->tail) = entry;
    line->head = entry;
    publish_head(q);
}

/* Moves the head to the end instead of evicting it, and takes one use from it. */
static void queue_step_back(queue *q, cv_cached *entry, uint64_t time)
{
    int uses = atomic_load_explicit(&entry->uses, memory_order_relaxed);
    if (uses > 0) atomic_store_explicit(&entry->uses, uses - 1, memory_order_relaxed);
    leave(q, entry);
    queue_add(q, entry, entry->is_used || uses > 0, time);
}

/* ---- The cache ---------------------------------------------------------------- */

enum { N_SHARDS = 32, N_QUEUES = 8 };

/* The clock ticks when a queue has received 16 blocks. Each queue compares the heads of all
 * queues every 8 evictions. After 4 entries that must stay, the next queue is tried. */
enum { BLOCKS_PER_TICK = 16, BLOCKS_PER_LOOK = 8, STEPS_BACK = 4 };

typedef struct shard {
    _Alignas(64) cv_mutex lock;
    uint64_t hits, misses;
    hash_table table;
} shard;

struct cv_cache {
    shard shards[N_SHARDS];
    queue queues[N_QUEUES];
    _Alignas(64) cv_block_memory memory;
    /* Bytes of all entries, even of those being added. Rarely changes while the cache is full. */
    _Alignas(64) atomic_int_least64_t bytes;
    /* On a cache line of its own, because every request reads it and few requests write it. */
    _Alignas(64) atomic_int_least64_t limit;
    /* Bytes of entries in `used` lines, and the clock, which counts ticks (BLOCKS_PER_TICK). */
    _Alignas(64) atomic_int_least64_t used_bytes;
    atomic_uint_least64_t clock;
};

/* ---- Creation and release ------------------------------------------------ */

static void init(cv_cache *cache, int64_t limit)
{
    atomic_init(&cache->bytes, 0);
    atomic_init(&cache->limit, limit);
    cv_mutex_init(&cache->memory.lock);
    atomic_init(&cache->clock, 1);
    atomic_init(&cache->used_bytes, 0);
    for (int i = 0; i < N_QUEUES; i++) {
        queue *q = &cache->queues[i];
        cv_mutex_init(&q->lock);
        atomic_init(&q->head_time, NONE);
        q->used_bytes = &cache->used_bytes;
    }
    for (int i = 0; i < N_SHARDS; i++) {
        shard *s = &cache->shards[i];
        cv_mutex_init(&s->lock);
        s->table.buckets = s->table.first;
        s->table.n_buckets = FIRST_BUCKETS;
    }
}

static cv_cache shared;
static cv_once shared_once = CV_ONCE_INIT;

static void before_fork(void)
{
    cv_cache_shared(); /* initialises the cache if necessary */
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

/* All structures are consistent, because all locks were held. The threads that held pins do
 * not exist in the child. */
static void after_fork_in_child(void)
{
    for (int i = 0; i < N_QUEUES; i++) {
        queue *q = &shared.queues[i];
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
        if (s->table.buckets != s->table.first) cv_free(s->table.buckets);
        cv_mutex_destroy(&s->lock);
    }
    for (int i = 0; i < N_QUEUES; i++) cv_mutex_destroy(&cache->queues[i].lock);
    cv_mutex_destroy(&cache->memory.lock);
    cv_free(cache);
}

/* ---- Shard and queue numbers ---------------------------------------------- */

static size_t shard_number(uint64_t hash) { return hash >> 59; } /* N_SHARDS is 2^5 */

/* Constant for the life of the thread. */
static size_t queue_number(void)
{
    static atomic_uint n_threads;
    static _Thread_local unsigned number; /* counts from 1; 0 means not assigned yet */
    if (number == 0)
        number =
            1 + atomic_fetch_add_explicit(&n_threads, 1, memory_order_relaxed) % N_QUEUES;
    return number - 1;
}

static uint64_t time_of(const cv_cache *cache)
{
    return atomic_load_explicit(&cache->clock, memory_order_relaxed);
}

/* ---- Eviction ------------------------------------------------------------- */

/* Removes an entry from table and queue unless it is pinned. The queue's lock is held. */
static bool take_out(cv_cache *cache, queue *q, cv_cached *entry)
{
    shard *s = &cache->shards[shard_number(entry->hash)];
    cv_mutex_lock(&s->lock);
    bool is_free = atomic_load_explicit(&entry->pins, memory_order_acquire) == 0;
    if (is_free) table_remove(&s->table, entry);
    cv_mutex_unlock(&s->lock);
    if (is_free) {
        leave(q, entry);
        publish_head(q);
    }
    return is_free;
}

/* Removes the next entry that can be evicted. Returns NULL if the queue is empty, or if STEPS_BACK
 * entries in a row must stay. */
static cv_cached *take_head(cv_cache *cache, queue *q)
{
    for (int i = 0; i < STEPS_BACK; i++) {
        cv_cached *entry = head_of(q);
        if (!entry) return NULL;
        if (atomic_load_explicit(&entry->uses, memory_order_relaxed) <= 0 &&
            take_out(cache, q, entry)) {
            q->evicted++;
            return entry;
        }
        queue_step_back(q, entry, time_of(cache));
    }
    return NULL;
}

/* Removes the next entry that can be evicted, from queue `first` if possible. Returns NULL if no
 * entry can be evicted. Each step back takes a use, so the number of rounds is bounded. */
static cv_cached *take_victim(cv_cache *cache, size_t first)
{
    size_t longest = 0;
    for (size_t i = 0; i / N_QUEUES <= MOST_USES * longest; i++) {
        queue *q = &cache->queues[(first + i) % N_QUEUES];
        if (atomic_load_explicit(&q->head_time, memory_order_relaxed) == NONE) continue;
        cv_mutex_lock(&q->lock);
        if (q->n_entries > longest) longest = q->n_entries;
        cv_cached *victim = take_head(cache, q);
        cv_mutex_unlock(&q->lock);
        if (victim) return victim;
    }
    return NULL;
}

/* Returns the queue whose head has waited longest. Prefers `own`, whose memory is in this core's
 * cache, unless another head has waited a quarter longer. */
static size_t oldest_queue(const cv_cache *cache, size_t own)
{
    uint64_t now = time_of(cache);
    uint64_t time = atomic_load_explicit(&cache->queues[own].head_time, memory_order_relaxed);
    uint64_t wait = time < now ? now - time : 0; /* 0 if the queue is empty */
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

static size_t choose_source(cv_cache *cache, size_t own)
{
    queue *q = &cache->queues[own];
    unsigned n = atomic_load_explicit(&q->n_asked, memory_order_relaxed);
    atomic_store_explicit(&q->n_asked, n + 1, memory_order_relaxed);
    if (n % BLOCKS_PER_LOOK != 0)
        return atomic_load_explicit(&q->source, memory_order_relaxed);
    size_t source = oldest_queue(cache, own);
    atomic_store_explicit(&q->source, source, memory_order_relaxed);
    return source;
}

/* ---- Allocation and admission --------------------------------------------- */

static cv_cached *new_entry(cv_cache *cache, size_t size)
{
    cv_cached *entry = cv_malloc(sizeof *entry);
    if (!entry) return NULL;
    entry->size = size;
    if (take_memory(&cache->memory, entry)) return entry;
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
    subtract(cache, cost_of(entry->size));
    give_memory(&cache->memory, entry);
    cv_free(entry);
}

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

bool cv_cache_fits(const cv_cache *cache, const cv_grid *grid)
{
    return grid->n_all_blocks <= cv_cache_limit(cache) / cost_of((size_t)grid->block_bytes);
}

/* Returns the bytes that one request may add: the bytes that used blocks leave, less an eighth, so
 * that blocks of one request do not evict each other. */
static int64_t share_of_request(const cv_cache *cache)
{
    int64_t limit = atomic_load_explicit(&cache->limit, memory_order_relaxed);
    int64_t used = atomic_load_explicit(&cache->used_bytes, memory_order_relaxed);
    int64_t left = cv_max_i64(limit / 2, limit - used);
    return cv_min_i64(left / 8 * 7, limit / 4 * 3);
}

static bool is_admitted(const cv_cache *cache, uint64_t hash, const cv_cache_entrant *entrant)
{
    int64_t share = share_of_request(cache);
    if (entrant->ahead || entrant->request_bytes <= share) return true;
    /* Bits of the hash that select neither shard nor bucket. */
    double place = (double)(hash >> 27 & 0xFFFFFFFF) / 4294967296.0;
    return place * (double)entrant->request_bytes < (double)share;
}

/* ---- Lookup and insertion -------------------------------------------------- */

cv_cached *cv_cache_find(cv_cache *cache, const cv_cache_key *key)
{
    uint64_t hash = hash_of(key);
    shard *s = &cache->shards[shard_number(hash)];
    cv_mutex_lock(&s->lock);
    cv_cached *found = table_find(&s->table, hash, key);
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

void cv_cache_release(cv_cache *cache, cv_cached *found, const cv_grid *grid,
                      const cv_block_job *part)
{
    cv_step step = part ? note(&found->sweep, grid, part) : CV_STEP_BACK;
    int uses = atomic_load_explicit(&found->uses, memory_order_relaxed);
    if (step == CV_STEP_BACK) {
        if (uses < MOST_USES)
            atomic_store_explicit(&found->uses, uses + 1, memory_order_relaxed);
    } else if (uses <= 0) {
        if (uses < 0) atomic_store_explicit(&found->uses, 0, memory_order_relaxed);
        if (step == CV_STEP_LAST && !cv_cache_fits(cache, grid)) {
            queue *q = &cache->queues[found->queue];
            cv_mutex_lock(&q->lock);
            queue_move_first(q, found);
            cv_mutex_unlock(&q->lock);
        }
    }
    atomic_fetch_sub_explicit(&found->pins, 1, memory_order_release);
}

bool cv_cache_holds(cv_cache *cache, const cv_cache_key *key)
{
    uint64_t hash = hash_of(key);
    shard *s = &cache->shards[shard_number(hash)];
    cv_mutex_lock(&s->lock);
    bool holds = table_find(&s->table, hash, key) != NULL;
    cv_mutex_unlock(&s->lock);
    return holds;
}

/* If the cache is full, evicts an entry. If the entry's block has `size` bytes, returns the entry,
 * which is still counted; else frees it and returns NULL. */
static cv_cached *take_over(cv_cache *cache, size_t size)
{
    int64_t bytes = atomic_load_explicit(&cache->bytes, memory_order_relaxed);
    int64_t limit = atomic_load_explicit(&cache->limit, memory_order_relaxed);
    if (bytes > limit || bytes + cost_of(size) <= limit) return NULL;
    cv_cached *victim = take_victim(cache, choose_source(cache, queue_number()));
    if (!victim || victim->size == size) return victim;
    drop(cache, victim);
    return NULL;
}

/* Returns a counted entry with `size` bytes, which is in no table; NULL if there is no room. */
static cv_cached *take_room(cv_cache *cache, size_t size)
{
    int64_t cost = cost_of(size);
    if (cost > atomic_load_explicit(&cache->limit, memory_order_relaxed)) return NULL;
    cv_cached *entry = take_over(cache, size);
    if (entry) return entry;
    atomic_fetch_add_explicit(&cache->bytes, cost, memory_order_relaxed);
    make_room(cache);
    if (!is_over(cache)) entry = new_entry(cache, size);
    if (!entry) subtract(cache, cost);
    return entry;
}

/* Adds the entry to its table. Returns false if another thread has already added the key. */
static bool link_entry(cv_cache *cache, cv_cached *entry)
{
    shard *s = &cache->shards[shard_number(entry->hash)];
    entry->queue = queue_number();
    queue *q = &cache->queues[entry->queue];
    cv_mutex_lock(&q->lock);
    cv_mutex_lock(&s->lock);
    bool ahead = entry->ahead; /* read before other threads can find the entry */
    bool is_new = !table_find(&s->table, entry->hash, &entry->key);
    if (is_new) table_add(&s->table, entry);
    cv_mutex_unlock(&s->lock);
    if (is_new) {
        queue_add(q, entry, false, time_of(cache));
        q->inserted++;
        q->prefetched += ahead;
        if (q->inserted % BLOCKS_PER_TICK == 0)
            atomic_fetch_add_explicit(&cache->clock, 1, memory_order_relaxed);
    }
    cv_mutex_unlock(&q->lock);
    return is_new;
}

cv_cached *cv_cache_reserve(cv_cache *cache, const cv_cache_key *key,
                            const cv_cache_entrant *entrant)
{
    uint64_t hash = hash_of(key);
    cv_cached *entry =
        is_admitted(cache, hash, entrant) ? take_room(cache, entrant->size) : NULL;
    if (!entry) return NULL;
    entry->key = *key;
    entry->hash = hash;
    entry->is_rotated = false;
    entry->ahead = entrant->ahead;
    cv_sweep_init(&entry->sweep);
    atomic_init(&entry->pins, 0);
    atomic_init(&entry->uses, entrant->ahead ? MOST_USES : 0);
    return entry;
}

void cv_cache_settle(cv_cache *cache, cv_cached *reserved, bool good)
{
    if (!good || !link_entry(cache, reserved)) drop(cache, reserved);
}

static void forget_in(cv_cache *cache, queue *q, const queue_line *line, uint64_t frame)
{
    for (cv_cached *entry = line->head, *next; entry; entry = next) {
        next = entry->behind;
        if (entry->key.frame == frame && take_out(cache, q, entry)) drop(cache, entry);
    }
}

void cv_cache_forget(cv_cache *cache, uint64_t frame)
{
    for (int i = 0; i < N_QUEUES; i++) {
        queue *q = &cache->queues[i];
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
    *out = (caterva_cache_info){0};
    out->limit = atomic_load(&cache->limit);
    out->bytes = atomic_load(&cache->bytes);
    for (int i = 0; i < N_SHARDS; i++) {
        shard *s = &cache->shards[i];
        cv_mutex_lock(&s->lock);
        out->hits += (int64_t)s->hits;
        out->misses += (int64_t)s->misses;
        cv_mutex_unlock(&s->lock);
    }
    for (int i = 0; i < N_QUEUES; i++) {
        queue *q = &cache->queues[i];
        cv_mutex_lock(&q->lock);
        out->inserted += (int64_t)q->inserted;
        out->prefetched += (int64_t)q->prefetched;
        out->evicted += (int64_t)q->evicted;
        out->blocks += (int64_t)q->n_entries;
        cv_mutex_unlock(&q->lock);
    }
}
