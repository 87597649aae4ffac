/* Waves of one reader that are under way together. Other threads say what has arrived and
 * what is gone; the reader's own thread hands that on, of whichever wave it is, and asks now
 * and then whether it is still wanted. */
#ifndef CV_STORE_GATHER_H
#define CV_STORE_GATHER_H

#include "store/store.h"

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

#endif
