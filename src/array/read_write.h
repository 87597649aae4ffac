/* Checks callers' strided buffers and selections, and passes them to the engine. */
#ifndef CV_ARRAY_READ_WRITE_H
#define CV_ARRAY_READ_WRITE_H

#include "array/array.h"
#include "base/grid.h"
#include "engine/items/convert.h"

/* Memory for the items of a selection: the address of the first item, and the bytes from one item
 * to the next along each axis of the result. */
typedef struct cv_memory {
    uint8_t *data;
    int64_t strides[CV_MAX_DIMS];
    int64_t item_size;        /* of the items in memory */
    cv_conversion conversion; /* for reads: applied to items while they are copied */
} cv_memory;

/* The shape and the dtype of a selection's items. */
typedef struct cv_result {
    int ndim;
    const int64_t *shape;
    int64_t item_size;
    const char *dtype;
} cv_result;

/* Checks a destination. It must have the result's shape, and no stride of 0 on axes of many
 * items. */
cv_status cv_memory_of_destination(const caterva_buffer *buffer, const cv_result *result,
                                   cv_memory *out, cv_error *err);

/* Checks a source, which may be broadcast to the result. If its items must be converted, *converted
 * is the memory of the converted items, which the caller frees; otherwise *converted is NULL. */
cv_status cv_memory_of_source(const caterva_buffer *buffer, const cv_result *result,
                              cv_memory *out, void **converted, cv_error *err);

/* Returns shape and dtype of a selection's items; `dtype` is borrowed. */
cv_result cv_result_of(const cv_selection *selection, const char *dtype);

/* Read or write the items of a selection. Call with the handle's lock held. The selection must be
 * on the array's current grid, and `source` must be the handle's. */
cv_status cv_array_read_selected(caterva_array *array, const cv_source *source,
                                 const cv_selection *selection, const cv_memory *dst,
                                 cv_error *err);
cv_status cv_array_write_selected(cv_pending *pending, const cv_selection *selection,
                                  const cv_memory *src, cv_error *err);

/* Makes a selection on the grid from the caller's `words`; NULL selects all items. Uses only the
 * grid's ndim, shape, n_items and item_size. */
cv_status cv_array_selection(const cv_grid *grid, const caterva_selection *words,
                             cv_selection *out, cv_error *err);

#endif
