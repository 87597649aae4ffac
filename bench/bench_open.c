/* A file of a million chunks, made by our writer: how long opening it takes, the
 * first point, the points after it, and how much memory; the same through b2nd.
 * Each side runs in a process of its own, so that their memory is told apart. */
#include "bench.h"

#include <b2nd.h>
#include <blosc2.h>

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WIDTH = 16, SLAB = 50000, DEFAULT_CHUNKS = 1000000, N_POINTS = 1000 };

typedef struct side {
    const char *name;
    void *(*open)(const char *path);
    int32_t (*read)(void *array, int64_t row, int64_t column);
    int64_t (*rows)(void *array);
    void (*close)(void *array);
} side;

/* No two items of a row are equal: no chunk is special. */
static int32_t item_of(int64_t row, int64_t column)
{
    return (int32_t)((uint32_t)(row * WIDTH + column) * 2654435761u);
}

static void *open_ours(const char *path)
{
    caterva_error err;
    caterva_array *array = NULL;
    bench_need_ok(caterva_open(path, NULL, &array, &err), &err, "open");
    return array;
}

static int32_t read_ours(void *array, int64_t row, int64_t column)
{
    caterva_error err;
    int64_t start[2] = {row, column};
    int64_t stop[2] = {row + 1, column + 1};
    int32_t item = 0;
    bench_need_ok(caterva_read(array, start, stop, &item, sizeof(item), &err), &err, "read");
    return item;
}

static int64_t rows_ours(void *array) { return caterva_describe(array)->shape[0]; }

static void close_ours(void *array) { caterva_discard(array); }

static void *open_theirs(const char *path)
{
    b2nd_array_t *array = NULL;
    int result = b2nd_open(path, &array);
    bench_need(result >= 0, "b2nd_open", blosc2_error_string(result));
    return array;
}

static int32_t read_theirs(void *array, int64_t row, int64_t column)
{
    int64_t start[2] = {row, column};
    int64_t stop[2] = {row + 1, column + 1};
    int64_t shape[2] = {1, 1};
    int32_t item = 0;
    int result = b2nd_get_slice_cbuffer(array, start, stop, &item, shape, sizeof(item));
    bench_need(result >= 0, "b2nd_get_slice_cbuffer", blosc2_error_string(result));
    return item;
}

static int64_t rows_theirs(void *array) { return ((b2nd_array_t *)array)->shape[0]; }

static void close_theirs(void *array) { b2nd_free(array); }

static const side sides[2] = {
    {"caterva", open_ours, read_ours, rows_ours, close_ours},
    {"b2nd", open_theirs, read_theirs, rows_theirs, close_theirs},
};

static void write_file(const char *path, int64_t n_chunks)
{
    caterva_error err;
    caterva_create_options options = CATERVA_CREATE_INIT;
    int64_t shape[2] = {n_chunks, WIDTH};
    int32_t part[2] = {1, WIDTH};
    caterva_array *array = NULL;
    int32_t *slab = bench_alloc((size_t)SLAB * WIDTH * sizeof(*slab));
    double started = bench_now();
    options.ndim = 2;
    options.shape = shape;
    options.chunk_shape = options.block_shape = part;
    options.dtype = "<i4";
    options.codec_set = 1;
    options.codec = CATERVA_CODEC_LZ4;
    options.level = 5;
    options.filters[0] = CATERVA_FILTER_SHUFFLE;
    bench_need_ok(caterva_create(path, &options, &array, &err), &err, "create");
    for (int64_t row = 0; row < n_chunks; row += SLAB) {
        int64_t start[2] = {row, 0};
        int64_t stop[2] = {row + SLAB < n_chunks ? row + SLAB : n_chunks, WIDTH};
        for (int64_t i = 0; i < (stop[0] - row) * WIDTH; i++) slab[i] = item_of(row, i);
        bench_need_ok(caterva_write(array, start, stop, slab,
                                    (size_t)(stop[0] - row) * WIDTH * sizeof(*slab), &err),
                      &err, "write");
    }
    bench_need_ok(caterva_commit(array, &err), &err, "commit");
    printf("%lld chunks written by caterva in %.2f s, %lld bytes\n", (long long)n_chunks,
           bench_now() - started, (long long)caterva_describe(array)->frame_bytes);
    bench_need_ok(caterva_close(array, &err), &err, "close");
    free(slab);
}

/* The most memory this process ever had, in KiB; 0 where nothing tells. */
static long memory_high_water(void)
{
    char line[256];
    long kib = 0;
    FILE *file = fopen("/proc/self/status", "r");
    while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
        if (strncmp(line, "VmHWM:", 6) == 0) kib = strtol(line + 6, NULL, 10);
    }
    if (file != NULL) fclose(file);
    return kib;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

static double time_point(const side *s, void *array, int64_t n_rows, uint64_t *random)
{
    int64_t row = bench_below(random, n_rows);
    int64_t column = bench_below(random, WIDTH);
    double started = bench_now();
    int32_t item = s->read(array, row, column);
    double took = bench_now() - started;
    bench_need(item == item_of(row, column), s->name, "read a wrong item");
    return took;
}

static void measure_side(const side *s, const char *path)
{
    static double points[N_POINTS];
    uint64_t random = 7;
    double best = 1e9;
    for (int i = 0; i < 5; i++) {
        double started = bench_now();
        s->close(s->open(path));
        best = bench_now() - started < best ? bench_now() - started : best;
    }
    void *array = s->open(path);
    long after_open = memory_high_water();
    int64_t n_rows = s->rows(array);
    double first = time_point(s, array, n_rows, &random);
    for (int i = 0; i < N_POINTS; i++) points[i] = time_point(s, array, n_rows, &random);
    qsort(points, N_POINTS, sizeof(points[0]), by_size);
    printf("%-8s open and close %10.1f us, first point %9.1f us, then %8.2f us (median), "
           "memory %ld KiB after open, %ld KiB at the end\n",
           s->name, 1e6 * best, 1e6 * first, 1e6 * points[N_POINTS / 2], after_open,
           memory_high_water());
    s->close(array);
}

/* Runs this program again, as one side. */
static void run_side(const char *number, char *path)
{
    char *arguments[] = {"bench_open", "--side", (char *)(uintptr_t)number, path, NULL};
    int status = 1;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        execv("/proc/self/exe", arguments);
        _exit(127);
    }
    waitpid(child, &status, 0);
    bench_need(status == 0, "bench_open", "one side failed");
}

int main(int argc, char **argv)
{
    char path[512];
    const char *tmp = getenv("TMPDIR");
    blosc2_init();
    if (argc == 4 && strcmp(argv[1], "--side") == 0) {
        measure_side(&sides[argv[2][0] == '1'], argv[3]);
        return 0;
    }
    snprintf(path, sizeof(path), "%s/caterva-bench-open-%d.b2nd", tmp != NULL ? tmp : "/tmp",
             (int)getpid());
    write_file(path, argc > 1 ? strtoll(argv[1], NULL, 0) : DEFAULT_CHUNKS);
    run_side("0", path);
    run_side("1", path);
    unlink(path);
    return 0;
}
