/* The gate of a handle; see gate.h. Independent of what a handle is. */
#include "gate.h"

#include "extension.h"

atomic_uint gate_forks;

static void count_fork(void) { atomic_fetch_add(&gate_forks, 1); }

static void watch(void)
{
#ifdef _WIN32 /* has no forks */
    (void)count_fork;
#else
    pthread_atfork(NULL, NULL, count_fork);
#endif
}

void gate_watch_forks(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, watch);
}

void gate_init(gate *g)
{
    atomic_init(&g->inside, 0);
    pthread_mutex_init(&g->lock, NULL);
    pthread_cond_init(&g->changed, NULL);
    g->forks = atomic_load(&gate_forks);
}

void gate_destroy(gate *g)
{
    if (g->forks != atomic_load(&gate_forks)) return; /* the parent's threads may hold it */
    pthread_cond_destroy(&g->changed);
    pthread_mutex_destroy(&g->lock);
}

bool gate_renew(gate *g)
{
    bool lost = atomic_load(&g->inside) != 0;
    gate_init(g);
    if (lost) atomic_store(&g->inside, GATE_SHUT);
    return lost;
}

void gate_wait(gate *g)
{
    gate_leave(g);
    PyThreadState *thread = PyEval_SaveThread();
    pthread_mutex_lock(&g->lock);
    for (;;) {
        while (atomic_load(&g->inside) >= GATE_SHUT) pthread_cond_wait(&g->changed, &g->lock);
        if (atomic_fetch_add(&g->inside, 1) < GATE_SHUT) break;
        atomic_fetch_sub(&g->inside, 1);
    }
    pthread_mutex_unlock(&g->lock);
    PyEval_RestoreThread(thread);
}

bool gate_enter_at_once(gate *g)
{
    if (atomic_fetch_add(&g->inside, 1) < GATE_SHUT) return true;
    gate_leave(g);
    return false;
}

void gate_wake(gate *g)
{
    pthread_mutex_lock(&g->lock);
    pthread_cond_broadcast(&g->changed);
    pthread_mutex_unlock(&g->lock);
}

void gate_shut(gate *g)
{
    PyThreadState *thread = PyEval_SaveThread();
    pthread_mutex_lock(&g->lock);
    while (atomic_load(&g->inside) >= GATE_SHUT) pthread_cond_wait(&g->changed, &g->lock);
    atomic_fetch_add(&g->inside, GATE_SHUT);
    while (atomic_load(&g->inside) != GATE_SHUT) pthread_cond_wait(&g->changed, &g->lock);
    pthread_mutex_unlock(&g->lock);
    PyEval_RestoreThread(thread);
}

void gate_open(gate *g)
{
    pthread_mutex_lock(&g->lock);
    atomic_fetch_sub(&g->inside, GATE_SHUT);
    pthread_cond_broadcast(&g->changed);
    pthread_mutex_unlock(&g->lock);
}
