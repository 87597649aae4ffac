/* Room: engine/read. Lent memory. Whose bytes come there is not known here. */
#include "engine/read/wave_room.h"

#include "base/heap.h"

typedef struct cv_room {
    struct cv_room *next; /* of the spare ones */
    size_t size;
} room;

/* The struct stands in front of what is lent. Sizes are rounded up, so that one fits the next
 * user, too. Who waits is told when a part of all has come back, or all that will: all of them are
 * asked then. */
enum { HEAD = 64, UNIT = 64 * 1024, TOLD_PART = 8 };

void cv_rooms_init(cv_rooms *r)
{
    cv_mutex_init(&r->lock);
    r->most = r->lent = r->kept = r->given = 0;
    r->n_lent = r->stuck = 0;
    r->spare = NULL;
}

static void free_spare(cv_rooms *r, room **at)
{
    room *gone = *at;
    *at = gone->next;
    r->kept -= gone->size;
    cv_free(gone);
}

void cv_rooms_destroy(cv_rooms *r)
{
    while (r->spare) free_spare(r, &r->spare);
    cv_mutex_destroy(&r->lock);
}

/* A spare one that is large enough, but not twice as large as need be. */
static room *take_spare(cv_rooms *r, size_t size)
{
    room **at = &r->spare;
    while (*at && ((*at)->size < size || (*at)->size / 2 > size)) at = &(*at)->next;
    room *found = *at;
    if (!found) return NULL;
    *at = found->next;
    r->kept -= found->size;
    return found;
}

static room *find(cv_rooms *r, size_t size, bool must)
{
    bool is_free = must || (size <= r->most && r->lent <= r->most - size);
    if (!is_free) return NULL;
    room *found = take_spare(r, size);
    if (found) return found;
    while (r->spare && r->lent + r->kept + size > r->most) free_spare(r, &r->spare);
    found = cv_malloc(HEAD + size);
    if (found) found->size = size;
    return found;
}

cv_status cv_rooms_lend(cv_rooms *r, size_t size, size_t stuck, uint8_t **out, cv_error *err)
{
    size_t whole = (size + UNIT - 1) / UNIT * UNIT;
    cv_mutex_lock(&r->lock);
    bool is_needed = r->n_lent <= stuck;
    room *found = find(r, whole, is_needed);
    if (found) {
        r->lent += found->size;
        r->n_lent++;
    } else {
        r->stuck = stuck;
    }
    cv_mutex_unlock(&r->lock);
    *out = found ? (uint8_t *)found + HEAD : NULL;
    if (!found && is_needed) return cv_fail_memory(err, whole, "bytes of a URL");
    return CV_OK;
}

bool cv_rooms_give(cv_rooms *r, uint8_t *lent)
{
    if (!lent) return false;
    room *back = (room *)(void *)(lent - HEAD);
    cv_mutex_lock(&r->lock);
    back->next = r->spare;
    r->spare = back;
    r->lent -= back->size;
    r->kept += back->size;
    r->given += back->size;
    r->n_lent--;
    bool tells = r->n_lent <= r->stuck || r->given >= r->most / TOLD_PART;
    if (tells) r->given = r->stuck = 0;
    cv_mutex_unlock(&r->lock);
    return tells;
}
