/* Planes along every axis, boxes, lists of points and writes in turn, with a block cache: all
 * of them must read blocks right that a scan along the last axis has cached in another order
 * of axes than in the file. Compared with a plain copy in memory.
 *
 * usage: test_scans [STEPS [SEED]] */
#include "caterva.h"

#include "support/check.h"
#include "support/random.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NDIM = 3, N_ITEMS = 40 * 36 * 44, MOST_ITEM = 16, N_POINTS = 50 };

static const int64_t shape[NDIM] = {40, 36, 44};
static const int64_t strides[NDIM] = {36 * 44, 44, 1}; /* items */
static const int32_t block_shape[NDIM] = {16, 12, 16};

typedef struct subject {
    const char *dtype;
    int64_t item_size;
    caterva_array *array;
    uint8_t *model, *got;
    rng random;
} subject;

static void random_box(subject *s, int64_t start[NDIM], int64_t stop[NDIM])
{
    int axis = rng_int(&s->random, 0, NDIM); /* NDIM: a box, else a plane or part of one */
    for (int d = 0; d < NDIM; d++) {
        start[d] = rng_between(&s->random, 0, shape[d] - 1);
        stop[d] = rng_between(&s->random, start[d] + 1, shape[d]);
        if (d == axis) stop[d] = start[d] + 1;
        if (d != axis && axis < NDIM && !rng_one_in(&s->random, 4)) {
            start[d] = 0;
            stop[d] = shape[d];
        }
    }
}

/* Copies each item of the box, in C order, between model and buffer; into the model if
 * `to_model`. */
static void copy_model(const subject *s, const int64_t *start, const int64_t *stop,
                       uint8_t *buffer, int to_model)
{
    size_t size = (size_t)s->item_size;
    for (int64_t i = start[0]; i < stop[0]; i++)
        for (int64_t j = start[1]; j < stop[1]; j++)
            for (int64_t k = start[2]; k < stop[2]; k++, buffer += size) {
                uint8_t *item =
                    s->model + (size_t)(i * strides[0] + j * strides[1] + k) * size;
                memcpy(to_model ? item : buffer, to_model ? buffer : item, size);
            }
}

static size_t bytes_of(const subject *s, const int64_t *start, const int64_t *stop)
{
    size_t size = (size_t)s->item_size;
    for (int d = 0; d < NDIM; d++) size *= (size_t)(stop[d] - start[d]);
    return size;
}

static void read_box(subject *s, const int64_t *start, const int64_t *stop)
{
    caterva_error err;
    size_t size = bytes_of(s, start, stop);
    uint8_t *expected = check_alloc(size);
    copy_model(s, start, stop, expected, 0);
    CHECK_OK(caterva_read(s->array, start, stop, s->got, size, &err), err);
    CHECK(memcmp(s->got, expected, size) == 0, "box %lld:%lld, %lld:%lld, %lld:%lld",
          (long long)start[0], (long long)stop[0], (long long)start[1], (long long)stop[1],
          (long long)start[2], (long long)stop[2]);
    free(expected);
}

/* The planes of a scan, some steps of it. */
static void scan(subject *s)
{
    int axis = rng_int(&s->random, 0, NDIM - 1);
    int64_t start[NDIM] = {0}, stop[NDIM];
    int64_t first = rng_between(&s->random, 0, shape[axis] - 6);
    memcpy(stop, shape, sizeof stop);
    for (int64_t i = first; i < first + 6; i++) {
        start[axis] = i;
        stop[axis] = i + 1;
        read_box(s, start, stop);
    }
}

static void read_points(subject *s)
{
    int64_t points[N_POINTS * NDIM];
    caterva_error err;
    caterva_selection selection = CATERVA_SELECTION_INIT;
    caterva_buffer buffer = CATERVA_BUFFER_INIT;
    for (int i = 0; i < N_POINTS * NDIM; i++)
        points[i] = rng_between(&s->random, 0, shape[i % NDIM] - 1);
    selection.kind = CATERVA_SELECTION_POINTS;
    selection.points = points;
    selection.n_points = N_POINTS;
    buffer.data = s->got;
    buffer.size = N_POINTS * (size_t)s->item_size;
    CHECK_OK(caterva_read_selection(s->array, &selection, &buffer, &err), err);
    for (int i = 0; i < N_POINTS; i++) {
        int64_t at = 0;
        for (int d = 0; d < NDIM; d++) at += points[i * NDIM + d] * strides[d];
        CHECK(memcmp(s->got + i * s->item_size, s->model + at * s->item_size,
                     (size_t)s->item_size) == 0,
              "point %d of %d", i, N_POINTS);
    }
}

static void random_block(subject *s, int64_t start[NDIM], int64_t stop[NDIM])
{
    for (int d = 0; d < NDIM; d++) {
        start[d] = rng_between(&s->random, 0, shape[d] / block_shape[d]) * block_shape[d];
        if (start[d] == shape[d]) start[d] = 0;
        stop[d] = start[d] + block_shape[d] < shape[d] ? start[d] + block_shape[d] : shape[d];
    }
}

/* Blocks of one item have a special stored form. */
static void repeat_item(const subject *s, uint8_t *bytes, size_t size)
{
    size_t item = (size_t)s->item_size;
    for (size_t i = item; i < size; i += item) memcpy(bytes + i, bytes, item);
}

static void write_box(subject *s)
{
    caterva_error err;
    int64_t start[NDIM], stop[NDIM];
    bool repeats = rng_one_in(&s->random, 2);
    if (repeats)
        random_block(s, start, stop);
    else
        random_box(s, start, stop);
    size_t size = bytes_of(s, start, stop);
    uint8_t *bytes = check_alloc(size);
    rng_fill(&s->random, bytes, size);
    if (repeats) repeat_item(s, bytes, size);
    copy_model(s, start, stop, bytes, 1);
    CHECK_OK(caterva_write(s->array, start, stop, bytes, size, &err), err);
    if (rng_one_in(&s->random, 3)) CHECK_OK(caterva_commit(s->array, &err), err);
    free(bytes);
}

static void step(subject *s)
{
    int64_t start[NDIM], stop[NDIM];
    switch (rng_int(&s->random, 0, 7)) {
    case 0: write_box(s); return;
    case 1: read_points(s); return;
    case 2:
    case 3: scan(s); return;
    default: random_box(s, start, stop); read_box(s, start, stop);
    }
}

/* Smooth enough to be compressed, in all bytes of an item. */
static void fill_model(subject *s)
{
    for (int64_t i = 0; i < N_ITEMS; i++)
        for (int64_t k = 0; k < s->item_size; k++)
            s->model[i * s->item_size + k] = (uint8_t)((i >> (k % 4 * 3)) + k);
}

static void run(const char *dtype, int64_t item_size, int steps, uint64_t seed)
{
    caterva_error err;
    caterva_cache_info counts = CATERVA_CACHE_INFO_INIT;
    subject s = {.dtype = dtype, .item_size = item_size, .random = rng_from_seed(seed)};
    caterva_create_options options = CATERVA_CREATE_INIT;
    s.model = check_alloc(N_ITEMS * MOST_ITEM);
    s.got = check_alloc(N_ITEMS * MOST_ITEM);
    fill_model(&s);
    options.ndim = NDIM;
    options.shape = shape;
    options.chunk_shape = (int32_t[]){16, 24, 32};
    options.block_shape = block_shape;
    options.dtype = dtype;
    options.threads = 1 + (int)(seed % 2);
    options.cache_bytes = 60000 * item_size; /* less than half of all */
    CHECK_OK(caterva_create_from_memory("mem:", &options, s.model,
                                        (size_t)(N_ITEMS * item_size), &s.array, &err),
             err);
    CHECK_OK(caterva_commit(s.array, &err), err);
    for (int i = 0; i < steps; i++) step(&s);
    caterva_cache_describe(s.array, &counts, NULL);
    CHECK(counts.hits > 0 && counts.evicted > 0,
          "%lld hits, %lld evicted: nothing was put to the test", (long long)counts.hits,
          (long long)counts.evicted);
    caterva_discard(s.array);
    free(s.model);
    free(s.got);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *dtype;
        int64_t item_size;
    } kinds[] = {{"<i2", 2}, {"<f4", 4}, {"<f8", 8}, {"<c16", 16}, {"|S3", 3}, {"|u1", 1}};
    int steps = (int)number_argument(argc, argv, 1, 150);
    uint64_t seed = seed_argument(argc, argv, 2);
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        run(kinds[i].dtype, kinds[i].item_size, steps, seed + i);
    return 0;
}
