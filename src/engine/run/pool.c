/* Room: engine/run. Threads that wait for work. Handing work over costs tens of
 * microseconds, so callers ask for helpers only when there is more than that to
 * do; the caller always works itself and never waits for a thread to start. */
#include "engine/run/pool.h"

#include "base/os.h"
#include "base/thread.h"

#include <string.h>

/* Who waits looks for so long before it sleeps: being woken takes as long. */
enum { MAX_THREADS = 256, SPIN_NS = 50000 };

static const uint64_t PATIENCE_NS = 10000000000; /* of who holds */

typedef struct task {
    void (*body)(void *context);
    void *context;
    int wanted;         /* helpers that may still join */
    atomic_int running; /* helpers inside body; changed under the lock */
    struct task *next;
} task;

static _Thread_local bool is_in_step; /* this thread */

/* The process-wide state that DESIGN allows. */
static struct {
    cv_once once;
    cv_once jobs_once;
    cv_mutex lock;
    cv_cond work;         /* a task wants helpers */
    cv_cond finished;     /* a helper left a task, or a job's last step returned */
    atomic_uint n_posted; /* tasks so far; changed under the lock */
    task *tasks;
    cv_pool_job *jobs; /* in the background; who waits longest is first */
    atomic_int n_jobs;
    int n_steps;      /* of them, under way */
    unsigned n_ended; /* steps so far */
    int n_holds;      /* of forks and others: nothing begins */
    unsigned process; /* forks between the first process and this one */
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

/* Only the forking thread lives on in a child. */
static void after_fork_in_child(void)
{
    cv_cond_init(&pool.work);
    cv_cond_init(&pool.finished);
    pool.tasks = NULL;
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

static task *find_task(void)
{
    if (pool.n_holds > 0) return NULL;
    task *t = pool.tasks;
    while (t && t->wanted == 0) t = t->next;
    return t;
}

/* ---- Waiting ------------------------------------------------------------ */

static void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#endif
}

/* Looks until the value is not `seen` any more, for a while; what another thread
 * did before it changed the value is then visible. */
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

/* ---- Jobs in the background, with the lock --------------------------------- */

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

/* Nobody looks at the job any more: its owner may free it. */
static void let_go(cv_pool_job *job)
{
    remove_job(job);
    atomic_fetch_sub_explicit(&pool.n_jobs, 1, memory_order_relaxed);
    atomic_store_explicit(&job->posted, false, memory_order_release);
}

/* A function of the program's has forked in a step, whose job is the parent's. */
_Noreturn static void end_in_child(void)
{
    pool.n_steps--;
    cv_mutex_unlock(&pool.lock);
    cv_thread_end();
}

/* The lock is free during the step. A step that found nothing to do ends the job,
 * unless more was posted since it began. */
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
    if (job->done) let_go(job);
    cv_cond_wake_all(&pool.finished);
    return after;
}

/* The job may be gone by the time that `after` is called. */
static void do_step(cv_pool_job *job)
{
    cv_pool_after after = run_step(job);
    if (!after.call) return;
    cv_mutex_unlock(&pool.lock);
    after.call(after.context);
    cv_mutex_lock(&pool.lock);
}

/* ---- Threads ------------------------------------------------------------- */

/* Called with the lock. Requests often follow each other closely. */
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

/* Called with the lock, which is free meanwhile. */
static void help(task *t)
{
    t->wanted--;
    atomic_fetch_add(&t->running, 1);
    cv_mutex_unlock(&pool.lock);
    t->body(t->context);
    cv_mutex_lock(&pool.lock);
    bool last = atomic_fetch_sub(&t->running, 1) == 1; /* then the task may be gone */
    if (last) cv_cond_wake_all(&pool.finished);
}

static void *thread_main(void *unused)
{
    (void)unused;
    cv_thread_be_awaited(1);
    cv_mutex_lock(&pool.lock);
    for (;;) {
        task *t = find_task();
        cv_pool_job *job = t ? NULL : find_job();
        if (t)
            help(t);
        else if (job)
            do_step(job);
        else
            wait_for_work();
    }
    return NULL;
}

/* Starts threads until `wanted` of them could serve this task at once. Called
 * with the lock. */
static void start_threads(int wanted)
{
    while (pool.n_idle < wanted && pool.n_threads < wanted && pool.n_threads < MAX_THREADS) {
        if (!cv_thread_start(thread_main, NULL)) return;
        pool.n_threads++;
    }
}

static void remove_task(task *t)
{
    task **link = &pool.tasks;
    while (*link != t) link = &(*link)->next;
    *link = t->next;
}

/* Nobody can join any more. */
static cv_status wait_for_helpers(task *t, cv_watch *watch, cv_error *err)
{
    cv_status status = CV_OK;
    if (!load_is_running(&t->running)) return CV_OK;
    spin_while(&t->running, 1, load_is_running);
    if (!load_is_running(&t->running)) return CV_OK;
    cv_mutex_lock(&pool.lock);
    while (load_is_running(&t->running)) {
        cv_status said = cv_watch_wait(watch, &pool.finished, &pool.lock, err);
        if (said != CV_OK) status = said;
    }
    cv_mutex_unlock(&pool.lock);
    return status;
}

/* Called with the lock. */
static void tell_threads(int wanted)
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
    task t = {.body = body, .context = context, .wanted = helpers};

    cv_mutex_lock(&pool.lock);
    t.next = pool.tasks;
    pool.tasks = &t;
    tell_threads(helpers);
    cv_mutex_unlock(&pool.lock);

    body(context);

    cv_mutex_lock(&pool.lock);
    remove_task(&t); /* who has not joined by now has nothing left to do */
    cv_mutex_unlock(&pool.lock);
    return wait_for_helpers(&t, watch, err);
}

/* ---- Jobs in the background ------------------------------------------------ */

/* Until none is under way, or none has ended for so long; with the lock. */
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

/* A step holds locks of caches and of an array's handle, which a child would find taken for
 * good. It may also be in a function of the program's that waits for who forks, and that cannot
 * be known; but who forks in such a function may be waited for itself.
 * Most children that find locks taken begin another program. */
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
    if (pool.n_holds > 0 && --pool.n_holds == 0) tell_threads(0);
    cv_mutex_unlock(&pool.lock);
}

static void install_job_handlers(void)
{
    cv_thread_on_fork(CV_FORK_WAITS, hold_steps, resume_steps, NULL);
}

void cv_pool_hold_steps(void)
{
    cv_once_run(&pool.once, install_fork_handlers); /* a child is to hold none */
    hold_steps();
}

void cv_pool_resume_steps(void) { resume_steps(); }

void cv_pool_lock(void)
{
    cv_once_run(&pool.once, install_fork_handlers);
    cv_once_run(&pool.jobs_once, install_job_handlers);
    cv_mutex_lock(&pool.lock);
}

void cv_pool_unlock(void) { cv_mutex_unlock(&pool.lock); }

bool cv_pool_post_locked(cv_pool_job *job)
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
    tell_threads(job->most);
    return pool.n_threads > 0;
}

void cv_pool_post(cv_pool_job *job)
{
    cv_pool_lock();
    (void)cv_pool_post_locked(job);
    cv_pool_unlock();
}

void cv_pool_withdraw(cv_pool_job *job)
{
    if (!atomic_load_explicit(&job->posted, memory_order_acquire)) return;
    cv_mutex_lock(&pool.lock);
    if (job->process != pool.process) { /* the parent's */
        atomic_store_explicit(&job->posted, false, memory_order_relaxed);
    } else {
        job->done = true;
        while (job->running > 0) cv_cond_wait(&pool.finished, &pool.lock);
        if (atomic_load_explicit(&job->posted, memory_order_relaxed)) let_go(job);
    }
    cv_mutex_unlock(&pool.lock);
}

int cv_pool_n_jobs(void) { return atomic_load_explicit(&pool.n_jobs, memory_order_relaxed); }

void cv_pool_wait(cv_cond *changed) { cv_cond_wait(changed, &pool.lock); }

unsigned cv_pool_process(void) { return pool.process; }

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

/* Another thread may read the same bytes as well or as badly as this one; what is before
 * them is nobody's fault. */
static bool is_of_bytes(cv_status status)
{
    return status == CATERVA_ECORRUPT || status == CATERVA_EUNSUPPORTED;
}

bool cv_job_queue_fail(cv_job_queue *queue, int64_t job, cv_status status,
                       const cv_error *error)
{
    bool goes_on = is_of_bytes(status);
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
