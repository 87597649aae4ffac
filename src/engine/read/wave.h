/* A walk in waves, for far stores: reads all layouts together, then all wanted blocks, and decodes
 * blocks as they arrive. */
#ifndef CV_ENGINE_READ_WAVE_H
#define CV_ENGINE_READ_WAVE_H

#include "engine/read/walk.h"

/* Returns whether the chunks from first_chunk on should be read in waves: if the store is far, or
 * if their bytes are not in memory. */
bool cv_wave_is_worth(const cv_walk *walk);

/* Reads and delivers the chunks from first_chunk on, in any order and in bounded memory, with up to
 * `helpers` other threads. */
cv_status cv_wave_run(const cv_walk *walk, int helpers, cv_error *err);

/* ---- Memory lent to the store; declared for tests --- */

typedef struct cv_rooms {
    cv_mutex lock;
    /* In bytes: the limit; lent now; kept for reuse; returned since ranges were last resumed. */
    size_t most, lent, kept, given;
    size_t n_lent, stuck; /* lent rooms; `stuck` of the waiting range (see cv_rooms_lend) */
    struct cv_lent_room *spare;
} cv_rooms;

void cv_rooms_init(cv_rooms *rooms);
void cv_rooms_destroy(cv_rooms *rooms); /* all rooms must have been given back */

/* Lends at least `size` bytes. *out is NULL if the range that needs them must wait until other
 * ranges are decoded. `stuck` is the number of rooms that cannot be returned before this range has
 * memory. If no other room is lent, memory is lent beyond the limit; only this can fail
 * (CATERVA_ENOMEM). */
cv_status cv_rooms_lend(cv_rooms *rooms, size_t size, size_t stuck, uint8_t **out,
                        cv_error *err);

/* Takes a room back; NULL does nothing. Returns true if ranges that wait should be resumed. */
bool cv_rooms_give(cv_rooms *rooms, uint8_t *room);

#endif
