/* Shared by the fuzz targets. A target is one function over any bytes; libFuzzer calls it
 * with generated input, and driver.c with the files of the corpus. It must end quickly for
 * any bytes, and abort() if a result is wrong. */
#ifndef FUZZ_H
#define FUZZ_H

#include "caterva.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

/* Aborts: the input produced a wrong result. */
#define FUZZ_NEED(condition, ...)                                                            \
    do {                                                                                     \
        if (!(condition)) {                                                                  \
            fprintf(stderr, "%s:%d: ", __FILE__, __LINE__);                                  \
            fprintf(stderr, __VA_ARGS__);                                                    \
            fputc('\n', stderr);                                                             \
            abort();                                                                         \
        }                                                                                    \
    } while (0)

/* The input, read as a list of small decisions; zeros after its end. */
typedef struct fuzz_input {
    const uint8_t *bytes;
    size_t size;
} fuzz_input;

static inline uint8_t fuzz_byte(fuzz_input *in)
{
    if (in->size == 0) return 0;
    in->size--;
    return *in->bytes++;
}

/* In [low, high], from one byte; high - low < 256. */
static inline int64_t fuzz_between(fuzz_input *in, int64_t low, int64_t high)
{
    return low + fuzz_byte(in) % (high - low + 1);
}

static inline void *fuzz_alloc(size_t size)
{
    void *memory = calloc(1, size > 0 ? size : 1);
    FUZZ_NEED(memory, "no memory for %zu bytes", size);
    return memory;
}

#endif
