/* Room: cli/formats. Strided copies: an odometer over the outer axes, and a loop over planes of the
 * axis that is fastest in the source and the one that is fastest in the destination. The caller
 * has checked that every item of the box lies inside both buffers. */
#include "formats/strided.h"

#include <string.h>

/* Items of a tile along each axis: the lines of a tile stay in the first cache of a processor. */
#define TILE 32

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

/* Copies a plane of n by m items, tile by tile. Axis 0 is the fastest one of the source, axis 1
 * that of the destination. */
static void copy_tiles(const strided_copy *plane, const uint8_t *src, uint8_t *dst)
{
    const int64_t *s = plane->src_strides, *t = plane->dst_strides;
    int64_t n = plane->counts[0], m = plane->counts[1];
    for (int64_t i = 0; i < n; i += TILE)
        for (int64_t j = 0; j < m; j += TILE)
            for (int64_t k = i; k < n && k < i + TILE; k++)
                copy_line(src + k * s[0] + j * s[1], s[1], dst + k * t[0] + j * t[1], t[1],
                          m - j < TILE ? m - j : TILE, plane->item_size);
}

static int64_t size_of(int64_t stride) { return stride < 0 ? -stride : stride; }

/* Returns the axis with more than one item whose stride is the smallest; -1 if there is none. */
static int fastest_axis(const strided_copy *copy, const int64_t *strides)
{
    int fastest = -1;
    for (int d = copy->ndim - 1; d >= 0; d--)
        if (copy->counts[d] > 1 &&
            (fastest < 0 || size_of(strides[d]) < size_of(strides[fastest])))
            fastest = d;
    return fastest;
}

/* Moves the axis to the end of `to`. */
static void move_axis(const strided_copy *from, int d, strided_copy *to)
{
    to->counts[to->ndim] = from->counts[d];
    to->src_strides[to->ndim] = from->src_strides[d];
    to->dst_strides[to->ndim++] = from->dst_strides[d];
}

void strided_copy_run(const strided_copy *copy, const uint8_t *src, uint8_t *dst)
{
    for (int d = 0; d < copy->ndim; d++)
        if (copy->counts[d] == 0) return;
    int a = fastest_axis(copy, copy->src_strides), b = fastest_axis(copy, copy->dst_strides);
    if (b < 0) {
        memcpy(dst, src, (size_t)copy->item_size);
        return;
    }
    strided_copy outer = {.item_size = copy->item_size}, inner = outer;
    for (int d = 0; d < copy->ndim; d++)
        if (d != a && d != b && copy->counts[d] > 1) move_axis(copy, d, &outer);
    if (a != b) move_axis(copy, a, &inner);
    move_axis(copy, b, &inner);

    int64_t index[CATERVA_MAX_DIMS] = {0};
    int d = 0;
    while (d >= 0) {
        if (a == b)
            copy_line(src, inner.src_strides[0], dst, inner.dst_strides[0], inner.counts[0],
                      copy->item_size);
        else
            copy_tiles(&inner, src, dst);
        for (d = outer.ndim - 1; d >= 0; d--) {
            src += outer.src_strides[d];
            dst += outer.dst_strides[d];
            if (++index[d] < outer.counts[d]) break;
            src -= outer.counts[d] * outer.src_strides[d];
            dst -= outer.counts[d] * outer.dst_strides[d];
            index[d] = 0;
        }
    }
}
