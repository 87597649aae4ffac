/* Room: engine/jobs. Chunks that mean the same in two arrays go from one to the other as
 * they are stored. Must not know why they may. */
#include "engine/jobs/move.h"

#include "base/arith.h"
#include "engine/jobs/transfer.h"
#include "engine/read/source.h"
#include "frame/put.h"

#include <string.h>

static const cv_grid *target_grid(const cv_move *move)
{
    return &cv_txn_snapshot(move->target->txn)->grid;
}

/* ---- May they ------------------------------------------------------------ */

static bool same_pipeline(const cv_codec_spec *a, const cv_codec_spec *b)
{
    return a->codec == b->codec && a->codec_meta == b->codec_meta && a->level == b->level &&
           a->use_dict == b->use_dict &&
           memcmp(a->filters, b->filters, sizeof a->filters) == 0 &&
           memcmp(a->filters_meta, b->filters_meta, sizeof a->filters_meta) == 0;
}

bool cv_can_move(const cv_move *move)
{
    const cv_grid *from = &move->source->snapshot->grid, *to = target_grid(move);
    const cv_codec_spec *spec = &move->source->workers->spec;
    int next = 0;                                         /* axis of the source */
    if (move->source->snapshot->meta.plain) return false; /* its blocks are others */
    if (!same_pipeline(spec, &move->target->workers->spec)) return false;
    if (from->item_size != to->item_size) return false;
    if (from->ndim != to->ndim && cv_codec_needs_geometry(spec)) return false;
    for (int d = 0; d < to->ndim; d++) {
        int b = move->axis[d];
        int64_t chunk = b < 0 ? 1 : from->chunk_shape[b];
        int64_t block = b < 0 ? 1 : from->block_shape[b];
        if (b >= 0 && b != next++) return false;
        if (to->chunk_shape[d] != chunk || to->block_shape[d] != block) return false;
    }
    return next == from->ndim;
}

/* ---- Which ---------------------------------------------------------------- */

static int64_t count(const cv_move *move)
{
    int64_t n = 1;
    for (int d = 0; d < target_grid(move)->ndim; d++) n *= move->counts[d];
    return n;
}

/* The k-th chunk of the box, its numbers in both arrays. */
static void number(const cv_move *move, int64_t k, int64_t *from, int64_t *to)
{
    const cv_grid *source = &move->source->snapshot->grid, *target = target_grid(move);
    *from = *to = 0;
    for (int d = target->ndim - 1; d >= 0; d--) {
        int64_t index = k % move->counts[d];
        k /= move->counts[d];
        *to += (move->to[d] + index) * target->chunk_strides[d];
        if (move->axis[d] >= 0)
            *from += (move->from[d] + index) * source->chunk_strides[move->axis[d]];
    }
}

bool cv_move_is_clean(const cv_move *move)
{
    cv_pending *pending = move->source->pending;
    if (!pending) return true;
    for (int64_t k = 0, n = count(move); k < n; k++) {
        int64_t from, to;
        number(move, k, &from, &to);
        if (cv_pending_find(pending, from)) return false;
    }
    return true;
}

/* ---- Moving ---------------------------------------------------------------- */

/* In a new array with a fill to be stored, UNINIT means "not written": what reads
 * as zeros must say so. */
static cv_status keep_zeros(cv_pending *target, int64_t chunk, cv_error *err)
{
    cv_chunk_ref ref;
    if (!target->fill_is_due) return CV_OK;
    CV_TRY(cv_txn_find(target->txn, chunk, &ref, err));
    if (ref.kind != CV_REF_UNINIT) return CV_OK;
    return cv_txn_put_special(target->txn, chunk, CV_REF_ZEROS, err);
}

cv_status cv_move_chunk(const cv_source *source, int64_t from, cv_pending *target, int64_t to,
                        cv_worker *worker, cv_error *err)
{
    CV_TRY(cv_transfer_chunk(source, from, target->txn, to, worker, err));
    return keep_zeros(target, to, err);
}

typedef struct moving {
    const cv_move *move;
    cv_stage stage;
    cv_status (*on_chunk)(void *context, cv_error *err);
    void *context;
} moving;

static cv_status list_one(void *context, int64_t k, cv_worker *worker, cv_stage_list *list,
                          cv_error *err)
{
    int64_t from, to;
    (void)worker;
    number(((const moving *)context)->move, k, &from, &to);
    return cv_stage_list_add(list, from, CV_STAGE_ALL, err);
}

static cv_status move_one(void *context, int64_t k, cv_worker *worker, cv_error *err)
{
    moving *m = context;
    int64_t from, to;
    number(m->move, k, &from, &to);
    worker->watch = m->move->source->watch;
    CV_TRY(cv_stage_enter(&m->stage, k, worker, err));
    cv_status status = cv_move_chunk(m->move->source, from, m->move->target, to, worker, err);
    cv_stage_leave(&m->stage, k, worker);
    CV_TRY(status);
    return m->on_chunk ? m->on_chunk(m->context, err) : CV_OK;
}

cv_status cv_move_chunks(const cv_move *move, int threads,
                         cv_status (*on_chunk)(void *context, cv_error *err), void *context,
                         cv_error *err)
{
    moving m = {.move = move, .on_chunk = on_chunk, .context = context};
    int64_t n = count(move);
    int helpers = (int)cv_min_i64(threads, n) - 1;
    const cv_stage_plan plan = {.n_units = n,
                                .bytes = n * target_grid(move)->chunk_bytes,
                                .memory = move->memory,
                                .threads = helpers + 1,
                                .list = list_one,
                                .context = &m};
    CV_TRY(cv_stage_init(&m.stage, move->source, &plan, err));
    const cv_crew crew = {move->source->workers, helpers, move->source->watch};
    cv_status status = cv_workers_run(&crew, n, move_one, &m, err);
    cv_stage_destroy(&m.stage);
    return status;
}
