/* Encoded chunks on their way to storage. While one thread encodes chunk after chunk, one of
 * the pool puts the chunk that is done: its checksums, and what the system copies. Several
 * threads that encode put their chunks themselves: then no core is idle.
 *
 * There is place for one chunk. Who finds it taken puts its own chunk itself: nobody waits,
 * and memory is bound by one encoded chunk. Nothing is under way between two requests. */
#ifndef CV_ENGINE_BEHIND_H
#define CV_ENGINE_BEHIND_H

#include "base/heap.h"
#include "engine/run/pool.h"
#include "frame/txn.h"

typedef enum cv_behind_place {
    CV_PLACE_FREE,
    CV_PLACE_FULL,
    CV_PLACE_AT_WORK
} cv_behind_place;

typedef struct cv_behind {
    cv_pool_job job;
    cv_txn *txn;
    int cores;     /* of the machine */
    bool crowded;  /* other processes encode on them: there is none for this */
    size_t least;  /* bytes of an encoded chunk that is worth it */
    bool active;   /* between begin and end */
    cv_mutex lock; /* of all below */
    cv_behind_place place;
    int64_t chunk; /* whose it is */
    cv_buffer encoded;
    cv_status status; /* of the first one that could not be put */
    cv_error error;
} cv_behind;

void cv_behind_init(cv_behind *behind, cv_txn *txn);
void cv_behind_destroy(cv_behind *behind);

/* Before a request that puts up to `n_chunks` chunks of `chunk_bytes` decoded bytes, with
 * `helpers` other threads: is there a core for this, and is it worth it? */
void cv_behind_begin(cv_behind *behind, cv_store *store, int64_t n_chunks,
                     int64_t chunk_bytes, int helpers);

/* Puts the chunk, now or soon. *encoded is the caller's again afterwards, but its contents
 * are lost. Any thread of the request. */
cv_status cv_behind_put(cv_behind *behind, int64_t chunk, cv_buffer *encoded, cv_error *err);

/* After the request, which ended with `status`: returns when all is put, with that or, when
 * it is CV_OK, the first failure of what was put behind it. */
cv_status cv_behind_end(cv_behind *behind, cv_status status, cv_error *err);

#endif
