/* Asynchronous reads of views, drawn at random: of one array, and of several in nested joins.
 * The items equal those of caterva_view_read; on_done is called once for each. */
#ifndef TEST_VIEW_ORDERS_H
#define TEST_VIEW_ORDERS_H

#include "caterva.h"
#include "caterva_store.h"

#include "support/aligned.h"
#include "support/check.h"
#include "support/random.h"
#include "support/scratch.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ARRAYS = 4, MOST_AXES = 4, MOST_LISTED = 12, GUARD = 16, SIDE = 24 };

/* ---- Arrays and views ------------------------------------------------------------- */

/* Each item is its number in the array and, in the upper bits, the array's number. */
static inline caterva_array *make_numbered(const char *url, int number, const int64_t *shape,
                                           rng *r)
{
    caterva_error err;
    caterva_array *array;
    caterva_create_options o = CATERVA_CREATE_INIT;
    int64_t n = shape[0] * shape[1];
    int32_t chunks[2] = {rng_int(r, 1, 9), rng_int(r, 1, 9)};
    int32_t *items = check_alloc((size_t)n * sizeof items[0]);
    for (int64_t i = 0; i < n; i++) items[i] = (int32_t)i + number * 10000;
    o.ndim = 2;
    o.shape = shape;
    o.chunk_shape = chunks;
    o.dtype = "<i4";
    o.overwrite = 1;
    o.threads = rng_int(r, 1, 3);
    o.durability = CATERVA_DURABILITY_NONE;
    o.cache_bytes = rng_one_in(r, 2) ? -1 : 0;
    CHECK_OK(
        caterva_create_from_memory(url, &o, items, (size_t)n * sizeof items[0], &array, &err),
        err);
    CHECK_OK(caterva_commit(array, &err), err);
    free(items);
    return array;
}

/* All except rows from SIDE on, which are written. */
static inline caterva_view *whole(caterva_array *array)
{
    static const caterva_axis axes[1] = {
        {.kind = CATERVA_AXIS_SLICE, .stop = SIDE, .step = 1}};
    caterva_error err;
    caterva_view *all, *view;
    CHECK_OK(caterva_view_of(array, &all, &err), err);
    CHECK_OK(caterva_view_select(all, axes, 1, &view, &err), err);
    caterva_view_free(all);
    return view;
}

/* A view of the two, which are freed. */
static inline caterva_view *pair_up(caterva_view *a, caterva_view *b, bool stack, int axis)
{
    caterva_error err;
    caterva_view *out;
    const caterva_view *two[2] = {a, b};
    CHECK_OK(stack ? caterva_view_stack(two, 2, axis, &out, &err)
                   : caterva_view_concat(two, 2, axis, &out, &err),
             err);
    caterva_view_free(a);
    caterva_view_free(b);
    return out;
}

/* Takes over the view. */
static inline caterva_view *turned(caterva_view *view, rng *r)
{
    caterva_error err;
    caterva_view *out;
    if (rng_one_in(r, 3)) return view;
    if (rng_one_in(r, 2))
        CHECK_OK(
            caterva_view_expand(view, rng_int(r, 0, caterva_view_ndim(view)), &out, &err),
            err);
    else
        CHECK_OK(caterva_view_transpose(view, NULL, &out, &err), err);
    caterva_view_free(view);
    return out;
}

/* Joins of stacks, or stacks of joins; sometimes of one array several times, or of one. */
static inline caterva_view *draw_view(caterva_array *const *arrays, rng *r)
{
    bool stack_first = rng_one_in(r, 2);
    int axis = rng_int(r, 0, 1), deep = rng_int(r, 0, 2);
    caterva_view *pair[2];
    if (rng_one_in(r, 8)) return turned(whole(arrays[0]), r);
    for (int i = 0; i < 2; i++)
        pair[i] = pair_up(whole(arrays[rng_one_in(r, 5) ? 0 : 2 * i]),
                          whole(arrays[2 * i + 1]), stack_first, stack_first ? deep : axis);
    if (rng_one_in(r, 4)) {
        caterva_view_free(pair[1]);
        return turned(pair[0], r);
    }
    return turned(pair_up(pair[0], pair[1], !stack_first, deep), r);
}

/* ---- Selections --------------------------------------------------------------------- */

/* The data that a call points to: freed as soon as it has returned. */
typedef struct words {
    caterva_selection selection;
    caterva_buffer dst;
    caterva_axis axes[MOST_AXES];
    int64_t lists[MOST_AXES][MOST_LISTED], points[MOST_LISTED * MOST_AXES];
    int64_t strides[MOST_AXES];
    uint8_t lines[MOST_AXES][4 * SIDE], mask[4 * SIDE * SIDE];
    char dtype[8];
    size_t size;
} words;

static inline void draw_axis(words *w, int d, int64_t length, rng *r)
{
    caterva_axis *axis = &w->axes[d];
    axis->kind = (caterva_axis_kind)rng_int(r, 0, 4);
    if (length == 0) axis->kind = CATERVA_AXIS_ALL;
    axis->start = rng_between(r, -length, length - 1);
    axis->step = rng_one_in(r, 2) ? rng_int(r, 1, 4) : rng_int(r, -4, -1);
    if (axis->kind == CATERVA_AXIS_SLICE) axis->stop = CATERVA_AXIS_OMIT;
    axis->n = axis->kind == CATERVA_AXIS_MASK ? length : rng_int(r, 0, MOST_LISTED);
    axis->indices = w->lists[d];
    axis->mask = w->lines[d];
    for (int i = 0; length > 0 && i < MOST_LISTED; i++)
        w->lists[d][i] = rng_between(r, -length, length - 1);
    for (int i = 0; i < 4 * SIDE; i++) w->lines[d][i] = (uint8_t)rng_one_in(r, 2);
}

static inline void draw_words(words *w, const caterva_view *view, rng *r)
{
    const int64_t *shape = caterva_view_shape(view);
    int ndim = caterva_view_ndim(view);
    size_t n_items = 1;
    memset(w, 0, sizeof *w);
    w->selection = (caterva_selection)CATERVA_SELECTION_INIT;
    w->dst = (caterva_buffer)CATERVA_BUFFER_INIT;
    for (int d = 0; d < ndim; d++) {
        draw_axis(w, d, shape[d], r);
        n_items *= (size_t)shape[d];
    }
    for (int i = 0; i < MOST_LISTED * ndim; i++)
        w->points[i] = rng_between(r, -shape[i % ndim], shape[i % ndim] - 1);
    CHECK(n_items <= sizeof w->mask, "%zu items", n_items);
    for (size_t i = 0; i < n_items; i++) w->mask[i] = (uint8_t)rng_one_in(r, 9);
    w->selection.kind = (caterva_selection_kind)rng_int(r, 1, rng_one_in(r, 2) ? 1 : 3);
    w->selection.axes = w->axes;
    w->selection.n_axes = ndim;
    w->selection.points = w->points;
    w->selection.n_points = rng_int(r, 0, MOST_LISTED);
    w->selection.mask = w->mask;
    w->selection.mask_size = n_items;
    strcpy(w->dtype, rng_one_in(r, 3) ? "<f8" : "<i4");
    w->dst.dtype = w->dtype;
}

/* Number of selected items of an axis; -1: the axis is dropped. */
static inline int64_t count_axis(const caterva_axis *axis, int64_t length)
{
    int64_t n = 0;
    switch (axis->kind) {
    case CATERVA_AXIS_ALL: return length;
    case CATERVA_AXIS_INDEX: return -1;
    case CATERVA_AXIS_LIST: return axis->n;
    case CATERVA_AXIS_MASK:
        for (int64_t i = 0; i < length; i++) n += axis->mask[i];
        return n;
    default: break;
    }
    int64_t start = axis->start < 0 ? axis->start + length : axis->start;
    return axis->step > 0 ? (length - start + axis->step - 1) / axis->step
                          : start / -axis->step + 1;
}

/* Lays the result out with its first axis innermost. */
static inline void lay_out(words *w, const caterva_view *view)
{
    int64_t stride = w->dtype[1] == 'f' ? 8 : 4, n = 0;
    int n_axes = w->selection.kind == CATERVA_SELECTION_AXES ? w->selection.n_axes : 1;
    for (size_t i = 0; i < w->selection.mask_size; i++) n += w->mask[i];
    if (w->selection.kind == CATERVA_SELECTION_POINTS) n = w->selection.n_points;
    for (int d = 0; d < n_axes; d++) {
        if (w->selection.kind == CATERVA_SELECTION_AXES)
            n = count_axis(&w->axes[d], caterva_view_shape(view)[d]);
        if (n < 0) continue;
        w->strides[w->dst.ndim++] = stride;
        stride *= n;
    }
    w->dst.strides = w->strides;
    w->dst.size = w->size = (size_t)stride;
}

/* ---- Orders --------------------------------------------------------------------------- */

typedef struct order {
    caterva_request *request;
    uint8_t *got, *want; /* followed by GUARD bytes */
    size_t size;
    atomic_int reported;
    caterva_status status;
    void (*then)(struct order *o); /* on_done calls it; or NULL */
    caterva_array **arrays;
} order;

static inline void on_order_done(void *context, caterva_status status,
                                 const caterva_error *error)
{
    order *o = context;
    CHECK((status == CATERVA_OK) == (error == NULL), "an error with %d", status);
    CHECK(!error || (error->code == status && error->message[0]), "no sentence");
    o->status = status;
    if (o->then) o->then(o);
    atomic_fetch_add(&o->reported, 1); /* last, since other threads count it */
}

/* Draws a read of a view of the arrays, reads it, and begins to read it once more. */
static inline void begin_order(order *o, caterva_array **arrays, rng *r)
{
    caterva_error err;
    caterva_async_options options = CATERVA_ASYNC_INIT;
    caterva_view *view = draw_view(arrays, r);
    words *w = check_alloc(sizeof *w);
    draw_words(w, view, r);
    lay_out(w, view);
    o->arrays = arrays;
    o->size = w->size;
    o->got = check_alloc(w->size + GUARD);
    o->want = check_alloc(w->size + GUARD);
    memset(o->got, 0x55, w->size + GUARD);
    memset(o->want, 0x55, w->size + GUARD);
    w->dst.data = o->want;
    CHECK_OK(caterva_view_read(view, &w->selection, &w->dst, &err), err);
    w->dst.data = o->got;
    options.on_done = on_order_done;
    options.context = o;
    CHECK_OK(
        caterva_view_read_async(view, &w->selection, &w->dst, &options, &o->request, &err),
        err);
    memset(w, 0x7F, sizeof *w);
    free(w);
    caterva_view_free(view);
}

static inline void wait_for(order *o)
{
    caterva_status status = caterva_request_wait(o->request, NULL);
    CHECK(status == o->status, "wait returned %s, on_done got %s",
          caterva_status_name(status), caterva_status_name(o->status));
}

/* Waits; the read was reported once, and its items are right. */
static inline void finish_order(order *o)
{
    for (int i = 0; !o->request && !atomic_load(&o->reported); i++) {
        CHECK(i < 600000, "it is never reported");
        usleep(100);
    }
    int reported = atomic_load(&o->reported);
    CHECK(reported == 1, "on_done was called %d times", reported);
    CHECK(o->status == CATERVA_OK || o->status == CATERVA_ESTOPPED, "a read gave %s",
          caterva_status_name(o->status));
    if (o->status == CATERVA_OK) CHECK(memcmp(o->got, o->want, o->size) == 0, "other items");
    CHECK(memcmp(o->got + o->size, o->want + o->size, GUARD) == 0, "too far");
    caterva_request_release(o->request);
    free(o->got);
    free(o->want);
}

/* ---- All arrays ----------------------------------------------------------------------- */

static inline void draw_arrays(caterva_array **arrays, rng *r)
{
    int64_t shape[2] = {rng_between(r, 1, SIDE), rng_between(r, 1, SIDE)};
    for (int i = 0; i < ARRAYS; i++) arrays[i] = make_numbered("mem:", i, shape, r);
}

static inline void discard_all(caterva_array **arrays)
{
    for (int i = 0; i < ARRAYS; i++) caterva_discard(arrays[i]);
}

/* ---- Memory ---------------------------------------------------------------------------- */

/* New memory never contains the result of an earlier read. */
static inline void *allocate(void *context, size_t size, size_t alignment)
{
    (void)context;
    void *memory = aligned_new(alignment, size);
    return memory ? memset(memory, 0xA5, size) : NULL;
}

static inline void release(void *context, void *memory)
{
    (void)context;
    aligned_free(memory);
}

static inline void set_allocator(void)
{
    caterva_allocator allocator = CATERVA_ALLOCATOR_INIT;
    allocator.allocate = allocate;
    allocator.release = release;
    CHECK(caterva_set_allocator(&allocator, NULL) == CATERVA_OK, "there is memory already");
}

#endif
