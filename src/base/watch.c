/* Room: base. Progress and cancellation. During a call the reported progress never decreases and
 * never exceeds the total. Calls of one watch's function never overlap. */
#include "base/watch.h"

#include "base/os.h"

enum { LOOK_NS = 20000000 }; /* how long cv_watch_wait waits at most */

cv_status cv_progress_check(const caterva_progress *progress, cv_error *err)
{
    if (progress->per_second < CATERVA_NONE)
        return cv_fail(err, CATERVA_EINVAL, -1, "the progress asks for %d reports per second",
                       progress->per_second);
    if (progress->reserved[0] == 0 && progress->reserved[1] == 0) return CV_OK;
    return cv_fail(err, CATERVA_EINVAL, -1, "the reserved members of the progress are not 0");
}

void cv_watch_init(cv_watch *watch, const caterva_progress *progress)
{
    enum { PER_SECOND = 50, SECOND = 1000000000 };
    *watch = (cv_watch){.interval = 0};
    if (progress) watch->progress = *progress;
    int rate = watch->progress.per_second;
    if (rate >= 0) watch->interval = (uint64_t)(SECOND / (rate > 0 ? rate : PER_SECOND));
    atomic_init(&watch->done, 0);
    atomic_init(&watch->total, 0);
    atomic_init(&watch->stopped, false);
    atomic_init(&watch->due, 0);
    cv_mutex_init(&watch->lock);
}

void cv_watch_destroy(cv_watch *watch) { cv_mutex_destroy(&watch->lock); }

cv_watch *cv_watch_open(cv_watch *watch, const caterva_progress *progress, cv_watch *also)
{
    cv_watch_init(watch, progress);
    watch->also = also;
    watch->n_calls = 1;
    return watch->progress.report ? watch : also;
}

cv_watch *cv_watch_open_fixed(cv_watch *watch, const caterva_progress *progress,
                              int64_t total, cv_watch *also)
{
    cv_watch *opened = cv_watch_open(watch, progress, also);
    watch->is_fixed = true;
    atomic_init(&watch->total, total);
    return opened;
}

cv_status cv_watch_close(cv_watch *watch, cv_status status)
{
    cv_watch_end(watch, status == CV_OK);
    cv_watch_destroy(watch);
    return status;
}

void cv_watch_stop(cv_watch *watch)
{
    atomic_store_explicit(&watch->stopped, true, memory_order_relaxed);
}

/* Calls the program's function; the caller holds `lock`. False if the function stops the call. */
static bool report(cv_watch *watch)
{
    if (!watch->progress.report) return true;
    int64_t total = atomic_load_explicit(&watch->total, memory_order_relaxed);
    int64_t done = atomic_load_explicit(&watch->done, memory_order_relaxed);
    if (done > total) done = total;
    bool goes_on = watch->progress.report(watch->progress.context, done, total) == 0;
    watch->reported_done = done;
    watch->reported_total = total;
    if (watch->interval > 0)
        atomic_store_explicit(&watch->due, cv_os_clock_ns() + watch->interval,
                              memory_order_relaxed);
    if (!goes_on) cv_watch_stop(watch);
    return goes_on;
}

/* ---- Calls through a handle --------------------------------------------- */

void cv_watch_begin(cv_watch *watch)
{
    cv_mutex_lock(&watch->lock);
    if (watch->n_calls++ == 0) {
        atomic_store_explicit(&watch->done, 0, memory_order_relaxed);
        atomic_store_explicit(&watch->total, 0, memory_order_relaxed);
        atomic_store_explicit(&watch->stopped, false, memory_order_relaxed);
        atomic_store_explicit(&watch->due, 0, memory_order_relaxed);
        watch->reported_done = watch->reported_total = 0;
    }
    cv_mutex_unlock(&watch->lock);
}

void cv_watch_end(cv_watch *watch, bool good)
{
    cv_mutex_lock(&watch->lock);
    int64_t total = atomic_load_explicit(&watch->total, memory_order_relaxed);
    if (--watch->n_calls == 0 && good) {
        atomic_store_explicit(&watch->done, total, memory_order_relaxed);
        if (watch->reported_done != total || watch->reported_total != total)
            report(watch); /* the result is ignored: the call has ended */
    }
    cv_mutex_unlock(&watch->lock);
}

/* ---- Counting ------------------------------------------------------------ */

/* When the total becomes known, the next step reports at once. */
void cv_watch_expect(cv_watch *watch, int64_t bytes)
{
    for (; watch; watch = watch->also)
        if (!watch->is_fixed &&
            atomic_fetch_add_explicit(&watch->total, bytes, memory_order_relaxed) == 0)
            atomic_store_explicit(&watch->due, 0, memory_order_relaxed);
}

void cv_watch_add(cv_watch *watch, int64_t bytes)
{
    for (; watch; watch = watch->also)
        if (!watch->is_fixed)
            atomic_fetch_add_explicit(&watch->done, bytes, memory_order_relaxed);
}

static cv_status fail_stopped(cv_error *err)
{
    return cv_fail(err, CATERVA_ESTOPPED, -1, "stopped");
}

/* Whether a report is due. Reads the clock only if the watch has a function. */
static bool is_due(const cv_watch *watch)
{
    if (!watch->progress.report) return false;
    uint64_t due = atomic_load_explicit(&watch->due, memory_order_relaxed);
    return due == 0 || cv_os_clock_ns() >= due;
}

cv_status cv_watch_tell(cv_watch *watch, int64_t bytes, cv_error *err)
{
    cv_watch_add(watch, bytes);
    for (; watch; watch = watch->also) {
        if (atomic_load_explicit(&watch->stopped, memory_order_relaxed))
            return fail_stopped(err);
        if (!is_due(watch) || !cv_mutex_try_lock(&watch->lock)) continue;
        bool goes_on = !is_due(watch) || report(watch);
        cv_mutex_unlock(&watch->lock);
        if (!goes_on) return fail_stopped(err);
    }
    return CV_OK;
}

cv_status cv_watch_step(cv_watch *watch, int64_t bytes, cv_error *err)
{
    if (!watch) return CV_OK;
    if (watch->is_fixed) atomic_fetch_add_explicit(&watch->done, bytes, memory_order_relaxed);
    return cv_watch_tell(watch, 0, err);
}

cv_status cv_watch_wait(cv_watch *watch, cv_cond *changed, cv_mutex *lock, cv_error *err)
{
    const cv_watch *asked = watch;
    while (asked && !asked->progress.report) asked = asked->also;
    if (!asked) {
        cv_cond_wait(changed, lock);
        return CV_OK;
    }
    cv_cond_wait_for(changed, lock, LOOK_NS);
    cv_mutex_unlock(lock);
    cv_status status = cv_watch_tell(watch, 0, err);
    cv_mutex_lock(lock);
    return status;
}
