/* Room: base. Progress and cancellation. Progress never decreases or exceeds the total;
 * calls of one function never overlap. */
#include "base/watch.h"

enum { LOOK_NS = 20000000 }; /* how often who waits asks */

void cv_watch_init(cv_watch *watch, cv_progress_fn tell, void *context)
{
    *watch = (cv_watch){.tell = tell, .context = context};
    atomic_init(&watch->done, 0);
    atomic_init(&watch->total, 0);
    atomic_init(&watch->stopped, false);
    cv_mutex_init(&watch->lock);
}

void cv_watch_destroy(cv_watch *watch) { cv_mutex_destroy(&watch->lock); }

void cv_watch_init_steps(cv_watch *watch, cv_progress_fn tell, void *context, cv_watch *also)
{
    cv_watch_init(watch, tell, context);
    watch->counts_steps = true;
    watch->also = also;
}

void cv_watch_stop(cv_watch *watch)
{
    atomic_store_explicit(&watch->stopped, true, memory_order_relaxed);
}

/* Calls the function; with the lock. */
static bool call(cv_watch *watch)
{
    if (!watch->tell) return true;
    int64_t total = atomic_load_explicit(&watch->total, memory_order_relaxed);
    int64_t done = atomic_load_explicit(&watch->done, memory_order_relaxed);
    if (done > total) done = total;
    if (watch->tell(watch->context, done, total) == 0) return true;
    atomic_store_explicit(&watch->stopped, true, memory_order_relaxed);
    return false;
}

/* ---- Calls through a handle --------------------------------------------- */

void cv_watch_begin(cv_watch *watch)
{
    cv_mutex_lock(&watch->lock);
    if (watch->n_calls++ == 0) {
        atomic_store_explicit(&watch->done, 0, memory_order_relaxed);
        atomic_store_explicit(&watch->total, 0, memory_order_relaxed);
        atomic_store_explicit(&watch->stopped, false, memory_order_relaxed);
    }
    cv_mutex_unlock(&watch->lock);
}

void cv_watch_end(cv_watch *watch, bool good)
{
    cv_mutex_lock(&watch->lock);
    int64_t total = atomic_load_explicit(&watch->total, memory_order_relaxed);
    if (--watch->n_calls == 0 && good && total > 0) {
        atomic_store_explicit(&watch->done, total, memory_order_relaxed);
        call(watch); /* too late to stop */
    }
    cv_mutex_unlock(&watch->lock);
}

/* ---- Counting ------------------------------------------------------------ */

void cv_watch_expect(cv_watch *watch, int64_t bytes)
{
    for (; watch; watch = watch->also)
        if (!watch->counts_steps)
            atomic_fetch_add_explicit(&watch->total, bytes, memory_order_relaxed);
}

void cv_watch_add(cv_watch *watch, int64_t bytes)
{
    for (; watch; watch = watch->also)
        if (!watch->counts_steps)
            atomic_fetch_add_explicit(&watch->done, bytes, memory_order_relaxed);
}

void cv_watch_set_steps(cv_watch *watch, int64_t total)
{
    if (watch) atomic_store_explicit(&watch->total, total, memory_order_relaxed);
}

static cv_status fail_stopped(cv_error *err)
{
    return cv_fail(err, CATERVA_ESTOPPED, -1, "stopped");
}

static bool is_stopped(const cv_watch *watch)
{
    return atomic_load_explicit(&watch->stopped, memory_order_relaxed);
}

cv_status cv_watch_tell(cv_watch *watch, int64_t bytes, cv_error *err)
{
    cv_watch_add(watch, bytes);
    for (; watch; watch = watch->also) {
        if (is_stopped(watch)) return fail_stopped(err);
        if (watch->counts_steps && atomic_load(&watch->total) == 0)
            continue; /* not yet known */
        if (!cv_mutex_try_lock(&watch->lock)) continue;
        bool goes_on = call(watch);
        cv_mutex_unlock(&watch->lock);
        if (!goes_on) return fail_stopped(err);
    }
    return CV_OK;
}

static bool has_function(const cv_watch *watch)
{
    while (watch && !watch->tell) watch = watch->also;
    return watch != NULL;
}

cv_status cv_watch_wait(cv_watch *watch, cv_cond *changed, cv_mutex *lock, cv_error *err)
{
    if (!has_function(watch)) {
        cv_cond_wait(changed, lock);
        return CV_OK;
    }
    cv_cond_wait_for(changed, lock, LOOK_NS);
    cv_mutex_unlock(lock);
    cv_status status = cv_watch_tell(watch, 0, err);
    cv_mutex_lock(lock);
    return status;
}

cv_status cv_watch_step(cv_watch *watch, int64_t steps, cv_error *err)
{
    if (!watch) return CV_OK;
    atomic_fetch_add_explicit(&watch->done, steps, memory_order_relaxed);
    if (is_stopped(watch)) return fail_stopped(err);
    cv_mutex_lock(&watch->lock);
    bool goes_on = call(watch);
    cv_mutex_unlock(&watch->lock);
    if (!goes_on) return fail_stopped(err);
    return cv_watch_tick(watch->also, 0, err);
}
