/* Room: engine/read. A walk on the threads of the pool: chunks, or parts of them where there
 * are fewer chunks than threads, are its jobs. */
#include "engine/read/walk_run.h"

#include "base/arith.h"
#include "engine/read/wave.h"
#include "engine/run/thresholds.h"
#include "frame/layout.h"
#include "frame/lookup.h"
#include "store/fallbacks.h"

/* A walk on its way through the pool. */
typedef struct run {
    const cv_walk *walk;
    int64_t first_chunk; /* those before it are done */
    int64_t n_parts;     /* of each chunk */
    const cv_skip *skip;
    cv_mutex lock; /* one call of its sink at a time */
} run;

static cv_status run_part(void *context, int64_t job, cv_worker *worker, cv_error *err)
{
    const run *r = context;
    cv_share part = {r->first_chunk + job / r->n_parts, job % r->n_parts, r->n_parts};
    return cv_walk_share(r->walk, &part, r->walk->context, worker, err);
}

/* All that is wanted of the chunk becomes the item. */
static void fill_wanted(cv_walk_chunk *c, const uint8_t *item)
{
    const cv_delivery *d = c->walk->delivery;
    if (d->fill_chunk)
        d->fill_chunk(c, item);
    else
        for (int64_t tag = 0; tag < c->n_blocks; tag++) d->fill(c, tag, item);
}

/* A chunk, which can be read twice. */
typedef struct one_chunk {
    const run *run;
    int64_t number;
    cv_worker *worker;
    bool is_staged;
    cv_walk_chunk chunk;
} one_chunk;

static cv_status read_chunk(void *context, cv_error *err)
{
    one_chunk *o = context;
    const cv_walk *w = o->run->walk;
    cv_stage *stage = o->is_staged ? w->stage : NULL;
    o->is_staged = false; /* what is on the stage is read once */
    CV_TRY(cv_stage_enter(stage, o->number, o->worker, err));
    cv_status status = cv_walk_enter(&o->chunk, w, o->number, o->worker, err);
    if (status == CV_OK) status = cv_walk_blocks(&o->chunk, 0, o->chunk.n_blocks, err);
    cv_stage_leave(stage, o->number, o->worker);
    return status;
}

/* The same for a chunk that may be damaged: then what is wanted of it, also what was
 * delivered already, is the fill. */
static cv_status run_or_skip(void *context, int64_t job, cv_worker *worker, cv_error *err)
{
    run *r = context;
    cv_error error = {0};
    one_chunk one = {.run = r, .number = job, .worker = worker, .is_staged = true};
    const cv_doubted twice = {
        .store = r->walk->source->frame->store, .read = read_chunk, .context = &one};
    cv_status status = cv_store_doubting(&twice, &error);
    if (status == CV_OK) return CV_OK;
    if (!cv_is_damage(status)) {
        if (err) *err = error;
        return status;
    }
    fill_wanted(&one.chunk, r->skip->fill);
    if (one.chunk.failed)
        return cv_fail_memory(err, (size_t)one.chunk.n_blocks, "a converted item");
    cv_mutex_lock(&r->lock);
    cv_damage_tell(&r->skip->sink, &r->walk->source->snapshot->grid, one.chunk.chunk, &error);
    cv_mutex_unlock(&r->lock);
    return CV_OK;
}

/* How many threads may help, and how many parts of each chunk there are for them. */
static int cut_parts(run *r, int64_t n_chunks)
{
    const cv_walk *w = r->walk;
    int64_t block_bytes = w->source->snapshot->grid.block_bytes, n_blocks = w->n_blocks;
    if (r->first_chunk > 0) /* about so many are left */
        n_blocks = cv_ceil_div(n_blocks, w->n_chunks) * n_chunks;
    int64_t most = cv_min_i64(w->source->threads - 1, n_blocks - 1);
    r->n_parts = 1;
    if (most <= 0) return 0;
    int64_t worth = n_blocks * block_bytes / CV_DECODE_PER_HELPER;
    if (r->skip) most = cv_min_i64(most, n_chunks - 1); /* one thread reads or skips it */
    int64_t helpers = cv_min_i64(most, worth);
    if (helpers > 0 && !r->skip && cv_codec_blocks_independent(&w->source->workers->spec)) {
        int64_t parts = cv_ceil_div((helpers + 1) * CV_PARTS_PER_THREAD, n_chunks);
        int64_t least = cv_ceil_div(CV_BYTES_PER_PART, block_bytes); /* blocks */
        r->n_parts = cv_min_i64(parts, cv_ceil_div(n_blocks, n_chunks * least));
    }
    return (int)helpers;
}

/* Whether the calling thread looks alone for what is there decoded. */
static bool looks_alone(const cv_walk *w)
{
    const cv_request *r = &w->request;
    if (!w->cache || cv_cache_is_empty(w->cache)) return false;
    if (w->delivery->take_items)
        return w->source->threads == 1 ||
               r->box->n_items < 2 * CV_COPY_PER_HELPER / r->box->grid->item_size;
    if (w->delivery->needs_worker || !r->selection) return false;
    return w->source->threads == 1 || r->selection->n_items <= CV_MOST_ITEMS_ALONE;
}

/* Whether all of the array was wanted before, and had to be decoded. */
static bool comes_again(const cv_walk *w)
{
    atomic_int *n_whole = &w->source->workers->n_whole;
    if (!w->cache || !cv_walk_wants_all(w)) return false;
    if (atomic_load_explicit(n_whole, memory_order_relaxed) >= 2) return true;
    return atomic_fetch_add_explicit(n_whole, 1, memory_order_relaxed) > 0;
}

/* A walk in waves, which can be done twice. */
typedef struct waves {
    const cv_walk *walk;
    int64_t first_chunk;
    int helpers, n_done;
} waves;

static cv_status read_waves(void *context, cv_error *err)
{
    waves *v = context;
    if (v->n_done++ > 0) cv_layout_cache_clear(v->walk->source->frame->layouts);
    return cv_wave_run(v->walk, v->first_chunk, v->helpers, err);
}

/* Bytes that are wrong may be another version's, or a cache's on their way. What was counted
 * cannot be taken back: then another version is told of, and nothing is read twice. */
static cv_status run_waves(const cv_walk *w, int64_t first_chunk, int helpers, cv_error *err)
{
    waves v = {w, first_chunk, helpers, 0};
    cv_store *store = w->source->frame->store;
    const cv_doubted all = {.store = store, .read = read_waves, .context = &v};
    if (!w->delivery->counts) return cv_store_doubting(&all, err);
    cv_error error = {0}, doubt = {0};
    cv_status status = cv_wave_run(w, first_chunk, helpers, &error), answer = CV_OK;
    if (cv_is_doubtful(status) && store->ops->doubt) {
        answer = store->ops->doubt(store, false, &doubt);
        if (answer == CV_OK) answer = store->ops->settle(store, false, &doubt);
    }
    if (status != CV_OK && err) *err = answer == CV_OK ? error : doubt;
    return answer == CV_OK ? status : answer;
}

cv_status cv_walk_run(cv_walk *w, cv_error *err)
{
    const cv_source *s = w->source;
    run r;
    r.walk = w;
    r.first_chunk = 0;
    r.skip = NULL;
    if (w->n_chunks == 0) return CV_OK;
    if (s->watch) cv_watch_expect(s->watch, w->bytes);
    if (looks_alone(w)) CV_TRY(cv_walk_decoded(w, &r.first_chunk, err));
    int64_t n_chunks = w->n_chunks - r.first_chunk;
    if (n_chunks == 0) return CV_OK;
    w->again = comes_again(w);
    int helpers = cut_parts(&r, n_chunks);
    if (cv_wave_is_worth(w, r.first_chunk)) return run_waves(w, r.first_chunk, helpers, err);
    const cv_crew crew = {s->workers, helpers, s->watch};
    return cv_workers_run(&crew, n_chunks * r.n_parts, run_part, &r, err);
}

/* Without an index no chunk can be read, which is not damage of chunks. */
cv_status cv_walk_run_skipping(cv_walk *w, const cv_skip *skip, cv_error *err)
{
    run r = {.walk = w, .skip = skip};
    const cv_index *index;
    const cv_source *s = w->source;
    if (w->n_chunks == 0) return CV_OK;
    if (!s->pending) CV_TRY(cv_snapshot_index(s->snapshot, s->frame->store, &index, err));
    if (w->source->watch) cv_watch_expect(w->source->watch, w->bytes);
    int helpers = cut_parts(&r, w->n_chunks);
    cv_stage stage;
    CV_TRY(cv_walk_set_stage(w, helpers + 1, 0, &stage, err));
    cv_mutex_init(&r.lock);
    const cv_crew crew = {s->workers, helpers, s->watch};
    cv_status status = cv_workers_run(&crew, w->n_chunks, run_or_skip, &r, err);
    cv_mutex_destroy(&r.lock);
    cv_stage_destroy(&stage);
    return status;
}
