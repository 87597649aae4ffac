/* Room: engine/plan. The slabs of a copy between two partitions: arithmetic only, no
 * bytes are touched here.
 *
 * A slab is a multiple of the new chunk along each axis. How many source blocks
 * an axis decodes is known from its slab length alone, and what is decoded
 * altogether is the product over the axes. So the lengths grow from one chunk,
 * the axis first that saves most for the memory it takes, until nothing fits or
 * nothing is worth it. */
#include "engine/plan/slabs.h"

#include "base/arith.h"

#include <assert.h>
#include <string.h>

/* One axis of the request. */
typedef struct axis {
    int64_t extent; /* items to copy */
    int64_t chunk;  /* of `to` */
    int64_t first;  /* item of `from` that is copied first */
    int64_t from_chunk;
    int64_t unit;      /* items of `from` that are decoded together */
    int64_t alignment; /* multiples of both chunk and unit */
} axis;

typedef struct search {
    const cv_slab_request *request;
    int ndim;
    axis axes[CV_MAX_DIMS];
    int64_t length[CV_MAX_DIMS];
} search;

static int64_t greatest_common_divisor(int64_t a, int64_t b)
{
    while (b != 0) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

static axis axis_of(const cv_slab_request *r, int d)
{
    axis a = {
        .extent = r->stop[d] - r->start[d],
        .chunk = r->to->chunk_shape[d],
        .first = r->start[d] + r->shift[d],
        .from_chunk = r->from->chunk_shape[d],
        .unit = r->whole_chunks ? r->from->chunk_shape[d] : r->from->block_shape[d],
    };
    /* Blocks begin anew with each chunk: where they do not divide it, only the
     * edges of chunks come at equal distances. Both fit 31 bits. */
    int64_t period = a.from_chunk % a.unit == 0 ? a.unit : a.from_chunk;
    a.alignment = a.chunk / greatest_common_divisor(a.chunk, period) * period;
    return a;
}

/* ---- What a length costs ------------------------------------------------ */

/* Number of the unit, from the start of the axis, that holds item `x`. */
static int64_t unit_of(const axis *a, int64_t x)
{
    int64_t per_chunk = cv_ceil_div(a->from_chunk, a->unit);
    return x / a->from_chunk * per_chunk + x % a->from_chunk / a->unit;
}

static bool is_edge(const axis *a, int64_t x) { return x % a->from_chunk % a->unit == 0; }

/* Units decoded along the axis with slabs of this length: all once, and once
 * more for each slab edge that cuts one. Many edges are counted by a sample. */
static double decoded_units(const axis *a, int64_t length)
{
    enum { SAMPLE = 256 };
    int64_t n = unit_of(a, a->first + a->extent - 1) - unit_of(a, a->first) + 1;
    int64_t edges = cv_ceil_div(a->extent, length) - 1;
    int64_t looked = cv_min_i64(edges, SAMPLE), cut = 0;
    for (int64_t i = 1; i <= looked; i++) cut += !is_edge(a, a->first + i * length);
    if (looked == 0) return (double)n;
    return (double)n + (double)cut * ((double)edges / (double)looked);
}

static int64_t slab_bytes(const search *s)
{
    int64_t size = s->request->to->item_size; /* fits: a part of an array that does */
    for (int d = 0; d < s->ndim; d++) size *= s->length[d];
    return size;
}

static bool fits(const search *s, int d, int64_t length)
{
    assert(s->length[d] > 0 && length > 0); /* an axis without items has no slabs */
    return slab_bytes(s) / s->length[d] <= s->request->memory / length;
}

/* ---- Growing ------------------------------------------------------------ */

/* Twice as long; or up to where slabs end with the source's blocks. */
static int64_t doubled(const axis *a, int64_t length)
{
    return length > a->extent / 2 ? a->extent : length * 2;
}

static int64_t aligned(const axis *a, int64_t length)
{
    int64_t rest = a->alignment - length % a->alignment;
    return length > a->extent - rest ? a->extent : length + rest;
}

/* Decoding saved for each time that the slab grows by its own size. */
static double worth(const search *s, int d, int64_t length)
{
    const axis *a = &s->axes[d];
    if (length <= s->length[d] || !fits(s, d, length)) return 0;
    double gain = decoded_units(a, s->length[d]) / decoded_units(a, length);
    double growth = (double)length / (double)s->length[d];
    return (gain - 1) / (growth - 1);
}

/* Takes the step that saves most; false when none is worth its memory. */
static bool grow_to_save(search *s)
{
    double best = 1.0 / 16;
    int axis_found = -1;
    int64_t length_found = 0;
    for (int d = 0; d < s->ndim; d++) {
        int64_t lengths[2] = {doubled(&s->axes[d], s->length[d]),
                              aligned(&s->axes[d], s->length[d])};
        for (int i = 0; i < 2; i++) {
            double value = worth(s, d, lengths[i]);
            if (value <= best) continue;
            best = value;
            axis_found = d;
            length_found = lengths[i];
        }
    }
    if (axis_found >= 0) s->length[axis_found] = length_found;
    return axis_found >= 0;
}

/* Makes enough work for the threads, the last axis first: its items are
 * neighbours in memory. */
static bool grow_to_enough(search *s)
{
    if (slab_bytes(s) >= s->request->enough) return false;
    for (int d = s->ndim - 1; d >= 0; d--) {
        int64_t length = doubled(&s->axes[d], s->length[d]);
        if (length <= s->length[d] || !fits(s, d, length)) continue;
        s->length[d] = length;
        return true;
    }
    return false;
}

void cv_slabs_choose(const cv_slab_request *request, cv_slabs *out)
{
    search s = {.request = request, .ndim = request->to->ndim};
    *out = (cv_slabs){.ndim = s.ndim};
    for (int d = 0; d < s.ndim; d++) {
        s.axes[d] = axis_of(request, d);
        if (s.axes[d].extent == 0) return;
        s.length[d] = cv_min_i64(s.axes[d].chunk, s.axes[d].extent);
    }
    while (grow_to_save(&s)) continue;
    while (grow_to_enough(&s)) continue;

    out->n_slabs = 1;
    out->n_bytes = slab_bytes(&s);
    for (int d = 0; d < s.ndim; d++) {
        out->start[d] = request->start[d];
        out->stop[d] = request->stop[d];
        out->length[d] = s.length[d];
        out->counts[d] = cv_ceil_div(s.axes[d].extent, s.length[d]);
        out->n_slabs *= out->counts[d];
    }
}

void cv_slabs_get(const cv_slabs *slabs, int64_t k, int64_t *start, int64_t *stop)
{
    for (int d = slabs->ndim - 1; d >= 0; d--) {
        int64_t i = k % slabs->counts[d];
        k /= slabs->counts[d];
        start[d] = slabs->start[d] + i * slabs->length[d];
        stop[d] = slabs->stop[d] - start[d] > slabs->length[d] ? start[d] + slabs->length[d]
                                                               : slabs->stop[d];
    }
}
