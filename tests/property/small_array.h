/* A small array, in a file or in a directory, for tests of what happens to its name. */
#ifndef TEST_SMALL_ARRAY_H
#define TEST_SMALL_ARRAY_H

#include "caterva.h"

#include "support/check.h"
#include "support/scratch.h"

#include <string.h>

enum { N = 1000, PATH_SIZE = SCRATCH_PATH + 300 };

static const int64_t origin[] = {0}, shape[] = {N};

static inline caterva_create_options drawn(caterva_layout layout)
{
    static const int32_t chunks[] = {100}, blocks[] = {10};
    caterva_create_options options = CATERVA_CREATE_INIT;
    options.ndim = 1;
    options.shape = shape;
    options.chunk_shape = chunks;
    options.block_shape = blocks;
    options.dtype = "|u1";
    options.layout = layout;
    options.overwrite = 1;
    options.threads = 1;
    options.durability = CATERVA_DURABILITY_NONE;
    return options;
}

/* An array of N items `value`. */
static inline void save(const char *path, caterva_layout layout, int value)
{
    uint8_t items[N];
    caterva_error err;
    caterva_array *array = NULL;
    caterva_create_options options = drawn(layout);
    memset(items, value, N);
    CHECK_OK(caterva_create_from_memory(path, &options, items, N, &array, &err), err);
    CHECK_OK(caterva_close(array, &err), err);
}

#endif
