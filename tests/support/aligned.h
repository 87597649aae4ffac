/* Aligned memory for allocators of tests. On Windows free cannot release it. */
#ifndef SUPPORT_ALIGNED_H
#define SUPPORT_ALIGNED_H

#include <stdlib.h>

#ifdef _WIN32
#include <malloc.h>
static inline void *aligned_new(size_t alignment, size_t size)
{
    return _aligned_malloc(size, alignment);
}
static inline void aligned_free(void *memory) { _aligned_free(memory); }
#else
static inline void *aligned_new(size_t alignment, size_t size)
{
    void *memory = NULL;
    if (alignment < sizeof(void *)) alignment = sizeof(void *);
    return posix_memalign(&memory, alignment, size) == 0 ? memory : NULL;
}
static inline void aligned_free(void *memory) { free(memory); }
#endif

#endif
