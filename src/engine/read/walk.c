/* Room: engine/read. The one walk; its header says what it promises.
 *
 * A job is a part of a touched chunk: all its wanted blocks, or a share of them when there
 * are fewer chunks than threads. Jobs deliver to places of their own, so no lock is
 * taken; all scratch belongs to the worker. */
#include "engine/read/walk.h"

#include "base/arith.h"
#include "engine/cache/rotated.h"
#include "engine/read/walk_keep.h"
#include "engine/run/thresholds.h"

#include <string.h>

/* Blocks that are looked for in the cache together. */
enum { BATCH = 8 };

/* ---- Blocks that are there decoded --------------------------------------- */

/* A point that is found costs 2,000 instructions in all, and each call here a per cent of
 * that: what is small is inline. */

/* A touched block that was looked for. */
typedef struct found {
    cv_block_job block;
    bool is_wanted;
    bool is_rotated;
    const uint8_t *bytes; /* the block; NULL: nowhere */
    cv_strided items;     /* for take_items: those wanted */
    int64_t rotated_strides[CV_MAX_DIMS];
    cv_cached *cached; /* held; NULL: not in the cache */
} found;

/* Items are asked for: they arrive while other blocks are looked for. */
static inline void find_items(const cv_grid *grid, found *f)
{
    /* NOLINTNEXTLINE(clang-analyzer-core.uninitialized.Assign): cv_walk_plan_block has set it */
    int64_t pos = f->block.block_pos;
    f->items.strides = grid->item_strides;
    if (f->is_rotated) {
        cv_rotated_strides(grid, f->rotated_strides);
        f->items.strides = f->rotated_strides;
        pos = cv_rotated_pos(grid, pos);
    }
    f->items.data = (uint8_t *)f->bytes + pos;
    if (f->cached) cv_warm_box(grid->ndim, f->block.shape, grid->item_size, f->items);
}

/* What is rotated is turned back in scratch, where it is not taken as it lies. */
static bool can_take(const cv_walk_chunk *c, const found *f)
{
    if (!f->is_rotated || c->walk->delivery->take_items) return true;
    if (!c->worker) return false;
    return cv_worker_block(c->walk->source->workers, c->worker, true, NULL) == CV_OK;
}

static inline void look_in_cache(cv_walk_chunk *c, found *f)
{
    const cv_walk *w = c->walk;
    c->key.block = (int32_t)f->block.block;
    if (w->delivery->only_missing) {
        f->is_wanted = !cv_cache_holds(w->cache, &c->key);
        return;
    }
    f->cached = cv_cache_find(w->cache, &c->key);
    if (!f->cached) return;
    f->is_rotated = cv_cached_is_rotated(f->cached);
    f->bytes = cv_cached_bytes(f->cached);
    if (can_take(c, f)) return;
    cv_cache_release(f->cached);
    f->cached = NULL;
    f->bytes = NULL;
}

/* Dirty, or in the cache. */
static inline void look_for(cv_walk_chunk *c, int64_t tag, found *f)
{
    const cv_walk *w = c->walk;
    f->cached = NULL;
    f->bytes = NULL;
    f->is_rotated = false;
    f->is_wanted = cv_walk_plan_block(c, tag, &f->block);
    if (!f->is_wanted) return;
    if (c->dirty && c->dirty->blocks[f->block.block]) {
        f->bytes = c->dirty->blocks[f->block.block];
        f->is_wanted = !w->delivery->only_missing;
    } else if (w->cache && c->ref.kind == CV_REF_STORED) {
        look_in_cache(c, f);
    }
    if (f->bytes && w->delivery->take_items) find_items(&w->source->snapshot->grid, f);
}

static inline void hand_over(cv_walk_chunk *c, int64_t tag, const found *f)
{
    const cv_delivery *d = c->walk->delivery;
    if (!f->bytes || !f->is_wanted) return;
    if (d->take_items) {
        d->take_items(c, &f->block, f->items);
        return;
    }
    if (!f->is_rotated) {
        d->take(c, tag, f->bytes);
        return;
    }
    uint8_t *place = d->place ? d->place(c, tag) : NULL;
    uint8_t *block = place ? place : c->worker->block.data;
    cv_rotate_back(&c->walk->source->snapshot->grid, f->bytes, block);
    if (!place) d->take(c, tag, block);
}

static inline void release(const cv_walk_chunk *c, const found *f)
{
    const cv_walk *w = c->walk;
    if (!f->cached) return;
    cv_step step = CV_STEP_BACK;
    if (w->request.box)
        step =
            cv_sweep_note(cv_cached_sweep(f->cached), &w->source->snapshot->grid, &f->block);
    bool is_last = step == CV_STEP_LAST && !cv_walk_array_fits(w);
    if (step == CV_STEP_BACK)
        cv_cache_release(f->cached);
    else
        cv_cache_release_passed(w->cache, f->cached, is_last);
}

/* Looks for blocks [first, first + n), n up to BATCH, and delivers those that are there.
 * Finding and releasing wait for all that was written before: so first all are found,
 * then all copied, then all released. */
static inline void deliver_found(cv_walk_chunk *c, int64_t first, int64_t n, found *f)
{
    for (int64_t i = 0; i < n; i++) look_for(c, first + i, &f[i]);
    for (int64_t i = 0; i < n; i++) hand_over(c, first + i, &f[i]);
    for (int64_t i = 0; i < n; i++) release(c, &f[i]);
}

/* ---- Blocks that must be decoded ----------------------------------------- */

static cv_status decode_wanted(cv_walk_chunk *c, cv_error *err)
{
    const cv_source *s = c->walk->source;
    int64_t n = c->n_wanted;
    c->n_wanted = 0;
    if (n == 0) return CV_OK;
    return cv_decode_blocks(s->frame, s->snapshot, &c->ref, c->worker, n, &c->sink, err);
}

static void add_wanted(cv_walk_chunk *c, int64_t tag, const found *f)
{
    if (f->bytes || !f->is_wanted) return;
    c->tag = tag;
    c->block = f->block; /* of a single one it need not be planned again */
    c->worker->wanted[c->n_wanted++] = (cv_wanted){.block = f->block.block, .tag = tag};
}

/* Of a delivery in order what is missing before a block that is there comes first. */
static cv_status deliver_in_order(cv_walk_chunk *c, int64_t first, int64_t n, cv_error *err)
{
    cv_status status = CV_OK;
    found f[BATCH];
    for (int64_t i = 0; i < n; i++) look_for(c, first + i, &f[i]);
    for (int64_t i = 0; i < n; i++) {
        add_wanted(c, first + i, &f[i]);
        if (f[i].bytes && status == CV_OK) status = decode_wanted(c, err);
        if (status == CV_OK) hand_over(c, first + i, &f[i]);
        release(c, &f[i]);
    }
    return status;
}

/* Delivers those of blocks [first, last) that are there decoded, and lists the others. */
static cv_status find_list(cv_walk_chunk *c, int64_t first, int64_t last, cv_error *err)
{
    if (last - first > c->worker->max_wanted)
        CV_TRY(cv_worker_wanted(c->worker, last - first, err));
    for (; first < last; first += BATCH) {
        found f[BATCH];
        int64_t n = cv_min_i64(BATCH, last - first);
        if (c->walk->delivery->in_order) {
            CV_TRY(deliver_in_order(c, first, n, err));
            continue;
        }
        deliver_found(c, first, n, f);
        for (int64_t i = 0; i < n; i++) add_wanted(c, first + i, &f[i]);
    }
    return CV_OK;
}

/* And decodes those. */
static cv_status walk_list(cv_walk_chunk *c, int64_t first, int64_t last, cv_error *err)
{
    CV_TRY(find_list(c, first, last, err));
    return decode_wanted(c, err);
}

/* ---- One chunk ----------------------------------------------------------- */

static inline void aim(cv_walk_chunk *c, const cv_walk *w, int64_t k)
{
    const cv_source *s = w->source;
    c->walk = w;
    c->worker = NULL;
    c->context = w->context;
    c->tag = -1;
    c->n_wanted = 0;
    c->room = NULL;
    c->is_full = false;
    c->failed = false;
    cv_walk_plan_chunk(c, k);
    c->dirty = s->pending ? cv_pending_find(s->pending, c->chunk) : NULL;
}

static inline cv_status enter(cv_walk_chunk *c, const cv_walk *w, int64_t k, cv_error *err)
{
    const cv_source *s = w->source;
    aim(c, w, k);
    CV_TRY(cv_source_find(s, c->chunk, &c->ref, err));
    if (w->cache) c->key = cv_block_key(s->frame, &c->ref);
    cv_layout_warm(s->frame->store, s->snapshot, &c->ref);
    return CV_OK;
}

static inline void staff(cv_walk_chunk *c, cv_worker *worker)
{
    c->worker = worker;
    worker->watch = c->walk->source->watch;
    cv_walk_connect(c);
}

cv_status cv_walk_enter(cv_walk_chunk *c, const cv_walk *w, int64_t k, cv_worker *worker,
                        cv_error *err)
{
    CV_TRY(enter(c, w, k, err));
    staff(c, worker);
    return CV_OK;
}

void cv_walk_enter_found(cv_walk_chunk *c, const cv_walk *w, int64_t k,
                         const cv_chunk_ref *ref, cv_worker *worker)
{
    aim(c, w, k);
    c->ref = *ref;
    if (w->cache) c->key = cv_block_key(w->source->frame, ref);
    staff(c, worker);
}

cv_status cv_walk_check(const cv_walk_chunk *c, cv_error *err)
{
    if (!c->failed) return CV_OK;
    size_t size = (size_t)c->walk->source->snapshot->grid.block_bytes;
    return cv_fail_memory(err, size, "a block");
}

static cv_status walk_blocks(cv_walk_chunk *c, int64_t first, int64_t last, cv_error *err)
{
    const cv_source *s = c->walk->source;
    int64_t step = last - first;
    if (step > CV_BLOCKS_AT_ONCE)
        CV_TRY(
            cv_blocks_at_once(s->frame, s->snapshot, &c->ref, c->worker, step, &step, err));
    for (; first < last; first += step)
        CV_TRY(walk_list(c, first, cv_min_i64(first + step, last), err));
    return cv_walk_check(c, err);
}

cv_status cv_walk_blocks(cv_walk_chunk *c, int64_t first, int64_t last, cv_error *err)
{
    return walk_blocks(c, first, last, err);
}

cv_status cv_walk_find(cv_walk_chunk *c, cv_error *err)
{
    return find_list(c, 0, c->n_blocks, err);
}

/* A chunk that is one item everywhere is the first share's, however many blocks it has. */
static cv_status fill_whole(cv_walk_chunk *c, bool is_first, bool *done, cv_error *err)
{
    const cv_source *s = c->walk->source;
    const uint8_t *item;
    CV_TRY(cv_blocks_are_same(s->frame, s->snapshot, &c->ref, c->worker, done, &item, err));
    if (*done && is_first) c->walk->delivery->fill_chunk(c, item);
    return CV_OK;
}

static cv_status walk_share(const cv_walk *w, const cv_share *share, void *context,
                            cv_worker *worker, cv_error *err)
{
    cv_walk_chunk c;
    bool done = false;
    CV_TRY(cv_walk_enter(&c, w, share->chunk, worker, err));
    c.context = context;
    if (w->delivery->asks_first && !c.dirty)
        CV_TRY(fill_whole(&c, share->share == 0, &done, err));
    if (done) return CV_OK;
    int64_t first = c.n_blocks * share->share / share->n_shares;
    int64_t last = c.n_blocks * (share->share + 1) / share->n_shares;
    return walk_blocks(&c, first, last, err);
}

cv_status cv_walk_share(const cv_walk *w, const cv_share *share, void *context,
                        cv_worker *worker, cv_error *err)
{
    CV_TRY(cv_stage_enter(w->stage, share->chunk, worker, err));
    cv_status status = walk_share(w, share, context, worker, err);
    cv_stage_leave(w->stage, share->chunk, worker);
    return status;
}

cv_status cv_walk_listed(const cv_walk *w, int64_t chunk, cv_worker *worker, int64_t *n,
                         cv_error *err)
{
    cv_walk_chunk c;
    CV_TRY(cv_walk_enter(&c, w, chunk, worker, err));
    c.dirty = NULL;
    for (int64_t i = 0; i < *n; i++) {
        int64_t block = worker->wanted[i].block;
        found f;
        deliver_found(&c, block, 1, &f);
        add_wanted(&c, block, &f);
    }
    *n = c.n_wanted;
    return decode_wanted(&c, err);
}

/* ---- What will be read ------------------------------------------------------ */

static bool is_missing(cv_walk_chunk *c, int64_t tag, int64_t *block)
{
    cv_block_job job;
    if (!cv_walk_plan_block(c, tag, &job)) return false;
    *block = job.block;
    c->key.block = (int32_t)job.block;
    if (c->dirty && c->dirty->blocks[job.block]) return false;
    return !c->walk->cache || !cv_cache_holds(c->walk->cache, &c->key);
}

/* A chunk of more blocks than a wave has is not worth a list. */
cv_status cv_walk_list_missing(void *walk, int64_t k, cv_worker *worker, cv_stage_list *list,
                               cv_error *err)
{
    cv_walk_chunk c;
    int64_t block;
    (void)worker;
    aim(&c, walk, k);
    CV_TRY(cv_source_find(c.walk->source, c.chunk, &c.ref, err));
    if (c.ref.kind != CV_REF_STORED || c.n_blocks > CV_WAVE_BLOCKS) return CV_OK;
    c.key = cv_block_key(c.walk->source->frame, &c.ref);
    for (int64_t tag = 0; tag < c.n_blocks; tag++)
        if (is_missing(&c, tag, &block)) CV_TRY(cv_stage_list_add(list, c.chunk, block, err));
    return CV_OK;
}

cv_status cv_walk_set_stage(cv_walk *w, int threads, int64_t memory, cv_stage *stage,
                            cv_error *err)
{
    const cv_stage_plan plan = {.n_units = w->n_chunks,
                                .bytes = w->bytes,
                                .memory = memory,
                                .threads = threads,
                                .list = cv_walk_list_missing,
                                .context = w};
    w->stage = stage;
    return cv_stage_init(stage, w->source, &plan, err);
}

/* ---- Without a worker ------------------------------------------------------ */

/* False when a block was found nowhere; some of the others may be delivered. */
static bool deliver_chunk(cv_walk_chunk *c)
{
    for (int64_t first = 0; first < c->n_blocks; first += BATCH) {
        found f[BATCH];
        int64_t n = cv_min_i64(BATCH, c->n_blocks - first);
        deliver_found(c, first, n, f);
        for (int64_t i = 0; i < n; i++)
            if (!f[i].bytes && f[i].is_wanted) return false;
    }
    return true;
}

cv_status cv_walk_decoded(const cv_walk *w, int64_t *n_done, cv_error *err)
{
    for (; *n_done < w->n_chunks; (*n_done)++) {
        cv_walk_chunk c;
        CV_TRY(cv_watch_tick(w->source->watch, 0, err));
        CV_TRY(enter(&c, w, *n_done, err));
        if (!deliver_chunk(&c)) return CV_OK;
    }
    return CV_OK;
}

/* ---- The walk ------------------------------------------------------------ */

void cv_walk_init(cv_walk *w, const cv_source *source, cv_request request,
                  const cv_delivery *delivery, void *context)
{
    const cv_grid *grid = &source->snapshot->grid;
    w->source = source;
    w->request = request;
    w->delivery = delivery;
    w->context = context;
    w->cache = source->workers->cache;
    w->n_chunks = grid->n_chunks;
    w->n_blocks = grid->n_blocks;
    w->keep_covered = false;
    w->again = false;
    w->stage = NULL;
    if (request.box) {
        int64_t n_whole;
        w->n_chunks = request.box->n_chunks;
        w->n_blocks = w->n_chunks > 0 ? cv_plan_count_blocks(request.box, &n_whole) : 0;
        w->keep_covered = w->n_chunks > 0 && n_whole < w->n_blocks - n_whole;
    } else if (request.selection) {
        w->n_chunks = request.selection->n_chunks;
        w->n_blocks = cv_min_i64(request.selection->n_blocks, request.selection->n_items);
    }
    w->bytes = w->n_blocks * grid->block_bytes;
}
