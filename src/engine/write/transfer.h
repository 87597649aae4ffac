/* Chunks moved to another frame or array without decoding them, and frames handed over as
 * bytes. */
#ifndef CV_ENGINE_WRITE_TRANSFER_H
#define CV_ENGINE_WRITE_TRANSFER_H

#include "engine/read/read.h"
#include "frame/frame.h"

/* Takes one piece of a frame of `total` bytes; non-zero: no more. */
typedef int (*cv_take_fn)(void *context, const void *piece, size_t size, uint64_t total);

/* Gives all bytes of the committed state of a contiguous frame, in order: dead space
 * included, nothing checked. CATERVA_ESTOPPED when `take` has enough. */
cv_status cv_hand_over(cv_frame *frame, const cv_snapshot *snapshot, cv_take_fn take,
                       void *context, cv_error *err);

/* Copies one chunk as it is stored into another transaction, as its chunk
 * `number`: without dead space, and a special one takes none. The worker has scratch,
 * and what was read ahead. The chunk must have no dirty blocks, and both grids its
 * geometry. */
cv_status cv_transfer_chunk(const cv_source *source, int64_t chunk, cv_txn *to,
                            int64_t number, cv_worker *worker, cv_error *err);

/* Copies the source into `store`, which is new and owned from then on, and
 * commits: chunk after chunk as they are stored, no dead space between them.
 * Layouts that stand in one place do so again.
 * `sparse`: the store is a directory. Release *out with cv_frame_close. */
cv_status cv_transfer(const cv_source *source, cv_store *store, bool sparse,
                      caterva_durability durability, cv_frame **out, cv_error *err);

/* Copies the source, pending chunks included (dirty blocks must have been
 * flushed), as a compact contiguous frame into fresh memory: *bytes is malloc'ed. */
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

/* True when chunks of the source mean the same in the target: partition, codec,
 * filters, level. Axes of the source must come in their order, none be missing. */
bool cv_can_move(const cv_move *move);

/* True when none of the chunks has blocks that are not encoded yet. */
bool cv_move_is_clean(const cv_move *move);

/* Moves them, on up to `threads` threads. `on_chunk` (NULL: nobody) is called after
 * each, from any thread. Nothing may change the source meanwhile. */
cv_status cv_move_chunks(const cv_move *move, int threads,
                         cv_status (*on_chunk)(void *context, cv_error *err), void *context,
                         cv_error *err);

/* Moves one chunk. */
cv_status cv_move_chunk(const cv_source *source, int64_t from, cv_pending *target, int64_t to,
                        cv_worker *worker, cv_error *err);

#endif
