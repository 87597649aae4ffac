/* Asynchronous reads. on_done is called once for each, whatever happens to the read and its
 * handle; the items are what caterva_read would have given; after the end no byte of the
 * buffer is written. Thousands are outstanding at once, from many threads, and are cancelled;
 * on_done uses the library, and closes the array. Concurrent changes: test_async_alone.
 *
 * usage: test_async [ROUNDS [SEED]] */
#include "async_orders.h"

#include <pthread.h>
#include <stdio.h>

enum { N_THREADS = 16, N_OUTSTANDING = 10000 };

/* ---- Many --------------------------------------------------------------------------- */

typedef struct crowd {
    caterva_array *array;
    order *orders;
    rng random;
} crowd;

static void *order_many(void *argument)
{
    crowd *c = argument;
    for (int i = 0; i < N_OUTSTANDING / N_THREADS; i++) {
        must_begin(&c->orders[i], c->array);
        int victim = rng_int(&c->random, 0, 8 * i);
        if (victim < i) caterva_request_cancel(c->orders[victim].request);
    }
    return NULL;
}

/* Ten thousand reads of sixteen threads; an eighth of them is cancelled at any moment. */
static void many_are_outstanding(int threads, rng *r)
{
    static order orders[N_OUTSTANDING];
    pthread_t ids[N_THREADS];
    crowd crowds[N_THREADS];
    int n_stopped = 0;
    caterva_array *array = cube_open(path, threads, 0, false);
    for (int i = 0; i < N_OUTSTANDING; i++) {
        cube_box box = small_box(r);
        set_up(&orders[i], &box);
    }
    for (int i = 0; i < N_THREADS; i++) {
        crowds[i] = (crowd){array, orders + i * (N_OUTSTANDING / N_THREADS),
                            rng_from_seed(rng_next(r))};
        CHECK(pthread_create(&ids[i], NULL, order_many, &crowds[i]) == 0, "thread %d", i);
    }
    for (int i = 0; i < N_THREADS; i++) pthread_join(ids[i], NULL);
    for (int i = 0; i < N_OUTSTANDING; i++) wait_for(&orders[i]);
    for (int i = 0; i < N_OUTSTANDING; i++) {
        n_stopped += orders[i].status == CATERVA_ESTOPPED;
        finish(&orders[i]);
    }
    CHECK(n_stopped <= N_OUTSTANDING / 4, "%d were stopped", n_stopped);
    caterva_discard(array);
}

/* The caller continues at once, also with a handle of one thread. */
static void nobody_is_kept_waiting(void)
{
    caterva_array *array = cube_open(path, 1, 0, false);
    cube_box box = cube_plane(0, 5, 1);
    atomic_bool gate = false;
    order orders[3];
    for (int i = 0; i < 3; i++) {
        set_up(&orders[i], &box);
        orders[i].gate = &gate;
        must_begin(&orders[i], array);
    }
    usleep(10000);
    for (int i = 0; i < 3; i++) CHECK(atomic_load(&orders[i].reported) == 0, "%d is over", i);
    cube_check_read(array, model, &box);
    atomic_store(&gate, true);
    for (int i = 0; i < 3; i++) {
        wait_for(&orders[i]);
        CHECK(orders[i].status == CATERVA_OK, "%d", orders[i].status);
        finish(&orders[i]);
    }
    caterva_discard(array);
}

/* Twice, and too late. */
static void cancelling_is_harmless(void)
{
    caterva_array *array = cube_open(path, 1, 0, false);
    cube_box box = cube_plane(0, 5, 1);
    order orders[4];
    for (int i = 0; i < 4; i++) {
        set_up(&orders[i], &box);
        must_begin(&orders[i], array);
    }
    for (int i = 0; i < 2; i++) caterva_request_cancel(orders[3].request);
    for (int i = 0; i < 4; i++) {
        wait_for(&orders[i]);
        CHECK(i == 3 || orders[i].status == CATERVA_OK, "%d gives %d", i, orders[i].status);
        caterva_request_cancel(orders[i].request);
        wait_for(&orders[i]);
        finish(&orders[i]);
    }
    caterva_discard(array);
}

/* ---- Selections of all kinds -------------------------------------------------------- */

enum { MOST_LISTED = 40 };

/* The data that a call points to: freed as soon as it has returned. */
typedef struct words {
    caterva_selection selection;
    caterva_buffer dst;
    caterva_axis axes[3];
    int64_t list[MOST_LISTED], points[MOST_LISTED * 3], strides[3];
    uint8_t line[CUBE_SIDE], mask[CUBE_ITEMS];
    char dtype[8];
} words;

static void draw_words(words *w, rng *r)
{
    memset(w, 0, sizeof *w);
    w->selection = (caterva_selection)CATERVA_SELECTION_INIT;
    w->dst = (caterva_buffer)CATERVA_BUFFER_INIT;
    for (int i = 0; i < MOST_LISTED; i++) w->list[i] = rng_int(r, -CUBE_SIDE, CUBE_SIDE - 1);
    for (int i = 0; i < MOST_LISTED * 3; i++)
        w->points[i] = rng_int(r, -CUBE_SIDE, CUBE_SIDE - 1);
    for (int i = 0; i < CUBE_SIDE; i++) w->line[i] = (uint8_t)!rng_one_in(r, 3);
    for (int i = 0; i < 3000; i++) w->mask[rng_int(r, 0, CUBE_ITEMS - 1)] = 1;
    w->axes[0] = (caterva_axis){.kind = CATERVA_AXIS_LIST, .indices = w->list};
    w->axes[0].n = rng_int(r, 0, MOST_LISTED);
    w->axes[1] = (caterva_axis){.kind = CATERVA_AXIS_SLICE, .start = 60, .stop = 3};
    w->axes[1].step = -7;
    w->axes[2] = (caterva_axis){.kind = CATERVA_AXIS_MASK, .mask = w->line, .n = CUBE_SIDE};
    w->selection.kind = (caterva_selection_kind)rng_int(r, 1, 3);
    w->selection.axes = w->axes;
    w->selection.n_axes = 3;
    w->selection.points = w->points;
    w->selection.n_points = rng_int(r, 0, MOST_LISTED);
    w->selection.mask = w->mask;
    w->selection.mask_size = CUBE_ITEMS;
    strcpy(w->dtype, rng_one_in(r, 2) ? "<f8" : "<i4");
    w->dst.dtype = w->dtype;
}

/* Lays the result out with its axes in the other order. */
static size_t lay_out(words *w, caterva_array *array, caterva_error *err)
{
    int64_t shape[CATERVA_MAX_DIMS], stride = w->dtype[1] == 'f' ? 8 : 4;
    int ndim;
    CHECK_OK(caterva_selection_shape(array, &w->selection, &ndim, shape, err), *err);
    for (int d = 0; d < ndim; d++) {
        w->strides[d] = stride;
        stride *= shape[d];
    }
    w->dst.strides = w->strides;
    w->dst.ndim = ndim;
    w->dst.size = (size_t)stride;
    return w->dst.size;
}

/* The call's data is copied; the result equals that of a synchronous read. */
static void all_kinds_are_read(rng *r)
{
    enum { N = 20 };
    caterva_error err;
    caterva_request *requests[N];
    void *got[N], *expected[N];
    size_t sizes[N];
    caterva_array *array = cube_open(path, 2, 0, false);
    for (int i = 0; i < N; i++) {
        words *w = check_alloc(sizeof *w);
        draw_words(w, r);
        sizes[i] = lay_out(w, array, &err);
        got[i] = check_alloc(sizes[i]);
        expected[i] = check_alloc(sizes[i]);
        w->dst.data = expected[i];
        CHECK_OK(caterva_read_selection(array, &w->selection, &w->dst, &err), err);
        w->dst.data = got[i];
        CHECK_OK(caterva_read_async(array, &w->selection, &w->dst, NULL, &requests[i], &err),
                 err);
        memset(w, 0x7F, sizeof *w);
        free(w);
    }
    for (int i = 0; i < N; i++) {
        CHECK_OK(caterva_request_wait(requests[i], &err), err);
        CHECK(memcmp(got[i], expected[i], sizes[i]) == 0, "read %d gives other items", i);
        caterva_request_release(requests[i]);
        free(got[i]);
        free(expected[i]);
    }
    caterva_discard(array);
}

/* A failed read is reported with the message of a synchronous read. */
static void damage_is_reported(void)
{
    caterva_error err, reported;
    caterva_array *array;
    caterva_request *request;
    caterva_open_options options = CATERVA_OPEN_INIT;
    size_t size;
    char damaged[SCRATCH_PATH];
    uint8_t *bytes = scratch_load(path, &size);
    int32_t *got = check_alloc(CUBE_ITEMS * sizeof *got);
    CHECK(bytes != NULL, "no bytes");
    for (size_t i = size / 4; i < size / 4 * 3; i += 100) bytes[i] ^= 0x20;
    scratch_save(scratch_path(damaged, "damaged"), bytes, size);
    options.threads = 1;
    caterva_buffer dst = CATERVA_BUFFER_INIT;
    dst.data = got;
    dst.size = CUBE_ITEMS * sizeof *got;
    CHECK_OK(caterva_open(damaged, &options, &array, &err), err);
    CHECK(caterva_read_selection(array, NULL, &dst, &err) == CATERVA_ECORRUPT, "not damaged");
    CHECK_OK(caterva_read_async(array, NULL, &dst, NULL, &request, &reported), reported);
    CHECK(caterva_request_wait(request, &reported) == CATERVA_ECORRUPT, "not reported");
    CHECK(reported.position == err.position && strcmp(reported.message, err.message) == 0,
          "%s, %s", reported.message, err.message);
    caterva_request_release(request);
    caterva_discard(array);
    scratch_remove(damaged);
    free(bytes);
    free(got);
}

/* ---- In on_done ----------------------------------------------------------------------- */

static void read_here(order *o)
{
    caterva_error err;
    caterva_status status = caterva_request_wait(o->request, &err); /* returns at once */
    CHECK(status == o->status, "its own request gives %d", status);
    if (o->other)
        CHECK(caterva_request_wait(o->other->request, &err) == CATERVA_EBUSY ||
                  atomic_load(&o->other->reported),
              "on_done waited for another one");
    cube_check_read(o->array, model, &o->box);
}

static void begin_other(order *o)
{
    caterva_error err;
    if (o->other) CHECK_OK(begin(o->other, o->array, &err), err);
}

static void close_here(order *o)
{
    CHECK(caterva_close(o->array, NULL) == CATERVA_OK, "close");
}

static void on_done_may_use_the_library(void)
{
    enum { CHAIN = 50 };
    caterva_array *array = cube_open(path, 2, 0, false);
    cube_box box = cube_plane(1, 7, 2);
    order orders[CHAIN];
    for (int i = 0; i < CHAIN; i++) set_up(&orders[i], &box);
    for (int i = 0; i < CHAIN; i++) {
        orders[i].then = begin_other;
        orders[i].other = i + 1 < CHAIN ? &orders[i + 1] : NULL;
    }
    must_begin(&orders[0], array);
    for (int i = 0; i < CHAIN; i++) {
        wait_for(&orders[i]); /* begun by the previous one */
        finish(&orders[i]);
    }
    for (int i = 0; i < 2; i++) set_up(&orders[i], &box);
    orders[0].then = orders[1].then = read_here;
    must_begin(&orders[1], array);
    orders[0].other = &orders[1];
    must_begin(&orders[0], array);
    for (int i = 0; i < 2; i++) {
        wait_for(&orders[i]);
        finish(&orders[i]);
    }
    caterva_discard(array);
}

/* After all have begun. Waiting reads are stopped by the close, and reported during it. */
static void on_done_may_close_the_array(int threads)
{
    enum { N = 40 };
    order orders[N];
    atomic_bool gate = false;
    caterva_array *array = cube_open(path, threads, 0, false);
    cube_box box = cube_plane(2, 3, 1);
    for (int i = 0; i < N; i++) set_up(&orders[i], &box);
    orders[N / 2].gate = &gate;
    orders[N / 2].then = close_here;
    for (int i = 0; i < N; i++) must_begin(&orders[i], array);
    atomic_store(&gate, true);
    for (int i = 0; i < N; i++) wait_for(&orders[i]);
    for (int i = 0; i < N; i++) finish(&orders[i]);
}

/* And before the call that began it returns. */
static void on_done_may_be_quicker_than_the_call(void)
{
    caterva_array *array = cube_open(path, 2, 0, false);
    cube_box box = cube_plane(2, 3, 1);
    order orders[2];
    for (int i = 0; i < 2; i++) set_up(&orders[i], &box);
    orders[1].then = close_here;
    must_begin(&orders[0], array); /* a thread is awake */
    must_begin(&orders[1], array);
    for (int i = 0; i < 2; i++) {
        wait_for(&orders[i]);
        finish(&orders[i]);
    }
}

int main(int argc, char **argv)
{
    int rounds = (int)number_argument(argc, argv, 1, 30);
    uint64_t seed = seed_argument(argc, argv, 2);
    rng r = rng_from_seed(seed);
    alarm(560); /* ends the program if it hangs */
    make_cube(seed);
    nobody_is_kept_waiting();
    cancelling_is_harmless();
    on_done_may_use_the_library();
    damage_is_reported();
    many_are_outstanding(1, &r);
    many_are_outstanding(3, &r);
    for (int i = 0; i < rounds; i++) {
        on_done_may_close_the_array(1 + i % 3);
        on_done_may_be_quicker_than_the_call();
        all_kinds_are_read(&r);
    }
    scratch_remove(path);
    free(model);
    return 0;
}
