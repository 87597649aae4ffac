/* Reads: boxes and selections copied out, also around damage, and folds. */
#ifndef CV_ENGINE_READ_READ_H
#define CV_ENGINE_READ_READ_H

#include "engine/items/convert.h"
#include "engine/plan/part.h"
#include "engine/plan/select_plan.h"
#include "engine/read/walk.h"

/* Copies the planned box into `dst`, C order. Any thread. */
cv_status cv_read_box(const cv_source *source, const cv_plan *plan, void *dst, cv_error *err);

/* The same, on around damaged chunks as source->skip says. */
cv_status cv_read_box_skipping(const cv_source *source, const cv_plan *plan, void *dst,
                               cv_error *err);

/* Copies the selected items to `dst`, the first item of the buffer. With a conversion (or
 * NULL) the plan has items of the converted size. Any thread. */
cv_status cv_select_read(const cv_source *source, const cv_select_plan *plan,
                         const cv_conversion *conversion, uint8_t *dst, cv_error *err);
cv_status cv_select_read_skipping(const cv_source *source, const cv_select_plan *plan,
                                  const cv_conversion *conversion, uint8_t *dst,
                                  cv_error *err);

/* Folding: the selected items, seen where they lie decoded, block by block; nothing is
 * copied out. Each item has a cell of a result, as each item of a read
 * has its place in the buffer: cells that stand still along an axis fold it.
 *
 *     the items       a b c      cells: 1 step along rows, 0 along columns
 *     of a block      d e f      a b c -> cell 0,  d e f -> cell 1
 *
 * Parts come in one order, whatever is dirty, in the cache or still to be decoded: what
 * is folded of one array is the same to the last digit. */

/* Selected items of a block, at least one, in even steps; the buffer side counts cells. */
typedef struct cv_fold_part {
    cv_part part;
    int64_t n_items;
    const uint8_t *data; /* the first item; NULL: all are `item` */
    const uint8_t *item;
} cv_fold_part;

typedef void (*cv_fold_fn)(void *context, const cv_fold_part *part);

typedef struct cv_fold {
    cv_walk walk;
    cv_plan box; /* where all steps are 1; else */
    cv_select_plan selection;
    cv_fold_fn fn;
} cv_fold;

/* Plans a selection of at least one item, without dropped axes or backward slices; `cells`:
 * steps between cells along each array axis, or the result's for points and masks. Must not
 * move. Borrows the source. Release with cv_fold_free, also after a failure. */
cv_status cv_fold_init(cv_fold *fold, const cv_source *source, const cv_selection *selection,
                       const int64_t *cells, cv_fold_fn fn, cv_error *err);
void cv_fold_free(cv_fold *fold);

/* Share `share` of `n_shares` of the touched chunk `chunk`. */
typedef struct cv_share {
    int64_t chunk; /* in [0, walk.n_chunks) */
    int64_t share;
    int64_t n_shares;
} cv_share;

/* Folds the share with `context`, on the calling thread. Padding is never seen. */
cv_status cv_fold_share(const cv_fold *fold, const cv_share *share, void *context,
                        cv_worker *worker, cv_error *err);

/* Folds touched chunk `first`, with following ones before `last` if all are the same item
 * everywhere and take no bytes. *n: chunks folded. */
cv_status cv_fold_run(const cv_fold *fold, int64_t first, int64_t last, void *context,
                      cv_worker *worker, int64_t *n, cv_error *err);

#endif
