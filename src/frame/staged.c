/* Room: frame. Bytes read before they are needed. Whose they are, and how many chunks are
 * read together, is not known here.
 *
 *     chunks   3          4      9          runs of bytes, chunk after chunk, and in each
 *     runs     [..] [...] [....] [.] [..]   as they are stored; a whole chunk is one */
#include "frame/staged.h"

#include "base/heap.h"

/* Bytes of a run that is more than a block. */
enum { MOST_RUN = 1 << 20 };

typedef struct chunk {
    int64_t first, last; /* its blocks in the list */
    bool is_whole;
    size_t first_run, n_runs; /* 0: nothing of it is there but its layout */
} chunk;

/* Bytes [start, start + size) of a chunk. */
typedef struct run {
    size_t chunk;
    int64_t start;
    size_t size;
    uint8_t *bytes;
} run;

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

static run *run_at(const cv_staged *s, size_t i) { return (run *)(void *)s->runs.data + i; }

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
    const run r = {i, start, size, NULL};
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
    s->runs.size = s->n_runs * sizeof(run);
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

static cv_status take(void *context, size_t range, cv_error *err)
{
    (void)range;
    return cv_watch_tick(((const cv_staged *)context)->watch, 0, err);
}

static cv_status read_runs(cv_staged *s, cv_error *err)
{
    cv_buffer ranges = {0};
    const cv_arrivals arrivals = {.arrived = take, .context = s, .watch = s->watch};
    if (s->n_runs == 0) return CV_OK;
    CV_TRY(cv_buffer_reserve(&s->bytes, s->n_bytes, err));
    uint8_t *to = s->bytes.data;
    cv_status status = CV_OK;
    for (size_t i = 0; i < s->n_runs && status == CV_OK; i++) {
        run *r = run_at(s, i);
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
    cv_status status = read_runs(s, &error);
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
    const run *r = run_at(s, c->first_run);
    return r->start == 0 && r->size == (size_t)layout->header.cbytes ? r->bytes : NULL;
}

/* The run that has these bytes of the chunk, or NULL. */
static const run *find_run(const cv_staged *s, const chunk *c, cv_block_range range)
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
    const run *r = run_at(s, c->first_run + low - 1);
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
        const run *r = find_run(s, c, cv_fetch_range(layout, wanted[i].block));
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
