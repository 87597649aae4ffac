/* Moves chunks to another frame or array without decoding, and passes out the bytes of frames. */
#ifndef CV_ENGINE_WRITE_TRANSFER_H
#define CV_ENGINE_WRITE_TRANSFER_H

#include "engine/read/read.h"
#include "frame/frame.h"

/* Receives one piece of a frame of `total` bytes. Returns non-zero to stop. */
typedef int (*cv_take_fn)(void *context, const void *piece, size_t size, uint64_t total);

/* Passes all bytes of a committed contiguous frame to `take`, in order and unverified.
 * CATERVA_ESTOPPED if `take` returns non-zero. */
cv_status cv_hand_over(cv_frame *frame, const cv_snapshot *snapshot, cv_take_fn take,
                       void *context, cv_error *err);

/* Copies a stored chunk into another transaction as its chunk `number`, without dead space; a
 * special chunk takes no bytes. The chunk must have no dirty blocks, and both grids must have the
 * same geometry. Uses the worker's scratch memory and staged bytes. */
cv_status cv_transfer_chunk(const cv_source *source, int64_t chunk, cv_txn *to,
                            int64_t number, cv_worker *worker, cv_error *err);

/* Whether such a copy is possible into a transaction with cv_txn_set_dual. */
cv_status cv_transfer_fits(const cv_source *source, int64_t chunk, cv_worker *worker,
                           bool *fits, cv_error *err);

/* Copies the source into the new `store`, which it owns, chunk by chunk without dead space, and
 * commits. Keeps a layout area. If `sparse`, the store is a directory. The caller closes *out. */
cv_status cv_transfer(const cv_source *source, cv_store *store, bool sparse,
                      caterva_durability durability, cv_frame **out, cv_error *err);

/* Copies the source as a compact contiguous frame to *bytes, which is malloc'ed. Includes pending
 * chunks, but no dirty blocks. */
cv_status cv_transfer_to_memory(const cv_source *source, void **bytes, size_t *size,
                                cv_error *err);

/* Like cv_transfer_to_memory, but passes the frame to `take` in pieces. */
cv_status cv_transfer_pieces(const cv_source *source, cv_take_fn take, void *context,
                             cv_error *err);

/* A move copies a box of chunks, as stored, from one array into a new one, which may have more
 * axes: chunks of shape (c1, c2) and (1, c1, c2) hold the same bytes. */

typedef struct cv_move {
    const cv_source *source;
    cv_pending *target;        /* a new array */
    int axis[CV_MAX_DIMS];     /* the source's axis, for each target axis; -1: a new axis */
    int64_t from[CV_MAX_DIMS]; /* first chunk, for each axis of the target */
    int64_t to[CV_MAX_DIMS];
    int64_t counts[CV_MAX_DIMS];
    int64_t memory; /* bytes for reading chunks of a far store ahead; 0: the default */
} cv_move;

/* Returns whether stored chunks are valid in the target: it must have the same partition, codec,
 * filters and level, and all source axes in order. */
bool cv_can_move(const cv_move *move);

/* Returns whether none of the chunks has dirty blocks. */
bool cv_move_is_clean(const cv_move *move);

/* Moves the chunks on up to `threads` threads. `on_chunk` (or NULL) is called after each chunk, on
 * any thread. The source must not change meanwhile. */
cv_status cv_move_chunks(const cv_move *move, int threads,
                         cv_status (*on_chunk)(void *context, cv_error *err), void *context,
                         cv_error *err);

cv_status cv_move_chunk(const cv_source *source, int64_t from, cv_pending *target, int64_t to,
                        cv_worker *worker, cv_error *err);

#endif
