/* A growable byte buffer, zero-initialised with `cv_buffer b = {0}`. */
#ifndef CV_BASE_BUFFER_H
#define CV_BASE_BUFFER_H

#include "base/status.h"

typedef struct cv_buffer {
    uint8_t *data; /* owned; 64-byte aligned */
    size_t size;
    size_t capacity;
} cv_buffer;

/* Makes room for `capacity` bytes in all; content up to `size` is kept. */
cv_status cv_buffer_reserve(cv_buffer *buffer, size_t capacity, cv_error *err);

/* Sets `size`, growing when needed; new bytes are undefined. */
cv_status cv_buffer_resize(cv_buffer *buffer, size_t size, cv_error *err);

cv_status cv_buffer_append(cv_buffer *buffer, const void *bytes, size_t size, cv_error *err);

void cv_buffer_free(cv_buffer *buffer); /* leaves it empty and usable */

#endif
