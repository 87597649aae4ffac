/* Statistics, histograms and reductions of everything that can be selected: steps in either
 * direction, lists with repeats, masks of axes and of the array, points; also of views. The
 * oracle reads the same selection and counts it item by item.
 *
 * usage: test_reduce_selected [ROUNDS [SEED]] */
#include "caterva.h"

#include "support/check.h"
#include "support/random.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { A = 21, B = 17, C = 30, N = A * B * C, MOST = 40, BINS = 7 };
static const int64_t shape[3] = {A, B, C}, origin[3] = {0};
static int32_t items[N];

static caterva_array *make(rng *r)
{
    static const int32_t chunks[3] = {6, 5, 13}, blocks[3] = {2, 5, 4};
    static const int32_t large[3] = {A, B, C};
    caterva_error err;
    caterva_array *array;
    caterva_create_options o = CATERVA_CREATE_INIT;
    int32_t fill = 5;
    int64_t stop[3] = {rng_int(r, 0, A), rng_int(r, 0, B), C};
    o.ndim = 3;
    o.shape = shape;
    o.chunk_shape = rng_one_in(r, 3) ? large : chunks;
    o.block_shape = blocks;
    o.dtype = "<i4";
    o.fill = CATERVA_FILL_VALUE;
    o.fill_value = &fill;
    o.threads = rng_int(r, 1, 4);
    CHECK_OK(caterva_create("mem:", &o, &array, &err), err);
    for (int i = 0; i < N; i++) items[i] = rng_int(r, -1000, 1000);
    size_t size = (size_t)(stop[0] * stop[1] * stop[2]) * sizeof items[0];
    CHECK_OK(caterva_write(array, origin, stop, items, size, &err), err);
    if (rng_one_in(r, 2)) CHECK_OK(caterva_commit(array, &err), err);
    return array;
}

/* ---- What is selected ------------------------------------------------------------ */

typedef struct words {
    caterva_selection selection;
    caterva_axis axes[3];
    int64_t start[3], stop[3], lists[3][MOST], points[MOST * 3];
    uint8_t lines[3][C], mask[N];
} words;

static caterva_axis draw_axis(words *w, int d, rng *r)
{
    int64_t n = shape[d];
    for (int i = 0; i < MOST; i++) w->lists[d][i] = rng_between(r, -n, n - 1);
    for (int64_t i = 0; i < n; i++) w->lines[d][i] = (uint8_t)rng_int(r, 0, 1);
    caterva_axis axis = {.kind = (caterva_axis_kind)rng_int(r, 0, 4)};
    axis.start = rng_between(r, 0, n - 1);
    axis.stop = rng_between(r, 0, n);
    axis.step = rng_int(r, 1, 5) * (rng_one_in(r, 2) ? -1 : 1);
    if (axis.kind == CATERVA_AXIS_SLICE && rng_one_in(r, 2))
        axis.start = axis.stop = CATERVA_AXIS_OMIT;
    axis.indices = w->lists[d];
    axis.mask = w->lines[d];
    axis.n = axis.kind == CATERVA_AXIS_MASK ? n : rng_int(r, 0, MOST);
    return axis;
}

static void draw(words *w, rng *r)
{
    memset(w, 0, sizeof *w);
    w->selection = (caterva_selection)CATERVA_SELECTION_INIT;
    for (int d = 0; d < 3; d++) {
        w->start[d] = rng_between(r, 0, shape[d] - 1);
        w->stop[d] = rng_between(r, w->start[d], shape[d]);
        w->axes[d] = draw_axis(w, d, r);
    }
    for (int i = 0; i < MOST * 3; i++) w->points[i] = rng_between(r, 0, shape[i % 3] - 1);
    for (int i = 0, rare = rng_one_in(r, 2) ? 2 : 300; i < N; i++)
        w->mask[i] = (uint8_t)rng_one_in(r, rare);
    w->selection.kind = (caterva_selection_kind)rng_int(r, 0, 3);
    if (rng_one_in(r, 2)) w->selection.kind = CATERVA_SELECTION_AXES;
    w->selection.start = w->start;
    w->selection.stop = w->stop;
    w->selection.axes = w->axes;
    w->selection.n_axes = 3;
    w->selection.points = w->points;
    w->selection.n_points = rng_int(r, 0, MOST);
    w->selection.mask = w->mask;
    w->selection.mask_size = N;
}

/* What it selects, in the result's order. */
typedef struct result {
    int ndim;
    int64_t shape[CATERVA_MAX_DIMS], n;
    int32_t *items;
} result;

static result read_it(caterva_array *array, const words *w)
{
    caterva_error err;
    caterva_buffer dst = CATERVA_BUFFER_INIT;
    result got = {.n = 1};
    CHECK_OK(caterva_selection_shape(array, &w->selection, got.shape, &got.ndim, &err), err);
    for (int d = 0; d < got.ndim; d++) got.n *= got.shape[d];
    dst.size = (size_t)got.n * sizeof got.items[0];
    dst.data = got.items = check_alloc(dst.size);
    CHECK_OK(caterva_read_selection(array, &w->selection, &dst, &err), err);
    return got;
}

/* ---- Over everything ---------------------------------------------------------------- */

static void check_stats(const result *want, const caterva_stats *got)
{
    int64_t sum = 0, min = INT64_MAX, max = INT64_MIN;
    for (int64_t i = 0; i < want->n; i++) {
        sum += want->items[i];
        if (want->items[i] < min) min = want->items[i];
        if (want->items[i] > max) max = want->items[i];
    }
    CHECK(got->n_items == want->n, "%lld items", (long long)got->n_items);
    CHECK(got->sum.i == sum || want->n == 0, "sum %lld, not %lld", (long long)got->sum.i,
          (long long)sum);
    CHECK(want->n == 0 ? got->min.kind == 0 : got->min.i == min && got->max.i == max,
          "extremes %lld %lld", (long long)got->min.i, (long long)got->max.i);
    CHECK(want->n == 0 || fabs(got->mean - (double)sum / (double)want->n) < 1e-9, "mean");
}

static void check_bins(const result *want, const int64_t *got)
{
    int64_t counts[BINS] = {0};
    for (int64_t i = 0; i < want->n; i++)
        if (want->items[i] >= -700 && want->items[i] <= 700) {
            int bin = (want->items[i] + 700) / 200;
            counts[bin < BINS ? bin : BINS - 1]++;
        }
    CHECK(memcmp(counts, got, sizeof counts) == 0, "other bins");
}

static void check_everything(caterva_array *array, const words *w, const result *want)
{
    static const double range[2] = {-700, 700};
    caterva_error err;
    caterva_reduce_options o = CATERVA_REDUCE_INIT;
    caterva_stats stats = CATERVA_STATS_INIT;
    int64_t counts[BINS];
    o.selection = &w->selection;
    CHECK_OK(caterva_statistics(array, &o, &stats, &err), err);
    check_stats(want, &stats);
    CHECK_OK(caterva_histogram(array, &o, range, BINS, counts, &err), err);
    check_bins(want, counts);
}

/* ---- Along axes ------------------------------------------------------------------------ */

/* The cell of item `i`, in C order over the axes that stay. */
static int64_t cell_of(const result *want, int64_t i, const bool *goes)
{
    int64_t cell = 0, stride = 1;
    for (int d = want->ndim - 1; d >= 0; d--) {
        if (!goes[d]) {
            cell += i % want->shape[d] * stride;
            stride *= want->shape[d];
        }
        i /= want->shape[d];
    }
    return cell;
}

static void check_sums(caterva_array *array, const words *w, const result *want, rng *r)
{
    caterva_error err;
    caterva_reduce_options o = CATERVA_REDUCE_INIT;
    bool goes[CATERVA_MAX_DIMS] = {false};
    int axes[CATERVA_MAX_DIMS];
    int64_t n_cells = 1;
    for (int d = 0; d < want->ndim; d++) {
        goes[d] = rng_one_in(r, 2);
        if (goes[d]) axes[o.n_axes++] = d;
        if (!goes[d]) n_cells *= want->shape[d];
    }
    o.selection = &w->selection;
    o.axes = axes;
    size_t size = (size_t)n_cells * sizeof(int64_t);
    int64_t *sums = check_alloc(size), *got = check_alloc(size);
    memset(sums, 0, size);
    for (int64_t i = 0; i < want->n; i++) sums[cell_of(want, i, goes)] += want->items[i];
    caterva_status status = caterva_reduce(array, CATERVA_REDUCTION_SUM, &o, got, size, &err);
    bool is_list = w->selection.kind >= CATERVA_SELECTION_POINTS;
    if (is_list && !goes[0]) {
        CHECK(status == CATERVA_EUNSUPPORTED, "%s", caterva_status_name(status));
    } else {
        CHECK(status == CATERVA_OK, "%s", err.message);
        CHECK(memcmp(got, sums, size) == 0, "other sums of %lld cells", (long long)n_cells);
    }
    if (status == CATERVA_OK && want->n > 0) {
        int32_t *most = check_alloc(size);
        CHECK_OK(caterva_reduce(array, CATERVA_REDUCTION_MAX, &o, most, size, &err), err);
        for (int64_t i = 0; i < want->n; i++)
            CHECK(want->items[i] <= most[cell_of(want, i, goes)], "not the maximum");
        free(most);
    }
    free(sums);
    free(got);
}

int main(int argc, char **argv)
{
    static words w; /* large */
    int rounds = (int)number_argument(argc, argv, 1, 60);
    rng r = rng_from_seed(seed_argument(argc, argv, 2));
    for (int i = 0; i < rounds; i++) {
        caterva_array *array = make(&r);
        for (int k = 0; k < 20; k++) {
            draw(&w, &r);
            result want = read_it(array, &w);
            check_everything(array, &w, &want);
            check_sums(array, &w, &want, &r);
            free(want.items);
        }
        caterva_discard(array);
    }
    return 0;
}
