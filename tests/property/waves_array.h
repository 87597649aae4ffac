/* An array in a custom store that counts its calls, for tests of waves: 27 chunks of 8
 * blocks, among them a chunk of zeros, one of sevens, and an incompressible one. */
#ifndef TEST_WAVES_ARRAY_H
#define TEST_WAVES_ARRAY_H

#include "support/blob.h"
#include "support/check.h"
#include "support/random.h"
#include <caterva_store.h>

enum { SIDE = 96, CHUNK = 32, BLOCK = 16, N_CHUNKS = 27, N_BLOCKS = 8 };
enum { N_ITEMS = SIDE * SIDE * SIDE };

static const int64_t origin[3] = {0, 0, 0}, shape[3] = {SIDE, SIDE, SIDE};
static int32_t items[N_ITEMS];

static inline caterva_create_options options(void)
{
    static const int32_t chunks[3] = {CHUNK, CHUNK, CHUNK}, blocks[3] = {BLOCK, BLOCK, BLOCK};
    caterva_create_options o = CATERVA_CREATE_INIT;
    o.ndim = 3;
    o.shape = shape;
    o.chunk_shape = chunks;
    o.block_shape = blocks;
    o.dtype = "<i4";
    o.threads = 1; /* chunks in sequence */
    return o;
}

/* Some noise, a chunk of zeros, one of sevens, and an incompressible one. */
static inline void make_items(rng *r)
{
    for (int i = 0; i < N_ITEMS; i++) {
        int at[3] = {i / (SIDE * SIDE), i / SIDE % SIDE, i % SIDE};
        int chunk = at[0] / CHUNK * 9 + at[1] / CHUNK * 3 + at[2] / CHUNK;
        items[i] = chunk == 5   ? 0
                   : chunk == 7 ? 7
                   : chunk == 9 ? (int32_t)rng_next(r)
                                : i + (int32_t)(rng_next(r) & 1023);
    }
}

static inline void put(caterva_array *array)
{
    caterva_error err;
    CHECK_OK(caterva_write(array, origin, shape, items, sizeof items, &err), err);
    CHECK_OK(caterva_close(array, &err), err);
}

static inline void make_blob(blob *b)
{
    caterva_error err;
    caterva_array *array;
    caterva_create_options o = options();
    o.overwrite = 1;
    caterva_store s = blob_store(b);
    CHECK_OK(caterva_store_create(&s, &o, &array, &err), err);
    put(array);
}

static inline caterva_array *open_blob(blob *b, int threads, int64_t cache_bytes)
{
    caterva_error err;
    caterva_array *array;
    caterva_open_options o = CATERVA_OPEN_INIT;
    caterva_store s = blob_store(b);
    o.threads = threads;
    o.cache_bytes = cache_bytes;
    CHECK_OK(caterva_store_open(&s, &o, &array, &err), err);
    return array;
}

static inline void forget_counts(blob *b)
{
    atomic_store(&b->n_waves, 0);
    atomic_store(&b->n_reads, 0);
    atomic_store(&b->n_bytes, 0);
    atomic_store(&b->n_ranges, 0);
}

#endif
