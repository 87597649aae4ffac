/* A lock that many enter and one may shut: calls through a handle go in and out, close
 * and refresh need it alone. Going in and out costs one atomic addition each.
 *
 * All functions are called with the GIL and give it up while they wait. In a child of
 * fork, gate_lost_threads comes before all others. */
#ifndef GATE_H
#define GATE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct gate {
    atomic_int_least64_t inside; /* how many, and GATE_SHUT */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    unsigned forks; /* that this process had behind it when the gate was made new */
} gate;

#define GATE_SHUT (INT64_C(1) << 62)

extern atomic_uint gate_forks; /* how many generations of forks this process is from */

void gate_watch_forks(void); /* once, before the first gate */

void gate_init(gate *g);
void gate_destroy(gate *g);

bool gate_renew(gate *g); /* of gate_lost_threads: in a child */

/* In a child of fork the gate is made new, as if nobody had been inside. True when threads
 * of the parent's were, which will never come out and may have left locks behind: then the
 * gate is shut, for the caller to see to it and to open. */
static inline bool gate_lost_threads(gate *g)
{
    return g->forks != atomic_load_explicit(&gate_forks, memory_order_relaxed) &&
           gate_renew(g);
}

void gate_wait(gate *g); /* of gate_enter: until it is open, then inside */
void gate_wake(gate *g); /* of gate_leave: for who waits to be alone     */

static inline void gate_enter(gate *g)
{
    if (atomic_fetch_add_explicit(&g->inside, 1, memory_order_acquire) >= GATE_SHUT)
        gate_wait(g);
}

/* The same, but false and outside where it would have to wait. */
bool gate_enter_at_once(gate *g);

static inline bool gate_is_shut(gate *g) { return atomic_load(&g->inside) >= GATE_SHUT; }

static inline void gate_leave(gate *g)
{
    if (atomic_fetch_sub_explicit(&g->inside, 1, memory_order_release) == GATE_SHUT + 1)
        gate_wake(g);
}

/* Waits until nobody is inside, and keeps it so until gate_open. */
void gate_shut(gate *g);
void gate_open(gate *g);

#endif
