/* Reads the same array through caterva and through C-Blosc2's b2nd, in one process, with the
 * same number of threads: boxes at random places.
 *
 * The positions are new in each turn and the same for both, and our cache is off: every row
 * measures decoding. The results are compared: every box of a first turn, and the last one of
 * every other turn. */
#include "bench_readers.h"
#include "bench_rows.h"

/* A size of boxes, and the ratio that it must reach. */
typedef struct barred_kind {
    bench_kind boxes;
    double bars[2][2]; /* [128, 16 KiB blocks][compressible, noisy] */
    int bar_threads;   /* number of threads to which the bars apply; 0: any */
} barred_kind;

static const barred_kind kinds[] = {
    {{"full", {0, 0, 0}, 1}, {{2.2, 1.45}, {2.2, 1.45}}, 2},
    {{"box 50^3", {50, 50, 50}, 8}, {{1.9, 1.3}, {4.5, 1.7}}, 2},
    {{"plane 0", {1, 0, 0}, 3}, {{1, 1}, {6, 1.3}}, 2},
    {{"plane 1", {0, 1, 0}, 3}, {{1, 1}, {6, 1.3}}, 2},
    {{"plane 2", {0, 0, 1}, 3}, {{1, 1}, {6, 1.3}}, 2},
    {{"line 0", {0, 1, 1}, 30}, {{1, 1}, {6, 3}}, 2},
    {{"line 1", {1, 0, 1}, 30}, {{1, 1}, {6, 3}}, 2},
    {{"line 2", {1, 1, 0}, 30}, {{1, 1}, {6, 3}}, 2},
    {{"point", {1, 1, 1}, BENCH_MAX_BOXES}, {{1, 1}, {70, 8}}, 0},
};
enum { N_KINDS = sizeof(kinds) / sizeof(kinds[0]), POINT = N_KINDS - 1 };

/* Points in 2 KiB blocks of compressible data. */
static const double small_block_bar = 600;

static bench_table table = {.budget = 0.4, .min_turns = 5, .max_turns = 400};
static uint64_t random_state = 42;

typedef struct reading {
    bench_readers *readers;
    bench_boxes boxes;
} reading;

static void prepare(void *context)
{
    reading *r = context;
    bench_move_boxes(&r->boxes, &r->readers->spec, &random_state);
}

static double read_ours(void *context)
{
    const reading *r = context;
    return bench_read_boxes(&r->boxes, r->readers->ours, r->readers->our_bytes);
}

static double read_theirs(void *context)
{
    const reading *r = context;
    int count = r->boxes.kind->count;
    double started = bench_now();
    for (int i = 0; i < count; i++)
        bench_read_theirs(r->readers->theirs, &r->boxes.at[i], r->readers->their_bytes);
    return (bench_now() - started) / count;
}

static void compare_last(void *context)
{
    const reading *r = context;
    bench_need_same(r->readers, bench_last_box(&r->boxes));
}

/* Not timed: compares every box of one turn; also warms both sides up. */
static void compare_all(reading *r)
{
    prepare(r);
    for (int i = 0; i < r->boxes.kind->count; i++) {
        const bench_box *b = &r->boxes.at[i];
        memset(r->readers->our_bytes, 0x11, (size_t)b->size);
        memset(r->readers->their_bytes, 0x22, (size_t)b->size);
        bench_read_ours(r->readers->ours, b, r->readers->our_bytes);
        bench_read_theirs(r->readers->theirs, b, r->readers->their_bytes);
        bench_need_same(r->readers, b);
    }
}

static double bar_of(const barred_kind *kind, int32_t block, int noisy, int threads)
{
    if (block == 8) return noisy ? kind->bars[1][1] : small_block_bar;
    if (kind->bar_threads != 0 && kind->bar_threads != threads) return 1;
    return kind->bars[block == 16][noisy];
}

static void run_row(bench_readers *readers, const barred_kind *kind, int noisy,
                    const char *where, int threads)
{
    static reading r;
    int32_t block = readers->spec.block[0];
    bench_duel duel = {&r, prepare, read_ours, read_theirs, compare_last};
    char name[80];
    snprintf(name, sizeof(name), "%s, %d KiB, %s, %d T, %s", noisy ? "noisy" : "compressible",
             block * block * block / 256, where, threads, kind->boxes.name);
    if (!bench_wanted(&table, name)) return;
    r.readers = readers;
    r.boxes.kind = &kind->boxes;
    compare_all(&r);
    bench_fight(&table, name, bar_of(kind, block, noisy, threads), &duel);
}

/* Adds the rows of a file: boxes of all sizes for 128 KiB and 16 KiB blocks, else only points. */
static void run_file(bench_readers *r, const float *data, int64_t side, int32_t block,
                     int noisy)
{
    int64_t bytes = side * side * side * (int64_t)sizeof(float);
    size_t size = 0;
    r->spec = bench_cube(side, block);
    int64_t stored = bench_make_file(r, data, bytes, 0);
    uint8_t *frame = bench_load_file(r->path, &size);
    printf("\n%s, %d KiB blocks, ratio %.2f\n", noisy ? "noisy" : "compressible",
           block * block * block / 256, (double)bytes / (double)stored);
    for (int in_memory = 0; in_memory < 2; in_memory++) {
        for (int threads = 1; threads <= 2; threads++) {
            bench_open_readers(r, in_memory ? frame : NULL, size, threads, BENCH_CACHE_OFF);
            for (int i = block == 8 ? POINT : 0; i < N_KINDS; i++)
                run_row(r, &kinds[i], noisy, in_memory ? "memory" : "disk", threads);
            bench_close_readers(r);
        }
    }
    unlink(r->path);
    free(frame);
}

int main(int argc, char **argv)
{
    int quick;
    bench_parse(&table, argc, argv, &quick);
    int64_t side = quick ? 256 : 384;
    if (quick) table.budget = 0.05;
    if (quick) table.min_turns = 3;
    size_t bytes = (size_t)(side * side * side) * sizeof(float);
    bench_readers r = {.our_bytes = bench_alloc(bytes), .their_bytes = bench_alloc(bytes)};
    bench_scratch_path(r.path, "read");
    blosc2_init();
    bench_print_title("boxes; 384^3 float32 in 128^3 chunks, LZ4 5 with shuffle, no cache");
    for (int noisy = 1; noisy >= 0; noisy--) {
        float *data = bench_field(noisy, side, &random_state);
        for (int32_t block = 32; block >= 8; block /= 2)
            run_file(&r, data, side, block, noisy);
        free(data);
    }
    bench_conclude(&table);
    bench_write_json(&table, table.json);
    free(r.our_bytes);
    free(r.their_bytes);
    return 0;
}
