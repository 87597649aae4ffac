/* Room: engine/read. The walk of a read through a selection: the read of a box with
 * another plan. Each touched block is found dirty or in the cache, or decoded once,
 * into the worker's scratch, and its parts are copied out; jobs write disjoint parts
 * of the destination. */
#include "engine/read/select_read.h"

#include "base/arith.h"
#include "base/heap.h"
#include "engine/cache/rotated.h"
#include "engine/items/copy.h"
#include "engine/read/blocks.h"
#include "engine/run/thresholds.h"

#include <string.h>

typedef struct read_task {
    const cv_source *source;
    const cv_select_plan *plan;
    const cv_conversion *conversion; /* NULL: none */
    uint8_t *dst;
    cv_cache *cache; /* NULL: none */
    int64_t bytes;   /* of all touched blocks, decoded */
    int64_t n_parts; /* of each chunk */
} read_task;

/* ---- Delivering blocks -------------------------------------------------- */

typedef struct delivery {
    const read_task *task;
    const cv_select_chunk *chunk;
    cv_chunk_ref ref;
    cv_cache_key key; /* where the chunk is stored */
    cv_worker *worker;
    const uint8_t *block; /* whose parts are being copied */
    uint8_t *converted;   /* one converted block, or NULL: made when one is decoded */
    uint8_t *item;        /* what repeated items became; NULL: made when there are some */
    cv_cached *room;      /* in the cache, for the block being decoded; not in it yet */
    bool failed;          /* there was no memory for one of these */
} delivery;

static void copy_out(void *context, const cv_part *part)
{
    const delivery *d = context;
    cv_part_copy(part, CV_IN_BLOCK, d->block, d->task->dst);
}

static uint8_t *place_block(void *context, int64_t tag)
{
    (void)context;
    (void)tag;
    return NULL; /* parts are copied out of scratch */
}

/* Memory that a delivery keeps, made at its first need. */
static bool make_room(delivery *d, uint8_t **room, int64_t size)
{
    if (!*room) *room = cv_malloc((size_t)size);
    d->failed = d->failed || !*room;
    return *room != NULL;
}

static void take_block(void *context, int64_t tag, const uint8_t *decoded)
{
    delivery *d = context;
    const cv_select_plan *plan = d->task->plan;
    d->block = decoded;
    if (d->task->conversion) {
        int64_t n = plan->grid->block_bytes / plan->grid->item_size;
        if (!make_room(d, &d->converted, plan->grid->block_bytes)) return;
        cv_convert(d->task->conversion, decoded, d->converted, n);
        d->block = d->converted;
    }
    plan->ops->parts(plan, d->chunk, tag, copy_out, d);
}

static void fill_out(void *context, const cv_part *part)
{
    const delivery *d = context;
    cv_part_fill(part, d->block, d->task->dst);
}

/* A block of one item; NULL: zero bytes. However large, it is not made. */
static void fill_block(void *context, int64_t tag, const uint8_t *item)
{
    delivery *d = context;
    const cv_select_plan *plan = d->task->plan;
    d->block = item;
    if (!item || d->task->conversion) {
        if (!make_room(d, &d->item, plan->grid->item_size)) return;
        d->block = d->item;
        if (item)
            cv_convert(d->task->conversion, item, d->item, 1);
        else /* a zero is one in every type */
            memset(d->item, 0, (size_t)plan->grid->item_size);
    }
    plan->ops->parts(plan, d->chunk, tag, fill_out, d);
}

/* As in read.c: a block wanted whole is not likely to be wanted again. */
static uint8_t *find_room(void *context, int64_t tag)
{
    delivery *d = context;
    const read_task *task = d->task;
    cv_select_block block;
    if (!task->cache || task->source->scan) return NULL;
    task->plan->ops->block(task->plan, d->chunk, tag, &block);
    if (block.covers) return NULL;
    d->key.block = (int32_t)block.block;
    if (!cv_cache_admits(task->cache, &d->key, task->bytes)) return NULL;
    size_t size = (size_t)task->source->snapshot->grid.block_bytes;
    d->room = cv_cache_reserve(task->cache, &d->key, size);
    return d->room ? cv_cached_room(d->room) : NULL;
}

static void settle_room(void *context, bool good)
{
    delivery *d = context;
    cv_cache_settle(d->task->cache, d->room, good);
}

static bool take_cached(delivery *d, int64_t tag, int64_t block)
{
    cv_cache *cache = d->task->cache;
    if (!cache || d->ref.kind != CV_REF_STORED) return false;
    d->key.block = (int32_t)block;
    cv_cached *found = cv_cache_find(cache, &d->key);
    if (!found) return false;
    const uint8_t *bytes = cv_cached_bytes(found);
    if (cv_cached_is_rotated(found)) {
        if (cv_worker_block(d->task->source->workers, d->worker, true, NULL) != CV_OK) {
            cv_cache_release(found);
            return false;
        }
        uint8_t *scratch = d->worker->block.data;
        cv_rotate_back(&d->task->source->snapshot->grid, bytes, scratch);
        bytes = scratch;
    }
    take_block(d, tag, bytes);
    cv_cache_release(found);
    return true;
}

/* ---- Jobs --------------------------------------------------------------- */

/* Delivers those of blocks [first, last) that are there decoded, and lists the others. */
static cv_status list_blocks(delivery *d, int64_t first, int64_t last, int64_t *n,
                             cv_error *err)
{
    const read_task *task = d->task;
    const cv_select_plan *plan = task->plan;
    cv_pending *pending = task->source->pending;
    const cv_dirty_chunk *dirty = pending ? cv_pending_find(pending, d->chunk->chunk) : NULL;

    CV_TRY(cv_worker_wanted(d->worker, last - first, err));
    *n = 0;
    for (int64_t j = first; j < last; j++) {
        cv_select_block block;
        plan->ops->block(plan, d->chunk, j, &block);
        if (!block.wanted) continue;
        if (dirty && dirty->blocks[block.block])
            take_block(d, j, dirty->blocks[block.block]);
        else if (!take_cached(d, j, block.block))
            d->worker->wanted[(*n)++] = (cv_wanted){.block = block.block, .tag = j};
    }
    return CV_OK;
}

static cv_status decode_share(delivery *d, int64_t share, cv_error *err)
{
    const cv_source *s = d->task->source;
    int64_t n, step;
    int64_t first = d->chunk->n_blocks * share / d->task->n_parts;
    int64_t last = d->chunk->n_blocks * (share + 1) / d->task->n_parts;
    CV_TRY(cv_source_find(s, d->chunk->chunk, &d->ref, err));
    if (d->task->cache) d->key = cv_block_key(s->frame, &d->ref);
    CV_TRY(cv_blocks_at_once(s->frame, s->snapshot, &d->ref, d->worker, last - first, &step,
                             err));
    cv_block_sink sink = {.place = place_block,
                          .take = take_block,
                          .fill = fill_block,
                          .context = d,
                          .room = find_room,
                          .settle = settle_room};
    for (; first < last; first += step) {
        CV_TRY(list_blocks(d, first, cv_min_i64(first + step, last), &n, err));
        if (n == 0) continue;
        CV_TRY(cv_decode_blocks(s->frame, s->snapshot, &d->ref, d->worker, n, &sink, err));
    }
    return CV_OK;
}

static cv_status read_share(void *context, int64_t job, cv_worker *worker, cv_error *err)
{
    const read_task *task = context;
    cv_select_chunk chunk;
    task->plan->ops->chunk(task->plan, job / task->n_parts, &chunk);
    delivery d = {.task = task, .chunk = &chunk, .worker = worker};
    worker->watch = task->source->watch;
    cv_status status = decode_share(&d, job % task->n_parts, err);
    if (status == CV_OK && d.failed)
        status = cv_fail_memory(err, (size_t)task->plan->grid->block_bytes, "a block");
    cv_free(d.converted);
    cv_free(d.item);
    return status;
}

cv_status cv_select_read(const cv_source *source, const cv_select_plan *plan,
                         const cv_conversion *conversion, uint8_t *dst, cv_error *err)
{
    int64_t n_blocks = cv_min_i64(plan->n_blocks, plan->n_items);
    int64_t worth = n_blocks * plan->grid->block_bytes / CV_DECODE_PER_HELPER;
    int helpers = (int)cv_min_i64(cv_min_i64(source->threads - 1, n_blocks - 1), worth);

    read_task task = {source, plan, conversion, dst, .n_parts = 1};
    task.cache = source->workers->cache;
    task.bytes = n_blocks * source->snapshot->grid.block_bytes;
    cv_watch_expect(source->watch, task.bytes);
    if (helpers > 0 && cv_codec_blocks_independent(&source->workers->spec)) {
        int64_t parts = cv_ceil_div((helpers + 1) * CV_PARTS_PER_THREAD, plan->n_chunks);
        task.n_parts = cv_min_i64(parts, cv_ceil_div(n_blocks, plan->n_chunks));
    }
    return cv_workers_run(source->workers, helpers, plan->n_chunks * task.n_parts, read_share,
                          &task, err);
}
