/* The items that a selection takes of one block, and their copy between block
 * and buffer. Along each axis items stand in even steps, or where a list of picks
 * says. Which side is copied from is the caller's: reading and writing share the
 * geometry and nothing else. */
#ifndef CV_ENGINE_PART_H
#define CV_ENGINE_PART_H

#include "base/grid.h"
#include "engine/plan/buckets.h"

typedef struct cv_part {
    int ndim;
    int64_t item_size;
    int64_t n[CV_MAX_DIMS];            /* items along each axis, >= 1 */
    const cv_pick *picks[CV_MAX_DIMS]; /* n of them, or NULL: in even steps */
    const uint8_t *mask;               /* or, of one axis: the block's items where it is not
                                          0, n in all; NULL: none */
    int64_t strides[2][CV_MAX_DIMS];   /* by cv_side: bytes per step or pick number */
    int64_t pos[2];                    /* by cv_side: byte of the first item, picks aside */
} cv_part;

/* Copies the part's items from `src`, which is side `from`, to `dst`, which is
 * the other. Repeats are copied in order, last one last. */
void cv_part_copy(const cv_part *part, cv_side from, const uint8_t *src, uint8_t *dst);

/* Puts one item in the buffer's place of each: the block holds nothing else. */
void cv_part_fill(const cv_part *part, const uint8_t *item, uint8_t *dst);

#endif
