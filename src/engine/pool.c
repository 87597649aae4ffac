/* Room: engine. Threads that wait for work. Handing work over costs tens of
 * microseconds, so callers ask for helpers only when there is more than that to
 * do; the caller always works itself and never waits for a thread to start. */
#include "engine/pool.h"

#include <pthread.h>
#include <string.h>

enum { MAX_THREADS = 256 };

typedef struct task {
    void (*body)(void *context);
    void *context;
    int wanted;  /* helpers that may still join */
    int running; /* helpers inside body */
    struct task *next;
} task;

/* The process-wide state that DESIGN allows. */
static struct {
    pthread_once_t once;
    pthread_mutex_t lock;
    pthread_cond_t work;     /* a task wants helpers */
    pthread_cond_t finished; /* a helper left a task */
    task *tasks;
    int n_threads;
    int n_idle;
} pool = {
    .once = PTHREAD_ONCE_INIT,
    .lock = PTHREAD_MUTEX_INITIALIZER,
    .work = PTHREAD_COND_INITIALIZER,
    .finished = PTHREAD_COND_INITIALIZER,
};

static void before_fork(void) { pthread_mutex_lock(&pool.lock); }
static void after_fork_in_parent(void) { pthread_mutex_unlock(&pool.lock); }

/* Only the forking thread lives on in a child. */
static void after_fork_in_child(void)
{
    pthread_mutex_init(&pool.lock, NULL);
    pthread_cond_init(&pool.work, NULL);
    pthread_cond_init(&pool.finished, NULL);
    pool.tasks = NULL;
    pool.n_threads = 0;
    pool.n_idle = 0;
}

static void install_fork_handlers(void)
{
    pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

static task *find_task(void)
{
    task *t = pool.tasks;
    while (t && t->wanted == 0) t = t->next;
    return t;
}

static void *thread_main(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&pool.lock);
    for (;;) {
        task *t = find_task();
        if (!t) {
            pool.n_idle++;
            pthread_cond_wait(&pool.work, &pool.lock);
            pool.n_idle--;
            continue;
        }
        t->wanted--;
        t->running++;
        pthread_mutex_unlock(&pool.lock);
        t->body(t->context);
        pthread_mutex_lock(&pool.lock);
        if (--t->running == 0) pthread_cond_broadcast(&pool.finished);
    }
    return NULL;
}

/* Starts threads until `wanted` of them could serve this task at once. Called
 * with the lock. */
static void start_threads(int wanted)
{
    while (pool.n_idle < wanted && pool.n_threads < wanted && pool.n_threads < MAX_THREADS) {
        pthread_t thread;
        pthread_attr_t attributes;
        if (pthread_attr_init(&attributes) != 0) return;
        pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
        int failed = pthread_create(&thread, &attributes, thread_main, NULL);
        pthread_attr_destroy(&attributes);
        if (failed) return;
        pool.n_threads++;
    }
}

static void remove_task(task *t)
{
    task **link = &pool.tasks;
    while (*link != t) link = &(*link)->next;
    *link = t->next;
}

void cv_pool_run(int helpers, void (*body)(void *context), void *context)
{
    if (helpers <= 0) {
        body(context);
        return;
    }
    pthread_once(&pool.once, install_fork_handlers);
    task t = {.body = body, .context = context, .wanted = helpers};

    pthread_mutex_lock(&pool.lock);
    t.next = pool.tasks;
    pool.tasks = &t;
    start_threads(helpers);
    if (helpers == 1)
        pthread_cond_signal(&pool.work);
    else
        pthread_cond_broadcast(&pool.work);
    pthread_mutex_unlock(&pool.lock);

    body(context);

    pthread_mutex_lock(&pool.lock);
    remove_task(&t); /* who has not joined by now has nothing left to do */
    while (t.running > 0) pthread_cond_wait(&pool.finished, &pool.lock);
    pthread_mutex_unlock(&pool.lock);
}

/* ---- Job queues --------------------------------------------------------- */

void cv_job_queue_init(cv_job_queue *queue, int64_t n_jobs)
{
    atomic_init(&queue->next, 0);
    atomic_init(&queue->status, CV_OK);
    atomic_init(&queue->failed, false);
    queue->n_jobs = n_jobs;
    memset(&queue->error, 0, sizeof queue->error);
}

bool cv_job_queue_next(cv_job_queue *queue, int64_t *job)
{
    if (atomic_load_explicit(&queue->failed, memory_order_relaxed)) return false;
    *job = atomic_fetch_add_explicit(&queue->next, 1, memory_order_relaxed);
    return *job < queue->n_jobs;
}

void cv_job_queue_fail(cv_job_queue *queue, cv_status status, const cv_error *error)
{
    if (atomic_exchange(&queue->failed, true)) return;
    queue->error = *error; /* read only after all bodies have returned */
    atomic_store(&queue->status, (int)status);
}

cv_status cv_job_queue_result(cv_job_queue *queue, cv_error *err)
{
    cv_status status = (cv_status)atomic_load(&queue->status);
    if (status != CV_OK && err) *err = queue->error;
    return status;
}
