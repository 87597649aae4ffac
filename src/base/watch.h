/* A caller's progress function, which may stop a long call. Counts bytes, announced (expect)
 * and counted (tick, add), and reports between blocks, at most so often as the caller wants.
 * A NULL watch costs a comparison. A call's watch may have the handle's as `also`: both are
 * called, both may stop. */
#ifndef CV_BASE_WATCH_H
#define CV_BASE_WATCH_H

#include "base/status.h"
#include "base/thread.h"

#include <stdatomic.h>

/* A file that is listed, moved or deleted counts this much: the work does not depend on its
 * size, which is often unknown. */
#define CV_FILE_BYTES 4096

typedef struct cv_watch {
    caterva_progress progress;
    uint64_t interval;         /* ns between two reports; 0: every step is reported */
    struct cv_watch *also;     /* or NULL */
    bool is_fixed;             /* counts only what cv_watch_step is given */
    atomic_int_least64_t done; /* may run ahead of `total`: what is reported does not */
    atomic_int_least64_t total;
    atomic_bool stopped;
    atomic_uint_least64_t due;             /* no report before; 0: at once */
    int64_t reported_done, reported_total; /* under the lock */
    int n_calls;   /* under way, of a handle's watch; under the lock */
    cv_mutex lock; /* one call of the function at a time */
} cv_watch;

/* CATERVA_EINVAL if a member has an unknown value. */
cv_status cv_progress_check(const caterva_progress *progress, cv_error *err);

/* Without a function, or with NULL, only cv_watch_stop stops. */
void cv_watch_init(cv_watch *watch, const caterva_progress *progress);
void cv_watch_destroy(cv_watch *watch);

/* Opens the watch of one call, which also reports to `also` (or NULL). Returns what the call
 * is to use: `also` if it has no function of its own. Close `watch` in any case; that reports
 * completion if `status` is CV_OK, and returns it. */
cv_watch *cv_watch_open(cv_watch *watch, const caterva_progress *progress, cv_watch *also);
cv_status cv_watch_close(cv_watch *watch, cv_status status);

/* The same for a call that counts `total` bytes with cv_watch_step. What is announced and
 * counted from inside goes to `also` alone. */
cv_watch *cv_watch_open_fixed(cv_watch *watch, const caterva_progress *progress,
                              int64_t total, cv_watch *also);

/* Says stop from now on, as if the function had. Any thread. */
void cv_watch_stop(cv_watch *watch);

/* Begins and ends a call. The first of parallel calls resets the count; the last, if
 * `good`, reports completion. */
void cv_watch_begin(cv_watch *watch);
void cv_watch_end(cv_watch *watch, bool good);

/* Announces or counts bytes, and reports nothing. NULL is fine. */
void cv_watch_expect(cv_watch *watch, int64_t bytes);
void cv_watch_add(cv_watch *watch, int64_t bytes);

/* Counts bytes and reports, unless it is too early or another thread is reporting.
 * CATERVA_ESTOPPED once any thread was stopped. */
cv_status cv_watch_tell(cv_watch *watch, int64_t bytes, cv_error *err);

static inline cv_status cv_watch_tick(cv_watch *watch, int64_t bytes, cv_error *err)
{
    return watch ? cv_watch_tell(watch, bytes, err) : CV_OK;
}

/* The same for a fixed watch, or NULL; another one counts nothing. */
cv_status cv_watch_step(cv_watch *watch, int64_t bytes, cv_error *err);

/* Waits on the condition; may wake early. For a caller's thread beside workers: asks the
 * function now and then, without the lock, since it may answer only there. Without a
 * function: cv_cond_wait. */
cv_status cv_watch_wait(cv_watch *watch, cv_cond *changed, cv_mutex *lock, cv_error *err);

#endif
