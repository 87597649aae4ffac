/* Room: cli/sources. Strides of boxes and selections. */
#include "sources/strides.h"

void strides_of_box(const box *b, int ndim, int64_t item_size, int64_t *strides)
{
    int64_t stride = item_size;
    for (int d = ndim - 1; d >= 0; d--) {
        strides[d] = stride;
        stride *= b->stop[d] - b->start[d];
    }
}

int64_t strides_of_selection(const selection *sel, const box *result, const box *bounds,
                             int64_t item_size, int64_t *strides)
{
    int64_t array_strides[CATERVA_MAX_DIMS], first = 0;
    strides_of_box(bounds, sel->ndim, item_size, array_strides);
    for (int r = 0; r < sel->n_result; r++) {
        int d = sel->result[r];
        strides[r] = d < 0 ? 0 : sel->axis[d].step * array_strides[d];
        if (d < 0) continue;
        int64_t index = sel->axis[d].start + result->start[r] * sel->axis[d].step;
        first += (index - bounds->start[d]) * array_strides[d];
    }
    return first;
}
