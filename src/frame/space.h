/* Which bytes of a contiguous frame a writer may use again.
 *
 *   dead    what the next commit makes dead: replaced chunks, the old tail
 *   aging   dead, but a power cut may still bring back a header that needs it
 *   free    nobody needs it: new chunks go here, else behind the frame's end
 *
 * What this handle wrote itself has a size that is known for sure; of what it found,
 * survey.h says how far the next live byte is. */
#ifndef CV_FRAME_SPACE_H
#define CV_FRAME_SPACE_H

#include "base/status.h"
#include "frame/frame.h"

typedef struct cv_extent {
    uint64_t pos;
    uint64_t size;
} cv_extent;

/* Extents in ascending order; never overlapping. */
typedef struct cv_extents {
    cv_extent *items;
    size_t n, max;
    bool forgot; /* an extent could not be kept for want of memory */
} cv_extents;

/* Adds an extent; `merge` joins it with neighbours it touches. Without memory
 * it is forgotten, and `forgot` says so for good. */
void cv_extents_add(cv_extents *extents, cv_extent extent, bool merge);

/* Takes out whatever lies in [pos, pos + size). */
void cv_extents_cut(cv_extents *holes, uint64_t pos, uint64_t size);

/* Whether an extent begins at `pos`; its size then. */
bool cv_extents_has(const cv_extents *extents, uint64_t pos, uint64_t *size);

/* Chunks that replace each other are of nearly the same size. With a little room
 * left over, up to 1/CV_SPACE_SLACK, either fits the other's hole. */
enum { CV_SPACE_SLACK = 32 };

/* Takes `size` bytes out of the smallest extent that has them: the larger ones
 * stay whole for larger chunks. A rest that is but slack is taken with it, so
 * out->size may be more. */
bool cv_extents_take(cv_extents *extents, uint64_t size, cv_extent *out);

/* Whether there is one that has them; the bytes of all. */
bool cv_extents_fit(const cv_extents *extents, uint64_t size);
uint64_t cv_extents_total(const cv_extents *extents);
uint64_t cv_extents_below(const cv_extents *extents, uint64_t end);
void cv_extents_destroy(cv_extents *extents);

typedef struct cv_space {
    cv_extents ours; /* live chunks that this handle put, at most CV_SPACE_OURS */
    cv_extents dead;
    cv_extents aging;
    cv_extents free;
    cv_extents taken;    /* from free since the commit: a rollback gives it back */
    cv_extents replaced; /* chunks among the dead, each: a rollback lets them live */
    bool forgot_ours;    /* there were too many, for good */
} cv_space;

void cv_space_put(cv_space *space, uint64_t pos, uint64_t size); /* a chunk was put */
bool cv_space_replaced(cv_space *space, uint64_t pos); /* a chunk died */
void cv_space_died(cv_space *space, cv_extent chunk); /* the same, of a found one */
bool cv_space_take(cv_space *space, uint64_t size, cv_extent *out); /* cv_extents_take */

/* The end of the last live chunk of ours; false when that is not known. */
bool cv_space_ours_end(const cv_space *space, uint64_t *end);

/* True when nobody may need bytes of [pos, pos + size) that are not live; false
 * also when that is not known any more. */
bool cv_space_is_clear(const cv_space *space, uint64_t pos, uint64_t size);

/* The range is used from now on, whatever part of it was free. */
void cv_space_occupy(cv_space *space, uint64_t pos, uint64_t size);

/* The header on the disk is known to be the committed one: nobody needs what
 * older ones do. */
void cv_space_settled(cv_space *space);

/* After a commit: what it made dead may be used again, by the next transaction
 * when its header is on the disk (or need not be), else one commit later. */
void cv_space_committed(cv_space *space, bool header_is_durable);
void cv_space_rolled_back(cv_space *space, uint64_t end);
void cv_space_destroy(cv_space *space);

/* ---- survey ----
 * Where the chunks of a contiguous frame lie when a writer opens it, and how much of
 * the space between them nobody uses.
 *
 *   | header | dead | A ....... | B ... dead | C ... | A's table | tail |
 *                   '- A's room-'-- B's room-'-------'-----------'
 *
 * Index and seal say where chunks, and tables apart from them, begin. The room of each
 * reaches to the next; how much of it a chunk takes is in its header. Those are read
 * when space is wanted, the largest rooms first and a few at a time. Of a sealed chunk
 * the table behind it must have the name that the seal knows, or its room stays whole.
 * Where other writers' chunks are among them, all headers are read at once: if two
 * chunks overlap, or one cannot be measured, none of the space is given away. */

typedef struct cv_room {
    uint64_t pos;
    uint64_t size; /* 0: the chunk was replaced, see cv_survey_replaced */
    uint32_t name; /* of the block table right behind the chunk, 0: there is none */
    bool measured; /* `size` is what the chunk takes; of a table it always is */
    bool reserved; /* no table is known, one behind the chunk may be adopted */
    uint16_t rank; /* in the order of measuring, small ones first */
} cv_room;

typedef struct cv_survey {
    cv_room *rooms; /* ascending */
    size_t n;
    uint32_t *order; /* rooms to be measured, the large ones first */
    size_t n_order, next;
    int credit; /* measurements that may still be made */
    bool whole; /* the rooms are all that lives, but for what was put since */
} cv_survey;

/* Lists the rooms of `state`, whose chunks all lie before `end`. The space before the
 * first one goes to `found`. What is damaged or too much makes a survey that is not
 * whole and finds nothing; a failing store is an error. */
cv_status cv_survey_make(cv_survey *survey, cv_frame *frame, cv_snapshot *state, uint64_t end,
                         cv_extents *found, cv_error *err);

/* Measures rooms of more than `size` bytes until one leaves so many over, and all
 * together `enough`, or a few were in vain. What they leave over goes to `found`. */
cv_status cv_survey_find(cv_survey *survey, cv_frame *frame, uint64_t size, uint64_t enough,
                         cv_extents *found, cv_error *err);

/* Measures what was not, a few thousand rooms at most. */
cv_status cv_survey_rest(cv_survey *survey, cv_frame *frame, cv_extents *found,
                         cv_error *err);

/* The end of the last chunk that is there. */
cv_status cv_survey_end(cv_survey *survey, cv_frame *frame, cv_extents *found, uint64_t *end,
                        cv_error *err);

/* The chunk at `pos` is no more: its room, or false when none begins there. */
bool cv_survey_replaced(cv_survey *survey, uint64_t pos, cv_extent *out);

void cv_survey_free(cv_survey *survey);

#endif
