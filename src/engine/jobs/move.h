/* Moving chunks as they are stored from one array into a new one: a box of chunks,
 * whose axes the new array may have others between.
 *
 *     source  chunks of (c1, c2)      target  chunks of (1, c1, c2)
 *
 * hold the same bytes. */
#ifndef CV_ENGINE_MOVE_H
#define CV_ENGINE_MOVE_H

#include "engine/read/read.h"

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
