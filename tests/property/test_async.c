/* Reads that nobody waits for. Of each on_done is called once, whatever becomes of the read
 * and its handle; what was read is what caterva_read would have given; after the end no
 * byte of the buffer is written. Thousands are outstanding at once, of many threads, are
 * cancelled, and lose their handle in the middle; a writer, a refresh and a fork come
 * between.
 *
 * usage: test_async [ROUNDS [SEED]] */
#include "caterva.h"

#include "support/check.h"
#include "support/cube.h"
#include "support/sanitized.h"
#include "support/scratch.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { N_THREADS = 16, N_OUTSTANDING = 10000, GUARD = 8, BAND = CUBE_SIDE / N_THREADS };

static int32_t *model;
static char path[SCRATCH_PATH];

/* One read, from the call to its end. */
typedef struct order {
    caterva_array *array;
    caterva_request *request;
    cube_box box;
    int32_t *got; /* with GUARD items behind */
    atomic_int told;
    caterva_status status;
    atomic_bool *gate;             /* on_done waits until it is open; or NULL */
    void (*then)(struct order *o); /* on_done calls it; or NULL */
    struct order *other;
} order;

static void on_done(void *context, caterva_status status, const caterva_error *error)
{
    order *o = context;
    CHECK((status == CATERVA_OK) == (error == NULL), "an error with %d", status);
    CHECK(!error || (error->code == status && error->message[0]), "no sentence");
    o->status = status;
    for (int i = 0; o->gate && !atomic_load(o->gate); i++) {
        CHECK(i < 60000, "the gate stays shut");
        usleep(1000);
    }
    if (o->then) o->then(o);
    atomic_fetch_add(&o->told, 1); /* the last thing: others count */
}

static void set_up(order *o, const cube_box *box)
{
    memset(o, 0, sizeof *o);
    o->box = *box;
    o->got = check_alloc(box->size + GUARD * sizeof(int32_t));
    memset(o->got, 0x55, box->size + GUARD * sizeof(int32_t));
}

/* The words of the call are gone when it returns. */
static caterva_status begin(order *o, caterva_array *array, caterva_error *err)
{
    cube_box *words = check_alloc(sizeof *words);
    caterva_selection selection = CATERVA_SELECTION_INIT;
    caterva_buffer dst = CATERVA_BUFFER_INIT;
    caterva_async_options options = CATERVA_ASYNC_INIT;
    *words = o->box;
    selection.start = words->start;
    selection.stop = words->stop;
    dst.data = o->got;
    dst.size = o->box.size;
    options.on_done = on_done;
    options.context = o;
    o->array = array;
    caterva_status status =
        caterva_read_async(array, &selection, &dst, &options, &o->request, err);
    memset(words, 0x7F, sizeof *words);
    free(words);
    return status;
}

static void must_begin(order *o, caterva_array *array)
{
    caterva_error err;
    CHECK_OK(begin(o, array, &err), err);
}

static void wait_for(order *o)
{
    caterva_error err;
    caterva_status status = caterva_request_wait(o->request, &err);
    CHECK(status == o->status, "waited for %s, told of %s", caterva_status_name(status),
          caterva_status_name(o->status));
}

/* Told once, and right where it says so. */
static void finish(order *o)
{
    int told = atomic_load(&o->told);
    CHECK(told == 1, "on_done was called %d times", told);
    CHECK(o->status == CATERVA_OK || o->status == CATERVA_ESTOPPED, "a read gave %s",
          caterva_status_name(o->status));
    if (o->status == CATERVA_OK) {
        int32_t *expected = check_alloc(o->box.size);
        cube_copy(model, &o->box, expected, false);
        CHECK(memcmp(o->got, expected, o->box.size) == 0, "other items");
        free(expected);
    }
    for (int i = 0; i < GUARD; i++)
        CHECK(o->got[o->box.size / sizeof(int32_t) + (size_t)i] == 0x55555555, "too far");
    caterva_request_release(o->request);
    free(o->got);
}

static cube_box small_box(rng *r)
{
    int64_t start[3], stop[3];
    for (int d = 0; d < 3; d++) {
        start[d] = rng_between(r, 0, CUBE_SIDE - 10);
        stop[d] = start[d] + rng_between(r, 1, 10);
    }
    return cube_box_of(start, stop);
}

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

/* Ten thousand of sixteen threads, an eighth of them cancelled at any moment. */
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

/* The caller goes on at once, also through a handle with one thread. */
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
    for (int i = 0; i < 3; i++) CHECK(atomic_load(&orders[i].told) == 0, "%d is over", i);
    cube_check_read(array, model, &box);
    atomic_store(&gate, true);
    for (int i = 0; i < 3; i++) {
        wait_for(&orders[i]);
        CHECK(orders[i].status == CATERVA_OK, "%d", orders[i].status);
        finish(&orders[i]);
    }
    caterva_discard(array);
}

/* Twice, and when it is too late. */
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

/* What a call points at: gone as soon as it has returned. */
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
    CHECK_OK(caterva_selection_shape(array, &w->selection, shape, &ndim, err), *err);
    for (int d = 0; d < ndim; d++) {
        w->strides[d] = stride;
        stride *= shape[d];
    }
    w->dst.strides = w->strides;
    w->dst.ndim = ndim;
    w->dst.size = (size_t)stride;
    return w->dst.size;
}

/* What they point at is copied; the result is that of a read that waits. */
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

/* What cannot be read is told with the sentence of a read that waits. */
static void damage_is_told(void)
{
    caterva_error err, told;
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
    CHECK_OK(caterva_read_async(array, NULL, &dst, NULL, &request, &told), told);
    CHECK(caterva_request_wait(request, &told) == CATERVA_ECORRUPT, "not told");
    CHECK(told.position == err.position && strcmp(told.message, err.message) == 0, "%s, %s",
          told.message, err.message);
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
    caterva_status status = caterva_request_wait(o->request, &err); /* its own: at once */
    CHECK(status == o->status, "its own request gives %d", status);
    if (o->other)
        CHECK(caterva_request_wait(o->other->request, &err) == CATERVA_EBUSY ||
                  atomic_load(&o->other->told),
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
        wait_for(&orders[i]); /* begun by the one before */
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

/* When all have been begun. Those that wait are stopped by it, and told in it. */
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

/* And before the call that has begun it returns. */
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

/* ---- Closing ---------------------------------------------------------------------------- */

static void closing_in_the_middle(rng *r)
{
    enum { N = 60 };
    order orders[N];
    caterva_array *array =
        cube_open(path, rng_int(r, 1, 3), rng_one_in(r, 2) ? -1 : 0, false);
    int n = rng_int(r, 0, N);
    for (int i = 0; i < n; i++) {
        cube_box box = cube_random_box(r, 0, CUBE_SIDE);
        set_up(&orders[i], &box);
        must_begin(&orders[i], array);
        if (rng_one_in(r, 4)) { /* nobody asks for it again */
            caterva_request_release(orders[i].request);
            orders[i].request = NULL;
        }
    }
    if (rng_one_in(r, 2)) usleep((useconds_t)rng_int(r, 0, 2000));
    if (rng_one_in(r, 2))
        caterva_discard(array);
    else
        CHECK(caterva_close(array, NULL) == CATERVA_OK, "close");
    for (int i = 0; i < n; i++) finish(&orders[i]); /* all are over: nobody waits */
}

/* ---- Writers, refresh ---------------------------------------------------------------- */

typedef struct writer {
    caterva_array *array;
    int number;
    rng random;
} writer;

/* Each thread writes rows of its own and reads what it wrote. */
static void *write_and_read(void *argument)
{
    writer *w = argument;
    caterva_error err;
    for (int i = 0; i < 12; i++) {
        cube_box box = cube_random_box(&w->random, w->number * BAND, (w->number + 1) * BAND);
        order o;
        set_up(&o, &box);
        for (size_t k = 0; k < box.size / sizeof(int32_t); k++)
            o.got[k] = (int32_t)(rng_next(&w->random) & 1023);
        CHECK_OK(caterva_write(w->array, box.start, box.stop, o.got, box.size, &err), err);
        cube_copy(model, &box, o.got, true);
        must_begin(&o, w->array);
        if (rng_one_in(&w->random, 5)) caterva_request_cancel(o.request);
        if (rng_one_in(&w->random, 4)) CHECK_OK(caterva_commit(w->array, &err), err);
        wait_for(&o);
        finish(&o);
    }
    return NULL;
}

static void beside_writers(rng *r)
{
    caterva_error err;
    caterva_open_options options = CATERVA_OPEN_INIT;
    caterva_array *array;
    pthread_t ids[N_THREADS];
    writer writers[N_THREADS];
    options.mode = CATERVA_MODE_WRITE;
    options.durability = CATERVA_DURABILITY_NONE;
    options.threads = rng_int(r, 1, 4);
    CHECK_OK(caterva_open(path, &options, &array, &err), err);
    for (int i = 0; i < N_THREADS; i++) {
        writers[i] = (writer){array, i, rng_from_seed(rng_next(r))};
        CHECK(pthread_create(&ids[i], NULL, write_and_read, &writers[i]) == 0, "thread %d",
              i);
    }
    for (int i = 0; i < N_THREADS; i++) pthread_join(ids[i], NULL);
    CHECK_OK(caterva_close(array, &err), err);
}

/* A change of shape that comes first makes a read stale; one that comes later does not. */
static void beside_a_resize(void)
{
    enum { N = 30 };
    static const int64_t half[3] = {CUBE_SIDE / 2, CUBE_SIDE, CUBE_SIDE};
    caterva_error err;
    caterva_array *array;
    order orders[N];
    cube_box box = cube_plane(0, 1, 3);
    cube_create("mem:", model, 0, true, &(rng){0}, &array);
    for (int i = 0; i < N; i++) {
        set_up(&orders[i], &box);
        must_begin(&orders[i], array);
        if (i == N / 2) CHECK_OK(caterva_resize(array, half, &err), err);
        if (i == N / 2) CHECK_OK(caterva_resize(array, cube_shape, &err), err);
    }
    for (int i = 0; i < N; i++) {
        wait_for(&orders[i]);
        if (orders[i].status == CATERVA_ESTALE) orders[i].status = CATERVA_ESTOPPED;
        finish(&orders[i]);
    }
    set_up(&orders[0], &box);
    CHECK_OK(caterva_resize(array, half, &err), err);
    must_begin(&orders[0], array); /* after it: of the shape that is */
    wait_for(&orders[0]);
    CHECK(orders[0].status == CATERVA_OK, "%s", caterva_status_name(orders[0].status));
    finish(&orders[0]);
    caterva_discard(array);
}

/* What was begun before a refresh reads what the handle saw then. */
static void refresh_in_the_middle(rng *r)
{
    enum { N = 40 };
    caterva_error err;
    caterva_array *reader = cube_open(path, rng_int(r, 1, 3), 0, false), *array;
    caterva_open_options options = CATERVA_OPEN_INIT;
    order orders[N];
    cube_box box = cube_plane(0, 0, 8);
    int32_t *fresh = check_alloc(box.size), *old = check_alloc(box.size);
    options.mode = CATERVA_MODE_WRITE;
    options.durability = CATERVA_DURABILITY_NONE;
    for (size_t k = 0; k < box.size / sizeof *fresh; k++) fresh[k] = rng_int(r, 0, 99);
    CHECK_OK(caterva_open(path, &options, &array, &err), err);
    CHECK_OK(caterva_write(array, box.start, box.stop, fresh, box.size, &err), err);
    CHECK_OK(caterva_close(array, &err), err);
    for (int i = 0; i < N / 2; i++) {
        set_up(&orders[i], &box);
        must_begin(&orders[i], reader);
    }
    CHECK_OK(caterva_refresh(reader, &err), err);
    for (int i = 0; i < N / 2; i++) {
        CHECK(orders[i].status == CATERVA_OK, "%d gives %d", i, orders[i].status);
        wait_for(&orders[i]);
        finish(&orders[i]); /* the model is of before */
    }
    cube_copy(model, &box, old, false);
    cube_copy(model, &box, fresh, true);
    for (int i = N / 2; i < N; i++) {
        set_up(&orders[i], &box);
        must_begin(&orders[i], reader);
    }
    for (int i = N / 2; i < N; i++) {
        wait_for(&orders[i]);
        finish(&orders[i]);
    }
    caterva_discard(reader);
    free(fresh);
    free(old);
}

/* ---- Fork ----------------------------------------------------------------------------- */

/* In a child nothing is outstanding, whatever the parent's threads were doing. */
static int use_in_child(caterva_array *array, order *orders, int n)
{
    order own;
    cube_box box = cube_plane(0, 9, 2);
    alarm(60);
    for (int i = 0; i < n; i++) {
        int told = atomic_load(&orders[i].told);
        caterva_status status = caterva_request_wait(orders[i].request, NULL);
        if (status != CATERVA_OK && status != CATERVA_ESTOPPED) return 1;
        if (atomic_load(&orders[i].told) != told) return 2;
        caterva_request_cancel(orders[i].request);
        caterva_request_release(orders[i].request);
    }
    set_up(&own, &box);
    must_begin(&own, array);
    wait_for(&own);
    if (own.status != CATERVA_OK) return 3;
    finish(&own);
    caterva_discard(array);
    for (int i = 0; i < n; i++)
        if (atomic_load(&orders[i].told) > 1) return 4;
    return 0;
}

static void fork_in_the_middle(rng *r)
{
    enum { N = 30 };
    order orders[N];
    caterva_array *array = cube_open(path, 2, 0, false);
    for (int i = 0; i < N; i++) {
        cube_box box = cube_random_box(r, 0, CUBE_SIDE);
        set_up(&orders[i], &box);
        must_begin(&orders[i], array);
    }
    usleep((useconds_t)rng_int(r, 0, 3000));
    pid_t child = fork();
    if (child == 0) _exit(use_in_child(array, orders, N));
    int status = -1;
    CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0, "child: %d",
          status);
    for (int i = 0; i < N; i++) wait_for(&orders[i]);
    for (int i = 0; i < N; i++) finish(&orders[i]);
    caterva_discard(array);
}

int main(int argc, char **argv)
{
    caterva_error err;
    caterva_array *array;
    int rounds = (int)number_argument(argc, argv, 1, 30);
    uint64_t seed = seed_argument(argc, argv, 2);
    rng r = rng_from_seed(seed);
    alarm(560); /* a hang ends it */
    model = cube_new(seed);
    scratch_path(path, "async");
    cube_create(path, model, -1, true, &(rng){0}, &array);
    CHECK_OK(caterva_close(array, &err), err);
    nobody_is_kept_waiting();
    cancelling_is_harmless();
    on_done_may_use_the_library();
    damage_is_told();
    many_are_outstanding(1, &r);
    many_are_outstanding(3, &r);
    for (int i = 0; i < rounds; i++) {
        on_done_may_close_the_array(1 + i % 3);
        on_done_may_be_quicker_than_the_call();
        closing_in_the_middle(&r);
        all_kinds_are_read(&r);
        refresh_in_the_middle(&r);
        if (i % 6 == 0) beside_writers(&r);
        if (i % 6 == 3) beside_a_resize();
        if (!SANITIZED && !getenv("CATERVA_EMULATED")) fork_in_the_middle(&r);
    }
    scratch_remove(path);
    free(model);
    return 0;
}
