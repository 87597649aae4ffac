/* Which items were written: of each touched chunk, block by block.
 *
 *     chunk   all of it                      nothing more to say
 *             or its blocks:   none of it
 *                              all of it
 *                              a box         writes of boxes mostly leave one
 *                              items         a bit for each, in C order
 *
 * Blocks and items that are nothing but padding are never marked, and nobody misses them. Not
 * for several threads at once. */
#ifndef CV_ENGINE_MARKS_H
#define CV_ENGINE_MARKS_H

#include "base/heap.h"
#include "engine/plan/mark.h"
#include "engine/plan/plan.h"
#include "engine/plan/select_plan.h"

typedef struct cv_marked_chunk {
    int64_t chunk;
    int64_t n_open; /* blocks that hold items and are not marked ALL */
    cv_mark *marks; /* n_blocks of the grid; NULL: all is written */
} cv_marked_chunk;

typedef struct cv_marks {
    cv_grid grid;
    cv_marked_chunk *chunks; /* in the order of their first write, until cv_marks_sort */
    int64_t n, max;
    int64_t *table; /* places in `chunks`, plus one */
    size_t n_slots; /* a power of two, or 0 */
} cv_marks;

void cv_marks_init(cv_marks *marks, const cv_grid *grid);
void cv_marks_clear(cv_marks *marks);

/* ---- Marking --------------------------------------------------------------------- */

cv_status cv_marks_add_box(cv_marks *marks, const cv_plan *plan, cv_error *err);
cv_status cv_marks_add_chunk(cv_marks *marks, int64_t chunk, cv_error *err);

/* `selection` is of a grid whose items have one byte, see cv_marks_grid. */
cv_status cv_marks_add_selection(cv_marks *marks, const cv_selection *selection,
                                 cv_error *err);
cv_grid cv_marks_grid(const cv_marks *marks);

/* One block of a chunk, for who reads marks: `*mark` is marked by the functions of mark.h, and
 * closed then. Of a chunk that was written whole there is none. */
typedef struct cv_marking {
    cv_marks *marks;
    cv_marked_chunk *chunk;
    cv_mark *mark;
    cv_mark_place place;
} cv_marking;

cv_status cv_marking_open(cv_marking *m, cv_marks *marks, int64_t chunk, cv_error *err);
void cv_marking_enter(cv_marking *m, int64_t block);
void cv_marking_leave(cv_marking *m);
void cv_marking_close(cv_marking *m);

/* ---- Asking ---------------------------------------------------------------------- */

/* Puts the chunks in order of their numbers. */
cv_status cv_marks_sort(cv_marks *marks, cv_error *err);

/* The box of chunks around all that is marked: n of 0 where nothing is. */
void cv_marks_box(const cv_marks *marks, int64_t *first, int64_t *n);

const cv_marked_chunk *cv_marks_find(const cv_marks *marks, int64_t chunk);

/* The mark of a block; `chunk` NULL: all of the chunk. */
cv_mark cv_mark_of(const cv_marks *marks, const cv_marked_chunk *chunk, int64_t number,
                   int64_t block);

#endif
