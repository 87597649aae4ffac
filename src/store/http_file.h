/* An object behind a URL that stores share. Bytes that came with the opening, the end of the
 * object and perhaps its beginning, are kept and lent: all that a reader wants to know of a
 * frame first is there.
 *
 * Threads: all but release at once. */
#ifndef CV_STORE_HTTP_FILE_H
#define CV_STORE_HTTP_FILE_H

#include "store/http_object.h"
#include "store/http_piece.h"
#include "store/http_read.h"
#include "store/range_cache.h"

#include <stdatomic.h>

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

#endif
