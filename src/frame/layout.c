/* Room: frame. Reads and checks chunk headers and block starts, and keeps the
 * result. What a block holds, and who wants it, is not known here. */
#include "frame/layout.h"

#include "base/arith.h"
#include "format/block_table.h"

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
    int64_t entry = (int64_t)sizeof(cv_layout) + n_blocks * (int64_t)sizeof(cv_block_range);
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

static cv_layout *lookup(cv_layout_cache *cache, const cv_chunk_ref *ref)
{
    pthread_mutex_t *lock;
    set *s = lock_set(cache, ref->object, ref->pos, &lock);
    int way = way_of(s, ref->object, ref->pos);
    cv_layout *found = way < WAYS ? s->ways[way] : NULL;
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

void cv_layout_release(cv_layout *layout)
{
    if (!layout) return;
    if (atomic_fetch_sub_explicit(&layout->references, 1, memory_order_acq_rel) == 1)
        free(layout);
}

uint64_t cv_layout_stored_size(const cv_layout *layout, const cv_chunk_ref *ref)
{
    bool behind = ref->name != 0 && ref->table_pos == 0;
    return (uint64_t)layout->header.cbytes + (behind ? layout->table_size : 0);
}

/* ---- Reading ------------------------------------------------------------ */

/* A chunk of so few bytes is read at once and stays whole in its layout: it would
 * cost a second read, which takes longer than all else there is to do. */
enum { SMALL_CHUNK = 512 };

/* The first bytes of a chunk: header and, as a rule, all block starts. */
typedef struct chunk_head {
    const uint8_t *bytes;
    size_t size;
    bool borrowed;
    cv_buffer buffer;
    uint8_t small[CV_CHUNK_HEADER_SIZE + SMALL_CHUNK]; /* in place of the buffer */
} chunk_head;

static cv_status read_head(cv_store *store, const cv_chunk_ref *ref, size_t size,
                           chunk_head *head, cv_error *err)
{
    head->size = size;
    head->bytes = cv_store_view(store, ref->object, ref->pos, size);
    head->borrowed = head->bytes != NULL;
    if (head->borrowed) return CV_OK;
    uint8_t *to = head->small;
    if (size > sizeof head->small) {
        CV_TRY(cv_buffer_resize(&head->buffer, size, err));
        to = head->buffer.data;
    }
    head->bytes = to;
    return cv_store_read(store, ref->object, ref->pos, to, size, err);
}

/* With room for the repeated item, or for the chunk's bytes, or neither. */
static cv_layout *new_layout(const cv_chunk_ref *ref, int64_t n_blocks, size_t item_size,
                             size_t chunk_size)
{
    size_t ranges = (size_t)n_blocks * sizeof(cv_block_range);
    cv_layout *layout = malloc(sizeof *layout + ranges + item_size + chunk_size);
    if (!layout) return NULL;
    *layout = (cv_layout){.object = ref->object, .pos = ref->pos, .n_blocks = n_blocks};
    atomic_init(&layout->references, 1);
    layout->blocks = (cv_block_range *)(layout + 1);
    uint8_t *behind = (uint8_t *)(layout + 1) + ranges;
    layout->item = item_size > 0 ? behind : NULL;
    layout->chunk = chunk_size > 0 ? behind + item_size : NULL;
    return layout;
}

/* What stands behind the header: block starts, or a repeated item, or nothing
 * that is needed. */
static cv_status read_body(cv_store *store, const cv_chunk_ref *ref, const chunk_head *head,
                           const cv_chunk_expect *expect, cv_layout *layout, cv_error *err)
{
    size_t size = layout->item ? (size_t)(layout->header.cbytes - CV_CHUNK_HEADER_SIZE)
                               : (size_t)cv_block_starts_size(&layout->header);
    if (size == 0) return CV_OK;

    cv_buffer rest = {0};
    const uint8_t *bytes = head->bytes + CV_CHUNK_HEADER_SIZE;
    cv_status status = CV_OK;
    if (head->size < CV_CHUNK_HEADER_SIZE + size) {
        status = cv_buffer_resize(&rest, size, err);
        if (status == CV_OK)
            status = cv_store_read(store, ref->object, ref->pos + CV_CHUNK_HEADER_SIZE,
                                   rest.data, size, err);
        bytes = rest.data;
    }
    if (status == CV_OK && layout->item)
        memcpy(layout->item, bytes, size);
    else if (status == CV_OK)
        status = cv_block_starts_parse(&layout->header, bytes, layout->n_blocks, expect,
                                       layout->blocks, err);
    cv_buffer_free(&rest);
    return status;
}

static cv_status parse_layout(cv_store *store, const cv_grid *grid, const cv_chunk_ref *ref,
                              const chunk_head *head, uint64_t limit, cv_layout **out,
                              cv_error *err)
{
    cv_chunk_expect expect = {
        .chunk = ref->chunk,
        .pos = (int64_t)ref->pos,
        .nbytes = grid->chunk_bytes,
        .block_size = grid->block_bytes,
        .item_size = grid->item_size,
        .max_cbytes = (int64_t)cv_min_i64((int64_t)limit, INT32_MAX),
    };
    cv_chunk_header header;
    CV_TRY(cv_chunk_header_parse(head->bytes, &expect, &header, err));

    bool has_blocks = header.special == CV_SPECIAL_NONE && !header.memcpyed;
    size_t item_size = header.special == CV_SPECIAL_VALUE ? (size_t)grid->item_size : 0;
    bool is_small = header.special == CV_SPECIAL_NONE && !head->borrowed &&
                    header.cbytes <= (int64_t)sizeof head->small &&
                    (size_t)header.cbytes <= head->size;
    cv_layout *layout = new_layout(ref, has_blocks ? grid->n_blocks : 0, item_size,
                                   is_small ? (size_t)header.cbytes : 0);
    if (!layout) return cv_fail_memory(err, sizeof *layout, "a chunk's layout");
    layout->header = header;
    memcpy(layout->header_bytes, head->bytes, CV_CHUNK_HEADER_SIZE);
    if (layout->chunk) memcpy(layout->chunk, head->bytes, (size_t)header.cbytes);
    layout->access = cv_codec_access(layout->header_bytes);
    layout->table_size = cv_block_table_size(cv_block_table_blocks(&header, grid->n_blocks));

    cv_status status = read_body(store, ref, head, &expect, layout, err);
    if (status == CV_OK)
        *out = layout;
    else
        cv_layout_release(layout);
    return status;
}

static cv_status read_layout(cv_store *store, const cv_grid *grid, const cv_chunk_ref *ref,
                             cv_layout **out, cv_error *err)
{
    uint64_t limit = ref->limit;
    if (limit == 0) CV_TRY(cv_store_size(store, ref->object, &limit, err));
    if (limit < CV_CHUNK_HEADER_SIZE)
        return cv_fail(err, CATERVA_ECORRUPT, (int64_t)ref->pos,
                       "chunk %lld has %llu bytes, less than a chunk's header",
                       (long long)ref->chunk, (unsigned long long)limit);

    bool is_small = grid->chunk_bytes <= SMALL_CHUNK;
    uint64_t wanted =
        CV_CHUNK_HEADER_SIZE +
        (is_small ? (uint64_t)grid->chunk_bytes : (uint64_t)grid->n_blocks * sizeof(int32_t));
    chunk_head head;
    head.buffer = (cv_buffer){0};
    cv_status status =
        read_head(store, ref, (size_t)(wanted < limit ? wanted : limit), &head, err);
    if (status == CV_OK) status = parse_layout(store, grid, ref, &head, limit, out, err);
    cv_buffer_free(&head.buffer);
    return status;
}

cv_status cv_layout_get(cv_frame *frame, const cv_snapshot *snapshot, const cv_chunk_ref *ref,
                        cv_layout **out, cv_error *err)
{
    *out = lookup(frame->layouts, ref);
    if (*out) return CV_OK;
    CV_TRY(read_layout(frame->store, &snapshot->grid, ref, out, err));
    keep(frame->layouts, ref, *out);
    return CV_OK;
}
