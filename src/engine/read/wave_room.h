/* Memory that is lent to bytes on their way, and given back when they are decoded: what was
 * touched once is used again, and no more is lent at once than was agreed. Any thread. */
#ifndef CV_ENGINE_WAVE_ROOM_H
#define CV_ENGINE_WAVE_ROOM_H

#include "base/status.h"
#include "base/thread.h"

typedef struct cv_rooms {
    cv_mutex lock;
    /* Bytes: that may be lent, that are, that were given back and are kept, and that were given
     * back since somebody was told. */
    size_t most, lent, kept, given;
    size_t n_lent, stuck; /* rooms; and of who waits: so many of them may not come back */
    struct cv_room *spare;
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
