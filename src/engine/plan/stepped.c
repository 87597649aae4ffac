/* Room: engine/plan. Counting along one axis of a stepped box. */
#include "engine/plan/stepped.h"

#include "base/arith.h"

int64_t cv_stepped_count(const cv_stepped *box, int axis, int64_t lo, int64_t hi,
                         int64_t *first)
{
    int64_t start = box->start[axis], step = box->step[axis];
    lo = cv_max_i64(lo, start);
    hi = cv_min_i64(hi, box->stop[axis]);
    *first = cv_ceil_div(lo - start, step);
    if (hi <= lo) return 0;
    return (hi - 1 - start) / step + 1 - *first;
}
