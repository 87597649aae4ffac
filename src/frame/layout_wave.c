/* Room: frame. Layouts of many chunks, read together. Whose blocks are wanted is not known
 * here.
 *
 *     wave 0   records, where there are   [record][record] ...
 *     wave 1   heads of other chunks      [head]....[table?] [head]....[table?] ...
 *     wave 2   tables not among them      [table] ...
 *
 * Of few small chunks wave 1 reads all bytes, and is the only one. */
#include "frame/layout_wave.h"

#include "base/arith.h"
#include "format/chunk_header.h"
#include "frame/layout_cache.h"

#include <stdio.h>

/* What a range of a wave is of: the first bytes of a chunk, or its table, or records, which
 * are those of chunks around it, too. */
typedef enum part_kind { PART_HEAD, PART_TABLE, PART_RECORDS } part_kind;

typedef struct part {
    size_t wish;
    part_kind kind;
    int64_t record;      /* the wish's */
    int64_t first, last; /* those that are read */
} part;

typedef struct wave {
    cv_frame *frame;
    const cv_snapshot *snapshot;
    cv_layout_wish *wishes;
    size_t n;
    cv_buffer parts, ranges; /* of the wave under way */
    cv_buffer records, heads, tables;
    size_t n_parts, n_bytes;
    cv_watch *watch;
    bool is_whole; /* all bytes of the chunks are read */
    bool goes_on;  /* around what is damaged */
    size_t failed; /* the range that could not be read; SIZE_MAX: none */
} wave;

void cv_name_chunk(int64_t chunk, cv_error *err)
{
    char reason[sizeof err->message];
    if (!err) return;
    snprintf(reason, sizeof reason, "%s", err->message);
    snprintf(err->message, sizeof err->message, "chunk %lld: %.200s", (long long)chunk,
             reason);
}

void cv_layout_wave_release(cv_layout_wish *wishes, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        cv_layout_release(wishes[i].layout);
        wishes[i].layout = NULL;
    }
}

/* ---- Ranges ---------------------------------------------------------------- */

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
        cv_layout_wish *wish = &w->wishes[part_at(w, i)->wish];
        range->dst = to;
        if (part_at(w, i)->kind == PART_TABLE) wish->table = to;
        if (part_at(w, i)->kind == PART_HEAD) wish->head.bytes = to;
        to += range->size;
    }
    w->failed = SIZE_MAX;
    cv_status status =
        cv_store_read_wave(w->frame->store, range_at(w, 0), w->n_parts, &arrivals, err);
    if (status != CV_OK && w->failed < w->n_parts)
        cv_name_chunk(w->wishes[part_at(w, w->failed)->wish].ref.chunk, err);
    return status;
}

static void forget_parts(wave *w)
{
    w->parts.size = w->ranges.size = 0;
    w->n_parts = w->n_bytes = 0;
}

/* ---- Records --------------------------------------------------------------- */

/* For a few chunks the records around theirs are read, too, so many bytes for each: who wants
 * a point soon wants another, and they take less time than a round trip. */
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

static cv_status ask_for_records(wave *w, const cv_layout_records *records, cv_error *err)
{
    for (size_t i = 0; i < w->n; i++) {
        part p = {.wish = i, .kind = PART_RECORDS};
        int64_t chunk = w->wishes[i].ref.chunk;
        if (w->wishes[i].layout) continue;
        if (!cv_layout_records_find(records, chunk, &p.record)) continue;
        look_around(w, &records->area, &p);
        CV_TRY(add_part(w, p, CV_FRAME_OBJECT, cv_layout_record_pos(records, p.first),
                        (size_t)(p.last - p.first) * records->area.record_size, err));
    }
    return CV_OK;
}

static const uint8_t *record_of(const wave *w, size_t i, const cv_layout_records *records,
                                int64_t record)
{
    const uint8_t *bytes = range_at(w, i)->dst;
    return bytes + (size_t)(record - part_at(w, i)->first) * records->area.record_size;
}

static int64_t next_named(const cv_index *index, int64_t chunk, int64_t step)
{
    do chunk += step;
    while (cv_index_name(index, chunk) == 0);
    return chunk;
}

/* Those that came along. */
static void keep_others(const wave *w, size_t i, const cv_layout_records *records)
{
    const part *p = part_at(w, i);
    cv_layout_cache *cache = w->frame->layouts;
    int64_t chunk = w->wishes[p->wish].ref.chunk;
    for (int64_t r = p->record; r > p->first; r--)
        chunk = next_named(records->index, chunk, -1);
    for (int64_t r = p->first; r < p->last; r++) {
        cv_chunk_ref ref;
        if (r > p->first) chunk = next_named(records->index, chunk, 1);
        if (cv_chunk_ref_find(w->snapshot, records->index, chunk, &ref, NULL) != CV_OK ||
            ref.kind != CV_REF_STORED)
            continue;
        cv_layout *layout = cv_layout_find(cache, w->snapshot, &ref);
        if (!layout)
            layout = cv_layout_of_record(records, w->frame->store, &ref,
                                         record_of(w, i, records, r));
        if (layout) cv_layout_keep(cache, &ref, layout);
        cv_layout_release(layout);
    }
}

static void take_records(wave *w, const cv_layout_records *records)
{
    for (size_t i = 0; i < w->n_parts; i++) {
        const part *p = part_at(w, i);
        cv_layout_wish *wish = &w->wishes[p->wish];
        wish->layout = cv_layout_of_record(records, w->frame->store, &wish->ref,
                                           record_of(w, i, records, p->record));
        if (wish->layout) cv_layout_keep(w->frame->layouts, &wish->ref, wish->layout);
        if (p->last - p->first > 1) keep_others(w, i, records);
    }
}

/* What a record says nothing of is looked for in its chunk. */
static cv_status read_records(wave *w, cv_error *err)
{
    const cv_layout_records *records =
        cv_layout_cache_records(w->frame->layouts, w->snapshot);
    if (!records || cv_layout_is_small(&w->snapshot->grid)) return CV_OK;
    CV_TRY(ask_for_records(w, records, err));
    CV_TRY(read_parts(w, &w->records, err));
    take_records(w, records);
    forget_parts(w);
    return CV_OK;
}

/* ---- The heads of the others ----------------------------------------------- */

/* Where the table is known to be, or else guessed, apart from the chunk's first bytes. */
static bool guess_table(const wave *w, cv_layout_wish *wish)
{
    const cv_chunk_ref *ref = &wish->ref;
    size_t size = cv_block_table_size(w->snapshot->grid.n_blocks);
    if (!cv_layout_is_checked(w->snapshot, ref)) return false;
    wish->table_pos = ref->table_pos;
    if (ref->table_pos > 0) return true;
    uint64_t end = wish->end > 0 ? wish->end : ref->object >= 0 ? wish->head.limit : 0;
    if (end < ref->pos + wish->head.size + size) return false;
    if (end > ref->pos + wish->head.limit) return false;
    wish->table_pos = end - size;
    return true;
}

static void find_kept(wave *w)
{
    if (cv_layout_is_small(&w->snapshot->grid)) return;
    for (size_t i = 0; i < w->n; i++)
        w->wishes[i].layout =
            cv_layout_find(w->frame->layouts, w->snapshot, &w->wishes[i].ref);
}

/* Bytes of a chunk and its table, as they are said to end; 0: nobody knows. */
static uint64_t extent_of(const cv_layout_wish *wish)
{
    return wish->end > wish->ref.pos ? wish->end - wish->ref.pos : 0;
}

/* Few small chunks are read in less time than it takes to learn where their blocks are. */
static bool is_worth_all(const wave *w)
{
    uint64_t most = w->frame->store->most_whole, size = 0;
    for (size_t i = 0; i < w->n && size <= most; i++) {
        if (w->wishes[i].layout) continue;
        uint64_t extent = extent_of(&w->wishes[i]);
        size += extent > 0 ? extent : most + 1;
    }
    return size > 0 && size <= most;
}

static void widen(cv_layout_wish *wish)
{
    uint64_t extent = extent_of(wish), limit = wish->head.limit;
    if (extent > limit) extent = limit;
    if (extent > wish->head.size) wish->head.size = (size_t)extent;
    wish->head.keeps_chunk = true;
}

/* Chunks that are objects of their own. */
static cv_status meet_objects(const wave *w, cv_error *err)
{
    cv_buffer objects = {0};
    cv_store *store = w->frame->store;
    cv_status status = CV_OK;
    if (!store->has_chunk_objects || !store->is_far) return CV_OK;
    for (size_t i = 0; i < w->n && status == CV_OK; i++) {
        const cv_layout_wish *wish = &w->wishes[i];
        if (wish->layout || wish->ref.object == CV_FRAME_OBJECT) continue;
        status = cv_buffer_append(&objects, &wish->ref.object, sizeof(cv_object), err);
    }
    size_t n = objects.size / sizeof(cv_object);
    if (status == CV_OK && n > 0)
        status = cv_store_meet(store, (const cv_object *)(void *)objects.data, n, err);
    cv_buffer_free(&objects);
    return status;
}

static cv_status ask_for_heads(wave *w, cv_error *err)
{
    cv_store *store = w->frame->store;
    size_t table_size = cv_block_table_size(w->snapshot->grid.n_blocks);
    for (size_t i = 0; i < w->n; i++) {
        cv_layout_wish *wish = &w->wishes[i];
        const cv_chunk_ref *ref = &wish->ref;
        if (wish->layout) continue;
        CV_TRY(cv_layout_begin(store, w->snapshot, ref, &wish->head.limit, &wish->head.size,
                               err));
        if (w->is_whole) widen(wish);
        part p = {.wish = i, .kind = PART_HEAD};
        CV_TRY(add_part(w, p, ref->object, ref->pos, wish->head.size, err));
        if (!guess_table(w, wish)) continue;
        cv_object object = ref->table_pos > 0 ? CV_FRAME_OBJECT : ref->object;
        p.kind = PART_TABLE;
        CV_TRY(add_part(w, p, object, wish->table_pos, table_size, err));
    }
    return CV_OK;
}

/* ---- Then the tables -------------------------------------------------------- */

/* The table stands where it was guessed, or among the first bytes; else it is not at hand. */
static void look_for_table(const wave *w, cv_layout_wish *wish, cv_object object,
                           uint64_t pos)
{
    const cv_layout *layout = wish->layout;
    /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): it was parsed */
    size_t size = layout->table_size;
    size_t guessed = cv_block_table_size(w->snapshot->grid.n_blocks);
    uint64_t first = wish->ref.pos, end;
    const uint8_t *table = wish->table;
    wish->table = NULL;
    if (!cv_add_u64(pos, size, &end)) return;
    if (object == wish->ref.object && pos >= first && end <= first + wish->head.size)
        wish->table = wish->head.bytes + (pos - first);
    else if (table && pos >= wish->table_pos && end <= wish->table_pos + guessed)
        wish->table = table + (pos - wish->table_pos);
}

static cv_status parse(wave *w, size_t i, cv_error *err)
{
    cv_layout_wish *wish = &w->wishes[i];
    cv_object object;
    uint64_t pos;
    if (wish->layout) return CV_OK;
    CV_TRY(cv_layout_parse(w->frame->store, w->snapshot, &wish->ref, &wish->head,
                           &wish->layout, err));
    if (!cv_layout_is_checked(w->snapshot, &wish->ref)) return CV_OK;
    cv_layout_find_table(wish->layout, &wish->ref, &object, &pos);
    look_for_table(w, wish, object, pos);
    if (wish->table) return CV_OK;
    const part p = {.wish = i, .kind = PART_TABLE};
    return add_part(w, p, object, pos, wish->layout->table_size, err);
}

static cv_status check_one(const wave *w, const cv_layout_wish *wish, cv_layout *layout,
                           cv_error *err)
{
    if (!cv_layout_is_checked(w->snapshot, &wish->ref)) return CV_OK;
    return cv_layout_check(w->frame->store, layout, &wish->ref, &wish->head, wish->table,
                           err);
}

/* Without the chunk, which is for those who read it now. */
static void keep_slim(const wave *w, const cv_layout_wish *wish)
{
    cv_chunk_head head = wish->head;
    cv_layout *slim = NULL;
    head.keeps_chunk = false;
    if (cv_layout_parse(w->frame->store, w->snapshot, &wish->ref, &head, &slim, NULL)) return;
    if (check_one(w, wish, slim, NULL) == CV_OK)
        cv_layout_keep(w->frame->layouts, &wish->ref, slim);
    cv_layout_release(slim);
}

/* Only what was read in this wave has first bytes. */
static cv_status check(wave *w, const cv_layout_wish *wish, cv_error *err)
{
    if (!wish->head.bytes) return CV_OK;
    CV_TRY(check_one(w, wish, wish->layout, err));
    if (cv_layout_is_small(&w->snapshot->grid)) return CV_OK;
    if (wish->head.keeps_chunk)
        keep_slim(w, wish);
    else
        cv_layout_keep(w->frame->layouts, &wish->ref, wish->layout);
    return CV_OK;
}

/* A failure that ends the wave; else the wish is without a layout. */
static cv_status judge(const wave *w, cv_layout_wish *wish, cv_status status)
{
    if (status == CV_OK || !w->goes_on) return status;
    if (status == CATERVA_ENOMEM || status == CATERVA_ESTOPPED) return status;
    cv_layout_release(wish->layout);
    wish->layout = NULL;
    wish->head.bytes = NULL;
    return CV_OK;
}

static cv_status run(wave *w, cv_error *err)
{
    find_kept(w);
    w->is_whole = is_worth_all(w);
    if (!w->is_whole) CV_TRY(read_records(w, err));
    CV_TRY(meet_objects(w, err));
    CV_TRY(ask_for_heads(w, err));
    CV_TRY(read_parts(w, &w->heads, err));
    forget_parts(w);
    for (size_t i = 0; i < w->n; i++) CV_TRY(judge(w, &w->wishes[i], parse(w, i, err)));
    CV_TRY(read_parts(w, &w->tables, err));
    for (size_t i = 0; i < w->n; i++)
        CV_TRY(judge(w, &w->wishes[i], check(w, &w->wishes[i], err)));
    return CV_OK;
}

static cv_status run_wave(wave *w, cv_error *err)
{
    for (size_t i = 0; i < w->n; i++) {
        w->wishes[i].layout = NULL;
        w->wishes[i].head = (cv_chunk_head){.bytes = NULL};
        w->wishes[i].table = NULL;
    }
    cv_status status = run(w, err);
    if (status != CV_OK) cv_layout_wave_release(w->wishes, w->n);
    cv_buffer_free(&w->parts);
    cv_buffer_free(&w->ranges);
    cv_buffer_free(&w->records);
    cv_buffer_free(&w->heads);
    cv_buffer_free(&w->tables);
    return status;
}

cv_status cv_layout_wave(cv_frame *frame, const cv_snapshot *snapshot, cv_layout_wish *wishes,
                         size_t n, cv_watch *watch, cv_error *err)
{
    wave w = {.frame = frame, .snapshot = snapshot, .wishes = wishes, .n = n, .watch = watch};
    return run_wave(&w, err);
}

cv_status cv_layout_wave_of_good(cv_frame *frame, const cv_snapshot *snapshot,
                                 cv_layout_wish *wishes, size_t n, cv_watch *watch,
                                 cv_error *err)
{
    wave w = {.frame = frame, .snapshot = snapshot, .wishes = wishes, .n = n, .watch = watch};
    cv_error error = {0};
    w.goes_on = true;
    cv_status status = run_wave(&w, &error);
    if (status != CATERVA_ENOMEM && status != CATERVA_ESTOPPED) return CV_OK;
    if (err) *err = error;
    return status;
}

/* Where its head was read; the table may be elsewhere. */
static cv_status check_bytes(wave *w, cv_error *err)
{
    cv_layout_wish *wish = w->wishes;
    CV_TRY(parse(w, 0, err));
    CV_TRY(read_parts(w, &w->tables, err));
    return check(w, wish, err);
}

cv_status cv_layout_of_bytes(cv_frame *frame, const cv_snapshot *snapshot,
                             cv_layout_wish *wish, const uint8_t *bytes, size_t size,
                             cv_error *err)
{
    wave w = {.frame = frame, .snapshot = snapshot, .wishes = wish, .n = 1};
    size_t first;
    wish->layout = NULL;
    wish->table = NULL;
    wish->head = (cv_chunk_head){.bytes = bytes, .size = size};
    CV_TRY(
        cv_layout_begin(frame->store, snapshot, &wish->ref, &wish->head.limit, &first, err));
    cv_status status = check_bytes(&w, err);
    if (status != CV_OK) cv_layout_wave_release(wish, 1);
    wish->head.bytes = NULL;
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
