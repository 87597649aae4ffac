/* Which items were written: of each touched chunk, block by block.
 *
 *     chunk   all of it                      nothing more to say
 *             or its blocks:   none of it
 *                              all of it
 *                              a box         writes of boxes mostly leave one
 *                              items         a bit for each, in C order
 *
 * Blocks and items that are nothing but padding are never marked. Not for several threads at
 * once. */
#ifndef CV_JOBS_MARKS_H
#define CV_JOBS_MARKS_H

#include "base/grid.h"
#include "base/heap.h"
#include "engine/plan/plan.h"
#include "engine/plan/select_plan.h"

typedef enum cv_mark_kind {
    CV_MARK_NONE,
    CV_MARK_ALL,
    CV_MARK_BOX,
    CV_MARK_ITEMS
} cv_mark_kind;

typedef struct cv_mark {
    cv_mark_kind kind;
    int32_t *box;  /* BOX: lo of each axis, then hi; in items of the block. Owned */
    uint8_t *bits; /* ITEMS; owned */
} cv_mark;

/* A block: items of it that lie in the array, as cv_block_valid has them. */
typedef struct cv_mark_place {
    const cv_grid *grid;
    int64_t valid[CV_MAX_DIMS];
} cv_mark_place;

/* False when no item of the block lies in the array. */
bool cv_block_valid(const cv_grid *grid, int64_t chunk, int64_t block, int64_t *shape);

/* Is there an item in both? */
bool cv_marks_meet(const cv_grid *grid, const cv_mark *a, const cv_mark *b);

/* Copies the marked items, block_bytes each; of ALL the padding, too. */
void cv_mark_copy(const cv_grid *grid, const cv_mark *mark, const uint8_t *src, uint8_t *dst);

/* Whether the items of both that lie in the array are the same. */
bool cv_block_same(const cv_mark_place *place, const uint8_t *a, const uint8_t *b);

/* ---- Marks of chunks ---- */

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

cv_status cv_marks_add_box(cv_marks *marks, const cv_plan *plan, cv_error *err);
cv_status cv_marks_add_chunk(cv_marks *marks, int64_t chunk, cv_error *err);

/* `selection` is of a grid whose items have one byte, see cv_marks_grid. */
cv_status cv_marks_add_selection(cv_marks *marks, const cv_selection *selection,
                                 cv_error *err);
cv_grid cv_marks_grid(const cv_marks *marks);

/* Puts the chunks in order of their numbers. */
cv_status cv_marks_sort(cv_marks *marks, cv_error *err);

/* The box of chunks around all that is marked: n of 0 where nothing is. */
void cv_marks_box(const cv_marks *marks, int64_t *first, int64_t *n);

const cv_marked_chunk *cv_marks_find(const cv_marks *marks, int64_t chunk);

/* The mark of a block; `chunk` NULL: all of the chunk. */
cv_mark cv_mark_of(const cv_marks *marks, const cv_marked_chunk *chunk, int64_t number,
                   int64_t block);

/* ---- Marks as bytes ----
 * Marks as bytes, as a finished part carries them:
 *
 *     "cvmk" 1         magic and version
 *     n                chunks that are not written whole
 *     of each          the step from the one before it, and runs of blocks of one kind:
 *                      length * 4 + kind; of BOX and ITEMS then each block's box or bits
 *
 * Numbers are varints. */

/* Appends them; after cv_marks_sort. */
cv_status cv_marks_write(const cv_marks *marks, cv_buffer *out, cv_error *err);

/* Adds the bytes' marks to empty ones and checks them; other chunks may have been written
 * whole. */
cv_status cv_marks_read(cv_marks *marks, const uint8_t *bytes, size_t size, cv_error *err);

#endif
