/* From decoded and dirty blocks to stored chunks, and on to a commit. */
#ifndef CV_ENGINE_WRITE_FLUSH_H
#define CV_ENGINE_WRITE_FLUSH_H

#include "engine/pending/pending.h"
#include "frame/commit.h"

/* A stored chunk of another frame, of the same geometry. */
typedef struct cv_splice_source {
    cv_store *store;
    const cv_layout *layout; /* whose blocks have streams of their own, see cv_can_splice */
    bool checks;             /* they are compared with their checksums */
} cv_splice_source;

typedef struct cv_splice_job {
    cv_pending *pending;
    cv_worker *worker;
    int64_t chunk;
    const uint8_t *const *blocks; /* decoded, n_blocks of the grid; NULL: clean */
    int64_t n_dirty;              /* those that are not NULL */
    int idle;                     /* threads that may help */
    /* Sources of clean blocks, n_blocks entries (NULL entry: the stored chunk); or NULL:
     * all are stored. Together with n_dirty at least one. */
    const cv_splice_source *const *others;
    int64_t n_others;
} cv_splice_job;

/* Can blocks of the chunk be taken one by one, as they are stored? */
bool cv_can_splice(const cv_layout *layout);

typedef enum cv_spliced {
    CV_SPLICE_NOT, /* nothing was put: the chunk must be encoded whole */
    CV_SPLICE_DONE,
    CV_SPLICE_LARGER /* nothing was put: without compression it takes less. The worker's
                        `head` begins with the header that it has with streams       */
} cv_spliced;

/* Encodes the dirty blocks, copies the other compressed blocks, and puts the new chunk;
 * unless the stored one is memcpyed, has a dictionary or delta, was encoded otherwise, or
 * the result exceeds the data. This function alone decides. */
cv_status cv_splice_chunk(const cv_splice_job *job, cv_spliced *out, cv_error *err);

/* ---- Whole chunks, and all that is dirty ---- */

/* Encodes a whole chunk (chunk_bytes, stored order) with up to `idle` helpers, and puts it:
 * zeros, one repeated item, or compressed. */
cv_status cv_pending_put_chunk(cv_pending *pending, cv_worker *worker, int64_t chunk,
                               const uint8_t *decoded, int idle, cv_error *err);

/* The same for a chunk gathered block by block during encoding, if cv_pending_gathers: no
 * thread helps and no watch waits between blocks. Not for one repeated item. */
bool cv_pending_gathers(const cv_pending *pending, int idle);
cv_status cv_pending_put_gathered(cv_pending *pending, cv_worker *worker, int64_t chunk,
                                  const cv_block_source *source, cv_error *err);

/* Rebuilds one of `n_chunks` parallel chunks from dirty and stored blocks, and puts it. */
cv_status cv_pending_flush_chunk(cv_pending *pending, cv_worker *worker, int64_t chunk,
                                 int64_t n_chunks, cv_error *err);

/* Rebuilds all dirty chunks in parallel; if the queue is full, only those wholly dirty. */
cv_status cv_pending_flush(cv_pending *pending, cv_error *err);
cv_status cv_pending_flush_queue(cv_pending *pending, cv_error *err);

/* Flushes and commits. */
cv_status cv_pending_commit(cv_pending *pending, cv_error *err);

/* Flushes and prepares a commit of several frames, see cv_commit_prepare. */
cv_status cv_pending_prepare(cv_pending *pending, bool durable, cv_commit **out,
                             cv_error *err);

/* ---- Pieces ----
 *
 * A chunk that is made of pieces: bytes at hand, and bytes of other chunks that are copied as
 * they are. */

typedef struct cv_piece {
    const uint8_t *bytes; /* NULL: stored bytes, at `pos` of `object` */
    cv_store *store;      /* of another frame; NULL: of the one that is written */
    cv_object object;
    uint64_t pos;
    size_t size;
} cv_piece;

/* Adds a piece to `list` (of cv_piece), joined with an adjacent last one; drops empty
 * pieces. */
cv_status cv_pieces_add(cv_buffer *list, cv_piece piece, cv_error *err);

/* Pieces, and where they go, one behind the other. */
typedef struct cv_pieces_job {
    cv_store *store;
    const cv_buffer *list;
    uint64_t size; /* of all pieces */
    cv_object object;
    uint64_t pos;
} cv_pieces_job;

/* The number of parts, each small enough for a core's second-level cache. */
int64_t cv_pieces_n_parts(const cv_pieces_job *job);

/* Writes part `part`, put together in `stage`. A chunk object takes its parts in order; in
 * the frame object threads may write parts in parallel, each with its own stage. */
cv_status cv_pieces_write_part(const cv_pieces_job *job, int64_t part, cv_buffer *stage,
                               cv_error *err);

#endif
