/* Moves chunks to another frame or array without decoding, and hands frames over as
 * bytes. */
#ifndef CV_ENGINE_WRITE_TRANSFER_H
#define CV_ENGINE_WRITE_TRANSFER_H

#include "engine/read/read.h"
#include "frame/frame.h"

/* Takes one piece of a frame of `total` bytes; non-zero: no more. */
typedef int (*cv_take_fn)(void *context, const void *piece, size_t size, uint64_t total);

/* Passes all bytes of a committed contiguous frame to `take`, in order and unchecked.
 * CATERVA_ESTOPPED when `take` ends it. */
cv_status cv_hand_over(cv_frame *frame, const cv_snapshot *snapshot, cv_take_fn take,
                       void *context, cv_error *err);

/* Copies one stored chunk into another transaction as its chunk `number`, without dead
 * space; special ones take none. The chunk must have no dirty blocks, the grids equal
 * geometry. The worker has scratch and staged bytes. */
cv_status cv_transfer_chunk(const cv_source *source, int64_t chunk, cv_txn *to,
                            int64_t number, cv_worker *worker, cv_error *err);

/* Copies the source into the new, owned `store` chunk by chunk, without dead space, and
 * commits. Layouts in one place stay so. `sparse`: the store is a directory. Release *out
 * with cv_frame_close. */
cv_status cv_transfer(const cv_source *source, cv_store *store, bool sparse,
                      caterva_durability durability, cv_frame **out, cv_error *err);

/* Copies the source with pending chunks (no dirty blocks) as a compact contiguous frame
 * into *bytes, which is malloc'ed. */
cv_status cv_transfer_to_memory(const cv_source *source, void **bytes, size_t *size,
                                cv_error *err);

/* The same frame, handed over piece by piece, as cv_hand_over does. */
cv_status cv_transfer_pieces(const cv_source *source, cv_take_fn take, void *context,
                             cv_error *err);

/* Moving chunks as they are stored from one array into a new one: a box of chunks,
 * whose axes the new array may have others between.
 *
 *     source  chunks of (c1, c2)      target  chunks of (1, c1, c2)
 *
 * hold the same bytes. */

typedef struct cv_move {
    const cv_source *source;
    cv_pending *target;        /* new */
    int axis[CV_MAX_DIMS];     /* of the source, for each of the target; -1: a new one */
    int64_t from[CV_MAX_DIMS]; /* first chunk, for each axis of the target */
    int64_t to[CV_MAX_DIMS];
    int64_t counts[CV_MAX_DIMS];
    int64_t memory; /* for chunks of a far store that are read ahead; 0: the usual */
} cv_move;

/* Whether chunks mean the same in the target: partition, codec, filters, level, and all
 * source axes in order. */
bool cv_can_move(const cv_move *move);

/* True when none of the chunks has blocks that are not encoded yet. */
bool cv_move_is_clean(const cv_move *move);

/* Moves them on up to `threads` threads; `on_chunk` (or NULL) is called after each, from
 * any thread. The source must not change meanwhile. */
cv_status cv_move_chunks(const cv_move *move, int threads,
                         cv_status (*on_chunk)(void *context, cv_error *err), void *context,
                         cv_error *err);

/* Moves one chunk. */
cv_status cv_move_chunk(const cv_source *source, int64_t from, cv_pending *target, int64_t to,
                        cv_worker *worker, cv_error *err);

#endif
