/* Where the chunks of a contiguous frame lie when a writer opens it, and how much of
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
#ifndef CV_FRAME_SURVEY_H
#define CV_FRAME_SURVEY_H

#include "frame/space.h"

#include "frame/frame.h"

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
