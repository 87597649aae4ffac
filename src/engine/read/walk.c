/* Room: engine/read. The walk. A part is a touched chunk or, if there are fewer chunks than
 * threads, a share of its wanted blocks. Parts write disjoint memory, so no lock is taken; all
 * scratch memory belongs to the worker. */
#include "engine/read/walk.h"

#include "base/arith.h"
#include "base/os_file.h"
#include "engine/run/thresholds.h"

#include <string.h>

/* ---- Planning the request -------------------------------------------------- */

static inline void plan_chunk(cv_walk_chunk *c, int64_t k)
{
    const cv_request *r = &c->walk->request;
    if (r->box) {
        cv_plan_chunk(r->box, k, &c->at.box);
        c->chunk = c->at.box.chunk;
        c->n_blocks = c->at.box.n_blocks;
    } else if (r->selection) {
        r->selection->ops->chunk(r->selection, k, &c->at.selection);
        c->chunk = c->at.selection.chunk;
        c->n_blocks = c->at.selection.n_blocks;
    } else {
        c->chunk = k;
        c->n_blocks = c->walk->source->snapshot->grid.n_blocks;
    }
}

/* Returns false if no item of the block is wanted. For other requests than boxes, sets only `block`
 * and `covers`. */
static inline bool plan_block(const cv_walk_chunk *c, int64_t tag, cv_block_job *out)
{
    const cv_request *r = &c->walk->request;
    if (r->box) {
        cv_plan_block(r->box, &c->at.box, tag, out);
        return true;
    }
    cv_select_block block = {.block = tag, .wanted = true, .covers = true};
    if (r->selection) r->selection->ops->block(r->selection, &c->at.selection, tag, &block);
    out->block = block.block;
    out->covers = block.covers;
    return block.wanted;
}

static inline const cv_block_job *block_of(cv_walk_chunk *c, int64_t tag)
{
    if (c->tag != tag) (void)plan_block(c, tag, &c->block);
    c->tag = tag;
    return &c->block;
}

void cv_block_key(const cv_frame *frame, const cv_chunk_ref *ref, cv_cache_key *out)
{
    out->frame = frame->id;
    out->object = ref->object;
    out->pos = ref->pos;
    out->generation = cv_layout_generation(frame->layouts, ref->object, ref->pos);
    out->block = 0;
}

/* ---- Rotated blocks ---------------------------------------------------------
 *
 * A read that is one item thick along the last axis uses one item of each line of a block. These
 * items are contiguous in a rotated block, whose last axis comes first. Such a read caches blocks
 * rotated, because the next read likely wants the neighbouring items.
 *
 *   a block of 2 x 3:  a0 a1 a2 b0 b1 b2      rotated:  a0 b0 a1 b1 a2 b2 */

static int64_t rows_of(const cv_grid *grid)
{
    return grid->block_bytes / grid->item_size / grid->block_shape[grid->ndim - 1];
}

/* Returns whether a rotated block serves a read of this part better. */
static bool rotated_is_better(const cv_grid *grid, const cv_block_job *block)
{
    enum {
        SHORT = 8,
        FEW = 128
    }; /* beyond these limits, rotating costs more than it saves */
    if (grid->ndim < 2) return false;
    int last = grid->ndim - 1;
    if (block->shape[last] != 1 || grid->block_shape[last] < SHORT) return false;
    int64_t n = 1;
    for (int d = 0; d < last; d++) n *= block->shape[d];
    return n >= FEW && 2 * n >= rows_of(grid);
}

static void rotate_strides(const cv_grid *grid, int64_t strides[CV_MAX_DIMS])
{
    int last = grid->ndim - 1;
    for (int d = 0; d < last; d++)
        strides[d] = grid->item_strides[d] / grid->block_shape[last];
    strides[last] = rows_of(grid) * grid->item_size;
}

/* Converts a byte position in a block to the position in the rotated block. */
static int64_t rotated_pos(const cv_grid *grid, int64_t pos)
{
    int64_t item = pos / grid->item_size, length = grid->block_shape[grid->ndim - 1];
    return (item % length * rows_of(grid) + item / length) * grid->item_size;
}

static void copy_block(const cv_grid *grid, const uint8_t *src, const int64_t *src_strides,
                       uint8_t *dst, const int64_t *dst_strides)
{
    int64_t shape[CV_MAX_DIMS];
    for (int d = 0; d < grid->ndim; d++) shape[d] = grid->block_shape[d];
    cv_copy_box(grid->ndim, shape, grid->item_size, (cv_strided){(uint8_t *)src, src_strides},
                (cv_strided){dst, dst_strides});
}

static void rotate(const cv_grid *grid, const uint8_t *block, uint8_t *rotated)
{
    int64_t strides[CV_MAX_DIMS];
    rotate_strides(grid, strides);
    copy_block(grid, block, grid->item_strides, rotated, strides);
}

static void rotate_back(const cv_grid *grid, const uint8_t *rotated, uint8_t *block)
{
    int64_t strides[CV_MAX_DIMS];
    rotate_strides(grid, strides);
    copy_block(grid, rotated, strides, block, grid->item_strides);
}

/* ---- Decoded blocks ----------------------------------------------------------
 *
 * Decides where a block is decoded to, whether the cache keeps it, and whether it is rotated. */

static cv_cached *reserve(cv_walk_chunk *c, const cv_block_job *block)
{
    const cv_walk *w = c->walk;
    const cv_grid *grid = &w->source->snapshot->grid;
    cv_cache_entrant entrant = {.size = (size_t)grid->block_bytes,
                                .request_bytes = c->fits ? 0 : w->bytes,
                                .ahead = w->delivery->only_missing};
    c->key.block = (int32_t)block->block;
    if (block->covers && !w->keep_covered && !c->stays && !entrant.ahead) return NULL;
    cv_cached *room = cv_cache_reserve(w->cache, &c->key, &entrant);
    c->is_full = !room;
    if (room && !entrant.ahead && w->request.box)
        (void)cv_sweep_note(&room->sweep, grid, block);
    return room;
}

/* Returns whether the block will be cached rotated: then it is decoded to scratch memory first. */
static bool is_kept_rotated(const cv_walk_chunk *c, const cv_block_job *block)
{
    return c->walk->request.box && rotated_is_better(&c->walk->source->snapshot->grid, block);
}

static uint8_t *find_room(void *context, int64_t tag)
{
    cv_walk_chunk *c = context;
    const cv_block_job *block = block_of(c, tag);
    if (is_kept_rotated(c, block)) return NULL;
    c->room = reserve(c, block);
    if (!c->room) return NULL;
    enum { MOST_WARMED = 256 * 1024 }; /* more would not stay in the processor cache */
    size_t size = (size_t)c->walk->source->snapshot->grid.block_bytes;
    if (size <= MOST_WARMED) cv_warm_to_write(c->room->bytes, size);
    return c->room->bytes;
}

static void settle_room(void *context, bool good)
{
    cv_walk_chunk *c = context;
    cv_cache_settle(c->walk->cache, c->room, good);
}

static void take_fresh(void *context, int64_t tag, const uint8_t *decoded)
{
    cv_walk_chunk *c = context;
    if (c->walk->delivery->take) c->walk->delivery->take(c, tag, decoded);
    const cv_block_job *block = block_of(c, tag);
    if (!is_kept_rotated(c, block)) return;
    cv_cached *room = reserve(c, block);
    if (!room) return;
    rotate(&c->walk->source->snapshot->grid, decoded, room->bytes);
    room->is_rotated = true;
    cv_cache_settle(c->walk->cache, room, true);
}

/* A block that is cached rotated must be unshuffled completely first. */
static bool unshuffles(void *context, int64_t tag)
{
    cv_walk_chunk *c = context;
    return !is_kept_rotated(c, block_of(c, tag)) && c->walk->delivery->unshuffles(c, tag);
}

static void fill_nothing(void *context, int64_t tag, const uint8_t *item)
{
    (void)context;
    (void)tag;
    (void)item;
}

/* Sets worker and sink. If the walk keeps no blocks, the sink calls the delivery directly. */
static void staff(cv_walk_chunk *c, cv_worker *worker)
{
    const cv_walk *w = c->walk;
    const cv_delivery *d = w->delivery;
    const cv_grid *grid = &w->source->snapshot->grid;
    bool keeps = w->cache && !w->source->scan;
    c->worker = worker;
    worker->watch = w->source->watch;
    c->fits =
        keeps && (w->request.box || w->request.selection) && cv_cache_fits(w->cache, grid);
    c->stays = c->fits && !d->once && (w->again || w->n_blocks < grid->n_all_blocks);
    c->sink = (cv_block_sink){.place = c->stays ? NULL : d->place,
                              .take = keeps || !d->take ? take_fresh : d->take,
                              .fill = d->fill ? d->fill : fill_nothing,
                              .context = c,
                              .room = keeps ? find_room : NULL,
                              .settle = settle_room,
                              .unshuffles = d->unshuffles ? unshuffles : NULL,
                              .take_shuffled = d->take_shuffled,
                              .in_order = d->in_order};
}

/* ---- Blocks that are dirty or cached -------------------------------------
 *
 * A read of one cached point costs 2,000 instructions in all, a function call about 1 % of that.
 * So small functions are inline. */

/* Blocks looked up in the cache together. */
enum { BATCH = 8 };

typedef struct found {
    cv_block_job block;
    bool is_wanted;
    bool is_rotated;
    const uint8_t *bytes; /* the block; NULL: neither dirty nor cached */
    cv_strided items;     /* the wanted items, for take_items */
    int64_t rotated_strides[CV_MAX_DIMS];
    cv_cached *cached; /* pinned; NULL: not in the cache */
} found;

/* Finds and prefetches the wanted items, which arrive while other blocks are looked up. */
static inline void find_items(const cv_grid *grid, found *f)
{
    /* plan_block has set block_pos */
    int64_t pos = f->block.block_pos;
    f->items.strides = grid->item_strides;
    if (f->is_rotated) {
        rotate_strides(grid, f->rotated_strides);
        f->items.strides = f->rotated_strides;
        pos = rotated_pos(grid, pos);
    }
    f->items.data = (uint8_t *)f->bytes + pos;
    if (f->cached) cv_warm_box(grid->ndim, f->block.shape, grid->item_size, f->items);
}

/* Returns whether the found block can be delivered. Rotating a block back needs scratch memory, but
 * a delivery that takes items in place does not rotate it back. */
static bool can_take(const cv_walk_chunk *c, const found *f)
{
    if (!f->is_rotated || c->walk->delivery->take_items) return true;
    if (!c->worker) return false;
    size_t size = (size_t)c->walk->source->snapshot->grid.block_bytes;
    return cv_buffer_resize(&c->worker->block, size, NULL) == CV_OK;
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
    f->is_rotated = f->cached->is_rotated;
    f->bytes = f->cached->bytes;
    if (can_take(c, f)) return;
    cv_cache_release(w->cache, f->cached, NULL, NULL);
    f->cached = NULL;
    f->bytes = NULL;
}

static inline void look_for(cv_walk_chunk *c, int64_t tag, found *f)
{
    const cv_walk *w = c->walk;
    f->cached = NULL;
    f->bytes = NULL;
    f->is_rotated = false;
    f->is_wanted = plan_block(c, tag, &f->block);
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
    rotate_back(&c->walk->source->snapshot->grid, f->bytes, block);
    if (!place) d->take(c, tag, block);
}

static inline void release(const cv_walk_chunk *c, const found *f)
{
    const cv_walk *w = c->walk;
    if (f->cached)
        cv_cache_release(w->cache, f->cached, &w->source->snapshot->grid,
                         w->request.box ? &f->block : NULL);
}

/* Looks up blocks [first, first + n), n <= BATCH, and delivers those found. Lookup and release have
 * atomic operations that wait for earlier writes. So first all blocks are looked up, then all are
 * copied, then all are released. */
static inline void deliver_found(cv_walk_chunk *c, int64_t first, int64_t n, found *f)
{
    for (int64_t i = 0; i < n; i++) look_for(c, first + i, &f[i]);
    for (int64_t i = 0; i < n; i++) hand_over(c, first + i, &f[i]);
    for (int64_t i = 0; i < n; i++) release(c, &f[i]);
}

/* ---- Blocks that must be decoded ----------------------------------------- */

static cv_block_list take_wanted(cv_walk_chunk *c)
{
    const cv_block_list list = {.wanted = c->worker->wanted, .n = c->n_wanted};
    c->n_wanted = 0;
    return list;
}

static void add_wanted(cv_walk_chunk *c, int64_t tag, const found *f)
{
    if (f->bytes || !f->is_wanted) return;
    c->tag = tag;
    c->block = f->block; /* a single block need not be planned again */
    c->worker->wanted[c->n_wanted++] = (cv_wanted){.block = f->block.block, .tag = tag};
}

/* In-order delivery: decodes missing blocks before it delivers a later block that is found. */
static cv_status deliver_in_order(cv_walk_chunk *c, int64_t first, int64_t n, cv_error *err)
{
    const cv_source *s = c->walk->source;
    cv_status status = CV_OK;
    found f[BATCH];
    for (int64_t i = 0; i < n; i++) look_for(c, first + i, &f[i]);
    for (int64_t i = 0; i < n; i++) {
        add_wanted(c, first + i, &f[i]);
        if (f[i].bytes && status == CV_OK) {
            const cv_block_list list = take_wanted(c);
            status = cv_decode_blocks(s->frame, s->snapshot, &c->ref, c->worker, &list,
                                      &c->sink, err);
        }
        if (status == CV_OK) hand_over(c, first + i, &f[i]);
        release(c, &f[i]);
    }
    return status;
}

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
    plan_chunk(c, k);
    c->dirty = s->pending ? cv_pending_find(s->pending, c->chunk) : NULL;
}

static inline cv_status enter(cv_walk_chunk *c, const cv_walk *w, int64_t k, cv_error *err)
{
    const cv_source *s = w->source;
    aim(c, w, k);
    CV_TRY(cv_source_find(s, c->chunk, &c->ref, err));
    if (w->cache) cv_block_key(s->frame, &c->ref, &c->key);
    cv_layout_warm(s->frame->store, s->snapshot, &c->ref);
    return CV_OK;
}

cv_status cv_walk_enter(cv_walk_chunk *c, const cv_walk *w, int64_t k, cv_worker *worker,
                        cv_error *err)
{
    CV_TRY(enter(c, w, k, err));
    staff(c, worker);
    return CV_OK;
}

static cv_status check_delivered(const cv_walk_chunk *c, cv_error *err)
{
    if (!c->failed) return CV_OK;
    size_t size = (size_t)c->walk->source->snapshot->grid.block_bytes;
    return cv_fail_memory(err, size, "a block");
}

cv_status cv_walk_blocks(cv_walk_chunk *c, int64_t first, int64_t last, cv_error *err)
{
    const cv_source *s = c->walk->source;
    int64_t step = last - first;
    if (step > CV_BLOCKS_AT_ONCE)
        CV_TRY(
            cv_blocks_at_once(s->frame, s->snapshot, &c->ref, c->worker, step, &step, err));
    for (; first < last; first += step) {
        CV_TRY(find_list(c, first, cv_min_i64(first + step, last), err));
        const cv_block_list list = take_wanted(c);
        CV_TRY(cv_decode_blocks(s->frame, s->snapshot, &c->ref, c->worker, &list, &c->sink,
                                err));
    }
    return check_delivered(c, err);
}

cv_status cv_walk_find(const cv_walk *w, int64_t k, int64_t room, cv_worker *worker,
                       cv_walk_chunk *c, cv_error *err)
{
    CV_TRY(cv_walk_enter(c, w, k, worker, err));
    CV_TRY(cv_watch_tick(w->source->watch, 0, err));
    if (c->n_blocks > room) return CV_OK;
    if (c->n_blocks > CV_WAVE_BLOCKS || c->ref.kind != CV_REF_STORED)
        return cv_walk_blocks(c, 0, c->n_blocks, err);
    return find_list(c, 0, c->n_blocks, err);
}

cv_status cv_walk_decode(const cv_walk *w, int64_t k, const cv_chunk_ref *ref,
                         const cv_block_list *list, cv_worker *worker, cv_error *err)
{
    const cv_source *s = w->source;
    cv_walk_chunk c;
    aim(&c, w, k);
    c.ref = *ref;
    if (w->cache) cv_block_key(s->frame, ref, &c.key);
    staff(&c, worker);
    CV_TRY(cv_decode_blocks(s->frame, s->snapshot, ref, worker, list, &c.sink, err));
    return check_delivered(&c, err);
}

/* If the chunk repeats one item, the first share delivers the whole chunk with one call. */
static cv_status fill_whole(cv_walk_chunk *c, bool is_first, bool *done, cv_error *err)
{
    const cv_source *s = c->walk->source;
    const uint8_t *item;
    CV_TRY(cv_blocks_are_same(s->frame, s->snapshot, &c->ref, c->worker, done, &item, err));
    if (*done && is_first) c->walk->delivery->fill_chunk(c, item);
    return CV_OK;
}

cv_status cv_walk_part(void *walk, int64_t part, cv_worker *worker, cv_error *err)
{
    const cv_walk *w = walk;
    int64_t k = w->first_chunk + part / w->n_shares, share = part % w->n_shares;
    cv_walk_chunk c;
    bool done = false;
    CV_TRY(cv_stage_enter(w->stage, k, worker, err));
    cv_status status = cv_walk_enter(&c, w, k, worker, err);
    if (status == CV_OK && w->delivery->asks_first && !c.dirty)
        status = fill_whole(&c, share == 0, &done, err);
    if (status == CV_OK && !done) {
        int64_t first = c.n_blocks * share / w->n_shares;
        int64_t last = c.n_blocks * (share + 1) / w->n_shares;
        status = cv_walk_blocks(&c, first, last, err);
    }
    cv_stage_leave(w->stage, k, worker);
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
    const cv_block_list list = take_wanted(&c);
    return cv_decode_blocks(w->source->frame, w->source->snapshot, &c.ref, worker, &list,
                            &c.sink, err);
}

/* ---- Listing missing blocks -------------------------------------------------- */

static bool is_missing(cv_walk_chunk *c, int64_t tag, int64_t *block)
{
    cv_block_job job;
    if (!plan_block(c, tag, &job)) return false;
    *block = job.block;
    c->key.block = (int32_t)job.block;
    if (c->dirty && c->dirty->blocks[job.block]) return false;
    return !c->walk->cache || !cv_cache_holds(c->walk->cache, &c->key);
}

/* Does not list chunks that have more blocks than a wave. */
cv_status cv_walk_list_missing(void *walk, int64_t k, cv_worker *worker, cv_stage_list *list,
                               cv_error *err)
{
    cv_walk_chunk c;
    int64_t block;
    (void)worker;
    aim(&c, walk, k);
    CV_TRY(cv_source_find(c.walk->source, c.chunk, &c.ref, err));
    if (c.ref.kind != CV_REF_STORED || c.n_blocks > CV_WAVE_BLOCKS) return CV_OK;
    cv_block_key(c.walk->source->frame, &c.ref, &c.key);
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

/* Returns false if a block was neither dirty nor cached. Other blocks may have been delivered. */
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

cv_status cv_walk_decoded(cv_walk *w, cv_error *err)
{
    for (; w->first_chunk < w->n_chunks; w->first_chunk++) {
        cv_walk_chunk c;
        CV_TRY(cv_watch_tick(w->source->watch, 0, err));
        CV_TRY(enter(&c, w, w->first_chunk, err));
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
    w->first_chunk = 0;
    w->n_shares = 1;
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

/* ---- Places: whole blocks, decoded at their destination --------------------- */

static const cv_grid *grid_of(const cv_walk_chunk *c)
{
    return &c->walk->source->snapshot->grid;
}

static uint8_t *place_block(void *chunk, int64_t tag)
{
    const cv_walk_chunk *c = chunk;
    const cv_places *p = c->context;
    return p->chunk ? p->chunk + tag * grid_of(c)->block_bytes : p->blocks[tag];
}

static void take_block(void *chunk, int64_t tag, const uint8_t *block)
{
    memcpy(place_block(chunk, tag), block, (size_t)grid_of(chunk)->block_bytes);
}

static void fill_block(void *chunk, int64_t tag, const uint8_t *item)
{
    int64_t size = grid_of(chunk)->item_size;
    int64_t n_items = grid_of(chunk)->block_bytes / size;
    cv_fill_box(1, &n_items, size, item, (cv_strided){place_block(chunk, tag), &size});
}

const cv_delivery cv_to_places = {
    .place = place_block, .take = take_block, .fill = fill_block};

cv_status cv_chunk_fill(const cv_source *source, int64_t chunk, uint8_t *dst,
                        cv_worker *worker, cv_error *err)
{
    cv_places places = {.chunk = dst};
    cv_walk walk;
    cv_walk_init(&walk, source, (cv_request){NULL, NULL}, &cv_to_places, &places);
    return cv_walk_part(&walk, chunk, worker, err);
}
