/* Room: engine/run. Keeps codec contexts and scratch memory between requests, and runs the
 * jobs of a request on the pool. */
#include "engine/run/worker.h"

#include "base/heap.h"
#include "engine/run/pool.h"

#include <string.h>

cv_status cv_workers_init(cv_workers *workers, const cv_snapshot *snapshot, cv_error *err)
{
    *workers = (cv_workers){.idle = NULL};
    for (int i = 0; i < CV_WORKER_SLOTS; i++) atomic_init(&workers->slots[i].idle, NULL);
    cv_mutex_init(&workers->lock);
    return cv_frame_codec_spec(snapshot, &workers->geometry, &workers->spec, err);
}

static void free_worker(cv_worker *worker)
{
    if (!worker) return;
    cv_decoder_free(worker->decoder);
    for (int i = 0; i < CV_N_PIPELINES; i++) cv_encoder_free(worker->encoders[i]);
    cv_layout_memo_free(&worker->layouts);
    cv_buffer_free(&worker->packed);
    cv_buffer_free(&worker->block);
    cv_buffer_free(&worker->chunk);
    cv_buffer_free(&worker->converted);
    cv_buffer_free(&worker->encoded);
    cv_buffer_free(&worker->head);
    cv_buffer_free(&worker->pieces);
    cv_buffer_free(&worker->sums);
    cv_buffer_free(&worker->table);
    cv_buffer_free(&worker->sample);
    cv_free(worker->wanted);
    cv_free(worker);
}

void cv_workers_destroy(cv_workers *workers)
{
    for (int i = 0; i < CV_WORKER_SLOTS; i++)
        free_worker(atomic_load(&workers->slots[i].idle));
    while (workers->idle) {
        cv_worker *next = workers->idle->next;
        free_worker(workers->idle);
        workers->idle = next;
    }
    cv_buffer_free(&workers->geometry);
    cv_mutex_destroy(&workers->lock);
}

void cv_workers_swap(cv_workers *a, cv_workers *b)
{
    for (int i = 0; i < CV_WORKER_SLOTS; i++) {
        cv_worker *in_slot = atomic_load(&a->slots[i].idle);
        atomic_store(&a->slots[i].idle, atomic_load(&b->slots[i].idle));
        atomic_store(&b->slots[i].idle, in_slot);
    }
    cv_worker *idle = a->idle;
    cv_codec_spec spec = a->spec;
    cv_buffer geometry = a->geometry;
    a->idle = b->idle;
    a->spec = b->spec;
    a->geometry = b->geometry;
    b->idle = idle;
    b->spec = spec;
    b->geometry = geometry;
}

static cv_status new_worker(const cv_workers *workers, cv_worker **out, cv_error *err)
{
    cv_worker *worker = cv_calloc(1, sizeof *worker);
    if (!worker) return cv_fail_memory(err, sizeof *worker, "a worker");
    enum { LARGE = 16 << 20 }; /* larger buffers are made when a block is decoded */
    size_t size = (size_t)workers->spec.block_bytes;
    cv_status status = cv_decoder_create(&workers->spec, &worker->decoder, err);
    if (status == CV_OK && size <= LARGE)
        status = cv_buffer_resize(&worker->block, size, err);
    if (status != CV_OK) {
        free_worker(worker);
        return status;
    }
    *out = worker;
    return CV_OK;
}

static size_t own_slot(void)
{
    uint64_t self = (uint64_t)cv_thread_number();
    return self * UINT64_C(0x9e3779b97f4a7c15) >> 32 & (CV_WORKER_SLOTS - 1);
}

cv_status cv_worker_take(cv_workers *workers, cv_worker **out, cv_error *err)
{
    size_t own = own_slot();
    for (size_t i = 0; i < CV_WORKER_SLOTS; i++) { /* its own slot first */
        cv_worker_slot *slot = &workers->slots[(own + i) % CV_WORKER_SLOTS];
        if (!atomic_load_explicit(&slot->idle, memory_order_relaxed)) continue;
        *out = atomic_exchange_explicit(&slot->idle, NULL, memory_order_acquire);
        if (*out) return CV_OK;
    }
    cv_mutex_lock(&workers->lock);
    cv_worker *worker = workers->idle;
    if (worker) workers->idle = worker->next;
    cv_mutex_unlock(&workers->lock);
    if (!worker) return new_worker(workers, out, err);
    *out = worker;
    return CV_OK;
}

void cv_worker_give(cv_workers *workers, cv_worker *worker)
{
    if (!worker) return;
    worker->watch = NULL;
    cv_worker *empty = NULL;
    if (atomic_compare_exchange_strong_explicit(&workers->slots[own_slot()].idle, &empty,
                                                worker, memory_order_release,
                                                memory_order_relaxed))
        return;
    cv_mutex_lock(&workers->lock);
    worker->next = workers->idle;
    workers->idle = worker;
    cv_mutex_unlock(&workers->lock);
}

cv_status cv_worker_encoder(const cv_workers *workers, cv_worker *worker,
                            cv_pipeline pipeline, cv_encoder **out, cv_error *err)
{
    cv_codec_spec spec = cv_codec_with(&workers->spec, pipeline);
    cv_encoder **encoder = &worker->encoders[pipeline];
    if (!*encoder) CV_TRY(cv_encoder_create(&spec, encoder, err));
    *out = *encoder;
    return CV_OK;
}

cv_status cv_worker_wanted(cv_worker *worker, int64_t n, cv_error *err)
{
    if (n <= worker->max_wanted) return CV_OK;
    size_t old = (size_t)worker->max_wanted * sizeof worker->wanted[0];
    size_t size = (size_t)n * sizeof worker->wanted[0];
    cv_wanted *grown = cv_realloc(worker->wanted, old, size);
    if (!grown) return cv_fail_memory(err, size, "a list of blocks");
    worker->wanted = grown;
    worker->max_wanted = n;
    return CV_OK;
}

/* ---- Job queues --------------------------------------------------------- */

void cv_job_queue_init(cv_job_queue *queue, int64_t n_jobs)
{
    atomic_init(&queue->taken, 0);
    atomic_init(&queue->last, 0);
    atomic_init(&queue->end, n_jobs);
    queue->first = 0;
    queue->owner = cv_thread_self();
    queue->n_jobs = n_jobs;
    queue->failed_job = n_jobs;
    queue->status = CV_OK;
    cv_mutex_init(&queue->lock);
    memset(&queue->error, 0, sizeof queue->error);
}

void cv_job_queue_destroy(cv_job_queue *queue) { cv_mutex_destroy(&queue->lock); }

bool cv_job_queue_next(cv_job_queue *queue, int64_t *job)
{
    bool is_owner = cv_thread_is_self(queue->owner);
    for (;;) {
        int64_t end = atomic_load_explicit(&queue->end, memory_order_relaxed);
        if (end == 0 || (is_owner && queue->first >= end)) return false;
        if (atomic_fetch_add_explicit(&queue->taken, 1, memory_order_relaxed) >=
            queue->n_jobs)
            return false;
        *job = is_owner
                   ? queue->first++
                   : queue->n_jobs - 1 -
                         atomic_fetch_add_explicit(&queue->last, 1, memory_order_relaxed);
        if (*job < end) return true;
    }
}

bool cv_job_queue_fail(cv_job_queue *queue, int64_t job, cv_status status,
                       const cv_error *error)
{
    bool goes_on = cv_is_doubtful(status);
    if (!goes_on) job = -1;
    cv_mutex_lock(&queue->lock);
    if (job < queue->failed_job) {
        queue->failed_job = job;
        queue->status = status;
        queue->error = *error;
        atomic_store(&queue->end, goes_on ? job : 0);
    }
    cv_mutex_unlock(&queue->lock);
    return goes_on;
}

cv_status cv_job_queue_result(const cv_job_queue *queue, cv_error *err)
{
    if (queue->status != CV_OK && err) *err = queue->error;
    return queue->status;
}

/* ---- Jobs --------------------------------------------------------------- */

typedef struct request {
    cv_workers *workers;
    cv_job_fn job;
    void *context;
    cv_job_queue queue;
} request;

static void serve(void *context)
{
    request *r = context;
    cv_worker *worker = NULL;
    cv_error error = {0};
    cv_status status = cv_worker_take(r->workers, &worker, &error);
    int64_t job = 0;
    bool goes_on = status == CV_OK || cv_job_queue_fail(&r->queue, job, status, &error);
    while (goes_on && cv_job_queue_next(&r->queue, &job)) {
        status = cv_watch_tick(worker->watch, 0, &error);
        if (status == CV_OK) status = r->job(r->context, job, worker, &error);
        if (status != CV_OK) goes_on = cv_job_queue_fail(&r->queue, job, status, &error);
    }
    cv_worker_give(r->workers, worker);
}

cv_status cv_workers_run(const cv_crew *crew, int64_t n, cv_job_fn job, void *context,
                         cv_error *err)
{
    if (crew->helpers <= 0) {
        cv_worker *worker;
        CV_TRY(cv_worker_take(crew->workers, &worker, err));
        cv_status status = CV_OK;
        for (int64_t i = 0; i < n && status == CV_OK; i++) {
            status = cv_watch_tick(worker->watch, 0, err);
            if (status == CV_OK) status = job(context, i, worker, err);
        }
        cv_worker_give(crew->workers, worker);
        return status;
    }
    request r = {.workers = crew->workers, .job = job, .context = context};
    cv_job_queue_init(&r.queue, n);
    cv_status stopped = cv_pool_run(crew->helpers, serve, &r, crew->watch, err);
    cv_status status = cv_job_queue_result(&r.queue, err);
    cv_job_queue_destroy(&r.queue);
    return status != CV_OK ? status : stopped;
}
