/* Visiting the items of a box, or of every s-th along an axis, where they lie decoded:
 * block by block, nothing is copied out. */
#ifndef CV_ENGINE_VISIT_H
#define CV_ENGINE_VISIT_H

#include "engine/plan/plan.h"
#include "engine/read/read.h"

/* Items start, start + step, ... below stop, on each axis; step >= 1. */
typedef struct cv_stepped {
    int64_t start[CV_MAX_DIMS];
    int64_t stop[CV_MAX_DIMS];
    int64_t step[CV_MAX_DIMS];
} cv_stepped;

/* Items of one axis that lie in [lo, hi): the first one's place among the selected,
 * and how many. */
int64_t cv_stepped_count(const cv_stepped *box, int axis, int64_t lo, int64_t hi,
                         int64_t *first);

/* Selected items of one block, at least one. Place: among the selected, on each axis. */
typedef struct cv_visited {
    int64_t first[CV_MAX_DIMS];
    int64_t counts[CV_MAX_DIMS];
    int64_t strides[CV_MAX_DIMS]; /* bytes from one to the next */
    int64_t n_items;
    int64_t pos;         /* byte of the first item in its block */
    const uint8_t *data; /* the first item; NULL: all are `item` */
    const uint8_t *item;
} cv_visited;

typedef struct cv_visit {
    const cv_source *source;
    const cv_stepped *box;
    cv_plan plan; /* of [start, stop) */
    void (*visit)(void *context, const cv_visited *part);
} cv_visit;

/* Checks the box (CATERVA_ERANGE) and plans it. */
cv_status cv_visit_init(cv_visit *visit, const cv_source *source, const cv_stepped *box,
                        void (*fn)(void *context, const cv_visited *part), cv_error *err);

/* Visits the k-th touched chunk's share `share` of `n_shares`, with `context`, on the
 * calling thread. Padding is never visited. */
typedef struct cv_share {
    int64_t chunk; /* k, in [0, plan.n_chunks) */
    int64_t share;
    int64_t n_shares;
} cv_share;
cv_status cv_visit_chunk(const cv_visit *visit, const cv_share *share, void *context,
                         cv_worker *worker, cv_error *err);

/* Rows of a part, the last axis along each; one row of one item with 0 dimensions. */
typedef struct cv_rows {
    int ndim;
    const cv_visited *part;
    int64_t index[CV_MAX_DIMS]; /* of the row, from the part's first item */
    int64_t pos;                /* byte of its first item, from the part's */
    int64_t length;             /* items, `step` bytes apart */
    int64_t step;
    bool done;
} cv_rows;

void cv_rows_begin(cv_rows *rows, int ndim, const cv_visited *part);
void cv_rows_next(cv_rows *rows);

#endif
