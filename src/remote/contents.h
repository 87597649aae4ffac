/* The bytes that one request for one range brings, of an object of which nothing need be known. */
#ifndef CV_REMOTE_CONTENTS_H
#define CV_REMOTE_CONTENTS_H

#include "base/watch.h"
#include "remote/object.h"
#include "remote/range_cache.h"
#include "remote/wave.h"

#include <stdatomic.h>

/* The bytes that one request brings, kept. */
typedef struct cv_http_piece {
    uint64_t pos;
    size_t size;
    uint8_t *bytes; /* owned */
} cv_http_piece;

/* Fetches what `ask` names, or, where a server sends only the whole of a small object, that;
 * also the first time, when nothing is known of it. *has_no_ranges: the answer was all of a
 * large object. `is_anew`: past caches on the way. */
cv_status cv_http_read_piece(cv_http_object *object, const cv_ask *ask, bool is_anew,
                             cv_watch *watch, cv_http_piece *out, bool *has_no_ranges,
                             cv_error *err);

/* ---- http_cached ----
 * Ranges of an object, read from a folder that keeps what was read before, and from the
 * server. */

/* cv_http_begin, cv_http_read and cv_http_read_piece, of which only the server is asked for what is not in
 * the cache (NULL: everything), and what it says is kept there. With `is_anew` the server is
 * asked in any case. */
cv_status cv_http_cached_begin(const cv_http_window *window, cv_range_cache *cache,
                               const cv_store_range *ranges, size_t n,
                               const cv_arrivals *arrivals, cv_gathering *all,
                               cv_reading **out, cv_error *err);
cv_status cv_http_cached_read(const cv_http_window *window, cv_range_cache *cache,
                              const cv_store_range *ranges, size_t n,
                              const cv_arrivals *arrivals, cv_error *err);

/* ---- http_file ----
 * An object behind a URL that stores share. Bytes that came with the opening, the end of the
 * object and perhaps its beginning, are kept and lent: all that a reader wants to know of a
 * frame first is there.
 *
 * Threads: all but release at once. */

/* Bytes of the end that come with the opening; of the beginning, where it is wanted. */
enum { CV_HTTP_TAIL = 64 * 1024, CV_HTTP_HEAD = 8 * 1024 };

/* Bytes at hand; they never move nor go before the file does. */
typedef struct cv_http_kept {
    cv_http_piece piece;
    struct cv_http_kept *next;
} cv_http_kept;

typedef struct cv_http_file {
    atomic_int users;
    cv_http_object *object;
    cv_range_cache *cache; /* NULL: none */
    _Atomic(cv_http_kept *) pieces;
} cv_http_file;

/* `member` is the path of an object in a directory, else "". Bytes at `offset` come with the
 * opening, or the object's end where that is 0. */
cv_status cv_http_file_open(cv_session *session, const char *url, const char *member,
                            uint64_t offset, cv_watch *watch, cv_http_file **out,
                            cv_error *err);

/* One user less; the last one frees it. NULL: nothing. */
void cv_http_file_release(cv_http_file *file);

/* Bytes that are kept, or NULL. */
const uint8_t *cv_http_file_find(cv_http_file *file, uint64_t pos, size_t size);

/* The end of the object, which holds the seal, when it was kept whole; else NULL. */
const uint8_t *cv_http_file_end(cv_http_file *file, size_t *size);

/* Bytes [begin, end) of the object, and its end, as they are looked at once more. */
typedef struct cv_http_again {
    uint64_t begin, end;
    bool replaces; /* what is another than what was kept is lent from now on */
    cv_watch *watch;
} cv_http_again;

/* Fetches once more, past all caches, what was kept of them. */
cv_status cv_http_file_compare(cv_http_file *file, const cv_http_again *again, bool *is_same,
                               cv_error *err);

/* Fetches a piece, from the cache when that has it (NULL: there is none), and keeps it. */
cv_status cv_http_file_fetch(cv_http_file *file, cv_range_cache *cache, const cv_ask *ask,
                             cv_watch *watch, bool *has_no_ranges, cv_error *err);

/* ---- http_chunks ----
 * Chunks that are objects of their own. */

typedef struct cv_http_chunks cv_http_chunks;

/* Of the directory at `url`. */
cv_status cv_http_chunks_new(cv_session *session, const char *url, cv_http_chunks **out,
                             cv_error *err);
void cv_http_chunks_free(cv_http_chunks *chunks); /* NULL is fine */

/* Nothing that was kept is used any more, and what is kept from now on is fetched past all
 * caches. */
void cv_http_chunks_forget(cv_http_chunks *chunks);

/* Any thread; CATERVA_ENOTFOUND when there is no such object. */
cv_status cv_http_chunks_size(cv_http_chunks *chunks, cv_object id, cv_watch *watch,
                              uint64_t *size, cv_error *err);

/* As cv_store_ops.meet and .read_many have it. */
cv_status cv_http_chunks_meet(cv_http_chunks *chunks, const cv_object *ids, size_t n,
                              cv_watch *watch, cv_error *err);
cv_status cv_http_chunks_read(cv_http_chunks *chunks, const cv_store_range *ranges, size_t n,
                              const cv_arrivals *arrivals, cv_error *err);

#endif
