/* From dirty blocks to stored chunks, and on to a commit. What is dirty is pending.h's
 * to know; here it is encoded and put into the transaction. */
#ifndef CV_ENGINE_FLUSH_H
#define CV_ENGINE_FLUSH_H

#include "engine/pending/pending.h"
#include "frame/commit.h"

/* Encodes a whole chunk (chunk_bytes in stored order), with the help of up to
 * `idle` threads, and puts it: as zeros, as one repeated item, or compressed. */
cv_status cv_pending_put_chunk(cv_pending *pending, cv_worker *worker, int64_t chunk,
                               const uint8_t *decoded, int idle, cv_error *err);

/* The same of a chunk that is gathered block by block, as it is encoded; not for one that
 * is one repeated item. Only where cv_pending_gathers: where no thread is to help with it
 * and nobody wants to hear between its blocks. */
bool cv_pending_gathers(const cv_pending *pending, int idle);
cv_status cv_pending_put_gathered(cv_pending *pending, cv_worker *worker, int64_t chunk,
                                  const cv_block_source *source, cv_error *err);

/* Rebuilds one chunk from its dirty blocks and its stored ones, as one of
 * `n_chunks` done side by side, and puts it. */
cv_status cv_pending_flush_chunk(cv_pending *pending, cv_worker *worker, int64_t chunk,
                                 int64_t n_chunks, cv_error *err);

/* Rebuilds all dirty chunks, in parallel; or, when the queue is full, those that
 * are dirty to their last block. */
cv_status cv_pending_flush(cv_pending *pending, cv_error *err);
cv_status cv_pending_flush_queue(cv_pending *pending, cv_error *err);

/* Flushes and commits. */
cv_status cv_pending_commit(cv_pending *pending, cv_error *err);

/* Flushes and prepares a commit of several frames, see cv_commit_prepare. */
cv_status cv_pending_prepare(cv_pending *pending, bool durable, cv_commit **out,
                             cv_error *err);

#endif
