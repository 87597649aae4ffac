/* Room: engine/read. From a stepped box to decoded items in place. The plan knows which
 * chunks and blocks the box touches; here each block's share of the selected items is
 * found, and blocks between two steps are passed over without decoding. */
#include "engine/read/visit.h"

#include "base/arith.h"
#include "engine/read/blocks.h"

int64_t cv_stepped_count(const cv_stepped *box, int axis, int64_t lo, int64_t hi,
                         int64_t *first)
{
    int64_t start = box->start[axis], step = box->step[axis];
    lo = cv_max_i64(lo, start);
    hi = cv_min_i64(hi, box->stop[axis]);
    *first = cv_ceil_div(lo - start, step);
    if (hi <= lo) return 0;
    return (hi - 1 - start) / step + 1 - *first;
}

cv_status cv_visit_init(cv_visit *visit, const cv_source *source, const cv_stepped *box,
                        void (*fn)(void *context, const cv_visited *part), cv_error *err)
{
    const cv_grid *grid = &source->snapshot->grid;
    for (int d = 0; d < grid->ndim; d++)
        if (box->step[d] < 1)
            return cv_fail(err, CATERVA_EINVAL, -1, "step %lld on axis %d is not positive",
                           (long long)box->step[d], d);
    *visit = (cv_visit){.source = source, .box = box, .visit = fn};
    return cv_plan_box(grid, box->start, box->stop, &visit->plan, err);
}

/* ---- One chunk ------------------------------------------------------------- */

typedef struct chunk_visit {
    const cv_visit *visit;
    cv_chunk_job job;
    int64_t origin[CV_MAX_DIMS]; /* the chunk's first item in the array */
    void *context;
} chunk_visit;

/* The selected items of touched block `j`; false: none. */
static bool find_part(const chunk_visit *c, int64_t j, int64_t *block, cv_visited *out)
{
    const cv_grid *g = c->visit->plan.grid;
    const cv_stepped *box = c->visit->box;
    *block = 0;
    *out = (cv_visited){.n_items = 1};
    for (int d = g->ndim - 1; d >= 0; d--) {
        int64_t index = c->job.first_block[d] + j % c->job.block_counts[d];
        j /= c->job.block_counts[d];
        int64_t begin = c->origin[d] + index * g->block_shape[d];
        int64_t end = cv_min_i64(begin + g->block_shape[d], c->origin[d] + c->job.hi[d]);
        out->counts[d] = cv_stepped_count(box, d, begin, end, &out->first[d]);
        out->n_items *= out->counts[d];
        if (out->n_items == 0) return false;
        out->strides[d] = out->counts[d] > 1 ? g->item_strides[d] * box->step[d] : 0;
        out->pos +=
            (box->start[d] + out->first[d] * box->step[d] - begin) * g->item_strides[d];
        *block += index * g->block_strides[d];
    }
    return true;
}

static const uint8_t zeros[16]; /* numbers are no longer */

/* Blocks are decoded to scratch, where the visitor sees them. */
static uint8_t *place_nowhere(void *context, int64_t tag)
{
    (void)context;
    (void)tag;
    return NULL;
}

static void take_block(void *context, int64_t tag, const uint8_t *block)
{
    const chunk_visit *c = context;
    cv_visited part;
    int64_t number;
    if (!find_part(c, tag, &number, &part)) return;
    part.data = block + part.pos;
    c->visit->visit(c->context, &part);
}

static void fill_block(void *context, int64_t tag, const uint8_t *item)
{
    const chunk_visit *c = context;
    cv_visited part;
    int64_t number;
    if (!find_part(c, tag, &number, &part)) return;
    part.item = item ? item : zeros;
    c->visit->visit(c->context, &part);
}

/* Lists those of blocks [first, last) that must be decoded; dirty ones are visited at
 * once. */
static int64_t list_blocks(const chunk_visit *c, int64_t first, int64_t last,
                           cv_worker *worker)
{
    cv_pending *pending = c->visit->source->pending;
    const cv_dirty_chunk *dirty = pending ? cv_pending_find(pending, c->job.chunk) : NULL;
    int64_t n = 0;
    for (int64_t j = first; j < last; j++) {
        int64_t block;
        cv_visited part;
        if (!find_part(c, j, &block, &part)) continue;
        if (dirty && dirty->blocks[block])
            take_block((void *)c, j, dirty->blocks[block]);
        else
            worker->wanted[n++] = (cv_wanted){.block = block, .tag = j};
    }
    return n;
}

static cv_status visit_blocks(const chunk_visit *c, const cv_share *share,
                              const cv_chunk_ref *ref, cv_worker *worker, cv_error *err)
{
    const cv_source *s = c->visit->source;
    int64_t first = c->job.n_blocks * share->share / share->n_shares;
    int64_t last = c->job.n_blocks * (share->share + 1) / share->n_shares;
    int64_t step;
    cv_block_sink sink = {
        .place = place_nowhere, .take = take_block, .fill = fill_block, .context = (void *)c};
    CV_TRY(cv_blocks_at_once(s->frame, s->snapshot, ref, worker, last - first, &step, err));
    CV_TRY(cv_worker_wanted(worker, step, err));
    for (; first < last; first += step) {
        int64_t n = list_blocks(c, first, cv_min_i64(first + step, last), worker);
        if (n == 0) continue;
        CV_TRY(cv_decode_blocks(s->frame, s->snapshot, ref, worker, n, &sink, err));
    }
    return CV_OK;
}

/* A chunk that is one item everywhere is one part, however many blocks it has. */
static void visit_whole(chunk_visit *c, const uint8_t *item)
{
    const cv_visit *visit = c->visit;
    cv_visited part = {.n_items = 1};
    for (int d = 0; d < visit->plan.grid->ndim; d++) {
        part.counts[d] = cv_stepped_count(visit->box, d, c->origin[d] + c->job.lo[d],
                                          c->origin[d] + c->job.hi[d], &part.first[d]);
        part.n_items *= part.counts[d];
    }
    part.item = item ? item : zeros;
    if (part.n_items > 0) visit->visit(c->context, &part);
}

cv_status cv_visit_chunk(const cv_visit *visit, const cv_share *share, void *context,
                         cv_worker *worker, cv_error *err)
{
    const cv_source *source = visit->source;
    const cv_grid *grid = visit->plan.grid;
    chunk_visit c = {.visit = visit, .context = context};
    worker->watch = source->watch;
    cv_plan_chunk(&visit->plan, share->chunk, &c.job);
    cv_grid_chunk_index(grid, c.job.chunk, c.origin);
    for (int d = 0; d < grid->ndim; d++) c.origin[d] *= grid->chunk_shape[d];

    cv_chunk_ref ref;
    CV_TRY(cv_source_find(source, c.job.chunk, &ref, err));
    bool dirty = source->pending && cv_pending_find(source->pending, c.job.chunk);
    if (!dirty) {
        const uint8_t *item;
        bool same;
        CV_TRY(cv_blocks_are_same(source->frame, source->snapshot, &ref, worker, &same, &item,
                                  err));
        if (same && share->share == 0) visit_whole(&c, item);
        if (same) return CV_OK;
    }
    return visit_blocks(&c, share, &ref, worker, err);
}

/* ---- Rows ------------------------------------------------------------------ */

void cv_rows_begin(cv_rows *rows, int ndim, const cv_visited *part)
{
    *rows = (cv_rows){.ndim = ndim, .part = part, .length = 1};
    if (ndim == 0) return;
    rows->length = part->counts[ndim - 1];
    rows->step = part->strides[ndim - 1];
}

void cv_rows_next(cv_rows *rows)
{
    const cv_visited *part = rows->part;
    for (int d = rows->ndim - 2; d >= 0; d--) {
        rows->pos += part->strides[d];
        if (++rows->index[d] < part->counts[d]) return;
        rows->pos -= part->counts[d] * part->strides[d];
        rows->index[d] = 0;
    }
    rows->done = true;
}
