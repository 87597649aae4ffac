/* Compares the partition that the library chooses with others. Typical arrays are read in the
 * automatic partition, and in blocks of 4 KiB to 256 KiB and chunks of 1 MiB to 16 MiB, as
 * close to cubes as the shape allows. Each row has the geometric mean of the times of common
 * reads (all, a box, planes and lines along each axis, points) and the compression ratio.
 *
 * One thread, in memory, zstd 5 with shuffle, no cache. A row's "rival" is the automatic
 * partition: if the ratio is below 1, reads are faster with the automatic partition. */
#include "bench_readers.h"
#include "bench_rows.h"
#include <caterva_store.h>

enum { MAX_DIMS = 4, MAX_KINDS = 2 * MAX_DIMS + 3, BOX = 50, MIN_TURNS = 5, MAX_TURNS = 60 };

static bench_table table;
static uint64_t random_state = 42;
static double budget = 0.02; /* seconds for each kind of read */

typedef struct sample {
    const char *name;
    int ndim;
    int64_t shape[MAX_DIMS];
    const char *dtype;
    int32_t item_size;
} sample;

static const sample samples[] = {
    {"1-d float64", 1, {10000000}, "<f8", 8},
    {"1-d int16", 1, {20000000}, "<i2", 2},
    {"2-d float64", 2, {4096, 2048}, "<f8", 8},
    {"3-d float32", 3, {256, 256, 256}, "<f4", 4},
    {"4-d time series float32", 4, {200, 16, 64, 64}, "<f4", 4},
    {"image uint8", 2, {6000, 8000}, "|u1", 1},
    {"stack of images uint16", 3, {40, 1024, 1024}, "<u2", 2},
    {"volume uint8", 3, {316, 370, 301}, "|u1", 1},
    {"tall and thin float32", 2, {2000000, 6}, "<f4", 4},
    {"short and wide float64", 2, {8, 1000000}, "<f8", 8},
};

typedef struct measure {
    double seconds; /* geometric mean over the reads */
    double ratio;
} measure;

/* ---- The arrays --------------------------------------------------------------- */

/* Makes items: a smooth field along every axis, with some noise in the last bits. */
static uint8_t *make_items(const sample *s, int64_t n_items)
{
    uint8_t *items = bench_alloc((size_t)(n_items * s->item_size));
    int64_t at[MAX_DIMS] = {0};
    for (int64_t i = 0; i < n_items; i++) {
        double value = 0;
        for (int d = 0; d < s->ndim; d++)
            value += sin((double)at[d] / (20.0 + 7 * d)) / s->ndim;
        uint64_t noise = bench_random(&random_state);
        double scaled = (value + 1) * (s->item_size == 1 ? 110 : 16000);
        int64_t rounded = (int64_t)scaled + (int64_t)(noise & (s->item_size == 1 ? 3 : 31));
        float single = (float)scaled + (float)(noise & 255) / 512;
        double full = scaled + (double)(noise & 65535) / 131072;
        uint8_t *item = items + i * s->item_size;
        if (s->item_size == 8)
            memcpy(item, &full, 8);
        else if (s->item_size == 4)
            memcpy(item, &single, 4);
        else
            memcpy(item, &rounded, (size_t)s->item_size); /* little-endian */
        for (int d = s->ndim - 1; d >= 0 && ++at[d] == s->shape[d]; d--) at[d] = 0;
    }
    return items;
}

static caterva_array *make_array(const sample *s, const int32_t *chunk, const int32_t *block,
                                 const void *items, size_t size)
{
    caterva_error err;
    caterva_array *array = NULL;
    caterva_create_options options = CATERVA_CREATE_INIT;
    options.ndim = s->ndim;
    options.shape = s->shape;
    options.chunk_shape = chunk;
    options.block_shape = block;
    options.dtype = s->dtype;
    bench_need_ok(caterva_create_from_memory("mem:", &options, items, size, &array, &err),
                  &err, "create");
    bench_commit_ours(array);
    return array;
}

/* Copies an array to memory and opens it for reading like the other benchmarks. */
static caterva_array *open_frame(caterva_array *made, void **frame)
{
    caterva_error err;
    caterva_array *array = NULL;
    caterva_open_options options = bench_reading(1, BENCH_CACHE_OFF);
    size_t size;
    bench_need_ok(caterva_frame_copy(made, frame, &size, &err), &err, "to_frame");
    bench_need_ok(caterva_frame_open(*frame, size, 0, &options, &array, &err), &err, "open");
    return array;
}

/* ---- The reads ------------------------------------------------------------------ */

/* Sets lengths of a read: `here` items along `axis`, `elsewhere` along each other axis; 0 is the
 * whole axis. */
static void set_lengths(const sample *s, int axis, int64_t here, int64_t elsewhere,
                        int64_t *lengths)
{
    for (int d = 0; d < s->ndim; d++) {
        int64_t length = d == axis ? here : elsewhere;
        lengths[d] = length > 0 && length < s->shape[d] ? length : s->shape[d];
    }
}

static int choose_reads(const sample *s, int64_t lengths[MAX_KINDS][MAX_DIMS])
{
    int n = 0;
    set_lengths(s, -1, 0, 0, lengths[n++]);
    set_lengths(s, -1, 0, BOX, lengths[n++]);
    for (int d = 0; d < s->ndim && s->ndim > 2; d++) set_lengths(s, d, 1, 0, lengths[n++]);
    for (int d = 0; d < s->ndim && s->ndim > 1; d++) set_lengths(s, d, 0, 1, lengths[n++]);
    set_lengths(s, -1, 0, 1, lengths[n++]);
    return n;
}

/* Returns the shortest time of a read of these lengths, over several places. */
static double time_read(caterva_array *array, const sample *s, const int64_t *lengths,
                        uint8_t *dst)
{
    caterva_error err;
    double best = INFINITY;
    double spent = 0;
    uint64_t places = 7;
    for (int turn = 0; turn < MAX_TURNS && (turn < MIN_TURNS || spent < budget); turn++) {
        int64_t start[MAX_DIMS], stop[MAX_DIMS];
        size_t size = (size_t)s->item_size;
        for (int d = 0; d < s->ndim; d++) {
            start[d] = bench_below(&places, s->shape[d] - lengths[d] + 1);
            stop[d] = start[d] + lengths[d];
            size *= (size_t)lengths[d];
        }
        double started = bench_now();
        bench_need_ok(caterva_read(array, start, stop, dst, size, &err), &err, "read");
        double took = bench_now() - started;
        best = fmin(best, took);
        spent += took;
    }
    return best;
}

static measure measure_partition(const sample *s, const int32_t *chunk, const int32_t *block,
                                 const uint8_t *items, size_t size, uint8_t *dst)
{
    int64_t lengths[MAX_KINDS][MAX_DIMS];
    int n = choose_reads(s, lengths);
    void *frame = NULL;
    caterva_array *made = make_array(s, chunk, block, items, size);
    caterva_array *array = open_frame(made, &frame);
    double sum = 0;
    for (int i = 0; i < n; i++) {
        double seconds = time_read(array, s, lengths[i], dst);
        if (i == 0) bench_need(memcmp(dst, items, size) == 0, s->name, "has other items");
        sum += log(seconds);
    }
    measure m = {exp(sum / n), (double)size / (double)bench_info(array).frame_bytes};
    caterva_discard(array);
    caterva_discard(made);
    caterva_free(frame);
    return m;
}

/* ---- The partitions ---------------------------------------------------------------- */

/* Doubles the shortest axis of `shape` as long as `bytes` and the limits allow. */
static void grow(const sample *s, int64_t bytes, int32_t *shape)
{
    int64_t size = s->item_size;
    for (int d = 0; d < s->ndim; d++) size *= shape[d];
    while (size <= bytes / 2) {
        int best = -1;
        for (int d = s->ndim - 1; d >= 0; d--)
            if (shape[d] < s->shape[d] && (best < 0 || shape[d] < shape[best])) best = d;
        if (best < 0) break;
        shape[best] *= 2;
        size *= 2;
    }
    for (int d = 0; d < s->ndim; d++)
        if (shape[d] > s->shape[d]) shape[d] = (int32_t)s->shape[d];
}

static void shape_text(int ndim, const int32_t *shape, char text[64])
{
    int used = 0;
    for (int d = 0; d < ndim; d++)
        used +=
            snprintf(text + used, (size_t)(64 - used), "%s%d", d > 0 ? "x" : "", shape[d]);
}

static void add_row(const sample *s, const char *what, const int32_t *block,
                    const measure *automatic, const measure *m)
{
    char text[64];
    bench_row row = {
        .rival = "automatic", .ours = 1e6 * m->seconds, .theirs = 1e6 * automatic->seconds};
    shape_text(s->ndim, block, text);
    snprintf(row.name, sizeof(row.name), "%s, %s, %s", s->name, what, text);
    snprintf(row.note, sizeof(row.note), "stores %.3fx", automatic->ratio / m->ratio);
    bench_add_row(&table, &row);
}

static void run_sample(const sample *s)
{
    caterva_error err;
    int64_t n_items = 1;
    int32_t chunk[MAX_DIMS], block[MAX_DIMS];
    if (!bench_wanted(&table, s->name)) return;
    for (int d = 0; d < s->ndim; d++) n_items *= s->shape[d];
    size_t size = (size_t)(n_items * s->item_size);
    uint8_t *items = make_items(s, n_items);
    uint8_t *dst = bench_alloc(size);
    bench_need_ok(caterva_partition_choose(s->ndim, s->shape, s->item_size, NULL, NULL, chunk,
                                           block, &err),
                  &err, "choose_partition");
    measure automatic = measure_partition(s, chunk, block, items, size, dst);
    add_row(s, "automatic", block, &automatic, &automatic);
    for (int kib = 4; kib <= 256; kib *= 2) {
        char what[32];
        for (int d = 0; d < s->ndim; d++) block[d] = 1;
        grow(s, (int64_t)kib << 10, block);
        bench_need_ok(caterva_partition_choose(s->ndim, s->shape, s->item_size, NULL, block,
                                               chunk, block, &err),
                      &err, "choose_partition");
        measure m = measure_partition(s, chunk, block, items, size, dst);
        snprintf(what, sizeof(what), "%d KiB blocks", kib);
        add_row(s, what, block, &automatic, &m);
    }
    for (int mib = 1; mib <= 16; mib *= 4) {
        char what[32];
        for (int d = 0; d < s->ndim; d++) block[d] = 1;
        grow(s, 32 << 10, block);
        memcpy(chunk, block, sizeof(chunk));
        grow(s, (int64_t)mib << 20, chunk);
        measure m = measure_partition(s, chunk, block, items, size, dst);
        snprintf(what, sizeof(what), "%d MiB chunks", mib);
        add_row(s, what, block, &automatic, &m);
    }
    free(items);
    free(dst);
}

int main(int argc, char **argv)
{
    int quick;
    bench_parse(&table, argc, argv, &quick);
    if (quick) budget = 0.002;
    bench_print_title("geometric means over reads; the rival is the automatic partition");
    for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++) run_sample(&samples[i]);
    bench_write_json(&table, table.json);
    return 0;
}
