/* Callers' strided buffers, checked. */
#ifndef CV_ARRAY_MEMORY_H
#define CV_ARRAY_MEMORY_H

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

#endif
