/* Selections inside this room: the caller's words checked, and the two ways into
 * the engine, for arrays and for views of them. */
#ifndef CV_ARRAY_SELECTION_H
#define CV_ARRAY_SELECTION_H

#include "array/array.h"
#include "array/memory.h"

/* What a buffer must hold; `dtype` is borrowed. */
cv_result cv_result_of(const cv_selection *selection, const char *dtype);

/* Called with the handle's lock; the selection is of its present grid, and `source` is
 * the handle's. */
cv_status cv_array_read_selected(caterva_array *array, const cv_source *source,
                                 const cv_selection *selection, const cv_memory *dst,
                                 cv_error *err);
cv_status cv_array_write_selected(cv_pending *pending, const cv_selection *selection,
                                  const cv_memory *src, cv_error *err);

/* The same selection of an array of converted items, whose grid goes to `grid`: blocks are
 * converted whole before anything is copied out of them. */
cv_selection cv_array_converted(const cv_selection *selection, int64_t item_size,
                                cv_grid *grid);

/* The caller's selection as the grid sees it; of the grid only ndim, shape, n_items and
 * item_size count. NULL is everything. */
cv_status cv_array_selection(const cv_grid *grid, const caterva_selection *words,
                             cv_selection *out, cv_error *err);

#endif
