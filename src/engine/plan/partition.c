/* Room: engine/plan. The partition for those who state none. The aim: blocks near
 * 32 KiB, which a first-level cache nearly holds and thin reads waste little
 * of, inside chunks near 4 MiB, which make few entries in the index and enough
 * work for several threads. Both are as close to cubes as the shape allows, so
 * that no direction of reading is bad.
 *
 * Measured by bench_partition on ten kinds of arrays, over reads from all to a
 * point: half the block makes the mean read 1.25 times as fast and costs 2 % of
 * the ratio (11 % in tables few columns wide), twice the block 0.8 times for a
 * gain of 3 %; between 1 and 16 MiB the chunk does not matter. Time follows the
 * bytes decoded without a step at the size of any cache, so none is asked for.
 *
 * Small arrays are cut otherwise: to them the codec's window is most of what it has,
 * and what a thin read wastes is bounded by the array, which is decoded whole in
 * milliseconds and stays in the cache. bench/sizes.py measures them beside
 * python-blosc2's defaults, seven kinds of data in arrays of up to 8 MiB:
 *
 *                  float arrays over 1.03   mean   largest   a byte decodes
 *   cubes   32 KiB      118 of 196          1.133   2.33       7.5 KiB
 *   slabs  128 KiB       57                 1.030   1.29
 *   slabs  192 KiB       33                 1.014   1.18
 *   slabs  256 KiB        0                 0.998   1.02        37 KiB, as theirs
 *
 * No pipeline makes up for it in cubes of 32 KiB: bytedelta behind shuffle stores 0.4
 * to 2.6 times as much, by the kind of data, and decodes at 0.3 to 1.1 of the speed;
 * levels 6 and 7, and splitting always or never, change 2 %. */
#include "engine/plan/partition.h"

#include "base/arith.h"
#include "base/grid.h"

enum {
    BLOCK_BYTES = 32 * 1024,
    CHUNK_BYTES = 4 * 1024 * 1024,
    SMALL_ARRAY_BYTES = 8 * 1024 * 1024,
    SMALL_ARRAY_BLOCK_BYTES = 256 * 1024
};

/* ---- Cubes ---------------------------------------------------------------- */

/* Doubles the shortest axis (the last of equals, whose items are neighbours in
 * memory) of `shape`, which counts steps of `unit` items, while it fits `bytes`
 * and the limit of each axis allows. */
static void grow(int ndim, const int64_t *limit, const int64_t *unit, int64_t item_size,
                 int64_t bytes, int64_t *shape)
{
    int64_t size = item_size;
    for (int d = 0; d < ndim; d++)
        if (!cv_mul_i64(size, unit[d], &size)) return;
    for (;;) {
        int best = -1;
        for (int d = ndim - 1; d >= 0; d--) {
            if (shape[d] * unit[d] >= limit[d]) continue;
            if (best < 0 || shape[d] * unit[d] < shape[best] * unit[best]) best = d;
        }
        if (best < 0 || size > bytes / 2) return;
        shape[best] *= 2;
        size *= 2;
    }
}

static void choose_blocks(int ndim, const int64_t *limit, int64_t item_size, int32_t *blocks)
{
    int64_t unit[CV_MAX_DIMS] = {0}, shape[CV_MAX_DIMS] = {0};
    for (int d = 0; d < ndim; d++) unit[d] = shape[d] = 1;
    grow(ndim, limit, unit, item_size, BLOCK_BYTES, shape);
    for (int d = 0; d < ndim; d++) blocks[d] = (int32_t)cv_min_i64(shape[d], limit[d]);
}

static void choose_chunks(int ndim, const int64_t *limit, int64_t item_size,
                          const int32_t *blocks, int32_t *chunks)
{
    int64_t unit[CV_MAX_DIMS] = {0}, shape[CV_MAX_DIMS] = {0};
    for (int d = 0; d < ndim; d++) {
        unit[d] = blocks[d];
        shape[d] = 1;
    }
    grow(ndim, limit, unit, item_size, CHUNK_BYTES, shape);
    for (int d = 0; d < ndim; d++) {
        int64_t length = shape[d] * unit[d];
        int64_t most = cv_max_i64(limit[d], blocks[d]);
        chunks[d] = (int32_t)cv_min_i64(length, most);
    }
}

/* ---- Slabs, for small arrays ------------------------------------------------- */

/* False for an array with an empty axis: that one will grow. */
static bool is_small(int ndim, const int64_t *shape, int64_t item_size)
{
    int64_t size = item_size;
    for (int d = 0; d < ndim; d++)
        if (shape[d] < 1 || !cv_mul_i64(size, shape[d], &size)) return false;
    return size <= SMALL_ARRAY_BYTES;
}

/* The last axes whole, as many as fit; the one before in equal parts. */
static void choose_slabs(int ndim, const int64_t *shape, int64_t item_size, int32_t *blocks)
{
    int64_t size = item_size;
    for (int d = ndim - 1; d >= 0; d--) {
        int64_t most = cv_max_i64(SMALL_ARRAY_BLOCK_BYTES / size, 1);
        int64_t parts = cv_ceil_div(shape[d], most);
        blocks[d] = (int32_t)cv_ceil_div(shape[d], parts);
        size *= blocks[d];
        if (parts > 1) size = SMALL_ARRAY_BLOCK_BYTES; /* no room for the axes before */
    }
}

/* The whole array; or the half of it, in whole blocks, along its first axis. */
static void choose_small_chunks(int ndim, const int64_t *shape, int64_t item_size,
                                const int32_t *blocks, int32_t *chunks)
{
    int64_t size = item_size;
    int first = -1;
    for (int d = 0; d < ndim; d++) {
        chunks[d] = (int32_t)shape[d];
        size *= shape[d];
        if (first < 0 && shape[d] > 1) first = d;
    }
    if (size <= CHUNK_BYTES || first < 0) return;
    int64_t half = cv_ceil_div(cv_ceil_div(shape[first], 2), blocks[first]) * blocks[first];
    chunks[first] = (int32_t)cv_min_i64(half, shape[first]);
}

/* ---- Any array ---------------------------------------------------------------- */

cv_status cv_partition_choose(int ndim, const int64_t *shape, int64_t item_size,
                              const int32_t *given_chunk_shape,
                              const int32_t *given_block_shape, int32_t *chunk_shape,
                              int32_t *block_shape, cv_error *err)
{
    if (ndim < 0 || ndim > CV_MAX_DIMS)
        return cv_fail(err, CATERVA_EINVAL, -1, "%d dimensions, the format allows 0 to %d",
                       ndim, CV_MAX_DIMS);
    if (item_size < 1 || item_size > CV_MAX_BLOCK_BYTES)
        return cv_fail(err, CATERVA_EINVAL, -1, "item size %lld, the format allows 1 to %lld",
                       (long long)item_size, (long long)CV_MAX_BLOCK_BYTES);

    int64_t limit[CV_MAX_DIMS] = {0}; /* what blocks (then chunks) may grow to */
    for (int d = 0; d < ndim; d++) {
        int64_t bound = given_chunk_shape ? given_chunk_shape[d] : shape[d];
        if (bound == 0) bound = INT32_MAX; /* an axis that is empty will grow */
        limit[d] = cv_min_i64(cv_max_i64(bound, 1), INT32_MAX);
    }
    bool slabs = !given_chunk_shape && !given_block_shape && is_small(ndim, shape, item_size);
    for (int d = 0; d < ndim && given_block_shape; d++) block_shape[d] = given_block_shape[d];
    if (slabs)
        choose_slabs(ndim, shape, item_size, block_shape);
    else if (!given_block_shape)
        choose_blocks(ndim, limit, item_size, block_shape);

    for (int d = 0; d < ndim; d++) {
        if (block_shape[d] < 1)
            return cv_fail(err, CATERVA_EINVAL, -1, "block shape[%d] is %d, less than 1", d,
                           block_shape[d]);
        if (given_chunk_shape) chunk_shape[d] = given_chunk_shape[d];
    }
    if (slabs)
        choose_small_chunks(ndim, shape, item_size, block_shape, chunk_shape);
    else if (!given_chunk_shape)
        choose_chunks(ndim, limit, item_size, block_shape, chunk_shape);

    cv_grid grid; /* the judge of what was given */
    return cv_grid_init(&grid, ndim, shape, chunk_shape, block_shape, item_size, err);
}
