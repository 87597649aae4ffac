/* Room: engine/plan. An odometer over the outer axes of a part. */
#include "engine/plan/rows.h"

void cv_rows_begin(cv_rows *rows, const cv_part *part)
{
    *rows = (cv_rows){.part = part, .length = 1};
    if (part->ndim == 0) return;
    int last = part->ndim - 1;
    rows->length = part->n[last];
    rows->step[CV_IN_BLOCK] = part->strides[CV_IN_BLOCK][last];
    rows->step[CV_IN_BUFFER] = part->strides[CV_IN_BUFFER][last];
}

/* Along axis `d` by `steps`. */
static void move(cv_rows *rows, int d, int64_t steps)
{
    rows->pos[CV_IN_BLOCK] += steps * rows->part->strides[CV_IN_BLOCK][d];
    rows->pos[CV_IN_BUFFER] += steps * rows->part->strides[CV_IN_BUFFER][d];
}

void cv_rows_next(cv_rows *rows)
{
    const cv_part *part = rows->part;
    for (int d = part->ndim - 2; d >= 0; d--) {
        move(rows, d, 1);
        if (++rows->index[d] < part->n[d]) return;
        move(rows, d, -part->n[d]);
        rows->index[d] = 0;
    }
    rows->done = true;
}
