/* Room: engine/run. The thread pool and lists of background tasks. Waking a thread takes tens of
 * microseconds, so callers ask for helpers only for larger work. The caller always works, too, and
 * never waits for a thread to start. */
#include "engine/run/pool.h"

#include "base/os.h"

#include <string.h>

/* A waiting thread spins for SPIN_NS before it sleeps, about as long as a wake-up takes. */
enum { MAX_THREADS = 256, SPIN_NS = 50000 };

static const uint64_t PATIENCE_NS = 10000000000; /* how long cv_pool_hold_steps waits */

typedef struct request {
    void (*body)(void *context);
    void *context;
    int wanted;         /* helpers that may still join */
    atomic_int running; /* helpers inside body; changed under the lock */
    struct request *next;
} request;

static _Thread_local bool is_in_step; /* this thread runs a step */

/* Process-wide state. */
static struct {
    cv_once once;
    cv_once jobs_once;
    cv_mutex lock;
    cv_cond work;         /* a request wants helpers */
    cv_cond finished;     /* a helper left a request, or a job's last step returned */
    atomic_uint n_posted; /* requests so far; changed under the lock */
    request *requests;
    cv_pool_job *jobs; /* in the background; the longest waiting is first */
    atomic_int n_jobs;
    int n_steps;      /* steps under way */
    unsigned n_ended; /* steps that have ended */
    int n_holds;      /* while above 0, no step and no help begins */
    unsigned process; /* number of forks between the first process and this one */
    int n_threads;
    int n_idle;
} pool = {
    .once = CV_ONCE_INIT,
    .jobs_once = CV_ONCE_INIT,
    .lock = CV_MUTEX_INIT,
    .work = CV_COND_INIT,
    .finished = CV_COND_INIT,
};

static void before_fork(void) { cv_mutex_lock(&pool.lock); }
static void after_fork_in_parent(void) { cv_mutex_unlock(&pool.lock); }

/* In the child of a fork, only the forking thread exists. */
static void after_fork_in_child(void)
{
    cv_cond_init(&pool.work);
    cv_cond_init(&pool.finished);
    pool.requests = NULL;
    pool.jobs = NULL;
    atomic_store(&pool.n_jobs, 0);
    pool.n_steps = is_in_step;
    pool.n_holds = 0;
    pool.process++;
    pool.n_threads = 0;
    pool.n_idle = 0;
    cv_mutex_unlock(&pool.lock);
}

static void install_fork_handlers(void)
{
    cv_thread_on_fork(CV_FORK_LOCKS, before_fork, after_fork_in_parent, after_fork_in_child);
}

static request *find_request(void)
{
    if (pool.n_holds > 0) return NULL;
    request *r = pool.requests;
    while (r && r->wanted == 0) r = r->next;
    return r;
}

/* ---- Waiting ------------------------------------------------------------ */

static void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#endif
}

/* Spins for up to SPIN_NS until the value is not `seen`. Loads with acquire. */
static void spin_while(void *value, unsigned seen, unsigned (*load)(void *value))
{
    if (cv_os_cores() < 2) return;
    uint64_t end = cv_os_clock_ns() + SPIN_NS;
    while (load(value) == seen && cv_os_clock_ns() < end) relax();
}

static unsigned load_posted(void *value)
{
    return atomic_load_explicit((atomic_uint *)value, memory_order_acquire);
}

static unsigned load_is_running(void *value)
{
    return atomic_load_explicit((atomic_int *)value, memory_order_acquire) > 0;
}

/* ---- Background jobs; the lock is held -------------------------------------- */

static cv_pool_job *find_job(void)
{
    if (pool.n_holds > 0) return NULL;
    cv_pool_job *job = pool.jobs;
    while (job && (job->done || job->running >= job->most)) job = job->next;
    return job;
}

static void add_job(cv_pool_job *job)
{
    cv_pool_job **link = &pool.jobs;
    while (*link) link = &(*link)->next;
    *link = job;
    job->next = NULL;
}

static void remove_job(cv_pool_job *job)
{
    cv_pool_job **link = &pool.jobs;
    while (*link != job) link = &(*link)->next;
    *link = job->next;
}

/* The pool does not use the job after this; its owner may free it. */
static void release_job(cv_pool_job *job)
{
    remove_job(job);
    atomic_fetch_sub_explicit(&pool.n_jobs, 1, memory_order_relaxed);
    atomic_store_explicit(&job->posted, false, memory_order_release);
}

/* Ends this thread in a forked child, if a callback of the program has forked inside the step: the
 * job belongs to the parent. */
_Noreturn static void end_in_child(void)
{
    pool.n_steps--;
    cv_mutex_unlock(&pool.lock);
    cv_thread_end();
}

/* Runs a step, without the lock. If it finds no work, the job ends unless posted meanwhile. */
static cv_pool_after run_step(cv_pool_job *job)
{
    cv_pool_after after = {NULL, NULL};
    unsigned seen = job->n_posts;
    job->running++;
    pool.n_steps++;
    remove_job(job);
    add_job(job);
    unsigned process = pool.process;
    cv_mutex_unlock(&pool.lock);
    is_in_step = true;
    bool more = job->step(job->context, &after);
    is_in_step = false;
    cv_mutex_lock(&pool.lock);
    if (pool.process != process) end_in_child();
    if (!more && job->n_posts == seen) job->done = true;
    pool.n_steps--;
    pool.n_ended++;
    if (--job->running > 0) return after;
    if (job->done) release_job(job);
    cv_cond_wake_all(&pool.finished);
    return after;
}

/* The owner may have freed the job before `after` is called. */
static void do_step(cv_pool_job *job)
{
    cv_pool_after after = run_step(job);
    if (!after.call) return;
    cv_mutex_unlock(&pool.lock);
    after.call(after.context);
    cv_mutex_lock(&pool.lock);
}

/* ---- Threads ------------------------------------------------------------- */

/* Called with the lock. Spins first: requests often follow each other closely. */
static void wait_for_work(void)
{
    unsigned seen = load_posted(&pool.n_posted);
    pool.n_idle++;
    cv_mutex_unlock(&pool.lock);
    spin_while(&pool.n_posted, seen, load_posted);
    cv_mutex_lock(&pool.lock);
    if (load_posted(&pool.n_posted) == seen) cv_cond_wait(&pool.work, &pool.lock);
    pool.n_idle--;
}

/* Called with the lock, which is released during the body. */
static void help(request *r)
{
    r->wanted--;
    atomic_fetch_add(&r->running, 1);
    cv_mutex_unlock(&pool.lock);
    r->body(r->context);
    cv_mutex_lock(&pool.lock);
    bool last = atomic_fetch_sub(&r->running, 1) == 1; /* `r` may be freed now */
    if (last) cv_cond_wake_all(&pool.finished);
}

static void *thread_main(void *unused)
{
    (void)unused;
    cv_thread_be_awaited(1);
    cv_mutex_lock(&pool.lock);
    for (;;) {
        request *r = find_request();
        cv_pool_job *job = r ? NULL : find_job();
        if (r)
            help(r);
        else if (job)
            do_step(job);
        else
            wait_for_work();
    }
    return NULL;
}

/* Starts threads until `wanted` can serve the request. Called with the lock. */
static void start_threads(int wanted)
{
    while (pool.n_idle < wanted && pool.n_threads < wanted && pool.n_threads < MAX_THREADS) {
        if (!cv_thread_start(thread_main, NULL)) return;
        pool.n_threads++;
    }
}

static void remove_request(request *r)
{
    request **link = &pool.requests;
    while (*link != r) link = &(*link)->next;
    *link = r->next;
}

/* Called after remove_request: no thread can join any more. */
static cv_status wait_for_helpers(request *r, cv_watch *watch, cv_error *err)
{
    cv_status status = CV_OK;
    if (!load_is_running(&r->running)) return CV_OK;
    spin_while(&r->running, 1, load_is_running);
    if (!load_is_running(&r->running)) return CV_OK;
    cv_mutex_lock(&pool.lock);
    while (load_is_running(&r->running)) {
        cv_status said = cv_watch_wait(watch, &pool.finished, &pool.lock, err);
        if (said != CV_OK) status = said;
    }
    cv_mutex_unlock(&pool.lock);
    return status;
}

/* Called with the lock. */
static void wake_threads(int wanted)
{
    atomic_fetch_add(&pool.n_posted, 1);
    start_threads(wanted);
    if (wanted == 1)
        cv_cond_wake_one(&pool.work);
    else
        cv_cond_wake_all(&pool.work);
}

cv_status cv_pool_run(int helpers, void (*body)(void *context), void *context,
                      cv_watch *watch, cv_error *err)
{
    if (helpers <= 0) {
        body(context);
        return CV_OK;
    }
    cv_once_run(&pool.once, install_fork_handlers);
    request r = {.body = body, .context = context, .wanted = helpers};

    cv_mutex_lock(&pool.lock);
    r.next = pool.requests;
    pool.requests = &r;
    wake_threads(helpers);
    cv_mutex_unlock(&pool.lock);

    body(context);

    cv_mutex_lock(&pool.lock);
    remove_request(&r); /* a thread that has not joined by now would find no work */
    cv_mutex_unlock(&pool.lock);
    return wait_for_helpers(&r, watch, err);
}

/* ---- Background jobs -------------------------------------------------------- */

/* Returns when no step is under way, or none has ended for PATIENCE_NS. Called with the lock. */
static void wait_for_steps(void)
{
    unsigned seen = pool.n_ended;
    uint64_t end = cv_os_clock_ns() + PATIENCE_NS;
    while (pool.n_steps > 0 && cv_os_clock_ns() < end) {
        cv_cond_wait_for(&pool.finished, &pool.lock, PATIENCE_NS);
        if (pool.n_ended != seen) end = cv_os_clock_ns() + PATIENCE_NS;
        seen = pool.n_ended;
    }
}

/* Called before a fork. A step may hold locks that would stay locked in the child, so the fork
 * waits for steps, but not for ever: a callback of the program may be waiting for the forking
 * thread. A thread that is in such a callback does not wait: its child usually calls exec. */
static void hold_steps(void)
{
    cv_mutex_lock(&pool.lock);
    pool.n_holds++;
    if (!cv_thread_is_awaited()) wait_for_steps();
    cv_mutex_unlock(&pool.lock);
}

static void resume_steps(void)
{
    cv_mutex_lock(&pool.lock);
    if (pool.n_holds > 0 && --pool.n_holds == 0) wake_threads(0);
    cv_mutex_unlock(&pool.lock);
}

static void install_job_handlers(void)
{
    cv_thread_on_fork(CV_FORK_WAITS, hold_steps, resume_steps, NULL);
}

void cv_pool_hold_steps(void)
{
    cv_once_run(&pool.once, install_fork_handlers); /* so that no hold remains in a child */
    hold_steps();
}

void cv_pool_resume_steps(void) { resume_steps(); }

/* Takes the pool's lock, which also protects tasks. Held briefly; free in every forked child. */
static void lock_pool(void)
{
    cv_once_run(&pool.once, install_fork_handlers);
    cv_once_run(&pool.jobs_once, install_job_handlers);
    cv_mutex_lock(&pool.lock);
}

static void unlock_pool(void) { cv_mutex_unlock(&pool.lock); }

/* cv_pool_post with the lock held. Returns false if the pool has no thread and can start none. */
static bool post_locked(cv_pool_job *job)
{
    bool is_known = job->process == pool.process &&
                    atomic_load_explicit(&job->posted, memory_order_relaxed);
    if (!is_known) {
        add_job(job);
        job->process = pool.process;
        job->running = 0;
        atomic_fetch_add_explicit(&pool.n_jobs, 1, memory_order_relaxed);
        atomic_store_explicit(&job->posted, true, memory_order_relaxed);
    }
    job->done = false;
    job->n_posts++;
    wake_threads(job->most);
    return pool.n_threads > 0;
}

void cv_pool_post(cv_pool_job *job)
{
    lock_pool();
    (void)post_locked(job);
    unlock_pool();
}

void cv_pool_withdraw(cv_pool_job *job)
{
    if (!atomic_load_explicit(&job->posted, memory_order_acquire)) return;
    cv_mutex_lock(&pool.lock);
    if (job->process != pool.process) { /* posted by the parent process */
        atomic_store_explicit(&job->posted, false, memory_order_relaxed);
    } else {
        job->done = true;
        while (job->running > 0) cv_cond_wait(&pool.finished, &pool.lock);
        if (atomic_load_explicit(&job->posted, memory_order_relaxed)) release_job(job);
    }
    cv_mutex_unlock(&pool.lock);
}

int cv_pool_n_jobs(void) { return atomic_load_explicit(&pool.n_jobs, memory_order_relaxed); }

/* ---- Tasks: under the pool's lock, so that they are consistent in a forked child ------------- */

/* Number of `report` calls that this thread is in, nested. */
static _Thread_local int n_reporting;

/* ---- Lists; the lock is held ------------------------------------------------ */

static void unlink_waiting(cv_tasks *list, cv_task *t)
{
    *(t->before ? &t->before->next : &list->first) = t->next;
    *(t->next ? &t->next->before : &list->last) = t->before;
    t->before = t->next = NULL;
}

static void append_waiting(cv_tasks *list, cv_task *t)
{
    t->before = list->last;
    *(list->last ? &list->last->next : &list->first) = t;
    list->last = t;
}

static void put_first(cv_tasks *list, cv_task *t)
{
    t->next = list->first;
    *(list->first ? &list->first->before : &list->last) = t;
    list->first = t;
}

static void add_busy(cv_tasks *list, cv_task *t)
{
    t->next = list->busy;
    if (list->busy) list->busy->before = t;
    list->busy = t;
}

static void remove_busy(cv_tasks *list, cv_task *t)
{
    *(t->before ? &t->before->next : &list->busy) = t->next;
    if (t->next) t->next->before = t->before;
    t->before = t->next = NULL;
}

static void begin_report(cv_tasks *list, cv_task *t)
{
    if (t->state < CV_TASK_DONE) atomic_fetch_sub(&list->n_open, 1);
    t->state = CV_TASK_REPORTING;
    t->reporter = cv_thread_self();
}

/* Drops a task that will not be reported in this process. */
static void forget(cv_task *t)
{
    t->list = NULL;
    t->state = CV_TASK_OVER;
    cv_watch_stop(&t->watch);
    t->free(t);
}

static bool is_reported_here(const cv_task *t)
{
    return t->state == CV_TASK_REPORTING && cv_thread_is_self(t->reporter);
}

/* In a forked child, drops the parent's tasks, except one whose `report` forked and will return. */
static void disown(cv_tasks *list)
{
    if (list->process == pool.process) return;
    list->process = pool.process;
    while (list->first) {
        cv_task *t = list->first;
        unlink_waiting(list, t);
        forget(t);
    }
    for (cv_task *t = list->busy, *next; t; t = next) {
        next = t->next;
        if (is_reported_here(t)) continue;
        remove_busy(list, t);
        forget(t);
    }
    cv_cond_init(&list->ended);
    atomic_store(&list->n_open, 0);
}

/* ---- One task ------------------------------------------------------------- */

bool cv_task_is_reported_here(const cv_task *task)
{
    lock_pool();
    bool here = is_reported_here(task);
    unlock_pool();
    return here;
}

/* The list may be freed while `report` runs. */
static void report(void *context)
{
    cv_task *t = context;
    n_reporting++;
    if (t->report) t->report(t);
    n_reporting--;
    lock_pool();
    cv_tasks *list = t->list;
    if (list) {
        remove_busy(list, t);
        cv_cond_wake_all(&list->ended);
    }
    t->list = NULL;
    t->state = CV_TASK_OVER;
    cv_cond_wake_all(&t->over);
    unlock_pool();
    t->free(t);
}

static cv_task *take(cv_tasks *list, bool suspended)
{
    lock_pool();
    disown(list);
    bool may_begin = suspended || !atomic_load(&list->is_held);
    cv_task *t = may_begin ? list->first : NULL;
    if (t) {
        unlink_waiting(list, t);
        t->state = CV_TASK_RUNNING;
        add_busy(list, t);
    }
    unlock_pool();
    return t;
}

static bool do_first(void *context, cv_pool_after *after)
{
    cv_tasks *list = context;
    cv_task *t = take(list, false);
    if (!t) return false;
    t->run(t);
    lock_pool();
    begin_report(list, t);
    unlock_pool();
    *after = (cv_pool_after){report, t};
    return true;
}

void cv_task_cancel(cv_task *task)
{
    cv_watch_stop(&task->watch);
    lock_pool();
    cv_tasks *list = task->list;
    if (list) disown(list);
    if (task->list && task->state == CV_TASK_WAITING) {
        unlink_waiting(list, task);
        put_first(list, task);
    }
    unlock_pool();
}

bool cv_task_wait(cv_task *task)
{
    lock_pool();
    if (task->list) disown(task->list);
    bool may_wait = n_reporting == 0;
    while (may_wait && task->state != CV_TASK_OVER) cv_cond_wait(&task->over, &pool.lock);
    bool is_known = task->state == CV_TASK_OVER || is_reported_here(task);
    unlock_pool();
    return is_known;
}

/* ---- Lists, called by the handle --------------------------------------------- */

void cv_tasks_init(cv_tasks *list, int most)
{
    *list = (cv_tasks){.process = pool.process};
    list->job = (cv_pool_job){.step = do_first, .context = list, .most = most};
    if (most < 1) list->job.most = 1;
    cv_cond_init(&list->ended);
}

/* Checks whether the list accepts a task, and posts its job; a post without a task is harmless.
 * Called with the lock. */
static cv_status make_ready(cv_tasks *list, cv_error *err)
{
    disown(list);
    if (list->is_closed)
        return cv_fail(err, CATERVA_ESTOPPED, -1, "the array is being closed");
    if (post_locked(&list->job)) return CV_OK;
    return cv_fail(err, CATERVA_ENOMEM, -1,
                   "the system cannot start a thread for work in the background");
}

static void prepare(cv_task *task)
{
    cv_watch_init(&task->watch, NULL);
    cv_cond_init(&task->over);
    task->state = CV_TASK_WAITING;
    atomic_store(&task->list->is_used, true);
}

cv_status cv_tasks_add(cv_task *first, cv_error *err)
{
    cv_status status = CV_OK;
    for (cv_task *t = first; t; t = t->next) prepare(t);
    lock_pool();
    for (cv_task *t = first; t && status == CV_OK; t = t->next)
        status = make_ready(t->list, err);
    for (cv_task *t = first, *next; t; t = next) {
        next = t->next;
        t->next = NULL;
        if (status != CV_OK) {
            t->list = NULL;
            continue;
        }
        /* The lock is still held: without it, the task could end and its list be closed by now. */
        append_waiting(t->list, t);
        atomic_fetch_add(&t->list->n_open, 1);
    }
    unlock_pool();
    return status;
}

/* Reads n_open after setting is_held: a step that takes a task sees is_held or is counted here. */
void cv_tasks_suspend(cv_tasks *list)
{
    atomic_store(&list->is_held, true);
    if (atomic_load(&list->n_open) > 0) cv_pool_withdraw(&list->job);
}

void cv_tasks_resume(cv_tasks *list)
{
    if (!atomic_load_explicit(&list->is_held, memory_order_relaxed)) return;
    atomic_store(&list->is_held, false);
    if (atomic_load(&list->n_open) > 0) cv_pool_post(&list->job);
}

/* Tasks that are added meanwhile, by `report` functions, stay waiting. */
void cv_tasks_drain(cv_tasks *list)
{
    int n = 0;
    if (!atomic_load(&list->is_used)) return;
    lock_pool();
    disown(list);
    for (const cv_task *t = list->first; t; t = t->next) n++;
    unlock_pool();
    for (; n > 0; n--) {
        cv_task *t = take(list, true);
        if (!t) return;
        t->run(t);
        lock_pool();
        t->state = CV_TASK_DONE;
        atomic_fetch_sub(&list->n_open, 1);
        unlock_pool();
    }
}

/* Returns a task that is done and begins its report on this thread; NULL if no task is done. */
static cv_task *take_done(cv_tasks *list)
{
    lock_pool();
    cv_task *t = list->busy;
    while (t && t->state != CV_TASK_DONE) t = t->next;
    if (t) begin_report(list, t);
    unlock_pool();
    return t;
}

void cv_tasks_report_drained(cv_tasks *list)
{
    for (cv_task *t = take_done(list); t; t = take_done(list)) report(t);
}

static void stop_all(cv_tasks *list)
{
    lock_pool();
    disown(list);
    list->is_closed = true;
    for (cv_task *t = list->first; t; t = t->next) cv_watch_stop(&t->watch);
    for (cv_task *t = list->busy; t; t = t->next) cv_watch_stop(&t->watch);
    unlock_pool();
}

static bool is_quiet(const cv_tasks *list)
{
    const cv_task *t = list->busy;
    while (t && is_reported_here(t)) t = t->next;
    return !t;
}

void cv_tasks_close(cv_tasks *list)
{
    if (!atomic_load(&list->is_used)) return;
    stop_all(list);
    cv_tasks_suspend(list);
    cv_tasks_drain(list); /* tasks end at once: their watches are stopped */
    cv_tasks_report_drained(list);
    lock_pool();
    while (!is_quiet(list)) cv_cond_wait(&list->ended, &pool.lock);
    while (list->busy) { /* a task whose `report` has called this function */
        cv_task *t = list->busy;
        remove_busy(list, t);
        t->list = NULL;
    }
    unlock_pool();
    cv_pool_withdraw(&list->job); /* a `report` may have posted the job without a task */
}
