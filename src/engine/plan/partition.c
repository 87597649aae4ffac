/* Room: engine/plan. The default partition: blocks near 32 KiB, which nearly fit a first-level
 * cache and waste little on thin reads, in chunks near 4 MiB, which keep the index small and give
 * several threads work. Both are nearly cubes, so that reads along every axis perform alike.
 *
 * Measured by bench_partition on ten kinds of arrays, over reads from a single item to the whole
 * array. With half the block size the mean read is 1.25 times as fast, and the compression ratio is
 * 2 % lower (11 % in tables of few columns). With twice the block size it is 0.8 times as fast, and
 * the ratio is 3 % higher. Chunks of 1 to 16 MiB do not differ. Time is proportional to the bytes
 * decoded, without a step at any cache size.
 *
 * Small arrays use slabs: much of a small array fits the codec's window, and the whole array is
 * decoded in milliseconds and stays cached. bench/sizes.py compares stored sizes with those of
 * python-blosc2's defaults, for seven kinds of data in arrays of up to 8 MiB:
 *
 *                  float arrays with    mean    largest   decoded for
 *                  ratio over 1.03      ratio   ratio     one byte
 *   cubes   32 KiB      118 of 196      1.133   2.33       7.5 KiB
 *   slabs  128 KiB       57             1.030   1.29
 *   slabs  192 KiB       33             1.014   1.18
 *   slabs  256 KiB        0             0.998   1.02        37 KiB, as python-blosc2
 *
 * No other filter or level makes cubes of 32 KiB as small as slabs. Compared with shuffle alone,
 * bytedelta after shuffle makes cubes 0.4 to 2.6 times as large, depending on the data, and decodes
 * at 0.3 to 1.1 times the speed. Levels 6 and 7, and streams split always or never, change the size
 * by 2 %. */
#include "engine/plan/partition.h"

#include "base/arith.h"

#include <assert.h>
#include <string.h>

enum {
    BLOCK_BYTES = 32 * 1024,
    CHUNK_BYTES = 4 * 1024 * 1024,
    SMALL_ARRAY_BYTES = 8 * 1024 * 1024,
    SMALL_ARRAY_BLOCK_BYTES = 256 * 1024
};

/* ---- Cubes ---------------------------------------------------------------- */

/* Doubles the shortest axis (the last of equal ones) of `shape`, which counts units of `unit[d]`
 * items, until the next step would exceed `bytes` or each axis has reached its limit. */
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

/* Returns false if an axis is empty, because such an array is expected to grow. */
static bool is_small(int ndim, const int64_t *shape, int64_t item_size)
{
    int64_t size = item_size;
    for (int d = 0; d < ndim; d++)
        if (shape[d] < 1 || !cv_mul_i64(size, shape[d], &size)) return false;
    return size <= SMALL_ARRAY_BYTES;
}

/* A block takes as many whole axes as fit, the last axis first, and divides the next one evenly. */
static void choose_slabs(int ndim, const int64_t *shape, int64_t item_size, int32_t *blocks)
{
    int64_t size = item_size;
    for (int d = ndim - 1; d >= 0; d--) {
        int64_t most = cv_max_i64(SMALL_ARRAY_BLOCK_BYTES / size, 1);
        int64_t parts = cv_ceil_div(shape[d], most);
        blocks[d] = (int32_t)cv_ceil_div(shape[d], parts);
        size *= blocks[d];
        if (parts > 1) size = SMALL_ARRAY_BLOCK_BYTES; /* other axes get length 1 */
    }
}

/* A chunk takes the whole array, or about half of it along the first axis of several items. */
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

/* ---- Any array ----------------------------------------------------------------- */

cv_status cv_partition_choose(int ndim, const int64_t *shape, int64_t item_size,
                              const int32_t *given_chunk_shape,
                              const int32_t *given_block_shape, int32_t *chunk_shape,
                              int32_t *block_shape, cv_error *err)
{
    if (ndim < 0 || ndim > CV_MAX_DIMS)
        return cv_fail(err, CATERVA_EINVAL, -1, "%d dimensions: the format allows 0 to %d",
                       ndim, CV_MAX_DIMS);
    if (item_size < 1 || item_size > CV_MAX_BLOCK_BYTES)
        return cv_fail(err, CATERVA_EINVAL, -1, "item size %lld: the format allows 1 to %lld",
                       (long long)item_size, (long long)CV_MAX_BLOCK_BYTES);

    int64_t limit[CV_MAX_DIMS] = {0}; /* upper bounds of blocks, then of chunks */
    for (int d = 0; d < ndim; d++) {
        int64_t bound = given_chunk_shape ? given_chunk_shape[d] : shape[d];
        if (bound == 0) bound = INT32_MAX; /* an empty axis is expected to grow */
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

    cv_grid grid; /* checks the given shapes */
    return cv_grid_init(&grid, ndim, shape, chunk_shape, block_shape, item_size, err);
}

/* A slab is a multiple of the new chunk along each axis. Its length along an axis determines how
 * many source blocks are decoded along that axis; the total is the product over the axes. So
 * lengths begin at one chunk. Each step lengthens the axis that saves most decoding for its memory,
 * until no longer slab fits or saves enough. */

typedef struct axis {
    int64_t extent; /* items to copy along the axis */
    int64_t chunk;  /* chunk length of `to` */
    int64_t first;  /* first item of `from` that is copied */
    int64_t from_chunk;
    int64_t unit;      /* items of `from` that are decoded together */
    int64_t alignment; /* common multiple of chunk and unit */
} axis;

typedef struct search {
    const cv_slab_request *request;
    int ndim;
    axis axes[CV_MAX_DIMS];
    int64_t length[CV_MAX_DIMS];
} search;

static int64_t greatest_common_divisor(int64_t a, int64_t b)
{
    while (b != 0) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

static axis axis_of(const cv_slab_request *r, int d)
{
    axis a = {
        .extent = r->stop[d] - r->start[d],
        .chunk = r->to->chunk_shape[d],
        .first = r->start[d] + r->shift[d],
        .from_chunk = r->from->chunk_shape[d],
        .unit = r->whole_chunks ? r->from->chunk_shape[d] : r->from->block_shape[d],
    };
    /* Blocks begin at chunk edges. If they do not divide chunks, only chunk edges are periodic. */
    int64_t period = a.from_chunk % a.unit == 0 ? a.unit : a.from_chunk;
    a.alignment = a.chunk / greatest_common_divisor(a.chunk, period) * period;
    return a;
}

/* ---- Cost of a slab length ----------------------------------------------- */

static int64_t unit_of(const axis *a, int64_t x)
{
    int64_t per_chunk = cv_ceil_div(a->from_chunk, a->unit);
    return x / a->from_chunk * per_chunk + x % a->from_chunk / a->unit;
}

static bool is_edge(const axis *a, int64_t x) { return x % a->from_chunk % a->unit == 0; }

/* Counts the units decoded with slabs of this length: each unit once, and once more for each slab
 * edge that cuts it. Samples the edges if there are many. */
static double decoded_units(const axis *a, int64_t length)
{
    enum { SAMPLE = 256 };
    int64_t n = unit_of(a, a->first + a->extent - 1) - unit_of(a, a->first) + 1;
    int64_t edges = cv_ceil_div(a->extent, length) - 1;
    int64_t looked = cv_min_i64(edges, SAMPLE), cut = 0;
    for (int64_t i = 1; i <= looked; i++) cut += !is_edge(a, a->first + i * length);
    if (looked == 0) return (double)n;
    return (double)n + (double)cut * ((double)edges / (double)looked);
}

static int64_t slab_bytes(const search *s)
{
    int64_t size = s->request->to->item_size; /* no overflow: part of an array */
    for (int d = 0; d < s->ndim; d++) size *= s->length[d];
    return size;
}

static bool fits(const search *s, int d, int64_t length)
{
    assert(s->length[d] > 0 && length > 0); /* an axis without items has no slabs */
    return slab_bytes(s) / s->length[d] <= s->request->memory / length;
}

/* ---- Growing ------------------------------------------------------------ */

static int64_t doubled(const axis *a, int64_t length)
{
    return length > a->extent / 2 ? a->extent : length * 2;
}

static int64_t aligned(const axis *a, int64_t length)
{
    int64_t rest = a->alignment - length % a->alignment;
    return length > a->extent - rest ? a->extent : length + rest;
}

/* Returns the decoding saved by the growth, divided by the growth; 0 if the slab does not fit. */
static double worth(const search *s, int d, int64_t length)
{
    const axis *a = &s->axes[d];
    if (length <= s->length[d] || !fits(s, d, length)) return 0;
    double gain = decoded_units(a, s->length[d]) / decoded_units(a, length);
    double growth = (double)length / (double)s->length[d];
    return (gain - 1) / (growth - 1);
}

static bool grow_to_save(search *s)
{
    double best = 1.0 / 16; /* least worth of a growth */
    int axis_found = -1;
    int64_t length_found = 0;
    for (int d = 0; d < s->ndim; d++) {
        int64_t lengths[2] = {doubled(&s->axes[d], s->length[d]),
                              aligned(&s->axes[d], s->length[d])};
        for (int i = 0; i < 2; i++) {
            double value = worth(s, d, lengths[i]);
            if (value <= best) continue;
            best = value;
            axis_found = d;
            length_found = lengths[i];
        }
    }
    if (axis_found >= 0) s->length[axis_found] = length_found;
    return axis_found >= 0;
}

/* Grows the slab until it is enough work for the threads, the last axis first. */
static bool grow_to_enough(search *s)
{
    if (slab_bytes(s) >= s->request->enough) return false;
    for (int d = s->ndim - 1; d >= 0; d--) {
        int64_t length = doubled(&s->axes[d], s->length[d]);
        if (length <= s->length[d] || !fits(s, d, length)) continue;
        s->length[d] = length;
        return true;
    }
    return false;
}

void cv_slabs_choose(const cv_slab_request *request, cv_slabs *out)
{
    search s = {.request = request, .ndim = request->to->ndim};
    *out = (cv_slabs){.ndim = s.ndim};
    for (int d = 0; d < s.ndim; d++) {
        s.axes[d] = axis_of(request, d);
        if (s.axes[d].extent == 0) return;
        s.length[d] = cv_min_i64(s.axes[d].chunk, s.axes[d].extent);
    }
    while (grow_to_save(&s)) continue;
    while (grow_to_enough(&s)) continue;

    out->n_slabs = 1;
    out->n_bytes = slab_bytes(&s);
    for (int d = 0; d < s.ndim; d++) {
        out->start[d] = request->start[d];
        out->stop[d] = request->stop[d];
        out->length[d] = s.length[d];
        out->counts[d] = cv_ceil_div(s.axes[d].extent, s.length[d]);
        out->n_slabs *= out->counts[d];
    }
}

void cv_slabs_get(const cv_slabs *slabs, int64_t k, int64_t *start, int64_t *stop)
{
    for (int d = slabs->ndim - 1; d >= 0; d--) {
        int64_t i = k % slabs->counts[d];
        k /= slabs->counts[d];
        start[d] = slabs->start[d] + i * slabs->length[d];
        stop[d] = slabs->stop[d] - start[d] > slabs->length[d] ? start[d] + slabs->length[d]
                                                               : slabs->stop[d];
    }
}
