/* Reads the same array through caterva and through C-Blosc2's b2nd, in one
 * process, with the same number of threads, and prints both times.
 *
 * For each row the two sides take turns; the positions are new in each turn and
 * the same for both, so no cache of decoded blocks answers for either; the
 * minimum over the turns counts; what they read is compared. */
#include "bench.h"

#include <b2nd.h>
#include <blosc2.h>

#include <math.h>
#include <regex.h>
#include <string.h>
#include <unistd.h>

enum { NDIM = 3, CHUNK = 128, MAX_ROWS = 256, MAX_TURNS = 400 };

/* One way of cutting boxes: lengths of 0 mean the whole axis. */
typedef struct shape_kind {
    const char *name;
    int64_t lengths[NDIM];
    int count; /* boxes in one turn */
} shape_kind;

static const shape_kind kinds[] = {
    {"full", {0, 0, 0}, 1},    {"box 50^3", {50, 50, 50}, 8}, {"plane 0", {1, 0, 0}, 3},
    {"plane 1", {0, 1, 0}, 3}, {"plane 2", {0, 0, 1}, 3},     {"line 0", {0, 1, 1}, 30},
    {"line 1", {1, 0, 1}, 30}, {"line 2", {1, 1, 0}, 30},     {"point", {1, 1, 1}, 300},
};
enum { N_KINDS = sizeof(kinds) / sizeof(kinds[0]) };

typedef struct settings {
    int64_t side;  /* of the array                          */
    double budget; /* seconds for each side of a row        */
    int min_turns;
    int we_write;     /* else b2nd writes the files            */
    const char *json; /* path, or NULL                         */
    regex_t rows;
    int has_rows;
} settings;

typedef struct row {
    char name[64];
    int noisy; /* else very compressible */
    int32_t block;
    const shape_kind *kind;
    double ours, theirs; /* microseconds for one box */
} row;

/* The two sides, open on the same bytes. */
typedef struct rivals {
    caterva_array *ours;
    b2nd_array_t *theirs;
    uint8_t *our_bytes, *their_bytes; /* destinations, of the whole array */
} rivals;

typedef struct box {
    int64_t start[NDIM], stop[NDIM], shape[NDIM];
    int64_t size;
} box;

static row rows[MAX_ROWS];
static int n_rows;
static uint64_t random_state = 42;

/* ---- The arrays --------------------------------------------------------------- */

/* Noisy: a smooth field whose low mantissa bits are random. Compressible: small
 * cubes of one value. */
static float *make_data(int noisy, int64_t side)
{
    float *data = bench_alloc((size_t)(side * side * side) * sizeof(float));
    float *at = data;
    for (int64_t i = 0; i < side; i++) {
        for (int64_t j = 0; j < side; j++) {
            float base = 2.0F + sinf((float)i / 40.0F) * cosf((float)j / 50.0F);
            for (int64_t k = 0; k < side; k++, at++) {
                uint32_t bits;
                *at =
                    noisy ? base + (float)k / 300.0F : (float)((i / 8 + j / 8 + k / 8) % 19);
                if (noisy) {
                    memcpy(&bits, at, sizeof(bits));
                    bits ^= (uint32_t)bench_random(&random_state) & 0xFFFFu;
                    memcpy(at, &bits, sizeof(bits));
                }
            }
        }
    }
    return data;
}

static void write_by_b2nd(const char *path, const float *data, int64_t side, int32_t block)
{
    blosc2_cparams cparams = BLOSC2_CPARAMS_DEFAULTS;
    blosc2_dparams dparams = BLOSC2_DPARAMS_DEFAULTS;
    blosc2_storage storage = {.contiguous = true,
                              .urlpath = (char *)(uintptr_t)path,
                              .cparams = &cparams,
                              .dparams = &dparams};
    int64_t shape[NDIM] = {side, side, side};
    int32_t chunks[NDIM] = {CHUNK, CHUNK, CHUNK};
    int32_t blocks[NDIM] = {block, block, block};
    b2nd_array_t *array = NULL;
    cparams.typesize = sizeof(float);
    cparams.compcode = BLOSC_LZ4;
    cparams.clevel = 5;
    cparams.filters[BLOSC2_MAX_FILTERS - 1] = BLOSC_SHUFFLE;
    b2nd_context_t *ctx = b2nd_create_ctx(&storage, NDIM, shape, chunks, blocks, "<f4",
                                          DTYPE_NUMPY_FORMAT, NULL, 0);
    int result = b2nd_from_cbuffer(ctx, &array, data, side * side * side * 4);
    bench_need(result >= 0, "b2nd_from_cbuffer", blosc2_error_string(result));
    b2nd_free(array);
    b2nd_free_ctx(ctx);
}

static void write_by_us(const char *path, const float *data, int64_t side, int32_t block)
{
    caterva_error err;
    caterva_create_options options = CATERVA_CREATE_INIT;
    int64_t start[NDIM] = {0, 0, 0};
    int64_t shape[NDIM] = {side, side, side};
    int32_t chunks[NDIM] = {CHUNK, CHUNK, CHUNK};
    int32_t blocks[NDIM] = {block, block, block};
    caterva_array *array = NULL;
    options.ndim = NDIM;
    options.shape = shape;
    options.chunk_shape = chunks;
    options.block_shape = blocks;
    options.dtype = "<f4";
    options.codec_set = 1;
    options.codec = CATERVA_CODEC_LZ4;
    options.level = 5;
    options.filters[0] = CATERVA_FILTER_SHUFFLE;
    bench_need_ok(caterva_create(path, &options, &array, &err), &err, "create");
    bench_need_ok(
        caterva_write(array, start, shape, data, (size_t)(side * side * side) * 4, &err),
        &err, "write");
    bench_need_ok(caterva_close(array, &err), &err, "close");
}

/* ---- Opening both -------------------------------------------------------------- */

static void set_their_threads(b2nd_array_t *array, int threads)
{
    blosc2_dparams dparams = BLOSC2_DPARAMS_DEFAULTS;
    dparams.nthreads = (int16_t)threads;
    dparams.schunk = array->sc;
    blosc2_free_ctx(array->sc->dctx);
    array->sc->dctx = blosc2_create_dctx(dparams);
}

static void open_both(rivals *r, const char *path, uint8_t *frame, size_t size, int threads)
{
    caterva_error err;
    caterva_open_options options = CATERVA_OPEN_INIT;
    int result;
    options.threads = threads;
    options.cache_bytes = -1; /* these rows are about decoding */
    if (frame != NULL) {
        bench_need_ok(caterva_open_frame(frame, size, 0, &options, &r->ours, &err), &err,
                      "open_frame");
        result = b2nd_from_cframe(frame, (int64_t)size, false, &r->theirs);
    } else {
        bench_need_ok(caterva_open(path, &options, &r->ours, &err), &err, "open");
        result = b2nd_open(path, &r->theirs);
    }
    bench_need(result >= 0, "b2nd_open", blosc2_error_string(result));
    set_their_threads(r->theirs, threads);
}

static void close_both(rivals *r)
{
    caterva_discard(r->ours);
    b2nd_free(r->theirs);
}

/* ---- One row ------------------------------------------------------------------- */

static box random_box(const shape_kind *kind, int64_t side)
{
    box b = {.size = sizeof(float)};
    for (int i = 0; i < NDIM; i++) {
        b.shape[i] = kind->lengths[i] > 0 ? kind->lengths[i] : side;
        b.start[i] = bench_below(&random_state, side - b.shape[i] + 1);
        b.stop[i] = b.start[i] + b.shape[i];
        b.size *= b.shape[i];
    }
    return b;
}

static double time_ours(rivals *r, const box *boxes, int count)
{
    caterva_error err;
    double started = bench_now();
    for (int i = 0; i < count; i++)
        bench_need_ok(caterva_read(r->ours, boxes[i].start, boxes[i].stop, r->our_bytes,
                                   (size_t)boxes[i].size, &err),
                      &err, "read");
    return (bench_now() - started) / count;
}

static double time_theirs(rivals *r, const box *boxes, int count)
{
    double started = bench_now();
    for (int i = 0; i < count; i++) {
        int result = b2nd_get_slice_cbuffer(r->theirs, boxes[i].start, boxes[i].stop,
                                            r->their_bytes, boxes[i].shape, boxes[i].size);
        bench_need(result >= 0, "b2nd_get_slice_cbuffer", blosc2_error_string(result));
    }
    return (bench_now() - started) / count;
}

static void compare(const rivals *r, const box *b, const char *name)
{
    bench_need(memcmp(r->our_bytes, r->their_bytes, (size_t)b->size) == 0, name,
               "the two sides read different bytes");
}

/* Before the clock runs: every box of one turn compared, and both sides warm. */
static void compare_turn(rivals *r, const shape_kind *kind, int64_t side, const char *name)
{
    for (int i = 0; i < kind->count; i++) {
        box b = random_box(kind, side);
        memset(r->our_bytes, 0x11, (size_t)b.size);
        memset(r->their_bytes, 0x22, (size_t)b.size);
        time_ours(r, &b, 1);
        time_theirs(r, &b, 1);
        compare(r, &b, name);
    }
}

static void run_row(rivals *r, const settings *s, row *to)
{
    static box boxes[512];
    double spent = 0;
    int count = to->kind->count;
    to->ours = to->theirs = 1e9;
    compare_turn(r, to->kind, s->side, to->name);
    for (int turn = 0; turn < MAX_TURNS; turn++) {
        if (turn >= s->min_turns && spent > 2 * s->budget) break;
        for (int i = 0; i < count; i++) boxes[i] = random_box(to->kind, s->side);
        double theirs = turn % 2 ? time_theirs(r, boxes, count) : 0;
        double ours = time_ours(r, boxes, count);
        theirs = turn % 2 ? theirs : time_theirs(r, boxes, count);
        compare(r, &boxes[count - 1], to->name);
        to->ours = fmin(to->ours, 1e6 * ours);
        to->theirs = fmin(to->theirs, 1e6 * theirs);
        spent += (ours + theirs) * count;
    }
    printf("%-40s %12.1f %12.1f %8.2fx\n", to->name, to->ours, to->theirs,
           to->theirs / to->ours);
    fflush(stdout);
}

static void run_setup(rivals *r, const settings *s, int noisy, int32_t block,
                      const char *where)
{
    for (int i = 0; i < N_KINDS; i++) {
        row *next = &rows[n_rows];
        next->noisy = noisy;
        next->block = block;
        next->kind = &kinds[i];
        snprintf(next->name, sizeof(next->name), "%s, %d KiB, %s, %s",
                 noisy ? "noisy" : "compressible", block * block * block / 256, where,
                 kinds[i].name);
        if (s->has_rows && regexec(&s->rows, next->name, 0, NULL, 0) != 0) continue;
        bench_need(n_rows + 1 < MAX_ROWS, "rows", "too many");
        n_rows++;
        run_row(r, s, next);
    }
}

static uint8_t *load_file(const char *path, size_t *size)
{
    FILE *file = fopen(path, "rb");
    bench_need(file != NULL, path, "cannot be read");
    fseek(file, 0, SEEK_END);
    *size = (size_t)ftell(file);
    rewind(file);
    uint8_t *bytes = bench_alloc(*size);
    bench_need(fread(bytes, 1, *size, file) == *size, path, "cannot be read");
    fclose(file);
    return bytes;
}

static void run_file(const settings *s, int noisy, int32_t block, const char *path)
{
    size_t bytes = (size_t)(s->side * s->side * s->side) * sizeof(float);
    rivals r = {.our_bytes = bench_alloc(bytes), .their_bytes = bench_alloc(bytes)};
    size_t size = 0;
    char where[32];
    float *data = make_data(noisy, s->side);
    unlink(path);
    (s->we_write ? write_by_us : write_by_b2nd)(path, data, s->side, block);
    free(data);
    uint8_t *frame = load_file(path, &size);
    printf("\n%s, %d KiB blocks, ratio %.2f\n", noisy ? "noisy" : "compressible",
           block * block * block / 256, (double)bytes / (double)size);
    for (int in_memory = 0; in_memory < 2; in_memory++) {
        for (int threads = 1; threads <= 2; threads++) {
            snprintf(where, sizeof(where), "%s, %d T", in_memory ? "memory" : "disk",
                     threads);
            open_both(&r, path, in_memory ? frame : NULL, size, threads);
            run_setup(&r, s, noisy, block, where);
            close_both(&r);
        }
    }
    unlink(path);
    free(frame);
    free(r.our_bytes);
    free(r.their_bytes);
}

/* ---- Conclusions ---------------------------------------------------------------- */

static double ratio_of(const row *r) { return r->theirs / r->ours; }

/* What a row must reach: with 16 KiB blocks points and lines more than 1. */
static double bar_of(const row *r)
{
    int is_point = strcmp(r->kind->name, "point") == 0;
    int is_line = strncmp(r->kind->name, "line", 4) == 0;
    if (r->block != 16 || (!is_point && !is_line)) return 1.0;
    if (is_point) return r->noisy ? 7.0 : 40.0;
    return r->noisy ? 1.5 : 5.0;
}

static void print_conclusions(void)
{
    int below = 0;
    int bars = 0;
    int reached = 0;
    printf("\nbelow 1.0x (0.95x and more may be noise):\n");
    for (int i = 0; i < n_rows; i++) {
        if (ratio_of(&rows[i]) >= 1.0) continue;
        below++;
        printf("  %-40s %6.2fx%s\n", rows[i].name, ratio_of(&rows[i]),
               ratio_of(&rows[i]) < 0.95 ? "  FALLS SHORT" : "");
    }
    printf(below == 0 ? "  none\n" : "");
    printf("bars for points and lines with 16 KiB blocks:\n");
    for (int i = 0; i < n_rows; i++) {
        if (bar_of(&rows[i]) <= 1.0) continue;
        bars++;
        reached += ratio_of(&rows[i]) >= bar_of(&rows[i]);
        printf("  %-40s %6.1fx of %4.1fx  %s\n", rows[i].name, ratio_of(&rows[i]),
               bar_of(&rows[i]),
               ratio_of(&rows[i]) >= bar_of(&rows[i]) ? "ok" : "FALLS SHORT");
    }
    printf("%d rows, %d below 1.0x, %d of %d bars reached\n", n_rows, below, reached, bars);
}

static void write_json(const char *path)
{
    FILE *file = fopen(path, "w");
    bench_need(file != NULL, path, "cannot be written");
    fprintf(file, "{\"schema\": 1, \"caterva\": \"%s\", \"blosc2\": \"%s\", \"rows\": [",
            caterva_version(), caterva_codec_version());
    for (int i = 0; i < n_rows; i++)
        fprintf(file,
                "%s\n {\"name\": \"%s\", \"ours_us\": %.2f, \"theirs_us\": %.2f, "
                "\"ratio\": %.3f, \"bar\": %.1f}",
                i > 0 ? "," : "", rows[i].name, rows[i].ours, rows[i].theirs,
                ratio_of(&rows[i]), bar_of(&rows[i]));
    fprintf(file, "\n]}\n");
    bench_need(fclose(file) == 0, path, "cannot be written");
}

static void usage(void)
{
    fprintf(stderr, "usage: bench_read [--quick] [--rows REGEX] [--json FILE] "
                    "[--writer b2nd|caterva]\n");
    exit(2);
}

static settings parse_arguments(int argc, char **argv)
{
    settings s = {.side = 384, .budget = 0.4, .min_turns = 5};
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (strcmp(argv[i], "--quick") == 0) {
            s.side = 256;
            s.budget = 0.05;
            s.min_turns = 3;
            continue;
        }
        if (value == NULL) usage();
        i++;
        if (strcmp(argv[i - 1], "--rows") == 0)
            s.has_rows = regcomp(&s.rows, value, REG_EXTENDED | REG_NOSUB) == 0;
        else if (strcmp(argv[i - 1], "--json") == 0)
            s.json = value;
        else if (strcmp(argv[i - 1], "--writer") == 0)
            s.we_write = strcmp(value, "caterva") == 0;
        else
            usage();
    }
    return s;
}

int main(int argc, char **argv)
{
    settings s = parse_arguments(argc, argv);
    char path[512];
    const char *tmp = getenv("TMPDIR");
    snprintf(path, sizeof(path), "%s/caterva-bench-%d.b2nd", tmp != NULL ? tmp : "/tmp",
             (int)getpid());
    blosc2_init();
    printf("caterva %s, C-Blosc2 %s; %lld^3 float32 in %d^3 chunks, LZ4 5 with shuffle, "
           "written by %s\n",
           caterva_version(), caterva_codec_version(), (long long)s.side, CHUNK,
           s.we_write ? "caterva" : "b2nd");
    printf("%-40s %12s %12s %9s\n", "microseconds for one read", "caterva", "b2nd", "ratio");
    for (int noisy = 1; noisy >= 0; noisy--) {
        run_file(&s, noisy, 32, path);
        run_file(&s, noisy, 16, path);
    }
    print_conclusions();
    if (s.json != NULL) write_json(s.json);
    return 0;
}
