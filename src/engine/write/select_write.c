/* Room: engine/write. The walk of a write through a selection. Touched blocks become
 * dirty: one covered whole needs nothing of what is stored, another is decoded
 * first; then the parts are copied in. A job is a whole chunk, so of an item
 * selected twice the last value stays. */
#include "engine/write/select_write.h"

#include "base/arith.h"
#include "engine/run/thresholds.h"
#include "engine/write/flush.h"
#include "engine/write/patch.h"

#include <string.h>

typedef struct write_task {
    cv_pending *pending;
    const cv_select_plan *plan;
    const uint8_t *src;
} write_task;

/* The chunk being written. Its n_added blocks became dirty in this write: the
 * first of them are the worker's n_wanted, tags are block numbers. */
typedef struct patching {
    const write_task *task;
    const cv_select_chunk *chunk;
    cv_dirty_chunk *dirty;
    uint8_t *block; /* whose parts are being copied */
} patching;

/* ---- One chunk ---------------------------------------------------------- */

/* Makes touched blocks dirty that are not. Those that keep something of what is
 * stored are listed first in the worker's `wanted`, covered ones from its end. */
static cv_status add_blocks(patching *p, cv_worker *worker, int64_t *n_stored,
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

/* After a failure the blocks added hold nothing and must not stay dirty. */
static void forget_blocks(const patching *p, const cv_worker *worker, int64_t n_stored,
                          int64_t n_covered)
{
    for (int64_t i = 0; i < p->chunk->n_blocks; i++)
        if (i < n_stored || i >= p->chunk->n_blocks - n_covered)
            cv_pending_remove_block(p->task->pending, p->dirty, worker->wanted[i].block);
}

static void copy_in(void *context, const cv_part *part)
{
    const patching *p = context;
    cv_part_copy(part, CV_IN_BUFFER, p->task->src, p->block);
}

static void patch_blocks(patching *p)
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

/* A mask may have no item in a chunk. */
static bool wants_any(const cv_select_plan *plan, const cv_select_chunk *chunk)
{
    cv_select_block block = {.wanted = false};
    for (int64_t j = 0; !block.wanted && j < chunk->n_blocks; j++)
        plan->ops->block(plan, chunk, j, &block);
    return block.wanted;
}

static cv_status write_chunk(void *context, int64_t k, cv_worker *worker, cv_error *err)
{
    const write_task *task = context;
    cv_pending *pending = task->pending;
    cv_select_chunk chunk;
    worker->watch = pending->watch;
    task->plan->ops->chunk(task->plan, k, &chunk);
    if (!wants_any(task->plan, &chunk)) return CV_OK;

    patching p = {.task = task, .chunk = &chunk};
    int64_t n_stored = 0, n_covered = 0;
    CV_TRY(cv_pending_get(pending, chunk.chunk, &p.dirty, err));
    cv_status status = add_blocks(&p, worker, &n_stored, &n_covered, err);
    int64_t block_bytes = task->plan->grid->block_bytes;
    cv_watch_expect(worker->watch, (n_stored + n_covered) * block_bytes);
    cv_watch_add(worker->watch, n_covered * block_bytes);
    int64_t n_listed = n_stored;
    if (status == CV_OK) status = cv_patch_fill(pending, p.dirty, worker, &n_stored, err);
    if (status != CV_OK) {
        forget_blocks(&p, worker, n_stored, n_covered);
        return status;
    }
    cv_watch_add(worker->watch, (n_listed - n_stored) * block_bytes); /* were in the cache */
    patch_blocks(&p);
    if (!cv_pending_over_budget(pending)) return CV_OK;
    cv_watch_expect(worker->watch, task->plan->grid->chunk_bytes);
    return cv_pending_flush_chunk(pending, worker, chunk.chunk, task->plan->n_chunks, err);
}

/* Small writes stay on the calling thread. */
static int count_helpers(const cv_pending *pending, const cv_select_plan *plan)
{
    int64_t n_blocks = cv_min_i64(plan->n_blocks, plan->n_items);
    int64_t worth = n_blocks * plan->grid->block_bytes / CV_DECODE_PER_HELPER;
    return (int)cv_min_i64(cv_min_i64(pending->threads, plan->n_chunks) - 1, worth);
}

cv_status cv_select_write(cv_pending *pending, const cv_select_plan *plan, const uint8_t *src,
                          cv_error *err)
{
    if (cv_pending_over_budget(pending)) CV_TRY(cv_pending_flush(pending, err));
    write_task task = {.pending = pending, .plan = plan, .src = src};
    const cv_crew crew = {pending->workers, count_helpers(pending, plan), pending->watch};
    return cv_workers_run(&crew, plan->n_chunks, write_chunk, &task, err);
}
