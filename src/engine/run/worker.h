/* Workers: codec contexts and scratch memory. A worker belongs to one thread at a time. An
 * array keeps idle workers, so that repeated requests allocate nothing. */
#ifndef CV_ENGINE_RUN_WORKER_H
#define CV_ENGINE_RUN_WORKER_H

#include "base/thread.h"
#include "base/watch.h"
#include "codec/encode.h"
#include "engine/cache/cache.h"
#include "frame/fetch.h"

#include <stdatomic.h>

typedef struct cv_worker {
    cv_decoder *decoder;
    cv_encoder *encoders[CV_N_PIPELINES]; /* created on first use: cv_worker_encoder */
    cv_layout_memo layouts;
    cv_buffer packed;    /* compressed blocks as fetched */
    cv_buffer block;     /* one decoded block */
    cv_buffer chunk;     /* one decoded chunk, in stored order */
    cv_buffer converted; /* one decoded block in another type */
    cv_buffer encoded;   /* one encoded chunk, or the new streams of one */
    cv_buffer head;      /* header and block starts of the encoded chunk */
    cv_buffer pieces;    /* parts of the encoded chunk: a list of cv_piece */
    cv_buffer sums;      /* checksums of the encoded blocks, uint32_t */
    cv_buffer table;     /* block table of the encoded chunk */
    cv_buffer sample;    /* blocks encoded to choose the pipeline */
    cv_wanted *wanted;   /* list of blocks to fetch */
    int64_t max_wanted;
    const cv_staged *staged; /* chunks of the job that were read ahead; NULL: none */
    cv_watch *watch;         /* set by the running job; or NULL */
    struct cv_worker *next;
} cv_worker;

/* A place for an idle worker. Few other threads use the same slot, so a thread usually finds the
 * worker that it gave back. */
typedef struct cv_worker_slot {
    _Atomic(cv_worker *) idle;
    char apart[64 - sizeof(void *)]; /* pads to one cache line */
} cv_worker_slot;

enum { CV_WORKER_SLOTS = 16 };

typedef struct cv_workers {
    cv_worker_slot slots[CV_WORKER_SLOTS];
    cv_mutex lock; /* protects `idle`: workers whose slot was occupied */
    cv_worker *idle;
    cv_codec_spec spec;
    cv_buffer geometry; /* borrowed by `spec` */
    cv_cache *cache;    /* of decoded blocks, or NULL; borrowed */
    atomic_int n_whole; /* reads of the whole array that had to decode; counts up to 2 */
} cv_workers;

/* Initialises workers that decode and encode chunks of `snapshot`. */
cv_status cv_workers_init(cv_workers *workers, const cv_snapshot *snapshot, cv_error *err);
void cv_workers_destroy(cv_workers *workers);

/* Swaps all contents except the cache. No thread may be using either. */
void cv_workers_swap(cv_workers *a, cv_workers *b);

/* Takes an idle worker or creates one; return it with cv_worker_give. Any thread. */
cv_status cv_worker_take(cv_workers *workers, cv_worker **out, cv_error *err);
void cv_worker_give(cv_workers *workers, cv_worker *worker); /* NULL is fine */

/* Runs one job of a request, on any thread. */
typedef cv_status (*cv_job_fn)(void *context, int64_t job, cv_worker *worker, cv_error *err);

/* The threads for the jobs of a request. The calling thread polls the watch while it waits. */
typedef struct cv_crew {
    cv_workers *workers;
    int helpers;
    cv_watch *watch; /* or NULL */
} cv_crew;

/* Runs jobs 0..n-1, each once, on the calling thread and up to `helpers` others, each with a
 * worker. Stops at a failure and returns it. If data is corrupt, returns the failure of the first
 * such job (see cv_job_queue). Polls the watch between jobs. */
cv_status cv_workers_run(const cv_crew *crew, int64_t n, cv_job_fn job, void *context,
                         cv_error *err);

/* Returns the worker's encoder for that pipeline, and creates it if necessary. */
cv_status cv_worker_encoder(const cv_workers *workers, cv_worker *worker,
                            cv_pipeline pipeline, cv_encoder **out, cv_error *err);

/* Makes room for `n` entries in `wanted`. */
cv_status cv_worker_wanted(cv_worker *worker, int64_t n, cv_error *err);

/* ---- The queue behind cv_workers_run, declared for tests --- */

/* Hands out each of the jobs 0..n-1 once: the first ones to the calling thread, the last ones to
 * helpers. So in a repeated request a thread gets the same jobs, whose memory its core has cached.
 * Corrupt data (CATERVA_ECORRUPT, CATERVA_EUNSUPPORTED) stops only later jobs, so that the first
 * such job is reported whatever the number of threads. Other failures stop all jobs. */
typedef struct cv_job_queue {
    atomic_int_least64_t taken, last; /* taken jobs: in all, and from the end */
    atomic_int_least64_t end;         /* jobs from here on are not started */
    int64_t n_jobs, first;            /* `first`: the next job of the calling thread */
    cv_thread owner;
    cv_mutex lock; /* protects the members below */
    int64_t failed_job;
    cv_status status;
    cv_error error;
} cv_job_queue;

/* The owner calls both. It destroys the queue after all bodies have returned. */
void cv_job_queue_init(cv_job_queue *queue, int64_t n_jobs);
void cv_job_queue_destroy(cv_job_queue *queue);

/* Takes the next job. False: no job is left to start. */
bool cv_job_queue_next(cv_job_queue *queue, int64_t *job);

/* Records the failure of a job. Returns true if the thread must go on with earlier jobs. */
bool cv_job_queue_fail(cv_job_queue *queue, int64_t job, cv_status status,
                       const cv_error *error);

/* After all bodies returned: CV_OK, or the recorded failure, copied to `err`. */
cv_status cv_job_queue_result(const cv_job_queue *queue, cv_error *err);

#endif
