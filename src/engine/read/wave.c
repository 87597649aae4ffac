/* Room: engine/read. A walk in waves. How the store reads many ranges at once, and from where,
 * is not known here.
 *
 *     window    so many touched chunks that their lists are small; what is there decoded is
 *        |      delivered at once, the other blocks are listed
 *     layouts   of all chunks of the window, in one wave, or two
 *        |
 *     blocks    their runs, in waves of CV_WAVE_BYTES, or more where the way is long; each
 *               run that arrives is a job
 *
 * One thread leads: it plans, asks the store, and is handed what arrives. It passes runs on
 * to threads that help, and decodes one itself when they have enough to do: the store goes
 * on reading meanwhile. */
#include "engine/read/wave.h"

#include "base/arith.h"
#include "engine/run/pool.h"
#include "engine/run/thresholds.h"
#include "frame/layout_cache.h"
#include "frame/layout_wave.h"

/* A chunk of the window. */
typedef struct wave_chunk {
    int64_t number;      /* among those touched */
    int64_t first, last; /* its blocks in the list */
} wave_chunk;

/* Blocks of one chunk that are decoded together: a run, or all that are at hand already. */
typedef struct wave_job {
    size_t chunk; /* of the window */
    cv_fetch_run run;
    uint8_t *bytes; /* of the run; NULL: at hand */
} wave_job;

typedef struct wave {
    const cv_walk *walk;
    int64_t next; /* touched chunk, not yet in a window */
    int n_helpers;
    /* The window: read by those who help while the leader reads on. */
    cv_buffer wanted, chunks, wishes, jobs;
    size_t n_wanted, n_chunks, n_jobs;
    size_t n_at_hand;         /* jobs, the first ones */
    cv_buffer ranges, packed; /* of the wave under way, */
    size_t first_job;         /* which is that of its first range */
    size_t failed;            /* range that could not be read */
    cv_worker *worker;        /* the leader's */
    /* Under the lock. */
    cv_mutex lock;
    cv_cond changed;
    cv_buffer ready; /* numbers of jobs, from next_ready on */
    size_t next_ready, n_ready;
    int n_idle, n_busy;
    bool is_led, ended;
    cv_status status; /* of the first failure */
    cv_error error;
} wave;

static wave_chunk *chunk_at(const wave *w, size_t i)
{
    return (wave_chunk *)(void *)w->chunks.data + i;
}

static cv_layout_wish *wish_at(const wave *w, size_t i)
{
    return (cv_layout_wish *)(void *)w->wishes.data + i;
}

static cv_wanted *list_of(const wave *w, size_t chunk)
{
    return (cv_wanted *)(void *)w->wanted.data + chunk_at(w, chunk)->first;
}

static wave_job *job_at(const wave *w, size_t i)
{
    return (wave_job *)(void *)w->jobs.data + i;
}

static cv_store_range *range_at(const wave *w, size_t i)
{
    return (cv_store_range *)(void *)w->ranges.data + i;
}

/* ---- Decoding ---------------------------------------------------------------- */

static cv_status decode(const wave *w, size_t i, cv_worker *worker, cv_error *err)
{
    const wave_job *job = job_at(w, i);
    const cv_source *s = w->walk->source;
    const cv_layout *layout = wish_at(w, job->chunk)->layout;
    bool is_whole = layout->access == CV_ACCESS_CHUNK;
    cv_walk_chunk c;
    cv_fetched fetched = {.layout = layout,
                          .wanted = list_of(w, job->chunk) + job->run.first,
                          .n = job->run.last - job->run.first,
                          .is_placed = job->bytes && !is_whole,
                          .chunk = is_whole ? job->bytes : NULL};
    cv_walk_enter_found(&c, w->walk, chunk_at(w, job->chunk)->number,
                        &wish_at(w, job->chunk)->ref, worker);
    if (fetched.is_placed)
        cv_fetch_place(layout, list_of(w, job->chunk), &job->run, job->bytes);
    CV_TRY(cv_decode_fetched(s->frame, s->snapshot, &c.ref, worker, &fetched, &c.sink, err));
    return cv_walk_check(&c, err);
}

/* ---- Jobs that are handed on ------------------------------------------------- */

/* With the lock. */
static void note_failure(wave *w, cv_status status, const cv_error *error)
{
    if (w->status != CV_OK) return;
    w->status = status;
    w->error = *error;
}

static bool take_ready(wave *w, size_t *job)
{
    if (w->status != CV_OK) w->next_ready = w->n_ready;
    if (w->next_ready == w->n_ready) return false;
    *job = ((size_t *)(void *)w->ready.data)[w->next_ready++];
    return true;
}

/* One job that was handed on; called and left with the lock. */
static void do_ready(wave *w, size_t job, cv_worker *worker)
{
    cv_error error = {0};
    w->n_busy++;
    cv_mutex_unlock(&w->lock);
    cv_status status = decode(w, job, worker, &error);
    cv_mutex_lock(&w->lock);
    if (status != CV_OK) note_failure(w, status, &error);
    if (--w->n_busy == 0) cv_cond_wake_all(&w->changed);
}

static void help(wave *w, cv_worker *worker)
{
    size_t job;
    cv_mutex_lock(&w->lock);
    while (!w->ended) {
        if (take_ready(w, &job)) {
            do_ready(w, job, worker);
            continue;
        }
        w->n_idle++;
        cv_cond_wait(&w->changed, &w->lock);
        w->n_idle--;
    }
    cv_mutex_unlock(&w->lock);
}

/* True: somebody else does the job, or nobody needs to any more. */
static bool hand_on(wave *w, size_t job, cv_status *status, cv_error *err)
{
    size_t most = (size_t)w->n_helpers;
    if (most == 0) return false;
    cv_mutex_lock(&w->lock);
    *status = w->status;
    if (*status != CV_OK && err) *err = w->error;
    bool is_handed = *status == CV_OK && w->n_ready - w->next_ready < most;
    if (is_handed) {
        ((size_t *)(void *)w->ready.data)[w->n_ready++] = job;
        if (w->n_idle > 0) cv_cond_wake_one(&w->changed);
    }
    cv_mutex_unlock(&w->lock);
    return is_handed || *status != CV_OK;
}

static cv_status begin_job(wave *w, size_t job, cv_error *err)
{
    cv_status status = CV_OK;
    if (hand_on(w, job, &status, err)) return status;
    return decode(w, job, w->worker, err);
}

/* All that was handed on is done, or, after a failure, given up. */
static cv_status finish_jobs(wave *w, cv_status status, cv_error *err)
{
    size_t job;
    if (w->n_helpers == 0) return status;
    cv_mutex_lock(&w->lock);
    if (status != CV_OK) note_failure(w, status, err ? err : &w->error);
    while (take_ready(w, &job)) do_ready(w, job, w->worker);
    while (w->n_busy > 0) cv_cond_wait(&w->changed, &w->lock);
    w->next_ready = w->n_ready = 0;
    if (status == CV_OK && w->status != CV_OK) {
        status = w->status;
        if (err) *err = w->error;
    }
    cv_mutex_unlock(&w->lock);
    return status;
}

/* ---- The window -------------------------------------------------------------- */

static cv_status add_chunk(wave *w, const cv_walk_chunk *c, cv_error *err)
{
    int64_t first = (int64_t)w->n_wanted;
    wave_chunk chunk = {w->next, first, first + c->n_wanted};
    cv_layout_wish wish = {.ref = c->ref,
                           .end = cv_source_guess_end(w->walk->source, &c->ref)};
    CV_TRY(cv_buffer_append(&w->wanted, w->worker->wanted,
                            (size_t)c->n_wanted * sizeof(cv_wanted), err));
    CV_TRY(cv_buffer_append(&w->chunks, &chunk, sizeof chunk, err));
    CV_TRY(cv_buffer_append(&w->wishes, &wish, sizeof wish, err));
    w->n_wanted += (size_t)c->n_wanted;
    w->n_chunks++;
    return CV_OK;
}

/* The next touched chunk: delivered as far as it is there, the rest listed. One of more
 * blocks than a window holds, and what is not stored, is done at once. */
static cv_status plan_chunk(wave *w, bool *is_full, cv_error *err)
{
    const cv_source *s = w->walk->source;
    cv_walk_chunk c;
    CV_TRY(cv_walk_enter(&c, w->walk, w->next, w->worker, err));
    CV_TRY(cv_watch_tick(s->watch, 0, err));
    *is_full = w->n_wanted > 0 && (int64_t)w->n_wanted + c.n_blocks > CV_WAVE_BLOCKS;
    if (*is_full) return CV_OK;
    if (c.n_blocks > CV_WAVE_BLOCKS || c.ref.kind != CV_REF_STORED) {
        CV_TRY(cv_walk_blocks(&c, 0, c.n_blocks, err));
    } else {
        CV_TRY(cv_walk_find(&c, err));
        if (c.n_wanted > 0) CV_TRY(add_chunk(w, &c, err));
    }
    w->next++;
    return CV_OK;
}

static size_t most_chunks(const cv_grid *grid)
{
    size_t n = CV_WAVE_HEADS / cv_layout_wave_bytes(grid);
    return n < 1 ? 1 : n < CV_WAVE_CHUNKS ? n : CV_WAVE_CHUNKS;
}

static cv_status plan_window(wave *w, cv_error *err)
{
    size_t most = most_chunks(&w->walk->source->snapshot->grid);
    bool is_full = false;
    w->wanted.size = w->chunks.size = w->wishes.size = w->jobs.size = 0;
    w->n_wanted = w->n_chunks = w->n_jobs = 0;
    while (w->next < w->walk->n_chunks && w->n_chunks < most && !is_full)
        CV_TRY(plan_chunk(w, &is_full, err));
    return CV_OK;
}

/* ---- Runs ---------------------------------------------------------------------- */

static cv_status add_job(wave *w, const wave_job *job, cv_error *err)
{
    CV_TRY(cv_buffer_append(&w->jobs, job, sizeof *job, err));
    w->n_jobs++;
    return CV_OK;
}

/* Nothing of it needs to be read any more. */
static bool is_at_hand(const cv_layout *layout)
{
    return layout->header.special != CV_SPECIAL_NONE || layout->chunk;
}

/* The chunk's blocks, cut into runs. */
static cv_status cut_runs(wave *w, size_t chunk, cv_error *err)
{
    const cv_layout *layout = wish_at(w, chunk)->layout;
    int64_t n = chunk_at(w, chunk)->last - chunk_at(w, chunk)->first;
    cv_wanted *list = list_of(w, chunk);
    wave_job job = {.chunk = chunk, .run = {.last = n}};
    if (is_at_hand(layout)) return add_job(w, &job, err);
    if (layout->access == CV_ACCESS_CHUNK) {
        job.run.size = (size_t)layout->header.cbytes;
        return add_job(w, &job, err);
    }
    cv_fetch_sort(layout, list, n);
    for (; job.run.first < n; job.run.first = job.run.last) {
        cv_fetch_next_run(w->walk->source->frame, layout, list, n, CV_WAVE_RANGE, &job.run);
        CV_TRY(add_job(w, &job, err));
    }
    return CV_OK;
}

/* First those at hand, then those that are read. */
static cv_status cut_jobs(wave *w, cv_error *err)
{
    for (size_t i = 0; i < w->n_chunks; i++)
        if (is_at_hand(wish_at(w, i)->layout)) CV_TRY(cut_runs(w, i, err));
    w->n_at_hand = w->n_jobs;
    for (size_t i = 0; i < w->n_chunks; i++)
        if (!is_at_hand(wish_at(w, i)->layout)) CV_TRY(cut_runs(w, i, err));
    return cv_buffer_reserve(&w->ready, w->n_jobs * sizeof(size_t), err);
}

static cv_status arrived(void *context, size_t range, cv_error *err)
{
    wave *w = context;
    return begin_job(w, w->first_job + range, err);
}

static void note_failed(void *context, size_t range) { ((wave *)context)->failed = range; }

/* Jobs [first_job, last) are read. */
static cv_status read_wave(wave *w, size_t last, size_t size, cv_error *err)
{
    cv_store *store = w->walk->source->frame->store;
    const cv_arrivals arrivals = {arrived, note_failed, w, w->walk->source->watch};
    CV_TRY(cv_buffer_reserve(&w->packed, size, err));
    uint8_t *to = w->packed.data;
    w->ranges.size = 0;
    for (size_t i = w->first_job; i < last; i++) {
        wave_job *job = job_at(w, i);
        const cv_chunk_ref *ref = &wish_at(w, job->chunk)->ref;
        job->bytes = to + CV_BLOCK_PREFIX;
        cv_store_range range = {ref->object, ref->pos + (uint64_t)job->run.start,
                                job->run.size, job->bytes};
        CV_TRY(cv_buffer_append(&w->ranges, &range, sizeof range, err));
        to += CV_BLOCK_PREFIX + job->run.size;
    }
    w->failed = SIZE_MAX;
    cv_status status =
        cv_store_read_wave(store, range_at(w, 0), last - w->first_job, &arrivals, err);
    if (status != CV_OK && w->failed != SIZE_MAX)
        cv_name_chunk(wish_at(w, job_at(w, w->first_job + w->failed)->chunk)->ref.chunk, err);
    return finish_jobs(w, status, err);
}

static size_t most_bytes(const wave *w)
{
    size_t best = cv_store_wave_bytes(w->walk->source->frame->store);
    return best > CV_WAVE_BYTES ? best : CV_WAVE_BYTES;
}

/* What is read goes in waves of so few bytes that memory is bounded. */
static cv_status run_jobs(wave *w, cv_error *err)
{
    CV_TRY(cut_jobs(w, err));
    size_t i = 0;
    for (; i < w->n_at_hand; i++) CV_TRY(begin_job(w, i, err));
    while (i < w->n_jobs) {
        size_t size = 0, most = most_bytes(w);
        for (w->first_job = i; i < w->n_jobs; i++) {
            size_t next = CV_BLOCK_PREFIX + job_at(w, i)->run.size;
            if (i > w->first_job && size + next > most) break;
            size += next;
        }
        CV_TRY(read_wave(w, i, size, err));
    }
    return CV_OK;
}

static cv_status run_window(wave *w, cv_error *err)
{
    const cv_source *s = w->walk->source;
    CV_TRY(plan_window(w, err));
    if (w->n_chunks == 0) return CV_OK;
    CV_TRY(cv_layout_wave(s->frame, s->snapshot, wish_at(w, 0), w->n_chunks, s->watch, err));
    cv_status status = finish_jobs(w, run_jobs(w, err), err);
    cv_layout_wave_release(wish_at(w, 0), w->n_chunks);
    return status;
}

/* ---- Who leads, and who helps ---------------------------------------------------- */

static void lead(wave *w, cv_worker *worker)
{
    cv_error error = {0};
    cv_status status = CV_OK;
    w->worker = worker;
    while (w->next < w->walk->n_chunks && status == CV_OK) status = run_window(w, &error);
    cv_mutex_lock(&w->lock);
    if (status != CV_OK) note_failure(w, status, &error);
    cv_mutex_unlock(&w->lock);
}

static void serve(void *context)
{
    wave *w = context;
    cv_workers *workers = w->walk->source->workers;
    cv_worker *worker = NULL;
    cv_error error = {0};
    cv_mutex_lock(&w->lock);
    bool leads = !w->is_led;
    w->is_led = true;
    cv_mutex_unlock(&w->lock);
    cv_status status = cv_worker_take(workers, &worker, &error);
    if (leads && status == CV_OK) lead(w, worker);
    if (!leads && status == CV_OK) help(w, worker);
    cv_worker_give(workers, worker);
    cv_mutex_lock(&w->lock);
    if (status != CV_OK) note_failure(w, status, &error);
    w->ended = w->ended || leads;
    cv_cond_wake_all(&w->changed);
    cv_mutex_unlock(&w->lock);
}

cv_status cv_wave_run(const cv_walk *walk, int64_t first_chunk, int helpers, cv_error *err)
{
    wave w = {.walk = walk, .next = first_chunk, .n_helpers = helpers};
    cv_mutex_init(&w.lock);
    cv_cond_init(&w.changed);
    cv_pool_run(helpers, serve, &w);
    if (w.status != CV_OK && err) *err = w.error;
    cv_cond_destroy(&w.changed);
    cv_mutex_destroy(&w.lock);
    cv_buffer *buffers[] = {&w.wanted, &w.chunks, &w.wishes, &w.jobs,
                            &w.ranges, &w.packed, &w.ready};
    for (size_t i = 0; i < sizeof buffers / sizeof buffers[0]; i++)
        cv_buffer_free(buffers[i]);
    return w.status;
}

/* ---- Whether ----------------------------------------------------------------- */

/* Of a touched chunk a block in the middle: those at the edges are what the request before
 * may have read, too. */
static bool find_middle(const cv_walk *walk, int64_t k, int64_t *chunk, int64_t *block)
{
    if (walk->request.box) {
        cv_chunk_job job;
        cv_block_job middle;
        cv_plan_chunk(walk->request.box, k, &job);
        cv_plan_block(walk->request.box, &job, job.n_blocks / 2, &middle);
        *chunk = job.chunk;
        *block = middle.block;
        return true;
    }
    const cv_select_plan *plan = walk->request.selection;
    cv_select_chunk job;
    cv_select_block middle;
    plan->ops->chunk(plan, k, &job);
    if (job.n_blocks == 0) return false;
    plan->ops->block(plan, &job, job.n_blocks / 2, &middle);
    *chunk = job.chunk;
    *block = middle.block;
    return true;
}

static bool is_near(const cv_walk *walk, int64_t k)
{
    const cv_source *s = walk->source;
    cv_chunk_ref ref;
    int64_t chunk, block;
    if (!find_middle(walk, k, &chunk, &block)) return true;
    if (cv_source_find(s, chunk, &ref, NULL) != CV_OK) return true;
    if (ref.kind != CV_REF_STORED) return true;
    uint64_t pos = ref.pos;
    cv_layout *layout = cv_layout_find(s->frame->layouts, s->snapshot, &ref);
    if (layout && layout->n_blocks > 0) pos += (uint64_t)layout->blocks[block].start;
    cv_layout_release(layout);
    return cv_store_is_near(s->frame->store, ref.object, pos);
}

bool cv_wave_is_worth(const cv_walk *walk, int64_t first_chunk)
{
    const cv_store *store = walk->source->frame->store;
    if (store->is_far) return true;
    if (!store->ops->is_near || walk->bytes < CV_LEAST_WAVE || walk->n_blocks < 2)
        return false;
    return !is_near(walk, first_chunk + (walk->n_chunks - first_chunk) / 2);
}
