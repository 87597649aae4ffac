/* Room: engine/pending. The place between encoding and storage. Knows nothing of what
 * chunks hold; order on storage does not matter before a commit, and a request ends when
 * all its chunks are there. */
#include "engine/pending/behind.h"

#include "base/os.h"
#include "engine/cache/cache.h"
#include "engine/run/thresholds.h"
#include "frame/put.h"

/* Puts what is in the place, unless somebody does so already. */
static bool put_one(void *context, cv_pool_after *after)
{
    (void)after;
    cv_behind *b = context;
    cv_error error = {0};
    cv_mutex_lock(&b->lock);
    bool found = b->place == CV_PLACE_FULL;
    if (found) b->place = CV_PLACE_AT_WORK;
    cv_mutex_unlock(&b->lock);
    if (!found) return false;

    cv_status status = cv_txn_put(b->txn, b->chunk, &b->encoded, &error);
    cv_mutex_lock(&b->lock);
    b->place = CV_PLACE_FREE;
    if (status != CV_OK && b->status == CV_OK) {
        b->status = status;
        b->error = error;
    }
    cv_mutex_unlock(&b->lock);
    return false; /* more only after another post */
}

void cv_behind_init(cv_behind *behind, cv_txn *txn)
{
    *behind = (cv_behind){.txn = txn, .cores = cv_os_cores(), .least = CV_LEAST_BEHIND};
    behind->job.step = put_one;
    behind->job.context = behind;
    behind->job.most = 1;
    cv_mutex_init(&behind->lock);
}

void cv_behind_destroy(cv_behind *behind)
{
    cv_buffer_free(&behind->encoded);
    cv_mutex_destroy(&behind->lock);
}

void cv_behind_begin(cv_behind *behind, cv_store *store, int64_t n_chunks,
                     int64_t chunk_bytes, int helpers)
{
    bool is_idle = helpers == 0 && behind->cores > 1 && !behind->crowded;
    behind->active =
        is_idle && store->slow_writes && n_chunks > 1 && chunk_bytes <= CV_MOST_BEHIND;
    behind->status = CV_OK;
}

/* With the lock. */
static void take_place(cv_behind *b, int64_t chunk, cv_buffer *encoded)
{
    cv_buffer spare = b->encoded;
    b->encoded = *encoded;
    b->chunk = chunk;
    b->place = CV_PLACE_FULL;
    *encoded = spare;
    encoded->size = 0;
}

cv_status cv_behind_put(cv_behind *behind, int64_t chunk, cv_buffer *encoded, cv_error *err)
{
    if (!behind->active || encoded->size < behind->least)
        return cv_txn_put(behind->txn, chunk, encoded, err);
    cv_mutex_lock(&behind->lock);
    cv_status status = behind->status;
    if (status != CV_OK && err) *err = behind->error;
    bool is_free = status == CV_OK && behind->place == CV_PLACE_FREE;
    if (is_free) take_place(behind, chunk, encoded);
    cv_mutex_unlock(&behind->lock);
    CV_TRY(status);
    if (!is_free) return cv_txn_put(behind->txn, chunk, encoded, err);
    (void)
        cv_cache_shared(); /* its handlers of fork must be older than the job's, see pool.c */
    (void)cv_pool_post(&behind->job);
    return CV_OK;
}

cv_status cv_behind_end(cv_behind *behind, cv_status status, cv_error *err)
{
    if (!behind->active) return status;
    cv_pool_withdraw(&behind->job);
    cv_pool_after after;
    (void)put_one(behind, &after); /* no thread came */
    behind->active = false;
    if (status != CV_OK) return status;
    if (behind->status != CV_OK && err) *err = behind->error;
    return behind->status;
}
