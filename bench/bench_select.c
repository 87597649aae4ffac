/* Selections of the same array through caterva and through C-Blosc2's b2nd, in one process:
 * steps, lists of indices, points, masks.
 *
 * b2nd has a function only for lists. For the others the rival does what its users do: single
 * reads for points; for steps and masks, a read of the enclosing box from which the items are
 * copied. The results are compared after each turn. */
#include "bench_rivals.h"
#include "bench_rows.h"

enum { CHUNK = 128, N_POINTS = 10000 };

typedef enum work { STEPS, LISTS, POINTS, MASK } work;

/* One row: its selection, and the result of each side. */
typedef struct select_duel {
    bench_rivals *rivals;
    work kind;
    int64_t side;
    int64_t step;               /* STEPS */
    int64_t counts[BENCH_NDIM]; /* LISTS: 0 is the whole axis */
    int64_t *lists[BENCH_NDIM];
    int64_t *points;
    int per_mille; /* MASK */
    uint8_t *mask;
    caterva_axis axes[BENCH_NDIM];
    caterva_selection words;
    int64_t n; /* items of the result */
    float *ours, *theirs, *whole;
    uint64_t random;
} select_duel;

static bench_table table = {.budget = 0.6, .min_turns = 4, .max_turns = 60};

/* ---- New selections, not timed ----------------------------------------------- */

static void prepare_steps(select_duel *d)
{
    d->n = 1;
    for (int i = 0; i < BENCH_NDIM; i++) {
        d->axes[i] = (caterva_axis){.kind = CATERVA_AXIS_SLICE,
                                    .start = bench_below(&d->random, d->step),
                                    .stop = CATERVA_AXIS_OMIT,
                                    .step = d->step};
        d->n *= (d->side - d->axes[i].start + d->step - 1) / d->step;
    }
}

static void prepare_lists(select_duel *d)
{
    d->n = 1;
    for (int i = 0; i < BENCH_NDIM; i++) {
        int64_t n = d->counts[i] > 0 ? d->counts[i] : d->side;
        for (int64_t k = 0; k < n; k++)
            d->lists[i][k] = d->counts[i] > 0 ? bench_below(&d->random, d->side) : k;
        d->axes[i] =
            (caterva_axis){.kind = CATERVA_AXIS_LIST, .indices = d->lists[i], .n = n};
        d->n *= n;
    }
}

static void prepare(void *context)
{
    select_duel *d = context;
    if (d->kind == STEPS) prepare_steps(d);
    if (d->kind == LISTS) prepare_lists(d);
    if (d->kind == POINTS)
        for (int64_t i = 0; i < N_POINTS * BENCH_NDIM; i++)
            d->points[i] = bench_below(&d->random, d->side);
    if (d->kind != MASK) return;
    d->n = 0;
    for (int64_t i = 0; i < d->side * d->side * d->side; i++) {
        d->mask[i] = bench_below(&d->random, 1000) < d->per_mille;
        d->n += d->mask[i];
    }
}

/* ---- Ours --------------------------------------------------------------------- */

static double read_ours(void *context)
{
    select_duel *d = context;
    caterva_error err;
    caterva_buffer buffer = CATERVA_BUFFER_INIT;
    buffer.data = d->ours;
    buffer.size = (size_t)d->n * sizeof(float);
    double begun = bench_now();
    caterva_status status = caterva_read_selection(d->rivals->ours, &d->words, &buffer, &err);
    double seconds = bench_now() - begun;
    bench_need_ok(status, &err, "caterva_read_selection");
    return seconds;
}

/* ---- Theirs -------------------------------------------------------------------- */

static const float *read_whole(select_duel *d)
{
    bench_box all = bench_box_at((int64_t[]){0, 0, 0}, d->rivals->spec.shape);
    bench_read_theirs(d->rivals->theirs, &all, d->whole);
    return d->whole;
}

static void pick_steps(select_duel *d)
{
    const float *whole = read_whole(d);
    float *to = d->theirs;
    for (int64_t i = d->axes[0].start; i < d->side; i += d->step)
        for (int64_t j = d->axes[1].start; j < d->side; j += d->step)
            for (int64_t k = d->axes[2].start; k < d->side; k += d->step)
                *to++ = whole[(i * d->side + j) * d->side + k];
}

static void pick_mask(select_duel *d)
{
    const float *whole = read_whole(d);
    float *to = d->theirs;
    for (int64_t i = 0; i < d->side * d->side * d->side; i++)
        if (d->mask[i]) *to++ = whole[i];
}

static void read_points(select_duel *d)
{
    for (int64_t i = 0; i < N_POINTS; i++) {
        bench_box b = bench_box_at(d->points + i * BENCH_NDIM, (int64_t[]){1, 1, 1});
        bench_read_theirs(d->rivals->theirs, &b, d->theirs + i);
    }
}

static void read_lists(select_duel *d)
{
    int64_t counts[BENCH_NDIM];
    for (int i = 0; i < BENCH_NDIM; i++) counts[i] = d->axes[i].n;
    bench_need_b2nd(b2nd_get_orthogonal_selection(d->rivals->theirs, d->lists, counts,
                                                  d->theirs, counts,
                                                  d->n * (int64_t)sizeof(float)),
                    "b2nd_get_orthogonal_selection");
}

static double read_theirs(void *context)
{
    select_duel *d = context;
    double begun = bench_now();
    switch (d->kind) {
    case STEPS: pick_steps(d); break;
    case LISTS: read_lists(d); break;
    case POINTS: read_points(d); break;
    case MASK: pick_mask(d); break;
    }
    return bench_now() - begun;
}

static void compare(void *context)
{
    const select_duel *d = context;
    bench_need(memcmp(d->ours, d->theirs, (size_t)d->n * sizeof(float)) == 0, "compare",
               "the two sides deliver different items");
}

/* ---- Rows ---------------------------------------------------------------------- */

static void run_row(select_duel *d, work kind, const char *what)
{
    char name[80];
    const bench_spec *spec = &d->rivals->spec;
    d->kind = kind;
    d->words = (caterva_selection)CATERVA_SELECTION_INIT;
    d->words.kind = kind == POINTS ? CATERVA_SELECTION_POINTS
                    : kind == MASK ? CATERVA_SELECTION_MASK
                                   : CATERVA_SELECTION_AXES;
    d->words.axes = d->axes;
    d->words.n_axes = BENCH_NDIM;
    d->words.points = d->points;
    d->words.n_points = N_POINTS;
    d->words.mask = d->mask;
    d->words.mask_size = (size_t)(d->side * d->side * d->side);
    if (kind == POINTS) d->n = N_POINTS;
    snprintf(name, sizeof(name), "%s, blocks %d^3, %d T, %s", bench_codec_name(spec),
             spec->block[0], spec->threads, what);
    bench_duel duel = {d, prepare, read_ours, read_theirs, compare};
    if (bench_wanted(&table, name)) bench_fight(&table, name, 0, &duel);
}

static void run_lists(select_duel *d, int64_t n0, int64_t n1, int64_t n2, const char *what)
{
    d->counts[0] = n0;
    d->counts[1] = n1;
    d->counts[2] = n2;
    run_row(d, LISTS, what);
}

static void run_rows(select_duel *d)
{
    d->step = 4;
    run_row(d, STEPS, "[::4, ::4, ::4]");
    d->step = 50;
    run_row(d, STEPS, "[::50, ::50, ::50]");
    run_lists(d, 20, 0, 0, "20 planes of axis 0");
    run_lists(d, 0, 0, 20, "20 planes of axis 2");
    run_lists(d, 50, 50, 50, "lists of 50 x 50 x 50");
    run_row(d, POINTS, "10,000 points");
    d->per_mille = 1;
    run_row(d, MASK, "mask of 0.1 %");
    d->per_mille = 300;
    run_row(d, MASK, "mask of 30 %");
}

static void run_file(select_duel *d, int32_t block, const float *data)
{
    bench_rivals *r = d->rivals;
    int64_t side = d->side;
    r->spec = (bench_spec){.ndim = BENCH_NDIM,
                           .shape = {side, side, side},
                           .chunk = {CHUNK, CHUNK, CHUNK},
                           .block = {block, block, block},
                           .threads = 1,
                           .durability = CATERVA_DURABILITY_NONE};
    bench_create_both(r, data);
    bench_close_both(r);
    for (int threads = 1; threads <= 2; threads++) {
        r->spec.threads = threads;
        bench_open_both(r);
        run_rows(d);
        bench_close_both(r);
    }
    bench_unlink_both(r);
}

int main(int argc, char **argv)
{
    int64_t side = 384;
    const char *json = NULL;
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        if (strcmp(argv[i], "--quick") == 0) {
            side = 256;
            table.budget = 0.15;
        } else if (strcmp(argv[i], "--rows") == 0) {
            table.has_filter = regcomp(&table.filter, value, REG_EXTENDED | REG_NOSUB) == 0;
            i++;
        } else if (strcmp(argv[i], "--json") == 0) {
            json = value;
            i++;
        } else {
            fprintf(stderr, "usage: bench_select [--quick] [--rows REGEX] [--json FILE]\n");
            return 2;
        }
    }

    bench_rivals r = {.ours = NULL};
    select_duel d = {.rivals = &r, .side = side, .random = 42};
    size_t items = (size_t)(side * side * side);
    float *data = bench_alloc(items * sizeof(float));
    bench_noise(data, (int64_t)items, 16, &d.random);
    d.ours = bench_alloc(items * sizeof(float));
    d.theirs = bench_alloc(items * sizeof(float));
    d.whole = bench_alloc(items * sizeof(float));
    d.mask = bench_alloc(items);
    d.points = bench_alloc(N_POINTS * BENCH_NDIM * sizeof(int64_t));
    for (int i = 0; i < BENCH_NDIM; i++)
        d.lists[i] = bench_alloc((size_t)side * sizeof(int64_t));

    bench_paths(&r);
    blosc2_init();
    caterva_cache_set_limit(0, NULL); /* these rows measure decoding */
    printf("caterva %s, C-Blosc2 %s; %lld^3 float32 in %d^3 chunks, level 5 with shuffle\n",
           caterva_version(), caterva_codec_version(), (long long)side, CHUNK);
    printf("%-58s %12s %12s %9s\n", "microseconds for one selection", "caterva", "b2nd",
           "ratio");
    run_file(&d, 32, data);
    run_file(&d, 16, data);
    bench_conclude(&table);
    if (json != NULL) bench_write_json(&table, json);
    return 0;
}
