/* Moves chunks to another frame or array without decoding, and passes out the bytes of frames. */
#ifndef CV_ENGINE_WRITE_TRANSFER_H
#define CV_ENGINE_WRITE_TRANSFER_H

#include "engine/read/read.h"
#include "frame/frame.h"

/* Takes one piece of a frame of `total` bytes; non-zero stops. */
typedef int (*cv_take_fn)(void *context, const void *piece, size_t size, uint64_t total);

/* Passes all bytes of a committed contiguous frame to `take`, in order and unverified.
 * CATERVA_ESTOPPED if `take` returns non-zero. */
cv_status cv_hand_over(cv_frame *frame, const cv_snapshot *snapshot, cv_take_fn take,
                       void *context, cv_error *err);

/* Copies one stored chunk into another transaction as its chunk `number`, without dead space;
 * special chunks take no bytes. The chunk must have no dirty blocks, and the grids the same
 * geometry. The worker has scratch memory and staged bytes. */
cv_status cv_transfer_chunk(const cv_source *source, int64_t chunk, cv_txn *to,
                            int64_t number, cv_worker *worker, cv_error *err);

/* Copies the source chunk by chunk into the new `store`, which it owns, without dead space,
 * and commits. Keeps a layout area. `sparse`: the store is a directory. Close *out with
 * cv_frame_close. */
cv_status cv_transfer(const cv_source *source, cv_store *store, bool sparse,
                      caterva_durability durability, cv_frame **out, cv_error *err);

/* Copies the source, including pending chunks but no dirty blocks, as a compact contiguous
 * frame into *bytes, which is malloc'ed. */
cv_status cv_transfer_to_memory(const cv_source *source, void **bytes, size_t *size,
                                cv_error *err);

/* The same, but passes the frame to `take` in pieces, like cv_hand_over. */
cv_status cv_transfer_pieces(const cv_source *source, cv_take_fn take, void *context,
                             cv_error *err);

/* Moves a box of chunks, as stored, from one array into a new one, which may have additional axes.
 *
 *     source  chunks of (c1, c2)      target  chunks of (1, c1, c2)
 *
 * hold the same bytes. */

typedef struct cv_move {
    const cv_source *source;
    cv_pending *target;        /* a new array */
    int axis[CV_MAX_DIMS];     /* source axis per target axis; -1: a new axis */
    int64_t from[CV_MAX_DIMS]; /* first chunk, for each axis of the target */
    int64_t to[CV_MAX_DIMS];
    int64_t counts[CV_MAX_DIMS];
    int64_t memory; /* for chunks of a far store that are read ahead; 0: the default */
} cv_move;

/* Returns whether stored chunks are valid in the target: same partition, codec, filters and
 * level, and all source axes in order. */
bool cv_can_move(const cv_move *move);

/* Returns whether none of the chunks has dirty blocks. */
bool cv_move_is_clean(const cv_move *move);

/* Moves the chunks on up to `threads` threads. `on_chunk` (or NULL) is called after each, on
 * any thread. The source must not change meanwhile. */
cv_status cv_move_chunks(const cv_move *move, int threads,
                         cv_status (*on_chunk)(void *context, cv_error *err), void *context,
                         cv_error *err);

cv_status cv_move_chunk(const cv_source *source, int64_t from, cv_pending *target, int64_t to,
                        cv_worker *worker, cv_error *err);

#endif
