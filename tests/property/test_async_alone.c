/* Asynchronous reads beside calls that use the handle exclusively: a close, writes, a change
 * of shape, a refresh, a fork and a hold. Each read is reported once, and has the items of
 * one state of the array.
 *
 * usage: test_async_alone [ROUNDS [SEED]] */
#include "async_orders.h"

#include "support/sanitized.h"

#include <caterva_store.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/wait.h>

enum { N_THREADS = 16, BAND = CUBE_SIDE / N_THREADS };

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
        if (rng_one_in(r, 4)) { /* the request is not used again */
            caterva_request_release(orders[i].request);
            orders[i].request = NULL;
        }
    }
    if (rng_one_in(r, 2)) usleep((useconds_t)rng_int(r, 0, 2000));
    if (rng_one_in(r, 2))
        caterva_discard(array);
    else
        CHECK(caterva_close(array, NULL) == CATERVA_OK, "close");
    for (int i = 0; i < n; i++) finish(&orders[i]); /* all are over: no wait */
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

/* An earlier change of shape makes a read stale; a later one does not. */
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
    must_begin(&orders[0], array); /* after it: with the present shape */
    wait_for(&orders[0]);
    CHECK(orders[0].status == CATERVA_OK, "%s", caterva_status_name(orders[0].status));
    finish(&orders[0]);
    caterva_discard(array);
}

/* Reads begun before a refresh read what the handle saw then. */
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
        finish(&orders[i]); /* the model of the earlier state */
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

/* A forked child has no outstanding reads, whatever the parent's threads were doing. */
static int use_in_child(caterva_array *array, order *orders, int n)
{
    order own;
    cube_box box = cube_plane(0, 9, 2);
    alarm(60);
    for (int i = 0; i < n; i++) {
        int reported = atomic_load(&orders[i].reported);
        caterva_status status = caterva_request_wait(orders[i].request, NULL);
        if (status != CATERVA_OK && status != CATERVA_ESTOPPED) return 1;
        if (atomic_load(&orders[i].reported) != reported) return 2;
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
        if (atomic_load(&orders[i].reported) > 1) return 4;
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

/* ---- Held back -------------------------------------------------------------------------- */

static int n_reported(const order *orders, int n)
{
    int reported = 0;
    for (int i = 0; i < n; i++) reported += atomic_load(&orders[i].reported);
    return reported;
}

static void begin_planes(caterva_array *array, order *orders, int n)
{
    for (int i = 0; i < n; i++) {
        cube_box box = cube_plane(0, i, 1);
        set_up(&orders[i], &box);
        must_begin(&orders[i], array);
    }
}

/* Resumed as often as it was held; one call more has no effect. A forked child reads at
 * once. */
static void held_back(rng *r)
{
    enum { N = 12 };
    order before[N], orders[N];
    caterva_array *array = cube_open(path, rng_int(r, 1, 3), 0, false);
    int holds = rng_int(r, 1, 3), status = 0;
    begin_planes(array, before, N); /* some of them are running */
    for (int i = 0; i < holds; i++) caterva_background_hold();
    begin_planes(array, orders, N);
    pid_t child = SANITIZED || getenv("CATERVA_EMULATED") ? -1 : fork();
    if (child == 0) _exit(use_in_child(array, orders, N));
    CHECK(child < 0 || (waitpid(child, &status, 0) == child && status == 0), "child: %d",
          status);
    for (int i = 1; i < holds; i++) caterva_background_resume();
    usleep(5000);
    CHECK(n_reported(orders, N) == 0, "a read that is held back was done");
    caterva_background_resume();
    for (int i = 0; i < N; i++) wait_for(&before[i]);
    for (int i = 0; i < N; i++) wait_for(&orders[i]);
    for (int i = 0; i < N; i++) finish(&before[i]);
    for (int i = 0; i < N; i++) finish(&orders[i]);
    caterva_background_resume();
    caterva_discard(array);
}

int main(int argc, char **argv)
{
    int rounds = (int)number_argument(argc, argv, 1, 30);
    uint64_t seed = seed_argument(argc, argv, 2);
    rng r = rng_from_seed(seed);
    alarm(560); /* ends the program if it hangs */
    make_cube(seed);
    for (int i = 0; i < rounds; i++) {
        closing_in_the_middle(&r);
        refresh_in_the_middle(&r);
        held_back(&r);
        if (i % 6 == 0) beside_writers(&r);
        if (i % 6 == 3) beside_a_resize();
        if (!SANITIZED && !getenv("CATERVA_EMULATED")) fork_in_the_middle(&r);
    }
    scratch_remove(path);
    free(model);
    return 0;
}
