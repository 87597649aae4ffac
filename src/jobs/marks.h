/* Marks: which items were written, for each touched chunk, block by block.
 *
 *     chunk   written whole                  no marks
 *             or, for each block:   none
 *                                   all
 *                                   a box         the usual mark after writes of boxes
 *                                   items         one bit each, in C order
 *
 * Padding is never marked. One thread at a time. */
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
    int32_t *box;  /* BOX: start of each axis, then stop, in items of the block; owned */
    uint8_t *bits; /* ITEMS; owned */
} cv_mark;

/* A block's grid, and the shape of the block's items that are inside the array (cv_block_valid). */
typedef struct cv_mark_place {
    const cv_grid *grid;
    int64_t valid[CV_MAX_DIMS];
} cv_mark_place;

/* Sets `shape` to that of the block's items inside the array. Returns false without such items. */
bool cv_block_valid(const cv_grid *grid, int64_t chunk, int64_t block, int64_t *shape);

/* Returns whether an item of a block is marked in both marks. */
bool cv_marks_meet(const cv_grid *grid, const cv_mark *a, const cv_mark *b);

/* Copies the marked items of a block. For ALL, copies padding, too. */
void cv_mark_copy(const cv_grid *grid, const cv_mark *mark, const uint8_t *src, uint8_t *dst);

/* Returns whether two blocks have equal items inside the array. */
bool cv_block_same(const cv_mark_place *place, const uint8_t *a, const uint8_t *b);

/* ---- Marks of chunks ---- */

typedef struct cv_marked_chunk {
    int64_t chunk;
    int64_t n_open; /* blocks with items inside the array that are not marked ALL */
    cv_mark *marks; /* n_blocks of the grid; NULL: written whole */
} cv_marked_chunk;

typedef struct cv_marks {
    cv_grid grid;
    cv_marked_chunk *chunks; /* in the order of their first write, until cv_marks_sort */
    int64_t n, max;
    int64_t *table; /* hash table: index in `chunks` plus 1; 0: free */
    size_t n_slots; /* a power of two, or 0 */
} cv_marks;

void cv_marks_init(cv_marks *marks, const cv_grid *grid);
void cv_marks_clear(cv_marks *marks);

cv_status cv_marks_add_box(cv_marks *marks, const cv_plan *plan, cv_error *err);
cv_status cv_marks_add_chunk(cv_marks *marks, int64_t chunk, cv_error *err);

/* Marks a selection on the grid that cv_marks_grid returns, which has items of one byte. */
cv_status cv_marks_add_selection(cv_marks *marks, const cv_selection *selection,
                                 cv_error *err);
cv_grid cv_marks_grid(const cv_marks *marks);

/* Sorts the chunks by number. */
cv_status cv_marks_sort(cv_marks *marks, cv_error *err);

/* Returns the smallest box of chunks that contains all marked ones; n is 0 without marks. */
void cv_marks_box(const cv_marks *marks, int64_t *first, int64_t *n);

const cv_marked_chunk *cv_marks_find(const cv_marks *marks, int64_t chunk);

/* Returns the mark of a block of chunk `number`. `chunk` NULL: the chunk was written whole. */
cv_mark cv_mark_of(const cv_marks *marks, const cv_marked_chunk *chunk, int64_t number,
                   int64_t block);

/* ---- Marks as bytes ----
 *
 * The form in which a finished part contains its marks:
 *
 *     "cvmk" 1         magic and version
 *     n                number of chunks not written whole
 *     for each chunk   its distance from the chunk before, and runs of blocks of one kind:
 *                      length * 4 + kind; after BOX and ITEMS each block's box or bits
 *
 * Numbers are varints. */

/* Appends the marks, which must be sorted, as bytes. */
cv_status cv_marks_write(const cv_marks *marks, cv_buffer *out, cv_error *err);

/* Checks the bytes and adds their marks to empty ones. Chunks that are not listed get no entry. */
cv_status cv_marks_read(cv_marks *marks, const uint8_t *bytes, size_t size, cv_error *err);

#endif
