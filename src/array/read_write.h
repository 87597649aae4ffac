/* Callers' strided buffers and selections, checked, and the two ways from there into the
 * engine, for arrays and for views of them. */
#ifndef CV_ARRAY_READ_WRITE_H
#define CV_ARRAY_READ_WRITE_H

#include "array/array.h"
#include "base/grid.h"
#include "engine/items/convert.h"

/* The memory of a selection's result: its first item, and bytes per step along each
 * axis of the result. */
typedef struct cv_memory {
    uint8_t *data;
    int64_t strides[CV_MAX_DIMS];
    int64_t item_size;        /* of the memory's items */
    cv_conversion conversion; /* of a destination: on the way to it */
} cv_memory;

/* A result: what lies in the buffer. */
typedef struct cv_result {
    int ndim;
    const int64_t *shape;
    int64_t item_size;
    const char *dtype;
} cv_result;

/* A destination has the result's shape; no stride of 0 puts two items in one place. */
cv_status cv_memory_of_destination(const caterva_buffer *buffer, const cv_result *result,
                                   cv_memory *out, cv_error *err);

/* A source may be broadcast to the result. Converted items are in `*converted`, which the
 * caller frees; else that is NULL. */
cv_status cv_memory_of_source(const caterva_buffer *buffer, const cv_result *result,
                              cv_memory *out, void **converted, cv_error *err);

/* What a buffer must hold; `dtype` is borrowed. */
cv_result cv_result_of(const cv_selection *selection, const char *dtype);

/* Call with the handle's lock, a selection of its present grid and its own `source`. */
cv_status cv_array_read_selected(caterva_array *array, const cv_source *source,
                                 const cv_selection *selection, const cv_memory *dst,
                                 cv_error *err);
cv_status cv_array_write_selected(cv_pending *pending, const cv_selection *selection,
                                  const cv_memory *src, cv_error *err);

/* The caller's selection on the grid (only ndim, shape, n_items and item_size); NULL is
 * all. */
cv_status cv_array_selection(const cv_grid *grid, const caterva_selection *words,
                             cv_selection *out, cv_error *err);

#endif
