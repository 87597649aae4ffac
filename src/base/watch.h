/* A caller's progress function, which may stop a long call. Called between blocks; a NULL
 * watch costs a comparison. It counts decoded bytes, announced (expect) and counted (tick,
 * add), or steps of a number known at the start. A call's watch may have the handle's as
 * `also`: both are called, both may stop. */
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

/* Begins and ends a call. The first of parallel calls resets the count; the last, if
 * `good`, reports completion. */
void cv_watch_begin(cv_watch *watch);
void cv_watch_end(cv_watch *watch, bool good);

/* Announces or counts bytes, and tells nobody. NULL is fine. */
void cv_watch_expect(cv_watch *watch, int64_t bytes);
void cv_watch_add(cv_watch *watch, int64_t bytes);

/* Sets the number of steps; NULL is fine. */
void cv_watch_set_steps(cv_watch *watch, int64_t total);

/* Counts bytes and reports, unless another thread is reporting. CATERVA_ESTOPPED once any
 * thread was stopped. */
cv_status cv_watch_tell(cv_watch *watch, int64_t bytes, cv_error *err);

static inline cv_status cv_watch_tick(cv_watch *watch, int64_t bytes, cv_error *err)
{
    return watch ? cv_watch_tell(watch, bytes, err) : CV_OK;
}

/* Waits on the condition; may wake early. For a caller's thread beside workers: asks the
 * function now and then, without the lock, since it may answer only there. Without a
 * function: cv_cond_wait. */
cv_status cv_watch_wait(cv_watch *watch, cv_cond *changed, cv_mutex *lock, cv_error *err);

/* Counts steps and tells in any case: the last one told is the total. */
cv_status cv_watch_step(cv_watch *watch, int64_t steps, cv_error *err);

#endif
