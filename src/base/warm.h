/* Warming bytes: they are asked of memory before they are needed, since to wait for them
 * costs as much as some hundred instructions. */
#ifndef CV_BASE_WARM_H
#define CV_BASE_WARM_H

#include <stddef.h>
#include <stdint.h>

enum { CV_LINE_BYTES = 64 };

/* gcc drops calls of functions that do nothing else: such are inlined always. */
#define CV_WARMING __attribute__((always_inline)) static inline

/* For reading; a few hundred bytes at most. NULL: nothing is warmed. */
CV_WARMING void cv_warm_bytes(const uint8_t *bytes, size_t size)
{
    if (!bytes) return;
    for (size_t at = 0; at < size; at += CV_LINE_BYTES) __builtin_prefetch(bytes + at);
    if (size > 0) __builtin_prefetch(bytes + size - 1);
}

#endif
