/* Callers' strided buffers and selections, checked; and the functions that pass them to the engine,
 * for arrays and for views. */
#ifndef CV_ARRAY_READ_WRITE_H
#define CV_ARRAY_READ_WRITE_H

#include "array/array.h"
#include "base/grid.h"
#include "engine/items/convert.h"

/* The memory of a selection's result: its first item, and bytes per step along each axis of the
 * result. */
typedef struct cv_memory {
    uint8_t *data;
    int64_t strides[CV_MAX_DIMS];
    int64_t item_size;        /* of the items in memory */
    cv_conversion conversion; /* to a destination; applied when items are copied */
} cv_memory;

/* The result: what the buffer contains. */
typedef struct cv_result {
    int ndim;
    const int64_t *shape;
    int64_t item_size;
    const char *dtype;
} cv_result;

/* A destination must have the result's shape, and no stride of 0 on an axis of several items. */
cv_status cv_memory_of_destination(const caterva_buffer *buffer, const cv_result *result,
                                   cv_memory *out, cv_error *err);

/* A source may be broadcast to the result. If items are converted, *converted holds them and the
 * caller frees it; otherwise it is NULL. */
cv_status cv_memory_of_source(const caterva_buffer *buffer, const cv_result *result,
                              cv_memory *out, void **converted, cv_error *err);

/* The result of a selection; `dtype` is borrowed. */
cv_result cv_result_of(const cv_selection *selection, const char *dtype);

/* Call with the handle's lock, a selection on its current grid, and its own `source`. */
cv_status cv_array_read_selected(caterva_array *array, const cv_source *source,
                                 const cv_selection *selection, const cv_memory *dst,
                                 cv_error *err);
cv_status cv_array_write_selected(cv_pending *pending, const cv_selection *selection,
                                  const cv_memory *src, cv_error *err);

/* Makes the caller's selection on the grid, of which only ndim, shape, n_items and item_size are
 * used. NULL selects all. */
cv_status cv_array_selection(const cv_grid *grid, const caterva_selection *words,
                             cv_selection *out, cv_error *err);

#endif
