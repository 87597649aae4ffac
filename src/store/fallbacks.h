/* What the stores share: how paths are shown, and refusals in one wording. */
#ifndef CV_STORE_FALLBACKS_H
#define CV_STORE_FALLBACKS_H

#include "store/store.h"

/* A path as sentences show it: a long one keeps its end, so that the reason
 * behind it still fits the message. */
typedef struct cv_shown_path {
    char text[136];
} cv_shown_path;

cv_shown_path cv_show_path(const char *path);

/* The schemes of URLs that are read, recognised in any case of letters. */
typedef enum cv_scheme {
    CV_SCHEME_NONE,
    CV_SCHEME_HTTP,
    CV_SCHEME_HTTPS,
    CV_SCHEME_S3
} cv_scheme;

cv_scheme cv_url_scheme(const char *text);
bool cv_is_url(const char *text); /* whether it begins with one of these schemes */

/* A URL as sentences show it: without user, password and query, which may be secrets; a long
 * one keeps its end. Also for text that is not a URL. cv_show_path does this for all URLs. */
cv_shown_path cv_show_url(const char *text);

/* The path without trailing slashes, which a file's may not have. Owned. */
cv_status cv_strip_slashes(const char *path, char **out, cv_error *err);

/* A path that could not be opened: CATERVA_ENOTFOUND when there is nothing
 * (CATERVA_EUNSUPPORTED for a URL of a scheme that is not read),
 * else CATERVA_EIO with the system's reason. */
cv_status cv_fail_open(cv_error *err, int sys_errno, const char *path);

/* CATERVA_EBUSY when the lock is held elsewhere, CATERVA_EIO when it failed. */
cv_status cv_fail_lock(cv_error *err, int sys_errno, const char *path);

/* CATERVA_ECORRUPT: bytes [pos, pos + size) of `what`, which has `end` bytes. */


/* CATERVA_EREADONLY for a URL of any scheme, where something was to be made or changed; CV_OK for
 * a path. */
cv_status cv_refuse_url(const char *path, cv_error *err);

cv_status cv_fail_past_end(cv_error *err, const char *what, uint64_t pos, size_t size,
                           uint64_t end);

/* True in a child of fork for a store that was opened before: whatever of it is not in this
 * process's memory is the parent's. */
bool cv_store_is_parents(const cv_store *store);

/* CATERVA_EREADONLY unless the store may be written; CATERVA_EBUSY when it is a parent's. */
cv_status cv_store_check_writable(const cv_store *store, cv_error *err);

/* CATERVA_ENOTFOUND unless `object` is the frame: for stores without others. */
cv_status cv_store_check_frame(const cv_store *store, cv_object object, cv_error *err);

/* The answers of a store that is one run of bytes: it holds no chunk object
 * that could be removed, and is never replaced whole. */
cv_status cv_store_no_replace(cv_store *store, const void *bytes, size_t size, bool durable,
                              cv_error *err);
cv_status cv_store_no_remove(cv_store *store, cv_object object, cv_error *err);

/* The answers of a store that is only read, as cv_store_check_writable has them; there is
 * nothing to publish. */
cv_status cv_store_no_write(cv_store *store, cv_object object, uint64_t pos, const void *src,
                            size_t size, cv_error *err);
cv_status cv_store_no_truncate(cv_store *store, cv_object object, uint64_t size,
                               cv_error *err);
cv_status cv_store_no_sync(cv_store *store, cv_object object, cv_error *err);
cv_status cv_store_no_publish(cv_store *store, bool durable, cv_error *err);

/* ---- deep ----
 * Ranges of files that are not in memory, with a deep queue before the medium. */

/* Has the system fetch a range, and does not wait for it. A hint. */
typedef void (*cv_ask_fn)(cv_store *store, const cv_store_range *range);

/* read_many of a store whose reads wait for the medium: many ranges are asked for before
 * the first one is read. */
cv_status cv_store_read_deep(cv_store *store, const cv_store_range *ranges, size_t n,
                             const cv_arrivals *arrivals, cv_ask_fn ask, cv_error *err);

/* ---- gather ----
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

/* ---- doubt ----
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

#endif
