/* A caller's selection, checked against the grid and normalised. */
#ifndef CV_ENGINE_PLAN_SELECTION_H
#define CV_ENGINE_PLAN_SELECTION_H

#include "base/grid.h"

/* Items along one axis: start + i * step, unless there is a list or a mask. Lists and masks
 * that are slices are stored as slices. */
typedef struct cv_axis {
    int64_t n;           /* items taken */
    int64_t start, step; /* inside the axis; step is not 0 */
    const int64_t *list; /* n indices, negative ones counted from the end */
    const uint8_t *mask; /* one byte for each item of the axis, n of them not 0 */
    bool dropped;        /* not an axis of the result; n is 1 */
} cv_axis;

typedef struct cv_selection {
    const cv_grid *grid;         /* borrowed, as the caller's lists are */
    caterva_selection_kind kind; /* a box is AXES with steps of 1 */
    int ndim;                    /* of the result */
    int64_t shape[CV_MAX_DIMS];
    int64_t n_items;
    cv_axis axes[CV_MAX_DIMS]; /* AXES: one for each axis of the array */
    const int64_t *points;     /* POINTS: shape[0] rows, negative indices as above */
    const uint8_t *mask;       /* MASK: shape[0] of its bytes are not 0 */
} cv_selection;

/* Checks and normalises; NULL selects everything. CATERVA_ERANGE and others name axis and
 * numbers. Allocates nothing. */
cv_status cv_selection_init(cv_selection *selection, const cv_grid *grid,
                            const caterva_selection *words, cv_error *err);

/* Bytes of a mask that are not 0. */
int64_t cv_count_true(const uint8_t *mask, int64_t n);

/* An index as the caller wrote it, already checked: counted from the start. */
static inline int64_t cv_index_from_start(int64_t index, int64_t length)
{
    return index < 0 ? index + length : index;
}

#endif
