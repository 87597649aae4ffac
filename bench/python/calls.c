/* The time of the C library alone, for comparison with the Python package: the same calls in a C
 * loop. scripts/bench-python builds this file as a library, and run.py calls it. Each function
 * returns the mean seconds of one call; an error ends the process. */
#include "../bench.h"

#include <pthread.h>
#include <string.h>

static void *open_array(const char *path, int threads, int64_t cache_bytes)
{
    caterva_error err;
    caterva_array *array;
    caterva_open_options options = CATERVA_OPEN_INIT;
    options.threads = threads;
    options.cache_bytes = cache_bytes;
    bench_need_ok(caterva_open(path, &options, &array, &err), &err, "open");
    return array;
}

CATERVA_API void *calls_open(const char *path, int threads, int64_t cache_bytes);
void *calls_open(const char *path, int threads, int64_t cache_bytes)
{
    return open_array(path, threads, cache_bytes);
}

CATERVA_API void calls_close(void *array);
void calls_close(void *array) { caterva_discard(array); }

/* Reads a box n times: into `out` or, if `out` is NULL, into memory allocated for each call. */
CATERVA_API double calls_read(void *array, const int64_t *start, const int64_t *stop,
                              void *out, size_t size, int n);
double calls_read(void *array, const int64_t *start, const int64_t *stop, void *out,
                  size_t size, int n)
{
    caterva_error err;
    double begun = bench_now();
    for (int i = 0; i < n; i++) {
        void *items = out ? out : bench_alloc(size);
        bench_need_ok(caterva_read(array, start, stop, items, size, &err), &err, "read");
        if (!out) free(items);
    }
    return (bench_now() - begun) / n;
}

/* ---- Points by several threads ---------------------------------------------------- */

typedef struct reader {
    caterva_array *array;
    const int64_t *points; /* n points of three coordinates each */
    int n;
} reader;

static void *read_points(void *context)
{
    const reader *r = context;
    for (int i = 0; i < r->n; i++) {
        caterva_error err;
        int64_t stop[3];
        char item[16];
        const int64_t *start = r->points + 3 * i;
        for (int d = 0; d < 3; d++) stop[d] = start[d] + 1;
        bench_need_ok(caterva_read(r->array, start, stop, item, 4, &err), &err, "read");
    }
    return NULL;
}

/* Reads n points of three coordinates on each of at most 8 threads, which share the handle. */
CATERVA_API double calls_points(void *array, int threads, const int64_t *points, int n);
double calls_points(void *array, int threads, const int64_t *points, int n)
{
    reader readers[8];
    pthread_t others[8];
    double begun = bench_now();
    for (int i = 0; i < threads; i++) {
        readers[i] = (reader){array, points + (size_t)3 * (size_t)n * (size_t)i, n};
        bench_need(pthread_create(&others[i], NULL, read_points, &readers[i]) == 0, "thread",
                   "cannot be started");
    }
    for (int i = 0; i < threads; i++) pthread_join(others[i], NULL);
    return (bench_now() - begun) / ((double)n * threads);
}

/* ---- Writing ------------------------------------------------------------------------ */

/* Creates an array with three axes of `side` items in chunks of `chunk`, like run.py, and writes it
 * in slabs of whole chunks. */
CATERVA_API double calls_write(const char *path, int64_t side, int chunk, const char *items);
double calls_write(const char *path, int64_t side, int chunk, const char *items)
{
    double begun = bench_now();
    caterva_error err;
    caterva_array *array;
    const int64_t shape[3] = {side, side, side};
    const int32_t chunks[3] = {chunk, chunk, chunk};
    caterva_create_options options = CATERVA_CREATE_INIT;
    options.shape = shape;
    options.chunk_shape = chunks;
    options.ndim = 3;
    options.dtype = "<i4";
    options.item_size = 4;
    options.codec = CATERVA_CODEC_LZ4;
    options.level = 5;
    options.filters[0] = CATERVA_FILTER_SHUFFLE;
    options.overwrite = 1;
    options.durability = CATERVA_DURABILITY_NONE;
    bench_need_ok(caterva_create(path, &options, &array, &err), &err, "create");
    for (int64_t i = 0; i < side; i += chunk) {
        int64_t end = i + chunk < side ? i + chunk : side, plane = side * side * 4;
        bench_need_ok(caterva_write(array, (int64_t[3]){i, 0, 0},
                                    (int64_t[3]){end, side, side}, items + i * plane,
                                    (size_t)((end - i) * plane), &err),
                      &err, "write");
    }
    bench_need_ok(caterva_close(array, &err), &err, "close");
    return bench_now() - begun;
}
