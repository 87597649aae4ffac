/* Strides of boxes and selections, in bytes. */
#ifndef CLI_STRIDES_H
#define CLI_STRIDES_H

#include "formats/strided.h"
#include "sources/selection.h"

/* Computes the strides of a box in C order. */
void strides_of_box(const box *b, int ndim, int64_t item_size, int64_t *strides);

/* Sets `strides` to the byte strides that the axes of `result` have within its bounds in the array.
 * Returns the byte position of the first item. The selection must have no lists. */
int64_t strides_of_selection(const selection *sel, const box *result, const box *bounds,
                             int64_t item_size, int64_t *strides);

#endif
