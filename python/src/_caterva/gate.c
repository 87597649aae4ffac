/* The gate of a handle: see gate.h. Must not know what a handle is. */
#include "gate.h"

#include "extension.h"

#include <unistd.h>

void gate_init(gate *g)
{
    atomic_init(&g->inside, 0);
    pthread_mutex_init(&g->lock, NULL);
    pthread_cond_init(&g->changed, NULL);
    g->process = getpid();
}

void gate_destroy(gate *g)
{
    if (g->process != getpid()) return; /* a lock that the parent's threads may hold */
    pthread_cond_destroy(&g->changed);
    pthread_mutex_destroy(&g->lock);
}

/* Those whom a child of fork finds inside never come out. */
static void forget_parent(gate *g)
{
    if (g->process != getpid()) gate_init(g);
}

void gate_wait(gate *g)
{
    forget_parent(g);
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

void gate_wake(gate *g)
{
    pthread_mutex_lock(&g->lock);
    pthread_cond_broadcast(&g->changed);
    pthread_mutex_unlock(&g->lock);
}

void gate_shut(gate *g)
{
    forget_parent(g);
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
