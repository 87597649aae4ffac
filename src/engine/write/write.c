/* Room: engine/write. Writes boxes and selections. Chunks that a box covers are gathered and
 * encoded, in parallel. In other chunks, blocks that the box covers are copied, and blocks that it
 * cuts are decoded and patched; both become dirty. If there are fewer chunks than threads, several
 * threads work on the blocks of one chunk; chunks too small for that are queued. */
#include "engine/write/write.h"

#include "base/arith.h"
#include "engine/items/copy.h"
#include "engine/read/walk.h"
#include "engine/run/thresholds.h"
#include "engine/write/flush.h"

#include <string.h>

/* ---- Decoding blocks that are written in part -------------------------------------- */

cv_status cv_patch_fill(cv_pending *pending, const cv_dirty_chunk *dirty, cv_worker *worker,
                        int64_t *n, cv_error *err)
{
    if (*n == 0) return CV_OK;
    cv_source source = cv_source_of_pending(pending);
    cv_places places = {.blocks = dirty->blocks};
    cv_walk walk;
    cv_walk_init(&walk, &source, (cv_request){NULL, NULL}, &cv_to_places, &places);
    return cv_walk_listed(&walk, dirty->chunk, worker, n, err);
}

/* ---- Boxes ------------------------------------------------------------------- */

typedef struct write_task {
    cv_pending *pending;
    const cv_plan *plan;
    const uint8_t *src;
    int64_t shares; /* number of shares that a chunk's blocks are divided into */
    bool queues;    /* complete chunks are queued */
} write_task;

static void patch(const write_task *task, const cv_block_job *job, uint8_t *block)
{
    const cv_plan *plan = task->plan;
    const cv_grid *grid = plan->grid;
    cv_strided src = {(uint8_t *)task->src + job->buffer_pos, plan->buffer_strides};
    cv_strided dst = {block + job->block_pos, grid->item_strides};
    cv_copy_box(grid->ndim, job->shape, grid->item_size, src, dst);
}

/* ---- Chunks covered whole ------------------------------------------------ */

static bool has_padding(const cv_grid *grid, const cv_chunk_job *job)
{
    for (int d = 0; d < grid->ndim; d++)
        if (job->valid[d] != grid->ext_chunk_shape[d]) return true;
    return false;
}

/* Returns whether the caller's buffer has the chunk in stored order. */
static bool lies_as_stored(const cv_plan *plan, const cv_chunk_job *job)
{
    const cv_grid *grid = plan->grid;
    if (has_padding(grid, job)) return false;
    for (int d = 0; d < grid->ndim; d++) {
        int64_t stride = plan->buffer_strides[d];
        int64_t next_block = grid->block_strides[d] * grid->block_bytes;
        if (grid->block_shape[d] > 1 && stride != grid->item_strides[d]) return false;
        if (grid->ext_chunk_shape[d] > grid->block_shape[d] &&
            stride * grid->block_shape[d] != next_block)
            return false;
    }
    return true;
}

static cv_status gather(const write_task *task, const cv_chunk_job *job, cv_worker *worker,
                        const uint8_t **out, cv_error *err)
{
    const cv_grid *grid = task->plan->grid;
    *out = task->src + job->buffer_pos;
    if (lies_as_stored(task->plan, job)) return CV_OK;

    CV_TRY(cv_buffer_resize(&worker->chunk, (size_t)grid->chunk_bytes, err));
    uint8_t *chunk = worker->chunk.data;
    if (has_padding(grid, job)) memset(chunk, 0, (size_t)grid->chunk_bytes);
    for (int64_t j = 0; j < job->n_blocks; j++) {
        cv_block_job block;
        cv_plan_block(task->plan, job, j, &block);
        patch(task, &block, chunk + block.block * grid->block_bytes);
    }
    *out = chunk;
    return CV_OK;
}

typedef struct gathering {
    const write_task *task;
    const cv_chunk_job *chunk;
} gathering;

/* Prefetches the items of the next block while this one is encoded. */
static void warm_next(const gathering *g, int64_t j)
{
    const cv_plan *plan = g->task->plan;
    cv_block_job job;
    if (j + 1 >= g->chunk->n_blocks) return;
    cv_plan_block(plan, g->chunk, j + 1, &job);
    cv_strided src = {(uint8_t *)g->task->src + job.buffer_pos, plan->buffer_strides};
    cv_warm_block(plan->grid->ndim, job.shape, plan->grid->item_size, src);
}

static void gather_block(const void *context, int64_t block, uint8_t *out)
{
    const gathering *g = context;
    const cv_plan *plan = g->task->plan;
    cv_block_job job = {.whole = false};
    int64_t j = cv_plan_find_block(plan, g->chunk, block);
    if (j >= 0) cv_plan_block(plan, g->chunk, j, &job);
    if (!job.whole) memset(out, 0, (size_t)plan->grid->block_bytes); /* padding */
    if (j < 0) return;
    patch(g->task, &job, out);
    warm_next(g, j);
}

/* Returns false if the chunk cannot be one repeated item. Compares only the first item with the
 * last one and with those along the last axis. */
static bool may_repeat(const write_task *task, const cv_chunk_job *job)
{
    const cv_plan *plan = task->plan;
    int last_axis = plan->grid->ndim - 1;
    size_t size = (size_t)plan->grid->item_size;
    const uint8_t *first = task->src + job->buffer_pos, *last = first;
    for (int d = 0; d <= last_axis; d++)
        last += (job->hi[d] - job->lo[d] - 1) * plan->buffer_strides[d];
    if (memcmp(first, last, size) != 0) return false;
    for (int64_t i = 1; last_axis >= 0 && i < job->hi[last_axis]; i++)
        if (memcmp(first, first + i * plan->buffer_strides[last_axis], size) != 0)
            return false;
    return true;
}

static cv_status write_whole_chunk(const write_task *task, const cv_chunk_job *job,
                                   cv_worker *worker, cv_error *err)
{
    cv_pending *pending = task->pending;
    int idle = cv_pending_idle(pending, task->plan->n_chunks);
    if (cv_pending_gathers(pending, idle) && !lies_as_stored(task->plan, job) &&
        !may_repeat(task, job)) {
        gathering g = {task, job};
        cv_block_source source = {gather_block, &g};
        cv_pending_drop(pending, job->chunk);
        return cv_pending_put_gathered(pending, worker, job->chunk, &source, err);
    }
    const uint8_t *decoded;
    CV_TRY(gather(task, job, worker, &decoded, err));
    cv_pending_drop(pending, job->chunk);
    return cv_pending_put_chunk(pending, worker, job->chunk, decoded, idle, err);
}

/* ---- Chunks covered in part ---------------------------------------------- */

typedef struct patching {
    const write_task *task;
    const cv_chunk_job *chunk;
    int64_t first, end; /* this share: positions among the chunk's touched blocks */
    cv_dirty_chunk *dirty;
} patching;

/* Makes the touched blocks dirty. Lists in `wanted` the blocks that keep stored items. */
static cv_status prepare_blocks(const patching *p, cv_worker *worker, int64_t *n,
                                cv_error *err)
{
    const cv_grid *grid = p->task->plan->grid;
    CV_TRY(cv_worker_wanted(worker, p->end - p->first, err));
    *n = 0;
    for (int64_t j = p->first; j < p->end; j++) {
        cv_block_job job;
        cv_plan_block(p->task->plan, p->chunk, j, &job);
        if (p->dirty->blocks[job.block]) continue;
        uint8_t *block;
        CV_TRY(cv_pending_add_block(p->task->pending, p->dirty, job.block, &block, err));
        if (!job.covers)
            worker->wanted[(*n)++] = (cv_wanted){.block = job.block};
        else if (!job.whole) /* other items are padding */
            memset(block, 0, (size_t)grid->block_bytes);
    }
    return CV_OK;
}

/* Called after a failure. Blocks that were not decoded or copied are undefined and must not stay
 * dirty. Covered blocks may lose older changes, too: the failed write would have replaced them. */
static void forget_blocks(const patching *p, const cv_worker *worker, int64_t n)
{
    cv_pending *pending = p->task->pending;
    for (int64_t i = 0; i < n; i++)
        cv_pending_remove_block(pending, p->dirty, worker->wanted[i].block);
    for (int64_t j = p->first; j < p->end; j++) {
        cv_block_job job;
        cv_plan_block(p->task->plan, p->chunk, j, &job);
        if (job.covers && p->dirty->blocks[job.block])
            cv_pending_remove_block(pending, p->dirty, job.block);
    }
}

/* Returns whether all blocks are dirty and the last item is written, as after appends. Such a chunk
 * is encoded while it is in the processor cache, and its memory is reused. */
static bool is_done(const patching *p)
{
    const cv_grid *grid = p->task->plan->grid;
    if (p->dirty->n_dirty < grid->n_blocks) return false;
    for (int d = 0; d < grid->ndim; d++)
        if (p->chunk->hi[d] < grid->chunk_shape[d]) return false;
    return true;
}

static cv_status write_blocks(const write_task *task, const cv_chunk_job *chunk,
                              int64_t share, cv_worker *worker, cv_error *err)
{
    patching p = {.task = task, .chunk = chunk};
    p.first = chunk->n_blocks * share / task->shares;
    p.end = chunk->n_blocks * (share + 1) / task->shares;
    CV_TRY(cv_pending_get(task->pending, chunk->chunk, &p.dirty, err));
    int64_t n = 0;
    cv_status status = prepare_blocks(&p, worker, &n, err);
    int64_t n_stored = n, block_bytes = task->plan->grid->block_bytes;
    cv_watch_expect(worker->watch, n * block_bytes);
    if (status == CV_OK) status = cv_patch_fill(task->pending, p.dirty, worker, &n, err);
    if (status != CV_OK) {
        forget_blocks(&p, worker, n);
        return status;
    }
    for (int64_t j = p.first; j < p.end; j++) {
        cv_block_job job;
        cv_plan_block(task->plan, chunk, j, &job);
        patch(task, &job, p.dirty->blocks[job.block]);
    }
    cv_watch_add(worker->watch, (p.end - p.first + n_stored - n) * block_bytes);
    /* Another share may still run. The next write checks the budget. */
    if (task->shares > 1) return CV_OK;
    bool encode = is_done(&p) && !task->queues;
    if (!encode && !cv_pending_over_budget(task->pending)) return CV_OK;
    cv_watch_expect(worker->watch, task->plan->grid->chunk_bytes);
    return cv_pending_flush_chunk(task->pending, worker, chunk->chunk, task->plan->n_chunks,
                                  err);
}

static cv_status write_share(void *context, int64_t k, cv_worker *worker, cv_error *err)
{
    const write_task *task = context;
    cv_chunk_job job;
    worker->watch = task->pending->watch;
    cv_plan_chunk(task->plan, k / task->shares, &job);
    bool waits = task->queues && !has_padding(task->plan->grid, &job);
    if (waits || !cv_chunk_job_covers(task->plan, &job))
        return write_blocks(task, &job, k % task->shares, worker, err);
    if (k % task->shares > 0) return CV_OK; /* done by the first share */
    return write_whole_chunk(task, &job, worker, err);
}

/* ---- The write ---------------------------------------------------------- */

/* Estimates the shares per chunk from the first chunk. Does not count dirty blocks. */
static int64_t count_shares(cv_pending *pending, const cv_plan *plan)
{
    if (plan->n_chunks >= pending->threads) return 1;
    cv_chunk_job job;
    cv_plan_chunk(plan, 0, &job);
    const cv_dirty_chunk *dirty = cv_pending_find(pending, job.chunk);
    int64_t n_decoded = job.n_blocks - (dirty ? dirty->n_dirty : 0);
    return 1 + cv_pending_helpers(cv_pending_idle(pending, plan->n_chunks), n_decoded,
                                  n_decoded * plan->grid->block_bytes);
}

/* Small writes stay on the calling thread. */
static int count_helpers(const write_task *task, int64_t n_jobs)
{
    const cv_plan *plan = task->plan;
    int64_t worth = plan->n_items * plan->grid->item_size / CV_ENCODE_PER_HELPER;
    int64_t most = cv_min_i64(task->pending->threads, n_jobs) - 1;
    return (int)(task->shares > 1 ? most : cv_min_i64(most, worth));
}

cv_status cv_write_box(cv_pending *pending, const cv_plan *plan, const void *src,
                       cv_error *err)
{
    if (plan->n_items == 0) return CV_OK;
    if (pending->watch) {
        int64_t n_whole;
        cv_watch_expect(pending->watch,
                        cv_plan_count_blocks(plan, &n_whole) * plan->grid->block_bytes);
    }
    if (cv_pending_over_budget(pending)) CV_TRY(cv_pending_flush(pending, err));

    write_task task = {.pending = pending, .plan = plan, .src = src};
    task.shares = count_shares(pending, plan);
    task.queues = plan->n_chunks < pending->threads && cv_pending_queues(pending);
    int64_t n_jobs = plan->n_chunks * task.shares;
    int helpers = count_helpers(&task, n_jobs);
    cv_pending_put_behind(pending, plan->n_chunks, helpers);
    const cv_crew crew = {pending->workers, helpers, pending->watch};
    cv_status status = cv_workers_run(&crew, n_jobs, write_share, &task, err);
    CV_TRY(cv_behind_end(&pending->behind, status, err));
    return task.queues ? cv_pending_flush_queue(pending, err) : CV_OK;
}

/* ---- Selections ----------------------------------------------------------------
 *
 * Touched blocks become dirty; blocks that are not covered are decoded first. Then parts are copied
 * in. A job is a whole chunk, so that the last value of an item that is selected twice wins. */

typedef struct select_task {
    cv_pending *pending;
    const cv_select_plan *plan;
    const uint8_t *src;
} select_task;

/* A chunk being written. */
typedef struct select_patching {
    const select_task *task;
    const cv_select_chunk *chunk;
    cv_dirty_chunk *dirty;
    uint8_t *block; /* the block whose parts are being copied */
} select_patching;

/* ---- One chunk ----------------------------------------------------------- */

/* Makes touched blocks dirty. Lists blocks that keep stored items from the beginning of `wanted`
 * on, and covered blocks from its end backwards. */
static cv_status add_blocks(select_patching *p, cv_worker *worker, int64_t *n_stored,
                            int64_t *n_covered, cv_error *err)
{
    const cv_select_plan *plan = p->task->plan;
    int64_t n_blocks = p->chunk->n_blocks;
    CV_TRY(cv_worker_wanted(worker, n_blocks, err));
    for (int64_t j = 0; j < n_blocks; j++) {
        cv_select_block block;
        plan->ops->block(plan, p->chunk, j, &block);
        if (!block.wanted || p->dirty->blocks[block.block]) continue;
        uint8_t *memory;
        CV_TRY(cv_pending_add_block(p->task->pending, p->dirty, block.block, &memory, err));
        cv_wanted wanted = {.block = block.block};
        if (block.covers) {
            memset(memory, 0, (size_t)plan->grid->block_bytes); /* padding */
            worker->wanted[n_blocks - ++*n_covered] = wanted;
        } else {
            worker->wanted[(*n_stored)++] = wanted;
        }
    }
    return CV_OK;
}

/* After a failure, the added blocks are undefined and must not stay dirty. */
static void forget_selected(const select_patching *p, const cv_worker *worker,
                            int64_t n_stored, int64_t n_covered)
{
    for (int64_t i = 0; i < p->chunk->n_blocks; i++)
        if (i < n_stored || i >= p->chunk->n_blocks - n_covered)
            cv_pending_remove_block(p->task->pending, p->dirty, worker->wanted[i].block);
}

static void copy_in(void *context, const cv_part *part)
{
    const select_patching *p = context;
    cv_part_copy(part, CV_IN_BUFFER, p->task->src, p->block);
}

static void patch_blocks(select_patching *p)
{
    const cv_select_plan *plan = p->task->plan;
    for (int64_t j = 0; j < p->chunk->n_blocks; j++) {
        cv_select_block block;
        plan->ops->block(plan, p->chunk, j, &block);
        if (!block.wanted) continue;
        p->block = p->dirty->blocks[block.block];
        plan->ops->parts(plan, p->chunk, j, copy_in, p);
    }
}

/* Returns whether any item of the chunk is selected. A mask may select none. */
static bool wants_any(const cv_select_plan *plan, const cv_select_chunk *chunk)
{
    cv_select_block block = {.wanted = false};
    for (int64_t j = 0; !block.wanted && j < chunk->n_blocks; j++)
        plan->ops->block(plan, chunk, j, &block);
    return block.wanted;
}

static cv_status write_chunk(void *context, int64_t k, cv_worker *worker, cv_error *err)
{
    const select_task *task = context;
    cv_pending *pending = task->pending;
    cv_select_chunk chunk;
    worker->watch = pending->watch;
    task->plan->ops->chunk(task->plan, k, &chunk);
    if (!wants_any(task->plan, &chunk)) return CV_OK;

    select_patching p = {.task = task, .chunk = &chunk};
    int64_t n_stored = 0, n_covered = 0;
    CV_TRY(cv_pending_get(pending, chunk.chunk, &p.dirty, err));
    cv_status status = add_blocks(&p, worker, &n_stored, &n_covered, err);
    int64_t block_bytes = task->plan->grid->block_bytes;
    cv_watch_expect(worker->watch, (n_stored + n_covered) * block_bytes);
    cv_watch_add(worker->watch, n_covered * block_bytes);
    int64_t n_listed = n_stored;
    if (status == CV_OK) status = cv_patch_fill(pending, p.dirty, worker, &n_stored, err);
    if (status != CV_OK) {
        forget_selected(&p, worker, n_stored, n_covered);
        return status;
    }
    cv_watch_add(worker->watch, (n_listed - n_stored) * block_bytes); /* found in the cache */
    patch_blocks(&p);
    if (!cv_pending_over_budget(pending)) return CV_OK;
    cv_watch_expect(worker->watch, task->plan->grid->chunk_bytes);
    return cv_pending_flush_chunk(pending, worker, chunk.chunk, task->plan->n_chunks, err);
}

static int count_select_helpers(const cv_pending *pending, const cv_select_plan *plan)
{
    int64_t n_blocks = cv_min_i64(plan->n_blocks, plan->n_items);
    int64_t worth = n_blocks * plan->grid->block_bytes / CV_DECODE_PER_HELPER;
    return (int)cv_min_i64(cv_min_i64(pending->threads, plan->n_chunks) - 1, worth);
}

cv_status cv_select_write(cv_pending *pending, const cv_select_plan *plan, const uint8_t *src,
                          cv_error *err)
{
    if (cv_pending_over_budget(pending)) CV_TRY(cv_pending_flush(pending, err));
    select_task task = {.pending = pending, .plan = plan, .src = src};
    const cv_crew crew = {pending->workers, count_select_helpers(pending, plan),
                          pending->watch};
    return cv_workers_run(&crew, plan->n_chunks, write_chunk, &task, err);
}
