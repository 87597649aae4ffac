/* Room: frame. Compressed bytes of wanted blocks, with few and large reads.
 *
 *      stored:   ..[b4 ][b5 ]......[b9 ]..
 *      buffer:   [36][b4 ][b5 ][36][b9 ]
 *
 * Neighbours make a run, read at once; the prefix before each run is where the
 * decoder puts the header of the block it decodes (see codec/decode.c). */
#include "frame/fetch.h"

#include <stdlib.h>

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
