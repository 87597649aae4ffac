/* Room: engine/jobs. The walk of a copy: chunks that can move are moved side by side;
 * the rest goes through memory slab by slab, each slab read and written by the
 * pool. */
#include "engine/jobs/repack.h"

#include "base/arith.h"
#include "base/heap.h"
#include "engine/plan/partition.h"
#include "engine/read/source.h"
#include "engine/write/transfer.h"
#include "engine/write/write.h"

#include <string.h>

/* A box in items of the target. */
typedef struct box {
    int64_t start[CV_MAX_DIMS];
    int64_t stop[CV_MAX_DIMS];
} box;

typedef struct copying {
    const cv_repack *repack;
    cv_source source; /* with as many threads as the memory allows */
    cv_pending *target;
    const cv_grid *from;
    const cv_grid *to;
    int64_t slab_memory; /* bytes */
    uint8_t *slab;       /* grown as needed */
    size_t slab_size;
    cv_watch *watch; /* the repack's: chunks of the target are its steps */
} copying;

static bool is_dirty(const copying *c, int64_t chunk)
{
    return c->source.pending && cv_pending_find(c->source.pending, chunk);
}

/* ---- Memory ------------------------------------------------------------- */

/* What one thread holds at most while it decodes or encodes a chunk: libblosc2's
 * scratch is some blocks, and its codecs' tables a few MiB. */
static int64_t thread_memory(const copying *c)
{
    enum { CODEC_BYTES = 2 << 20, FETCH_BYTES = 512 * 1024, SCRATCH_BLOCKS = 4 };
    const cv_grid *from = c->from, *to = c->to;
    int64_t bytes = CODEC_BYTES + SCRATCH_BLOCKS * (from->block_bytes + to->block_bytes);
    bytes += 2 * to->chunk_bytes; /* decoded and encoded */
    if (cv_codec_blocks_independent(&c->source.workers->spec)) return bytes + FETCH_BYTES;
    return bytes + 2 * from->chunk_bytes;
}

/* As many threads as fit beside a slab of one chunk for each of them. */
static void share_memory(copying *c)
{
    int64_t each = thread_memory(c);
    int64_t fit = c->repack->memory / (each + c->to->chunk_bytes);
    int64_t most = cv_min_i64(c->source.threads, c->target->threads);
    c->source.threads = (int)cv_max_i64(1, cv_min_i64(most, fit));
    c->slab_memory = c->repack->memory - c->source.threads * each;
}

static cv_status reserve_slab(copying *c, int64_t size, cv_error *err)
{
    if ((size_t)size <= c->slab_size) return CV_OK;
    cv_free(c->slab);
    c->slab_size = 0;
    c->slab = cv_malloc((size_t)size);
    if (!c->slab) return cv_fail_memory(err, (size_t)size, "a slab of the copy");
    c->slab_size = (size_t)size;
    return CV_OK;
}

/* ---- Slabs -------------------------------------------------------------- */

/* Does every source chunk of the plan hold what the target holds unwritten? */
static cv_status is_unwritten(const copying *c, const cv_plan *plan, bool *out, cv_error *err)
{
    *out = !c->target->fill_is_stored;
    for (int64_t k = 0; k < plan->n_chunks && *out; k++) {
        cv_chunk_job job;
        cv_chunk_ref ref;
        cv_plan_chunk(plan, k, &job);
        CV_TRY(cv_source_find(&c->source, job.chunk, &ref, err));
        cv_ref_kind kind = ref.kind == CV_REF_UNINIT ? CV_REF_ZEROS : ref.kind;
        *out = kind == c->target->fill_kind && !is_dirty(c, job.chunk);
    }
    return CV_OK;
}

static cv_status copy_slab(copying *c, const box *b, cv_error *err)
{
    box from = *b;
    for (int d = 0; d < c->to->ndim; d++) {
        from.start[d] += c->repack->start[d];
        from.stop[d] += c->repack->start[d];
    }
    cv_plan read, write;
    bool unwritten;
    CV_TRY(cv_plan_box(c->from, from.start, from.stop, &read, err));
    CV_TRY(cv_plan_box(c->to, b->start, b->stop, &write, err));
    CV_TRY(is_unwritten(c, &read, &unwritten, err));
    if (unwritten) return cv_watch_step(c->watch, write.n_chunks, err);

    CV_TRY(reserve_slab(c, read.n_items * c->to->item_size, err));
    CV_TRY(cv_read_box(&c->source, &read, c->slab, err));
    CV_TRY(cv_watch_step(c->watch, 0, err));
    CV_TRY(cv_write_box(c->target, &write, c->slab, err));
    return cv_watch_step(c->watch, write.n_chunks, err);
}

/* Decodes and encodes a part of the target that begins where its chunks do. */
static cv_status copy_part(copying *c, const box *part, cv_error *err)
{
    enum { SLAB_BYTES = 8 << 20, CHUNKS_PER_THREAD = 4 };
    int64_t chunks = (int64_t)c->source.threads * CHUNKS_PER_THREAD;
    cv_slab_request request = {
        .to = c->to,
        .from = c->from,
        .shift = c->repack->start,
        .start = part->start,
        .stop = part->stop,
        .whole_chunks = !cv_codec_blocks_independent(&c->source.workers->spec),
        .memory = c->slab_memory,
        .enough = cv_max_i64(SLAB_BYTES, chunks * c->to->chunk_bytes),
    };
    cv_slabs slabs;
    cv_slabs_choose(&request, &slabs);
    CV_TRY(reserve_slab(c, slabs.n_bytes, err));
    cv_status status = CV_OK;
    for (int64_t k = 0; k < slabs.n_slabs && status == CV_OK; k++) {
        box b = {{0}, {0}};
        cv_slabs_get(&slabs, k, b.start, b.stop);
        status = copy_slab(c, &b, err);
    }
    return status;
}

/* ---- Moving ------------------------------------------------------------- */

/* Chunk k of the source's plan becomes chunk k of the target's. */
typedef struct moving {
    copying *copying;
    cv_plan from;
    cv_plan to;
    cv_stage stage;
} moving;

static cv_status list_chunk(void *context, int64_t k, cv_worker *worker, cv_stage_list *list,
                            cv_error *err)
{
    const moving *m = context;
    cv_chunk_job from;
    (void)worker;
    cv_plan_chunk(&m->from, k, &from);
    if (is_dirty(m->copying, from.chunk)) return CV_OK;
    return cv_stage_list_add(list, from.chunk, CV_STAGE_ALL, err);
}

static cv_status move_chunk(void *context, int64_t k, cv_worker *worker, cv_error *err)
{
    moving *m = context;
    cv_chunk_job from, to;
    worker->watch = m->copying->source.watch;
    cv_plan_chunk(&m->from, k, &from);
    cv_plan_chunk(&m->to, k, &to);
    if (is_dirty(m->copying, from.chunk)) return CV_OK;
    CV_TRY(cv_stage_enter(&m->stage, k, worker, err));
    cv_status status = cv_move_chunk(&m->copying->source, from.chunk, m->copying->target,
                                     to.chunk, worker, err);
    cv_stage_leave(&m->stage, k, worker);
    CV_TRY(status);
    cv_watch_add(m->copying->watch, m->copying->to->chunk_bytes);
    return cv_watch_step(m->copying->watch, 1, err);
}

/* Chunks with blocks that the source has not encoded yet. */
static cv_status copy_dirty(const moving *m, cv_error *err)
{
    copying *c = m->copying;
    for (int64_t k = 0; k < m->to.n_chunks && c->source.pending; k++) {
        cv_chunk_job from, to;
        cv_plan_chunk(&m->from, k, &from);
        if (!is_dirty(c, from.chunk)) continue;
        cv_plan_chunk(&m->to, k, &to);
        box b = {{0}, {0}};
        cv_grid_chunk_index(c->to, to.chunk, b.start);
        for (int d = 0; d < c->to->ndim; d++) {
            b.start[d] *= c->to->chunk_shape[d];
            b.stop[d] = b.start[d] + to.hi[d];
        }
        CV_TRY(copy_slab(c, &b, err));
    }
    return CV_OK;
}

static cv_status move_part(copying *c, const int64_t *stop, cv_error *err)
{
    int64_t zeros[CV_MAX_DIMS] = {0}, from_stop[CV_MAX_DIMS] = {0};
    for (int d = 0; d < c->to->ndim; d++) from_stop[d] = c->repack->start[d] + stop[d];
    moving m = {.copying = c};
    CV_TRY(cv_plan_box(c->from, c->repack->start, from_stop, &m.from, err));
    CV_TRY(cv_plan_box(c->to, zeros, stop, &m.to, err));
    int helpers = (int)cv_min_i64(c->source.threads, m.to.n_chunks) - 1;
    cv_watch_expect(c->watch, m.to.n_chunks * c->to->chunk_bytes);
    const cv_stage_plan plan = {.n_units = m.to.n_chunks,
                                .bytes = m.to.n_chunks * c->to->chunk_bytes,
                                .memory = c->repack->memory / 4,
                                .threads = helpers + 1,
                                .list = list_chunk,
                                .context = &m};
    CV_TRY(cv_stage_init(&m.stage, &c->source, &plan, err));
    const cv_crew crew = {c->source.workers, helpers, c->watch};
    cv_status status = cv_workers_run(&crew, m.to.n_chunks, move_chunk, &m, err);
    cv_stage_destroy(&m.stage);
    CV_TRY(status);
    return copy_dirty(&m, err);
}

/* A chunk that the box cuts must not take along what lies outside: the part up
 * to the last edge of chunks moves, and on each axis a face may be left.
 *
 *      +-------+--+
 *      | moves |  |      faces: below, on all of the axes after it;
 *      +-------+--+             beside, on the moved part of those before
 *      |          |
 *      +----------+ */
static cv_status move_and_copy(copying *c, cv_error *err)
{
    box part = {{0}, {0}};
    memcpy(part.stop, c->to->shape, sizeof part.stop);
    int64_t moved[CV_MAX_DIMS] = {0};
    for (int d = 0; d < c->to->ndim; d++) {
        int64_t length = c->to->shape[d];
        bool cut = c->repack->start[d] + length < c->from->shape[d];
        moved[d] = cut ? length - length % c->to->chunk_shape[d] : length;
    }
    CV_TRY(move_part(c, moved, err));
    for (int d = 0; d < c->to->ndim; d++) {
        part.start[d] = moved[d];
        CV_TRY(copy_part(c, &part, err));
        part.start[d] = 0;
        part.stop[d] = moved[d];
    }
    return CV_OK;
}

/* ---- The copy ----------------------------------------------------------- */

static bool can_move(const copying *c)
{
    cv_move move = {.source = &c->source, .target = c->target};
    for (int d = 0; d < c->to->ndim; d++) {
        move.axis[d] = d;
        if (c->repack->start[d] % c->from->chunk_shape[d] != 0) return false;
    }
    return cv_can_move(&move);
}

cv_status cv_repack_run(const cv_repack *repack, cv_error *err)
{
    copying c = {
        .repack = repack,
        .source = *repack->source,
        .watch = repack->watch,
        .target = repack->target,
        .from = &repack->source->snapshot->grid,
        .to = &cv_txn_snapshot(repack->target->txn)->grid,
    };
    c.source.scan = true; /* the memory that is promised has no room for a cache */
    int threads = c.target->threads;
    cv_watch_set_steps(c.watch, c.to->n_chunks);
    share_memory(&c);
    c.target->threads = c.source.threads;
    box all = {{0}, {0}};
    memcpy(all.stop, c.to->shape, sizeof all.stop);
    cv_status status = cv_watch_step(c.watch, 0, err);
    if (status == CV_OK)
        status = can_move(&c) ? move_and_copy(&c, err) : copy_part(&c, &all, err);
    c.target->threads = threads;
    cv_free(c.slab);
    return status;
}
