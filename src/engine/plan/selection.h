/* A caller's selection, checked against the grid and normalised. */
#ifndef CV_ENGINE_PLAN_SELECTION_H
#define CV_ENGINE_PLAN_SELECTION_H

#include "base/grid.h"

/* The selected items of one axis: start + i * step, unless there is a list or a mask. Lists and
 * masks that are equivalent to a slice become slices. */
typedef struct cv_axis {
    int64_t n;           /* number of items */
    int64_t start, step; /* inside the axis; step is not 0 */
    const int64_t *list; /* n indices; negative ones count from the end */
    const uint8_t *mask; /* one byte per item of the axis, n of them not 0 */
    bool dropped;        /* not an axis of the result; n is 1 */
} cv_axis;

typedef struct cv_selection {
    const cv_grid *grid;         /* borrowed, like the caller's lists */
    caterva_selection_kind kind; /* a box has kind AXES, with steps of 1 */
    int ndim;                    /* of the result */
    int64_t shape[CV_MAX_DIMS];
    int64_t n_items;
    cv_axis axes[CV_MAX_DIMS]; /* AXES: one for each axis of the array */
    const int64_t *points;     /* POINTS: shape[0] rows; negative: from the end */
    const uint8_t *mask;       /* MASK: shape[0] of its bytes are not 0 */
} cv_selection;

/* Checks and normalises a selection; NULL selects everything. Errors name axis and numbers.
 * Allocates no memory. */
cv_status cv_selection_init(cv_selection *selection, const cv_grid *grid,
                            const caterva_selection *words, cv_error *err);

/* Counts the bytes of a mask that are not 0. */
int64_t cv_count_true(const uint8_t *mask, int64_t n);

/* Converts a checked index to one that counts from the start. */
static inline int64_t cv_index_from_start(int64_t index, int64_t length)
{
    return index < 0 ? index + length : index;
}

#endif
