/* Room: base. The growable byte buffer. Capacity doubles, so that appending n
 * bytes costs O(n); memory is aligned for the SIMD loops of the codecs. */
#include "base/buffer.h"

#include "base/heap.h"

#include <string.h>

enum { ALIGNMENT = 64 };

cv_status cv_buffer_reserve(cv_buffer *buffer, size_t capacity, cv_error *err)
{
    if (capacity <= buffer->capacity) return CV_OK;

    size_t doubled = buffer->capacity > SIZE_MAX / 2 ? capacity : buffer->capacity * 2;
    size_t wanted = capacity > doubled ? capacity : doubled;
    if (wanted > SIZE_MAX - ALIGNMENT) return cv_fail_memory(err, wanted, "a buffer");
    wanted = (wanted + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;

    uint8_t *grown = cv_aligned_alloc(ALIGNMENT, wanted);
    if (!grown) return cv_fail_memory(err, wanted, "a buffer");
    if (buffer->size > 0) memcpy(grown, buffer->data, buffer->size);
    cv_free(buffer->data);
    buffer->data = grown;
    buffer->capacity = wanted;
    return CV_OK;
}

cv_status cv_buffer_resize(cv_buffer *buffer, size_t size, cv_error *err)
{
    CV_TRY(cv_buffer_reserve(buffer, size, err));
    buffer->size = size;
    return CV_OK;
}

cv_status cv_buffer_append_more(cv_buffer *buffer, const void *bytes, size_t size,
                                cv_error *err)
{
    if (size > SIZE_MAX - buffer->size) return cv_fail_memory(err, size, "a buffer");
    CV_TRY(cv_buffer_reserve(buffer, buffer->size + size, err));
    if (size > 0) memcpy(buffer->data + buffer->size, bytes, size);
    buffer->size += size;
    return CV_OK;
}

void cv_buffer_free(cv_buffer *buffer)
{
    cv_free(buffer->data);
    *buffer = (cv_buffer){0};
}
