/* Reads that return to the same blocks, so that a cache of decoded blocks can serve them:
 * every plane of an array along each axis, every row and column of a matrix, a moving box.
 * One thread, the process's cache of 64 MiB, compared with C-Blosc2's b2nd, which decodes
 * every time.
 *
 * Every turn begins with a new handle, of which no block is decoded, and with a cache full of
 * another handle's blocks. This is the state of a process that has run for a while: a block
 * that enters the cache takes the memory of one that leaves. With an empty cache the rows
 * would measure how fast the system provides 64 MiB. */
#include "bench_readers.h"
#include "bench_rows.h"

enum { MATRIX = 8192, WALK = 300, WALK_BOX = 50, WALK_STEP = 4, N_KEPT = 16 };

static bench_table table = {.budget = 0.2, .min_turns = 5, .max_turns = 6};
static uint64_t random_state = 42;

/* `n` boxes of one size that are read in order. */
typedef struct scan {
    bench_readers *readers;
    bench_box *boxes;
    int n;
    int step;         /* b2nd reads every step-th box; its time is extrapolated */
    int n_before;     /* times our side reads all boxes before, not timed */
    int keep;         /* every keep-th box is kept and compared */
    uint8_t *kept[2]; /* ours, theirs */
    uint8_t *scratch; /* destination of boxes that are not kept */
    uint8_t *plane;   /* destination of the other handle */
} scan;

static uint8_t *destination(const scan *s, int side, int i)
{
    return i % s->keep == 0 ? s->kept[side] + (size_t)(i / s->keep * s->boxes[0].size)
                            : s->scratch;
}

/* Another handle, whose blocks fill the cache and are of no use to ours. */
static caterva_array *other;

static size_t plane_size(const bench_spec *spec)
{
    return (size_t)(spec->shape[1] * spec->shape[2] * (spec->item_size == 8 ? 8 : 4));
}

/* Reads thin slices of the other handle's array until the cache is full. */
static void fill_cache(const bench_readers *r, uint8_t *scratch)
{
    enum { STEP = 16 };
    int64_t shape[BENCH_NDIM], start[BENCH_NDIM] = {0};
    memcpy(shape, r->spec.shape, sizeof(shape));
    shape[0] = 1;
    caterva_cache_info counts = CATERVA_CACHE_INFO_INIT;
    counts.limit = 1;
    for (; start[0] < r->spec.shape[0] && counts.bytes < counts.limit / 100 * 99;
         start[0] += STEP) {
        bench_box box = bench_box_of(start, shape, r->spec.item_size == 8 ? 8 : 4);
        bench_read_ours(other, &box, scratch);
        caterva_cache_describe(NULL, &counts, NULL);
    }
}

/* Opens a new handle; discarding the old one removes its blocks from the cache. */
static void reopen(void *context)
{
    const scan *s = context;
    caterva_discard(s->readers->ours);
    fill_cache(s->readers, s->plane);
    s->readers->ours = bench_open_reader(s->readers->path, 1, BENCH_CACHE_SHARED);
    for (int i = 0; i < s->n_before * s->n; i++)
        bench_read_ours(s->readers->ours, &s->boxes[i % s->n], s->scratch);
}

static double scan_ours(void *context)
{
    const scan *s = context;
    double started = bench_now();
    for (int i = 0; i < s->n; i++)
        bench_read_ours(s->readers->ours, &s->boxes[i], destination(s, 0, i));
    return (bench_now() - started) / s->n;
}

static double scan_theirs(void *context)
{
    const scan *s = context;
    double started = bench_now();
    for (int i = 0; i < s->n; i += s->step)
        bench_read_theirs(s->readers->theirs, &s->boxes[i], destination(s, 1, i));
    return (bench_now() - started) / ((s->n + s->step - 1) / s->step);
}

static void compare_kept(void *context)
{
    const scan *s = context;
    int n_kept = (s->n + s->keep - 1) / s->keep;
    bench_need(memcmp(s->kept[0], s->kept[1], (size_t)(n_kept * s->boxes[0].size)) == 0,
               "scan", "the two sides read different bytes");
}

/* Runs a row. `keep` is made a multiple of `step`, so that b2nd reads all boxes that are kept. */
static void run_scan(const char *name, double bar, scan s)
{
    bench_row row = {.bar = bar, .estimated = s.step > 1};
    bench_duel duel = {&s, reopen, scan_ours, scan_theirs, compare_kept};
    size_t size = (size_t)s.boxes[0].size;
    s.keep = (s.n / N_KEPT / s.step + 1) * s.step;
    for (int i = 0; i < 2; i++) s.kept[i] = bench_alloc(size * N_KEPT);
    s.scratch = bench_alloc(size);
    s.plane = bench_alloc(plane_size(&s.readers->spec));
    snprintf(row.name, sizeof(row.name), "%s", name);
    bench_fight_row(&table, &row, &duel);
    for (int i = 0; i < 2; i++) free(s.kept[i]);
    free(s.scratch);
    free(s.plane);
}

typedef struct slices {
    int axis, step, n_before; /* as in scan */
} slices;

/* Adds a row that reads all slices of thickness 1 along an axis. */
static void slice_row(bench_readers *r, const char *name, double bar, slices which)
{
    int axis = which.axis;
    const bench_spec *spec = &r->spec;
    if (!bench_wanted(&table, name)) return;
    int n = (int)spec->shape[axis];
    bench_box *boxes = bench_alloc((size_t)n * sizeof(*boxes));
    int64_t shape[BENCH_NDIM];
    int64_t start[BENCH_NDIM] = {0};
    memcpy(shape, spec->shape, sizeof(shape));
    shape[axis] = 1;
    for (int i = 0; i < n; i++) {
        start[axis] = i;
        boxes[i] = bench_box_of(start, shape, spec->item_size == 8 ? 8 : 4);
    }
    run_scan(name, bar,
             (scan){.readers = r,
                    .boxes = boxes,
                    .n = n,
                    .step = which.step,
                    .n_before = which.n_before});
    free(boxes);
}

/* Adds a row for a box that moves by up to WALK_STEP items along each axis, within the array. */
static void walk_row(bench_readers *r, const char *name, double bar)
{
    static bench_box boxes[WALK];
    int64_t shape[BENCH_NDIM] = {WALK_BOX, WALK_BOX, WALK_BOX};
    int64_t at[BENCH_NDIM];
    if (!bench_wanted(&table, name)) return;
    for (int d = 0; d < BENCH_NDIM; d++) at[d] = (r->spec.shape[d] - WALK_BOX) / 2;
    for (int i = 0; i < WALK; i++) {
        boxes[i] = bench_box_at(at, shape);
        for (int d = 0; d < BENCH_NDIM; d++) {
            at[d] += bench_below(&random_state, 2 * WALK_STEP + 1) - WALK_STEP;
            int64_t last = r->spec.shape[d] - WALK_BOX;
            at[d] = at[d] < 0 ? 0 : at[d] > last ? last : at[d];
        }
    }
    run_scan(name, bar, (scan){.readers = r, .boxes = boxes, .n = WALK, .step = 1});
}

static void cube_rows(bench_readers *r, int noisy, int64_t side)
{
    static const double bars[2][BENCH_NDIM] = {{8, 4, 2.7}, {20, 18, 12}};
    float *data = bench_field(noisy, side, &random_state);
    const char *kind = noisy ? "noisy" : "compressible";
    char name[80];
    for (int32_t block = 32; block >= 16; block /= 2) {
        int kib = block * block * block / 256;
        r->spec = bench_cube(side, block);
        bench_make_file(r, data, side * side * side * (int64_t)sizeof(float), 0);
        bench_open_readers(r, NULL, 0, 1, BENCH_CACHE_SHARED);
        other = bench_open_reader(r->path, 1, BENCH_CACHE_SHARED);
        for (int axis = 0; axis < BENCH_NDIM; axis++) {
            snprintf(name, sizeof(name), "%s, %d KiB, planes %d one by one", kind, kib, axis);
            slice_row(r, name, block == 32 ? bars[noisy][axis] : 1, (slices){axis, 1, 0});
        }
        snprintf(name, sizeof(name), "%s, %d KiB, planes 0, the fourth time", kind, kib);
        slice_row(r, name, 1, (slices){0, 1, 3});
        snprintf(name, sizeof(name), "%s, %d KiB, walking box 50^3", kind, kib);
        walk_row(r, name, block == 32 && noisy ? 9 : 1);
        bench_close_readers(r);
        caterva_discard(other);
        unlink(r->path);
    }
    free(data);
}

/* A noisy matrix in the library's default chunks and blocks. */
static void matrix_rows(bench_readers *r, int64_t side)
{
    caterva_error err;
    r->spec = (bench_spec){.ndim = 2,
                           .shape = {side, side, 1},
                           .item_size = 8,
                           .threads = 2,
                           .durability = CATERVA_DURABILITY_NONE};
    bench_need_ok(caterva_partition_choose(2, r->spec.shape, 8, NULL, NULL, r->spec.chunk,
                                           r->spec.block, &err),
                  &err, "choose_partition");
    if (!bench_wanted(&table, "matrix, rows one by one") &&
        !bench_wanted(&table, "matrix, columns one by one"))
        return;
    double *data = bench_alloc((size_t)(side * side) * sizeof(double));
    for (int64_t i = 0; i < side * side; i++) {
        double value = 2 + sin((double)(i / side) / 40) * cos((double)(i % side) / 50);
        uint64_t bits;
        memcpy(&bits, &value, sizeof(bits));
        bits ^= bench_random(&random_state) & 0xFFFFFFFFu;
        memcpy(&data[i], &bits, sizeof(bits));
    }
    bench_make_file(r, data, side * side * (int64_t)sizeof(double), 0);
    free(data);
    bench_open_readers(r, NULL, 0, 1, BENCH_CACHE_SHARED);
    other = bench_open_reader(r->path, 1, BENCH_CACHE_SHARED);
    slice_row(r, "matrix, rows one by one", 45, (slices){0, 64, 0});
    slice_row(r, "matrix, columns one by one", 25, (slices){1, 64, 0});
    bench_close_readers(r);
    caterva_discard(other);
    unlink(r->path);
}

int main(int argc, char **argv)
{
    int quick;
    bench_readers r = {.ours = NULL};
    bench_parse(&table, argc, argv, &quick);
    if (quick) table.min_turns = table.max_turns = 1;
    bench_scratch_path(r.path, "scan");
    blosc2_init();
    bench_print_title("scans; 384^3 float32, 8192^2 float64, LZ4 5, 1 thread, 64 MiB cache");
    for (int noisy = 1; noisy >= 0; noisy--) cube_rows(&r, noisy, quick ? 256 : 384);
    matrix_rows(&r, quick ? MATRIX / 4 : MATRIX);
    bench_conclude(&table);
    bench_write_json(&table, table.json);
    return 0;
}
