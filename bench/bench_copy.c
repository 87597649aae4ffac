/* Copies of an array that is larger than the memory they may use. The rows measure how much time it
 * saves to copy stored chunks as they are, instead of decoding and encoding them; what a second
 * thread gains; and how much memory each copy takes. Our column is always caterva_copy; each row
 * names its rival. */
#include "bench_rivals.h"
#include "bench_rows.h"

#include <caterva_upkeep.h>
#include <fcntl.h>

enum { CHUNK = 64, BLOCK = 16, MEMORY_MIB = 64, MIB = 1 << 20 };

/* One kind of copy. A number 0 means: the same as in the source. */
typedef struct copy_kind {
    const char *name;
    int32_t block; /* of the target */
    int level;     /* of the target */
    int threads;
} copy_kind;

typedef struct copy_duel {
    bench_rivals *rivals;
    copy_kind ours, theirs;
    int noisy;
} copy_duel;

static bench_table table = {.budget = 1.0, .min_turns = 3, .max_turns = 20};

/* ---- Copying --------------------------------------------------------------------- */

/* Copies the file at `our_path` to the one at `their_path`; returns seconds. */
static double copy(const bench_rivals *r, const copy_kind *kind)
{
    caterva_error err;
    caterva_copy_options options = CATERVA_COPY_INIT;
    caterva_create_options create = CATERVA_CREATE_INIT;
    caterva_open_options open = CATERVA_OPEN_INIT;
    int32_t blocks[BENCH_NDIM] = {kind->block, kind->block, kind->block};
    caterva_array *source = NULL;
    options.create = &create;
    options.memory = (int64_t)MEMORY_MIB * MIB;
    create.overwrite = 1;
    create.durability = CATERVA_DURABILITY_NONE;
    open.threads = create.threads = kind->threads;
    if (kind->block > 0) {
        create.chunk_shape = r->spec.chunk;
        create.block_shape = blocks;
    }
    if (kind->level > 0) {
        create.codec = r->spec.zstd ? CATERVA_CODEC_ZSTD : CATERVA_CODEC_LZ4;
        create.level = kind->level;
        create.filters[0] = CATERVA_FILTER_SHUFFLE;
    }
    unlink(r->their_path);
    double begun = bench_now();
    bench_need_ok(caterva_open(r->our_path, &open, &source, &err), &err, "open");
    bench_need_ok(caterva_copy(source, r->their_path, &options, NULL, &err), &err, "copy");
    bench_need_ok(caterva_close(source, &err), &err, "close");
    return bench_now() - begun;
}

static double copy_ours(void *context)
{
    const copy_duel *d = context;
    return copy(d->rivals, &d->ours);
}

static double copy_theirs(void *context)
{
    const copy_duel *d = context;
    return copy(d->rivals, &d->theirs);
}

/* Copies the bytes of the file and nothing else: no copy can be much faster. */
static double copy_bytes(void *context)
{
    static char bytes[MIB];
    const copy_duel *d = context;
    ssize_t n = 1;
    unlink(d->rivals->their_path);
    double begun = bench_now();
    int from = open(d->rivals->our_path, O_RDONLY);
    int to = open(d->rivals->their_path, O_WRONLY | O_CREAT, 0666);
    while (n > 0) {
        n = read(from, bytes, sizeof(bytes));
        bench_need(n >= 0 && write(to, bytes, (size_t)n) == n, "copy",
                   "bytes are not copied");
    }
    close(from);
    close(to);
    return bench_now() - begun;
}

static void fight(const copy_duel *d, double bar)
{
    copy_duel sides = *d;
    bench_rivals *r = d->rivals;
    int by_bytes = d->theirs.name == NULL;
    bench_duel duel = {&sides, NULL, copy_ours, by_bytes ? copy_bytes : copy_theirs, NULL};
    bench_row row = {.bar = bar, .rival = by_bytes ? "read and write" : d->theirs.name};
    snprintf(row.name, sizeof(row.name), "%s, %s, %s", bench_codec_name(&r->spec),
             d->noisy ? "noisy" : "compressible", d->ours.name);
    if (!bench_wanted(&table, row.name)) return;
    bench_fight_row(&table, &row, &duel);
    if (by_bytes) return;
    copy(r, &d->ours);
    bench_compare_files(r, row.name); /* also through b2nd */
}

/* ---- Memory ---------------------------------------------------------------------- */

static void memory_row(bench_rivals *r, const copy_kind *kind)
{
    bench_row row = {.unit = "KiB", .rival = "64 MiB", .bar = 1};
    copy_duel d = {.rivals = r, .ours = *kind};
    snprintf(row.name, sizeof(row.name), "%s, memory of: %s", bench_codec_name(&r->spec),
             kind->name);
    if (!bench_wanted(&table, row.name)) return;
    row.ours = bench_memory_of(copy_ours, &d);
    row.theirs = MEMORY_MIB * 1024;
    bench_add_row(&table, &row);
}

/* ---- The program ----------------------------------------------------------------- */

static void make_source(bench_rivals *r, int64_t side, float *slab, int noisy)
{
    uint64_t random = 42;
    bench_noise(slab, CHUNK * side * side, noisy ? 16 : 2, &random);
    bench_box b = bench_box_at((int64_t[]){0, 0, 0}, (int64_t[]){CHUNK, side, side});
    r->ours = bench_create_ours(r->our_path, &r->spec);
    for (; b.start[0] < r->spec.shape[0]; b.start[0] += CHUNK) {
        b.stop[0] = b.start[0] + CHUNK;
        bench_write_ours(r->ours, &b, slab);
    }
    bench_close_ours(r->ours);
}

static void run_file(bench_rivals *r, int64_t side, float *slab, int zstd, int noisy)
{
    static const copy_kind move = {.name = "chunks moved", .threads = 2};
    static const copy_kind move_1 = {.name = "chunks moved, 1 T", .threads = 1};
    static const copy_kind encode = {.name = "encoded anew", .level = 4, .threads = 2};
    static const copy_kind encode_1 = {.name = "encoded anew, 1 T", .level = 4, .threads = 1};
    static const copy_kind blocks = {.name = "other blocks", .block = 32, .threads = 2};
    r->spec = (bench_spec){.ndim = BENCH_NDIM,
                           .shape = {2 * side, side, side},
                           .chunk = {CHUNK, CHUNK, CHUNK},
                           .block = {BLOCK, BLOCK, BLOCK},
                           .zstd = zstd,
                           .threads = 2,
                           .durability = CATERVA_DURABILITY_NONE};
    make_source(r, side, slab, noisy);
    if (noisy) {
        memory_row(r, &move);
        memory_row(r, &encode);
        memory_row(r, &blocks);
        fight(&(copy_duel){r, encode, encode_1, noisy}, 1.5);
    }
    double bar = zstd && !noisy ? 20 : 1; /* else encoding is nearly as fast as copying */
    fight(&(copy_duel){r, move, encode, noisy}, bar);
    fight(&(copy_duel){r, move_1, encode_1, noisy}, bar);
    fight(&(copy_duel){r, move_1, {.name = NULL}, noisy}, 0.75);
    bench_unlink_both(r);
}

int main(int argc, char **argv)
{
    int quick;
    bench_rivals r = {.ours = NULL};
    bench_parse(&table, argc, argv, &quick);
    int64_t side = quick ? 256 : 384;
    if (quick) table.budget = 0.1;
    float *slab = bench_alloc((size_t)(CHUNK * side * side) * sizeof(float));
    bench_paths(&r);
    blosc2_init();
    bench_print_title(
        "copies within 64 MiB; float32, 64^3 chunks, 16^3 blocks, with shuffle");
    for (int i = 0; i < 4; i++) run_file(&r, side, slab, i / 2, i % 2);
    free(slab);
    bench_conclude(&table);
    bench_write_json(&table, table.json);
    return 0;
}
