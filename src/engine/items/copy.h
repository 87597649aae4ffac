/* Copy kernels: copy boxes of items between strided buffers. Strides are bytes per step, of
 * any sign; boxes of 0 items copy nothing. */
#ifndef CV_ENGINE_ITEMS_COPY_H
#define CV_ENGINE_ITEMS_COPY_H

#include "base/grid.h"

/* One side of a copy. */
typedef struct cv_strided {
    uint8_t *data;          /* first item of the box */
    const int64_t *strides; /* bytes, one per axis */
} cv_strided;

void cv_copy_box(int ndim, const int64_t *shape, int64_t item_size, cv_strided src,
                 cv_strided dst);

/* A shuffled block of `size` bytes: byte k of all items comes before byte k + 1 of any item. */
typedef struct cv_shuffled {
    const uint8_t *block;
    int64_t pos; /* byte of the box's first item in the unshuffled block */
    int64_t size;
    const int64_t *strides; /* bytes per axis in the unshuffled block */
} cv_shuffled;

/* cv_unshuffle_box copies a box from shuffled items. cv_unshuffling_is_cheaper returns whether that
 * is faster than unshuffling the whole block in libblosc2 and copying the box. */
void cv_unshuffle_box(int ndim, const int64_t *shape, int64_t item_size, cv_shuffled src,
                      cv_strided dst);
bool cv_unshuffling_is_cheaper(int ndim, const int64_t *shape, int64_t item_size,
                               int64_t block_bytes);

/* Prefetches up to some KiB of a box that will be copied from soon. Strides must be positive. */
void cv_warm_box(int ndim, const int64_t *shape, int64_t item_size, cv_strided src);

/* Prefetches up to a block of the default size. For callers that have other work meanwhile. */
void cv_warm_block(int ndim, const int64_t *shape, int64_t item_size, cv_strided src);

/* Fills the box with one item; NULL: zero bytes. */
void cv_fill_box(int ndim, const int64_t *shape, int64_t item_size, const uint8_t *item,
                 cv_strided dst);

/* Returns the NaN of index entries and NaN chunks: quiet, 4 or 8 bytes, little-endian as in a
 * file. NULL for other sizes. */
const uint8_t *cv_nan_item(int64_t item_size);

/* Returns true if the item is exactly the NaN that cv_nan_item returns. */
bool cv_is_nan(const uint8_t *item, size_t item_size);

bool cv_all_zero(const uint8_t *bytes, size_t size);

/* Returns true if the bytes are one item repeated; size is a multiple of item_size. */
bool cv_all_same(const uint8_t *bytes, size_t size, size_t item_size);

#endif
