/* Work for the pool: a queue whose jobs are counted, and a background job that is done in
 * steps. Functions for threads and forked children do not assert, since cmocka cannot
 * there. */
#ifndef TEST_POOL_WORK_H
#define TEST_POOL_WORK_H

#include "engine/run/pool.h"
#include "engine/run/worker.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { N_JOBS = 1000, HANG_SECONDS = 120 };

typedef struct counting {
    cv_job_queue queue;
    atomic_int done[N_JOBS];
    atomic_int bodies;
    int fail_at; /* -1: never */
} counting;

static inline void count_jobs(void *context)
{
    counting *c = context;
    int64_t job;
    atomic_fetch_add(&c->bodies, 1);
    while (cv_job_queue_next(&c->queue, &job)) {
        atomic_fetch_add(&c->done[job], 1);
        if (job != c->fail_at) continue;
        cv_error err;
        cv_job_queue_fail(&c->queue, job, cv_fail(&err, CATERVA_EIO, job, "job %d", (int)job),
                          &err);
    }
}

static inline void free_counting(counting *c)
{
    cv_job_queue_destroy(&c->queue);
    free(c);
}

/* Returns false if a job was not done exactly once. For threads and children, where cmocka
 * cannot assert. */
static inline bool all_done_once(counting *c)
{
    for (int i = 0; i < N_JOBS; i++)
        if (atomic_load(&c->done[i]) != 1) return false;
    return cv_job_queue_result(&c->queue, NULL) == CV_OK;
}

/* `c` must be empty. */
static inline bool run_in(counting *c, int helpers)
{
    cv_job_queue_init(&c->queue, N_JOBS);
    c->fail_at = -1;
    (void)cv_pool_run(helpers, count_jobs, c, NULL, NULL);
    return all_done_once(c) && atomic_load(&c->bodies) >= 1 &&
           atomic_load(&c->bodies) <= (helpers > 0 ? helpers : 0) + 1;
}

static inline bool run_once(int helpers)
{
    counting *c = calloc(1, sizeof *c);
    if (!c) return false;
    bool good = run_in(c, helpers);
    free_counting(c);
    return good;
}

/* ---- In the background ---------------------------------------------------------- */

typedef struct chore {
    cv_pool_job job;
    atomic_int left; /* steps */
    atomic_int inside, most_inside;
    atomic_bool endless;
} chore;

static inline bool do_step(void *context, cv_pool_after *after)
{
    chore *c = context;
    (void)after;
    int inside = atomic_fetch_add(&c->inside, 1) + 1;
    if (inside > atomic_load(&c->most_inside)) atomic_store(&c->most_inside, inside);
    bool any = atomic_load(&c->endless);
    for (int left = atomic_load(&c->left); left > 0 && !any;)
        any = atomic_compare_exchange_weak(&c->left, &left, left - 1);
    if (any) usleep(10);
    atomic_fetch_sub(&c->inside, 1);
    return any;
}

static inline void init_chore(chore *c, int most)
{
    memset(c, 0, sizeof *c);
    c->job = (cv_pool_job){.step = do_step, .context = c, .most = most};
}

static inline bool wait_until_done(chore *c)
{
    for (int i = 0; i < 60000; i++) {
        if (atomic_load(&c->left) == 0 && !atomic_load(&c->job.posted)) return true;
        usleep(1000);
    }
    return false;
}

#endif
