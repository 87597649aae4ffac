/* Several chunks of an array are damaged: every function that reads it, on any number of
 * threads, reports the first of them, with its number. */
#include <caterva.h>
#include <caterva_upkeep.h>

#include "support/check.h"
#include "support/scratch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Blocks large enough for several threads; chunks are in C order. */
enum { N_CHUNKS = 24, CHUNK_ITEMS = 1 << 16, N_ITEMS = N_CHUNKS * CHUNK_ITEMS, RUNS = 12 };

static const int damaged[] = {7, 8, 15, 23};
static char path[SCRATCH_PATH];
static int32_t items[N_ITEMS];
static caterva_error err;

static void create(void)
{
    static const int64_t start[] = {0, 0}, shape[] = {N_CHUNKS, CHUNK_ITEMS};
    static const int32_t chunk[] = {1, CHUNK_ITEMS}, block[] = {1, CHUNK_ITEMS / 16};
    caterva_array *array;
    caterva_create_options o = CATERVA_CREATE_INIT;
    o.ndim = 2;
    o.shape = shape;
    o.chunk_shape = chunk;
    o.block_shape = block;
    o.dtype = "<i4";
    uint32_t noise = 1;
    for (int64_t i = 0; i < N_ITEMS; i++)
        items[i] = (int32_t)(noise = noise * 1664525u + 1013904223u) >> 12;
    CHECK_OK(caterva_create(scratch_path(path, "a.b2nd"), &o, &array, &err), err);
    CHECK_OK(caterva_write(array, start, shape, items, sizeof items, &err), err);
    CHECK_OK(caterva_close(array, &err), err);
}

static void flip(FILE *file, int64_t pos)
{
    CHECK(fseek(file, (long)pos, SEEK_SET) == 0, "seek");
    int byte = fgetc(file);
    CHECK(byte >= 0 && fseek(file, (long)pos, SEEK_SET) == 0, "read");
    CHECK(fputc(byte ^ 16, file) >= 0, "write");
}

static void damage(void)
{
    caterva_array *array;
    FILE *file = fopen(path, "r+b");
    CHECK(file, "%s", path);
    CHECK_OK(caterva_open(path, NULL, &array, &err), err);
    for (size_t i = 0; i < sizeof damaged / sizeof damaged[0]; i++) {
        caterva_chunk_info info = CATERVA_CHUNK_INFO_INIT;
        CHECK_OK(caterva_chunk_describe(array, damaged[i], &info, &err), err);
        flip(file, info.position + info.stored_bytes / 2);
    }
    CHECK(fclose(file) == 0, "close");
    caterva_discard(array);
}

static void reported(const char *who, caterva_status status, int chunk)
{
    char expected[40];
    snprintf(expected, sizeof expected, "chunk %d: block", chunk);
    CHECK(status == CATERVA_ECORRUPT, "%s: %s", who, caterva_status_name(status));
    CHECK(strncmp(err.message, expected, strlen(expected)) == 0, "%s: not of chunk %d: %s",
          who, chunk, err.message);
}

static void reads(caterva_array *array)
{
    static const int64_t start[] = {0, 0}, stop[] = {N_CHUNKS, CHUNK_ITEMS}, later[] = {9, 0};
    reported("a box", caterva_read(array, start, stop, items, sizeof items, &err), 7);
    reported("a later box", caterva_read(array, later, stop, items, sizeof items, &err), 15);
}

static void reductions(caterva_array *array)
{
    static const int last[] = {1};
    static int64_t results[N_CHUNKS];
    caterva_stats stats = CATERVA_STATS_INIT;
    int64_t counts[4];
    static const double range[] = {-1e6, 1e6};
    caterva_reduce_options o = CATERVA_REDUCE_INIT;
    reported("statistics", caterva_statistics(array, NULL, &stats, &err), 7);
    reported("a histogram", caterva_histogram(array, range, 4, NULL, counts, &err), 7);
    o.axes = last;
    o.n_axes = 1;
    reported("sums of rows",
             caterva_reduce(array, CATERVA_REDUCTION_SUM, &o, results, sizeof results, &err),
             7);
    reported(
        "the sum",
        caterva_reduce(array, CATERVA_REDUCTION_SUM, NULL, results, sizeof results, &err), 7);
}

static void copies(caterva_array *array)
{
    static const int32_t chunk[] = {3, CHUNK_ITEMS / 4};
    caterva_create_options c = CATERVA_CREATE_INIT;
    caterva_copy_options o = CATERVA_COPY_INIT;
    o.create = &c;
    o.memory = 1 << 30;
    c.chunk_shape = chunk;
    reported("a copy with other chunks", caterva_copy(array, "mem:", &o, NULL, &err), 7);
}

int main(void)
{
    create();
    damage();
    for (int i = 0; i < RUNS; i++) {
        caterva_array *array;
        caterva_open_options o = CATERVA_OPEN_INIT;
        o.threads = 1 + i % 4;
        CHECK_OK(caterva_open(path, &o, &array, &err), err);
        reads(array);
        reductions(array);
        copies(array);
        CHECK_OK(caterva_close(array, &err), err);
    }
    return 0;
}
