/* Prefetch and read-ahead: results of reads never depend on them. Several threads of one
 * handle prefetch, read, write, commit, roll back and reshape random boxes, while handles are
 * closed, refreshed and forked.
 *
 * Each cell is written by one thread only, so that it knows what it must read back: rows of
 * the array belong to threads in turn, in bands that do not coincide with chunks.
 *
 * usage: test_prefetch_threads [ROUNDS [SEED]] */
#include "caterva.h"

#include "support/check.h"
#include "support/cube.h"
#include "support/sanitized.h"
#include "support/scratch.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { N_THREADS = 4, BAND = CUBE_SIDE / N_THREADS };

/* ---- In the middle of it -------------------------------------------------------------- */

static int use_in_child(caterva_array *array, int32_t *model)
{
    alarm(60);
    cube_box all = cube_box_of(cube_origin, cube_shape);
    for (int64_t k = 0; k < 20; k++) {
        cube_box b = cube_plane(0, k, 1);
        cube_check_read(array, model, &b);
    }
    caterva_prefetch(array, all.start, all.stop, NULL);
    cube_check_read(array, model, &all);
    caterva_discard(array);
    return 0;
}

/* Forks during background work, and uses and closes the handle in the child. */
static void a_child_goes_on(const char *path, int32_t *model)
{
    cube_box all = cube_box_of(cube_origin, cube_shape);
    if (getenv("CATERVA_EMULATED")) { /* see unit/test_pool_forks.c */
        puts("not under emulation: threads of a forked child");
        return;
    }
    for (int i = 0; i < 30; i++) {
        caterva_array *array = cube_open(path, 3, i % 2 ? CUBE_CACHE_ALL : 0, false);
        cube_prefetch(array, &all);
        usleep((useconds_t)(i % 5) * 100);
        pid_t child = fork();
        if (child == 0) _exit(use_in_child(array, model));
        int status = -1;
        CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0, "child %d: %d",
              i, status);
        cube_check_read(array, model, &all);
        caterva_discard(array);
    }
}

static void closing_in_the_middle(const char *path, rng *r)
{
    caterva_error err;
    for (int i = few_if_sanitized(200, 60); i > 0; i--) {
        caterva_array *array = cube_open(path, 2 + i % 3, i % 2 ? CUBE_CACHE_ALL : 0, false);
        for (int k = rng_int(r, 1, 3); k > 0; k--) {
            cube_box b = cube_random_box(r, 0, CUBE_SIDE);
            cube_prefetch(array, &b);
        }
        if (rng_one_in(r, 2)) usleep((useconds_t)rng_int(r, 0, 2000));
        if (rng_one_in(r, 3)) CHECK_OK(caterva_refresh(array, &err), err);
        if (rng_one_in(r, 2))
            caterva_discard(array);
        else
            CHECK_OK(caterva_close(array, &err), err);
    }
}

/* ---- Several threads ---------------------------------------------------------------- */

typedef struct team {
    caterva_array *array;
    int32_t *model;
    int steps;
} team;

typedef struct member {
    team *team;
    int number;
    rng random;
} member;

static void write_own(member *m)
{
    caterva_error err;
    cube_box b = cube_random_box(&m->random, m->number * BAND, (m->number + 1) * BAND);
    int32_t *items = check_alloc(b.size);
    for (size_t i = 0; i < b.size / sizeof *items; i++)
        items[i] = (int32_t)(rng_next(&m->random) & 1023);
    CHECK_OK(caterva_write(m->team->array, b.start, b.stop, items, b.size, &err), err);
    cube_copy(m->team->model, &b, items, true);
    free(items);
}

static void scan_own(member *m)
{
    int64_t at = rng_int(&m->random, 0, BAND - 6);
    for (int64_t i = at; i < at + 6; i++) {
        cube_box b = cube_plane(0, m->number * BAND + i, 1);
        cube_check_read(m->team->array, m->team->model, &b);
    }
}

static void *work(void *argument)
{
    member *m = argument;
    caterva_error err;
    for (int i = 0; i < m->team->steps; i++) {
        cube_box any = cube_random_box(&m->random, 0, CUBE_SIDE);
        cube_box own = cube_random_box(&m->random, m->number * BAND, (m->number + 1) * BAND);
        switch (rng_int(&m->random, 0, 9)) {
        case 0:
        case 1:
        case 2: cube_prefetch(m->team->array, &any); break;
        case 3: write_own(m); break;
        case 4: CHECK_OK(caterva_commit(m->team->array, &err), err); break;
        case 5: scan_own(m); break;
        default: cube_check_read(m->team->array, m->team->model, &own);
        }
    }
    return NULL;
}

static void run_threads(caterva_array *array, int32_t *model, int steps, rng *r)
{
    team t = {array, model, steps};
    pthread_t threads[N_THREADS];
    member members[N_THREADS];
    for (int i = 0; i < N_THREADS; i++) {
        members[i] = (member){&t, i, rng_from_seed(rng_next(r))};
        CHECK(pthread_create(&threads[i], NULL, work, &members[i]) == 0, "thread %d", i);
    }
    for (int i = 0; i < N_THREADS; i++) pthread_join(threads[i], NULL);
}

/* Operations that need exclusive use, during background work of the threads. */
static void disturb(caterva_array *array, int32_t *model, rng *r)
{
    caterva_error err;
    cube_box all = cube_box_of(cube_origin, cube_shape),
             rows = cube_plane(0, 0, CUBE_SIDE / 2);
    CHECK_OK(caterva_commit(array, &err), err);
    cube_prefetch(array, &all);
    if (rng_one_in(r, 2)) { /* written, and rolled back */
        int32_t *zeros = check_alloc(rows.size);
        memset(zeros, 0, rows.size);
        CHECK_OK(caterva_write(array, rows.start, rows.stop, zeros, rows.size, &err), err);
        cube_prefetch(array, &all);
        free(zeros);
    }
    if (rng_one_in(r, 2)) {
        CHECK_OK(caterva_resize(array, (int64_t[]){CUBE_SIDE / 2, CUBE_SIDE, 20}, &err), err);
        cube_prefetch(array, &(cube_box){.stop = {CUBE_SIDE / 2, CUBE_SIDE, 20}});
        CHECK_OK(caterva_resize(array, cube_shape, &err), err);
    }
    CHECK_OK(caterva_rollback(array, &err), err);
    cube_check_read(array, model, &all);
}

static void run_round(rng *r, uint64_t seed)
{
    static const int64_t caches[] = {CUBE_CACHE_ALL, 0, 60 * CUBE_BLOCK_BYTES,
                                     10 * CUBE_BLOCK_BYTES};
    caterva_error err;
    char path[SCRATCH_PATH];
    caterva_array *array;
    int32_t *model = cube_new(seed);
    scratch_path(path, "random");
    cube_create(rng_one_in(r, 3) ? "mem:" : path, model, caches[rng_int(r, 0, 3)], false, r,
                &array);
    for (int i = 0; i < 3; i++) {
        run_threads(array, model, 40, r);
        disturb(array, model, r);
    }
    cube_box all = cube_box_of(cube_origin, cube_shape);
    cube_prefetch(array, &all);
    if (rng_one_in(r, 2))
        CHECK_OK(caterva_close(array, &err), err);
    else
        caterva_discard(array);
    scratch_remove(path);
    free(model);
}

int main(int argc, char **argv)
{
    caterva_error err;
    char path[SCRATCH_PATH];
    caterva_array *array;
    int rounds = (int)number_argument(argc, argv, 1, (uint64_t)few_if_sanitized(12, 4));
    uint64_t seed = seed_argument(argc, argv, 2);
    rng r = rng_from_seed(seed);
    int32_t *model = cube_new(seed);
    scratch_path(path, "fixed");
    cube_create(path, model, -1, true, &(rng){0}, &array);
    CHECK_OK(caterva_close(array, &err), err);
    if (!SANITIZED) a_child_goes_on(path, model);
    closing_in_the_middle(path, &r);
    for (int i = 0; i < rounds; i++) run_round(&r, seed + (uint64_t)i);
    free(model);
    return 0;
}
