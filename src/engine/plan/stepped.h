/* A box of which on each axis every s-th item is taken. */
#ifndef CV_ENGINE_STEPPED_H
#define CV_ENGINE_STEPPED_H

#include "base/grid.h"

/* Items start, start + step, ... below stop, on each axis; step >= 1. */
typedef struct cv_stepped {
    int64_t start[CV_MAX_DIMS];
    int64_t stop[CV_MAX_DIMS];
    int64_t step[CV_MAX_DIMS];
} cv_stepped;

/* Items of one axis that lie in [lo, hi): the first one's place among the selected,
 * and how many. */
int64_t cv_stepped_count(const cv_stepped *box, int axis, int64_t lo, int64_t hi,
                         int64_t *first);

#endif
