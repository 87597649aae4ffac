/* Room: engine/pending. The table of dirty blocks, and the slot for one encoded chunk that
 * waits to be put. engine/write rebuilds chunks. */
#include "engine/pending/pending.h"

#include "base/arith.h"
#include "base/os.h"
#include "engine/cache/cache.h"
#include "engine/items/copy.h"
#include "engine/run/thresholds.h"

#include <string.h>

/* ---- The slot between encoding and storage ---------------------------------------
 *
 * Before a commit, chunks may be stored in any order. A request ends when all are put. */

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
    return false; /* the next step needs another post */
}

static void cv_behind_init(cv_behind *behind, cv_txn *txn)
{
    *behind = (cv_behind){.txn = txn, .cores = cv_os_cores(), .least = CV_LEAST_BEHIND};
    behind->job.step = put_one;
    behind->job.context = behind;
    behind->job.most = 1;
    cv_mutex_init(&behind->lock);
}

/* Begins a request that puts up to `n_chunks` chunks of `chunk_bytes` decoded bytes with
 * `helpers` threads. Uses the slot if a core is idle and the store is slow enough. */
static void cv_behind_begin(cv_behind *behind, cv_store *store, int64_t n_chunks,
                            int64_t chunk_bytes, int helpers)
{
    bool is_idle = helpers == 0 && behind->cores > 1 && !behind->crowded;
    behind->active =
        is_idle && store->slow_writes && n_chunks > 1 && chunk_bytes <= CV_MOST_BEHIND;
    behind->status = CV_OK;
}

/* Called with the lock. */
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
    (void)cv_cache_shared(); /* register its fork handlers before the job's (pool.c) */
    (void)cv_pool_post(&behind->job);
    return CV_OK;
}

cv_status cv_behind_end(cv_behind *behind, cv_status status, cv_error *err)
{
    if (!behind->active) return status;
    cv_pool_withdraw(&behind->job);
    cv_pool_after after;
    (void)put_one(behind, &after); /* unless a thread has taken the chunk */
    behind->active = false;
    if (status != CV_OK) return status;
    if (behind->status != CV_OK && err) *err = behind->error;
    return behind->status;
}

/* ---- Creation, and the fill value -------------------------------------------- */

enum { FIRST_BUCKETS = 64 };

cv_status cv_pending_create(cv_frame *frame, cv_workers *workers, int threads,
                            cv_pending **out, cv_error *err)
{
    cv_pending *pending = cv_calloc(1, sizeof *pending);
    if (!pending) return cv_fail_memory(err, sizeof *pending, "a writer");
    pending->frame = frame;
    pending->workers = workers;
    pending->threads = threads;
    pending->budget = CV_DIRTY_BUDGET;
    pending->least_gathered = CV_LEAST_GATHERED;
    cv_mutex_init(&pending->lock);
    cv_status status = cv_txn_begin(frame, &pending->txn, err);
    cv_behind_init(&pending->behind, pending->txn);
    if (status == CV_OK) status = cv_pending_set_fill(pending, NULL, err);
    if (status != CV_OK) {
        cv_pending_free(pending);
        return status;
    }
    *out = pending;
    return CV_OK;
}

cv_status cv_pending_set_fill(cv_pending *pending, const uint8_t *item, cv_error *err)
{
    size_t size = (size_t)cv_txn_snapshot(pending->txn)->grid.item_size;
    if (!pending->fill) pending->fill = cv_calloc(1, size);
    if (!pending->fill) return cv_fail_memory(err, size, "the fill value");
    if (item) memcpy(pending->fill, item, size);
    bool nan = item && cv_is_nan(item, size);
    pending->fill_kind = nan ? CV_REF_NAN : CV_REF_ZEROS;
    pending->fill_is_stored = item && !nan && !cv_all_zero(item, size);
    return CV_OK;
}

void cv_pending_fill(cv_pending *pending) { pending->fill_is_due = pending->fill_is_stored; }

cv_status cv_pending_where(cv_pending *pending, int64_t chunk, cv_chunk_ref *out,
                           cv_error *err)
{
    CV_TRY(cv_txn_find(pending->txn, chunk, out, err));
    if (!pending->fill_is_due || out->kind != CV_REF_UNINIT) return CV_OK;
    out->kind = CV_REF_ITEM;
    out->item = pending->fill;
    return CV_OK;
}

/* ---- Memory of dirty blocks ---------------------------------------------- */

/* Frees a block, or keeps it for reuse: mapping new pages costs more than patching a block. Called
 * with the lock, or by the only thread. */
static void give_block(cv_pending *pending, uint8_t *block)
{
    int64_t size = cv_txn_snapshot(pending->txn)->grid.block_bytes;
    bool full = pending->n_spares == CV_SPARE_BLOCKS ||
                (pending->n_spares + 1) * size > CV_SPARE_BYTES;
    if (!block) return;
    if (full)
        cv_free(block);
    else
        pending->spares[pending->n_spares++] = block;
}

static void free_dirty(cv_pending *pending, cv_dirty_chunk *dirty)
{
    int64_t n_blocks = cv_txn_snapshot(pending->txn)->grid.n_blocks;
    for (int64_t i = 0; i < n_blocks; i++) give_block(pending, dirty->blocks[i]);
    cv_free(dirty);
}

static void drop_all(cv_pending *pending)
{
    for (size_t i = 0; i < pending->n_buckets; i++) {
        while (pending->buckets[i]) {
            cv_dirty_chunk *dirty = pending->buckets[i];
            pending->buckets[i] = dirty->next;
            free_dirty(pending, dirty);
        }
    }
    pending->n_chunks = 0;
    pending->n_whole = 0;
    pending->bytes = 0;
}

void cv_pending_free(cv_pending *pending)
{
    if (!pending) return;
    drop_all(pending);
    while (pending->n_spares > 0) cv_free(pending->spares[--pending->n_spares]);
    cv_free(pending->buckets);
    cv_free(pending->fill);
    cv_buffer_free(&pending->behind.encoded);
    cv_mutex_destroy(&pending->behind.lock);
    cv_txn_free(pending->txn);
    cv_mutex_destroy(&pending->lock);
    cv_free(pending);
}

cv_snapshot *cv_pending_state(const cv_pending *pending)
{
    bool any = pending->n_chunks > 0 || cv_txn_pending(pending->txn);
    return any ? cv_txn_snapshot(pending->txn) : NULL;
}

/* ---- The table ---------------------------------------------------------- */

static size_t bucket_of(const cv_pending *pending, int64_t chunk)
{
    return (size_t)((uint64_t)chunk * UINT64_C(0x9e3779b97f4a7c15) >> 32) &
           (pending->n_buckets - 1);
}

static void forget(cv_pending *pending, cv_dirty_chunk *dirty)
{
    const cv_grid *grid = &cv_txn_snapshot(pending->txn)->grid;
    pending->n_chunks--;
    pending->n_whole -= dirty->n_dirty == grid->n_blocks;
    pending->bytes -= dirty->n_dirty * grid->block_bytes + (int64_t)sizeof *dirty +
                      grid->n_blocks * (int64_t)sizeof(uint8_t *);
    free_dirty(pending, dirty);
}

static cv_dirty_chunk *find(const cv_pending *pending, int64_t chunk)
{
    if (pending->n_chunks == 0) return NULL;
    cv_dirty_chunk *dirty = pending->buckets[bucket_of(pending, chunk)];
    while (dirty && dirty->chunk != chunk) dirty = dirty->next;
    return dirty;
}

cv_dirty_chunk *cv_pending_find(cv_pending *pending, int64_t chunk)
{
    cv_mutex_lock(&pending->lock);
    cv_dirty_chunk *dirty = find(pending, chunk);
    cv_mutex_unlock(&pending->lock);
    return dirty;
}

static cv_status grow(cv_pending *pending, cv_error *err)
{
    size_t n = pending->n_buckets ? pending->n_buckets * 2 : FIRST_BUCKETS;
    cv_dirty_chunk **buckets = cv_calloc(n, sizeof buckets[0]);
    if (!buckets) return cv_fail_memory(err, n * sizeof buckets[0], "dirty chunks");

    cv_dirty_chunk **old = pending->buckets;
    size_t n_old = pending->n_buckets;
    pending->buckets = buckets;
    pending->n_buckets = n;
    for (size_t i = 0; i < n_old; i++) {
        while (old[i]) {
            cv_dirty_chunk *dirty = old[i];
            old[i] = dirty->next;
            cv_dirty_chunk **bucket = &buckets[bucket_of(pending, dirty->chunk)];
            dirty->next = *bucket;
            *bucket = dirty;
        }
    }
    cv_free(old);
    return CV_OK;
}

static cv_status insert(cv_pending *pending, int64_t chunk, cv_dirty_chunk **out,
                        cv_error *err)
{
    if (pending->n_chunks >= pending->n_buckets) CV_TRY(grow(pending, err));
    size_t n_blocks = (size_t)cv_txn_snapshot(pending->txn)->grid.n_blocks;
    size_t size = sizeof(cv_dirty_chunk) + n_blocks * sizeof(uint8_t *);
    cv_dirty_chunk *dirty = cv_calloc(1, size);
    if (!dirty) return cv_fail_memory(err, size, "a dirty chunk");
    dirty->chunk = chunk;
    cv_dirty_chunk **bucket = &pending->buckets[bucket_of(pending, chunk)];
    dirty->next = *bucket;
    *bucket = dirty;
    pending->n_chunks++;
    pending->bytes += (int64_t)size;
    *out = dirty;
    return CV_OK;
}

void cv_pending_renumber(cv_pending *pending, const cv_reshape *reshape, const cv_grid *from)
{
    const cv_grid *to = &cv_txn_snapshot(pending->txn)->grid;
    cv_dirty_chunk *all = NULL;
    if (cv_reshape_keeps_numbers(reshape, from, to) && to->n_chunks >= from->n_chunks) return;
    for (size_t i = 0; i < pending->n_buckets; i++) { /* removes all chunks from the table */
        while (pending->buckets[i]) {
            cv_dirty_chunk *dirty = pending->buckets[i];
            pending->buckets[i] = dirty->next;
            dirty->next = all;
            all = dirty;
        }
    }
    while (all) { /* inserts the chunks with their new numbers */
        cv_dirty_chunk *dirty = all;
        all = dirty->next;
        dirty->chunk = cv_reshape_target(reshape, from, to, dirty->chunk);
        if (dirty->chunk < 0) {
            forget(pending, dirty);
            continue;
        }
        cv_dirty_chunk **bucket = &pending->buckets[bucket_of(pending, dirty->chunk)];
        dirty->next = *bucket;
        *bucket = dirty;
    }
}

cv_status cv_pending_get(cv_pending *pending, int64_t chunk, cv_dirty_chunk **out,
                         cv_error *err)
{
    cv_mutex_lock(&pending->lock);
    *out = find(pending, chunk);
    cv_status status = *out ? CV_OK : insert(pending, chunk, out, err);
    cv_mutex_unlock(&pending->lock);
    return status;
}

cv_status cv_pending_add_block(cv_pending *pending, cv_dirty_chunk *dirty, int64_t block,
                               uint8_t **out, cv_error *err)
{
    const cv_grid *grid = &cv_txn_snapshot(pending->txn)->grid;
    int64_t size = grid->block_bytes;
    cv_mutex_lock(&pending->lock);
    *out = pending->n_spares > 0 ? pending->spares[--pending->n_spares]
                                 : cv_malloc((size_t)size);
    if (*out) {
        dirty->blocks[block] = *out;
        dirty->n_dirty++;
        pending->n_whole += dirty->n_dirty == grid->n_blocks;
        pending->bytes += size;
    }
    cv_mutex_unlock(&pending->lock);
    return *out ? CV_OK : cv_fail_memory(err, (size_t)size, "a dirty block");
}

void cv_pending_remove_block(cv_pending *pending, cv_dirty_chunk *dirty, int64_t block)
{
    const cv_grid *grid = &cv_txn_snapshot(pending->txn)->grid;
    cv_mutex_lock(&pending->lock);
    give_block(pending, dirty->blocks[block]);
    dirty->blocks[block] = NULL;
    pending->n_whole -= dirty->n_dirty == grid->n_blocks;
    dirty->n_dirty--;
    pending->bytes -= grid->block_bytes;
    cv_mutex_unlock(&pending->lock);
}

void cv_pending_drop(cv_pending *pending, int64_t chunk)
{
    cv_mutex_lock(&pending->lock);
    cv_dirty_chunk *dirty = find(pending, chunk);
    if (dirty) {
        cv_dirty_chunk **link = &pending->buckets[bucket_of(pending, chunk)];
        while (*link != dirty) link = &(*link)->next;
        *link = dirty->next;
        forget(pending, dirty);
    }
    cv_mutex_unlock(&pending->lock);
}

int cv_pending_idle(const cv_pending *pending, int64_t n_chunks)
{
    return n_chunks < pending->threads ? pending->threads / (int)n_chunks - 1 : 0;
}

int cv_pending_helpers(int idle, int64_t n, int64_t bytes)
{
    int64_t worth = cv_min_i64(bytes / CV_ENCODE_PER_HELPER, n) - 1;
    return (int)cv_max_i64(0, cv_min_i64(idle, worth));
}

void cv_pending_put_behind(cv_pending *pending, int64_t n_chunks, int helpers)
{
    cv_behind_begin(&pending->behind, pending->frame->store, n_chunks,
                    cv_txn_snapshot(pending->txn)->grid.chunk_bytes, helpers);
}

bool cv_pending_queues(const cv_pending *pending)
{
    const cv_grid *grid = &cv_txn_snapshot(pending->txn)->grid;
    return pending->threads > 1 && grid->chunk_bytes <= CV_MOST_QUEUED_CHUNK &&
           cv_pending_helpers(pending->threads - 1, grid->n_blocks, grid->chunk_bytes) == 0;
}

/* Needs no lock: it is not called by the jobs of a write. */
bool cv_pending_queue_is_full(const cv_pending *pending)
{
    int64_t n = (int64_t)pending->n_whole;
    int64_t bytes = n * cv_txn_snapshot(pending->txn)->grid.chunk_bytes;
    return n >= pending->threads &&
           bytes >= pending->threads * (int64_t)CV_QUEUED_PER_THREAD &&
           cv_pending_queues(pending);
}

bool cv_pending_over_budget(cv_pending *pending)
{
    cv_mutex_lock(&pending->lock);
    bool over = pending->bytes > pending->budget;
    cv_mutex_unlock(&pending->lock);
    return over;
}

cv_status cv_pending_check(const cv_pending *pending, cv_error *err)
{
    CV_TRY(cv_txn_check(pending->txn, err));
    return cv_pending_check_whole(pending, err);
}

cv_status cv_pending_check_whole(const cv_pending *pending, cv_error *err)
{
    if (pending->unsettled)
        return cv_fail(err, CATERVA_ENOMEM, -1, "no memory for the attributes that were set");
    if (!pending->broken) return CV_OK;
    return cv_fail(err, CATERVA_EROLLBACK, -1,
                   "a change failed half-way: roll back the pending changes first");
}

void cv_pending_rollback(cv_pending *pending)
{
    drop_all(pending);
    cv_txn_rollback(pending->txn);
    pending->broken = pending->unsettled = false;
}
