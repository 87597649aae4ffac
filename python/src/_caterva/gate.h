/* A lock that many enter and one may shut: calls through a handle go in and out, close
 * and refresh need it alone. Going in and out costs one atomic addition each.
 *
 * All functions are called with the GIL and give it up while they wait. After a fork the
 * child's gates are as if nobody had been inside: the threads that were are the parent's. */
#ifndef GATE_H
#define GATE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/types.h>

typedef struct gate {
    atomic_int_least64_t inside; /* how many, and GATE_SHUT */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    pid_t process;
} gate;

#define GATE_SHUT (INT64_C(1) << 62)

void gate_init(gate *g);
void gate_destroy(gate *g);

void gate_wait(gate *g); /* of gate_enter: until it is open, then inside */
void gate_wake(gate *g); /* of gate_leave: for who waits to be alone     */

static inline void gate_enter(gate *g)
{
    if (atomic_fetch_add_explicit(&g->inside, 1, memory_order_acquire) >= GATE_SHUT)
        gate_wait(g);
}

static inline void gate_leave(gate *g)
{
    if (atomic_fetch_sub_explicit(&g->inside, 1, memory_order_release) == GATE_SHUT + 1)
        gate_wake(g);
}

/* Waits until nobody is inside, and keeps it so until gate_open. */
void gate_shut(gate *g);
void gate_open(gate *g);

#endif
