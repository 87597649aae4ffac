/* Room: frame. Reads and checks chunk headers and block starts. What a block holds, and
 * who wants it, is not known here; who keeps the result is layout_cache.c. */
#include "frame/layout.h"

#include "base/arith.h"
#include "base/crc.h"
#include "base/heap.h"
#include "format/seal.h"
#include "frame/lookup.h"

#include <stdlib.h>
#include <string.h>

/* ---- Layout ---- */

void cv_layout_release(cv_layout *layout)
{
    if (!layout || layout->in_room) return;
    if (atomic_fetch_sub_explicit(&layout->references, 1, memory_order_acq_rel) == 1)
        cv_free(layout);
}

uint64_t cv_layout_stored_size(const cv_layout *layout, const cv_chunk_ref *ref)
{
    bool behind = ref->name != 0 && ref->table_pos == 0;
    return (uint64_t)layout->header.cbytes + (behind ? layout->table_size : 0);
}

/* ---- Reading ------------------------------------------------------------ */

/* A chunk of so few bytes is read at once and stays whole in its layout: it would
 * cost a second read, which takes longer than all else there is to do. One of a
 * single block may be larger, since who reads it wants all of it. Of other chunks
 * that are checked one read gets so many bytes: as a rule the block table is among
 * them. */
enum { SMALL_CHUNK = 512, SMALL_BLOCK = 4000, CHECKED_READ = 4096 };

bool cv_layout_is_small(const cv_grid *grid)
{
    return grid->chunk_bytes <= (grid->n_blocks == 1 ? SMALL_BLOCK : SMALL_CHUNK);
}

/* The first bytes of a chunk: header and, as a rule, all block starts; of a small
 * one its block table, too. */
typedef struct chunk_head {
    const uint8_t *bytes;
    size_t size;
    bool borrowed;
    bool keeps_small;    /* the layout of a small chunk has all of it */
    cv_small_room *room; /* for the layout, and the bytes behind it; NULL: it is kept */
    cv_buffer buffer;
    uint8_t *small; /* CHECKED_READ bytes in place of the buffer */
} chunk_head;

/* The largest layout without a chunk. */
static size_t most_bytes(const cv_grid *grid)
{
    size_t each = sizeof(cv_block_range) + sizeof(uint32_t);
    return sizeof(cv_layout) + (size_t)grid->n_blocks * each + (size_t)grid->item_size;
}

static cv_status read_head(cv_store *store, const cv_grid *grid, const cv_chunk_ref *ref,
                           size_t size, chunk_head *head, cv_error *err)
{
    size_t before = head->room ? most_bytes(grid) : 0;
    if (head->room) CV_TRY(cv_buffer_reserve(&head->room->buffer, before + size, err));
    head->size = size;
    head->bytes = cv_store_view(store, ref->object, ref->pos, size);
    head->borrowed = head->bytes != NULL;
    if (head->borrowed) return CV_OK;
    uint8_t *to = head->room ? head->room->buffer.data + before : head->small;
    if (!head->room && size > CHECKED_READ) {
        CV_TRY(cv_buffer_resize(&head->buffer, size, err));
        to = head->buffer.data;
    }
    head->bytes = to;
    return cv_store_read(store, ref->object, ref->pos, to, size, err);
}

/* What a layout has behind it: ranges, sums, the repeated item or the chunk. */
typedef struct parts {
    int64_t n_blocks;
    int64_t n_sums;
    size_t item_size;
    size_t chunk_size;
} parts;

static cv_layout *new_layout(const cv_chunk_ref *ref, const parts *p,
                             const cv_small_room *room)
{
    size_t ranges = (size_t)p->n_blocks * sizeof(cv_block_range);
    size_t sums = (size_t)p->n_sums * sizeof(uint32_t);
    size_t size = sizeof(cv_layout) + ranges + sums + p->item_size + p->chunk_size;
    cv_layout *layout = room ? (cv_layout *)(void *)room->buffer.data : cv_malloc(size);
    if (!layout) return NULL;
    uint8_t *behind = (uint8_t *)(layout + 1);
    *layout = (cv_layout){.object = ref->object,
                          .pos = ref->pos,
                          .n_blocks = p->n_blocks,
                          .n_sums = p->n_sums,
                          .blocks = (cv_block_range *)(layout + 1),
                          .in_room = room != NULL};
    atomic_init(&layout->references, 1);
    layout->item = p->item_size > 0 ? behind + ranges + sums : NULL;
    layout->chunk = p->chunk_size > 0 ? behind + ranges + sums + p->item_size : NULL;
    return layout;
}

static uint32_t *sums_of(const cv_layout *layout)
{
    return (uint32_t *)(void *)(layout->blocks + layout->n_blocks);
}

/* What stands behind the header: block starts, or a repeated item, or nothing
 * that is needed. */
static cv_status read_body(cv_store *store, const cv_chunk_ref *ref, const chunk_head *head,
                           const cv_chunk_expect *expect, cv_layout *layout, cv_error *err)
{
    size_t size = layout->item ? (size_t)(layout->header.cbytes - CV_CHUNK_HEADER_SIZE)
                  : layout->n_blocks > 0 ? (size_t)cv_block_starts_size(&layout->header)
                                         : 0;
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

/* Headers of small chunks mostly equal the one before: what holds of that holds of them. */
static cv_status parse_header(const chunk_head *head, const cv_chunk_expect *expect,
                              cv_chunk_header *out, cv_error *err)
{
    cv_small_room *room = head->room;
    if (!room) return cv_chunk_header_parse(head->bytes, expect, out, err);
    const cv_chunk_expect *before = &room->expect;
    bool same =
        before->nbytes == expect->nbytes && before->block_size == expect->block_size &&
        before->item_size == expect->item_size && room->header.cbytes <= expect->max_cbytes &&
        memcmp(room->header_bytes, head->bytes, CV_CHUNK_HEADER_SIZE) == 0;
    if (same) {
        *out = room->header;
        return CV_OK;
    }
    CV_TRY(cv_chunk_header_parse(head->bytes, expect, out, err));
    memcpy(room->header_bytes, head->bytes, CV_CHUNK_HEADER_SIZE);
    room->header = *out;
    room->expect = *expect;
    return CV_OK;
}

static cv_status parse_layout(cv_store *store, const cv_snapshot *snapshot,
                              const cv_chunk_ref *ref, const chunk_head *head, uint64_t limit,
                              cv_layout **out, cv_error *err)
{
    const cv_grid *grid = &snapshot->grid;
    bool plain = snapshot->meta.plain;
    cv_chunk_expect expect = {
        .chunk = ref->chunk,
        .pos = (int64_t)ref->pos,
        .nbytes = cv_snapshot_chunk_bytes(snapshot, ref->chunk),
        .block_size = plain ? 0 : grid->block_bytes,
        .item_size = grid->item_size,
        .max_cbytes = (int64_t)cv_min_i64((int64_t)limit, INT32_MAX),
    };
    cv_chunk_header header;
    CV_TRY(parse_header(head, &expect, &header, err));

    bool has_blocks = header.special == CV_SPECIAL_NONE && !header.memcpyed && !plain;
    bool whole = header.special == CV_SPECIAL_NONE && !head->borrowed &&
                 (size_t)header.cbytes <= head->size;
    int32_t most = head->keeps_small ? header.cbytes : CV_CHUNK_HEADER_SIZE + SMALL_CHUNK;
    bool copied = whole && !head->room && header.cbytes <= most;
    parts p = {.n_blocks = has_blocks ? grid->n_blocks : 0,
               .n_sums = cv_block_table_blocks(&header, grid->n_blocks),
               .item_size = header.special == CV_SPECIAL_VALUE ? (size_t)grid->item_size : 0,
               .chunk_size = copied ? (size_t)header.cbytes : 0};
    cv_layout *layout = new_layout(ref, &p, head->room);
    if (!layout) return cv_fail_memory(err, sizeof *layout, "a chunk's layout");
    layout->header = header;
    memcpy(layout->header_bytes, head->bytes, CV_CHUNK_HEADER_SIZE);
    if (layout->chunk) memcpy(layout->chunk, head->bytes, (size_t)header.cbytes);
    if (whole && head->room) layout->chunk = (uint8_t *)head->bytes;
    layout->access = plain ? CV_ACCESS_CHUNK : cv_codec_access(layout->header_bytes);
    layout->table_size = cv_block_table_size(p.n_sums);
    layout->block_bytes = (int32_t)grid->block_bytes;

    cv_status status = read_body(store, ref, head, &expect, layout, err);
    if (status == CV_OK)
        *out = layout;
    else
        cv_layout_release(layout);
    return status;
}

/* ---- Checking ----------------------------------------------------------- */

static cv_status fail_chunk(const cv_layout *layout, const cv_chunk_ref *ref, cv_error *err)
{
    return cv_fail(err, CATERVA_ECORRUPT, (int64_t)layout->pos,
                   "chunk %lld at byte %lld is damaged: checksum differs",
                   (long long)ref->chunk, (long long)layout->pos);
}

static const cv_block_range *ranges_of(const cv_layout *layout)
{
    return layout->n_blocks > 0 ? layout->blocks : NULL;
}

void cv_layout_find_table(const cv_layout *layout, const cv_chunk_ref *ref, cv_object *object,
                          uint64_t *pos)
{
    bool is_behind = ref->table_pos == 0;
    *object = is_behind ? ref->object : CV_FRAME_OBJECT;
    *pos = is_behind ? ref->pos + (uint64_t)layout->header.cbytes : ref->table_pos;
}

/* The table's bytes, where they stand in what was read of the chunk, or read. */
static cv_status find_table(cv_store *store, const cv_chunk_ref *ref, const chunk_head *head,
                            const cv_layout *layout, cv_buffer *buffer, const uint8_t **out,
                            cv_error *err)
{
    size_t cbytes = (size_t)layout->header.cbytes, size = layout->table_size;
    if (ref->table_pos == 0 && cbytes + size <= head->size) {
        *out = head->bytes + cbytes;
        return CV_OK;
    }
    cv_object object;
    uint64_t pos;
    cv_layout_find_table(layout, ref, &object, &pos);
    CV_TRY(cv_buffer_resize(buffer, size, err));
    *out = buffer->data;
    return cv_store_read(store, object, pos, buffer->data, size, err);
}

/* The table must have the name that the seal knows; then it vouches for the rest. */
static cv_status take_table(cv_layout *layout, const cv_chunk_ref *ref, const uint8_t *bytes,
                            cv_error *err)
{
    cv_block_table table = {.n = layout->n_sums, .blocks = sums_of(layout)};
    if (cv_block_table_name(bytes, table.n) != ref->name ||
        !cv_block_table_read(bytes, &table))
        return fail_chunk(layout, ref, err);
    layout->name = ref->name;
    layout->head_sum = table.head;
    layout->sums = table.blocks;
    return CV_OK;
}

size_t cv_layout_head_size(const cv_layout *layout)
{
    return (size_t)cv_block_table_head(&layout->header, ranges_of(layout), layout->n_sums);
}

/* Header and block starts are at hand already, a dictionary is read. */
static cv_status check_head(cv_store *store, const cv_chunk_ref *ref, const chunk_head *head,
                            const cv_layout *layout, cv_error *err)
{
    cv_buffer buffer = {0};
    const uint8_t *bytes = head->bytes;
    size_t size = cv_layout_head_size(layout);
    cv_status status = CV_OK;
    if (size > head->size) {
        status = cv_buffer_resize(&buffer, size, err);
        if (status == CV_OK)
            status = cv_store_read(store, ref->object, ref->pos, buffer.data, size, err);
        bytes = buffer.data;
    }
    if (status == CV_OK && cv_crc32c(0, bytes, size) != layout->head_sum)
        status = fail_chunk(layout, ref, err);
    cv_buffer_free(&buffer);
    return status;
}

static cv_status check_layout(cv_store *store, const cv_chunk_ref *ref,
                              const chunk_head *head, cv_layout *layout, cv_error *err)
{
    cv_buffer buffer = {0};
    const uint8_t *bytes;
    cv_status status = find_table(store, ref, head, layout, &buffer, &bytes, err);
    if (status == CV_OK) status = take_table(layout, ref, bytes, err);
    cv_buffer_free(&buffer);
    return status == CV_OK ? check_head(store, ref, head, layout, err) : status;
}

cv_status cv_layout_check_block(const cv_layout *layout, const cv_chunk_ref *ref,
                                int64_t block, const uint8_t *bytes, cv_error *err)
{
    if (!layout->sums) return CV_OK;
    cv_block_range range = cv_block_table_range(&layout->header, ranges_of(layout), block);
    if (cv_crc32c(0, bytes, (size_t)(range.end - range.start)) == layout->sums[block])
        return CV_OK;
    int64_t pos = (int64_t)layout->pos + range.start;
    return cv_fail(err, CATERVA_ECORRUPT, pos,
                   "chunk %lld: block %lld damaged: checksum differs at byte %lld",
                   (long long)ref->chunk, (long long)block, (long long)pos);
}

cv_status cv_layout_check_chunk(const cv_layout *layout, const cv_chunk_ref *ref,
                                const uint8_t *bytes, cv_error *err)
{
    if (!layout->sums) return CV_OK;
    if (cv_crc32c(0, bytes, cv_layout_head_size(layout)) != layout->head_sum)
        return fail_chunk(layout, ref, err);
    for (int64_t i = 0; i < layout->n_sums; i++) {
        cv_block_range range = cv_block_table_range(&layout->header, ranges_of(layout), i);
        CV_TRY(cv_layout_check_block(layout, ref, i, bytes + range.start, err));
    }
    return CV_OK;
}

/* ---- One layout --------------------------------------------------------- */

uint32_t cv_layout_checked_name(const cv_snapshot *snapshot, const cv_chunk_ref *ref)
{
    return snapshot->unchecked ? 0 : ref->name;
}

bool cv_layout_is_checked(const cv_snapshot *snapshot, const cv_chunk_ref *ref)
{
    return cv_layout_checked_name(snapshot, ref) != 0;
}

size_t cv_layout_bytes(const cv_layout *layout)
{
    size_t each = sizeof(cv_block_range) + sizeof(uint32_t);
    return sizeof *layout + (size_t)layout->n_blocks * each;
}

/* Bytes of a chunk to be read at once: all of a small one, with its table. */
static uint64_t first_read(const cv_snapshot *snapshot, const cv_chunk_ref *ref)
{
    const cv_grid *grid = &snapshot->grid;
    bool checked = cv_layout_is_checked(snapshot, ref);
    if (cv_layout_is_small(grid))
        return CV_CHUNK_HEADER_SIZE + (uint64_t)grid->chunk_bytes +
               (checked ? cv_block_table_size(grid->n_blocks) : 0);
    uint64_t wanted = CV_CHUNK_HEADER_SIZE + (uint64_t)grid->n_blocks * sizeof(int32_t);
    return checked && wanted < CHECKED_READ ? CHECKED_READ : wanted;
}

void cv_layout_warm(cv_store *store, const cv_snapshot *snapshot, const cv_chunk_ref *ref)
{
    if (ref->kind != CV_REF_STORED || !cv_layout_is_small(&snapshot->grid)) return;
    uint64_t wanted = first_read(snapshot, ref);
    if (ref->limit == 0 || wanted <= ref->limit)
        cv_store_warm(store, ref->object, ref->pos, (size_t)wanted);
}

/* The file of a chunk is missing: damage, unless the store refused to look (sys_errno) or the
 * frame is gone as well. */
static cv_status fail_missing(cv_store *store, const cv_chunk_ref *ref, const cv_error *why,
                              cv_error *err)
{
    if (why->sys_errno != 0) {
        if (err) *err = *why;
        if (err) err->code = CATERVA_EIO;
        return CATERVA_EIO;
    }
    if (store->ops->check_frame) CV_TRY(store->ops->check_frame(store, err));
    return cv_fail(err, CATERVA_ECORRUPT, -1, "chunk %lld is lost: %.200s",
                   (long long)ref->chunk, why->message);
}

/* A chunk in a file of its own ends where the file does. */
static cv_status find_limit(cv_store *store, const cv_chunk_ref *ref, uint64_t *limit,
                            cv_error *err)
{
    cv_error error = {0};
    *limit = ref->limit;
    if (*limit > 0) return CV_OK;
    cv_status status = cv_store_size(store, ref->object, limit, &error);
    if (status == CATERVA_ENOTFOUND) return fail_missing(store, ref, &error, err);
    if (status != CV_OK && err) *err = error;
    return status;
}

cv_status cv_layout_begin(cv_store *store, const cv_snapshot *snapshot,
                          const cv_chunk_ref *ref, uint64_t *limit, size_t *size,
                          cv_error *err)
{
    CV_TRY(find_limit(store, ref, limit, err));
    if (*limit < CV_CHUNK_HEADER_SIZE)
        return cv_fail(err, CATERVA_ECORRUPT, (int64_t)ref->pos,
                       "chunk %lld has %llu bytes, less than a chunk's header",
                       (long long)ref->chunk, (unsigned long long)*limit);
    uint64_t wanted = first_read(snapshot, ref);
    *size = (size_t)(wanted < *limit ? wanted : *limit);
    return CV_OK;
}

cv_status cv_layout_read(cv_store *store, const cv_snapshot *snapshot,
                         const cv_chunk_ref *ref, cv_small_room *room, cv_layout **out,
                         cv_error *err)
{
    bool checked = cv_layout_is_checked(snapshot, ref);
    uint64_t limit = 0;
    size_t size = 0; /* GCC for s390x does not see that the call sets them */
    CV_TRY(cv_layout_begin(store, snapshot, ref, &limit, &size, err));

    uint8_t bytes[CHECKED_READ];
    chunk_head head = {.room = room, .small = bytes};
    cv_status status = read_head(store, &snapshot->grid, ref, size, &head, err);
    if (status == CV_OK) status = parse_layout(store, snapshot, ref, &head, limit, out, err);
    if (status == CV_OK && checked) {
        status = check_layout(store, ref, &head, *out, err);
        if (status != CV_OK) cv_layout_release(*out);
    }
    cv_buffer_free(&head.buffer);
    return status;
}

static chunk_head head_of(const cv_chunk_head *given)
{
    return (chunk_head){.bytes = given->bytes, .size = given->size};
}

cv_status cv_layout_parse(cv_store *store, const cv_snapshot *snapshot,
                          const cv_chunk_ref *ref, const cv_chunk_head *given,
                          cv_layout **out, cv_error *err)
{
    chunk_head head = head_of(given);
    head.keeps_small = given->keeps_chunk || cv_layout_is_small(&snapshot->grid);
    return parse_layout(store, snapshot, ref, &head, given->limit, out, err);
}

cv_status cv_layout_check(cv_store *store, cv_layout *layout, const cv_chunk_ref *ref,
                          const cv_chunk_head *given, const uint8_t *table, cv_error *err)
{
    const chunk_head head = head_of(given);
    CV_TRY(take_table(layout, ref, table, err));
    return check_head(store, ref, &head, layout, err);
}

cv_status cv_layout_read_small(cv_store *store, const cv_snapshot *snapshot,
                               const cv_chunk_ref *ref, cv_small_room *room,
                               const cv_layout **out, cv_error *err)
{
    cv_layout *layout;
    CV_TRY(cv_layout_read(store, snapshot, ref, room, &layout, err));
    *out = layout;
    return CV_OK;
}

/* ---- Layout records ----
 *
 * Records of layouts, read. A record counts when its block table has the name that
 * the seal knows, and its head the sum that the table has: so a damaged one, or one of another
 * chunk, is none. Who asks for them, and when, is not known here. */

static int64_t count_names(const cv_index *index, int64_t page, int64_t n)
{
    int64_t named = 0;
    for (int64_t i = 0; i < n; i++) named += cv_page_name(index->pages[page], i) != 0;
    return named;
}

static int64_t entries_of(const cv_index *index, int64_t page)
{
    int64_t left = index->n - page * CV_INDEX_PAGE;
    return left < CV_INDEX_PAGE ? left : CV_INDEX_PAGE;
}

static cv_status count_all(cv_snapshot *snapshot, const cv_index *index,
                           const cv_layout_area *area, cv_layout_records **out, cv_error *err)
{
    int64_t n = index->n_pages, sum = 0;
    size_t size = sizeof(cv_layout_records) + (size_t)(n + 1) * sizeof(int64_t);
    cv_layout_records *r = cv_malloc(size);
    if (!r) return cv_fail_memory(err, size, "a list of layouts");
    *r = (cv_layout_records){*area, snapshot, index};
    for (int64_t p = 0; p < n; p++) {
        r->before[p] = sum;
        sum += count_names(index, p, entries_of(index, p));
    }
    r->before[n] = sum;
    if (sum == area->n)
        *out = r;
    else
        cv_free(r);
    return CV_OK;
}

/* Those of the snapshot, which outlives them; NULL: it has none whose footer is at hand, or
 * they cannot be used. Free with cv_free. */
static cv_status cv_layout_records_new(cv_snapshot *snapshot, cv_store *store,
                                cv_layout_records **out, cv_error *err)
{
    const cv_index *index;
    cv_layout_area area;
    *out = NULL;
    CV_TRY(cv_snapshot_index(snapshot, store, &index, err));
    uint64_t end = cv_layout_area_end(snapshot);
    if (!index->pages || end < CV_LAYOUTS_FOOTER) return CV_OK;
    if (!cv_store_view(store, CV_FRAME_OBJECT, end - CV_LAYOUTS_FOOTER, CV_LAYOUTS_FOOTER))
        return CV_OK;
    CV_TRY(cv_layout_area_find(snapshot, store, &area, err));
    return area.size > 0 ? count_all(snapshot, index, &area, out, err) : CV_OK;
}

bool cv_layout_records_find(const cv_layout_records *r, int64_t chunk, int64_t *record)
{
    int64_t page = chunk / CV_INDEX_PAGE, at = chunk % CV_INDEX_PAGE;
    if (cv_index_name(r->index, chunk) == 0) return false;
    bool all_have = r->before[page + 1] - r->before[page] == entries_of(r->index, page);
    *record = r->before[page] + (all_have ? at : count_names(r->index, page, at));
    return true;
}

cv_layout *cv_layout_of_record(const cv_layout_records *r, cv_store *store,
                               const cv_chunk_ref *ref, const uint8_t *bytes)
{
    const cv_snapshot *s = r->snapshot;
    cv_record_parts found;
    cv_layout *layout = NULL;
    int64_t n_blocks = s->grid.n_blocks;
    if (!cv_record_find_parts(bytes, r->area.record_size, n_blocks, &found)) return NULL;
    const cv_chunk_head head = {.bytes = bytes, .size = found.head_size, .limit = ref->limit};
    if (cv_layout_parse(store, s, ref, &head, &layout, NULL) != CV_OK) return NULL;
    if (layout->table_size == found.table_size &&
        cv_layout_check(store, layout, ref, &head, bytes + found.head_size, NULL) == CV_OK)
        return layout;
    cv_layout_release(layout);
    return NULL;
}

/* ---- Layout cache ----
 *
 * Keeps layouts, and tells the chunks apart that one position held. */

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
