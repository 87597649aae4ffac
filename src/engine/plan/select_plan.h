/* Plans of selections of every kind. */
#ifndef CV_ENGINE_PLAN_SELECT_PLAN_H
#define CV_ENGINE_PLAN_SELECT_PLAN_H

#include "engine/plan/part.h"
#include "engine/plan/selection.h"

typedef struct cv_select_plan cv_select_plan;

/* The selected items of one axis that lie in one chunk, or in one block, along that axis. */
typedef struct cv_span {
    int64_t index;       /* of the chunk or block along the axis */
    int64_t first, last; /* items [first, last) of the axis' selection */
    int64_t n_blocks;    /* touched blocks, if the span is a chunk's */
} cv_span;

/* One touched chunk. */
typedef struct cv_select_chunk {
    int64_t chunk;              /* number in the array */
    int64_t n_blocks;           /* touched blocks to visit */
    cv_span spans[CV_MAX_DIMS]; /* private to the plan's kind */
} cv_select_chunk;

/* One touched block of a chunk. */
typedef struct cv_select_block {
    int64_t block; /* number in the chunk */
    bool wanted;   /* an item of the block is selected */
    bool covers;   /* every item of the block inside chunk and array is selected */
} cv_select_block;

typedef void (*cv_part_fn)(void *context, const cv_part *part);

typedef struct cv_select_ops {
    /* Returns the k-th touched chunk, k in [0, n_chunks). */
    void (*chunk)(const cv_select_plan *plan, int64_t k, cv_select_chunk *out);
    /* Returns the j-th touched block of the chunk, j in [0, n_blocks). */
    void (*block)(const cv_select_plan *plan, const cv_select_chunk *chunk, int64_t j,
                  cv_select_block *out);
    /* Visits the parts of a wanted block, in C order of the result. */
    void (*parts)(const cv_select_plan *plan, const cv_select_chunk *chunk, int64_t j,
                  cv_part_fn visit, void *context);
} cv_select_ops;

struct cv_select_plan {
    const cv_grid *grid; /* borrowed */
    const cv_select_ops *ops;
    int64_t n_chunks;             /* touched chunks; for a mask, all chunks */
    int64_t n_blocks;             /* touched blocks; for slices and masks, an upper bound */
    int64_t n_items;              /* selected */
    int64_t buffer_pos;           /* of the first item; not 0 if a step is negative */
    int64_t strides[CV_MAX_DIMS]; /* of the buffer, per array axis; points and masks: [0] */
    cv_watch *watch;              /* polled while the plan is made; or NULL */
    /* Private to the plan's kind. */
    cv_axis axes[CV_MAX_DIMS];         /* steps are positive here */
    int64_t chunk_counts[CV_MAX_DIMS]; /* touched along each axis */
    cv_buckets buckets[CV_MAX_DIMS];   /* for each axis with a list; points: the first */
    const uint8_t *mask;               /* borrowed */
    int64_t *ranks;                    /* selected items before each line of a block */
    int64_t n_segments; /* blocks along the last axis, so ranks per line of the array */
};

/* Returns a chunk's items as one part, with buffer positions only. For axes without lists. */
void cv_select_axes_chunk_part(const cv_select_plan *plan, const cv_select_chunk *chunk,
                               cv_part *out);

/* Returns true if the plan is a box: axes with steps of 1. Such a plan has no memory to free. */
bool cv_select_plan_is_box(const cv_select_plan *plan, int64_t *start, int64_t *stop);

/* Plans a selection of at least one item. `strides` are bytes per axis of the result. `watch` (or
 * NULL) may stop the sorting of many items. Free the plan even after a failure. */
cv_status cv_select_plan_init(cv_select_plan *plan, const cv_selection *selection,
                              const int64_t *strides, cv_watch *watch, cv_error *err);
void cv_select_plan_free(cv_select_plan *plan);

#endif
