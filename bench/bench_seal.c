/* The cost of checksums: the same boxes of the same sealed file, through a handle that
 * verifies the checksums and through one that does not.
 *
 * One thread, the file in the page cache, no block cache. --kernels NAME restricts the
 * library to the kernels of older processors; the bars apply to all kernels. */
#include "bench_kernels.h"
#include "bench_readers.h"
#include "bench_rows.h"

static bench_table table = {.budget = 0.4, .min_turns = 9, .max_turns = 400};
static uint64_t random_state = 42;
static int lesser; /* some kernels of this processor are not used */

static const bench_kind kinds[] = {
    {"full", {0, 0, 0}, 1},
    {"box 50^3", {50, 50, 50}, 8},
    {"plane 0", {1, 0, 0}, 3},
    {"point", {1, 1, 1}, BENCH_MAX_BOXES},
};
enum { N_KINDS = sizeof(kinds) / sizeof(kinds[0]) };

typedef struct contest {
    bench_readers *readers;
    caterva_array *checked, *unchecked;
    bench_boxes boxes;
} contest;

static void prepare(void *context)
{
    contest *c = context;
    bench_move_boxes(&c->boxes, &c->readers->spec, &random_state);
}

/* Both sides read into the same memory: its address affects the time more than the checks. */
static double read_checked(void *context)
{
    const contest *c = context;
    return bench_read_boxes(&c->boxes, c->checked, c->readers->our_bytes);
}

static double read_unchecked(void *context)
{
    const contest *c = context;
    return bench_read_boxes(&c->boxes, c->unchecked, c->readers->our_bytes);
}

static void compare(void *context)
{
    const contest *c = context;
    const bench_box *box = bench_last_box(&c->boxes);
    bench_read_ours(c->checked, box, c->readers->our_bytes);
    bench_read_ours(c->unchecked, box, c->readers->their_bytes);
    bench_need_same(c->readers, box);
}

/* The bar of a row: at most 6 percent more time, 12 with fewer kernels. */
static double bar_of(void) { return lesser ? 1 / 1.12 : 1 / 1.06; }

/* Prints the mean over all rows: it must be at most 3 percent, 5 with fewer kernels. */
static void print_mean(void)
{
    double sum = 0;
    for (int i = 0; i < table.n; i++) sum += table.rows[i].ours / table.rows[i].theirs;
    double percent = table.n > 0 ? 100 * (sum / table.n - 1) : 0;
    int most = lesser ? 5 : 3;
    printf("checking costs %.1f %% in the mean, of %d%s\n", percent, most,
           percent > most ? "  FALLS SHORT" : "");
}

static void run_rows(contest *c, int noisy)
{
    int32_t block = c->readers->spec.block[0];
    bench_duel duel = {c, prepare, read_checked, read_unchecked, compare};
    for (int i = 0; i < N_KINDS; i++) {
        bench_row row = {.rival = "unchecked", .bar = bar_of()};
        snprintf(row.name, sizeof(row.name), "%s, %d KiB, seal, %s",
                 noisy ? "noisy" : "compressible", block * block * block / 256,
                 kinds[i].name);
        if (!bench_wanted(&table, row.name)) continue;
        c->boxes.kind = &kinds[i];
        bench_fight_row(&table, &row, &duel);
    }
}

static void run_file(bench_readers *r, const float *data, int64_t side, int32_t block,
                     int noisy)
{
    static contest c;
    caterva_error err;
    caterva_open_options options = bench_reading(1, BENCH_CACHE_OFF);
    r->spec = bench_cube(side, block);
    bench_make_file(r, data, side * side * side * (int64_t)sizeof(float), 1);
    c = (contest){.readers = r, .checked = bench_open_reader(r->path, 1, BENCH_CACHE_OFF)};
    bench_need(bench_info(c.checked).sealed, r->path, "is not sealed");
    options.unchecked = 1;
    bench_need_ok(caterva_open(r->path, &options, &c.unchecked, &err), &err, "open");
    run_rows(&c, noisy);
    caterva_discard(c.checked);
    caterva_discard(c.unchecked);
    unlink(r->path);
}

int main(int argc, char **argv)
{
    int quick;
    const char *kernels = bench_take_kernels(&argc, argv);
    bench_parse(&table, argc, argv, &quick);
    lesser = strcmp(kernels, "all") != 0;
    int64_t side = quick ? 256 : 384;
    if (quick) table.budget = 0.05;
    size_t size = (size_t)(side * side * side) * sizeof(float);
    bench_readers r = {.our_bytes = bench_alloc(size), .their_bytes = bench_alloc(size)};
    bench_scratch_path(r.path, "seal");
    printf("kernels: %s\n", kernels);
    bench_print_title("reads that check, and reads that do not; 1 thread");
    for (int noisy = 1; noisy >= 0; noisy--) {
        float *data = bench_field(noisy, side, &random_state);
        for (int32_t block = 32; block >= 16; block /= 2)
            run_file(&r, data, side, block, noisy);
        free(data);
    }
    bench_conclude(&table);
    print_mean();
    bench_write_json(&table, table.json);
    free(r.our_bytes);
    free(r.their_bytes);
    return 0;
}
