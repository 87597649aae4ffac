/* Room: engine/plan. Counting along one axis. */
#include "engine/plan/stepped.h"

#include "base/arith.h"

int64_t cv_stepped_count(const cv_axis *axis, int64_t lo, int64_t hi, int64_t *first)
{
    int64_t last = axis->start + (axis->n - 1) * axis->step;
    lo = cv_max_i64(lo, axis->start);
    hi = cv_min_i64(hi, last + 1);
    *first = cv_ceil_div(lo - axis->start, axis->step);
    if (hi <= lo) return 0;
    return (hi - 1 - axis->start) / axis->step + 1 - *first;
}
