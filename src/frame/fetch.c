/* Room: frame. Compressed bytes of wanted blocks, with few and large reads.
 *
 *      stored:   ..[b4 ][b5 ]......[b9 ]..
 *      buffer:   [36][b4 ][b5 ][36][b9 ]
 *
 * Neighbours make a run, read at once; the prefix before each run is where the
 * decoder puts the header of the block it decodes (see codec/decode.c). */
#include "frame/fetch.h"

#include "base/arith.h"
#include "base/heap.h"
#include "format/chunk_header.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- Layout memo ----
 *
 * A note is as good as the cache while the generation of its position
 * stays: who gives the position to another chunk changes that. */

/* Of larger layouts only the last one is kept, so that a worker holds 2 MiB at most;
 * a layout of 4096 blocks fits. */
enum { MOST_BYTES = 64 << 10 };

void cv_layout_memo_free(cv_layout_memo *memo)
{
    for (int i = 0; i < CV_LAYOUT_MEMO; i++) cv_layout_release(memo->notes[i].layout);
    cv_layout_release(memo->last);
    cv_buffer_free(&memo->room.buffer);
    *memo = (cv_layout_memo){.last = NULL};
}

static bool is_it(const cv_layout_note *note, const cv_frame *frame, const cv_chunk_ref *ref,
                  uint32_t name)
{
    const cv_layout *layout = note->layout;
    return layout && note->frame == frame->id && layout->pos == ref->pos &&
           layout->object == ref->object && layout->name == name &&
           note->generation == cv_layout_generation(frame->layouts, ref->object, ref->pos);
}

static cv_status get(cv_frame *frame, const cv_snapshot *snapshot, const cv_chunk_ref *ref,
                     cv_layout_memo *memo, const cv_layout **out, cv_error *err)
{
    uint64_t hash = (ref->pos ^ (uint64_t)ref->object << 32) * UINT64_C(0x9e3779b97f4a7c15);
    cv_layout_note *note = &memo->notes[hash >> 32 & (CV_LAYOUT_MEMO - 1)];
    if (is_it(note, frame, ref, cv_layout_checked_name(snapshot, ref))) {
        *out = note->layout;
        return CV_OK;
    }
    cv_layout *layout;
    /* Before the layout is looked for: it may be newer than its note, not older. */
    uint32_t generation = cv_layout_generation(frame->layouts, ref->object, ref->pos);
    CV_TRY(cv_layout_get(frame->layouts, snapshot, ref, &layout, err));
    cv_layout **place = &memo->last;
    if (cv_layout_bytes(layout) <= MOST_BYTES) {
        place = &note->layout;
        note->frame = frame->id;
        note->generation = generation;
    }
    cv_layout_release(*place);
    *place = layout;
    *out = layout;
    return CV_OK;
}

cv_status cv_layout_borrow(cv_frame *frame, const cv_snapshot *snapshot,
                           const cv_chunk_ref *ref, cv_layout_memo *memo,
                           const cv_layout **out, cv_error *err)
{
    if (cv_layout_is_small(&snapshot->grid))
        return cv_layout_read_small(frame->store, snapshot, ref, &memo->room, out, err);
    return get(frame, snapshot, ref, memo, out, err);
}

/* ---- Fetch ---- */

/* Runs that are read together; and over gaps wider than this one no more is read than what
 * is wanted. */
enum { RUNS = 32, SMALL_GAP = 4096 };

static int by_position(const void *a, const void *b)
{
    const uint8_t *x = ((const cv_wanted *)a)->packed.streams;
    const uint8_t *y = ((const cv_wanted *)b)->packed.streams;
    return (x > y) - (x < y);
}

cv_block_range cv_fetch_range(const cv_layout *layout, int64_t block)
{
    if (layout->n_blocks > 0) return layout->blocks[block];
    int64_t start = CV_CHUNK_HEADER_SIZE + block * layout->block_bytes;
    return (cv_block_range){(int32_t)start, (int32_t)(start + layout->block_bytes)};
}

static cv_block_range range_of(const cv_layout *layout, const cv_wanted *wanted)
{
    return cv_fetch_range(layout, wanted->block);
}

/* Stored order, which nearly always is block order already. `streams` serves
 * as the sort key; the fetch sets it for good. */
void cv_fetch_sort(const cv_layout *layout, cv_wanted *wanted, int64_t n)
{
    bool sorted = true;
    for (int64_t i = 1; i < n && sorted; i++)
        sorted = range_of(layout, &wanted[i - 1]).start <= range_of(layout, &wanted[i]).start;
    if (sorted) return;
    for (int64_t i = 0; i < n; i++)
        wanted[i].packed.streams =
            (uint8_t *)layout->header_bytes + range_of(layout, &wanted[i]).start;
    qsort(wanted, (size_t)n, sizeof wanted[0], by_position);
}

static void describe(const cv_layout *layout, cv_wanted *wanted)
{
    cv_block_range range = range_of(layout, wanted);
    wanted->packed = (cv_packed_block){
        .chunk_header = layout->header_bytes,
        .streams_size = range.end - range.start,
        .chunk_size = layout->header.cbytes,
        .block = (int32_t)wanted->block,
        .n_blocks = (int32_t)layout->n_blocks,
    };
}

const uint8_t *cv_chunk_view(cv_frame *frame, const cv_layout *layout)
{
    if (layout->chunk) return layout->chunk;
    return cv_store_view(frame->store, layout->object, layout->pos,
                         (size_t)layout->header.cbytes);
}

/* Where the chunk is at hand nothing is read at all. */
static bool borrow(cv_frame *frame, const cv_layout *layout, cv_wanted *wanted, int64_t n)
{
    const uint8_t *chunk = cv_chunk_view(frame, layout);
    if (!chunk) return false;
    for (int64_t i = 0; i < n; i++) {
        describe(layout, &wanted[i]);
        wanted[i].packed.streams = (uint8_t *)chunk + range_of(layout, &wanted[i]).start;
        wanted[i].packed.chunk = chunk;
    }
    return true;
}

/* One past the last block of the run that begins at wanted[first]: behind each other in
 * the file. Blocks may share bytes (hostile files); a run then ends where its largest
 * end is. */
static int64_t run_end(const cv_layout *layout, const cv_wanted *wanted, int64_t first,
                       int64_t n, size_t budget, int64_t gap, cv_block_range *run)
{
    *run = range_of(layout, &wanted[first]);
    int64_t i = first + 1, wanted_bytes = run->end - run->start;
    for (; i < n; i++) {
        cv_block_range next = range_of(layout, &wanted[i]);
        if (next.start < run->start || next.start > run->end + gap) break;
        if ((size_t)(next.end - run->start) > budget) break;
        wanted_bytes += next.end - next.start;
        bool is_wide = next.start > run->end + SMALL_GAP;
        if (is_wide && next.end - run->start > 2 * wanted_bytes) break;
        if (next.end > run->end) run->end = next.end;
    }
    return i;
}

/* A list on its way: runs that are read together. */
typedef struct fetching {
    const cv_layout *layout;
    cv_wanted *wanted;
    cv_store_range ranges[RUNS]; /* without their places */
    int64_t ends[RUNS];          /* of each run: one past its last block in the list */
    size_t n_runs, needed;       /* bytes of the buffer that they take */
} fetching;

/* As many runs from the list's beginning as fit the budget, at least one. Returns how many
 * blocks they hold. */
static int64_t plan_runs(fetching *f, int64_t n, size_t budget, int64_t gap)
{
    const cv_layout *layout = f->layout;
    f->n_runs = f->needed = 0;
    int64_t i = 0;
    for (; i < n && f->n_runs < RUNS; f->n_runs++) {
        cv_block_range run;
        size_t left = budget > f->needed ? budget - f->needed : 0;
        int64_t end = run_end(layout, f->wanted, i, n, left, gap, &run);
        size_t size = (size_t)(run.end - run.start);
        if (i > 0 && CV_BLOCK_PREFIX + size > left) break;
        f->ranges[f->n_runs] = (cv_store_range){
            .object = layout->object, .pos = layout->pos + (uint64_t)run.start, .size = size};
        f->ends[f->n_runs] = i = end;
        f->needed += CV_BLOCK_PREFIX + size;
    }
    return i;
}

void cv_fetch_next_run(const cv_frame *frame, const cv_layout *layout,
                       const cv_wanted *wanted, int64_t n, size_t most, cv_fetch_run *run)
{
    cv_block_range range;
    int64_t gap = cv_store_join_gap(frame->store);
    run->last = run_end(layout, wanted, run->first, n, most, gap, &range);
    run->start = range.start;
    run->size = (size_t)(range.end - range.start);
}

void cv_fetch_place(const cv_layout *layout, cv_wanted *wanted, const cv_fetch_run *run,
                    uint8_t *bytes)
{
    for (int64_t i = run->first; i < run->last; i++) {
        describe(layout, &wanted[i]);
        wanted[i].packed.streams = bytes + (range_of(layout, &wanted[i]).start - run->start);
        wanted[i].packed.in_place = true;
    }
}

/* A run is there: its blocks are described. */
static cv_status take_run(void *context, size_t run, cv_error *err)
{
    const fetching *f = context;
    const cv_store_range *range = &f->ranges[run];
    (void)err;
    cv_fetch_run at = {.first = run == 0 ? 0 : f->ends[run - 1],
                       .last = f->ends[run],
                       .start = (int64_t)(range->pos - f->layout->pos)};
    cv_fetch_place(f->layout, f->wanted, &at, range->dst);
    return CV_OK;
}

static cv_status read_runs(cv_frame *frame, const cv_layout *layout, cv_wanted *wanted,
                           int64_t n, size_t budget, cv_buffer *buffer, int64_t *fetched,
                           cv_error *err)
{
    fetching f;
    const cv_arrivals arrivals = {.arrived = take_run, .context = &f};
    f.layout = layout;
    f.wanted = wanted;
    *fetched = plan_runs(&f, n, budget, cv_store_join_gap(frame->store));
    CV_TRY(cv_buffer_reserve(buffer, f.needed, err));
    uint8_t *place = buffer->data;
    for (size_t i = 0; i < f.n_runs; i++) {
        f.ranges[i].dst = place + CV_BLOCK_PREFIX;
        place += CV_BLOCK_PREFIX + f.ranges[i].size;
    }
    return cv_store_read_many(frame->store, f.ranges, f.n_runs, &arrivals, err);
}

cv_status cv_fetch_blocks(cv_frame *frame, const cv_layout *layout, cv_wanted *wanted,
                          int64_t n, size_t budget, cv_buffer *buffer, int64_t *fetched,
                          cv_error *err)
{
    *fetched = n;
    if (borrow(frame, layout, wanted, n)) return CV_OK;
    cv_fetch_sort(layout, wanted, n);
    return read_runs(frame, layout, wanted, n, budget, buffer, fetched, err);
}

cv_status cv_fetch_in_order(cv_frame *frame, const cv_layout *layout, cv_wanted *wanted,
                            int64_t n, size_t budget, cv_buffer *buffer, int64_t *fetched,
                            cv_error *err)
{
    *fetched = n;
    if (borrow(frame, layout, wanted, n)) return CV_OK;
    return read_runs(frame, layout, wanted, n, budget, buffer, fetched, err);
}

cv_status cv_fetch_chunk(cv_frame *frame, const cv_layout *layout, cv_buffer *buffer,
                         const uint8_t **bytes, cv_error *err)
{
    size_t size = (size_t)layout->header.cbytes;
    *bytes = cv_chunk_view(frame, layout);
    if (*bytes) return CV_OK;
    CV_TRY(cv_buffer_reserve(buffer, size, err));
    *bytes = buffer->data;
    return cv_store_read(frame->store, layout->object, layout->pos, buffer->data, size, err);
}

cv_status cv_fetch_raw(cv_frame *frame, const cv_layout *layout, int64_t pos, void *dst,
                       size_t size, cv_error *err)
{
    return cv_store_read(frame->store, layout->object,
                         layout->pos + CV_CHUNK_HEADER_SIZE + (uint64_t)pos, dst, size, err);
}

/* ---- Layout wave ----
 *
 * Layouts of many chunks, read together. Whose blocks are wanted is not known
 * here.
 *
 *     wave 0   records, where there are   [record][record] ...
 *     wave 1   heads of other chunks      [head]....[table?] [head]....[table?] ...
 *     wave 2   tables not among them      [table] ...
 *
 * Of few small chunks wave 1 reads all bytes, and is the only one. */

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

/* The same, but one that is damaged or cannot be read has no layout, and the others have
 * theirs. CATERVA_ENOMEM, CATERVA_ESTOPPED: then there are none. */
static cv_status cv_layout_wave_of_good(cv_frame *frame, const cv_snapshot *snapshot,
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

/* ---- Staged ----
 *
 * Bytes read before they are needed. Whose they are, and how many chunks are
 * read together, is not known here.
 *
 *     chunks   3          4      9          runs of bytes, chunk after chunk, and in each
 *     runs     [..] [...] [....] [.] [..]   as they are stored; a whole chunk is one */

/* Bytes of a run that is more than a block. */
enum { MOST_RUN = 1 << 20 };

typedef struct chunk {
    int64_t first, last; /* its blocks in the list */
    bool is_whole;
    size_t first_run, n_runs; /* 0: nothing of it is there but its layout */
} chunk;

/* Bytes [start, start + size) of a chunk. */
typedef struct staged_run {
    size_t chunk;
    int64_t start;
    size_t size;
    uint8_t *bytes;
} staged_run;

struct cv_staged {
    cv_frame *frame;
    const cv_snapshot *snapshot;
    cv_buffer wishes, chunks; /* as many of both */
    cv_buffer wanted, runs, bytes;
    size_t n_chunks, n_runs, n_bytes;
    int64_t n_wanted;
    cv_watch *watch;
};

static cv_layout_wish *wish_at(const cv_staged *s, size_t i)
{
    return (cv_layout_wish *)(void *)s->wishes.data + i;
}

static chunk *chunk_at(const cv_staged *s, size_t i)
{
    return (chunk *)(void *)s->chunks.data + i;
}

static staged_run *run_at(const cv_staged *s, size_t i) { return (staged_run *)(void *)s->runs.data + i; }

/* ---- What is wanted --------------------------------------------------------- */

cv_status cv_staged_new(cv_frame *frame, const cv_snapshot *snapshot, cv_staged **out,
                        cv_error *err)
{
    cv_staged *s = cv_calloc(1, sizeof *s);
    if (!s) return cv_fail_memory(err, sizeof *s, "a list of chunks");
    s->frame = frame;
    s->snapshot = snapshot;
    *out = s;
    return CV_OK;
}

void cv_staged_free(cv_staged *s)
{
    if (!s) return;
    if (s->n_chunks > 0) cv_layout_wave_release(wish_at(s, 0), s->n_chunks);
    cv_buffer_free(&s->wishes);
    cv_buffer_free(&s->chunks);
    cv_buffer_free(&s->wanted);
    cv_buffer_free(&s->runs);
    cv_buffer_free(&s->bytes);
    cv_free(s);
}

cv_status cv_staged_add(cv_staged *s, const cv_chunk_ref *ref, uint64_t end, cv_error *err)
{
    const cv_layout_wish wish = {.ref = *ref, .end = end};
    const chunk c = {.first = s->n_wanted, .last = s->n_wanted};
    CV_TRY(cv_buffer_append(&s->chunks, &c, sizeof c, err));
    CV_TRY(cv_buffer_append(&s->wishes, &wish, sizeof wish, err));
    s->n_chunks++;
    return CV_OK;
}

cv_status cv_staged_add_block(cv_staged *s, int64_t block, cv_error *err)
{
    const cv_wanted wanted = {.block = block};
    CV_TRY(cv_buffer_append(&s->wanted, &wanted, sizeof wanted, err));
    chunk_at(s, s->n_chunks - 1)->last = ++s->n_wanted;
    return CV_OK;
}

void cv_staged_add_all(cv_staged *s) { chunk_at(s, s->n_chunks - 1)->is_whole = true; }

/* ---- Reading ---------------------------------------------------------------- */

static cv_status add_run(cv_staged *s, size_t i, int64_t start, size_t size, cv_error *err)
{
    const staged_run r = {i, start, size, NULL};
    CV_TRY(cv_buffer_append(&s->runs, &r, sizeof r, err));
    chunk_at(s, i)->n_runs++;
    s->n_runs++;
    s->n_bytes += size;
    return CV_OK;
}

static void forget_runs(cv_staged *s, size_t i)
{
    chunk *c = chunk_at(s, i);
    for (size_t k = 0; k < c->n_runs; k++) s->n_bytes -= run_at(s, --s->n_runs)->size;
    s->runs.size = s->n_runs * sizeof(staged_run);
    c->n_runs = 0;
}

/* A chunk of which some would be more than there is room for has none. */
static cv_status cut_runs(cv_staged *s, size_t i, size_t most, cv_error *err)
{
    const cv_layout *layout = wish_at(s, i)->layout;
    chunk *c = chunk_at(s, i);
    c->first_run = s->n_runs;
    if (!layout || layout->chunk) return CV_OK;
    if (layout->header.special != CV_SPECIAL_NONE && !c->is_whole) return CV_OK;
    if (c->is_whole || (layout->access == CV_ACCESS_CHUNK && c->last > c->first)) {
        CV_TRY(add_run(s, i, 0, (size_t)layout->header.cbytes, err));
    } else {
        int64_t n = c->last - c->first;
        cv_wanted *list = (cv_wanted *)(void *)s->wanted.data + c->first;
        cv_fetch_sort(layout, list, n);
        for (cv_fetch_run r = {.last = 0}; r.first < n; r.first = r.last) {
            cv_fetch_next_run(s->frame, layout, list, n, MOST_RUN, &r);
            CV_TRY(add_run(s, i, r.start, r.size, err));
        }
    }
    if (s->n_bytes > most) forget_runs(s, i);
    return CV_OK;
}

static cv_status take_staged(void *context, size_t range, cv_error *err)
{
    (void)range;
    return cv_watch_tick(((const cv_staged *)context)->watch, 0, err);
}

static cv_status read_staged_runs(cv_staged *s, cv_error *err)
{
    cv_buffer ranges = {0};
    const cv_arrivals arrivals = {.arrived = take_staged, .context = s, .watch = s->watch};
    if (s->n_runs == 0) return CV_OK;
    CV_TRY(cv_buffer_reserve(&s->bytes, s->n_bytes, err));
    uint8_t *to = s->bytes.data;
    cv_status status = CV_OK;
    for (size_t i = 0; i < s->n_runs && status == CV_OK; i++) {
        staged_run *r = run_at(s, i);
        const cv_chunk_ref *ref = &wish_at(s, r->chunk)->ref;
        const cv_store_range range = {ref->object, ref->pos + (uint64_t)r->start, r->size,
                                      to};
        status = cv_buffer_append(&ranges, &range, sizeof range, err);
        r->bytes = to;
        to += r->size;
    }
    if (status == CV_OK)
        status = cv_store_read_wave(s->frame->store,
                                    (const cv_store_range *)(const void *)ranges.data,
                                    s->n_runs, &arrivals, err);
    cv_buffer_free(&ranges);
    return status;
}

cv_status cv_staged_fetch(cv_staged *s, size_t most, cv_watch *watch, cv_error *err)
{
    cv_error error = {0};
    s->watch = watch;
    if (s->n_chunks == 0) return CV_OK;
    CV_TRY(cv_layout_wave_of_good(s->frame, s->snapshot, wish_at(s, 0), s->n_chunks, watch,
                                  err));
    for (size_t i = 0; i < s->n_chunks; i++) CV_TRY(cut_runs(s, i, most, err));
    cv_status status = read_staged_runs(s, &error);
    if (status != CATERVA_ESTOPPED && status != CATERVA_ENOMEM) {
        for (size_t i = 0; i < s->n_chunks && status != CV_OK; i++)
            chunk_at(s, i)->n_runs = 0;
        return CV_OK;
    }
    if (err) *err = error;
    return status;
}

/* ---- What there is ----------------------------------------------------------- */

/* The chunk's place; n_chunks: it has none. */
static size_t find(const cv_staged *s, const cv_chunk_ref *ref)
{
    size_t low = 0, high = s->n_chunks;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (wish_at(s, middle)->ref.chunk < ref->chunk)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == s->n_chunks) return low;
    const cv_layout_wish *wish = wish_at(s, low);
    bool is_it = wish->layout && wish->ref.chunk == ref->chunk && wish->ref.pos == ref->pos &&
                 wish->ref.object == ref->object && wish->ref.name == ref->name;
    return is_it ? low : s->n_chunks;
}

const cv_layout *cv_staged_layout(const cv_staged *s, const cv_chunk_ref *ref)
{
    size_t i = s ? find(s, ref) : 0;
    return s && i < s->n_chunks ? wish_at(s, i)->layout : NULL;
}

const uint8_t *cv_staged_chunk(const cv_staged *s, const cv_chunk_ref *ref)
{
    const cv_layout *layout = cv_staged_layout(s, ref);
    if (!layout || layout->chunk) return layout ? layout->chunk : NULL;
    const chunk *c = chunk_at(s, find(s, ref));
    if (c->n_runs != 1) return NULL;
    const staged_run *r = run_at(s, c->first_run);
    return r->start == 0 && r->size == (size_t)layout->header.cbytes ? r->bytes : NULL;
}

/* The run that has these bytes of the chunk, or NULL. */
static const staged_run *find_run(const cv_staged *s, const chunk *c, cv_block_range range)
{
    size_t low = 0, high = c->n_runs; /* the last one that begins before it, or with it */
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (run_at(s, c->first_run + middle)->start <= range.start)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0) return NULL;
    const staged_run *r = run_at(s, c->first_run + low - 1);
    return range.end <= r->start + (int64_t)r->size ? r : NULL;
}

/* Several threads may decode blocks of one run: what stands before a block is not theirs. */
bool cv_staged_place(const cv_staged *s, const cv_chunk_ref *ref, cv_wanted *wanted,
                     int64_t n)
{
    const cv_layout *layout = cv_staged_layout(s, ref);
    if (!layout) return false;
    const chunk *c = chunk_at(s, find(s, ref));
    for (int64_t i = 0; i < n; i++) {
        const staged_run *r = find_run(s, c, cv_fetch_range(layout, wanted[i].block));
        if (!r) return false;
        const cv_fetch_run one = {i, i + 1, r->start, r->size};
        cv_fetch_place(layout, wanted, &one, r->bytes);
        wanted[i].packed.in_place = false;
    }
    return true;
}

cv_status cv_staged_get_layout(const cv_staged *s, cv_frame *frame,
                               const cv_snapshot *snapshot, const cv_chunk_ref *ref,
                               cv_layout **out, cv_error *err)
{
    size_t i = s ? find(s, ref) : 0;
    if (!s || i == s->n_chunks) return cv_layout_get(frame->layouts, snapshot, ref, out, err);
    *out = wish_at(s, i)->layout;
    atomic_fetch_add_explicit(&(*out)->references, 1, memory_order_relaxed);
    return CV_OK;
}
