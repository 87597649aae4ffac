/* Asynchronous reads of views beside other operations on their arrays: writes and commits, a
 * refresh, a fork.
 *
 * usage: test_async_views_beside [ROUNDS [SEED]] */
#include "view_orders.h"

#include "support/sanitized.h"

#include <pthread.h>
#include <sys/wait.h>

typedef struct visitor {
    caterva_array **arrays;
    int number;
    rng random;
} visitor;

/* Changes only the last row, which no view shows. */
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
        order o = {.reported = 0};
        begin_order(&o, v->arrays, &v->random);
        if (rng_one_in(&v->random, 6)) caterva_request_cancel(o.request);
        wait_for(&o);
        finish_order(&o);
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
    for (int i = 0; i < ARRAYS; i++) arrays[i] = make_numbered("mem:", i, shape, r);
    for (int i = 0; i < N; i++) {
        visitors[i] = (visitor){arrays, i, rng_from_seed(rng_next(r))};
        CHECK(pthread_create(&ids[i], NULL, write_and_read, &visitors[i]) == 0, "thread %d",
              i);
    }
    for (int i = 0; i < N; i++) pthread_join(ids[i], NULL);
    discard_all(arrays);
}

/* Reads begun before a refresh read what the handle saw then. */
static void refresh_in_the_middle(rng *r)
{
    enum { N = 20 };
    static const int64_t shape[2] = {SIDE, SIDE};
    char path[SCRATCH_PATH];
    caterva_error err;
    order orders[N] = {{.reported = 0}};
    caterva_array *arrays[ARRAYS];
    scratch_path(path, "refreshed");
    for (int i = 1; i < ARRAYS; i++) arrays[i] = make_numbered("mem:", i, shape, r);
    CHECK_OK(caterva_close(make_numbered(path, 0, shape, r), &err), err);
    CHECK_OK(caterva_open(path, NULL, &arrays[0], &err), err);
    CHECK_OK(caterva_close(make_numbered(path, 9, shape, r), &err), err); /* in its place */
    for (int i = 0; i < N; i++) begin_order(&orders[i], arrays, r);
    CHECK_OK(caterva_refresh(arrays[0], &err), err);
    for (int i = 0; i < N; i++) {
        wait_for(&orders[i]);
        CHECK(orders[i].status == CATERVA_OK, "%d gives %d", i, orders[i].status);
        finish_order(&orders[i]);
    }
    discard_all(arrays);
    scratch_remove(path);
}

/* A forked child has no outstanding reads. */
static int use_in_child(caterva_array **arrays, order *orders, int n, rng *r)
{
    alarm(60);
    for (int i = 0; i < n; i++) {
        caterva_status status = caterva_request_wait(orders[i].request, NULL);
        if (status != CATERVA_OK && status != CATERVA_ESTOPPED) return 1;
        caterva_request_cancel(orders[i].request);
        caterva_request_release(orders[i].request);
    }
    order own = {.reported = 0};
    begin_order(&own, arrays, r);
    wait_for(&own);
    if (own.status != CATERVA_OK) return 2;
    finish_order(&own);
    discard_all(arrays);
    for (int i = 0; i < n; i++)
        if (atomic_load(&orders[i].reported) > 1) return 3;
    return 0;
}

static void fork_in_the_middle(rng *r)
{
    enum { N = 20 };
    order orders[N] = {{.reported = 0}};
    caterva_array *arrays[ARRAYS];
    draw_arrays(arrays, r);
    for (int i = 0; i < N; i++) begin_order(&orders[i], arrays, r);
    pid_t child = fork();
    if (child == 0) _exit(use_in_child(arrays, orders, N, r));
    int status = -1;
    CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0, "child: %d",
          status);
    for (int i = 0; i < N; i++) wait_for(&orders[i]);
    for (int i = 0; i < N; i++) finish_order(&orders[i]);
    discard_all(arrays);
}

int main(int argc, char **argv)
{
    int rounds = (int)number_argument(argc, argv, 1, 60);
    uint64_t seed = seed_argument(argc, argv, 2);
    rng r = rng_from_seed(seed);
    alarm(560); /* ends the program if it hangs */
    set_allocator();
    for (int i = 0; i < rounds; i++) {
        refresh_in_the_middle(&r);
        if (i % 10 == 0) beside_writers(&r);
        if (!SANITIZED && !getenv("CATERVA_EMULATED")) fork_in_the_middle(&r);
    }
    return 0;
}
