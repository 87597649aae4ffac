/* Read-ahead and prefetch, compared with the same reads without them. Two threads scan a cube in
 * planes and in slabs of whole blocks, without a pause, or with work on each box before the next
 * read. Also boxes at random places, each prefetched during the work on the previous box. The rival
 * is caterva itself. Every turn begins with new handles and an empty cache. */
#include "bench_readers.h"
#include "bench_rows.h"

enum { BLOCK = 32, N_BOXES = 100, BOX = 64 };

static bench_table table = {.budget = 1, .min_turns = 4, .max_turns = 16};

typedef struct course {
    const bench_readers *readers;
    const float *data; /* the expected items; side^3 */
    bench_box *boxes;
    int n;
    int work;       /* passes over the items read, before the next box */
    int hint;       /* 1: our side prefetches the next box */
    float *scratch; /* of a box */
    caterva_array *sides[2];
    double sums[2];
} course;

static caterva_array *open_side(const char *path, int no_read_ahead)
{
    caterva_error err;
    caterva_array *array = NULL;
    caterva_open_options options = bench_reading(2, BENCH_CACHE_64_MIB);
    options.no_read_ahead = no_read_ahead;
    bench_need_ok(caterva_open(path, &options, &array, &err), &err, "open");
    return array;
}

static void reopen(void *context)
{
    course *c = context;
    for (int i = 0; i < 2; i++) {
        caterva_discard(c->sides[i]);
        c->sides[i] = open_side(c->readers->path, i == 1 || c->hint);
    }
}

static double work_on(const course *c, const bench_box *box)
{
    double sum = 0;
    for (int pass = 0; pass < (c->work > 0 ? c->work : 1); pass++)
        for (int64_t i = 0; i<box->size / (int64_t)sizeof(float); i += c->work> 0 ? 1 : 64)
            sum += (double)c->scratch[i] * (pass + 1);
    return sum;
}

static double run_side(course *c, int side)
{
    caterva_error err;
    caterva_array *array = c->sides[side];
    double started = bench_now();
    c->sums[side] = 0;
    for (int i = 0; i < c->n; i++) {
        bench_read_ours(array, &c->boxes[i], c->scratch);
        if (c->hint && side == 0 && i + 1 < c->n)
            bench_need_ok(
                caterva_prefetch(array, c->boxes[i + 1].start, c->boxes[i + 1].stop, &err),
                &err, "prefetch");
        c->sums[side] += work_on(c, &c->boxes[i]);
    }
    return (bench_now() - started) / c->n;
}

static double run_with(void *context) { return run_side(context, 0); }
static double run_without(void *context) { return run_side(context, 1); }

static void compare(void *context)
{
    course *c = context;
    bench_need(memcmp(&c->sums[0], &c->sums[1], sizeof(double)) == 0, "course",
               "the two sides read different items");
    const bench_box *last = &c->boxes[c->n - 1];
    int64_t side = c->readers->spec.shape[0];
    const float *at = c->scratch;
    for (int64_t i = last->start[0]; i < last->stop[0]; i++)
        for (int64_t j = last->start[1]; j < last->stop[1]; j++, at += last->shape[2])
            bench_need(memcmp(at, c->data + (i * side + j) * side + last->start[2],
                              (size_t)last->shape[2] * sizeof(float)) == 0,
                       "course", "the last box is wrong");
}

static void run_course(course *c, const char *name)
{
    bench_row row = {.rival = c->hint ? "no prefetch" : "no read-ahead"};
    bench_duel duel = {c, reopen, run_with, run_without, compare};
    snprintf(row.name, sizeof(row.name), "%s%s", name,
             c->work > 0 ? ", work on each" : ", at once");
    if (!bench_wanted(&table, row.name)) return;
    c->scratch = bench_alloc((size_t)c->boxes[0].size);
    bench_fight_row(&table, &row, &duel);
    free(c->scratch);
    for (int i = 0; i < 2; i++) {
        caterva_discard(c->sides[i]);
        c->sides[i] = NULL;
    }
}

static void scan_rows(course *c, const char *kind, const char *what, int axis, int64_t thick)
{
    char name[60];
    int64_t side = c->readers->spec.shape[0];
    int64_t shape[BENCH_NDIM] = {side, side, side}, start[BENCH_NDIM] = {0};
    shape[axis] = thick;
    c->n = (int)(side / thick);
    c->boxes = bench_alloc((size_t)c->n * sizeof(c->boxes[0]));
    for (int i = 0; i < c->n; i++) {
        start[axis] = i * thick;
        c->boxes[i] = bench_box_at(start, shape);
    }
    snprintf(name, sizeof(name), "%s, 2 T, %s %d", kind, what, axis);
    for (c->work = 0; c->work <= 2; c->work += 2) run_course(c, name);
    free(c->boxes);
}

static void hint_row(course *c, const char *kind)
{
    char name[60];
    uint64_t random = 1;
    int64_t shape[BENCH_NDIM] = {BOX, BOX, BOX};
    c->n = N_BOXES;
    c->boxes = bench_alloc(N_BOXES * sizeof(c->boxes[0]));
    for (int i = 0; i < N_BOXES; i++)
        c->boxes[i] = bench_random_box(&c->readers->spec, shape, &random);
    snprintf(name, sizeof(name), "%s, 2 T, random boxes of %d^3", kind, BOX);
    c->hint = 1;
    c->work = 4;
    run_course(c, name);
    c->hint = 0;
    free(c->boxes);
}

int main(int argc, char **argv)
{
    int quick;
    uint64_t random = 42;
    bench_readers r = {.ours = NULL};
    bench_parse(&table, argc, argv, &quick);
    if (quick) table.min_turns = table.max_turns = 2;
    int64_t side = quick ? 256 : 384;
    bench_scratch_path(r.path, "prefetch");
    blosc2_init();
    bench_print_title(
        "prefetch; 384^3 float32, 128 KiB blocks, LZ4 5, 2 threads, 64 MiB cache");
    for (int noisy = 1; noisy >= 0; noisy--) {
        const char *kind = noisy ? "noisy" : "compressible";
        float *data = bench_field(noisy, side, &random);
        course c = {.readers = &r, .data = data};
        r.spec = bench_cube(side, BLOCK);
        bench_make_file(&r, data, side * side * side * (int64_t)sizeof(float), 0);
        for (int axis = 0; axis < BENCH_NDIM; axis++) scan_rows(&c, kind, "planes", axis, 1);
        scan_rows(&c, kind, "slabs", 0, BLOCK);
        hint_row(&c, kind);
        unlink(r.path);
        free(data);
    }
    bench_conclude(&table);
    bench_write_json(&table, table.json);
    return 0;
}
