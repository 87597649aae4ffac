/* Allocates all memory of the library from the system, or from functions that the program sets.
 * C-Blosc2 and the C library allocate their own memory. If the program sets no functions, the first
 * allocation selects the system; each allocation costs one load more than malloc. Any thread. */
#ifndef CV_BASE_HEAP_H
#define CV_BASE_HEAP_H

#include "base/status.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Functions that replace malloc, realloc and free, as in caterva_allocator. */
typedef struct cv_heap_functions {
    void *context;
    void *(*allocate)(void *context, size_t size, size_t alignment);
    void (*release)(void *context, void *memory);
} cv_heap_functions;

/* Sets the functions. This works once, and only before the first allocation; otherwise returns
 * false and changes nothing. */
bool cv_heap_set(const cv_heap_functions *functions);

/* The alignment of malloc. */
#define CV_HEAP_ALIGNMENT _Alignof(max_align_t)

/* Used by the inline functions below only. */
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

/* Returns `size` bytes aligned for any C type, or NULL. If `size` is 0, the result has no bytes to
 * access, but must be freed. */
static inline void *cv_malloc(size_t size)
{
    return cv_heap_is_system() ? malloc(size) : cv_heap_allocate(size, CV_HEAP_ALIGNMENT);
}

/* Returns `n` times `size` zeroed bytes aligned for any C type, or NULL. */
void *cv_calloc(size_t n, size_t size);

/* Resizes `memory` (or NULL), keeping its first `old` bytes; may move it. On failure returns NULL
 * and changes nothing. */
void *cv_realloc(void *memory, size_t old, size_t size);

/* Makes room for one more item in a list of `n` items with capacity *room. Doubles the capacity if
 * the list is full. Returns the list, which may have moved. If out of memory, returns NULL and
 * changes nothing. */
void *cv_grow(void *list, size_t n, size_t *room, size_t item_size);

/* Returns `size` bytes aligned to `alignment`, a power of 2. */
void *cv_aligned_alloc(size_t alignment, size_t size);

/* Returns memory for `size` bytes, aligned to CV_LARGE_PAGE, in pages of that size if possible. */
enum { CV_LARGE_PAGE = 2 << 20 };
void *cv_large_pages(size_t size);

/* cv_strdup copies `text`, cv_strndup at most `most` bytes of it. NULL if out of memory. */
char *cv_strdup(const char *text);
char *cv_strndup(const char *text, size_t most);

/* Removes const from memory that the caller owns. */
static inline void *cv_unconst(const void *memory)
{
    void *own;
    memcpy(&own, &memory, sizeof own);
    return own;
}

/* Releases memory that a function above returned. NULL is fine. */
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

/* Makes the capacity at least `capacity` bytes. Keeps the first `size` bytes. */
cv_status cv_buffer_reserve(cv_buffer *buffer, size_t capacity, cv_error *err);

/* Sets `size`, growing if needed; new bytes are undefined. */
cv_status cv_buffer_resize(cv_buffer *buffer, size_t size, cv_error *err);

/* The slow path of cv_buffer_append, for many bytes or a buffer that must grow. */
cv_status cv_buffer_append_more(cv_buffer *buffer, const void *bytes, size_t size,
                                cv_error *err);

/* Appends bytes. Inline, because headers are written byte by byte. */
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
