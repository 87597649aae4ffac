/* Files of a hundred thousand and a million chunks, made by our writer: the time of opening, of the
 * first point and of the points after it, and the memory; the same through b2nd. Each side runs in
 * a process of its own, so that its memory is measured alone. */
#include "bench_readers.h"
#include "bench_rows.h"

#include <sys/wait.h>

enum { WIDTH = 16, SLAB = 50000, N_SERIES = 21, N_POINTS = 1000, MIB_IN_KIB = 1024 };

static bench_table table;

/* The results of one side: seconds, and KiB of the process. */
typedef struct measures {
    double open, first_point;
    double first_series, series; /* mean of a point in the first series, and the median
                                    of all series' means */
    double memory_open, memory_end;
} measures;

typedef struct side {
    const char *name;
    void *(*open)(const char *path);
    int32_t (*read)(void *array, int64_t row, int64_t column);
    int64_t (*rows)(void *array);
    void (*close)(void *array);
} side;

/* No two items of a row are equal, so that no chunk is stored as one value. */
static int32_t item_of(int64_t row, int64_t column)
{
    return (int32_t)((uint32_t)(row * WIDTH + column) * 2654435761u);
}

static void *open_ours(const char *path)
{
    return bench_open_reader(path, 1, BENCH_CACHE_OFF);
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

static int64_t rows_ours(void *array) { return bench_info(array).shape[0]; }

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
    printf("\n%lld chunks written by caterva in %.2f s, %lld bytes\n", (long long)n_chunks,
           bench_now() - started, (long long)bench_info(array).frame_bytes);
    bench_need_ok(caterva_close(array, &err), &err, "close");
    free(slab);
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Items are compared after the clock has stopped. */
static double time_series(const side *s, void *array, int64_t n_rows, uint64_t *random)
{
    static int64_t rows[N_POINTS], columns[N_POINTS];
    static int32_t items[N_POINTS];
    for (int i = 0; i < N_POINTS; i++) {
        rows[i] = bench_below(random, n_rows);
        columns[i] = bench_below(random, WIDTH);
    }
    double started = bench_now();
    for (int i = 0; i < N_POINTS; i++) items[i] = s->read(array, rows[i], columns[i]);
    double took = bench_now() - started;
    for (int i = 0; i < N_POINTS; i++)
        bench_need(items[i] == item_of(rows[i], columns[i]), s->name, "read a wrong item");
    return took / N_POINTS;
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

static measures measure_side(const side *s, const char *path)
{
    double series[N_SERIES];
    uint64_t random = 7;
    measures m = {.open = INFINITY, .first_point = INFINITY};
    for (int i = 0; i < 5; i++) {
        double started = bench_now();
        s->close(s->open(path));
        m.open = fmin(m.open, bench_now() - started);
    }
    void *array = s->open(path);
    m.memory_open = (double)bench_memory("VmHWM:");
    int64_t n_rows = s->rows(array);
    for (int i = 0; i < 5; i++) {
        s->close(array);
        array = s->open(path);
        m.first_point = fmin(m.first_point, time_point(s, array, n_rows, &random));
    }
    for (int i = 0; i < N_SERIES; i++) series[i] = time_series(s, array, n_rows, &random);
    m.first_series = series[0];
    qsort(series, N_SERIES, sizeof(series[0]), by_size);
    m.series = series[N_SERIES / 2];
    m.memory_end = (double)bench_memory("VmHWM:");
    s->close(array);
    return m;
}

/* Runs one side in a new program: a forked child alone would count the pages of its parent. */
static measures run_side(int number, char *path)
{
    int ends[2];
    char numbers[2][16];
    char *arguments[] = {"bench_open", "--side", numbers[0], path, numbers[1], NULL};
    int status = 1;
    measures m = {0};
    bench_need(pipe(ends) == 0, "pipe", "cannot be made");
    snprintf(numbers[0], sizeof(numbers[0]), "%d", number);
    snprintf(numbers[1], sizeof(numbers[1]), "%d", ends[1]);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        execv("/proc/self/exe", arguments);
        _exit(127);
    }
    waitpid(child, &status, 0);
    bench_need(status == 0 && read(ends[0], &m, sizeof(m)) == sizeof(m), "bench_open",
               "one side failed");
    close(ends[0]);
    close(ends[1]);
    return m;
}

static void answer(int number, const char *path, int fd)
{
    measures m = measure_side(&sides[number], path);
    bench_need(write(fd, &m, sizeof(m)) == sizeof(m), "pipe", "cannot be written");
}

typedef struct bars {
    int64_t n_chunks;
    double open, point;
    double memory_kib; /* limit of our process after opening; 0: none */
} bars;

static void add(int64_t n_chunks, const char *what, double ours, double theirs, double bar)
{
    char name[80];
    snprintf(name, sizeof(name), "%lld chunks, %s", (long long)n_chunks, what);
    bench_add(&table, name, 1e6 * ours, 1e6 * theirs, bar);
}

static void add_memory(int64_t n_chunks, const char *what, double ours, double theirs,
                       const char *rival)
{
    bench_row row = {.unit = "KiB", .rival = rival, .ours = ours, .theirs = theirs};
    if (rival != NULL) row.bar = 1;
    snprintf(row.name, sizeof(row.name), "%lld chunks, %s", (long long)n_chunks, what);
    bench_add_row(&table, &row);
}

static void run_file(const bars *b, char *path)
{
    char name[80];
    snprintf(name, sizeof(name), "%lld chunks", (long long)b->n_chunks);
    if (!bench_wanted(&table, name)) return;
    write_file(path, b->n_chunks);
    measures ours = run_side(0, path);
    measures theirs = run_side(1, path);
    add(b->n_chunks, "open and close", ours.open, theirs.open, b->open);
    add(b->n_chunks, "first point", ours.first_point, theirs.first_point, 1);
    add(b->n_chunks, "random point of the first 1,000", ours.first_series,
        theirs.first_series, 1);
    add(b->n_chunks, "random point", ours.series, theirs.series, b->point);
    add_memory(b->n_chunks, "KiB after opening", ours.memory_open, theirs.memory_open, NULL);
    add_memory(b->n_chunks, "KiB after 21,000 points", ours.memory_end, theirs.memory_end,
               NULL);
    if (b->memory_kib > 0)
        add_memory(b->n_chunks, "KiB after opening, limit", ours.memory_open, b->memory_kib,
                   "16 MiB");
    unlink(path);
}

int main(int argc, char **argv)
{
    static const bars files[] = {{100000, 1, 70, 0}, {1000000, 50, 140, 16 * MIB_IN_KIB}};
    char path[512];
    int quick;
    blosc2_init();
    if (argc == 5 && strcmp(argv[1], "--side") == 0) {
        answer(atoi(argv[2]), argv[3], atoi(argv[4]));
        return 0;
    }
    bench_parse(&table, argc, argv, &quick);
    bench_scratch_path(path, "open");
    bench_print_title("n x 16 int32 in 1 x 16 chunks, LZ4 5 with shuffle");
    for (int i = 0; i < (quick ? 1 : 2); i++) run_file(&files[i], path);
    bench_conclude(&table);
    bench_write_json(&table, table.json);
    return 0;
}
