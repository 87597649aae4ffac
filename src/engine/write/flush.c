/* Room: engine/write. From decoded blocks to stored chunks: encoding a whole chunk,
 * and rebuilding one from its dirty blocks and what is stored of the rest. */
#include "engine/write/flush.h"

#include "base/heap.h"
#include "engine/items/copy.h"
#include "engine/read/places.h"
#include "engine/write/splice.h"
#include "format/chunk_header.h"
#include "frame/put.h"

#include <stdlib.h>
#include <string.h>

/* Block by block, so that threads can help, and that it can be stopped: a splice of
 * nothing old. */
static cv_status put_by_blocks(cv_splice_job *job, const uint8_t *decoded, cv_spliced *out,
                               cv_error *err)
{
    const cv_codec_spec *spec = &job->pending->workers->spec;
    size_t n_blocks = (size_t)spec->chunk_bytes / (size_t)spec->block_bytes;
    const uint8_t **blocks = cv_malloc(n_blocks * sizeof blocks[0]);
    if (!blocks) return cv_fail_memory(err, n_blocks * sizeof blocks[0], "a list of blocks");
    for (size_t b = 0; b < n_blocks; b++) blocks[b] = decoded + b * (size_t)spec->block_bytes;
    job->blocks = blocks;
    job->n_dirty = (int64_t)n_blocks;
    cv_status status = cv_splice_chunk(job, out, err);
    cv_free(blocks);
    return status;
}

/* After a splice that found the chunk to be larger than its items. */
static cv_status put_plainly(cv_pending *pending, cv_worker *worker, int64_t chunk,
                             const uint8_t *decoded, cv_error *err)
{
    const cv_codec_spec *spec = &pending->workers->spec;
    cv_buffer *encoded = &worker->encoded;
    size_t size = (size_t)spec->chunk_bytes;
    size_t table = cv_block_table_size(spec->chunk_bytes / spec->block_bytes);
    CV_TRY(cv_buffer_reserve(encoded, CV_CHUNK_HEADER_SIZE + size + table, err));
    CV_TRY(cv_buffer_resize(encoded, CV_CHUNK_HEADER_SIZE + size, err));
    memcpy(encoded->data, worker->head.data, CV_CHUNK_HEADER_SIZE);
    cv_codec_set_plain(encoded->data, spec->chunk_bytes);
    memcpy(encoded->data + CV_CHUNK_HEADER_SIZE, decoded, size);
    return cv_txn_put(pending->txn, chunk, encoded, err);
}

/* Whether a chunk is encoded block by block: as threads are idle that can help, or
 * somebody watches who would otherwise not hear for long. */
static bool by_blocks(const cv_pending *pending, int idle, bool *slow)
{
    const cv_codec_spec *spec = &pending->workers->spec;
    int64_t n_blocks = spec->chunk_bytes / spec->block_bytes;
    *slow = pending->watch && n_blocks > 1 && cv_codec_is_slow(spec);
    return *slow || cv_pending_helpers(idle, n_blocks, spec->chunk_bytes) > 0;
}

/* With room for the longest chunk and its table. */
static cv_status prepare_to_encode(cv_pending *pending, cv_worker *worker,
                                   cv_encoder **encoder, cv_error *err)
{
    const cv_codec_spec *spec = &pending->workers->spec;
    size_t room = CV_CHUNK_HEADER_SIZE + (size_t)spec->chunk_bytes +
                  cv_block_table_size(spec->chunk_bytes / spec->block_bytes);
    CV_TRY(cv_worker_encoder(pending->workers, worker, encoder, err));
    return cv_buffer_reserve(&worker->encoded, room, err);
}

static cv_status put_encoded(cv_pending *pending, cv_worker *worker, int64_t chunk,
                             cv_error *err)
{
    cv_watch_add(pending->watch, pending->workers->spec.chunk_bytes);
    if (cv_codec_is_zeros(&worker->encoded))
        return cv_txn_put_special(pending->txn, chunk, CV_REF_ZEROS, err);
    return cv_behind_put(&pending->behind, chunk, &worker->encoded, err);
}

cv_status cv_pending_put_chunk(cv_pending *pending, cv_worker *worker, int64_t chunk,
                               const uint8_t *decoded, int idle, cv_error *err)
{
    const cv_codec_spec *spec = &pending->workers->spec;
    size_t size = (size_t)spec->chunk_bytes;
    size_t item_size = (size_t)spec->item_size;
    CV_TRY(cv_watch_tick(pending->watch, 0, err));
    if (cv_all_zero(decoded, size)) {
        cv_watch_add(pending->watch, spec->chunk_bytes);
        return cv_txn_put_special(pending->txn, chunk, CV_REF_ZEROS, err);
    }
    if (size > item_size && cv_all_same(decoded, size, item_size)) {
        cv_watch_add(pending->watch, spec->chunk_bytes);
        CV_TRY(cv_encode_repeated(spec, decoded, &worker->encoded, err));
        return cv_txn_put(pending->txn, chunk, &worker->encoded, err);
    }
    cv_spliced spliced = CV_SPLICE_NOT;
    cv_splice_job job = {.pending = pending, .worker = worker, .chunk = chunk, .idle = idle};
    bool slow;
    if (by_blocks(pending, idle, &slow)) CV_TRY(put_by_blocks(&job, decoded, &spliced, err));
    if (spliced == CV_SPLICE_DONE) return CV_OK;
    if (spliced == CV_SPLICE_LARGER && slow)
        return put_plainly(pending, worker, chunk, decoded, err);

    cv_encoder *encoder;
    CV_TRY(prepare_to_encode(pending, worker, &encoder, err));
    CV_TRY(cv_encode_chunk(encoder, decoded, &worker->encoded, err));
    return put_encoded(pending, worker, chunk, err);
}

bool cv_pending_gathers(const cv_pending *pending, int idle)
{
    bool slow;
    const cv_codec_spec *spec = &pending->workers->spec;
    return spec->chunk_bytes >= pending->least_gathered && cv_codec_gathers(spec) &&
           !by_blocks(pending, idle, &slow);
}

cv_status cv_pending_put_gathered(cv_pending *pending, cv_worker *worker, int64_t chunk,
                                  const cv_block_source *source, cv_error *err)
{
    cv_encoder *encoder;
    CV_TRY(cv_watch_tick(pending->watch, 0, err));
    CV_TRY(prepare_to_encode(pending, worker, &encoder, err));
    CV_TRY(cv_encode_gathered(encoder, source, &worker->encoded, err));
    return put_encoded(pending, worker, chunk, err);
}

/* ---- Rebuilding --------------------------------------------------------- */

/* The blocks of a chunk that is dirty to its last block. */
typedef struct dirty_source {
    const cv_dirty_chunk *dirty;
    size_t block_bytes;
} dirty_source;

static void give_block(const void *context, int64_t block, uint8_t *out)
{
    const dirty_source *source = context;
    memcpy(out, source->dirty->blocks[block], source->block_bytes);
}

/* It may be one item again and again only when its first block is. */
static bool is_gathered(const cv_pending *pending, const cv_dirty_chunk *dirty,
                        const cv_grid *grid, int idle)
{
    return dirty->n_dirty == grid->n_blocks && cv_pending_gathers(pending, idle) &&
           !cv_all_same(dirty->blocks[0], (size_t)grid->block_bytes, (size_t)grid->item_size);
}

/* The worker's chunk buffer serves decoding of dependent blocks already, so a
 * rebuild has one of its own; the only block of a chunk is the chunk. */
static cv_status rebuild_chunk(cv_pending *pending, cv_worker *worker,
                               const cv_dirty_chunk *dirty, int idle, cv_error *err)
{
    const cv_grid *grid = &cv_txn_snapshot(pending->txn)->grid;
    if (grid->n_blocks == 1)
        return cv_pending_put_chunk(pending, worker, dirty->chunk, dirty->blocks[0], idle,
                                    err);
    if (is_gathered(pending, dirty, grid, idle)) {
        dirty_source blocks = {dirty, (size_t)grid->block_bytes};
        cv_block_source source = {give_block, &blocks};
        return cv_pending_put_gathered(pending, worker, dirty->chunk, &source, err);
    }
    cv_buffer chunk = {0};
    CV_TRY(cv_buffer_resize(&chunk, (size_t)grid->chunk_bytes, err));
    cv_source source = cv_source_of_pending(pending);
    cv_status status = cv_chunk_fill(&source, dirty->chunk, chunk.data, worker, err);
    if (status == CV_OK)
        status = cv_pending_put_chunk(pending, worker, dirty->chunk, chunk.data, idle, err);
    cv_buffer_free(&chunk);
    return status;
}

static cv_status flush_dirty(cv_pending *pending, cv_worker *worker,
                             const cv_dirty_chunk *dirty, int64_t n_chunks, cv_error *err)
{
    int64_t n_blocks = cv_txn_snapshot(pending->txn)->grid.n_blocks;
    int idle = cv_pending_idle(pending, n_chunks);
    cv_spliced spliced = CV_SPLICE_NOT;
    if (dirty->n_dirty < n_blocks) {
        cv_splice_job job = {.pending = pending,
                             .worker = worker,
                             .chunk = dirty->chunk,
                             .blocks = (void *)dirty->blocks,
                             .n_dirty = dirty->n_dirty,
                             .idle = idle};
        CV_TRY(cv_splice_chunk(&job, &spliced, err));
        if (spliced == CV_SPLICE_DONE) /* what need not be encoded is done */
            cv_watch_add(pending->watch,
                         (n_blocks - dirty->n_dirty) * pending->workers->spec.block_bytes);
    }
    return spliced == CV_SPLICE_DONE ? CV_OK
                                     : rebuild_chunk(pending, worker, dirty, idle, err);
}

cv_status cv_pending_flush_chunk(cv_pending *pending, cv_worker *worker, int64_t chunk,
                                 int64_t n_chunks, cv_error *err)
{
    const cv_dirty_chunk *dirty = cv_pending_find(pending, chunk);
    if (!dirty) return CV_OK;
    if (dirty->n_dirty > 0) CV_TRY(flush_dirty(pending, worker, dirty, n_chunks, err));
    cv_pending_drop(pending, chunk);
    return CV_OK;
}

/* ---- All of them -------------------------------------------------------- */

typedef struct flush_task {
    cv_pending *pending;
    const int64_t *chunks;
    int64_t n_chunks;
} flush_task;

static cv_status flush_job(void *context, int64_t job, cv_worker *worker, cv_error *err)
{
    const flush_task *task = context;
    worker->watch = task->pending->watch;
    return cv_pending_flush_chunk(task->pending, worker, task->chunks[job], task->n_chunks,
                                  err);
}

static int by_number(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static bool is_whole(const cv_pending *pending, const cv_dirty_chunk *dirty)
{
    return dirty->n_dirty == cv_txn_snapshot(pending->txn)->grid.n_blocks;
}

/* All `n` of them, or those that are dirty to their last block. */
static cv_status flush_chunks(cv_pending *pending, bool whole_only, size_t n, cv_error *err)
{
    if (n == 0) return CV_OK;
    int64_t *chunks = cv_malloc(n * sizeof chunks[0]);
    if (!chunks) return cv_fail_memory(err, n * sizeof chunks[0], "dirty chunks");
    size_t found = 0;
    for (size_t i = 0; i < pending->n_buckets; i++)
        for (cv_dirty_chunk *d = pending->buckets[i]; d; d = d->next)
            if (!whole_only || is_whole(pending, d)) chunks[found++] = d->chunk;
    qsort(chunks, n, sizeof chunks[0], by_number);

    flush_task task = {.pending = pending, .chunks = chunks, .n_chunks = (int64_t)n};
    int helpers = (int64_t)n < pending->threads ? (int)n - 1 : pending->threads - 1;
    cv_watch_expect(pending->watch,
                    (int64_t)n * cv_txn_snapshot(pending->txn)->grid.chunk_bytes);
    cv_pending_put_behind(pending, (int64_t)n, helpers);
    const cv_crew crew = {pending->workers, helpers, pending->watch};
    cv_status status = cv_workers_run(&crew, (int64_t)n, flush_job, &task, err);
    status = cv_behind_end(&pending->behind, status, err);
    cv_free(chunks);
    return status;
}

cv_status cv_pending_flush(cv_pending *pending, cv_error *err)
{
    return flush_chunks(pending, false, pending->n_chunks, err);
}

cv_status cv_pending_flush_queue(cv_pending *pending, cv_error *err)
{
    if (!cv_pending_queue_is_full(pending)) return CV_OK;
    return flush_chunks(pending, true, pending->n_whole, err);
}

/* ---- The commit --------------------------------------------------------- */

/* Stores the fill that is due, one chunk for each that nobody has written. */
static cv_status settle(cv_pending *pending, cv_error *err)
{
    if (!pending->fill_is_due) return CV_OK;
    int64_t n_chunks = cv_txn_snapshot(pending->txn)->grid.n_chunks;
    cv_buffer fill = {0};
    cv_status status = cv_encode_repeated(&pending->workers->spec, pending->fill, &fill, err);
    for (int64_t i = 0; i < n_chunks && status == CV_OK; i++) {
        cv_chunk_ref ref;
        status = cv_pending_where(pending, i, &ref, err);
        if (status == CV_OK && ref.kind == CV_REF_ITEM)
            status = cv_txn_put(pending->txn, i, &fill, err);
        if (status == CV_OK) status = cv_watch_tick(pending->watch, 0, err);
    }
    cv_buffer_free(&fill);
    if (status == CV_OK) pending->fill_is_due = false;
    return status;
}

/* All that is pending is in the transaction. */
static cv_status finish(cv_pending *pending, cv_error *err)
{
    CV_TRY(cv_pending_check(pending, err));
    CV_TRY(cv_pending_flush(pending, err));
    return settle(pending, err);
}

cv_status cv_pending_commit(cv_pending *pending, cv_error *err)
{
    CV_TRY(finish(pending, err));
    cv_txn_set_watch(pending->txn, pending->watch);
    cv_status status = cv_txn_commit(pending->txn, err);
    cv_txn_set_watch(pending->txn, NULL);
    return status;
}

cv_status cv_pending_prepare(cv_pending *pending, bool durable, cv_commit **out,
                             cv_error *err)
{
    *out = NULL;
    CV_TRY(finish(pending, err));
    return cv_commit_prepare(pending->txn, durable, out, err);
}
