/* A chunk that is made of pieces: bytes at hand, and bytes of other chunks that
 * are copied as they are. */
#ifndef CV_FRAME_PIECES_H
#define CV_FRAME_PIECES_H

#include "base/heap.h"
#include "store/store.h"

typedef struct cv_piece {
    const uint8_t *bytes; /* NULL: stored bytes, at `pos` of `object` */
    cv_store *store;      /* of another frame; NULL: of the one that is written */
    cv_object object;
    uint64_t pos;
    size_t size;
} cv_piece;

/* Adds a piece to `list` (an array of cv_piece); one that goes on where the last
 * one ends is joined with it. Pieces of no bytes are left out. */
cv_status cv_pieces_add(cv_buffer *list, cv_piece piece, cv_error *err);

/* Pieces, and where they go, one behind the other. */
typedef struct cv_pieces_job {
    cv_store *store;
    const cv_buffer *list;
    uint64_t size; /* of all pieces */
    cv_object object;
    uint64_t pos;
} cv_pieces_job;

/* They are written in parts, small enough to stay in a core's second-level cache
 * between reading and writing. How many: */
int64_t cv_pieces_n_parts(const cv_pieces_job *job);

/* Writes part `part`, put together in `stage`. A chunk object takes its parts in
 * order; in the frame object several threads may write parts of one job, each
 * with its own stage. */
cv_status cv_pieces_write_part(const cv_pieces_job *job, int64_t part, cv_buffer *stage,
                               cv_error *err);

#endif
