/* Room: base. The larger functions of threads and locks. A port rewrites this file and thread.h. */
#include "base/thread.h"

#include <assert.h>
#include <signal.h>
#include <time.h>

/* Uses the real-time clock: if that is set meanwhile, the wait may be too long or too short. */
void cv_cond_wait_for(cv_cond *cond, cv_mutex *mutex, uint64_t ns)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    uint64_t nsec = (uint64_t)until.tv_nsec + ns % 1000000000;
    until.tv_sec += (time_t)(ns / 1000000000 + nsec / 1000000000);
    until.tv_nsec = (long)(nsec % 1000000000);
    (void)pthread_cond_timedwait(&cond->system, &mutex->system, &until);
}

bool cv_thread_start(void *(*body)(void *context), void *context)
{
    pthread_t thread;
    pthread_attr_t attributes;
    if (pthread_attr_init(&attributes) != 0) return false;
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    int failed = pthread_create(&thread, &attributes, body, context);
    pthread_attr_destroy(&attributes);
    return !failed;
}

void cv_thread_end(void) { pthread_exit(NULL); }

static _Thread_local int n_awaited;

void cv_thread_be_awaited(int more) { n_awaited += more; }

bool cv_thread_is_awaited(void) { return n_awaited > 0; }

void cv_thread_block_signals(void)
{
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, NULL);
}

/* ---- Forks ------------------------------------------------------------------ */

enum { MOST_WATCHERS = 16 };

typedef struct watcher {
    void (*before)(void);
    void (*in_parent)(void);
    void (*in_child)(void);
} watcher;

/* Watchers that wait for other threads are separate: they are called before any lock is taken. */
static struct {
    cv_once once;
    cv_mutex lock; /* held from before a fork until after it */
    int n_waiting, n_locking, n_held;
    watcher waiting[MOST_WATCHERS], locking[MOST_WATCHERS];
    cv_mutex *held[MOST_WATCHERS];
} forks = {.once = CV_ONCE_INIT, .lock = CV_MUTEX_INIT};

static void call(void (*function)(void))
{
    if (function) function();
}

static void before_fork(void)
{
    cv_mutex_lock(&forks.lock);
    for (int i = forks.n_waiting - 1; i >= 0; i--) call(forks.waiting[i].before);
    for (int i = forks.n_locking - 1; i >= 0; i--) call(forks.locking[i].before);
    for (int i = forks.n_held - 1; i >= 0; i--) cv_mutex_lock(forks.held[i]);
}

static void release_held(void)
{
    for (int i = 0; i < forks.n_held; i++) cv_mutex_unlock(forks.held[i]);
}

static void after_fork_in_parent(void)
{
    release_held();
    for (int i = 0; i < forks.n_locking; i++) call(forks.locking[i].in_parent);
    for (int i = 0; i < forks.n_waiting; i++) call(forks.waiting[i].in_parent);
    cv_mutex_unlock(&forks.lock);
}

static void after_fork_in_child(void)
{
    release_held();
    for (int i = 0; i < forks.n_locking; i++) call(forks.locking[i].in_child);
    for (int i = 0; i < forks.n_waiting; i++) call(forks.waiting[i].in_child);
    cv_mutex_unlock(&forks.lock);
}

static void watch_forks(void)
{
    (void)pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

void cv_thread_on_fork(cv_fork_watcher kind, void (*before)(void), void (*in_parent)(void),
                       void (*in_child)(void))
{
    bool waits = kind == CV_FORK_WAITS;
    cv_once_run(&forks.once, watch_forks);
    cv_mutex_lock(&forks.lock);
    int *n = waits ? &forks.n_waiting : &forks.n_locking, i = 0;
    watcher *list = waits ? forks.waiting : forks.locking;
    while (i < *n && (list[i].before != before || list[i].in_child != in_child)) i++;
    assert(i < MOST_WATCHERS);                        /* few files add a watcher */
    list[i] = (watcher){before, in_parent, in_child}; /* perhaps again: see cv_once_run */
    if (i == *n) ++*n;
    cv_mutex_unlock(&forks.lock);
}

void cv_thread_hold_on_fork(cv_mutex *mutex)
{
    int i = 0;
    cv_once_run(&forks.once, watch_forks);
    cv_mutex_lock(&forks.lock);
    while (i < forks.n_held && forks.held[i] != mutex) i++;
    assert(i < MOST_WATCHERS);
    if (i == forks.n_held) forks.held[forks.n_held++] = mutex;
    cv_mutex_unlock(&forks.lock);
}
