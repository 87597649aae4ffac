/* Reductions of views of several arrays, joined and stacked in nested joins: numbers of every
 * kind, with NaN or skipping them, along every set of axes. The oracle reads the view as
 * doubles, in which all sums here are exact.
 *
 * usage: test_reduce_joined [ROUNDS [SEED]] */
#include "caterva.h"
#include "caterva_upkeep.h"
#include "caterva_value.h"

#include "support/check.h"
#include "support/every_step.h"
#include "support/random.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { ARRAYS = 4, AXES = 4, BINS = 5 };

typedef struct kind {
    const char *dtype;
    int low, high;
    bool has_nan;
    bool is_unsigned;
} kind;
static const kind kinds[] = {{"<f8", -100, 100, true, false},
                             {">i4", -100, 100, false, false},
                             {"|u1", 0, 255, false, true},
                             {">f4", -100, 100, true, false},
                             {"<i8", -100, 100, false, false}};

static caterva_array *make(const kind *k, const int64_t *shape, rng *r)
{
    caterva_error err;
    caterva_array *array;
    caterva_create_options o = CATERVA_CREATE_INIT;
    caterva_buffer src = CATERVA_BUFFER_INIT;
    int64_t n = shape[0] * shape[1];
    int32_t chunks[2] = {rng_int(r, 1, 7), rng_int(r, 1, 7)};
    double *items = check_alloc((size_t)n * sizeof items[0]);
    int odd = rng_one_in(r, 2) ? 20 : 2000;
    for (int64_t i = 0; i < n; i++)
        items[i] =
            k->has_nan && rng_one_in(r, odd) ? (double)NAN : rng_int(r, k->low, k->high);
    o.ndim = 2;
    o.shape = shape;
    o.chunk_shape = chunks;
    o.dtype = k->dtype;
    o.threads = rng_int(r, 1, 3);
    CHECK_OK(caterva_create("mem:", &o, &array, &err), err);
    src.data = items;
    src.size = (size_t)n * sizeof items[0];
    src.dtype = "float64";
    src.casting = CATERVA_CASTING_UNSAFE;
    if (!rng_one_in(r, 6)) /* else zeros, which are not stored */
        CHECK_OK(caterva_write_selection(array, NULL, &src, &err), err);
    free(items);
    return array;
}

/* ---- The view -------------------------------------------------------------------- */

/* (a + b) stacked with (c + d), or (a, b) stacked and joined with (c, d) stacked. */
static caterva_view *join_all(caterva_array *const *arrays, bool stack_first, rng *r)
{
    caterva_error err;
    caterva_view *of[ARRAYS], *pair[2], *all, *out;
    int axis = rng_int(r, 0, 1), deep = rng_int(r, 0, 2);
    for (int i = 0; i < ARRAYS; i++) CHECK_OK(caterva_view_of(arrays[i], &of[i], &err), err);
    for (int i = 0; i < 2; i++) {
        const caterva_view *two[2] = {of[2 * i], of[2 * i + 1]};
        CHECK_OK(stack_first ? caterva_view_stack(two, 2, deep, &pair[i], &err)
                             : caterva_view_concat(two, 2, axis, &pair[i], &err),
                 err);
    }
    const caterva_view *both[2] = {pair[0], pair[1]};
    CHECK_OK(stack_first ? caterva_view_concat(both, 2, rng_int(r, 0, 2), &all, &err)
                         : caterva_view_stack(both, 2, deep, &all, &err),
             err);
    if (rng_one_in(r, 2))
        CHECK_OK(caterva_view_expand(all, rng_int(r, 0, 3), &out, &err), err);
    else
        CHECK_OK(caterva_view_transpose(all, NULL, &out, &err), err);
    caterva_view_free(all);
    for (int i = 0; i < 2; i++) caterva_view_free(pair[i]);
    for (int i = 0; i < ARRAYS; i++) caterva_view_free(of[i]);
    return out;
}

static double *read_all(const caterva_view *view, int64_t *n)
{
    caterva_error err;
    caterva_buffer dst = CATERVA_BUFFER_INIT;
    *n = 1;
    for (int d = 0; d < caterva_view_ndim(view); d++) *n *= caterva_view_shape(view)[d];
    dst.size = (size_t)*n * sizeof(double);
    dst.data = check_alloc(dst.size);
    dst.dtype = "float64";
    dst.casting = CATERVA_CASTING_UNSAFE;
    CHECK_OK(caterva_view_read(view, NULL, &dst, &err), err);
    return dst.data;
}

/* ---- Along axes ------------------------------------------------------------------- */

typedef struct cell {
    int64_t n, n_nan;
    double min, max, sum;
} cell;

static void count(cell *c, double value)
{
    if (isnan(value)) {
        c->n_nan++;
        return;
    }
    if (c->n == 0 || value < c->min) c->min = value;
    if (c->n == 0 || value > c->max) c->max = value;
    c->sum += value;
    c->n++;
}

static cell *count_cells(const caterva_view *view, const double *items, int64_t n,
                         const bool *goes, int64_t *n_cells)
{
    int ndim = caterva_view_ndim(view);
    const int64_t *shape = caterva_view_shape(view);
    *n_cells = 1;
    for (int d = 0; d < ndim; d++) *n_cells *= goes[d] ? 1 : shape[d];
    cell *cells = check_alloc((size_t)*n_cells * sizeof cells[0]);
    memset(cells, 0, (size_t)*n_cells * sizeof cells[0]);
    for (int64_t i = 0; i < n; i++) {
        int64_t at = 0, stride = 1, rest = i;
        for (int d = ndim - 1; d >= 0; rest /= shape[d--]) {
            if (goes[d]) continue;
            at += rest % shape[d] * stride;
            stride *= shape[d];
        }
        count(&cells[at], items[i]);
    }
    return cells;
}

/* What NumPy gives. */
static double want_of(const cell *c, caterva_reduction what, bool skip_nan)
{
    if (c->n_nan > 0 && !skip_nan) return (double)NAN;
    if (c->n == 0) return what == CATERVA_REDUCTION_SUM ? 0 : (double)NAN;
    switch (what) {
    case CATERVA_REDUCTION_MIN: return c->min;
    case CATERVA_REDUCTION_MAX: return c->max;
    case CATERVA_REDUCTION_SUM: return c->sum;
    default: return c->sum / (double)c->n;
    }
}

/* The results as doubles. */
static void convert(const kind *k, caterva_reduction what, void *results, int64_t n,
                    double *out)
{
    caterva_error err;
    caterva_buffer src = CATERVA_BUFFER_INIT, dst = CATERVA_BUFFER_INIT;
    src.data = results;
    dst.data = out;
    src.size = dst.size = (size_t)n * sizeof(double);
    src.dtype = k->dtype;
    if (what == CATERVA_REDUCTION_SUM)
        src.dtype = k->has_nan ? "float64" : k->is_unsigned ? "uint64" : "int64";
    if (what == CATERVA_REDUCTION_MEAN) src.dtype = "float64";
    dst.dtype = "float64";
    dst.casting = CATERVA_CASTING_UNSAFE;
    CHECK_OK(caterva_buffer_convert(&src, n, &dst, NULL, &err), err);
}

static bool is_near(double got, double want)
{
    if (isnan(want)) return isnan(got);
    return fabs(got - want) <= 1e-12 * fabs(want);
}

static int on_progress(void *context, int64_t done, int64_t total)
{
    int64_t *last = context;
    CHECK(done >= last[0] && done <= total, "%lld of %lld", (long long)done,
          (long long)total);
    last[0] = done;
    last[1] = total;
    return 0;
}

static void check_axes(const kind *k, const caterva_view *view, const double *items,
                       int64_t n, rng *r)
{
    caterva_error err;
    caterva_reduce_options o = CATERVA_REDUCE_INIT;
    bool goes[AXES] = {false};
    int axes[AXES];
    int64_t n_cells, progress[2] = {0};
    for (int d = 0; d < caterva_view_ndim(view); d++)
        if ((goes[d] = rng_one_in(r, 2))) axes[o.n_axes++] = d;
    o.axes = axes;
    o.skip_nan = rng_int(r, 0, 1);
    o.progress = every_step(on_progress, progress);
    cell *cells = count_cells(view, items, n, goes, &n_cells);
    size_t size = (size_t)n_cells * sizeof(double);
    double *results = check_alloc(size), *got = check_alloc(size);
    for (int what = 0; what <= (int)CATERVA_REDUCTION_MEAN; what++) {
        progress[0] = 0;
        CHECK_OK(caterva_view_reduce(view, (caterva_reduction)what, &o, results, size, &err),
                 err);
        CHECK(progress[0] == progress[1] && progress[1] == n * (k->dtype[2] - '0'),
              "%lld of %lld", (long long)progress[0], (long long)progress[1]);
        convert(k, (caterva_reduction)what, results, n_cells, got);
        for (int64_t i = 0; i < n_cells; i++) {
            double want = want_of(&cells[i], (caterva_reduction)what, o.skip_nan);
            CHECK(is_near(got[i], want), "reduction %d of %s, cell %lld of %lld: %g, not %g",
                  what, k->dtype, (long long)i, (long long)n_cells, got[i], want);
        }
    }
    free(cells);
    free(results);
    free(got);
}

/* ---- Over everything ---------------------------------------------------------------- */

static void check_statistics(const caterva_view *view, const double *items, int64_t n)
{
    static const double range[2] = {-100, 100};
    caterva_error err;
    caterva_stats stats = CATERVA_STATS_INIT;
    int64_t counts[BINS], want[BINS] = {0};
    cell all = {0};
    double squares = 0;
    for (int64_t i = 0; i < n; i++) count(&all, items[i]);
    double mean = all.sum / (double)all.n;
    for (int64_t i = 0; i < n; i++) {
        if (!isnan(items[i])) squares += (items[i] - mean) * (items[i] - mean);
        if (!(items[i] >= -100 && items[i] <= 100)) continue;
        int bin = (int)((items[i] + 100) / 40);
        want[bin < BINS ? bin : BINS - 1]++;
    }
    CHECK_OK(caterva_view_statistics(view, NULL, &stats, &err), err);
    CHECK(stats.n_items == n && stats.n_nan == all.n_nan, "%lld items",
          (long long)stats.n_items);
    CHECK(stats.min.f == all.min && stats.max.f == all.max && stats.sum.f == all.sum,
          "%g %g %g", stats.min.f, stats.max.f, stats.sum.f);
    double spread = sqrt(squares / (double)all.n);
    CHECK(is_near(stats.mean, mean) && fabs(stats.std - spread) <= 1e-9 * spread, "%g %g",
          stats.mean, stats.std);
    CHECK_OK(caterva_view_histogram(view, range, BINS, NULL, counts, &err), err);
    CHECK(memcmp(counts, want, sizeof want) == 0, "other bins");
}

/* ---- A stop -------------------------------------------------------------------------- */

static int stop_late(void *context, int64_t done, int64_t total)
{
    (void)context;
    return done > total / 2;
}

/* Unless half of it was the last step. */
static void check_stop(const caterva_view *view)
{
    caterva_error err;
    caterva_stats stats = CATERVA_STATS_INIT;
    caterva_reduce_options o = CATERVA_REDUCE_INIT;
    o.progress = every_step(stop_late, NULL);
    caterva_status status = caterva_view_statistics(view, &o, &stats, &err);
    CHECK(status == CATERVA_ESTOPPED, "%s", caterva_status_name(status));
}

int main(int argc, char **argv)
{
    int rounds = (int)number_argument(argc, argv, 1, 60);
    rng r = rng_from_seed(seed_argument(argc, argv, 2));
    for (int i = 0; i < rounds; i++) {
        const kind *k = &kinds[i % (int)(sizeof kinds / sizeof kinds[0])];
        int64_t shape[2] = {rng_between(&r, 1, 20), rng_between(&r, 1, 20)}, n;
        caterva_array *arrays[ARRAYS];
        for (int a = 0; a < ARRAYS; a++) arrays[a] = make(k, shape, &r);
        caterva_view *view = join_all(arrays, rng_one_in(&r, 2), &r);
        double *items = read_all(view, &n);
        check_statistics(view, items, n);
        for (int a = 0; a < 4; a++) check_axes(k, view, items, n, &r);
        check_stop(view);
        free(items);
        caterva_view_free(view);
        for (int a = 0; a < ARRAYS; a++) caterva_discard(arrays[a]);
    }
    return 0;
}
