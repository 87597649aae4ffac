/* Room: engine/plan. Normalises callers' selections. Python's rules for slices, negative
 * indices and clamped bounds are implemented only here. */
#include "engine/plan/selection.h"

#include "base/arith.h"

/* ---- One axis ----------------------------------------------------------- */

static cv_status check_index(int64_t index, int axis, int64_t length, cv_error *err)
{
    if (index >= -length && index < length) return CV_OK;
    return cv_fail(err, CATERVA_ERANGE, -1,
                   "index %lld is out of range for axis %d with %lld items", (long long)index,
                   axis, (long long)length);
}

/* Resolves a bound of a slice: `missing` if it is omitted, else counted from the end if negative,
 * and clamped into [lowest, highest]. */
static int64_t clamp_bound(int64_t bound, int64_t missing, int64_t length, int64_t lowest,
                           int64_t highest)
{
    if (bound == CATERVA_AXIS_OMIT) return missing;
    return cv_max_i64(lowest, cv_min_i64(cv_index_from_start(bound, length), highest));
}

static void init_slice(const caterva_axis *words, int64_t length, cv_axis *out)
{
    bool back = words->step < 0;
    int64_t step = cv_max_i64(words->step, -INT64_MAX); /* so that it can be negated */
    if (step == 0) step = 1;
    int64_t lowest = back ? -1 : 0, highest = back ? length - 1 : length;
    int64_t first = back ? highest : lowest, end = back ? lowest : highest;
    int64_t start = clamp_bound(words->start, first, length, lowest, highest);
    int64_t stop = clamp_bound(words->stop, end, length, lowest, highest);
    int64_t span = back ? start - stop : stop - start;
    *out = (cv_axis){.start = start, .step = step};
    if (span > 0) out->n = (span - 1) / (back ? -step : step) + 1;
    if (out->n <= 1) out->step = 1; /* with step 1 the selection can be a box */
}

/* Replaces a list with a constant step by a slice, which needs no memory and copies faster. */
static cv_status init_list(const caterva_axis *words, int axis, int64_t length, cv_axis *out,
                           cv_error *err)
{
    if (words->n < 0 || (words->n > 0 && !words->indices))
        return cv_fail(err, CATERVA_EINVAL, -1, "axis %d: the list of %lld indices is %s",
                       axis, (long long)words->n, words->n < 0 ? "invalid" : "NULL");
    const int64_t *list = words->indices;
    *out = (cv_axis){.n = words->n, .step = 1};
    for (int64_t i = 0; i < words->n; i++) CV_TRY(check_index(list[i], axis, length, err));
    if (words->n == 0) return CV_OK;
    out->start = cv_index_from_start(list[0], length);
    if (words->n == 1) return CV_OK;
    out->step = cv_index_from_start(list[1], length) - out->start;
    bool even = out->step != 0;
    for (int64_t i = 2; even && i < words->n; i++)
        even =
            cv_index_from_start(list[i], length) - cv_index_from_start(list[i - 1], length) ==
            out->step;
    if (!even) out->list = list;
    return CV_OK;
}

static cv_status init_mask(const caterva_axis *words, int axis, int64_t length, cv_axis *out,
                           cv_error *err)
{
    if (words->n != length || (length > 0 && !words->mask))
        return cv_fail(err, words->mask ? CATERVA_ESHAPE : CATERVA_EINVAL, -1,
                       "axis %d has %lld items, its mask %lld bytes%s", axis,
                       (long long)length, (long long)words->n, words->mask ? "" : " at NULL");
    int64_t last = 0;
    *out = (cv_axis){.step = 1};
    for (int64_t i = 0; i < length; i++) {
        if (!words->mask[i]) continue;
        if (out->n++ == 0) out->start = i;
        last = i;
    }
    bool run = out->n == 0 || last - out->start + 1 == out->n;
    if (!run) out->mask = words->mask;
    return CV_OK;
}

static cv_status init_axis(const caterva_axis *words, int axis, int64_t length, cv_axis *out,
                           cv_error *err)
{
    if (words->reserved[0] != 0 || words->reserved[1] != 0)
        return cv_fail(
            err, CATERVA_EINVAL, -1,
            "the reserved members of axis %d are not 0: start from a zeroed struct", axis);
    switch (words->kind) {
    case CATERVA_AXIS_ALL: *out = (cv_axis){.n = length, .step = 1}; return CV_OK;
    case CATERVA_AXIS_INDEX:
        CV_TRY(check_index(words->start, axis, length, err));
        *out = (cv_axis){.n = 1,
                         .start = cv_index_from_start(words->start, length),
                         .step = 1,
                         .dropped = true};
        return CV_OK;
    case CATERVA_AXIS_SLICE: init_slice(words, length, out); return CV_OK;
    case CATERVA_AXIS_LIST: return init_list(words, axis, length, out, err);
    case CATERVA_AXIS_MASK: return init_mask(words, axis, length, out, err);
    }
    return cv_fail(err, CATERVA_EINVAL, -1, "axis %d has a selection of unknown kind %d",
                   axis, (int)words->kind);
}

/* ---- Kinds of selections ------------------------------------------------- */

static cv_status init_box(cv_selection *s, const caterva_selection *words, cv_error *err)
{
    int ndim = s->grid->ndim;
    bool whole = !words->start && !words->stop;
    if (!whole && ndim > 0 && (!words->start || !words->stop))
        return cv_fail(err, CATERVA_EINVAL, -1, "the %s of the box is NULL",
                       words->start ? "stop" : "start");
    s->kind = CATERVA_SELECTION_AXES;
    for (int d = 0; d < ndim; d++) {
        int64_t length = s->grid->shape[d];
        int64_t start = whole ? 0 : words->start[d], stop = whole ? length : words->stop[d];
        if (start < 0 || stop > length || start > stop)
            return cv_fail(err, CATERVA_ERANGE, -1,
                           "box [%lld, %lld) on axis %d does not lie in [0, %lld)",
                           (long long)start, (long long)stop, d, (long long)length);
        s->axes[d] = (cv_axis){.n = stop - start, .start = start, .step = 1};
    }
    return CV_OK;
}

static cv_status init_axes(cv_selection *s, const caterva_selection *words, cv_error *err)
{
    static const caterva_axis all = {.kind = CATERVA_AXIS_ALL};
    if (words->n_axes < 0 || words->n_axes > s->grid->ndim)
        return cv_fail(err, words->n_axes < 0 ? CATERVA_EINVAL : CATERVA_ERANGE, -1,
                       "the selection has %d axes, the array has %d dimensions",
                       words->n_axes, s->grid->ndim);
    if (words->n_axes > 0 && !words->axes)
        return cv_fail(err, CATERVA_EINVAL, -1, "the %d axes of the selection are NULL",
                       words->n_axes);
    for (int d = 0; d < s->grid->ndim; d++)
        CV_TRY(init_axis(d < words->n_axes ? &words->axes[d] : &all, d, s->grid->shape[d],
                         &s->axes[d], err));
    return CV_OK;
}

static cv_status init_points(cv_selection *s, const caterva_selection *words, cv_error *err)
{
    const cv_grid *grid = s->grid;
    if (words->n_points < 0 || (words->n_points > 0 && grid->ndim > 0 && !words->points))
        return cv_fail(err, CATERVA_EINVAL, -1, "the list of %lld points is %s",
                       (long long)words->n_points, words->n_points < 0 ? "invalid" : "NULL");
    s->points = words->points;
    s->ndim = 1;
    s->shape[0] = words->n_points;
    const int64_t *point = words->points;
    for (int64_t i = 0; i < words->n_points; i++)
        for (int d = 0; d < grid->ndim; d++, point++)
            if (*point < -grid->shape[d] || *point >= grid->shape[d])
                return cv_fail(err, CATERVA_ERANGE, -1,
                               "point %lld: index %lld is out of range for axis %d with "
                               "%lld items",
                               (long long)i, (long long)*point, d, (long long)grid->shape[d]);
    return CV_OK;
}

/* Counts in bytes as long as a byte can hold the sum, so that the compiler uses wide vectors. */
int64_t cv_count_true(const uint8_t *mask, int64_t n)
{
    int64_t count = 0;
    for (int64_t i = 0; i < n;) {
        int64_t end = cv_min_i64(i + UINT8_MAX, n);
        uint8_t some = 0;
        for (; i < end; i++) some = (uint8_t)(some + (mask[i] != 0));
        count += some;
    }
    return count;
}

static cv_status init_array_mask(cv_selection *s, const caterva_selection *words,
                                 cv_error *err)
{
    int64_t n = s->grid->n_items;
    if (words->mask_size != (uint64_t)n || (n > 0 && !words->mask))
        return cv_fail(err, words->mask ? CATERVA_ESHAPE : CATERVA_EINVAL, -1,
                       "the array has %lld items, the mask %zu bytes%s", (long long)n,
                       words->mask_size, words->mask ? "" : " at NULL");
    s->mask = words->mask;
    s->ndim = 1;
    s->shape[0] = cv_count_true(words->mask, n);
    return CV_OK;
}

static cv_status init_kind(cv_selection *s, const caterva_selection *words, cv_error *err)
{
    switch (words->kind) {
    case CATERVA_SELECTION_BOX: return init_box(s, words, err);
    case CATERVA_SELECTION_AXES: return init_axes(s, words, err);
    case CATERVA_SELECTION_POINTS: return init_points(s, words, err);
    case CATERVA_SELECTION_MASK: return init_array_mask(s, words, err);
    }
    return cv_fail(err, CATERVA_EINVAL, -1, "the selection has the unknown kind %d",
                   (int)words->kind);
}

/* Counts the items of the result: 0 if an axis is empty, even if other axes overflow. */
static cv_status count_items(cv_selection *s, cv_error *err)
{
    int64_t bytes = s->grid->item_size;
    bool fits = true;
    s->n_items = 1;
    for (int d = 0; d < s->ndim; d++) {
        if (s->shape[d] == 0) {
            s->n_items = 0;
            return CV_OK;
        }
        fits = cv_mul_i64(s->n_items, s->shape[d], &s->n_items) && fits;
        fits = cv_mul_i64(bytes, s->shape[d], &bytes) && fits;
    }
    if (fits) return CV_OK;
    return cv_fail(err, CATERVA_EINVAL, -1, "the selection's size does not fit 64 bits");
}

cv_status cv_selection_init(cv_selection *selection, const cv_grid *grid,
                            const caterva_selection *words, cv_error *err)
{
    static const caterva_selection everything = CATERVA_SELECTION_INIT;
    if (!words) words = &everything;
    *selection = (cv_selection){.grid = grid, .kind = words->kind};
    CV_TRY(init_kind(selection, words, err));
    if (selection->kind == CATERVA_SELECTION_AXES)
        for (int d = 0; d < grid->ndim; d++)
            if (!selection->axes[d].dropped)
                selection->shape[selection->ndim++] = selection->axes[d].n;
    return count_items(selection, err);
}
