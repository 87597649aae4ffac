/* Strided copies of boxes of items. Strides are in bytes and may be negative; `counts` and strides
 * have `ndim` entries. */
#ifndef CLI_STRIDED_H
#define CLI_STRIDED_H

#include "cli.h"

typedef struct strided_copy {
    int ndim;
    int64_t item_size;
    int64_t counts[CATERVA_MAX_DIMS];
    int64_t src_strides[CATERVA_MAX_DIMS];
    int64_t dst_strides[CATERVA_MAX_DIMS];
} strided_copy;

CLI_API void strided_copy_run(const strided_copy *copy, const uint8_t *src, uint8_t *dst);

#endif
