/* A growable byte buffer, zero-initialised with `cv_buffer b = {0}`. */
#ifndef CV_BASE_BUFFER_H
#define CV_BASE_BUFFER_H

#include "base/status.h"

#include <string.h>

typedef struct cv_buffer {
    uint8_t *data; /* owned; 64-byte aligned */
    size_t size;
    size_t capacity;
} cv_buffer;

/* Makes room for `capacity` bytes in all; content up to `size` is kept. */
cv_status cv_buffer_reserve(cv_buffer *buffer, size_t capacity, cv_error *err);

/* Sets `size`, growing when needed; new bytes are undefined. */
cv_status cv_buffer_resize(cv_buffer *buffer, size_t size, cv_error *err);

/* The same of much, or where there is no room yet. */
cv_status cv_buffer_append_more(cv_buffer *buffer, const void *bytes, size_t size,
                                cv_error *err);

/* Headers are written byte by byte. */
static inline cv_status cv_buffer_append(cv_buffer *buffer, const void *bytes, size_t size,
                                         cv_error *err)
{
    enum { FEW = 256 };
    if (size > FEW || size > buffer->capacity - buffer->size)
        return cv_buffer_append_more(buffer, bytes, size, err);
    if (size > 0) memcpy(buffer->data + buffer->size, bytes, size);
    buffer->size += size;
    return CV_OK;
}

void cv_buffer_free(cv_buffer *buffer); /* leaves it empty and usable */

#endif
