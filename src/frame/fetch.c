/* Room: frame. Reads compressed bytes of blocks with few, large reads: blocks of one chunk when
 * they are needed, or blocks of many chunks ahead of their use. Does not know what they are for.
 *
 *      stored:   ..[b4 ][b5 ]......[b9 ]..
 *      buffer:   [36][b4 ][b5 ][36][b9 ]
 *
 * Neighbouring blocks form a run: one read. In the prefix before each run the decoder places the
 * header of the block that it decodes (see codec/decode.c). */
#include "frame/fetch.h"

#include "base/arith.h"
#include "base/heap.h"
#include "format/chunk_header.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- Blocks of one chunk ----------------------------------------------------- */

/* Maximum number of runs read together; gaps up to SMALL_GAP are always read over. */
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

/* Sorts by position; the list is nearly always sorted already. `streams` is the sort key until the
 * fetch. */
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

/* Returns the index behind the last block of the run at wanted[first]. In hostile files blocks may
 * share bytes: the run then ends with the last byte of any. */
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

typedef struct fetching {
    const cv_layout *layout;
    cv_wanted *wanted;
    cv_store_range ranges[RUNS]; /* without dst */
    int64_t ends[RUNS];          /* of each run: index behind its last block in the list */
    size_t n_runs, needed;       /* size of the buffer */
} fetching;

/* Plans runs that fit the budget, at least one. Returns the number of blocks in them. */
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
                           int64_t *n, size_t budget, cv_buffer *buffer, cv_error *err)
{
    fetching f;
    const cv_arrivals arrivals = {.arrived = take_run, .context = &f};
    f.layout = layout;
    f.wanted = wanted;
    *n = plan_runs(&f, *n, budget, cv_store_join_gap(frame->store));
    CV_TRY(cv_buffer_reserve(buffer, f.needed, err));
    uint8_t *place = buffer->data;
    for (size_t i = 0; i < f.n_runs; i++) {
        f.ranges[i].dst = place + CV_BLOCK_PREFIX;
        place += CV_BLOCK_PREFIX + f.ranges[i].size;
    }
    return cv_store_read_many(frame->store, f.ranges, f.n_runs, &arrivals, err);
}

cv_status cv_fetch_blocks(cv_frame *frame, const cv_layout *layout, cv_wanted *wanted,
                          int64_t *n, bool in_order, size_t budget, cv_buffer *buffer,
                          cv_error *err)
{
    if (borrow(frame, layout, wanted, *n)) return CV_OK;
    if (!in_order) cv_fetch_sort(layout, wanted, *n);
    return read_runs(frame, layout, wanted, n, budget, buffer, err);
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

/* ---- Bytes of many chunks, read before they are needed ----
 *
 *     chunks   3          4      9          runs of bytes, chunk after chunk, and within a chunk
 *     runs     [..] [...] [....] [.] [..]   in stored order; a whole chunk is one run */

/* Maximum bytes of a run of several blocks. */
enum { MOST_RUN = 1 << 20 };

typedef struct chunk {
    int64_t first, last; /* its range in the list of blocks */
    bool is_whole;
    size_t first_run, n_runs; /* 0: only its layout was read */
} chunk;

typedef struct staged_run {
    size_t chunk;
    int64_t start;
    size_t size;
    uint8_t *bytes;
} staged_run;

struct cv_staged {
    cv_frame *frame;
    const cv_snapshot *snapshot;
    cv_buffer requests, chunks; /* one entry of each for every chunk */
    cv_buffer wanted, runs, bytes;
    size_t n_chunks, n_runs, n_bytes;
    int64_t n_wanted;
    cv_watch *watch;
};

static cv_layout_request *request_at(const cv_staged *s, size_t i)
{
    return (cv_layout_request *)(void *)s->requests.data + i;
}

static chunk *chunk_at(const cv_staged *s, size_t i)
{
    return (chunk *)(void *)s->chunks.data + i;
}

static staged_run *run_at(const cv_staged *s, size_t i)
{
    return (staged_run *)(void *)s->runs.data + i;
}

/* ---- What to read ------------------------------------------------------------ */

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
    if (s->n_chunks > 0) cv_layout_wave_release(request_at(s, 0), s->n_chunks);
    cv_buffer_free(&s->requests);
    cv_buffer_free(&s->chunks);
    cv_buffer_free(&s->wanted);
    cv_buffer_free(&s->runs);
    cv_buffer_free(&s->bytes);
    cv_free(s);
}

cv_status cv_staged_add(cv_staged *s, const cv_chunk_ref *ref, uint64_t end, cv_error *err)
{
    const cv_layout_request request = {.ref = *ref, .end = end};
    const chunk c = {.first = s->n_wanted, .last = s->n_wanted};
    CV_TRY(cv_buffer_append(&s->chunks, &c, sizeof c, err));
    CV_TRY(cv_buffer_append(&s->requests, &request, sizeof request, err));
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

/* Plans the runs of a chunk. If they do not fit the memory, plans none. */
static cv_status cut_runs(cv_staged *s, size_t i, size_t most, cv_error *err)
{
    const cv_layout *layout = request_at(s, i)->layout;
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
        const cv_chunk_ref *ref = &request_at(s, r->chunk)->ref;
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
    CV_TRY(cv_layout_wave_of_good(s->frame->layouts, s->snapshot, request_at(s, 0),
                                  s->n_chunks, watch, err));
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

/* ---- What was read ----------------------------------------------------------- */

/* Returns the chunk's position in the list, or n_chunks. */
static size_t find(const cv_staged *s, const cv_chunk_ref *ref)
{
    size_t low = 0, high = s->n_chunks;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (request_at(s, middle)->ref.chunk < ref->chunk)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == s->n_chunks) return low;
    const cv_layout_request *request = request_at(s, low);
    bool is_it = request->layout && request->ref.chunk == ref->chunk &&
                 request->ref.pos == ref->pos && request->ref.object == ref->object &&
                 request->ref.name == ref->name;
    return is_it ? low : s->n_chunks;
}

const cv_layout *cv_staged_layout(const cv_staged *s, const cv_chunk_ref *ref)
{
    size_t i = s ? find(s, ref) : 0;
    return s && i < s->n_chunks ? request_at(s, i)->layout : NULL;
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

static const staged_run *find_run(const cv_staged *s, const chunk *c, cv_block_range range)
{
    size_t low = 0, high = c->n_runs; /* the last run that begins at or before `range` */
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

/* Several threads may decode blocks of one run, so the bytes before a block must not be
 * overwritten. */
static bool place_staged(const cv_staged *s, const cv_chunk_ref *ref, const cv_layout *layout,
                         cv_wanted *wanted, int64_t n)
{
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

bool cv_staged_find(const cv_staged *s, const cv_chunk_ref *ref, cv_wanted *wanted, int64_t n,
                    cv_staged_found *out)
{
    *out = (cv_staged_found){.layout = cv_staged_layout(s, ref)};
    const cv_layout *layout = out->layout;
    if (!layout) return false;
    if (layout->header.special != CV_SPECIAL_NONE || layout->chunk) return true;
    if (layout->access == CV_ACCESS_CHUNK)
        return (out->chunk = cv_staged_chunk(s, ref)) != NULL;
    return out->is_placed = place_staged(s, ref, layout, wanted, n);
}

cv_status cv_staged_get_layout(const cv_staged *s, cv_frame *frame,
                               const cv_snapshot *snapshot, const cv_chunk_ref *ref,
                               cv_layout **out, cv_error *err)
{
    size_t i = s ? find(s, ref) : 0;
    if (!s || i == s->n_chunks) return cv_layout_get(frame->layouts, snapshot, ref, out, err);
    *out = request_at(s, i)->layout;
    atomic_fetch_add_explicit(&(*out)->references, 1, memory_order_relaxed);
    return CV_OK;
}
