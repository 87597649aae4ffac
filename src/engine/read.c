/* Room: engine. The walk of a read: selection -> plan -> jobs -> decode -> copy.
 *
 * A job is a part of a touched chunk: all its wanted blocks, or a share of them
 * when there are fewer chunks than threads. Jobs write disjoint parts of the
 * destination, so no lock is taken; all scratch belongs to the worker. */
#include "engine/read.h"

#include "base/arith.h"
#include "engine/blocks.h"
#include "engine/copy.h"

#include <string.h>

/* Decoding less than this costs no more than waking a thread. */
enum { BYTES_PER_HELPER = 256 * 1024, PARTS_PER_THREAD = 4 };

typedef struct read_task {
    const cv_source *source;
    const cv_plan *plan;
    uint8_t *dst;
    bool straight;   /* whole blocks can be decoded into dst */
    int64_t n_parts; /* of each chunk */
} read_task;

cv_status cv_source_find(const cv_source *source, int64_t chunk, cv_chunk_ref *out,
                         cv_error *err)
{
    if (source->pending) return cv_pending_where(source->pending, chunk, out, err);
    int64_t offset;
    CV_TRY(cv_snapshot_offset(source->snapshot, source->frame->store, chunk, &offset, err));
    return cv_chunk_ref_make(source->snapshot, chunk, offset, out, err);
}

/* ---- Delivering blocks -------------------------------------------------- */

/* The chunk being read; `block` is the job of the tag last asked for. */
typedef struct delivery {
    const read_task *task;
    const cv_chunk_job *chunk;
    cv_block_job block;
    int64_t tag;
} delivery;

static const cv_block_job *block_of(delivery *d, int64_t tag)
{
    if (d->tag != tag) cv_plan_block(d->task->plan, d->chunk, tag, &d->block);
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

/* ---- Jobs --------------------------------------------------------------- */

/* Lists the part's blocks that must be decoded; dirty ones are delivered on the
 * spot. */
static cv_status list_blocks(const read_task *task, delivery *d, int64_t part,
                             cv_worker *worker, int64_t *n, cv_error *err)
{
    const cv_chunk_job *chunk = d->chunk;
    int64_t first = chunk->n_blocks * part / task->n_parts;
    int64_t last = chunk->n_blocks * (part + 1) / task->n_parts;
    const cv_dirty_chunk *dirty =
        task->source->pending ? cv_pending_find(task->source->pending, chunk->chunk) : NULL;

    CV_TRY(cv_worker_wanted(worker, last - first, err));
    *n = 0;
    for (int64_t j = first; j < last; j++) {
        int64_t block = block_of(d, j)->block;
        if (dirty && dirty->blocks[block])
            take_block(d, j, dirty->blocks[block]);
        else
            worker->wanted[(*n)++] = (cv_wanted){.block = block, .tag = j};
    }
    return CV_OK;
}

static cv_status read_part(void *context, int64_t job, cv_worker *worker, cv_error *err)
{
    const read_task *task = context;
    const cv_source *source = task->source;
    cv_chunk_job chunk;
    cv_plan_chunk(task->plan, job / task->n_parts, &chunk);
    delivery d = {.task = task, .chunk = &chunk, .tag = -1};
    int64_t n;
    CV_TRY(list_blocks(task, &d, job % task->n_parts, worker, &n, err));
    if (n == 0) return CV_OK;

    cv_chunk_ref ref;
    CV_TRY(cv_source_find(source, chunk.chunk, &ref, err));
    cv_block_sink sink = {place_block, take_block, fill_block, &d};
    return cv_decode_blocks(source->frame, source->snapshot, &ref, worker, n, &sink, err);
}

/* ---- The read ----------------------------------------------------------- */

/* Touched blocks: along an axis, those of the first, the last and the whole
 * chunks between; the box is their product. */
static int64_t count_blocks(const cv_plan *plan)
{
    const cv_grid *g = plan->grid;
    int64_t total = 1;
    for (int d = 0; d < g->ndim; d++) {
        int64_t first = plan->start[d] % g->chunk_shape[d] / g->block_shape[d];
        int64_t last = (plan->stop[d] - 1) % g->chunk_shape[d] / g->block_shape[d];
        total *= (plan->chunk_counts[d] - 1) * g->block_counts[d] + last - first + 1;
    }
    return total;
}

cv_status cv_read_box(const cv_source *source, const cv_plan *plan, void *dst, cv_error *err)
{
    if (plan->n_items == 0) return CV_OK;
    int64_t n_blocks = count_blocks(plan);
    int64_t worth = n_blocks * plan->grid->block_bytes / BYTES_PER_HELPER;
    int helpers = (int)cv_min_i64(cv_min_i64(source->threads - 1, n_blocks - 1), worth);

    read_task task = {.source = source, .plan = plan, .dst = dst, .n_parts = 1};
    task.straight = cv_plan_block_contiguous(plan);
    if (helpers > 0 && cv_codec_blocks_independent(&source->workers->spec)) {
        int64_t parts = cv_ceil_div((helpers + 1) * PARTS_PER_THREAD, plan->n_chunks);
        task.n_parts = cv_min_i64(parts, cv_ceil_div(n_blocks, plan->n_chunks));
    }
    return cv_workers_run(source->workers, helpers, plan->n_chunks * task.n_parts, read_part,
                          &task, err);
}
