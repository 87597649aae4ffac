/* What reductions of an array and of several have in common: the caller's words checked, and
 * a selection as the engine takes it. */
#ifndef CV_ARRAY_REDUCE_CALL_H
#define CV_ARRAY_REDUCE_CALL_H

#include "array/array.h"
#include "engine/jobs/reduce.h"
#include "engine/jobs/statistics.h"

/* A selection of an array; axis by axis the engine takes it forwards, none dropped. */
typedef struct cv_taken {
    cv_selection selection;
    int64_t *lists[CV_MAX_DIMS]; /* ours, in it */
    bool falls[CV_MAX_DIMS];     /* items are wanted in falling order */
} cv_taken;

/* Makes it so, and announces the bytes to `watch`. Release also after a failure. */
cv_status cv_take(cv_taken *taken, cv_watch *watch, cv_error *err);
void cv_taken_free(cv_taken *taken);

/* Which of the result's axes go, each named once; all where the options name none. */
cv_status cv_mark_axes(const caterva_reduce_options *options, int ndim, bool *goes,
                       cv_error *err);

cv_status cv_check_reduction(caterva_reduction what, cv_error *err);
cv_status cv_check_bins_of(const cv_number_type *type, cv_error *err);

/* The result, of `n_items` items. */
typedef struct cv_cells_wanted {
    caterva_reduction what;
    uint8_t *dst;
    size_t dst_size;
    int64_t n_cells;
    int64_t n_items;
} cv_cells_wanted;

/* Whether there is such a result of such items, and room for it. */
cv_status cv_check_cells(const cv_cells_wanted *wanted, const cv_number_type *type,
                         cv_error *err);

/* The result of no items. */
void cv_store_nothing(const cv_cells_wanted *wanted, const cv_number_type *type);

#endif
