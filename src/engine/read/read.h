/* Reads: copy boxes and selections out, and may skip damaged chunks. Also folds. */
#ifndef CV_ENGINE_READ_READ_H
#define CV_ENGINE_READ_READ_H

#include "engine/items/convert.h"
#include "engine/plan/part.h"
#include "engine/plan/select_plan.h"
#include "engine/read/walk.h"

/* Copies the planned box to `dst`, in C order. Any thread. */
cv_status cv_read_box(const cv_source *source, const cv_plan *plan, void *dst, cv_error *err);

/* Like cv_read_box, but skips damaged chunks as source->skip requires. */
cv_status cv_read_box_skipping(const cv_source *source, const cv_plan *plan, void *dst,
                               cv_error *err);

/* Copies the selected items to the buffer whose first item is at `dst`. If there is a conversion
 * (not NULL), the plan has items of the converted size. Any thread. */
cv_status cv_select_read(const cv_source *source, const cv_select_plan *plan,
                         const cv_conversion *conversion, uint8_t *dst, cv_error *err);
cv_status cv_select_read_skipping(const cv_source *source, const cv_select_plan *plan,
                                  const cv_conversion *conversion, uint8_t *dst,
                                  cv_error *err);

/* Folds: pass the selected items to a function, block by block, without copying them from where
 * they are decoded. Each item belongs to a cell of a result, as each item of a read has a position
 * in the buffer. If the step between cells is 0 along an axis, all items along it share a cell.
 *
 *     the items       a b c      steps between cells: 1 along axis 0, 0 along axis 1
 *     of a block      d e f      a b c -> cell 0,  d e f -> cell 1
 *
 * Parts come in a fixed order, whether blocks are dirty, cached or still to be decoded. So
 * results are reproducible to the last bit. */

/* Selected items of a block, at least one, at constant steps. part.pos and part.strides of
 * CV_IN_BUFFER count cells. */
typedef struct cv_fold_part {
    cv_part part;
    int64_t n_items;
    const uint8_t *data; /* the first item; NULL: all items equal `item` */
    const uint8_t *item;
} cv_fold_part;

typedef void (*cv_fold_fn)(void *context, const cv_fold_part *part);

typedef struct cv_fold {
    cv_walk walk;
    cv_plan box; /* used if all steps are 1; else `selection` is used */
    cv_select_plan selection;
    cv_fold_fn fn;
} cv_fold;

/* Plans a selection of at least one item, without dropped axes or backward slices. `cells` are the
 * steps between cells along each array axis; for points and masks, along the result's axis. The
 * fold must not move. Borrows the source. Free the fold even after a failure. */
cv_status cv_fold_init(cv_fold *fold, const cv_source *source, const cv_selection *selection,
                       const int64_t *cells, cv_fold_fn fn, cv_error *err);
void cv_fold_free(cv_fold *fold);

/* Share `share` of `n_shares` of touched chunk `chunk`. */
typedef struct cv_share {
    int64_t chunk; /* in [0, walk.n_chunks) */
    int64_t share;
    int64_t n_shares;
} cv_share;

/* Folds the share with `context` on the calling thread. Never passes padding. */
cv_status cv_fold_share(const cv_fold *fold, const cv_share *share, void *context,
                        cv_worker *worker, cv_error *err);

/* Folds touched chunk `first`. If all its items are equal and take no bytes, also folds the equal
 * chunks after it, before `last`. *n is the number of chunks folded. */
cv_status cv_fold_run(const cv_fold *fold, int64_t first, int64_t last, void *context,
                      cv_worker *worker, int64_t *n, cv_error *err);

#endif
