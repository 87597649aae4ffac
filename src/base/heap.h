/* All memory of the library, from the system or a program's functions; libblosc2 and libc
 * allocate their own. The first allocation decides for the system; later ones cost one load
 * more than the system's function. Any thread. */
#ifndef CV_BASE_HEAP_H
#define CV_BASE_HEAP_H

#include "base/status.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Functions in the place of the system's: as caterva_allocator has them. */
typedef struct cv_heap_functions {
    void *context;
    void *(*allocate)(void *context, size_t size, size_t alignment);
    void (*release)(void *context, void *memory);
} cv_heap_functions;

/* Before anything has been allocated, and once: else false, and nothing changes. */
bool cv_heap_set(const cv_heap_functions *functions);

/* What malloc aligns to. */
#define CV_HEAP_ALIGNMENT _Alignof(max_align_t)

/* For the functions below only. */
typedef enum cv_heap_kind {
    CV_HEAP_UNSETTLED,
    CV_HEAP_SETTING,
    CV_HEAP_SYSTEM,
    CV_HEAP_SET
} cv_heap_kind;
extern atomic_int cv_heap_settled;
void *cv_heap_allocate(size_t size, size_t alignment);
void cv_heap_release(void *memory);

static inline bool cv_heap_is_system(void)
{
    return atomic_load_explicit(&cv_heap_settled, memory_order_acquire) == CV_HEAP_SYSTEM;
}

/* `size` bytes, aligned for any C type, or NULL. 0 bytes: NULL or unusable memory; free it
 * anyway. */
static inline void *cv_malloc(size_t size)
{
    return cv_heap_is_system() ? malloc(size) : cv_heap_allocate(size, CV_HEAP_ALIGNMENT);
}

/* The same for `n` times `size` bytes, all zero. */
void *cv_calloc(size_t n, size_t size);

/* Resizes `memory` (or NULL), keeping its first `old` bytes; may move it. NULL: failed,
 * unchanged. */
void *cv_realloc(void *memory, size_t old, size_t size);

/* `size` bytes at a multiple of `alignment`, a power of 2. */
void *cv_aligned_alloc(size_t alignment, size_t size);

/* Memory for `size` bytes in large pages of this size and alignment, if the system has
 * them. */
enum { CV_LARGE_PAGE = 2 << 20 };
void *cv_large_pages(size_t size);

/* Copies of a text, or of at most `most` bytes of it. NULL without memory. */
char *cv_strdup(const char *text);
char *cv_strndup(const char *text, size_t most);

/* What stands behind a pointer that is const for everybody but who made it. */
static inline void *cv_unconst(const void *memory)
{
    void *own;
    memcpy(&own, &memory, sizeof own);
    return own;
}

/* What any of these handed out; NULL is fine. */
static inline void cv_free(void *memory)
{
    if (cv_heap_is_system())
        free(memory);
    else
        cv_heap_release(memory);
}

/* ---- Buffers ---- */

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
