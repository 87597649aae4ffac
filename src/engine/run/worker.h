/* Workers: codec contexts and scratch memory. A worker belongs to one thread at a time; an
 * array keeps the idle ones, so that a request in the steady state allocates nothing. */
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
    cv_encoder *encoder; /* made at first need: cv_worker_encoder */
    cv_layout_memo layouts;
    cv_buffer packed;    /* compressed blocks as fetched */
    cv_buffer block;     /* one decoded block */
    cv_buffer chunk;     /* one decoded chunk, in stored order */
    cv_buffer converted; /* one decoded block in another type */
    cv_buffer encoded;   /* one encoded chunk, or the new streams of one */
    cv_buffer head;      /* its header and block starts */
    cv_buffer pieces;    /* and what it is made of: a list of cv_piece */
    cv_buffer sums;      /* checksums of its blocks, uint32_t */
    cv_buffer table;     /* its block table */
    cv_wanted *wanted;   /* cv_worker_wanted */
    int64_t max_wanted;
    const cv_staged *staged; /* what of the job's chunks was read ahead; NULL: nothing */
    cv_watch *watch;         /* who hears of the job at work; set by the job, NULL: nobody */
    struct cv_worker *next;
} cv_worker;

/* A thread finds the worker it gave back in a slot that few others use. */
typedef struct cv_worker_slot {
    _Atomic(cv_worker *) idle;
    char apart[64 - sizeof(void *)]; /* no two slots in one cache line */
} cv_worker_slot;

enum { CV_WORKER_SLOTS = 16 };

typedef struct cv_workers {
    cv_worker_slot slots[CV_WORKER_SLOTS];
    cv_mutex lock; /* of `idle`: those who found their slot full */
    cv_worker *idle;
    cv_codec_spec spec;
    cv_buffer geometry; /* what spec borrows */
    cv_cache *cache;    /* of decoded blocks, or NULL; borrowed */
    atomic_int n_whole; /* reads that wanted all of the array and had to decode; up to 2 */
} cv_workers;

/* For chunks as `snapshot` describes them. */
cv_status cv_workers_init(cv_workers *workers, const cv_snapshot *snapshot, cv_error *err);
void cv_workers_destroy(cv_workers *workers);

/* Exchanges contents but for the cache; nobody may be using either. */
void cv_workers_swap(cv_workers *a, cv_workers *b);

/* An idle worker or a new one; give it back when done. Any thread. */
cv_status cv_worker_take(cv_workers *workers, cv_worker **out, cv_error *err);
void cv_worker_give(cv_workers *workers, cv_worker *worker); /* NULL is fine */

/* One job of a request, on whichever thread takes it. */
typedef cv_status (*cv_job_fn)(void *context, int64_t job, cv_worker *worker, cv_error *err);

/* The threads for a request's jobs, and the watch asked while the calling thread waits for
 * them. */
typedef struct cv_crew {
    cv_workers *workers;
    int helpers;
    cv_watch *watch; /* or NULL */
} cv_crew;

/* Runs jobs 0..n-1, each once, on the calling thread and up to `helpers` others, each with
 * a worker. A failure ends it and is returned; for wrong bytes that of the first job, see
 * cv_job_queue. Between jobs the watch is asked. */
cv_status cv_workers_run(const cv_crew *crew, int64_t n, cv_job_fn job, void *context,
                         cv_error *err);

/* The worker's encoder. */
cv_status cv_worker_encoder(const cv_workers *workers, cv_worker *worker, cv_encoder **out,
                            cv_error *err);

/* Room for `n` wanted blocks. */
cv_status cv_worker_wanted(cv_worker *worker, int64_t n, cv_error *err);

/* ---- The queue behind cv_workers_run; here for tests ---- */

/* Hands out jobs 0..n-1 once each: the first ones to the caller, the last to helpers, so
 * that on repetition each thread's core has its jobs' memory. A job with wrong bytes
 * (CATERVA_ECORRUPT, CATERVA_EUNSUPPORTED) stops later ones only, so that the first such
 * job is reported whatever the threads. Other failures stop all. */
typedef struct cv_job_queue {
    atomic_int_least64_t taken, last; /* in all, and of the last ones */
    atomic_int_least64_t end;         /* jobs from here on are not begun any more */
    int64_t n_jobs, first;            /* first: those of the one who asked */
    cv_thread owner;
    cv_mutex lock; /* of what follows */
    int64_t failed_job;
    cv_status status;
    cv_error error;
} cv_job_queue;

/* Called by who asked for the jobs, and who destroys it when all bodies have returned. */
void cv_job_queue_init(cv_job_queue *queue, int64_t n_jobs);
void cv_job_queue_destroy(cv_job_queue *queue);

/* The next job, or false: none left that should be begun. */
bool cv_job_queue_next(cv_job_queue *queue, int64_t *job);

/* Records how a job failed. True: there may be more to do. */
bool cv_job_queue_fail(cv_job_queue *queue, int64_t job, cv_status status,
                       const cv_error *error);

/* After all bodies returned: CV_OK, or the failure that counts copied to `err`. */
cv_status cv_job_queue_result(const cv_job_queue *queue, cv_error *err);

#endif
