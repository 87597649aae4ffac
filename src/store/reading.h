/* Reads of many ranges, parallel waves, and second reads of bytes that a parser refused. */
#ifndef CV_STORE_READING_H
#define CV_STORE_READING_H

#include "base/thread.h"
#include "store/store.h"

/* ---- Many reads queued at the medium --------------------------------------- */

/* Tells the system to fetch a range, without waiting. A hint. */
typedef void (*cv_ask_fn)(cv_store *store, const cv_store_range *range);

/* read_many for stores on a local medium: hints many ranges before it reads the first one. */
cv_status cv_store_read_deep(cv_store *store, const cv_store_range *ranges, size_t n,
                             const cv_arrivals *arrivals, cv_ask_fn ask, cv_error *err);

/* ---- Parallel waves ----
 *
 * Several waves of one reader. Other threads report arrived ranges. The reader's thread passes the
 * ranges on and checks for cancellation. */

struct cv_gathering {
    cv_mutex lock;
    cv_cond changed;
    struct cv_gathered *first;
};

/* One wave. The gathering's lock protects the members. */
typedef struct cv_gathered {
    cv_gathering *all;
    struct cv_gathered *next;
    cv_arrivals arrivals;
    size_t n_left; /* requests that have not ended */
    size_t *arrived;
    size_t n_arrived, n_told;
    size_t failed; /* the range that failed first; SIZE_MAX if it is no single range */
    cv_status status;
    cv_error error;
} cv_gathered;

void cv_gathering_init(cv_gathering *all);
void cv_gathering_destroy(cv_gathering *all); /* all waves must have left */

/* Passes on one arrived range, from the oldest wave first, or waits. Sets *goes_on to whether more
 * ranges will arrive. After a failure, or if `watch` stops, end all waves with `gives_up`. */
cv_status cv_gathering_wait(cv_gathering *all, cv_watch *watch, bool *goes_on, cv_error *err);

/* Waits for the only wave and ends it. After a failure, cancels it. If NULL, does nothing. */
cv_status cv_gathering_finish(cv_gathering *all, cv_reading *reading, cv_watch *watch,
                              cv_error *err);

/* Begins a wave of n ranges and n_requests requests. Copies `arrivals`. */
cv_status cv_gathered_join(cv_gathered *wave, cv_gathering *all, const cv_arrivals *arrivals,
                           size_t n, size_t n_requests, cv_error *err);

/* cv_gathered_arrived reports that a range has arrived, cv_gathered_gone that `n` requests have
 * ended with this status, error and range. Any thread. */
void cv_gathered_arrived(cv_gathered *wave, size_t range);
void cv_gathered_gone(cv_gathered *wave, size_t n, cv_status status, const cv_error *error,
                      size_t range);

/* Waits until all requests of the wave have ended, and takes the wave off the list. */
void cv_gathered_leave(cv_gathered *wave);

/* ---- Second reads ----
 *
 * Bytes of remote objects may be damaged in transit or by caches. Bytes that a parser refuses are
 * read again, past all caches. The error is returned only if the parser refuses them twice. */

/* A read that can be repeated from its start. A failed read must leave no effect. */
typedef struct cv_doubted {
    cv_store *store; /* NULL if there is no second read */
    cv_status (*read)(void *context, cv_error *err);
    void *context;
    bool begins; /* `read` uses no data of earlier reads */
} cv_doubted;

/* Reads, and reads again if that may help. CATERVA_EIO if the store's version changed; else the
 * status of the last read. */
cv_status cv_store_doubting(const cv_doubted *d, cv_error *err);

/* Does only the second read, for a caller that suspects bytes which an earlier read returned. */
cv_status cv_store_read_again(const cv_doubted *d, cv_error *err);

#endif
