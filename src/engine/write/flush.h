/* Encodes decoded and dirty blocks to stored chunks, and commits them. */
#ifndef CV_ENGINE_WRITE_FLUSH_H
#define CV_ENGINE_WRITE_FLUSH_H

#include "engine/pending/pending.h"
#include "frame/commit.h"

/* A stored chunk of another frame with the same geometry. */
typedef struct cv_splice_source {
    cv_store *store;
    const cv_layout *layout; /* whose blocks have separate streams, see cv_can_splice */
    bool checks;             /* checksums are verified */
} cv_splice_source;

typedef struct cv_splice_job {
    cv_pending *pending;
    cv_worker *worker;
    int64_t chunk;
    const uint8_t *const *blocks; /* decoded blocks, one per block of the grid; NULL: clean */
    int64_t n_dirty;              /* blocks that are not NULL */
    int idle;                     /* threads that may help */
    cv_pipeline pipeline;         /* of a chunk without clean blocks */
    /* The sources of clean blocks, one entry per block of the grid. The source is the stored chunk
     * if the entry or the whole list is NULL. n_dirty + n_others is at least 1. */
    const cv_splice_source *const *others;
    int64_t n_others;
} cv_splice_job;

/* Returns whether the chunk's blocks can be copied one by one, as stored. */
bool cv_can_splice(const cv_layout *layout);

typedef enum cv_spliced {
    CV_SPLICE_NOT, /* nothing was put: the chunk must be encoded whole */
    CV_SPLICE_DONE,
    CV_SPLICE_LARGER /* nothing was put: the spliced chunk is larger than an uncompressed one.
                        worker->head begins with its header */
} cv_spliced;

/* Encodes the dirty blocks, copies the other blocks as stored, and puts the new chunk. Puts nothing
 * if the stored chunk is memcpyed, has a dictionary or delta, or has other encoding parameters, or
 * if the result is larger than the data. Only this function decides whether to splice. */
cv_status cv_splice_chunk(const cv_splice_job *job, cv_spliced *out, cv_error *err);

/* ---- Whole chunks, and all dirty chunks ------ */

/* Encodes a whole chunk (chunk_bytes, in stored order) with up to `idle` helpers and puts it:
 * as zeros, as one repeated item, or compressed. */
cv_status cv_pending_put_chunk(cv_pending *pending, cv_worker *worker, int64_t chunk,
                               const uint8_t *decoded, int idle, cv_error *err);

/* cv_pending_put_gathered puts a chunk whose blocks `source` gathers during encoding, if
 * cv_pending_gathers is true: no thread helps, no watch is polled, repeated items are not
 * recognised. */
bool cv_pending_gathers(const cv_pending *pending, int idle);
cv_status cv_pending_put_gathered(cv_pending *pending, cv_worker *worker, int64_t chunk,
                                  const cv_block_source *source, cv_error *err);

/* Rebuilds a chunk from dirty and stored blocks, and puts it. `n_chunks` is the number of chunks
 * that are rebuilt in parallel. */
cv_status cv_pending_flush_chunk(cv_pending *pending, cv_worker *worker, int64_t chunk,
                                 int64_t n_chunks, cv_error *err);

/* cv_pending_flush rebuilds all dirty chunks in parallel. cv_pending_flush_queue rebuilds only
 * wholly dirty chunks, and only if the queue is full. */
cv_status cv_pending_flush(cv_pending *pending, cv_error *err);
cv_status cv_pending_flush_queue(cv_pending *pending, cv_error *err);

cv_status cv_pending_commit(cv_pending *pending, cv_error *err);

/* Flushes, and prepares the frame's part in a commit of several frames, see cv_commit_prepare. */
cv_status cv_pending_prepare(cv_pending *pending, bool durable, cv_commit **out,
                             cv_error *err);

/* ---- Pieces ----
 *
 * A chunk is assembled from pieces: bytes in memory, and stored bytes of other chunks. */

typedef struct cv_piece {
    const uint8_t *bytes; /* NULL: `size` stored bytes at `pos` of `object` */
    cv_store *store;      /* store of these bytes; NULL: the store that is written */
    cv_object object;
    uint64_t pos;
    size_t size;
} cv_piece;

/* Appends a piece to `list` (of cv_piece), or extends the last piece if the new one follows it
 * directly. Ignores empty pieces. */
cv_status cv_pieces_add(cv_buffer *list, cv_piece piece, cv_error *err);

/* Pieces that are written one after the other to `object`, from `pos` on. */
typedef struct cv_pieces_job {
    cv_store *store;
    const cv_buffer *list;
    uint64_t size; /* of all pieces */
    cv_object object;
    uint64_t pos;
} cv_pieces_job;

/* Returns the number of parts, each small enough for a second-level cache. */
int64_t cv_pieces_n_parts(const cv_pieces_job *job);

/* Writes a part, which is assembled in `stage`. The parts of a chunk object are written in order.
 * In the frame object, threads may write parts in parallel, each with its own stage. */
cv_status cv_pieces_write_part(const cv_pieces_job *job, int64_t part, cv_buffer *stage,
                               cv_error *err);

#endif
