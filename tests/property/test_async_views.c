/* Reads of views that nobody waits for: of one array, and of several in joins of joins. What
 * was read is what caterva_view_read gives; of each on_done is called once, when no array below
 * writes to the buffer any more, whatever becomes of the arrays meanwhile.
 *
 * usage: test_async_views [ROUNDS [SEED]] */
#include "caterva.h"

#include "support/check.h"
#include "support/random.h"
#include "support/sanitized.h"
#include "support/scratch.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ARRAYS = 4, MOST_AXES = 4, MOST_LISTED = 12, GUARD = 16, SIDE = 24 };

/* ---- Arrays and views ------------------------------------------------------------- */

/* Items are their number in the array and, above, the array's number. */
static caterva_array *make(const char *url, int number, const int64_t *shape, rng *r)
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

/* All but rows from SIDE on, which are written. */
static caterva_view *whole(caterva_array *array)
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
static caterva_view *pair_up(caterva_view *a, caterva_view *b, bool stack, int axis)
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
static caterva_view *turned(caterva_view *view, rng *r)
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
static caterva_view *draw_view(caterva_array *const *arrays, rng *r)
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

/* What a call points at: gone as soon as it has returned. */
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

static void draw_axis(words *w, int d, int64_t length, rng *r)
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

static void draw_words(words *w, const caterva_view *view, rng *r)
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

/* Items of an axis that are selected; -1: it goes. */
static int64_t count_axis(const caterva_axis *axis, int64_t length)
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
static void lay_out(words *w, const caterva_view *view)
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
    uint8_t *got, *want; /* with GUARD bytes behind */
    size_t size;
    atomic_int told;
    caterva_status status;
    void (*then)(struct order *o); /* on_done calls it; or NULL */
    caterva_array **arrays;
} order;

static void on_done(void *context, caterva_status status, const caterva_error *error)
{
    order *o = context;
    CHECK((status == CATERVA_OK) == (error == NULL), "an error with %d", status);
    CHECK(!error || (error->code == status && error->message[0]), "no sentence");
    o->status = status;
    if (o->then) o->then(o);
    atomic_fetch_add(&o->told, 1); /* the last thing: others count */
}

/* Draws a read of a view of the arrays, reads it, and begins to read it once more. */
static void begin(order *o, caterva_array **arrays, rng *r)
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
    options.on_done = on_done;
    options.context = o;
    CHECK_OK(
        caterva_view_read_async(view, &w->selection, &w->dst, &options, &o->request, &err),
        err);
    memset(w, 0x7F, sizeof *w);
    free(w);
    caterva_view_free(view);
}

static void wait_for(order *o)
{
    caterva_status status = caterva_request_wait(o->request, NULL);
    CHECK(status == o->status, "waited for %s, told of %s", caterva_status_name(status),
          caterva_status_name(o->status));
}

/* Told once, and the items where they belong. */
static void finish(order *o)
{
    for (int i = 0; !o->request && !atomic_load(&o->told); i++) {
        CHECK(i < 600000, "it is never told");
        usleep(100);
    }
    int told = atomic_load(&o->told);
    CHECK(told == 1, "on_done was called %d times", told);
    CHECK(o->status == CATERVA_OK || o->status == CATERVA_ESTOPPED, "a read gave %s",
          caterva_status_name(o->status));
    if (o->status == CATERVA_OK) CHECK(memcmp(o->got, o->want, o->size) == 0, "other items");
    CHECK(memcmp(o->got + o->size, o->want + o->size, GUARD) == 0, "too far");
    caterva_request_release(o->request);
    free(o->got);
    free(o->want);
}

/* ---- All kinds ---------------------------------------------------------------------- */

static void draw_arrays(caterva_array **arrays, rng *r)
{
    int64_t shape[2] = {rng_between(r, 1, SIDE), rng_between(r, 1, SIDE)};
    for (int i = 0; i < ARRAYS; i++) arrays[i] = make("mem:", i, shape, r);
}

static void discard_all(caterva_array **arrays)
{
    for (int i = 0; i < ARRAYS; i++) caterva_discard(arrays[i]);
}

static void all_kinds_are_read(rng *r)
{
    enum { N = 40 };
    order orders[N] = {{.told = 0}};
    caterva_array *arrays[ARRAYS];
    draw_arrays(arrays, r);
    for (int i = 0; i < N; i++) begin(&orders[i], arrays, r);
    for (int i = 0; i < N; i++) {
        wait_for(&orders[i]);
        CHECK(orders[i].status == CATERVA_OK, "read %d gives %d", i, orders[i].status);
        finish(&orders[i]);
    }
    discard_all(arrays);
}

/* ---- Ends ------------------------------------------------------------------------------ */

/* Some are cancelled, of some nobody asks for the request again; then one array is closed,
 * which ends what needs it, and the others. */
static void closing_in_the_middle(rng *r)
{
    enum { N = 40 };
    order orders[N] = {{.told = 0}};
    caterva_array *arrays[ARRAYS];
    draw_arrays(arrays, r);
    for (int i = 0; i < N; i++) {
        begin(&orders[i], arrays, r);
        if (rng_one_in(r, 5)) caterva_request_cancel(orders[i].request);
        if (!rng_one_in(r, 4)) continue;
        caterva_request_release(orders[i].request);
        orders[i].request = NULL;
    }
    if (rng_one_in(r, 2)) usleep((useconds_t)rng_int(r, 0, 1000));
    for (int i = 0; i < ARRAYS; i++) caterva_discard(arrays[(i + 2) % ARRAYS]);
    for (int i = 0; i < N; i++) CHECK(atomic_load(&orders[i].told) == 1, "%d goes on", i);
    for (int i = 0; i < N; i++) finish(&orders[i]);
}

static void close_here(order *o)
{
    CHECK(caterva_request_wait(o->request, NULL) == o->status, "its own request");
    discard_all(o->arrays);
}

/* Of the only read, maybe before the call that began it has returned. */
static void on_done_may_close_all_arrays(rng *r)
{
    order o = {.told = 0, .then = close_here};
    caterva_array *arrays[ARRAYS];
    draw_arrays(arrays, r);
    begin(&o, arrays, r);
    wait_for(&o);
    CHECK(o.status == CATERVA_OK, "%d", o.status);
    finish(&o);
}

/* One damaged array: its sentence is told, and no other one. */
static void damage_is_told(rng *r)
{
    static const int64_t shape[2] = {SIDE, SIDE};
    char path[SCRATCH_PATH];
    caterva_error err, told;
    caterva_array *arrays[ARRAYS];
    caterva_request *request;
    caterva_buffer dst = CATERVA_BUFFER_INIT;
    size_t size;
    int32_t got[2 * SIDE * SIDE];
    CHECK_OK(caterva_close(make(scratch_path(path, "damaged"), 1, shape, r), &err), err);
    uint8_t *bytes = scratch_load(path, &size);
    CHECK(bytes != NULL, "no bytes");
    for (size_t i = size / 4; i < size / 2; i += 20) bytes[i] ^= 0x20;
    scratch_save(path, bytes, size);
    arrays[0] = make("mem:", 0, shape, r);
    CHECK_OK(caterva_open(path, NULL, &arrays[1], &err), err);
    caterva_view *view = pair_up(whole(arrays[0]), whole(arrays[1]), true, 0);
    dst.data = got;
    dst.size = sizeof got;
    caterva_status damage = caterva_view_read(view, NULL, &dst, &err);
    CHECK(damage == CATERVA_ECORRUPT || damage == CATERVA_EUNSUPPORTED, /* of a flag's bit */
          "not damaged: %d", damage);
    CHECK_OK(caterva_view_read_async(view, NULL, &dst, NULL, &request, &told), told);
    CHECK(caterva_request_wait(request, &told) == damage, "not told: %s", told.message);
    caterva_request_release(request);
    CHECK(strcmp(told.message, err.message) == 0, "%s, but %s", told.message, err.message);
    caterva_view_free(view);
    caterva_discard(arrays[0]);
    caterva_discard(arrays[1]);
    scratch_remove(path);
    free(bytes);
}

/* An array of another shape by the time of the read; and one that is closed already. */
static void what_is_stale_is_told(rng *r)
{
    static const int64_t shape[2] = {SIDE, SIDE}, more[2] = {SIDE + 1, SIDE};
    caterva_error err;
    caterva_array *arrays[2] = {make("mem:", 0, shape, r), make("mem:", 1, shape, r)};
    caterva_request *request;
    caterva_buffer dst = CATERVA_BUFFER_INIT;
    int32_t got[2 * SIDE * SIDE];
    caterva_view *view = pair_up(whole(arrays[0]), whole(arrays[1]), false, 1);
    dst.data = got;
    dst.size = sizeof got;
    CHECK_OK(caterva_resize(arrays[1], more, &err), err);
    CHECK_OK(caterva_view_read_async(view, NULL, &dst, NULL, &request, &err), err);
    CHECK(caterva_request_wait(request, &err) == CATERVA_ESTALE, "not stale");
    CHECK(strstr(err.message, "when the view was made"), "%s", err.message);
    caterva_request_release(request);
    dst.size--;
    CHECK(caterva_view_read_async(view, NULL, &dst, NULL, &request, &err) == CATERVA_ESHORT,
          "a short buffer");
    CHECK(request == NULL, "a request");
    caterva_view_free(view);
    for (int i = 0; i < 2; i++) caterva_discard(arrays[i]);
}

/* ---- Beside others ---------------------------------------------------------------------- */

typedef struct visitor {
    caterva_array **arrays;
    int number;
    rng random;
} visitor;

/* Changes what no read looks at: the last row, which no view shows. */
static void *write_and_read(void *argument)
{
    visitor *v = argument;
    caterva_error err;
    for (int i = 0; i < 30; i++) {
        int32_t item = i;
        int64_t start[2] = {SIDE, v->number}, stop[2] = {SIDE + 1, v->number + 1};
        caterva_array *array = v->arrays[rng_int(&v->random, 0, ARRAYS - 1)];
        CHECK_OK(caterva_write(array, start, stop, &item, sizeof item, &err), err);
        if (rng_one_in(&v->random, 4)) CHECK_OK(caterva_commit(array, &err), err);
        order o = {.told = 0};
        begin(&o, v->arrays, &v->random);
        if (rng_one_in(&v->random, 6)) caterva_request_cancel(o.request);
        wait_for(&o);
        finish(&o);
    }
    return NULL;
}

static void beside_writers(rng *r)
{
    enum { N = 8 };
    static const int64_t shape[2] = {SIDE + 1, SIDE};
    caterva_array *arrays[ARRAYS];
    pthread_t ids[N];
    visitor visitors[N];
    for (int i = 0; i < ARRAYS; i++) arrays[i] = make("mem:", i, shape, r);
    for (int i = 0; i < N; i++) {
        visitors[i] = (visitor){arrays, i, rng_from_seed(rng_next(r))};
        CHECK(pthread_create(&ids[i], NULL, write_and_read, &visitors[i]) == 0, "thread %d",
              i);
    }
    for (int i = 0; i < N; i++) pthread_join(ids[i], NULL);
    discard_all(arrays);
}

/* What was begun before a refresh reads what the handle saw then. */
static void refresh_in_the_middle(rng *r)
{
    enum { N = 20 };
    static const int64_t shape[2] = {SIDE, SIDE};
    char path[SCRATCH_PATH];
    caterva_error err;
    order orders[N] = {{.told = 0}};
    caterva_array *arrays[ARRAYS];
    scratch_path(path, "refreshed");
    for (int i = 1; i < ARRAYS; i++) arrays[i] = make("mem:", i, shape, r);
    CHECK_OK(caterva_close(make(path, 0, shape, r), &err), err);
    CHECK_OK(caterva_open(path, NULL, &arrays[0], &err), err);
    CHECK_OK(caterva_close(make(path, 9, shape, r), &err), err); /* in its place */
    for (int i = 0; i < N; i++) begin(&orders[i], arrays, r);
    CHECK_OK(caterva_refresh(arrays[0], &err), err);
    for (int i = 0; i < N; i++) {
        wait_for(&orders[i]);
        CHECK(orders[i].status == CATERVA_OK, "%d gives %d", i, orders[i].status);
        finish(&orders[i]);
    }
    discard_all(arrays);
    scratch_remove(path);
}

/* In a child of fork nothing is outstanding. */
static int use_in_child(caterva_array **arrays, order *orders, int n, rng *r)
{
    alarm(60);
    for (int i = 0; i < n; i++) {
        caterva_status status = caterva_request_wait(orders[i].request, NULL);
        if (status != CATERVA_OK && status != CATERVA_ESTOPPED) return 1;
        caterva_request_cancel(orders[i].request);
        caterva_request_release(orders[i].request);
    }
    order own = {.told = 0};
    begin(&own, arrays, r);
    wait_for(&own);
    if (own.status != CATERVA_OK) return 2;
    finish(&own);
    discard_all(arrays);
    for (int i = 0; i < n; i++)
        if (atomic_load(&orders[i].told) > 1) return 3;
    return 0;
}

static void fork_in_the_middle(rng *r)
{
    enum { N = 20 };
    order orders[N] = {{.told = 0}};
    caterva_array *arrays[ARRAYS];
    draw_arrays(arrays, r);
    for (int i = 0; i < N; i++) begin(&orders[i], arrays, r);
    pid_t child = fork();
    if (child == 0) _exit(use_in_child(arrays, orders, N, r));
    int status = -1;
    CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0, "child: %d",
          status);
    for (int i = 0; i < N; i++) wait_for(&orders[i]);
    for (int i = 0; i < N; i++) finish(&orders[i]);
    discard_all(arrays);
}

/* New memory never holds what an earlier read has left in it. */
static void *allocate(void *context, size_t size, size_t alignment)
{
    (void)context;
    void *memory = NULL;
    if (alignment < sizeof(void *)) alignment = sizeof(void *);
    if (posix_memalign(&memory, alignment, size) != 0) return NULL;
    return memset(memory, 0xA5, size);
}

static void release(void *context, void *memory)
{
    (void)context;
    free(memory);
}

int main(int argc, char **argv)
{
    caterva_allocator allocator = CATERVA_ALLOCATOR_INIT;
    int rounds = (int)number_argument(argc, argv, 1, 60);
    uint64_t seed = seed_argument(argc, argv, 2);
    rng r = rng_from_seed(seed);
    alarm(560); /* a hang ends it */
    allocator.allocate = allocate;
    allocator.release = release;
    CHECK(caterva_set_allocator(&allocator, NULL) == CATERVA_OK, "there is memory already");
    damage_is_told(&r);
    what_is_stale_is_told(&r);
    for (int i = 0; i < rounds; i++) {
        all_kinds_are_read(&r);
        closing_in_the_middle(&r);
        on_done_may_close_all_arrays(&r);
        refresh_in_the_middle(&r);
        if (i % 10 == 0) beside_writers(&r);
        if (!SANITIZED && !getenv("CATERVA_EMULATED")) fork_in_the_middle(&r);
    }
    return 0;
}
