/* Changes the same array through caterva and through C-Blosc2's b2nd, in one process, with
 * the same number of threads, and prints both times.
 *
 * Each side writes a file of its own. They make the same changes in turns, new ones in each
 * turn, and the shortest turn counts. At the end both files are read back, ours also through
 * b2nd, and compared. b2nd never syncs: rows with "durable" in their name include our syncs,
 * all others compare the same work. */
#include "bench_rivals.h"
#include "bench_rows.h"

enum { CHUNK = 128, MAX_CHANGES = 4, PLANE = 128, TINY = 256, MIB = 1 << 20 };

typedef struct settings {
    int64_t side;      /* of the array of overwrites and creation */
    int64_t big_bytes; /* of the file of many chunks              */
    int appends, tiny_appends;
    int64_t slab_rows; /* of the array whose writer's memory is measured */
} settings;

static bench_table table = {.budget = 0.5, .min_turns = 3, .max_turns = 25};
static uint64_t random_state = 42;
static int noise_bits = 16; /* random low bits of each mantissa */
static int only_bits = -1;  /* -1: 2 and 16 */

static float *new_noise(int64_t n)
{
    float *data = bench_alloc((size_t)n * sizeof(float));
    bench_noise(data, n, noise_bits, &random_state);
    return data;
}

static bench_spec cube_spec(int64_t side, int32_t block, int zstd, int threads)
{
    return (bench_spec){.ndim = 3,
                        .shape = {side, side, side},
                        .chunk = {CHUNK, CHUNK, CHUNK},
                        .block = {block, block, block},
                        .zstd = zstd,
                        .threads = threads,
                        .durability = CATERVA_DURABILITY_NONE};
}

/* ---- Overwriting ----------------------------------------------------------------- */

typedef struct overwrite {
    bench_rivals *rivals;
    int64_t shape[BENCH_NDIM]; /* of each change              */
    int64_t limit[BENCH_NDIM]; /* changes lie in [0, limit)   */
    int64_t step;              /* positions are its multiples */
    int n;                     /* changes in a turn           */
    int resizes;               /* a turn counts only when b2nd's chunks change their size */
    bench_box boxes[MAX_CHANGES];
    float *src[MAX_CHANGES];
    float *back[2];
} overwrite;

static void prepare_overwrite(void *context)
{
    overwrite *o = context;
    for (int i = 0; i < o->n; i++) {
        int64_t start[BENCH_NDIM];
        for (int d = 0; d < BENCH_NDIM; d++)
            start[d] = o->step *
                       bench_below(&random_state, (o->limit[d] - o->shape[d]) / o->step + 1);
        o->boxes[i] = bench_box_at(start, o->shape);
        bench_noise(o->src[i], o->boxes[i].size / (int64_t)sizeof(float), noise_bits,
                    &random_state);
        if (o->resizes) o->src[i][0] = (float)bench_random(&random_state);
    }
}

static double overwrite_ours(void *context)
{
    const overwrite *o = context;
    double started = bench_now();
    for (int i = 0; i < o->n; i++) {
        bench_write_ours(o->rivals->ours, &o->boxes[i], o->src[i]);
        bench_commit_ours(o->rivals->ours);
    }
    return (bench_now() - started) / o->n;
}

static double overwrite_theirs(void *context)
{
    const overwrite *o = context;
    int64_t cbytes = o->rivals->theirs->sc->cbytes;
    double started = bench_now();
    for (int i = 0; i < o->n; i++)
        bench_write_theirs(o->rivals->theirs, &o->boxes[i], o->src[i]);
    double took = (bench_now() - started) / o->n;
    return o->resizes && o->rivals->theirs->sc->cbytes == cbytes ? INFINITY : took;
}

static void compare_overwrite(void *context)
{
    const overwrite *o = context;
    const bench_box *last = &o->boxes[o->n - 1];
    bench_read_ours(o->rivals->ours, last, o->back[0]);
    bench_read_theirs(o->rivals->theirs, last, o->back[1]);
    for (int i = 0; i < 2; i++)
        bench_need(memcmp(o->back[i], o->src[o->n - 1], (size_t)last->size) == 0, "overwrite",
                   "a side reads other items than it wrote");
}

static void fight_overwrite(overwrite *o, const char *name, double bar)
{
    bench_duel duel = {o, prepare_overwrite, overwrite_ours, overwrite_theirs,
                       compare_overwrite};
    size_t size = (size_t)(o->shape[0] * o->shape[1] * o->shape[2]) * sizeof(float);
    for (int i = 0; i < o->n; i++) o->src[i] = bench_alloc(size);
    for (int i = 0; i < 2; i++) o->back[i] = bench_alloc(size);
    bench_fight(&table, name, bar, &duel);
    for (int i = 0; i < o->n; i++) free(o->src[i]);
    free(o->back[0]);
    free(o->back[1]);
}

/* A length of 0 means the whole axis, -1 a block. */
typedef struct change_kind {
    const char *name;
    int64_t lengths[BENCH_NDIM];
    int n;
    double lz4_bar, zstd_bar; /* with 32^3 blocks */
} change_kind;

static const change_kind changes[] = {
    {"plane 0", {1, 0, 0}, 1, 3, 3}, {"plane 1", {0, 1, 0}, 1, 3, 3},
    {"plane 2", {0, 0, 1}, 1, 3, 3}, {"block", {-1, -1, -1}, 4, 15, 40},
    {"point", {1, 1, 1}, 4, 15, 40},
};
enum { N_CHANGES = sizeof(changes) / sizeof(changes[0]) };

static void overwrite_row(bench_rivals *r, const float *data, const change_kind *kind)
{
    const bench_spec *spec = &r->spec;
    int durable = spec->durability == CATERVA_DURABILITY_FULL;
    int small = spec->block[0] < 32;
    char name[80];
    overwrite o = {.rivals = r, .step = 1, .n = kind->n};
    snprintf(name, sizeof(name), "%s, %d bits noise, %d^3 blocks, %d T, %s%s",
             bench_codec_name(spec), noise_bits, spec->block[0], spec->threads, kind->name,
             durable ? ", durable" : "");
    if (!bench_wanted(&table, name)) return;
    for (int d = 0; d < BENCH_NDIM; d++) {
        int64_t length = kind->lengths[d];
        o.limit[d] = spec->shape[d];
        o.shape[d] = length == 0 ? spec->shape[d] : length < 0 ? spec->block[d] : length;
        if (length < 0) o.step = spec->block[d];
    }
    double bar = small ? 15 : spec->zstd ? kind->zstd_bar : kind->lz4_bar;
    if (access(r->our_path, F_OK) != 0) {
        bench_create_both(r, data);
        bench_close_both(r);
    }
    if (r->ours == NULL) bench_open_both(r);
    fight_overwrite(&o, name, durable ? 0 : bar);
}

/* Adds the rows of all kinds of changes for 32^3 blocks, and only of points for smaller blocks. */
static void overwrite_rows(bench_rivals *r, const settings *s, const float *data,
                           int32_t block, int zstd)
{
    r->spec = cube_spec(s->side, block, zstd, 1);
    int first = block < 32 ? N_CHANGES - 1 : 0;
    for (int way = 0; way < 3; way++) {
        r->spec.threads = way == 0 ? 1 : 2;
        r->spec.durability = way == 2 ? CATERVA_DURABILITY_FULL : CATERVA_DURABILITY_NONE;
        for (int i = first; i < N_CHANGES; i++) overwrite_row(r, data, &changes[i]);
        if (r->ours != NULL) bench_close_both(r);
    }
    if (access(r->our_path, F_OK) != 0) return;
    bench_compare_files(r, "overwrite");
    bench_unlink_both(r);
}

/* ---- One point in a big file ----------------------------------------------------- */

/* A file of 1 MiB chunks, which are incompressible except the first one, where the points are. */
static void big_row(bench_rivals *r, int64_t size, int zstd)
{
    int64_t n_chunks = size / MIB;
    char name[80];
    r->spec = (bench_spec){.ndim = 3,
                           .shape = {16 * n_chunks, 128, 128},
                           .chunk = {16, 128, 128},
                           .block = {16, 32, 32},
                           .zstd = zstd,
                           .threads = 2,
                           .durability = CATERVA_DURABILITY_FULL};
    snprintf(name, sizeof(name), "%s, file of %d MiB, point, durable",
             bench_codec_name(&r->spec), (int)n_chunks);
    if (!bench_wanted(&table, name)) return;
    uint64_t *data = bench_alloc((size_t)n_chunks * MIB);
    for (int64_t i = 0; i < n_chunks * (MIB / 8); i++) data[i] = bench_random(&random_state);
    bench_noise((float *)data, MIB / 4, noise_bits, &random_state);
    bench_create_both(r, data);
    free(data);
    bench_close_both(r);
    bench_open_both(r);
    overwrite o = {.rivals = r,
                   .shape = {1, 1, 1},
                   .limit = {16, 128, 128},
                   .step = 1,
                   .n = 1,
                   .resizes = 1};
    fight_overwrite(&o, name, n_chunks < 1024 ? 0 : 50);
    bench_close_both(r);
    bench_compare_files(r, name);
    bench_unlink_both(r);
}

/* ---- Creating -------------------------------------------------------------------- */

/* Deletes the files before a turn creates them. `rivals` is the first member of `context`. */
static void unlink_both(void *context) { bench_unlink_both(*(bench_rivals **)context); }

typedef struct creation {
    bench_rivals *rivals;
    const float *data; /* of each write */
    int64_t rows;      /* in each write  */
} creation;

static bench_box rows_at(const creation *c, int64_t row)
{
    const int64_t *shape = c->rivals->spec.shape;
    return bench_box_at((int64_t[]){row, 0, 0}, (int64_t[]){c->rows, shape[1], shape[2]});
}

static double create_ours(void *context)
{
    const creation *c = context;
    const bench_spec *spec = &c->rivals->spec;
    double started = bench_now();
    caterva_array *array = bench_create_ours(c->rivals->our_path, spec);
    for (int64_t row = 0; row < spec->shape[0]; row += c->rows) {
        bench_box b = rows_at(c, row);
        bench_write_ours(array, &b, c->data);
    }
    bench_close_ours(array);
    return bench_now() - started;
}

/* Writes all rows at once. */
static double create_theirs(void *context)
{
    const creation *c = context;
    double started = bench_now();
    b2nd_free(bench_create_theirs(c->rivals->their_path, &c->rivals->spec, c->data,
                                  rows_at(c, 0).size));
    return bench_now() - started;
}

static void creation_row(bench_rivals *r, const float *data)
{
    const bench_spec *spec = &r->spec;
    char name[80];
    creation c = {r, data, spec->shape[0]};
    bench_duel duel = {&c, unlink_both, create_ours, create_theirs, NULL};
    snprintf(name, sizeof(name), "%s, %d bits noise, %d^3 blocks, %d T, create",
             bench_codec_name(spec), noise_bits, spec->block[0], spec->threads);
    if (!bench_wanted(&table, name)) return;
    bench_fight(&table, name, 0.95, &duel);
    bench_compare_files(r, name);
    bench_unlink_both(r);
}

/* ---- Appending ------------------------------------------------------------------- */

typedef struct appending {
    bench_rivals *rivals;
    int n;
    int commit_each;    /* else once, at the end           */
    int64_t items;      /* in one append                   */
    int64_t rows;       /* along axis 0, in one append     */
    float *src;         /* two appends long: they overlap  */
    double first, last; /* seconds of our first and last tenth */
} appending;

static float *append_src(const appending *a, int i) { return a->src + i % a->items; }

static double append_ours(void *context)
{
    appending *a = context;
    caterva_error err;
    caterva_array *array = bench_create_ours(a->rivals->our_path, &a->rivals->spec);
    size_t size = (size_t)a->items * sizeof(float);
    double first = 0, before_last = 0;
    bench_commit_ours(array);
    double started = bench_now();
    for (int i = 0; i < a->n; i++) {
        if (i == a->n / 10) first = bench_now() - started;
        if (i == a->n - a->n / 10) before_last = bench_now();
        caterva_buffer src = CATERVA_BUFFER_INIT;
        src.data = append_src(a, i);
        src.size = size;
        bench_need_ok(caterva_append(array, 0, a->rows, &src, &err), &err, "append");
        if (a->commit_each) bench_commit_ours(array);
    }
    bench_commit_ours(array);
    double ended = bench_now();
    a->first = fmin(a->first, first);
    a->last = fmin(a->last, ended - before_last);
    bench_close_ours(array);
    return (ended - started) / a->n;
}

static double append_theirs(void *context)
{
    const appending *a = context;
    b2nd_array_t *array =
        bench_create_theirs(a->rivals->their_path, &a->rivals->spec, NULL, 0);
    double started = bench_now();
    for (int i = 0; i < a->n; i++)
        bench_need_b2nd(
            b2nd_append(array, append_src(a, i), a->items * (int64_t)sizeof(float), 0),
            "b2nd_append");
    double took = (bench_now() - started) / a->n;
    b2nd_free(array);
    return took;
}

static void append_row(bench_rivals *r, appending *a, const char *what, double bar)
{
    static const char *const when[] = {"one commit", "committed each"};
    int durable = r->spec.durability == CATERVA_DURABILITY_FULL;
    char name[80];
    int length =
        snprintf(name, sizeof(name), "%s, %d appends of %s, %s%s", bench_codec_name(&r->spec),
                 a->n, what, when[a->commit_each], durable ? ", durable" : "");
    bench_duel duel = {a, unlink_both, append_ours, append_theirs, NULL};
    if (!bench_wanted(&table, name)) return;
    a->src = new_noise(2 * a->items);
    a->first = a->last = INFINITY;
    bench_fight(&table, name, bar, &duel);
    bench_compare_files(r, name);
    bench_unlink_both(r);
    free(a->src);
    if (!a->commit_each || a->items != TINY) return;
    bench_row row = {.rival = "our first tenth", .bar = 0.5};
    snprintf(name + length, sizeof(name) - (size_t)length, ": last/first");
    snprintf(row.name, sizeof(row.name), "%s", name);
    row.ours = 1e6 * a->last / (a->n / 10);
    row.theirs = 1e6 * a->first / (a->n / 10);
    bench_add_row(&table, &row);
}

/* Adds rows that append (1, 128, 128) items at a time, and one tiny chunk at a time. */
static void append_rows(bench_rivals *r, const settings *s, int zstd)
{
    bench_spec planes = {.ndim = 3,
                         .shape = {0, PLANE, PLANE},
                         .chunk = {32, PLANE, PLANE},
                         .block = {8, 64, 64},
                         .zstd = zstd,
                         .threads = 2};
    bench_spec tiny = {
        .ndim = 1, .chunk = {TINY}, .block = {TINY}, .zstd = zstd, .threads = 2};
    appending a = {.rivals = r};
    for (int way = 0; way < 3; way++) {
        a.commit_each = way > 0;
        planes.durability = way == 2 ? CATERVA_DURABILITY_FULL : CATERVA_DURABILITY_NONE;
        tiny.durability = planes.durability;
        r->spec = planes;
        a.n = s->appends;
        a.rows = 1;
        a.items = PLANE * PLANE;
        append_row(r, &a, "a plane", way == 0 ? 15 : way == 1 ? 0 : 1);
        r->spec = tiny;
        a.n = s->tiny_appends;
        a.rows = a.items = TINY;
        append_row(r, &a, "a chunk", way == 0 ? 50 : 0);
    }
}

/* ---- Memory ---------------------------------------------------------------------- */

/* Writes in slabs, while create_theirs writes all rows at once. */
static double create_theirs_by_rows(void *context)
{
    const creation *c = context;
    const bench_spec *spec = &c->rivals->spec;
    double started = bench_now();
    b2nd_array_t *array = bench_create_theirs(c->rivals->their_path, spec, NULL, 0);
    for (int64_t row = 0; row < spec->shape[0]; row += c->rows) {
        bench_box b = rows_at(c, row);
        bench_write_theirs(array, &b, c->data);
    }
    b2nd_free(array);
    return bench_now() - started;
}

/* In the second row, "theirs" is our limit: the memory budget and some chunks. */
static void memory_rows(bench_rivals *r, int64_t rows)
{
    enum { BUDGET_KIB = 64 << 10, CHUNK_KIB = 8 << 10, CHUNKS = 8 };
    enum { WIDTH = 512, SLAB_ROWS = 8 }; /* slabs that are thinner than a block */
    bench_row row = {.unit = "KiB"};
    snprintf(row.name, sizeof(row.name), "memory to write %d MiB through slabs", (int)rows);
    if (!bench_wanted(&table, row.name)) return;
    r->spec = cube_spec(WIDTH, 32, 0, 2);
    r->spec.shape[0] = rows;
    float *data = new_noise((int64_t)SLAB_ROWS * WIDTH * WIDTH);
    creation c = {r, data, SLAB_ROWS};
    row.ours = bench_memory_of(create_ours, &c);
    row.theirs = bench_memory_of(create_theirs_by_rows, &c);
    bench_add_row(&table, &row);
    row.rival = "64 MiB + 8 chunks";
    row.theirs = BUDGET_KIB + CHUNKS * CHUNK_KIB;
    row.bar = 1;
    snprintf(row.name, sizeof(row.name), "the same, and what it may take");
    bench_add_row(&table, &row);
    bench_compare_files(r, "memory");
    bench_unlink_both(r);
    free(data);
}

/* ---- The program ----------------------------------------------------------------- */

static void usage(void)
{
    fputs("usage: bench_write [--quick] [--rows RE] [--big MIB] [--noise BITS]\n", stderr);
    exit(2);
}

static settings parse_arguments(int argc, char **argv)
{
    settings s = {.side = 384,
                  .big_bytes = (int64_t)1024 * MIB,
                  .appends = 1000,
                  .tiny_appends = 10000,
                  .slab_rows = 512};
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (strcmp(argv[i], "--quick") == 0) {
            s = (settings){256, (int64_t)128 * MIB, 200, 2000, 256};
            table.budget = 0.1;
            table.min_turns = 3;
            continue;
        }
        if (value == NULL) usage();
        i++;
        if (bench_common_option(&table, argv[i - 1], value)) continue;
        if (strcmp(argv[i - 1], "--big") == 0)
            s.big_bytes = strtoll(value, NULL, 10) * MIB;
        else if (strcmp(argv[i - 1], "--noise") == 0)
            only_bits = atoi(value) & 31;
        else
            usage();
    }
    return s;
}

static void run_data(bench_rivals *r, const settings *s, int zstd, int bits)
{
    noise_bits = bits;
    float *data = new_noise(s->side * s->side * s->side);
    for (int32_t block = 32; block >= 16; block /= 2) {
        overwrite_rows(r, s, data, block, zstd);
        for (int threads = 1; threads <= 2; threads++) {
            r->spec = cube_spec(s->side, block, zstd, threads);
            creation_row(r, data);
        }
    }
    free(data);
}

static void run_codec(bench_rivals *r, const settings *s, int zstd)
{
    if (only_bits < 0) run_data(r, s, zstd, 2);
    run_data(r, s, zstd, only_bits < 0 ? 16 : only_bits);
    big_row(r, s->big_bytes, zstd);
    append_rows(r, s, zstd);
}

int main(int argc, char **argv)
{
    settings s = parse_arguments(argc, argv);
    bench_rivals r = {.ours = NULL};
    bench_paths(&r);
    blosc2_init();
    bench_print_title("changes; 384^3 float32 in 128^3 chunks, level 5 with shuffle");
    memory_rows(&r, s.slab_rows); /* first: later, freed memory would be reused */
    for (int zstd = 0; zstd <= 1; zstd++) run_codec(&r, &s, zstd);
    bench_conclude(&table);
    bench_write_json(&table, table.json);
    return 0;
}
