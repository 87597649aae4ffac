/* Room: frame. What a read needs to know of a chunk before its blocks: header, block ranges,
 * checksums. Layouts are read singly or in waves, or made from records; checked once; and cached by
 * the frame and by each worker. */
#include "frame/layout.h"

#include "base/arith.h"
#include "base/crc.h"
#include "base/heap.h"
#include "format/seal.h"

#include <stdio.h>
#include <string.h>

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

/* Chunks of at most SMALL_CHUNK bytes, or SMALL_BLOCK for a single block, are read at once and kept
 * in their layout: a second read would take longer than everything else. The first read of a
 * checked chunk has CHECKED_READ bytes, which usually include the block table. */
enum { SMALL_CHUNK = 512, SMALL_BLOCK = 4000, CHECKED_READ = 4096 };

bool cv_layout_is_small(const cv_grid *grid)
{
    return grid->chunk_bytes <= (grid->n_blocks == 1 ? SMALL_BLOCK : SMALL_CHUNK);
}

/* The first bytes of a chunk: header, usually all block starts, and the block table of a small
 * chunk. */
typedef struct chunk_head {
    const uint8_t *bytes;
    size_t size;
    bool borrowed;
    bool keeps_chunk;    /* the layout gets all bytes of the chunk, if present */
    cv_small_room *room; /* memory for layout and bytes; NULL: the layout is allocated */
    cv_buffer buffer;
    uint8_t *small; /* CHECKED_READ bytes, used instead of the buffer */
} chunk_head;

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

/* Reads block starts or a repeated item, if there are any. */
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

/* The header of a small chunk mostly equals the last one parsed: its checks are valid for both. */
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
    int32_t most = head->keeps_chunk ? header.cbytes : CV_CHUNK_HEADER_SIZE + SMALL_CHUNK;
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
    /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): parse_given has set it */
    *pos = is_behind ? ref->pos + (uint64_t)layout->header.cbytes : ref->table_pos;
}

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

/* Takes the checksums of a table, which must have the name in the seal. They cover the rest. */
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

/* Checks the bytes before the first block. Header and block starts were read already; a dictionary
 * is read here. */
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

static uint32_t checked_name(const cv_snapshot *snapshot, const cv_chunk_ref *ref)
{
    return snapshot->unchecked ? 0 : ref->name;
}

static bool is_checked(const cv_snapshot *snapshot, const cv_chunk_ref *ref)
{
    return checked_name(snapshot, ref) != 0;
}

static uint64_t first_read(const cv_snapshot *snapshot, const cv_chunk_ref *ref)
{
    const cv_grid *grid = &snapshot->grid;
    bool checked = is_checked(snapshot, ref);
    if (cv_layout_is_small(grid))
        return CV_CHUNK_HEADER_SIZE + (uint64_t)grid->chunk_bytes +
               (checked ? cv_block_table_size(grid->n_blocks) : 0);
    uint64_t wanted = CV_CHUNK_HEADER_SIZE + (uint64_t)grid->n_blocks * sizeof(int32_t);
    return checked && wanted < CHECKED_READ ? CHECKED_READ : wanted;
}

void cv_layout_warm(cv_store *store, const cv_snapshot *snapshot, const cv_chunk_ref *ref)
{
    if (ref->kind != CV_REF_STORED || !cv_layout_is_small(&snapshot->grid)) return;
    if (!store->ops->warm) return;
    uint64_t wanted = first_read(snapshot, ref);
    if (ref->limit == 0 || wanted <= ref->limit)
        store->ops->warm(store, ref->object, ref->pos, (size_t)wanted);
}

/* A missing chunk file is damage, unless the store could not look (sys_errno) or the frame does not
 * exist any more. */
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

/* A chunk in its own file ends at the end of the file. */
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

/* Sets the chunk's limit, from its reference or the store, and the size of the first read. */
static cv_status begin(cv_store *store, const cv_snapshot *snapshot, const cv_chunk_ref *ref,
                       uint64_t *limit, size_t *size, cv_error *err)
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

static cv_status read_layout(cv_store *store, const cv_snapshot *snapshot,
                             const cv_chunk_ref *ref, cv_small_room *room, cv_layout **out,
                             cv_error *err)
{
    bool checked = is_checked(snapshot, ref);
    uint64_t limit = 0;
    size_t size = 0; /* initialised for GCC on s390x, which warns */
    CV_TRY(begin(store, snapshot, ref, &limit, &size, err));

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

/* Makes an unchecked layout from bytes in memory. Reads missing bytes, which is rare. */
static cv_status parse_given(cv_store *store, const cv_snapshot *snapshot,
                             const cv_chunk_ref *ref, const cv_chunk_head *given,
                             cv_layout **out, cv_error *err)
{
    chunk_head head = head_of(given);
    head.keeps_chunk = given->keeps_chunk || cv_layout_is_small(&snapshot->grid);
    return parse_layout(store, snapshot, ref, &head, given->limit, out, err);
}

static cv_status check_given(cv_store *store, cv_layout *layout, const cv_chunk_ref *ref,
                             const cv_chunk_head *given, const uint8_t *table, cv_error *err)
{
    const chunk_head head = head_of(given);
    CV_TRY(take_table(layout, ref, table, err));
    return check_head(store, ref, &head, layout, err);
}

/* ---- Records ----
 *
 * A record is one layout in the area of all layouts. It is used only if the seal contains the name
 * of its block table, and the table contains the checksum of its head. So damaged or foreign
 * records are ignored. */

typedef struct records {
    cv_layout_area area;
    const cv_snapshot *snapshot; /* the state of these records */
    const cv_index *index;       /* the snapshot's decoded index */
    int64_t before[];            /* for each page of the index: number of records before it */
} records;

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
                           const cv_layout_area *area, records **out, cv_error *err)
{
    int64_t n = index->n_pages, sum = 0;
    size_t size = sizeof(records) + (size_t)(n + 1) * sizeof(int64_t);
    records *r = cv_malloc(size);
    if (!r) return cv_fail_memory(err, size, "a list of layouts");
    *r = (records){*area, snapshot, index};
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

/* Finds the records of the snapshot, which must outlive them. NULL: their footer is not in memory,
 * or not usable. Release with cv_free. */
static cv_status new_records(cv_snapshot *snapshot, cv_store *store, records **out,
                             cv_error *err)
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

static bool find_record(const records *r, int64_t chunk, int64_t *record)
{
    int64_t page = chunk / CV_INDEX_PAGE, at = chunk % CV_INDEX_PAGE;
    if (cv_index_name(r->index, chunk) == 0) return false;
    bool all_have = r->before[page + 1] - r->before[page] == entries_of(r->index, page);
    *record = r->before[page] + (all_have ? at : count_names(r->index, page, at));
    return true;
}

static uint64_t record_pos(const records *r, int64_t record)
{
    return r->area.first + (uint64_t)record * r->area.record_size;
}

cv_layout *cv_layout_of_record(cv_store *store, const cv_snapshot *s, size_t record_size,
                               const cv_chunk_ref *ref, const uint8_t *bytes)
{
    cv_record_parts found;
    cv_layout *layout = NULL;
    if (!cv_record_find_parts(bytes, record_size, s->grid.n_blocks, &found)) return NULL;
    const cv_chunk_head head = {.bytes = bytes, .size = found.head_size, .limit = ref->limit};
    if (parse_given(store, s, ref, &head, &layout, NULL) != CV_OK) return NULL;
    if (layout->table_size == found.table_size &&
        check_given(store, layout, ref, &head, bytes + found.head_size, NULL) == CV_OK)
        return layout;
    cv_layout_release(layout);
    return NULL;
}

static cv_layout *of_record(const records *r, cv_store *store, const cv_chunk_ref *ref,
                            const uint8_t *bytes)
{
    return cv_layout_of_record(store, r->snapshot, r->area.record_size, ref, bytes);
}

/* ---- The cache ---- */

enum { STRIPES = 16, WAYS = 4, MIN_SETS = 2, MAX_SETS = 1024, CACHE_BYTES = 4 << 20 };
enum { GENERATIONS = 256 };

/* A chunk may be in any way of the set that its hash selects. The least recently used one is
 * replaced. */
typedef struct set {
    cv_layout *ways[WAYS];
} set;

/* Every STRIPES-th set, with a lock that is held for a few instructions, in its own cache line.
 * Sets are allocated when the first layout is cached, so that an opening that reads none does not
 * pay. */
typedef struct stripe {
    _Alignas(64) cv_mutex lock;
    set *sets; /* or NULL */
} stripe;

struct cv_layout_cache {
    cv_store *store;
    uint64_t id; /* the frame's id */
    stripe stripes[STRIPES];
    atomic_uint generations[GENERATIONS]; /* shared by all positions with the same hash */
    size_t n_sets;                        /* in all stripes */
    cv_mutex lock;                        /* guards has_looked and records */
    bool has_looked;
    records *records; /* of the first snapshot read; or NULL */
};

cv_layout_cache *cv_layout_cache_new(cv_store *store, uint64_t id, int64_t n_blocks)
{
    int64_t each = (int64_t)(sizeof(cv_block_range) + sizeof(uint32_t));
    int64_t entry = (int64_t)sizeof(cv_layout) + n_blocks * each;
    int64_t n = cv_max_i64(MIN_SETS, cv_min_i64(MAX_SETS, CACHE_BYTES / entry / WAYS));
    cv_layout_cache *cache = cv_aligned_alloc(_Alignof(cv_layout_cache), sizeof *cache);
    if (!cache) return NULL;
    memset(cache, 0, sizeof *cache);
    cache->store = store;
    cache->id = id;
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

static set *lock_set(cv_layout_cache *cache, cv_object object, uint64_t pos, stripe **locked)
{
    size_t i = set_of(cache, object, pos);
    stripe *s = *locked = &cache->stripes[i % STRIPES];
    cv_mutex_lock(&s->lock);
    return s->sets ? &s->sets[i / STRIPES] : NULL;
}

static set *lock_new_set(cv_layout_cache *cache, cv_object object, uint64_t pos,
                         stripe **locked)
{
    set *found = lock_set(cache, object, pos, locked);
    if (found) return found;
    (*locked)->sets = cv_calloc(sets_of_stripe(cache), sizeof(set));
    return (*locked)->sets ? &(*locked)->sets[set_of(cache, object, pos) / STRIPES] : NULL;
}

static int way_of(const set *s, cv_object object, uint64_t pos)
{
    int way = s ? 0 : WAYS;
    while (way < WAYS &&
           !(s->ways[way] && s->ways[way]->pos == pos && s->ways[way]->object == object))
        way++;
    return way;
}

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

/* Does not return a layout that was read before its chunk was sealed: that has another name. */
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

/* Caches the layout, in place of one that another thread cached meanwhile. Does nothing if out of
 * memory. */
static void keep(cv_layout_cache *cache, const cv_chunk_ref *ref, cv_layout *layout)
{
    stripe *locked;
    atomic_fetch_add_explicit(&layout->references, 1, memory_order_relaxed);
    set *s = lock_new_set(cache, ref->object, ref->pos, &locked);
    int way = way_of(s, ref->object, ref->pos);
    cv_layout *gone = s ? push_first(s, way < WAYS ? way : WAYS - 1, layout) : layout;
    cv_mutex_unlock(&locked->lock);
    cv_layout_release(gone);
}

/* Returns the records of the snapshot, or NULL. Only far stores have them in memory, and a writer's
 * states change too often. Errors in reading them are ignored. */
static const records *get_records(cv_layout_cache *cache, const cv_snapshot *snapshot)
{
    cv_store *store = cache->store;
    if (!store->is_far || !store->ops->view || store->writable) return NULL;
    cv_mutex_lock(&cache->lock);
    if (!cache->has_looked)
        (void)new_records(cv_unconst(snapshot), store, &cache->records, NULL);
    cache->has_looked = true;
    const records *found = cache->records;
    cv_mutex_unlock(&cache->lock);
    return found && found->snapshot == snapshot ? found : NULL;
}

static cv_layout *take_record(cv_layout_cache *cache, const cv_snapshot *snapshot,
                              const cv_chunk_ref *ref)
{
    int64_t record;
    const records *r = get_records(cache, snapshot);
    if (!r || !find_record(r, ref->chunk, &record)) return NULL;
    const uint8_t *bytes = cv_store_view(cache->store, CV_FRAME_OBJECT, record_pos(r, record),
                                         r->area.record_size);
    cv_layout *layout = bytes ? of_record(r, cache->store, ref, bytes) : NULL;
    if (layout) keep(cache, ref, layout);
    return layout;
}

/* ---- One layout --------------------------------------------------------- */

cv_layout *cv_layout_find(cv_layout_cache *cache, const cv_snapshot *snapshot,
                          const cv_chunk_ref *ref)
{
    cv_layout *found = lookup(cache, ref, checked_name(snapshot, ref));
    return found || !cache->store->is_far ? found : take_record(cache, snapshot, ref);
}

cv_status cv_layout_get(cv_layout_cache *cache, const cv_snapshot *snapshot,
                        const cv_chunk_ref *ref, cv_layout **out, cv_error *err)
{
    *out = cv_layout_find(cache, snapshot, ref);
    if (*out) return CV_OK;
    CV_TRY(read_layout(cache->store, snapshot, ref, NULL, out, err));
    keep(cache, ref, *out);
    return CV_OK;
}

/* ---- A worker's notes ----
 *
 * A note is valid while the generation of its position is unchanged, that is, until another chunk
 * takes the position. */

/* A worker keeps only the last layout above this size, so its notes have at most 2 MiB. A layout of
 * 4096 blocks is smaller. */
enum { MOST_BYTES = 64 << 10 };

void cv_layout_memo_free(cv_layout_memo *memo)
{
    for (int i = 0; i < CV_LAYOUT_MEMO; i++) cv_layout_release(memo->notes[i].layout);
    cv_layout_release(memo->last);
    cv_buffer_free(&memo->room.buffer);
    *memo = (cv_layout_memo){.last = NULL};
}

static bool is_it(const cv_layout_note *note, const cv_layout_cache *cache,
                  const cv_chunk_ref *ref, uint32_t name)
{
    const cv_layout *layout = note->layout;
    return layout && note->frame == cache->id && layout->pos == ref->pos &&
           layout->object == ref->object && layout->name == name &&
           note->generation == cv_layout_generation(cache, ref->object, ref->pos);
}

static cv_status get_noted(cv_layout_cache *cache, const cv_snapshot *snapshot,
                           const cv_chunk_ref *ref, cv_layout_memo *memo,
                           const cv_layout **out, cv_error *err)
{
    uint64_t hash = (ref->pos ^ (uint64_t)ref->object << 32) * UINT64_C(0x9e3779b97f4a7c15);
    cv_layout_note *note = &memo->notes[hash >> 32 & (CV_LAYOUT_MEMO - 1)];
    if (is_it(note, cache, ref, checked_name(snapshot, ref))) {
        *out = note->layout;
        return CV_OK;
    }
    cv_layout *layout;
    /* taken before the lookup: the layout may be newer than this number, not older */
    uint32_t generation = cv_layout_generation(cache, ref->object, ref->pos);
    CV_TRY(cv_layout_get(cache, snapshot, ref, &layout, err));
    cv_layout **place = &memo->last;
    size_t each = sizeof(cv_block_range) + sizeof(uint32_t);
    if (sizeof *layout + (size_t)layout->n_blocks * each <= MOST_BYTES) {
        place = &note->layout;
        note->frame = cache->id;
        note->generation = generation;
    }
    cv_layout_release(*place);
    *place = layout;
    *out = layout;
    return CV_OK;
}

cv_status cv_layout_borrow(cv_layout_cache *cache, const cv_snapshot *snapshot,
                           const cv_chunk_ref *ref, cv_layout_memo *memo,
                           const cv_layout **out, cv_error *err)
{
    cv_layout *small;
    if (!cv_layout_is_small(&snapshot->grid))
        return get_noted(cache, snapshot, ref, memo, out, err);
    CV_TRY(read_layout(cache->store, snapshot, ref, &memo->room, &small, err));
    *out = small;
    return CV_OK;
}

/* ---- Layouts of many chunks, read together ----
 *
 *     wave 0   records, if any            [record][record] ...
 *     wave 1   heads of other chunks      [head]....[table?] [head]....[table?] ...
 *     wave 2   other tables               [table] ...
 *
 * If the chunks are few and small, wave 1 reads all their bytes and is the only one. */

/* A range of a wave: a chunk's first bytes, its table, or records with their neighbours. */
typedef enum part_kind { PART_HEAD, PART_TABLE, PART_RECORDS } part_kind;

typedef struct part {
    size_t request;
    part_kind kind;
    int64_t record;      /* of the request */
    int64_t first, last; /* records that are read */
} part;

typedef struct wave {
    cv_layout_cache *cache;
    const cv_snapshot *snapshot;
    cv_layout_request *requests;
    size_t n;
    cv_buffer parts, ranges; /* of the current wave */
    cv_buffer records, heads, tables;
    size_t n_parts, n_bytes;
    cv_watch *watch;
    bool is_whole; /* reads all bytes of the chunks */
    bool goes_on;  /* skips damaged chunks */
    size_t failed; /* range that could not be read; SIZE_MAX: none */
} wave;

void cv_name_chunk(int64_t chunk, cv_error *err)
{
    char reason[sizeof err->message];
    if (!err) return;
    snprintf(reason, sizeof reason, "%s", err->message);
    snprintf(err->message, sizeof err->message, "chunk %lld: %.200s", (long long)chunk,
             reason);
}

void cv_layout_wave_release(cv_layout_request *requests, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        cv_layout_release(requests[i].layout);
        requests[i].layout = NULL;
    }
}

static part *part_at(const wave *w, size_t i) { return (part *)(void *)w->parts.data + i; }

static cv_store_range *range_at(const wave *w, size_t i)
{
    return (cv_store_range *)(void *)w->ranges.data + i;
}

static cv_status add_part(wave *w, part p, cv_object object, uint64_t pos, size_t size,
                          cv_error *err)
{
    cv_store_range range = {object, pos, size, NULL};
    CV_TRY(cv_buffer_append(&w->parts, &p, sizeof p, err));
    CV_TRY(cv_buffer_append(&w->ranges, &range, sizeof range, err));
    w->n_parts++;
    w->n_bytes += size;
    return CV_OK;
}

static cv_status take(void *context, size_t range, cv_error *err)
{
    const wave *w = context;
    (void)range;
    return cv_watch_tick(w->watch, 0, err);
}

static void note_failed(void *context, size_t range) { ((wave *)context)->failed = range; }

static cv_status read_parts(wave *w, cv_buffer *bytes, cv_error *err)
{
    const cv_arrivals arrivals = {
        .arrived = take, .failed = note_failed, .context = w, .watch = w->watch};
    if (w->n_parts == 0) return CV_OK;
    CV_TRY(cv_buffer_reserve(bytes, w->n_bytes, err));
    uint8_t *to = bytes->data;
    for (size_t i = 0; i < w->n_parts; i++) {
        cv_store_range *range = range_at(w, i);
        cv_layout_request *request = &w->requests[part_at(w, i)->request];
        range->dst = to;
        if (part_at(w, i)->kind == PART_TABLE) request->table = to;
        if (part_at(w, i)->kind == PART_HEAD) request->head.bytes = to;
        to += range->size;
    }
    w->failed = SIZE_MAX;
    cv_status status =
        cv_store_read_wave(w->cache->store, range_at(w, 0), w->n_parts, &arrivals, err);
    if (status != CV_OK && w->failed < w->n_parts)
        cv_name_chunk(w->requests[part_at(w, w->failed)->request].ref.chunk, err);
    return status;
}

static void forget_parts(wave *w)
{
    w->parts.size = w->ranges.size = 0;
    w->n_parts = w->n_bytes = 0;
}

/* For a few chunks, also reads this many bytes of neighbouring records: later reads of points use
 * them, and reading them takes less than a round trip. */
enum { BYTES_AROUND = 64 * 1024, FEW_CHUNKS = 4 };

static void look_around(const wave *w, const cv_layout_area *area, part *p)
{
    int64_t around = BYTES_AROUND / (int64_t)area->record_size;
    p->first = p->record;
    p->last = p->record + 1;
    if (w->n > FEW_CHUNKS || around <= 1) return;
    p->first = p->record - p->record % around;
    p->last = cv_min_i64(p->first + around, area->n);
}

static cv_status request_records(wave *w, const records *r, cv_error *err)
{
    for (size_t i = 0; i < w->n; i++) {
        part p = {.request = i, .kind = PART_RECORDS};
        int64_t chunk = w->requests[i].ref.chunk;
        if (w->requests[i].layout) continue;
        if (!find_record(r, chunk, &p.record)) continue;
        look_around(w, &r->area, &p);
        CV_TRY(add_part(w, p, CV_FRAME_OBJECT, record_pos(r, p.first),
                        (size_t)(p.last - p.first) * r->area.record_size, err));
    }
    return CV_OK;
}

static const uint8_t *record_of(const wave *w, size_t i, const records *r, int64_t record)
{
    const uint8_t *bytes = range_at(w, i)->dst;
    return bytes + (size_t)(record - part_at(w, i)->first) * r->area.record_size;
}

static int64_t next_named(const cv_index *index, int64_t chunk, int64_t step)
{
    do chunk += step;
    while (cv_index_name(index, chunk) == 0);
    return chunk;
}

/* Caches the layouts of the neighbouring records that were read. */
static void keep_others(const wave *w, size_t i, const records *r)
{
    const part *p = part_at(w, i);
    int64_t chunk = w->requests[p->request].ref.chunk;
    for (int64_t at = p->record; at > p->first; at--) chunk = next_named(r->index, chunk, -1);
    for (int64_t at = p->first; at < p->last; at++) {
        cv_chunk_ref ref;
        if (at > p->first) chunk = next_named(r->index, chunk, 1);
        if (cv_chunk_ref_find(w->snapshot, r->index, chunk, &ref, NULL) != CV_OK ||
            ref.kind != CV_REF_STORED)
            continue;
        cv_layout *layout = cv_layout_find(w->cache, w->snapshot, &ref);
        if (!layout) layout = of_record(r, w->cache->store, &ref, record_of(w, i, r, at));
        if (layout) keep(w->cache, &ref, layout);
        /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): the cache has a reference of its own */
        cv_layout_release(layout);
    }
}

static void take_records(wave *w, const records *r)
{
    for (size_t i = 0; i < w->n_parts; i++) {
        const part *p = part_at(w, i);
        cv_layout_request *request = &w->requests[p->request];
        request->layout =
            of_record(r, w->cache->store, &request->ref, record_of(w, i, r, p->record));
        if (request->layout) keep(w->cache, &request->ref, request->layout);
        if (p->last - p->first > 1) keep_others(w, i, r);
    }
}

/* Chunks without a valid record are read afterwards. */
static cv_status read_records(wave *w, cv_error *err)
{
    const records *r = get_records(w->cache, w->snapshot);
    if (!r || cv_layout_is_small(&w->snapshot->grid)) return CV_OK;
    CV_TRY(request_records(w, r, err));
    CV_TRY(read_parts(w, &w->records, err));
    take_records(w, r);
    forget_parts(w);
    return CV_OK;
}

/* Guesses the unknown position of a table that is apart from the chunk's first bytes. */
static bool guess_table(const wave *w, cv_layout_request *request)
{
    const cv_chunk_ref *ref = &request->ref;
    size_t size = cv_block_table_size(w->snapshot->grid.n_blocks);
    if (!is_checked(w->snapshot, ref)) return false;
    request->table_pos = ref->table_pos;
    if (ref->table_pos > 0) return true;
    uint64_t end = request->end > 0   ? request->end
                   : ref->object >= 0 ? request->head.limit
                                      : 0;
    if (end < ref->pos + request->head.size + size) return false;
    if (end > ref->pos + request->head.limit) return false;
    request->table_pos = end - size;
    return true;
}

static void find_kept(wave *w)
{
    if (cv_layout_is_small(&w->snapshot->grid)) return;
    for (size_t i = 0; i < w->n; i++)
        w->requests[i].layout = cv_layout_find(w->cache, w->snapshot, &w->requests[i].ref);
}

/* Expected bytes of a chunk with its table; 0: unknown. */
static uint64_t extent_of(const cv_layout_request *request)
{
    return request->end > request->ref.pos ? request->end - request->ref.pos : 0;
}

/* Reading few small chunks as a whole takes less time than first reading where their blocks are. */
static bool is_worth_all(const wave *w)
{
    uint64_t most = w->cache->store->most_whole, size = 0;
    for (size_t i = 0; i < w->n && size <= most; i++) {
        if (w->requests[i].layout) continue;
        uint64_t extent = extent_of(&w->requests[i]);
        size += extent > 0 ? extent : most + 1;
    }
    return size > 0 && size <= most;
}

static void widen(cv_layout_request *request)
{
    uint64_t extent = extent_of(request), limit = request->head.limit;
    if (extent > limit) extent = limit;
    if (extent > request->head.size) request->head.size = (size_t)extent;
    request->head.keeps_chunk = true;
}

static cv_status meet_objects(const wave *w, cv_error *err)
{
    cv_buffer objects = {0};
    cv_store *store = w->cache->store;
    cv_status status = CV_OK;
    if (!store->has_chunk_objects || !store->is_far || !store->ops->meet) return CV_OK;
    for (size_t i = 0; i < w->n && status == CV_OK; i++) {
        const cv_layout_request *request = &w->requests[i];
        if (request->layout || request->ref.object == CV_FRAME_OBJECT) continue;
        status = cv_buffer_append(&objects, &request->ref.object, sizeof(cv_object), err);
    }
    size_t n = objects.size / sizeof(cv_object);
    if (status == CV_OK && n > 0)
        status = store->ops->meet(store, (const cv_object *)(void *)objects.data, n, err);
    cv_buffer_free(&objects);
    return status;
}

static cv_status request_heads(wave *w, cv_error *err)
{
    cv_store *store = w->cache->store;
    size_t table_size = cv_block_table_size(w->snapshot->grid.n_blocks);
    for (size_t i = 0; i < w->n; i++) {
        cv_layout_request *request = &w->requests[i];
        const cv_chunk_ref *ref = &request->ref;
        if (request->layout) continue;
        CV_TRY(
            begin(store, w->snapshot, ref, &request->head.limit, &request->head.size, err));
        if (w->is_whole) widen(request);
        part p = {.request = i, .kind = PART_HEAD};
        CV_TRY(add_part(w, p, ref->object, ref->pos, request->head.size, err));
        if (!guess_table(w, request)) continue;
        cv_object object = ref->table_pos > 0 ? CV_FRAME_OBJECT : ref->object;
        p.kind = PART_TABLE;
        CV_TRY(add_part(w, p, object, request->table_pos, table_size, err));
    }
    return CV_OK;
}

/* Finds the table at its guessed position or among the first bytes; otherwise request->table is
 * NULL. */
static void look_for_table(const wave *w, cv_layout_request *request, cv_object object,
                           uint64_t pos)
{
    const cv_layout *layout = request->layout;
    /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): it was parsed */
    size_t size = layout->table_size;
    size_t guessed = cv_block_table_size(w->snapshot->grid.n_blocks);
    uint64_t first = request->ref.pos, end;
    const uint8_t *table = request->table;
    request->table = NULL;
    if (!cv_add_u64(pos, size, &end)) return;
    if (object == request->ref.object && pos >= first && end <= first + request->head.size)
        request->table = request->head.bytes + (pos - first);
    else if (table && pos >= request->table_pos && end <= request->table_pos + guessed)
        request->table = table + (pos - request->table_pos);
}

static cv_status parse(wave *w, size_t i, cv_error *err)
{
    cv_layout_request *request = &w->requests[i];
    cv_object object;
    uint64_t pos;
    if (request->layout) return CV_OK;
    CV_TRY(parse_given(w->cache->store, w->snapshot, &request->ref, &request->head,
                       &request->layout, err));
    if (!is_checked(w->snapshot, &request->ref)) return CV_OK;
    cv_layout_find_table(request->layout, &request->ref, &object, &pos);
    look_for_table(w, request, object, pos);
    if (request->table) return CV_OK;
    const part p = {.request = i, .kind = PART_TABLE};
    return add_part(w, p, object, pos, request->layout->table_size, err);
}

static cv_status check_one(const wave *w, const cv_layout_request *request, cv_layout *layout,
                           cv_error *err)
{
    if (!is_checked(w->snapshot, &request->ref)) return CV_OK;
    return check_given(w->cache->store, layout, &request->ref, &request->head, request->table,
                       err);
}

/* Caches a layout without the chunk's bytes, which only the current reader uses. */
static void keep_slim(const wave *w, const cv_layout_request *request)
{
    cv_chunk_head head = request->head;
    cv_layout *slim = NULL;
    head.keeps_chunk = false;
    if (parse_given(w->cache->store, w->snapshot, &request->ref, &head, &slim, NULL)) return;
    if (check_one(w, request, slim, NULL) == CV_OK) keep(w->cache, &request->ref, slim);
    cv_layout_release(slim);
}

/* Checks and caches a layout, if this wave has read it: only then head.bytes is set. */
static cv_status check(wave *w, const cv_layout_request *request, cv_error *err)
{
    if (!request->head.bytes) return CV_OK;
    CV_TRY(check_one(w, request, request->layout, err));
    if (cv_layout_is_small(&w->snapshot->grid)) return CV_OK;
    if (request->head.keeps_chunk)
        keep_slim(w, request);
    else
        keep(w->cache, &request->ref, request->layout);
    return CV_OK;
}

/* Returns `status` if it ends the wave, else CV_OK; after a failure the chunk gets no layout. */
static cv_status accept_failure(const wave *w, cv_layout_request *request, cv_status status)
{
    if (status == CV_OK || !w->goes_on) return status;
    if (status == CATERVA_ENOMEM || status == CATERVA_ESTOPPED) return status;
    cv_layout_release(request->layout);
    request->layout = NULL;
    request->head.bytes = NULL;
    return CV_OK;
}

static cv_status run(wave *w, cv_error *err)
{
    find_kept(w);
    w->is_whole = is_worth_all(w);
    if (!w->is_whole) CV_TRY(read_records(w, err));
    CV_TRY(meet_objects(w, err));
    CV_TRY(request_heads(w, err));
    CV_TRY(read_parts(w, &w->heads, err));
    forget_parts(w);
    for (size_t i = 0; i < w->n; i++)
        CV_TRY(accept_failure(w, &w->requests[i], parse(w, i, err)));
    CV_TRY(read_parts(w, &w->tables, err));
    for (size_t i = 0; i < w->n; i++)
        CV_TRY(accept_failure(w, &w->requests[i], check(w, &w->requests[i], err)));
    return CV_OK;
}

static cv_status run_wave(wave *w, cv_error *err)
{
    for (size_t i = 0; i < w->n; i++) {
        w->requests[i].layout = NULL;
        w->requests[i].head = (cv_chunk_head){.bytes = NULL};
        w->requests[i].table = NULL;
    }
    cv_status status = run(w, err);
    if (status != CV_OK) cv_layout_wave_release(w->requests, w->n);
    cv_buffer_free(&w->parts);
    cv_buffer_free(&w->ranges);
    cv_buffer_free(&w->records);
    cv_buffer_free(&w->heads);
    cv_buffer_free(&w->tables);
    return status;
}

cv_status cv_layout_wave(cv_layout_cache *cache, const cv_snapshot *snapshot,
                         cv_layout_request *requests, size_t n, cv_watch *watch,
                         cv_error *err)
{
    wave w = {
        .cache = cache, .snapshot = snapshot, .requests = requests, .n = n, .watch = watch};
    return run_wave(&w, err);
}

cv_status cv_layout_wave_of_good(cv_layout_cache *cache, const cv_snapshot *snapshot,
                                 cv_layout_request *requests, size_t n, cv_watch *watch,
                                 cv_error *err)
{
    wave w = {
        .cache = cache, .snapshot = snapshot, .requests = requests, .n = n, .watch = watch};
    cv_error error = {0};
    w.goes_on = true;
    cv_status status = run_wave(&w, &error);
    if (status != CATERVA_ENOMEM && status != CATERVA_ESTOPPED) return CV_OK;
    if (err) *err = error;
    return status;
}

/* Checks a chunk whose head is in memory; the table may be elsewhere. */
static cv_status check_bytes(wave *w, cv_error *err)
{
    cv_layout_request *request = w->requests;
    CV_TRY(parse(w, 0, err));
    CV_TRY(read_parts(w, &w->tables, err));
    return check(w, request, err);
}

cv_status cv_layout_of_bytes(cv_layout_cache *cache, const cv_snapshot *snapshot,
                             cv_layout_request *request, const uint8_t *bytes, size_t size,
                             cv_error *err)
{
    wave w = {.cache = cache, .snapshot = snapshot, .requests = request, .n = 1};
    size_t first;
    request->layout = NULL;
    request->table = NULL;
    request->head = (cv_chunk_head){.bytes = bytes, .size = size};
    CV_TRY(begin(cache->store, snapshot, &request->ref, &request->head.limit, &first, err));
    cv_status status = check_bytes(&w, err);
    if (status != CV_OK) cv_layout_wave_release(request, 1);
    request->head.bytes = NULL;
    cv_buffer_free(&w.parts);
    cv_buffer_free(&w.ranges);
    cv_buffer_free(&w.tables);
    return status;
}

size_t cv_layout_wave_bytes(const cv_grid *grid)
{
    size_t head = cv_layout_is_small(grid) ? (size_t)grid->chunk_bytes + 64 : 4096;
    return head + 2 * cv_block_table_size(grid->n_blocks);
}
