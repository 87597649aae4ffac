/* Statistics, histograms and reductions of all kinds of selections: steps in either
 * direction, lists with repeats, masks of axes and of the array, points; also of views, and
 * of views of several arrays. The oracle reads the same selection and counts it item by item.
 *
 * usage: test_reduce_selected [ROUNDS [SEED]] */
#include "caterva.h"
#include "caterva_upkeep.h"

#include "support/check.h"
#include "support/random.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { A = 21, B = 17, C = 30, N = A * B * C, LINE = 2 * C, MOST = 40, BINS = 7 };
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
    o.dtype = "=i4";
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

/* ---- Whose items ----------------------------------------------------------------- */

/* The array; or a view with permuted axes, a step and a new axis; or one of two arrays. */
typedef struct scene {
    caterva_array *array;
    caterva_view *view;
    bool turned;
    int ndim;
    const int64_t *shape;
    int64_t n_items;
} scene;

static scene look_at(caterva_array *array, bool turned, rng *r)
{
    caterva_error err;
    caterva_view *whole, *order, *step;
    scene s = {.array = array, .turned = turned, .n_items = 1};
    CHECK_OK(caterva_view_of(array, &whole, &err), err);
    if (turned) {
        caterva_axis axes[2] = {{.kind = CATERVA_AXIS_ALL}, {.kind = CATERVA_AXIS_SLICE}};
        axes[1].start = axes[1].stop = CATERVA_AXIS_OMIT;
        axes[1].step = -rng_int(r, 1, 3);
        CHECK_OK(caterva_view_transpose(whole, (int[]){1, 2, 0}, &order, &err), err);
        CHECK_OK(caterva_view_select(order, axes, 2, &step, &err), err);
        CHECK_OK(caterva_view_expand(step, rng_int(r, 0, 3), &s.view, &err), err);
        caterva_view_free(whole);
        caterva_view_free(order);
        caterva_view_free(step);
    } else {
        s.view = whole;
    }
    s.ndim = caterva_view_ndim(s.view);
    s.shape = caterva_view_shape(s.view);
    for (int d = 0; d < s.ndim; d++) s.n_items *= s.shape[d];
    return s;
}

static caterva_view *slice_of(const caterva_view *view, int axis, int64_t start, int64_t stop)
{
    caterva_error err;
    caterva_view *out;
    caterva_axis axes[3] = {{.kind = CATERVA_AXIS_ALL}};
    axes[axis] =
        (caterva_axis){.kind = CATERVA_AXIS_SLICE, .start = start, .stop = stop, .step = 1};
    CHECK_OK(caterva_view_select(view, axes, axis + 1, &out, &err), err);
    return out;
}

/* Part of the first array, the second, the rest of the first; or both, stacked. */
static caterva_view *join_of(const caterva_view *a, const caterva_view *b, rng *r)
{
    caterva_error err;
    caterva_view *out;
    int axis = rng_int(r, 0, 2);
    int64_t cut = rng_between(r, 0, shape[axis]);
    caterva_view *head = slice_of(a, axis, 0, cut),
                 *tail = slice_of(a, axis, cut, shape[axis]);
    const caterva_view *both[2] = {a, b}, *three[3] = {head, b, tail};
    if (rng_one_in(r, 2))
        CHECK_OK(caterva_view_stack(both, 2, rng_int(r, 0, 3), &out, &err), err);
    else
        CHECK_OK(caterva_view_concat(three, 3, axis, &out, &err), err);
    caterva_view_free(head);
    caterva_view_free(tail);
    return out;
}

/* The join, with permuted axes and a step along the first of them. */
static scene look_at_both(caterva_array *first, caterva_array *second, rng *r)
{
    caterva_error err;
    caterva_view *a, *b, *join, *order;
    scene s = {.array = first, .turned = true, .n_items = 1};
    caterva_axis axis = {.kind = CATERVA_AXIS_SLICE, .step = -rng_int(r, 1, 2)};
    axis.start = axis.stop = CATERVA_AXIS_OMIT;
    CHECK_OK(caterva_view_of(first, &a, &err), err);
    CHECK_OK(caterva_view_of(second, &b, &err), err);
    join = join_of(a, b, r);
    CHECK_OK(caterva_view_transpose(join, NULL, &order, &err), err);
    CHECK_OK(caterva_view_select(order, &axis, 1, &s.view, &err), err);
    s.ndim = caterva_view_ndim(s.view);
    s.shape = caterva_view_shape(s.view);
    for (int d = 0; d < s.ndim; d++) s.n_items *= s.shape[d];
    caterva_view_free(a);
    caterva_view_free(b);
    caterva_view_free(join);
    caterva_view_free(order);
    return s;
}

/* ---- What is selected ------------------------------------------------------------ */

enum { AXES = 4 };

typedef struct words {
    caterva_selection selection;
    caterva_axis axes[AXES];
    int64_t start[AXES], stop[AXES], lists[AXES][MOST], points[MOST * AXES];
    uint8_t lines[AXES][LINE], mask[2 * N];
} words;

static caterva_axis draw_axis(words *w, const scene *s, int d, rng *r)
{
    int64_t n = s->shape[d];
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
    axis.n = axis.kind == CATERVA_AXIS_MASK ? n : rng_int(r, 0, n == 1 ? 1 : MOST);
    return axis;
}

static void draw(words *w, const scene *s, rng *r)
{
    memset(w, 0, sizeof *w);
    w->selection = (caterva_selection)CATERVA_SELECTION_INIT;
    for (int d = 0; d < s->ndim; d++) {
        w->start[d] = rng_between(r, 0, s->shape[d] - 1);
        w->stop[d] = rng_between(r, w->start[d], s->shape[d]);
        w->axes[d] = draw_axis(w, s, d, r);
    }
    for (int i = 0; i < MOST * s->ndim; i++)
        w->points[i] = rng_between(r, 0, s->shape[i % s->ndim] - 1);
    int rare = rng_one_in(r, 2) ? 2 : 300;
    for (int64_t i = 0; i < s->n_items; i++) w->mask[i] = (uint8_t)rng_one_in(r, rare);
    w->selection.kind = (caterva_selection_kind)rng_int(r, 0, 3);
    if (rng_one_in(r, 2)) w->selection.kind = CATERVA_SELECTION_AXES;
    w->selection.start = w->start;
    w->selection.stop = w->stop;
    w->selection.axes = w->axes;
    w->selection.n_axes = s->ndim;
    w->selection.points = w->points;
    w->selection.n_points = rng_int(r, 0, MOST);
    w->selection.mask = w->mask;
    w->selection.mask_size = (size_t)s->n_items;
}

/* The selected items, in the order of the result. */
typedef struct result {
    int ndim;
    int64_t shape[AXES], n;
    int32_t *items;
} result;

static int64_t length_of(const caterva_axis *axis, int64_t n)
{
    int64_t count = 0;
    switch (axis->kind) {
    case CATERVA_AXIS_ALL: return n;
    case CATERVA_AXIS_LIST: return axis->n;
    case CATERVA_AXIS_MASK:
        for (int64_t i = 0; i < n; i++) count += axis->mask[i];
        return count;
    default: break;
    }
    bool back = axis->step < 0, open = axis->start == CATERVA_AXIS_OMIT;
    int64_t start = open ? (back ? n - 1 : 0) : axis->start;
    int64_t stop = open ? (back ? -1 : n) : axis->stop;
    for (int64_t i = start; back ? i > stop : i < stop; i += axis->step) count++;
    return count;
}

static void shape_of(const words *w, const scene *s, result *out)
{
    out->ndim = 0;
    for (int d = 0; d < s->ndim && w->selection.kind <= CATERVA_SELECTION_AXES; d++) {
        bool box = w->selection.kind == CATERVA_SELECTION_BOX;
        if (!box && w->axes[d].kind == CATERVA_AXIS_INDEX) continue;
        out->shape[out->ndim++] =
            box ? w->stop[d] - w->start[d] : length_of(&w->axes[d], s->shape[d]);
    }
    if (w->selection.kind == CATERVA_SELECTION_POINTS)
        out->shape[out->ndim++] = w->selection.n_points;
    if (w->selection.kind == CATERVA_SELECTION_MASK) {
        out->shape[out->ndim++] = 0;
        for (int64_t i = 0; i < s->n_items; i++) out->shape[0] += w->mask[i];
    }
    out->n = 1;
    for (int d = 0; d < out->ndim; d++) out->n *= out->shape[d];
}

static result read_it(const scene *s, const words *w)
{
    caterva_error err;
    caterva_buffer dst = CATERVA_BUFFER_INIT;
    result got;
    shape_of(w, s, &got);
    dst.ndim = got.ndim;
    dst.shape = got.shape;
    dst.size = (size_t)got.n * sizeof got.items[0];
    dst.data = got.items = check_alloc(dst.size);
    CHECK_OK(caterva_view_read(s->view, &w->selection, &dst, &err), err);
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

static void check_everything(const scene *s, const words *w, const result *want)
{
    static const double range[2] = {-700, 700};
    caterva_error err;
    caterva_reduce_options o = CATERVA_REDUCE_INIT;
    caterva_stats stats = CATERVA_STATS_INIT;
    int64_t counts[BINS];
    o.selection = &w->selection;
    CHECK_OK(s->turned ? caterva_view_statistics(s->view, &o, &stats, &err)
                       : caterva_statistics(s->array, &o, &stats, &err),
             err);
    check_stats(want, &stats);
    CHECK_OK(s->turned ? caterva_view_histogram(s->view, range, BINS, &o, counts, &err)
                       : caterva_histogram(s->array, range, BINS, &o, counts, &err),
             err);
    check_bins(want, counts);
}

/* ---- Along axes ------------------------------------------------------------------------ */

/* The cell of item `i`, in C order over the axes that are kept. */
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

static caterva_status reduce(const scene *s, caterva_reduction what,
                             const caterva_reduce_options *o, void *dst, size_t size,
                             caterva_error *err)
{
    return s->turned ? caterva_view_reduce(s->view, what, o, dst, size, err)
                     : caterva_reduce(s->array, what, o, dst, size, err);
}

static void check_sums(const scene *s, const words *w, const result *want, rng *r)
{
    caterva_error err;
    caterva_reduce_options o = CATERVA_REDUCE_INIT;
    bool goes[AXES] = {false};
    int axes[AXES];
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
    caterva_status status = reduce(s, CATERVA_REDUCTION_SUM, &o, got, size, &err);
    bool is_list = w->selection.kind >= CATERVA_SELECTION_POINTS;
    if (is_list && !goes[0]) {
        CHECK(status == CATERVA_EUNSUPPORTED, "%s", caterva_status_name(status));
    } else {
        CHECK(status == CATERVA_OK, "%s", err.message);
        CHECK(memcmp(got, sums, size) == 0, "other sums of %lld cells", (long long)n_cells);
    }
    if (status == CATERVA_OK && want->n > 0) {
        int32_t *most = check_alloc(size);
        CHECK_OK(reduce(s, CATERVA_REDUCTION_MAX, &o, most, size, &err), err);
        for (int64_t i = 0; i < want->n; i++)
            CHECK(want->items[i] <= most[cell_of(want, i, goes)], "not the maximum");
        free(most);
    }
    free(sums);
    free(got);
}

/* What a view refuses. */
static void check_refusals(rng *r)
{
    static const int64_t twice[2] = {0, 0}, smaller[3] = {A, B, 1};
    caterva_error err;
    caterva_array *array = make(r);
    caterva_view *whole, *join, *wide, *deep;
    caterva_stats stats = CATERVA_STATS_INIT;
    caterva_reduce_options o = CATERVA_REDUCE_INIT;
    caterva_selection s = CATERVA_SELECTION_INIT;
    caterva_axis axis = {.kind = CATERVA_AXIS_LIST, .indices = twice, .n = 2};
    CHECK_OK(caterva_view_of(array, &whole, &err), err);
    const caterva_view *both[2] = {whole, whole};
    CHECK_OK(caterva_view_concat(both, 2, 0, &join, &err), err);
    CHECK_OK(caterva_view_expand(whole, 0, &wide, &err), err);
    CHECK_OK(caterva_view_expand(join, 0, &deep, &err), err);
    s.kind = CATERVA_SELECTION_AXES;
    s.axes = &axis;
    s.n_axes = 1;
    o.selection = &s;
    CHECK(caterva_view_statistics(wide, &o, &stats, &err) == CATERVA_EUNSUPPORTED, "twice");
    CHECK(caterva_view_statistics(deep, &o, &stats, &err) == CATERVA_EUNSUPPORTED, "twice");
    CHECK_OK(caterva_resize(array, smaller, &err), err);
    CHECK(caterva_view_statistics(whole, NULL, &stats, &err) == CATERVA_ESTALE, "stale");
    CHECK(caterva_view_statistics(join, NULL, &stats, &err) == CATERVA_ESTALE, "stale");
    caterva_view_free(deep);
    caterva_view_free(whole);
    caterva_view_free(join);
    caterva_view_free(wide);
    caterva_discard(array);
}

int main(int argc, char **argv)
{
    static words w; /* large */
    int rounds = (int)number_argument(argc, argv, 1, 90);
    rng r = rng_from_seed(seed_argument(argc, argv, 2));
    check_refusals(&r);
    for (int i = 0; i < rounds; i++) {
        caterva_array *array = make(&r);
        caterva_array *other = make(&r);
        scene s = i % 3 == 2 ? look_at_both(array, other, &r) : look_at(array, i % 3, &r);
        for (int k = 0; k < 20; k++) {
            draw(&w, &s, &r);
            result want = read_it(&s, &w);
            check_everything(&s, &w, &want);
            check_sums(&s, &w, &want, &r);
            free(want.items);
        }
        caterva_view_free(s.view);
        caterva_discard(array);
        caterva_discard(other);
    }
    return 0;
}
