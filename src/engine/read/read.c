/* Room: engine/read. The walk of a read: selection -> plan -> jobs -> decode -> copy.
 *
 * Blocks in the cache are copied out by the calling thread as long as it finds
 * all it wants; from the first chunk on of which it does not, chunks are jobs.
 *
 * A job is a part of a touched chunk: all its wanted blocks, or a share of them
 * when there are fewer chunks than threads. Jobs write disjoint parts of the
 * destination, so no lock is taken; all scratch belongs to the worker. */
#include "engine/read/read.h"

#include "base/arith.h"
#include "engine/cache/rotated.h"
#include "engine/items/copy.h"
#include "engine/read/blocks.h"
#include "engine/run/thresholds.h"
#include "frame/index_read.h"

#include <string.h>

/* Blocks that are looked for in the cache together. */
enum { BATCH = 8 };

/* Of a read around damage. */
typedef struct skip_task {
    const uint8_t *fill;
    cv_damage_sink sink;
    cv_mutex lock; /* one call of the sink at a time */
} skip_task;

typedef struct read_task {
    const cv_source *source;
    const cv_plan *plan;
    cv_cache *cache; /* NULL: none */
    uint8_t *dst;
    bool straight;       /* whole blocks can be decoded into dst */
    bool keep_whole;     /* they may enter the cache, too */
    int64_t first_chunk; /* those before it are done */
    int64_t n_parts;     /* of each chunk */
    int64_t bytes;       /* of all touched blocks, decoded */
    skip_task *skip;     /* NULL: damage ends the read */
} read_task;

cv_status cv_source_find(const cv_source *source, int64_t chunk, cv_chunk_ref *out,
                         cv_error *err)
{
    if (source->pending) return cv_pending_where(source->pending, chunk, out, err);
    return cv_snapshot_find(source->snapshot, source->frame->store, chunk, out, err);
}

/* ---- Delivering blocks -------------------------------------------------- */

/* The chunk being read; `block` is the job of the tag last asked for. */
typedef struct delivery {
    const read_task *task;
    cv_chunk_job chunk;
    cv_chunk_ref ref;
    cv_cache_key key;            /* where the chunk is stored */
    const cv_dirty_chunk *dirty; /* or NULL */
    cv_block_job block;
    int64_t tag;
    cv_cached *room; /* in the cache, for the block being decoded; not in it yet */
} delivery;

static cv_status begin_chunk(delivery *d, const read_task *task, int64_t k, cv_error *err)
{
    const cv_source *source = task->source;
    d->task = task;
    d->tag = -1;
    d->room = NULL;
    cv_plan_chunk(task->plan, k, &d->chunk);
    d->dirty = source->pending ? cv_pending_find(source->pending, d->chunk.chunk) : NULL;
    CV_TRY(cv_source_find(source, d->chunk.chunk, &d->ref, err));
    if (task->cache) d->key = cv_block_key(source->frame, &d->ref);
    cv_layout_warm(source->frame->store, source->snapshot, &d->ref);
    return CV_OK;
}

static const cv_block_job *block_of(delivery *d, int64_t tag)
{
    if (d->tag != tag) cv_plan_block(d->task->plan, &d->chunk, tag, &d->block);
    d->tag = tag;
    return &d->block;
}

static uint8_t *place_block(void *context, int64_t tag)
{
    delivery *d = context;
    if (!d->task->straight) return NULL;
    const cv_block_job *block = block_of(d, tag);
    return block->whole ? d->task->dst + block->buffer_pos : NULL;
}

static void take_block(void *context, int64_t tag, const uint8_t *decoded)
{
    delivery *d = context;
    const cv_block_job *block = block_of(d, tag);
    const cv_plan *plan = d->task->plan;
    const cv_grid *grid = plan->grid;
    cv_strided src = {(uint8_t *)decoded + block->block_pos, grid->item_strides};
    cv_strided dst = {d->task->dst + block->buffer_pos, plan->buffer_strides};
    cv_copy_box(grid->ndim, block->shape, grid->item_size, src, dst);
}

static void fill_block(void *context, int64_t tag, const uint8_t *item)
{
    delivery *d = context;
    const cv_block_job *block = block_of(d, tag);
    const cv_plan *plan = d->task->plan;
    cv_strided dst = {d->task->dst + block->buffer_pos, plan->buffer_strides};
    cv_fill_box(plan->grid->ndim, block->shape, plan->grid->item_size, item, dst);
}

/* A scan wants blocks whole and once: they are not kept. But a box of which most
 * blocks are cut by its faces may be on a walk, and its inside be wanted again. */
static cv_cached *reserve_room(delivery *d, const cv_block_job *block)
{
    const read_task *task = d->task;
    if (!task->cache || task->source->scan) return NULL;
    if (block->whole && !task->keep_whole) return NULL;
    d->key.block = (int32_t)block->block;
    if (!cv_cache_admits(task->cache, &d->key, task->bytes)) return NULL;
    const cv_grid *grid = task->plan->grid;
    cv_cached *room = cv_cache_reserve(task->cache, &d->key, (size_t)grid->block_bytes);
    if (room) cv_sweep_note(cv_cached_sweep(room), grid, block);
    return room;
}

/* What is kept rotated is decoded to scratch first. */
static uint8_t *find_room(void *context, int64_t tag)
{
    delivery *d = context;
    const cv_block_job *block = block_of(d, tag);
    if (cv_rotated_is_better(d->task->plan->grid, block)) return NULL;
    d->room = reserve_room(d, block);
    if (!d->room) return NULL;
    uint8_t *room = cv_cached_room(d->room);
    cv_warm_to_write(room, (size_t)d->task->plan->grid->block_bytes);
    return room;
}

/* A block that was decoded just now. */
static void take_fresh(void *context, int64_t tag, const uint8_t *decoded)
{
    delivery *d = context;
    take_block(d, tag, decoded);
    const cv_grid *grid = d->task->plan->grid;
    const cv_block_job *block = block_of(d, tag);
    if (!cv_rotated_is_better(grid, block)) return;
    cv_cached *room = reserve_room(d, block);
    if (!room) return;
    cv_rotate(grid, decoded, cv_cached_room(room));
    cv_cached_mark_rotated(room);
    cv_cache_settle(d->task->cache, room, true);
}

static void settle_room(void *context, bool good)
{
    delivery *d = context;
    cv_cache_settle(d->task->cache, d->room, good);
}

/* What is kept rotated is wanted whole first. */
static bool unshuffles(void *context, int64_t tag)
{
    delivery *d = context;
    const cv_block_job *block = block_of(d, tag);
    const cv_grid *grid = d->task->plan->grid;
    return !cv_rotated_is_better(grid, block) &&
           cv_unshuffling_is_cheaper(grid->ndim, block->shape, grid->item_size,
                                     grid->block_bytes);
}

static void take_shuffled(void *context, int64_t tag, const uint8_t *shuffled)
{
    delivery *d = context;
    const cv_block_job *block = block_of(d, tag);
    const cv_plan *plan = d->task->plan;
    const cv_grid *grid = plan->grid;
    cv_shuffled src = {shuffled, block->block_pos, grid->block_bytes, grid->item_strides};
    cv_strided dst = {d->task->dst + block->buffer_pos, plan->buffer_strides};
    cv_unshuffle_box(grid->ndim, block->shape, grid->item_size, src, dst);
}

/* ---- Blocks that are there decoded -------------------------------------- */

/* A wanted block that was looked for, and where it is decoded. */
typedef struct found {
    cv_block_job block;
    cv_strided items; /* `data` NULL: nowhere */
    int64_t rotated_strides[CV_MAX_DIMS];
    cv_cached *cached; /* held; NULL: not in the cache */
} found;

/* Dirty, or in the cache. Its items are asked for: they arrive while others are
 * looked for. */
static void look_for(delivery *d, int64_t tag, found *out)
{
    const read_task *task = d->task;
    const cv_grid *grid = task->plan->grid;
    cv_plan_block(task->plan, &d->chunk, tag, &out->block);
    out->cached = NULL;
    out->items = (cv_strided){NULL, grid->item_strides};
    if (d->dirty && d->dirty->blocks[out->block.block]) {
        out->items.data = d->dirty->blocks[out->block.block] + out->block.block_pos;
        return;
    }
    if (!task->cache || d->ref.kind != CV_REF_STORED) return;
    d->key.block = (int32_t)out->block.block;
    out->cached = cv_cache_find(task->cache, &d->key);
    if (!out->cached) return;
    int64_t pos = out->block.block_pos;
    if (cv_cached_is_rotated(out->cached)) {
        cv_rotated_strides(grid, out->rotated_strides);
        out->items.strides = out->rotated_strides;
        pos = cv_rotated_pos(grid, pos);
    }
    out->items.data = (uint8_t *)cv_cached_bytes(out->cached) + pos;
    cv_warm_box(grid->ndim, out->block.shape, grid->item_size, out->items);
}

static void copy_found(const delivery *d, const found *f)
{
    const cv_plan *plan = d->task->plan;
    cv_strided dst = {d->task->dst + f->block.buffer_pos, plan->buffer_strides};
    if (f->items.data)
        cv_copy_box(plan->grid->ndim, f->block.shape, plan->grid->item_size, f->items, dst);
}

static void release_found(const delivery *d, const found *f)
{
    if (!f->cached) return;
    cv_step step = cv_sweep_note(cv_cached_sweep(f->cached), d->task->plan->grid, &f->block);
    if (step == CV_STEP_BACK)
        cv_cache_release(f->cached);
    else
        cv_cache_release_passed(d->task->cache, f->cached, step == CV_STEP_LAST);
}

/* Looks for blocks [first, first + n) of the chunk, n up to BATCH, and delivers those
 * that are there. Finding and releasing wait for all that was written before: so
 * first all are found, then all copied, then all released. */
static void deliver_decoded(delivery *d, int64_t first, int64_t n, found *f)
{
    for (int64_t i = 0; i < n; i++) look_for(d, first + i, &f[i]);
    for (int64_t i = 0; i < n; i++) copy_found(d, &f[i]);
    for (int64_t i = 0; i < n; i++) release_found(d, &f[i]);
}

/* ---- Jobs --------------------------------------------------------------- */

/* Delivers those of blocks [first, last) that are there decoded, and lists the others. */
static cv_status list_blocks(delivery *d, int64_t first, int64_t last, cv_worker *worker,
                             int64_t *n, cv_error *err)
{
    CV_TRY(cv_worker_wanted(worker, last - first, err));
    *n = 0;
    for (; first < last; first += BATCH) {
        found f[BATCH];
        int64_t n_looked = cv_min_i64(BATCH, last - first);
        deliver_decoded(d, first, n_looked, f);
        for (int64_t i = 0; i < n_looked; i++) {
            if (f[i].items.data) continue;
            d->tag = first + i;
            d->block = f[i].block; /* of a single one it need not be planned again */
            worker->wanted[(*n)++] = (cv_wanted){.block = d->block.block, .tag = d->tag};
        }
    }
    return CV_OK;
}

static cv_status read_chunk_part(const read_task *task, int64_t job, delivery *d,
                                 cv_worker *worker, cv_error *err)
{
    const cv_source *s = task->source;
    int64_t part = job % task->n_parts, n, step;
    worker->watch = s->watch;
    CV_TRY(begin_chunk(d, task, task->first_chunk + job / task->n_parts, err));
    int64_t first = d->chunk.n_blocks * part / task->n_parts;
    int64_t last = d->chunk.n_blocks * (part + 1) / task->n_parts;
    CV_TRY(
        cv_blocks_at_once(s->frame, s->snapshot, &d->ref, worker, last - first, &step, err));
    cv_block_sink sink = {.place = place_block,
                          .take = take_fresh,
                          .fill = fill_block,
                          .context = d,
                          .room = find_room,
                          .settle = settle_room,
                          .unshuffles = unshuffles,
                          .take_shuffled = take_shuffled};
    for (; first < last; first += step) {
        CV_TRY(list_blocks(d, first, cv_min_i64(first + step, last), worker, &n, err));
        if (n == 0) continue;
        CV_TRY(cv_decode_blocks(s->frame, s->snapshot, &d->ref, worker, n, &sink, err));
    }
    return CV_OK;
}

static cv_status read_part(void *context, int64_t job, cv_worker *worker, cv_error *err)
{
    delivery d;
    return read_chunk_part(context, job, &d, worker, err);
}

/* The same for a chunk that may be damaged: then what the box wants of it, also
 * what was read already, is the fill. */
static cv_status read_or_skip(void *context, int64_t job, cv_worker *worker, cv_error *err)
{
    const read_task *task = context;
    const cv_grid *grid = task->plan->grid;
    delivery d;
    cv_error error = {0};
    cv_status status = read_chunk_part(task, job, &d, worker, &error);
    if (status == CV_OK) return CV_OK;
    if (!cv_is_damage(status, &error)) {
        if (err) *err = error;
        return status;
    }
    int64_t shape[CV_MAX_DIMS];
    for (int i = 0; i < grid->ndim; i++) shape[i] = d.chunk.hi[i] - d.chunk.lo[i];
    cv_strided dst = {task->dst + d.chunk.buffer_pos, task->plan->buffer_strides};
    cv_fill_box(grid->ndim, shape, grid->item_size, task->skip->fill, dst);
    cv_mutex_lock(&task->skip->lock);
    cv_damage_tell(&task->skip->sink, grid, d.chunk.chunk, &error);
    cv_mutex_unlock(&task->skip->lock);
    return CV_OK;
}

/* False when a block was found nowhere; some of the others may be delivered. */
static bool deliver_chunk(delivery *d)
{
    for (int64_t first = 0; first < d->chunk.n_blocks; first += BATCH) {
        found f[BATCH];
        int64_t n = cv_min_i64(BATCH, d->chunk.n_blocks - first);
        deliver_decoded(d, first, n, f);
        for (int64_t i = 0; i < n; i++)
            if (!f[i].items.data) return false;
    }
    return true;
}

/* Reads leading chunks whose blocks are all there decoded; counts them in
 * task->first_chunk. */
static cv_status read_decoded(read_task *task, cv_error *err)
{
    for (; task->first_chunk < task->plan->n_chunks; task->first_chunk++) {
        delivery d;
        CV_TRY(cv_watch_tick(task->source->watch, 0, err));
        CV_TRY(begin_chunk(&d, task, task->first_chunk, err));
        if (!deliver_chunk(&d)) return CV_OK;
    }
    return CV_OK;
}

/* ---- The read ----------------------------------------------------------- */

static cv_status read_box(read_task *task, cv_error *err)
{
    const cv_source *source = task->source;
    const cv_plan *plan = task->plan;
    if (plan->n_items == 0) return CV_OK;
    int64_t n_whole;
    int64_t n_blocks = cv_plan_count_blocks(plan, &n_whole);
    task->bytes = n_blocks * plan->grid->block_bytes;
    if (source->watch) cv_watch_expect(source->watch, task->bytes);
    task->straight = cv_plan_block_contiguous(plan);
    task->keep_whole = n_whole < n_blocks - n_whole;
    task->cache = source->workers->cache;
    bool may_be_decoded = task->cache && !cv_cache_is_empty(task->cache);
    if (may_be_decoded && !task->skip) CV_TRY(read_decoded(task, err));
    int64_t n_chunks = plan->n_chunks - task->first_chunk;
    if (n_chunks == 0) return CV_OK;

    if (task->first_chunk > 0) /* about so many are left */
        n_blocks = cv_ceil_div(n_blocks, plan->n_chunks) * n_chunks;
    int64_t worth = n_blocks * plan->grid->block_bytes / CV_DECODE_PER_HELPER;
    int helpers = (int)cv_min_i64(cv_min_i64(source->threads - 1, n_blocks - 1), worth);
    if (task->skip) /* a chunk is read or skipped by one thread */
        return cv_workers_run(source->workers, (int)cv_min_i64(helpers, n_chunks - 1),
                              n_chunks, read_or_skip, task, err);
    if (helpers > 0 && cv_codec_blocks_independent(&source->workers->spec)) {
        int64_t parts = cv_ceil_div((helpers + 1) * CV_PARTS_PER_THREAD, n_chunks);
        int64_t least = cv_ceil_div(CV_BYTES_PER_PART, plan->grid->block_bytes); /* blocks */
        task->n_parts = cv_min_i64(parts, cv_ceil_div(n_blocks, n_chunks * least));
    }
    return cv_workers_run(source->workers, helpers, n_chunks * task->n_parts, read_part, task,
                          err);
}

cv_status cv_read_box(const cv_source *source, const cv_plan *plan, void *dst, cv_error *err)
{
    read_task task = {.source = source, .plan = plan, .dst = dst, .n_parts = 1};
    return read_box(&task, err);
}

/* Without an index no chunk can be read, which is not damage of chunks. */
cv_status cv_read_box_skipping(const cv_source *source, const cv_plan *plan, void *dst,
                               const cv_skip *skip, cv_error *err)
{
    const cv_index *index;
    skip_task s = {.sink = skip->sink, .fill = skip->fill};
    read_task task = {.source = source, .plan = plan, .dst = dst, .n_parts = 1, .skip = &s};
    if (!source->pending && plan->n_items > 0)
        CV_TRY(cv_snapshot_index(source->snapshot, source->frame->store, &index, err));
    cv_mutex_init(&s.lock);
    cv_status status = read_box(&task, err);
    cv_mutex_destroy(&s.lock);
    return status;
}
