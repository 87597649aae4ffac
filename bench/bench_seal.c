/* What checking costs: the same boxes of the same sealed file, through a handle
 * that checks what it reads and through one that does not.
 *
 * One thread, the file in the page cache, no block cache. */
#include "bench_readers.h"
#include "bench_rows.h"

enum { MAX_BOXES = 300 };

static bench_table table = {.budget = 0.4, .min_turns = 9, .max_turns = 400};
static uint64_t random_state = 42;

typedef struct shape_kind {
    const char *name;
    int64_t lengths[BENCH_NDIM]; /* 0: the whole axis */
    int count;
} shape_kind;

static const shape_kind kinds[] = {
    {"full", {0, 0, 0}, 1},
    {"box 50^3", {50, 50, 50}, 8},
    {"plane 0", {1, 0, 0}, 3},
    {"point", {1, 1, 1}, MAX_BOXES},
};
enum { N_KINDS = sizeof(kinds) / sizeof(kinds[0]) };

typedef struct contest {
    caterva_array *checked, *unchecked;
    uint8_t *bytes, *other_bytes;
    int64_t side;
    const shape_kind *kind;
    bench_box boxes[MAX_BOXES];
} contest;

static void prepare(void *context)
{
    contest *c = context;
    for (int i = 0; i < c->kind->count; i++) {
        int64_t start[BENCH_NDIM], shape[BENCH_NDIM];
        for (int d = 0; d < BENCH_NDIM; d++) {
            shape[d] = c->kind->lengths[d] ? c->kind->lengths[d] : c->side;
            start[d] = bench_below(&random_state, c->side - shape[d] + 1);
        }
        c->boxes[i] = bench_box_at(start, shape);
    }
}

static double read_boxes(const contest *c, caterva_array *array, uint8_t *bytes)
{
    double started = bench_now();
    for (int i = 0; i < c->kind->count; i++) bench_read_ours(array, &c->boxes[i], bytes);
    return (bench_now() - started) / c->kind->count;
}

static double read_checked(void *context)
{
    contest *c = context;
    return read_boxes(c, c->checked, c->bytes);
}

static double read_unchecked(void *context)
{
    contest *c = context;
    return read_boxes(c, c->unchecked, c->other_bytes);
}

static void compare(void *context)
{
    const contest *c = context;
    size_t size = (size_t)c->boxes[c->kind->count - 1].size;
    bench_need(memcmp(c->bytes, c->other_bytes, size) == 0, "unchecked", "reads otherwise");
}

/* At most 3 percent with 128 KiB blocks, 6 with 16 KiB. */
static double bar_of(int32_t block) { return block == 32 ? 1 / 1.03 : 1 / 1.06; }

static void run_rows(contest *c, int32_t block, int noisy)
{
    bench_duel duel = {c, prepare, read_checked, read_unchecked, compare};
    for (int i = 0; i < N_KINDS; i++) {
        bench_row row = {.rival = "unchecked", .bar = bar_of(block)};
        snprintf(row.name, sizeof(row.name), "%s, %d KiB, seal, %s",
                 noisy ? "noisy" : "compressible", block * block * block / 256,
                 kinds[i].name);
        if (!bench_wanted(&table, row.name)) continue;
        c->kind = &kinds[i];
        bench_fight_row(&table, &row, &duel);
    }
}

static void run_file(contest *c, bench_readers *r, const float *data, int32_t block,
                     int noisy)
{
    caterva_error err;
    caterva_open_options options = bench_reading(1, BENCH_CACHE_OFF);
    r->spec = bench_cube(c->side, block);
    bench_make_file(r, data, c->side * c->side * c->side * (int64_t)sizeof(float), 1);
    c->checked = bench_open_reader(r->path, 1, BENCH_CACHE_OFF);
    bench_need(caterva_describe(c->checked)->sealed, r->path, "is not sealed");
    options.unchecked = 1;
    bench_need_ok(caterva_open(r->path, &options, &c->unchecked, &err), &err, "open");
    run_rows(c, block, noisy);
    caterva_discard(c->checked);
    caterva_discard(c->unchecked);
    unlink(r->path);
}

int main(int argc, char **argv)
{
    static contest c;
    int quick;
    bench_parse(&table, argc, argv, &quick);
    c.side = quick ? 256 : 384;
    if (quick) table.budget = 0.05;
    size_t size = (size_t)(c.side * c.side * c.side) * sizeof(float);
    c.bytes = bench_alloc(size);
    c.other_bytes = bench_alloc(size);
    bench_readers r = {.our_bytes = NULL};
    bench_scratch_path(r.path, "seal");
    bench_print_title("reads that check, and reads that do not; 1 thread");
    for (int noisy = 1; noisy >= 0; noisy--) {
        float *data = bench_field(noisy, c.side, &random_state);
        for (int32_t block = 32; block >= 16; block /= 2)
            run_file(&c, &r, data, block, noisy);
        free(data);
    }
    bench_conclude(&table);
    bench_write_json(&table, table.json);
    free(c.bytes);
    free(c.other_bytes);
    return 0;
}
