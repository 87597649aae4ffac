/* The thread pool of the process. Threads are started at first need, never more than the largest
 * request asked for. Safe across fork: a child begins without threads and starts its own. */
#ifndef CV_ENGINE_RUN_POOL_H
#define CV_ENGINE_RUN_POOL_H

#include "base/status.h"
#include "base/thread.h"
#include "base/watch.h"

#include <stdatomic.h>

/* Runs `body(context)` on the calling thread and on up to `helpers` pool threads as they become
 * free. Returns when all bodies have returned. Bodies take their work from a shared queue (see
 * cv_workers_run), so fewer helpers, or none, do the same work. While it waits, polls the watch (or
 * NULL); CATERVA_ESTOPPED if the watch is stopped. */
cv_status cv_pool_run(int helpers, void (*body)(void *context), void *context,
                      cv_watch *watch, cv_error *err);

/* A function that is called after a step, on the same thread. Neither fork nor cv_pool_withdraw
 * waits for it, so it may take any lock and may be a callback of the program. */
typedef struct cv_pool_after {
    void (*call)(void *context); /* NULL: nothing */
    void *context;
} cv_pool_after;

/* Background work, in memory of the caller, who sets `step`, `context` and `most`; all else is
 * zero. `step` runs on up to `most` pool threads until it returns false. Between steps the pool
 * serves requests (cv_pool_run) first, so steps should be short. */
typedef struct cv_pool_job {
    bool (*step)(void *context, cv_pool_after *after);
    void *context;
    int most;
    /* Owned by the pool, protected by its lock. */
    struct cv_pool_job *next;
    unsigned n_posts;
    unsigned process; /* that posted the job: a forked child has none of its parent's jobs */
    int running;      /* steps under way */
    bool done;        /* no further step begins */
    atomic_bool posted;
} cv_pool_job;

/* Starts or continues the steps, also if the last step has just found no work. Without pool
 * threads, no step runs. A fork waits for steps under way; in a child, no step runs until the
 * job is posted there. */
void cv_pool_post(cv_pool_job *job);

/* Waits until no step of the job is under way. No step begins before the next post. Called by one
 * thread at a time, and not by a step of the job. Cheap if the job is done. */
void cv_pool_withdraw(cv_pool_job *job);

/* Until cv_pool_resume_steps, no step begins and no pool thread joins a request; calls nest.
 * Returns when no step of any job is under way, or no step has ended for 10 s; at once on a thread
 * that others may be waiting for. A fork does the same. In a forked child no hold remains. */
void cv_pool_hold_steps(void);
void cv_pool_resume_steps(void);

/* Returns the number of jobs that are posted and not finished. */
int cv_pool_n_jobs(void);

/* ---- Tasks ----
 *
 * A task is work that its caller does not wait for; its end is reported once. A handle has a list
 * of tasks. A step of the list's job takes the first task and runs it on a pool thread.
 *
 *     add        first ... last         a step              the end
 *   ------->  [ waiting | waiting ] -> [ running ] -> [ reporting | over ]
 *                 ^ cancelled tasks move to the front   ^ no lock of the library is held
 *
 * A task reads, so no thread may write through the handle meanwhile. It takes no lock for
 * this: a pool thread would wait for a lock whose holder may need the pool. Instead, the
 * exclusive user of the handle suspends the list. The end is reported after the step, because
 * `report` calls the program, which may take any time and any lock.
 *
 * A forked child has none of its parent's tasks; the parent reports them. */

typedef enum cv_task_state {
    CV_TASK_WAITING,
    CV_TASK_RUNNING,
    CV_TASK_DONE, /* run by cv_tasks_drain, not reported yet */
    CV_TASK_REPORTING,
    CV_TASK_OVER
} cv_task_state;

/* First member of a larger struct. The list uses the task until it calls `free`. A caller must keep
 * the task alive while it cancels or waits. */
typedef struct cv_task {
    void (*run)(struct cv_task *task);    /* polls `watch` at the start and repeatedly */
    void (*report)(struct cv_task *task); /* may be NULL */
    void (*free)(struct cv_task *task);   /* called once, last; the task is over */
    cv_watch watch;                       /* stopped by cv_task_cancel */
    /* Owned by the list, protected by the pool's lock. */
    struct cv_tasks *list; /* NULL: over, or detached by cv_tasks_close */
    struct cv_task *before, *next;
    cv_task_state state;
    cv_thread reporter;
    cv_cond over;
} cv_task;

typedef struct cv_tasks {
    cv_pool_job job;
    atomic_bool is_used; /* a task was added at least once */
    atomic_int n_open;   /* waiting or running */
    atomic_bool is_held; /* suspended: no task begins */
    /* Protected by the pool's lock. */
    unsigned process; /* the process that the tasks belong to */
    bool is_closed;
    cv_task *first, *last; /* waiting */
    cv_task *busy;         /* running, done or reporting, in any order */
    cv_cond ended;         /* signalled when a busy task is over */
} cv_tasks;

/* At most `most` tasks run at once; less than 1 counts as 1. */
void cv_tasks_init(cv_tasks *list, int most);

/* Cancels all tasks and runs the waiting ones on this thread. Returns when no function of a task
 * runs or will run, except one that is running on this thread. Further tasks are refused. */
void cv_tasks_close(cv_tasks *list);

/* Adds one task, or a chain linked by `next`. Functions and list of each task are set; all other
 * members are zero. Adds all tasks or none; after a failure the caller still owns them. No task
 * begins before all are added. Any thread, also while another thread writes. CATERVA_ESTOPPED: a
 * list is closed; CATERVA_ENOMEM: no thread can be started. */
cv_status cv_tasks_add(cv_task *first, cv_error *err);

/* For the exclusive user of the handle. cv_tasks_suspend waits for running tasks; after it, no task
 * begins until cv_tasks_resume. */
void cv_tasks_suspend(cv_tasks *list);
void cv_tasks_resume(cv_tasks *list);

/* With the list suspended, runs the waiting tasks on this thread. Their ends are not reported until
 * cv_tasks_report_drained, which is called after cv_tasks_resume. */
void cv_tasks_drain(cv_tasks *list);
void cv_tasks_report_drained(cv_tasks *list);

/* Makes the task end soon: stops its watch. */
void cv_task_cancel(cv_task *task);

/* Waits until the end has been reported, and returns true. Returns true at once inside the task's
 * own `report`, and in a forked child for a task of the parent, which may not have run. Returns
 * false inside the `report` of another task, because `task` may be waiting for that report. */
bool cv_task_wait(cv_task *task);

/* Returns whether this thread is in the task's `report`. */
bool cv_task_is_reported_here(const cv_task *task);

#endif
