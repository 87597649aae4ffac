/* The thread pool: one for the process, started at first need, never more
 * threads than the largest request asked for. Safe across fork: a child begins
 * without threads and starts its own. */
#ifndef CV_ENGINE_RUN_POOL_H
#define CV_ENGINE_RUN_POOL_H

#include "base/status.h"
#include "base/thread.h"
#include "base/watch.h"

#include <stdatomic.h>

/* Runs `body(context)` on the calling thread and, as they become free, on up
 * to `helpers` pool threads at once; returns when all who began have returned.
 * A body takes its jobs from something shared (see cv_workers_run), so it
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

/* The first member of what it is about. Its list uses it until `free` is called; others, who
 * cancel it or wait for it, see to it that it is there. */
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

/* Cancels all; returns when no function of theirs is being called, nor will be: what is
 * waiting is told here. A function that is being told on this very thread is not waited
 * for. None can be added from then on. */
void cv_errands_close(cv_errands *list);

/* One errand, or a chain of them by `next`, each with its functions and its list set, and all
 * else zero. All are added, or none: then they are the caller's as before. None begins before
 * all are added. The statuses are CATERVA_ESTOPPED: a list is closed, and CATERVA_ENOMEM: there
 * is no thread for it. Any thread, also beside a writer. */
cv_status cv_errands_add(cv_errand *first, cv_error *err);

/* For who has the handle alone: after the one none is running, after the other, which does
 * nothing where nobody has suspended the list, they go on. */
void cv_errands_suspend(cv_errands *list);
void cv_errands_resume(cv_errands *list);

/* Suspended, runs those that are waiting, on this thread; and tells their ends, after
 * resume. */
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
