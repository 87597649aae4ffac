/* Copy kernels: boxes of items between strided places. Strides are bytes per
 * step and may be anything; boxes of 0 items copy nothing. */
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

/* A block of `size` bytes in which byte k of all items stands before byte k + 1 of any. */
typedef struct cv_shuffled {
    const uint8_t *block;
    int64_t pos; /* of the box's first item, unshuffled */
    int64_t size;
    const int64_t *strides; /* bytes, one per axis, unshuffled */
} cv_shuffled;

/* The same from shuffled items; and whether that is quicker than to unshuffle the whole
 * block by libblosc2 and copy. */
void cv_unshuffle_box(int ndim, const int64_t *shape, int64_t item_size, cv_shuffled src,
                      cv_strided dst);
bool cv_unshuffling_is_cheaper(int ndim, const int64_t *shape, int64_t item_size,
                               int64_t block_bytes);

/* Prefetches some KiB at most of a box that is copied from soon; strides above 0. */
void cv_warm_box(int ndim, const int64_t *shape, int64_t item_size, cv_strided src);

/* The same for up to a default-sized block, if there is work until it arrives. */
void cv_warm_block(int ndim, const int64_t *shape, int64_t item_size, cv_strided src);

/* Fills the box with one item; NULL: zero bytes. */
void cv_fill_box(int ndim, const int64_t *shape, int64_t item_size, const uint8_t *item,
                 cv_strided dst);

/* The NaN of index entries and NaN chunks: quiet, 4 or 8 bytes, little-endian as in a file.
 * NULL for other sizes. */
const uint8_t *cv_nan_item(int64_t item_size);

/* True for that NaN. */
bool cv_is_nan(const uint8_t *item, size_t item_size);

/* True when all bytes are zero. */
bool cv_all_zero(const uint8_t *bytes, size_t size);

/* True when the bytes are one item repeated; size is a multiple of item_size. */
bool cv_all_same(const uint8_t *bytes, size_t size, size_t item_size);

#endif
