/* A shared lock with cheap entry. Calls through a handle enter and leave the gate; close and
 * refresh shut it. Entering and leaving cost one atomic addition each.
 *
 * All functions are called with the GIL and release it while they wait. In a forked child,
 * gate_lost_threads must be called before all others. */
#ifndef GATE_H
#define GATE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct gate {
    atomic_int_least64_t inside; /* number of calls inside, plus GATE_SHUT if shut */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    unsigned forks; /* gate_forks when the gate was initialized */
} gate;

#define GATE_SHUT (INT64_C(1) << 62)

extern atomic_uint gate_forks; /* number of forks between the first process and this one */

void gate_watch_forks(void); /* call once, before the first gate_init */

void gate_init(gate *g);
void gate_destroy(gate *g);

bool gate_renew(gate *g); /* part of gate_lost_threads, in a child */

/* In a forked child, initializes the gate again, with no call inside. Returns true if threads of
 * the parent were inside: they do not exist here and may have left locks held. The gate is then
 * shut; the caller must repair the handle and open it. */
static inline bool gate_lost_threads(gate *g)
{
    return g->forks != atomic_load_explicit(&gate_forks, memory_order_relaxed) &&
           gate_renew(g);
}

void gate_wait(gate *g); /* part of gate_enter: waits until it is open, then enters */
void gate_wake(gate *g); /* part of gate_leave: wakes a thread in gate_shut         */

static inline void gate_enter(gate *g)
{
    if (atomic_fetch_add_explicit(&g->inside, 1, memory_order_acquire) >= GATE_SHUT)
        gate_wait(g);
}

/* Enters the gate and returns true, or returns false if this would have to wait. */
bool gate_enter_at_once(gate *g);

static inline bool gate_is_shut(gate *g) { return atomic_load(&g->inside) >= GATE_SHUT; }

static inline void gate_leave(gate *g)
{
    if (atomic_fetch_sub_explicit(&g->inside, 1, memory_order_release) == GATE_SHUT + 1)
        gate_wake(g);
}

/* Waits until no call is inside, and keeps others out until gate_open. */
void gate_shut(gate *g);
void gate_open(gate *g);

#endif
