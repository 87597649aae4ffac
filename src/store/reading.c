/* Room: store. Reads of many ranges, parallel waves, and second reads. Passes each range to its
 * reader once, on the reader's thread. Does not know how a store makes its requests. */
#include "store/reading.h"

#include "base/heap.h"

/* ---- Many reads queued at the medium ----
 *
 * Hints ranges ahead of the range being read, so that each read waits only for its own bytes.
 *
 *     ranges   0 1 2 3 4 5 6 7 8 9 ...
 *                  ^           ^
 *                 read       hinted
 *
 * Measured in ms, on a disk with 100 us per read; io_uring with a depth of 32:
 *
 *                           one by one   hinted    io_uring   io_uring past the page cache
 *     576 ranges, 8.6 KiB   42 - 74      12 - 16   17 - 22    13 - 16
 *     144 ranges, 70 KiB    24            7 - 14   13 - 15    10
 *
 * Hints need no ring and no threads, work in sandboxes without io_uring, keep bytes in the page
 * cache, and avoid read-ahead. */

/* Limits of what is hinted and not yet read. */
enum { MOST_RANGES = 128, MOST_BYTES = 16 << 20 };

cv_status cv_store_read_deep(cv_store *store, const cv_store_range *ranges, size_t n,
                             const cv_arrivals *arrivals, cv_ask_fn ask, cv_error *err)
{
    size_t asked = 0;
    uint64_t under_way = 0;
    for (size_t i = 0; i < n; i++) {
        for (; asked < n && asked < i + MOST_RANGES; asked++) {
            if (asked > i && under_way + ranges[asked].size > MOST_BYTES) break;
            ask(store, &ranges[asked]);
            under_way += ranges[asked].size;
        }
        const cv_store_range *r = &ranges[i];
        cv_status status = cv_store_read(store, r->object, r->pos, r->dst, r->size, err);
        if (status != CV_OK && arrivals->failed) arrivals->failed(arrivals->context, i);
        CV_TRY(status);
        under_way -= r->size;
        CV_TRY(arrivals->arrived(arrivals->context, i, err));
    }
    return CV_OK;
}

/* ---- Parallel waves ----------------------------------------------------------- */

enum { LOOK_NS = 20000000 }; /* ns between checks for cancellation */

void cv_gathering_init(cv_gathering *all)
{
    all->first = NULL;
    cv_mutex_init(&all->lock);
    cv_cond_init(&all->changed);
}

void cv_gathering_destroy(cv_gathering *all)
{
    cv_cond_destroy(&all->changed);
    cv_mutex_destroy(&all->lock);
}

/* ---- One wave --------------------------------------------------------------------------- */

cv_status cv_gathered_join(cv_gathered *w, cv_gathering *all, const cv_arrivals *arrivals,
                           size_t n, size_t n_requests, cv_error *err)
{
    *w = (cv_gathered){
        .all = all, .arrivals = *arrivals, .n_left = n_requests, .failed = SIZE_MAX};
    w->arrived = cv_calloc(n + 1, sizeof *w->arrived);
    if (!w->arrived) return cv_fail_memory(err, n * sizeof *w->arrived, "a list of ranges");
    cv_mutex_lock(&all->lock);
    cv_gathered **at = &all->first;
    while (*at) at = &(*at)->next;
    *at = w;
    cv_mutex_unlock(&all->lock);
    return CV_OK;
}

void cv_gathered_arrived(cv_gathered *w, size_t range)
{
    cv_mutex_lock(&w->all->lock);
    w->arrived[w->n_arrived++] = range;
    cv_cond_wake_all(&w->all->changed);
    cv_mutex_unlock(&w->all->lock);
}

static void note_failure(cv_gathered *w, cv_status status, const cv_error *error,
                         size_t range)
{
    if (w->status != CV_OK) return;
    w->status = status;
    w->error = *error;
    w->failed = range;
}

/* Once the wave's last request has ended, does not touch the wave: the reader may have freed it. */
void cv_gathered_gone(cv_gathered *w, size_t n, cv_status status, const cv_error *error,
                      size_t range)
{
    cv_gathering *all = w->all;
    cv_mutex_lock(&all->lock);
    if (status != CV_OK) note_failure(w, status, error, range);
    w->n_left -= n;
    cv_cond_wake_all(&all->changed);
    cv_mutex_unlock(&all->lock);
}

void cv_gathered_leave(cv_gathered *w)
{
    cv_gathering *all = w->all;
    cv_mutex_lock(&all->lock);
    while (w->n_left > 0) cv_cond_wait(&all->changed, &all->lock);
    cv_gathered **at = &all->first;
    while (*at != w) at = &(*at)->next;
    *at = w->next;
    cv_mutex_unlock(&all->lock);
    cv_free(w->arrived);
}

/* ---- All waves ---------------------------------------------------------------------------- */

/* Passes one range, if one has arrived, to the reader. Call with the lock, which is released while
 * the reader's function runs. */
static bool hand_over(cv_gathered *w)
{
    cv_error error = {0};
    if (w->status != CV_OK || w->n_told == w->n_arrived) return false;
    size_t range = w->arrived[w->n_told++];
    cv_mutex_unlock(&w->all->lock);
    cv_status status = w->arrivals.arrived(w->arrivals.context, range, &error);
    cv_mutex_lock(&w->all->lock);
    if (status != CV_OK) note_failure(w, status, &error, SIZE_MAX);
    return true;
}

static const cv_gathered *find_failed(const cv_gathering *all)
{
    const cv_gathered *w = all->first;
    while (w && w->status == CV_OK) w = w->next;
    return w;
}

static bool has_left(const cv_gathering *all)
{
    const cv_gathered *w = all->first;
    while (w && w->n_left == 0 && w->n_told == w->n_arrived) w = w->next;
    return w != NULL;
}

static bool has_arrived(const cv_gathering *all)
{
    const cv_gathered *w = all->first;
    while (w && w->n_told == w->n_arrived) w = w->next;
    return w != NULL;
}

/* Call with the lock, which is released while the watch's function runs. */
static cv_status check_watch(cv_gathering *all, cv_watch *watch, cv_error *err)
{
    if (!watch) return CV_OK;
    cv_mutex_unlock(&all->lock);
    cv_status status = cv_watch_tick(watch, 0, err);
    cv_mutex_lock(&all->lock);
    return status;
}

static void wait_for_change(cv_gathering *all, const cv_watch *watch)
{
    if (has_arrived(all) || find_failed(all) || !has_left(all)) return;
    if (watch)
        cv_cond_wait_for(&all->changed, &all->lock, LOOK_NS);
    else
        cv_cond_wait(&all->changed, &all->lock);
}

static cv_status report_failure(const cv_gathered *w, cv_error *err)
{
    const cv_arrivals *a = &w->arrivals;
    if (w->failed != SIZE_MAX && a->failed) a->failed(a->context, w->failed);
    if (err) *err = w->error;
    return w->status;
}

cv_status cv_gathering_wait(cv_gathering *all, cv_watch *watch, bool *goes_on, cv_error *err)
{
    cv_status status = CV_OK;
    const cv_gathered *failed = NULL;
    bool is_any = false;
    cv_mutex_lock(&all->lock);
    while (status == CV_OK && !failed && !is_any && has_left(all)) {
        for (cv_gathered *w = all->first; w && !is_any; w = w->next) is_any = hand_over(w);
        failed = find_failed(all);
        if (failed || is_any) continue;
        status = check_watch(all, watch, err);
        if (status == CV_OK) wait_for_change(all, watch);
    }
    if (!failed) failed = find_failed(all);
    *goes_on = has_left(all);
    cv_mutex_unlock(&all->lock);
    return status == CV_OK && failed ? report_failure(failed, err) : status;
}

cv_status cv_gathering_finish(cv_gathering *all, cv_reading *reading, cv_watch *watch,
                              cv_error *err)
{
    cv_status status = CV_OK;
    bool goes_on = reading != NULL;
    while (goes_on && status == CV_OK) status = cv_gathering_wait(all, watch, &goes_on, err);
    cv_store_end_wave(reading, status != CV_OK);
    return status;
}

/* ---- Second reads ----------------------------------------------------------- */

/* Reads again if the store reports that this may help. */
static cv_status read_again(const cv_doubted *d, cv_error *error)
{
    cv_error other = {0};
    const cv_store_ops *ops = d->store->ops;
    cv_status answer = ops->doubt(d->store, d->begins, &other), status = answer;
    if (answer == CV_OK) {
        cv_error again = {0};
        status = d->read(d->context, &again);
        *error = again;
        if (status == CV_OK || cv_is_doubtful(status))
            answer = ops->settle(d->store, status == CV_OK, &other);
    }
    if (answer == CV_OK) return status;
    *error = other;
    return answer;
}

cv_status cv_store_doubting(const cv_doubted *d, cv_error *err)
{
    cv_error error = {0};
    cv_status status = d->read(d->context, &error);
    if (cv_is_doubtful(status) && d->store && d->store->ops->doubt)
        status = read_again(d, &error);
    if (status != CV_OK && err) *err = error;
    return status;
}

cv_status cv_store_read_again(const cv_doubted *d, cv_error *err)
{
    cv_error error = {0};
    if (!d->store || !d->store->ops->doubt) return d->read(d->context, err);
    cv_status status = read_again(d, &error);
    if (status != CV_OK && err) *err = error;
    return status;
}
