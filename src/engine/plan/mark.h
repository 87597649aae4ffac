/* Which items of one block were written: none, all that lie in the array, a box of them, or
 * a bit for each in C order. Items that are nothing but padding are never marked. */
#ifndef CV_ENGINE_MARK_H
#define CV_ENGINE_MARK_H

#include "base/grid.h"

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

void cv_mark_free(cv_mark *mark); /* leaves NONE */

/* A block: items of it that lie in the array, as cv_block_valid has them. */
typedef struct cv_mark_place {
    const cv_grid *grid;
    int64_t valid[CV_MAX_DIMS];
} cv_mark_place;

/* False when no item of the block lies in the array. */
bool cv_block_valid(const cv_grid *grid, int64_t chunk, int64_t block, int64_t *shape);

/* ---- Marking --------------------------------------------------------------------- */

/* Each leaves ALL as soon as every item is marked. */
void cv_mark_all(cv_mark *mark);
cv_status cv_mark_add_box(cv_mark *mark, const cv_mark_place *place, const int32_t *box,
                          cv_error *err);
/* A byte for each item, not 0 where it is marked. */
cv_status cv_mark_add_bytes(cv_mark *mark, const cv_mark_place *place, const uint8_t *bytes,
                            cv_error *err);

/* The same from a file: the box is checked already; bits that lie in padding are cleared. */
cv_status cv_mark_add_bits(cv_mark *mark, const cv_mark_place *place, const uint8_t *bits,
                           cv_error *err);
size_t cv_mark_bits_size(const cv_grid *grid);

/* ---- Asking ---------------------------------------------------------------------- */

/* Is there an item in both? */
bool cv_marks_meet(const cv_grid *grid, const cv_mark *a, const cv_mark *b);

/* Copies the marked items, block_bytes each; of ALL the padding, too. */
void cv_mark_copy(const cv_grid *grid, const cv_mark *mark, const uint8_t *src, uint8_t *dst);

/* Whether the items of both that lie in the array are the same. */
bool cv_block_same(const cv_mark_place *place, const uint8_t *a, const uint8_t *b);

#endif
