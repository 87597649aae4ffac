/* Room: cli/sources. Strided copies: an odometer over the outer axes, a typed loop along the last
 * one. The caller has checked that every item of the box lies inside both buffers. */
#include "sources/strided.h"

#include <string.h>

void strides_of_box(const box *b, int ndim, int64_t item_size, int64_t *strides)
{
    int64_t stride = item_size;
    for (int d = ndim - 1; d >= 0; d--) {
        strides[d] = stride;
        stride *= b->stop[d] - b->start[d];
    }
}

#define COPY_LINE(size)                                                                      \
    for (int64_t i = 0; i < n; i++) memcpy(dst + i * dst_stride, src + i * src_stride, (size))

static void copy_line(const uint8_t *src, int64_t src_stride, uint8_t *dst,
                      int64_t dst_stride, int64_t n, int64_t item_size)
{
    if (src_stride == item_size && dst_stride == item_size) {
        memcpy(dst, src, (size_t)(n * item_size));
        return;
    }
    switch (item_size) { /* a constant size makes each memcpy one instruction */
    case 1: COPY_LINE(1); break;
    case 2: COPY_LINE(2); break;
    case 4: COPY_LINE(4); break;
    case 8: COPY_LINE(8); break;
    default: COPY_LINE((size_t)item_size); break;
    }
}

void strided_copy_run(const strided_copy *copy, const uint8_t *src, uint8_t *dst)
{
    int last = copy->ndim - 1;
    if (copy->ndim == 0) {
        memcpy(dst, src, (size_t)copy->item_size);
        return;
    }
    for (int d = 0; d < copy->ndim; d++)
        if (copy->counts[d] == 0) return;

    int64_t index[CATERVA_MAX_DIMS] = {0};
    int d = 0;
    while (d >= 0) {
        copy_line(src, copy->src_strides[last], dst, copy->dst_strides[last],
                  copy->counts[last], copy->item_size);
        for (d = last - 1; d >= 0; d--) {
            src += copy->src_strides[d];
            dst += copy->dst_strides[d];
            if (++index[d] < copy->counts[d]) break;
            src -= copy->counts[d] * copy->src_strides[d];
            dst -= copy->counts[d] * copy->dst_strides[d];
            index[d] = 0;
        }
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
