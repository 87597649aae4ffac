/* Reads of many ranges, several waves, and retries of what a parser refuses. */
#ifndef CV_STORE_READING_H
#define CV_STORE_READING_H

#include "base/thread.h"
#include "store/store.h"

/* ---- A deep queue before the medium ---------------------------------------- */

/* Has the system fetch a range, and does not wait for it. A hint. */
typedef void (*cv_ask_fn)(cv_store *store, const cv_store_range *range);

/* read_many for stores that wait for a medium: hints many ranges before reading the
 * first. */
cv_status cv_store_read_deep(cv_store *store, const cv_store_range *ranges, size_t n,
                             const cv_arrivals *arrivals, cv_ask_fn ask, cv_error *err);

/* ---- Waves that are under way together ----
 *
 * Several waves of one reader. Other threads report arrivals; the reader's thread hands
 * ranges on and checks for cancellation. */

struct cv_gathering {
    cv_mutex lock;
    cv_cond changed;
    struct cv_gathered *first;
};

/* One of them. The members are the gathering's, under its lock. */
typedef struct cv_gathered {
    cv_gathering *all;
    struct cv_gathered *next;
    cv_arrivals arrivals;
    size_t n_left; /* requests that are not gone */
    size_t *arrived;
    size_t n_arrived, n_told;
    size_t failed; /* the range of the first failure; SIZE_MAX: none is to blame */
    cv_status status;
    cv_error error;
} cv_gathered;

void cv_gathering_init(cv_gathering *all);
void cv_gathering_destroy(cv_gathering *all); /* all have left */

/* Hands on an arrived range, oldest wave first, or waits for one. *goes_on: there is more.
 * On the first failure, or when `watch` stops, give all up. */
cv_status cv_gathering_wait(cv_gathering *all, cv_watch *watch, bool *goes_on, cv_error *err);

/* Waits for the only wave there is, or gives it up, and ends it. NULL: nothing is under way. */
cv_status cv_gathering_finish(cv_gathering *all, cv_reading *reading, cv_watch *watch,
                              cv_error *err);

/* A wave of n ranges and so many requests begins; `arrivals` are copied. */
cv_status cv_gathered_join(cv_gathered *wave, cv_gathering *all, const cv_arrivals *arrivals,
                           size_t n, size_t n_requests, cv_error *err);

/* A range has arrived; `n` requests are gone, with the status of `error` and its range. Any
 * thread. */
void cv_gathered_arrived(cv_gathered *wave, size_t range);
void cv_gathered_gone(cv_gathered *wave, size_t n, cv_status status, const cv_error *error,
                      size_t range);

/* Waits until all its requests are gone, and leaves. */
void cv_gathered_leave(cv_gathered *wave);

/* ---- Reading twice ----
 *
 * Far bytes may be damaged in transit or by caches: what a parser refuses is fetched again
 * past all caches, and reported only if refused twice. */

/* Reads that can be repeated from the start and leave no effect when they fail. */
typedef struct cv_doubted {
    cv_store *store; /* NULL: none that is doubted */
    cv_status (*read)(void *context, cv_error *err);
    void *context;
    bool begins; /* nothing that was read before is used */
} cv_doubted;

/* Whether a parser speaks so of bytes that are not what they should be. */
bool cv_is_doubtful(cv_status status);

/* Reads, twice if worth it. CATERVA_EIO: the store's version changed; else the last
 * reading's status. */
cv_status cv_store_doubting(const cv_doubted *d, cv_error *err);

/* The second reading alone, for a caller that doubts what an earlier one returned. */
cv_status cv_store_read_again(const cv_doubted *d, cv_error *err);

#endif
