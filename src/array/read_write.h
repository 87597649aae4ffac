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

/* A destination: its shape is the result's, no two items in one place as far as a
 * stride of 0 would tell. */
cv_status cv_memory_of_destination(const caterva_buffer *buffer, const cv_result *result,
                                   cv_memory *out, cv_error *err);

/* A source: its shape may be broadcast to the result's. Of another dtype it is
 * converted to `*converted`, which the caller frees; else that is NULL. */
cv_status cv_memory_of_source(const caterva_buffer *buffer, const cv_result *result,
                              cv_memory *out, void **converted, cv_error *err);

/* What a buffer must hold; `dtype` is borrowed. */
cv_result cv_result_of(const cv_selection *selection, const char *dtype);

/* Called with the handle's lock; the selection is of its present grid, and `source` is
 * the handle's. */
cv_status cv_array_read_selected(caterva_array *array, const cv_source *source,
                                 const cv_selection *selection, const cv_memory *dst,
                                 cv_error *err);
cv_status cv_array_write_selected(cv_pending *pending, const cv_selection *selection,
                                  const cv_memory *src, cv_error *err);

/* The caller's selection as the grid sees it; of the grid only ndim, shape, n_items and
 * item_size count. NULL is everything. */
cv_status cv_array_selection(const cv_grid *grid, const caterva_selection *words,
                             cv_selection *out, cv_error *err);

#endif
