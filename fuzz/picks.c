#include "picks.h"

/* ---- One axis: which of its items, in which order ------------------------- */

typedef struct axis_items {
    int64_t n;
    int64_t *at;
} axis_items;

static int64_t clamp(int64_t value, int64_t low, int64_t high)
{
    return value < low ? low : value > high ? high : value;
}

/* A bound as in Python: OMIT, from the end if negative, clamped to [low, high]. */
static int64_t bound(int64_t value, int64_t n, int64_t omitted, int64_t low, int64_t high)
{
    if (value == CATERVA_AXIS_OMIT) return omitted;
    return clamp(value < 0 ? value + n : value, low, high);
}

static int64_t draw_bound(fuzz_input *in, int64_t n)
{
    return fuzz_byte(in) % 4 ? fuzz_between(in, -n - 2, n + 2) : CATERVA_AXIS_OMIT;
}

static void take_slice(fuzz_input *in, int64_t n, caterva_axis *axis, axis_items *out)
{
    axis->kind = CATERVA_AXIS_SLICE;
    axis->start = draw_bound(in, n);
    axis->stop = draw_bound(in, n);
    axis->step = fuzz_between(in, 1, 4) * (fuzz_byte(in) % 2 ? -1 : 1);
    if (axis->step > 0) {
        int64_t stop = bound(axis->stop, n, n, 0, n);
        for (int64_t i = bound(axis->start, n, 0, 0, n); i < stop; i += axis->step)
            out->at[out->n++] = i;
    } else {
        int64_t stop = bound(axis->stop, n, -1, -1, n - 1);
        for (int64_t i = bound(axis->start, n, n - 1, -1, n - 1); i > stop; i += axis->step)
            out->at[out->n++] = i;
    }
}

/* An index in [-n, n - 1]; sets *at to the same index counted from the start. */
static int64_t draw_index(fuzz_input *in, int64_t n, int64_t *at)
{
    int64_t index = fuzz_between(in, -n, n - 1);
    *at = index < 0 ? index + n : index;
    return index;
}

static uint8_t *draw_mask(fuzz_input *in, int64_t n)
{
    uint8_t *mask = fuzz_alloc((size_t)n);
    int64_t every = fuzz_between(in, 1, 9), first = fuzz_between(in, 0, 8);
    for (int64_t i = 0; i < n; i++) mask[i] = (i + first) % every == 0;
    return mask;
}

/* Returns false if the axis is dropped from the result. */
static int take_axis(fuzz_input *in, int64_t n, int only_slices, pick *p, int d,
                     axis_items *out)
{
    caterva_axis *axis = &p->axes[d];
    int kind = fuzz_byte(in) % (only_slices ? 3 : 5);
    if (kind == CATERVA_AXIS_INDEX && n > 0) {
        axis->kind = CATERVA_AXIS_INDEX;
        axis->start = draw_index(in, n, &out->at[out->n++]);
        return 0;
    }
    if (kind == CATERVA_AXIS_SLICE) {
        take_slice(in, n, axis, out);
    } else if (kind == CATERVA_AXIS_LIST) {
        axis->kind = CATERVA_AXIS_LIST;
        axis->indices = p->lists[d];
        axis->n = n > 0 ? fuzz_between(in, 0, PICK_LIST) : 0;
        for (int64_t i = 0; i < axis->n; i++)
            p->lists[d][i] = draw_index(in, n, &out->at[out->n++]);
    } else if (kind == CATERVA_AXIS_MASK) {
        axis->kind = CATERVA_AXIS_MASK;
        axis->mask = p->masks[d] = draw_mask(in, n);
        axis->n = n;
        for (int64_t i = 0; i < n; i++)
            if (axis->mask[i]) out->at[out->n++] = i;
    } else {
        axis->kind = CATERVA_AXIS_ALL;
        for (int64_t i = 0; i < n; i++) out->at[out->n++] = i;
    }
    return 1;
}

/* ---- Axes together -------------------------------------------------------- */

/* All combinations, the last axis fastest. */
static void combine(int ndim, const int64_t *shape, const axis_items *axes, pick *out)
{
    out->n = 1;
    for (int d = 0; d < ndim; d++) out->n *= axes[d].n;
    out->items = fuzz_alloc((size_t)out->n * sizeof *out->items);
    for (int64_t i = 0; i < out->n; i++) {
        int64_t rest = i, stride = 1;
        for (int d = ndim - 1; d >= 0; d--) {
            out->items[i] += axes[d].at[rest % axes[d].n] * stride;
            rest /= axes[d].n;
            stride *= shape[d];
        }
    }
}

static void pick_axes(fuzz_input *in, int ndim, const int64_t *shape, int only_slices,
                      pick *out)
{
    axis_items axes[PICK_MAX_DIMS] = {{0}};
    out->selection.kind = CATERVA_SELECTION_AXES;
    out->selection.axes = out->axes;
    out->selection.n_axes = (int)fuzz_between(in, 0, ndim); /* the rest: whole */
    for (int d = 0; d < ndim; d++) {
        axes[d].at = fuzz_alloc((size_t)(shape[d] + PICK_LIST) * sizeof *axes[d].at);
        int stays = 1;
        if (d < out->selection.n_axes)
            stays = take_axis(in, shape[d], only_slices, out, d, &axes[d]);
        else
            for (int64_t i = 0; i < shape[d]; i++) axes[d].at[axes[d].n++] = i;
        if (stays) out->shape[out->ndim++] = axes[d].n;
    }
    combine(ndim, shape, axes, out);
    for (int d = 0; d < ndim; d++) free(axes[d].at);
}

static void pick_box(fuzz_input *in, int ndim, const int64_t *shape, pick *out)
{
    axis_items axes[PICK_MAX_DIMS] = {{0}};
    out->selection.kind = CATERVA_SELECTION_BOX;
    out->selection.start = out->start;
    out->selection.stop = out->stop;
    out->ndim = ndim;
    for (int d = 0; d < ndim; d++) {
        int64_t a = fuzz_between(in, 0, shape[d]), b = fuzz_between(in, 0, shape[d]);
        out->start[d] = a < b ? a : b;
        out->stop[d] = a < b ? b : a;
        out->shape[d] = axes[d].n = out->stop[d] - out->start[d];
        axes[d].at = fuzz_alloc((size_t)axes[d].n * sizeof *axes[d].at);
        for (int64_t i = 0; i < axes[d].n; i++) axes[d].at[i] = out->start[d] + i;
    }
    combine(ndim, shape, axes, out);
    for (int d = 0; d < ndim; d++) free(axes[d].at);
}

static int64_t count(int ndim, const int64_t *shape)
{
    int64_t n = 1;
    for (int d = 0; d < ndim; d++) n *= shape[d];
    return n;
}

static void pick_points(fuzz_input *in, int ndim, const int64_t *shape, pick *out)
{
    out->n = count(ndim, shape) > 0 ? fuzz_between(in, 0, 40) : 0;
    out->items = fuzz_alloc((size_t)out->n * sizeof *out->items);
    out->points = fuzz_alloc((size_t)(out->n * ndim) * sizeof *out->points);
    for (int64_t i = 0; i < out->n; i++)
        for (int d = 0; d < ndim; d++) {
            int64_t at;
            out->points[i * ndim + d] = draw_index(in, shape[d], &at);
            out->items[i] = out->items[i] * shape[d] + at;
        }
    out->selection.kind = CATERVA_SELECTION_POINTS;
    out->selection.points = out->points;
    out->selection.n_points = out->n;
    out->ndim = 1;
    out->shape[0] = out->n;
}

static void pick_mask(fuzz_input *in, int ndim, const int64_t *shape, pick *out)
{
    int64_t n = count(ndim, shape);
    out->items = fuzz_alloc((size_t)n * sizeof *out->items);
    out->mask = draw_mask(in, n);
    for (int64_t i = 0; i < n; i++)
        if (out->mask[i]) out->items[out->n++] = i;
    out->selection.kind = CATERVA_SELECTION_MASK;
    out->selection.mask = out->mask;
    out->selection.mask_size = (size_t)n;
    out->ndim = 1;
    out->shape[0] = out->n;
}

/* ---- To callers ------------------------------------------------------------- */

static void begin(pick *out)
{
    *out = (pick){.n = 0};
    out->selection = (caterva_selection)CATERVA_SELECTION_INIT;
}

void pick_any(fuzz_input *in, int ndim, const int64_t *shape, pick *out)
{
    begin(out);
    switch (fuzz_byte(in) % 5) {
    case 0: pick_box(in, ndim, shape, out); break;
    case 1: pick_points(in, ndim, shape, out); break;
    case 2: pick_mask(in, ndim, shape, out); break;
    default: pick_axes(in, ndim, shape, 0, out); break;
    }
}

void pick_slices(fuzz_input *in, int ndim, const int64_t *shape, pick *out)
{
    begin(out);
    pick_axes(in, ndim, shape, 1, out);
}

void pick_transpose(pick *p)
{
    int64_t *items = fuzz_alloc((size_t)p->n * sizeof *items), shape[PICK_MAX_DIMS];
    for (int d = 0; d < p->ndim; d++) shape[d] = p->shape[p->ndim - 1 - d];
    for (int64_t i = 0; i < p->n; i++) {
        int64_t rest = i, from = 0, stride = 1, at[PICK_MAX_DIMS];
        for (int d = p->ndim - 1; d >= 0; d--) {
            at[p->ndim - 1 - d] = rest % shape[d];
            rest /= shape[d];
        }
        for (int d = p->ndim - 1; d >= 0; d--) {
            from += at[d] * stride;
            stride *= p->shape[d];
        }
        items[i] = p->items[from];
    }
    free(p->items);
    p->items = items;
    memcpy(p->shape, shape, sizeof shape);
}

void pick_free(pick *p)
{
    for (int d = 0; d < PICK_MAX_DIMS; d++) free(p->masks[d]);
    free(p->items);
    free(p->points);
    free(p->mask);
}
