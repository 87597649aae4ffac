/* A walk in waves, for far bytes: reads all layouts, then all wanted blocks, decoded on
 * arrival. */
#ifndef CV_ENGINE_READ_WAVE_H
#define CV_ENGINE_READ_WAVE_H

#include "engine/read/walk.h"

/* Whether the chunks from first_chunk on are better read in waves: far, or not in memory. */
bool cv_wave_is_worth(const cv_walk *walk);

/* Reads and delivers them with up to `helpers` threads, in bounded memory and any order. */
cv_status cv_wave_run(const cv_walk *walk, int helpers, cv_error *err);

/* ---- Memory lent to the store; here for tests ---- */

typedef struct cv_rooms {
    cv_mutex lock;
    /* Bytes that may be lent; that are; that are kept for reuse; and returned since the
     * last wake. */
    size_t most, lent, kept, given;
    size_t n_lent, stuck; /* rooms; and of who waits: so many of them may not come back */
    struct cv_lent_room *spare;
} cv_rooms;

void cv_rooms_init(cv_rooms *rooms);
void cv_rooms_destroy(cv_rooms *rooms); /* all have been given back */

/* Lends at least `size` bytes; *out is NULL if it must wait for others, which is never when
 * none is lent or only the `stuck` rooms that need this one. CATERVA_ENOMEM only then. */
cv_status cv_rooms_lend(cv_rooms *rooms, size_t size, size_t stuck, uint8_t **out,
                        cv_error *err);

/* NULL is fine. True: it is time to tell those who had to wait. */
bool cv_rooms_give(cv_rooms *rooms, uint8_t *room);

#endif
