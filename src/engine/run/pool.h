/* The thread pool: one for the process, started at first need, never more
 * threads than the largest request asked for. Safe across fork: a child begins
 * without threads and starts its own. */
#ifndef CV_ENGINE_RUN_POOL_H
#define CV_ENGINE_RUN_POOL_H

#include "base/status.h"
#include "base/thread.h"
#include "base/watch.h"

#include <stdatomic.h>

/* Runs `body(context)` on the calling thread and up to `helpers` pool threads as they
 * become free; returns when all have. Bodies take jobs from something shared (see
 * cv_workers_run), so fewer threads suffice, at worst none. While waiting it asks the watch
 * (or NULL): CATERVA_ESTOPPED, also for the bodies. */
cv_status cv_pool_run(int helpers, void (*body)(void *context), void *context,
                      cv_watch *watch, cv_error *err);

/* Called on a step's thread after the step; neither forks nor withdrawal wait for it, so it
 * may take any lock and be a caller's function. */
typedef struct cv_pool_after {
    void (*call)(void *context); /* NULL: nothing */
    void *context;
} cv_pool_after;

/* Background work in the caller's memory, zero but for its fields: `step` runs on up to
 * `most` pool threads until it returns false. Requests come first, between steps, so steps
 * should be short. */
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

/* Begins or continues steps, also if the last ones just found nothing; none without
 * threads. A fork waits for steps; a child has none until the job is posted there. */
void cv_pool_post(cv_pool_job *job);

/* Returns when no step is under way or will begin before the next post. Not for steps of
 * the job; one thread at a time; cheap when done. */
void cv_pool_withdraw(cv_pool_job *job);

/* Returns when no step of any job is under way, or none has ended for 10 s, or the
 * caller may be waited for itself; has none begin, and no thread come to a body, until it is resumed, as often
 * as it was held. A child of fork holds nothing. A fork does the same. */
void cv_pool_hold_steps(void);
void cv_pool_resume_steps(void);

/* Jobs posted and not finished. */
int cv_pool_n_jobs(void);

/* ---- Errands ----
 *
 * Work whose caller does not wait for it, and whose end is reported once. A handle has a list of them; pool threads take the first one, as steps of a job.
 *
 *     add        first ... last         a step            the end
 *   ------->  [ waiting | waiting ] -> [ running ] -> [ told | over ]
 *                 ^ cancelled ones go first               ^ no lock of ours is held
 *
 * What an errand does needs what readers need: that nobody writes through the handle
 * meanwhile. It takes no lock for it, on which a pool thread would wait that the writer
 * may want; who has the handle alone suspends the list. The end is told when the step is
 * over: it is a caller's function, which may take any time and any lock.
 *
 * A child of fork has none of its parent's errands: they are told in the parent. */

typedef enum cv_errand_state {
    CV_ERRAND_WAITING,
    CV_ERRAND_RUNNING,
    CV_ERRAND_DONE, /* by who settled the list, and not told yet */
    CV_ERRAND_TELLING,
    CV_ERRAND_OVER
} cv_errand_state;

/* First member of its subject. The list uses it until `free`; others must keep it alive to
 * cancel or wait. */
typedef struct cv_errand {
    void (*run)(struct cv_errand *errand);  /* looks at `watch` first, and now and then */
    void (*tell)(struct cv_errand *errand); /* may be NULL */
    void (*free)(struct cv_errand *errand); /* once, and the last thing: it is over */
    cv_watch watch;                         /* says stop when the errand is cancelled */
    /* The list's, under the pool's lock. */
    struct cv_errands
        *list; /* that it is added to; NULL: over, or nobody waits for its end */
    struct cv_errand *before, *next;
    cv_errand_state state;
    cv_thread teller;
    cv_cond over;
} cv_errand;

typedef struct cv_errands {
    cv_pool_job job;
    atomic_bool is_used; /* there has been one */
    atomic_int n_open;   /* waiting or running */
    atomic_bool is_held; /* somebody has the handle alone: none begins */
    /* Under the pool's lock. */
    unsigned process; /* whose errands they are */
    bool is_closed;
    cv_errand *first, *last; /* waiting */
    cv_errand *busy;         /* running, done or being told, in no order */
    cv_cond calm;            /* one of those is over */
} cv_errands;

/* At most `most` at once, at least one. */
void cv_errands_init(cv_errands *list, int most);

/* Cancels all; returns when no function of theirs runs or will: waiting ones end here. Does
 * not wait for one running on this thread. Adding fails from then on. */
void cv_errands_close(cv_errands *list);

/* One errand, or a chain of them by `next`, each with its functions and its list set, and all
 * else zero. All are added, or none: then they are the caller's as before. None begins before
 * all are added. The statuses are CATERVA_ESTOPPED: a list is closed, and CATERVA_ENOMEM: there
 * is no thread for it. Any thread, also beside a writer. */
cv_status cv_errands_add(cv_errand *first, cv_error *err);

/* For the exclusive user of the handle: stops all running ones; resumes, if suspended. */
void cv_errands_suspend(cv_errands *list);
void cv_errands_resume(cv_errands *list);

/* Suspended, runs the waiting ones here, and reports their ends after resume. */
void cv_errands_settle(cv_errands *list);
void cv_errands_tell_settled(cv_errands *list);

/* Has it end soon, with whatever it makes of a watch that says stop. */
void cv_errand_cancel(cv_errand *errand);

/* Returns when the end has been told, or, within the function that tells it, at once; in a
 * child of fork at once as well, when it was the parent's: then it may not have run. False
 * in a function that tells of another one and may be what this one is waiting for. */
bool cv_errand_wait(cv_errand *errand);

/* In the function that tells its end. */
bool cv_errand_is_told_here(const cv_errand *errand);

#endif
