/* What a change of shape does to the chunks. */
#ifndef CV_FRAME_RESHAPE_H
#define CV_FRAME_RESHAPE_H

#include "frame/txn.h"

/* How chunks move when the shape changes: along `axis`, those from index
 * `at` on go `shift` chunks further (negative: back, over dropped ones); then
 * the new shape cuts off what lies outside. shift 0: nothing moves. */
typedef struct cv_reshape {
    const int64_t *shape;
    int axis;
    int64_t at;
    int64_t shift;
} cv_reshape;

/* Gives the array the new shape: chunks move as told, new ones are special of
 * kind `fill`. */
cv_status cv_txn_reshape(cv_txn *txn, const cv_reshape *reshape, cv_ref_kind fill,
                         cv_error *err);

/* Cuts the array down to the box of chunks that begins at chunk index `first`, with items
 * `shape`: chunks outside are forgotten, and must not be stored. Costs as much as the box has
 * chunks. */
cv_status cv_txn_crop(cv_txn *txn, const int64_t *first, const int64_t *shape, cv_error *err);

/* The old number of a chunk of the new grid, or -1: it is new. And the new
 * number of an old one, or -1: it is dropped. */
int64_t cv_reshape_source(const cv_reshape *reshape, const cv_grid *from, const cv_grid *to,
                          int64_t chunk);
int64_t cv_reshape_target(const cv_reshape *reshape, const cv_grid *from, const cv_grid *to,
                          int64_t chunk);

/* True when every chunk that is kept keeps its number: only the first axis grows
 * or shrinks, the way of every append to a series. */
bool cv_reshape_keeps_numbers(const cv_reshape *reshape, const cv_grid *from,
                              const cv_grid *to);

#endif
