/* A walk in waves, for bytes that are far: first the layouts of all touched chunks are read
 * together, then all their wanted blocks, which are decoded as they arrive. */
#ifndef CV_ENGINE_READ_WAVE_H
#define CV_ENGINE_READ_WAVE_H

#include "engine/read/walk.h"

/* Whether the chunks of the walk from first_chunk on are better read in waves: the store is
 * far, or one look says that they are not in memory. */
bool cv_wave_is_worth(const cv_walk *walk);

/* Reads and delivers them, with up to `helpers` threads beside the caller's. Bounded memory,
 * however much is wanted. For deliveries that keep no order. */
cv_status cv_wave_run(const cv_walk *walk, int helpers, cv_error *err);

/* ---- Memory lent to the store; here for tests ---- */

typedef struct cv_rooms {
    cv_mutex lock;
    /* Bytes: that may be lent, that are, that were given back and are kept, and that were given
     * back since somebody was told. */
    size_t most, lent, kept, given;
    size_t n_lent, stuck; /* rooms; and of who waits: so many of them may not come back */
    struct cv_lent_room *spare;
} cv_rooms;

void cv_rooms_init(cv_rooms *rooms);
void cv_rooms_destroy(cv_rooms *rooms); /* all have been given back */

/* Room for `size` bytes at least; *out is NULL when so much is lent that it has to wait, which it
 * never has to when nothing is, or no more than the `stuck` rooms that may not come back before it
 * has some. CATERVA_ENOMEM only then. */
cv_status cv_rooms_lend(cv_rooms *rooms, size_t size, size_t stuck, uint8_t **out,
                        cv_error *err);

/* NULL is fine. True: it is time to tell those who had to wait. */
bool cv_rooms_give(cv_rooms *rooms, uint8_t *room);

#endif
