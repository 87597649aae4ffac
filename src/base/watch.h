/* A caller's function that hears how far a long call is, and may stop it. The engine
 * tells it between blocks; without a function a watch is NULL, and telling costs a
 * comparison.
 *
 * A watch counts either bytes, decoded ones, which whoever does the work announces
 * (expect) and counts (tick, add); or steps, whose number is known at the start. A
 * call's own watch may have the handle's behind it, as `also`: both hear, both may
 * stop. */
#ifndef CV_BASE_WATCH_H
#define CV_BASE_WATCH_H

#include "base/status.h"
#include "base/thread.h"

#include <stdatomic.h>

typedef int (*cv_progress_fn)(void *context, int64_t done, int64_t total);

typedef struct cv_watch {
    cv_progress_fn tell; /* NULL: nobody listens */
    void *context;
    struct cv_watch *also; /* or NULL */
    bool counts_steps;
    atomic_int_least64_t done; /* may run ahead of `total`: what is told does not */
    atomic_int_least64_t total;
    atomic_bool stopped;
    int n_calls;   /* under way, of a handle's watch; under the lock */
    cv_mutex lock; /* one call of the function at a time */
} cv_watch;

void cv_watch_init(cv_watch *watch, cv_progress_fn tell, void *context);
void cv_watch_destroy(cv_watch *watch);

/* Of a call's own watch: it counts `total` steps, and `also` hears. */
void cv_watch_init_steps(cv_watch *watch, cv_progress_fn tell, void *context, cv_watch *also);

/* Says stop from now on, as if the function had. Any thread. */
void cv_watch_stop(cv_watch *watch);

/* A call through the handle begins and ends. The first of several at once begins anew
 * with counting; the last one, when it is `good`, tells that all is done. */
void cv_watch_begin(cv_watch *watch);
void cv_watch_end(cv_watch *watch, bool good);

/* Announces or counts bytes, and tells nobody. NULL is fine. */
void cv_watch_expect(cv_watch *watch, int64_t bytes);
void cv_watch_add(cv_watch *watch, int64_t bytes);

/* Sets the number of steps; NULL is fine. */
void cv_watch_set_steps(cv_watch *watch, int64_t total);

/* Counts bytes and tells, unless another thread is telling just now. CATERVA_ESTOPPED
 * when somebody said, or has said to another thread, that it is enough. */
cv_status cv_watch_tell(cv_watch *watch, int64_t bytes, cv_error *err);

static inline cv_status cv_watch_tick(cv_watch *watch, int64_t bytes, cv_error *err)
{
    return watch ? cv_watch_tell(watch, bytes, err) : CV_OK;
}

/* Sleeps with the lock, which is given up meanwhile, until woken; may wake for no reason. For
 * who waits in the caller's own thread, beside others who work: a function may be able to
 * answer there alone, so it is asked now and then, without the lock. Where nobody listens this
 * is cv_cond_wait. */
cv_status cv_watch_wait(cv_watch *watch, cv_cond *changed, cv_mutex *lock, cv_error *err);

/* Counts steps and tells in any case: the last one told is the total. */
cv_status cv_watch_step(cv_watch *watch, int64_t steps, cv_error *err);

#endif
