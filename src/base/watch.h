/* Progress of a long call: counts bytes and calls the caller's function, which may stop the call.
 * cv_watch_expect increases the total; cv_watch_tick and cv_watch_add increase the number of bytes
 * done. The function is called between blocks, at most as often as the caller wants. A NULL watch
 * costs one comparison. A call's watch may have the handle's watch as `also`: then both functions
 * are called, and each may stop the call. */
#ifndef CV_BASE_WATCH_H
#define CV_BASE_WATCH_H

#include "base/status.h"
#include "base/thread.h"

#include <stdatomic.h>

/* A file that is listed, moved or deleted counts as this many bytes: the work does not depend on
 * the file's size, which is often unknown. */
#define CV_FILE_BYTES 4096

typedef struct cv_watch {
    caterva_progress progress;
    uint64_t interval;         /* ns between two reports; 0: each step is reported */
    struct cv_watch *also;     /* a watch that also gets all reports; or NULL */
    bool is_fixed;             /* only cv_watch_step counts bytes */
    atomic_int_least64_t done; /* may exceed `total`; reported numbers never do */
    atomic_int_least64_t total;
    atomic_bool stopped;
    atomic_uint_least64_t due;             /* earliest time of the next report; 0: now */
    int64_t reported_done, reported_total; /* guarded by `lock` */
    int n_calls; /* calls in progress; several only on a handle's watch; guarded by `lock` */
    cv_mutex lock; /* held while the function runs */
} cv_watch;

/* Returns CATERVA_EINVAL if a member has an unknown value. */
cv_status cv_progress_check(const caterva_progress *progress, cv_error *err);

/* If `progress` is NULL or has no function, only cv_watch_stop can stop the call. */
void cv_watch_init(cv_watch *watch, const caterva_progress *progress);
void cv_watch_destroy(cv_watch *watch);

/* Opens the watch of one call, which also reports to `also` (or NULL). Returns the watch that the
 * call uses: `watch`, or `also` if `progress` has no function. In either case close `watch`.
 * cv_watch_close reports completion if `status` is CV_OK, and returns `status`. */
cv_watch *cv_watch_open(cv_watch *watch, const caterva_progress *progress, cv_watch *also);
cv_status cv_watch_close(cv_watch *watch, cv_status status);

/* Does the same as cv_watch_open for a call that counts `total` bytes with cv_watch_step. On this
 * watch, cv_watch_expect, _add and _tick change only `also`. */
cv_watch *cv_watch_open_fixed(cv_watch *watch, const caterva_progress *progress,
                              int64_t total, cv_watch *also);

/* Stops the call, as if the function had returned non-zero. Any thread. */
void cv_watch_stop(cv_watch *watch);

/* Begin and end a call. When the first of parallel calls begins, it resets the numbers. When the
 * last call ends, it reports completion if `good`. */
void cv_watch_begin(cv_watch *watch);
void cv_watch_end(cv_watch *watch, bool good);

/* cv_watch_expect increases the total, cv_watch_add the bytes done. Neither reports. NULL is
 * fine. */
void cv_watch_expect(cv_watch *watch, int64_t bytes);
void cv_watch_add(cv_watch *watch, int64_t bytes);

/* Counts bytes and reports, unless it is too early or another thread is reporting. After a stop,
 * returns CATERVA_ESTOPPED until all calls in progress have ended. */
cv_status cv_watch_tell(cv_watch *watch, int64_t bytes, cv_error *err);

static inline cv_status cv_watch_tick(cv_watch *watch, int64_t bytes, cv_error *err)
{
    return watch ? cv_watch_tell(watch, bytes, err) : CV_OK;
}

/* Does the same on a watch of cv_watch_open_fixed. On other watches, reports without counting. NULL
 * is fine. */
cv_status cv_watch_step(cv_watch *watch, int64_t bytes, cv_error *err);

/* Waits on `changed`, in the caller's thread, while workers run; may wake early. Calls
 * cv_watch_tell at least every 20 ms, because some functions can stop the call only on this thread.
 * Releases `lock` while it reports. If there is no function, only waits. */
cv_status cv_watch_wait(cv_watch *watch, cv_cond *changed, cv_mutex *lock, cv_error *err);

#endif
