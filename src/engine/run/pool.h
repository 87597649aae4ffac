/* The thread pool: one for the process, started at first need, never more
 * threads than the largest request asked for. Safe across fork: a child begins
 * without threads and starts its own. */
#ifndef CV_ENGINE_POOL_H
#define CV_ENGINE_POOL_H

#include "base/status.h"
#include "base/thread.h"
#include "base/watch.h"

#include <stdatomic.h>

/* Runs `body(context)` on the calling thread and, as they become free, on up
 * to `helpers` pool threads at once; returns when all who began have returned.
 * A body takes its jobs from something shared, such as a cv_job_queue, so it
 * does not matter how many threads come. Runs on fewer threads, at worst on the
 * caller alone, when threads cannot be started. While the caller waits for the others it
 * asks the watch, which may be NULL: CATERVA_ESTOPPED when that said stop, which the bodies
 * hear as well. */
cv_status cv_pool_run(int helpers, void (*body)(void *context), void *context,
                      cv_watch *watch, cv_error *err);

/* What the thread of a step calls when the step is over: neither a fork nor who withdraws
 * the job waits for it, and it may take any lock, so it may be a caller's function. */
typedef struct cv_pool_after {
    void (*call)(void *context); /* NULL: nothing */
    void *context;
} cv_pool_after;

/* Work in the background, in memory of the caller's that is zero but for what the
 * caller fills in: `step` is called on pool threads, up to `most` of them at once,
 * again and again until it returns false. Requests come first: between two steps a
 * thread looks for one, so steps should be short. */
typedef struct cv_pool_job {
    bool (*step)(void *context, cv_pool_after *after);
    void *context;
    int most;
    /* The pool's, under its lock. */
    struct cv_pool_job *next;
    unsigned n_posts;
    unsigned process; /* that posted it: a child has none of its parent's jobs */
    int running;      /* steps under way */
    bool done;        /* no further step begins */
    atomic_bool posted;
} cv_pool_job;

/* Has steps begin, or go on when the last ones are finding nothing to do just now.
 * Without a thread none does. A fork waits for steps under way; in the child there are
 * none until the job is posted there. */
void cv_pool_post(cv_pool_job *job);

/* Returns when no step is under way, and none will begin until the next post. For
 * who is no step of the job itself, one thread at a time; cheap when all is done. */
void cv_pool_withdraw(cv_pool_job *job);

/* Returns when no step of any job is under way, or none has ended for 10 s, or the
 * caller may be waited for itself; has none begin, and no thread come to a body, until it is resumed, as often
 * as it was held. A child of fork holds nothing. A fork does the same. */
void cv_pool_hold_steps(void);
void cv_pool_resume_steps(void);

/* Jobs posted and not finished. */
int cv_pool_n_jobs(void);

/* The pool's lock, for what jobs keep beside it: held for moments, around no other call of
 * the pool but these, it is free in every child of fork. */
void cv_pool_lock(void);
void cv_pool_unlock(void);
void cv_pool_wait(cv_cond *changed);
unsigned cv_pool_process(void); /* another number in a child of fork than in its parent */

/* The same as cv_pool_post, for who has the lock. False: the pool has no thread and could
 * start none. */
bool cv_pool_post_locked(cv_pool_job *job);

/* Jobs 0..n-1, handed out once each. Who asked for them takes the first ones, and who helps
 * the last: where the same is done again and again, each of two threads comes to the same
 * jobs mostly, whose memory its core has.
 *
 * A job that finds its bytes wrong (CATERVA_ECORRUPT, CATERVA_EUNSUPPORTED) keeps those behind
 * it from being begun, and not those before it: of several such jobs the first one is told,
 * however many threads there are. Any other failure ends it all. */
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
