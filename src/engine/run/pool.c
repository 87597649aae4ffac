/* Room: engine/run. Threads that wait for work. A hand-over costs tens of microseconds, so
 * callers ask for helpers only for more; the caller always works and never waits for a
 * thread to start. */
#include "engine/run/pool.h"

#include "base/os.h"

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

/* Spins for a while until the value is not `seen`; an acquire. */
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

/* Steps run without the lock. One without work ends the job, unless it was posted again. */
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

/* With the lock, released meanwhile. */
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

/* Starts threads until `wanted` could serve the task. With the lock. */
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

/* A step may hold locks that a child would find taken, or be in a program's function that
 * waits for the forking thread; a thread in such a function may itself be waited for. Most
 * such children exec. */
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

/* The pool's lock, also for errands: held briefly, free in every forked child. */
static void lock_pool(void)
{
    cv_once_run(&pool.once, install_fork_handlers);
    cv_once_run(&pool.jobs_once, install_job_handlers);
    cv_mutex_lock(&pool.lock);
}

static void unlock_pool(void) { cv_mutex_unlock(&pool.lock); }

/* cv_pool_post with the lock. False: the pool has no thread and could start none. */
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
    tell_threads(job->most);
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

/* ---- Errands -------------------------------------------------------------------
 *
 * Guarded by the pool's lock, so that forked children find it whole. */

/* Functions of callers that this thread is in, one within another. */
static _Thread_local int n_telling;

/* ---- Lists, with the lock -------------------------------------------------- */

static void unlink_waiting(cv_errands *list, cv_errand *e)
{
    *(e->before ? &e->before->next : &list->first) = e->next;
    *(e->next ? &e->next->before : &list->last) = e->before;
    e->before = e->next = NULL;
}

static void append_waiting(cv_errands *list, cv_errand *e)
{
    e->before = list->last;
    *(list->last ? &list->last->next : &list->first) = e;
    list->last = e;
}

static void put_first(cv_errands *list, cv_errand *e)
{
    e->next = list->first;
    *(list->first ? &list->first->before : &list->last) = e;
    list->first = e;
}

static void add_busy(cv_errands *list, cv_errand *e)
{
    e->next = list->busy;
    if (list->busy) list->busy->before = e;
    list->busy = e;
}

static void remove_busy(cv_errands *list, cv_errand *e)
{
    *(e->before ? &e->before->next : &list->busy) = e->next;
    if (e->next) e->next->before = e->before;
    e->before = e->next = NULL;
}

static void begin_telling(cv_errands *list, cv_errand *e)
{
    if (e->state < CV_ERRAND_DONE) atomic_fetch_sub(&list->n_open, 1);
    e->state = CV_ERRAND_TELLING;
    e->teller = cv_thread_self();
}

/* Nobody will tell of it in this process. */
static void forget(cv_errand *e)
{
    e->list = NULL;
    e->state = CV_ERRAND_OVER;
    cv_watch_stop(&e->watch);
    e->free(e);
}

static bool is_told_here(const cv_errand *e)
{
    return e->state == CV_ERRAND_TELLING && cv_thread_is_self(e->teller);
}

/* In a forked child all is the parent's, except a function that forked and will return. */
static void disown(cv_errands *list)
{
    if (list->process == pool.process) return;
    list->process = pool.process;
    while (list->first) {
        cv_errand *e = list->first;
        unlink_waiting(list, e);
        forget(e);
    }
    for (cv_errand *e = list->busy, *next; e; e = next) {
        next = e->next;
        if (is_told_here(e)) continue;
        remove_busy(list, e);
        forget(e);
    }
    cv_cond_init(&list->calm);
    atomic_store(&list->n_open, 0);
}

/* ---- One errand ------------------------------------------------------------- */

bool cv_errand_is_told_here(const cv_errand *errand)
{
    lock_pool();
    bool here = is_told_here(errand);
    unlock_pool();
    return here;
}

/* The list may be gone by the time that the function returns. */
static void tell(void *context)
{
    cv_errand *e = context;
    n_telling++;
    if (e->tell) e->tell(e);
    n_telling--;
    lock_pool();
    cv_errands *list = e->list;
    if (list) {
        remove_busy(list, e);
        cv_cond_wake_all(&list->calm);
    }
    e->list = NULL;
    e->state = CV_ERRAND_OVER;
    cv_cond_wake_all(&e->over);
    unlock_pool();
    e->free(e);
}

static cv_errand *take(cv_errands *list, bool suspended)
{
    lock_pool();
    disown(list);
    bool may_begin = suspended || !atomic_load(&list->is_held);
    cv_errand *e = may_begin ? list->first : NULL;
    if (e) {
        unlink_waiting(list, e);
        e->state = CV_ERRAND_RUNNING;
        add_busy(list, e);
    }
    unlock_pool();
    return e;
}

static bool do_first(void *context, cv_pool_after *after)
{
    cv_errands *list = context;
    cv_errand *e = take(list, false);
    if (!e) return false;
    e->run(e);
    lock_pool();
    begin_telling(list, e);
    unlock_pool();
    *after = (cv_pool_after){tell, e};
    return true;
}

void cv_errand_cancel(cv_errand *errand)
{
    cv_watch_stop(&errand->watch);
    lock_pool();
    cv_errands *list = errand->list;
    if (list) disown(list);
    if (errand->list && errand->state == CV_ERRAND_WAITING) {
        unlink_waiting(list, errand);
        put_first(list, errand);
    }
    unlock_pool();
}

bool cv_errand_wait(cv_errand *errand)
{
    lock_pool();
    if (errand->list) disown(errand->list);
    bool may_wait = n_telling == 0;
    while (may_wait && errand->state != CV_ERRAND_OVER) cv_cond_wait(&errand->over, &pool.lock);
    bool is_known = errand->state == CV_ERRAND_OVER || is_told_here(errand);
    unlock_pool();
    return is_known;
}

/* ---- The handle's side ------------------------------------------------------ */

void cv_errands_init(cv_errands *list, int most)
{
    *list = (cv_errands){.process = pool.process};
    list->job = (cv_pool_job){.step = do_first, .context = list, .most = most};
    if (most < 1) list->job.most = 1;
    cv_cond_init(&list->calm);
}

/* Whether one may be added; with the lock, as what follows. The job may be posted in vain. */
static cv_status make_ready(cv_errands *list, cv_error *err)
{
    disown(list);
    if (list->is_closed)
        return cv_fail(err, CATERVA_ESTOPPED, -1, "the array is being closed");
    if (post_locked(&list->job)) return CV_OK;
    return cv_fail(err, CATERVA_ENOMEM, -1,
                   "the system has no thread for work in the background");
}

/* Only with the lock: the errand may end, and close the list, before the caller returns. */
static void add(cv_errand *errand)
{
    append_waiting(errand->list, errand);
    atomic_fetch_add(&errand->list->n_open, 1);
}

static void prepare(cv_errand *errand)
{
    cv_watch_init(&errand->watch, NULL, NULL);
    cv_cond_init(&errand->over);
    errand->state = CV_ERRAND_WAITING;
    atomic_store(&errand->list->is_used, true);
}

cv_status cv_errands_add(cv_errand *first, cv_error *err)
{
    cv_status status = CV_OK;
    for (cv_errand *e = first; e; e = e->next) prepare(e);
    lock_pool();
    for (cv_errand *e = first; e && status == CV_OK; e = e->next)
        status = make_ready(e->list, err);
    for (cv_errand *e = first, *next; e; e = next) {
        next = e->next;
        e->next = NULL;
        if (status == CV_OK)
            add(e);
        else
            e->list = NULL;
    }
    unlock_pool();
    return status;
}

/* Reads after `is_held` is set: a step that takes an errand sees it, or is seen here. */
void cv_errands_suspend(cv_errands *list)
{
    atomic_store(&list->is_held, true);
    if (atomic_load(&list->n_open) > 0) cv_pool_withdraw(&list->job);
}

void cv_errands_resume(cv_errands *list)
{
    if (!atomic_load_explicit(&list->is_held, memory_order_relaxed)) return;
    atomic_store(&list->is_held, false);
    if (atomic_load(&list->n_open) > 0) cv_pool_post(&list->job);
}

/* Those that are added meanwhile, by functions that are being told, wait on. */
void cv_errands_settle(cv_errands *list)
{
    int n = 0;
    if (!atomic_load(&list->is_used)) return;
    lock_pool();
    disown(list);
    for (const cv_errand *e = list->first; e; e = e->next) n++;
    unlock_pool();
    for (; n > 0; n--) {
        cv_errand *e = take(list, true);
        if (!e) return;
        e->run(e);
        lock_pool();
        e->state = CV_ERRAND_DONE;
        atomic_fetch_sub(&list->n_open, 1);
        unlock_pool();
    }
}

/* One that is done, from now on being told by this thread; or NULL. */
static cv_errand *take_done(cv_errands *list)
{
    lock_pool();
    cv_errand *e = list->busy;
    while (e && e->state != CV_ERRAND_DONE) e = e->next;
    if (e) begin_telling(list, e);
    unlock_pool();
    return e;
}

void cv_errands_tell_settled(cv_errands *list)
{
    for (cv_errand *e = take_done(list); e; e = take_done(list)) tell(e);
}

static void stop_all(cv_errands *list)
{
    lock_pool();
    disown(list);
    list->is_closed = true;
    for (cv_errand *e = list->first; e; e = e->next) cv_watch_stop(&e->watch);
    for (cv_errand *e = list->busy; e; e = e->next) cv_watch_stop(&e->watch);
    unlock_pool();
}

static bool is_calm(const cv_errands *list)
{
    const cv_errand *e = list->busy;
    while (e && is_told_here(e)) e = e->next;
    return !e;
}

void cv_errands_close(cv_errands *list)
{
    if (!atomic_load(&list->is_used)) return;
    stop_all(list);
    cv_errands_suspend(list);
    cv_errands_settle(list); /* each looks at its watch first */
    cv_errands_tell_settled(list);
    lock_pool();
    while (!is_calm(list)) cv_cond_wait(&list->calm, &pool.lock);
    while (list->busy) { /* what has called this */
        cv_errand *e = list->busy;
        remove_busy(list, e);
        e->list = NULL;
    }
    unlock_pool();
    cv_pool_withdraw(&list->job); /* a function may have posted it in vain */
}
