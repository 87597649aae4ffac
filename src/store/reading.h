/* Ways to read a store that are more than one call: many ranges of a file that is not in
 * memory, several waves at once, and once more what a parser refuses. */
#ifndef CV_STORE_READING_H
#define CV_STORE_READING_H

#include "base/thread.h"
#include "store/store.h"

/* ---- A deep queue before the medium ---------------------------------------- */

/* Has the system fetch a range, and does not wait for it. A hint. */
typedef void (*cv_ask_fn)(cv_store *store, const cv_store_range *range);

/* read_many of a store whose reads wait for the medium: many ranges are asked for before
 * the first one is read. */
cv_status cv_store_read_deep(cv_store *store, const cv_store_range *ranges, size_t n,
                             const cv_arrivals *arrivals, cv_ask_fn ask, cv_error *err);

/* ---- Waves that are under way together ----
 *
 * Waves of one reader that are under way together. Other threads say what has arrived and
 * what is gone; the reader's own thread hands that on, of whichever wave it is, and asks now
 * and then whether it is still wanted. */

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

/* Hands on a range that has arrived, of the oldest wave that has one, or waits until there is
 * one. *goes_on: there is more to wait for. After a failure, the first one of any, or when `watch` says stop, all are to be given
 * up. */
cv_status cv_gathering_wait(cv_gathering *all, cv_watch *watch, bool *goes_on, cv_error *err);

/* Waits for the only wave there is, or gives it up, and ends it. NULL: nothing is under way. */
cv_status cv_gathering_finish(cv_gathering *all, cv_reading *reading, cv_watch *watch,
                              cv_error *err);

/* A wave of n ranges and so many requests begins; `arrivals` are copied. */
cv_status cv_gathered_join(cv_gathered *wave, cv_gathering *all, const cv_arrivals *arrivals,
                           size_t n, size_t n_requests, cv_error *err);

/* A range has arrived; so many requests are gone, with the status of `error`, and the range
 * to blame for it. Any thread. */
void cv_gathered_arrived(cv_gathered *wave, size_t range);
void cv_gathered_gone(cv_gathered *wave, size_t n, cv_status status, const cv_error *error,
                      size_t range);

/* Waits until all its requests are gone, and leaves. */
void cv_gathered_leave(cv_gathered *wave);

/* ---- Reading twice ----
 *
 * Bytes of a store that is far may be damaged on their way, or by a cache that kept them: what
 * a parser refuses, before a checksum is looked at or after, is fetched once more past all
 * caches, and only what is refused twice is told. */

/* Reads of a store, which can be done again from the beginning, and change nothing that stays
 * when they fail. */
typedef struct cv_doubted {
    cv_store *store; /* NULL: none that is doubted */
    cv_status (*read)(void *context, cv_error *err);
    void *context;
    bool begins; /* nothing that was read before is used */
} cv_doubted;

/* Whether a parser speaks so of bytes that are not what they should be. */
bool cv_is_doubtful(cv_status status);

/* Reads; a second time where that is worth it. CATERVA_EIO: it is of another version now than
 * when it was opened; else what the last reading says. */
cv_status cv_store_doubting(const cv_doubted *d, cv_error *err);

/* The second reading alone, for a caller that doubts what an earlier one returned. */
cv_status cv_store_read_again(const cv_doubted *d, cv_error *err);

#endif
