/* Strided copies between boxes of items. Strides are in bytes and may be negative; `counts` and
 * strides have `ndim` entries. */
#ifndef CLI_STRIDED_H
#define CLI_STRIDED_H

#include "sources/selection.h"

/* Computes the strides of a box in C order. */
void strides_of_box(const box *b, int ndim, int64_t item_size, int64_t *strides);

typedef struct strided_copy {
    int ndim;
    int64_t item_size;
    int64_t counts[CATERVA_MAX_DIMS];
    int64_t src_strides[CATERVA_MAX_DIMS];
    int64_t dst_strides[CATERVA_MAX_DIMS];
} strided_copy;

void strided_copy_run(const strided_copy *copy, const uint8_t *src, uint8_t *dst);

/* Sets `strides` to the byte strides that the axes of `result` have within its bounds in the array.
 * Returns the byte position of the first item. The selection must have no lists. */
int64_t strides_of_selection(const selection *sel, const box *result, const box *bounds,
                             int64_t item_size, int64_t *strides);

#endif
