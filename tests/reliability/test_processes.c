/* A writer process and concurrent reader processes, on a file and on a directory. Every read is
 * exactly one committed state, the one that the reader opened until it refreshes, and states
 * never go back; a second writer gets CATERVA_EBUSY. Each state is computed from its number
 * (support/model.h), which is stored with it as an attribute, so that a mixture of two states
 * is detected. Then the same with successive writers that are killed at any point:
 * acknowledged states exist, and the next writer reuses only free space.
 *
 * usage: test_processes [--long] [SEED] */
#include "support/info.h"
#include "support/model.h"
#include "support/processes.h"
#include "support/random.h"
#include "support/scratch.h"

#include <caterva_upkeep.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { READERS = 3 };

/* Shared by the processes. */
typedef struct board {
    atomic_int committed; /* the last acknowledged state */
    atomic_int holding;   /* the writer has the array open */
    atomic_int closings;  /* number of closes, counted before */
    atomic_int done;
    atomic_int n_reads;
    atomic_int n_busy;
    atomic_int last;    /* the state at the end */
    atomic_int started; /* the writer to be killed runs */
    atomic_int left;    /* the state that the last killed writer left */
    int n_commits, n_kills;
} board;

static board *shared;
static char board_path[SCRATCH_PATH];
static const char kind[] = "mixed";

/* ---- The writer ---------------------------------------------------------- */

static caterva_array *open_writer(const char *path, caterva_durability durability)
{
    caterva_error err;
    caterva_open_options options = CATERVA_OPEN_INIT;
    options.mode = CATERVA_MODE_WRITE;
    options.threads = 1;
    options.durability = durability;
    for (;;) { /* a reader that tries to open a second writer may interfere */
        caterva_array *array;
        caterva_status status = caterva_open(path, &options, &array, &err);
        if (status == CATERVA_OK) return array;
        CHECK(status == CATERVA_EBUSY, "%s", err.message);
        usleep(100);
    }
}

/* Closes sometimes, which tidies if there is no reader. */
static void write_states(const char *path, uint64_t seed)
{
    caterva_error err;
    rng r = rng_from_seed(seed);
    model m = model_begin(kind);
    caterva_array *array = open_writer(path, CATERVA_DURABILITY_FULL);
    atomic_store(&shared->holding, 1);
    for (int i = 0; i < shared->n_commits; i++) {
        int32_t state = i + 1;
        CHECK_OK(model_step(&m, kind, i, array, &err), err);
        CHECK_OK(caterva_attr_set(array, "state", &state, sizeof state, &err), err);
        CHECK_OK(caterva_commit(array, &err), err);
        atomic_store(&shared->committed, state);
        if (!rng_one_in(&r, 10)) continue;
        atomic_store(&shared->holding, 0);
        atomic_fetch_add(&shared->closings, 1);
        CHECK_OK(caterva_close(array, &err), err);
        caterva_durability durability =
            rng_one_in(&r, 2) ? CATERVA_DURABILITY_FULL : CATERVA_DURABILITY_NONE;
        array = open_writer(path, durability);
        atomic_store(&shared->holding, 1);
    }
    atomic_store(&shared->holding, 0);
    atomic_fetch_add(&shared->closings, 1);
    CHECK_OK(caterva_close(array, &err), err);
    model_free(&m);
}

/* ---- Readers ------------------------------------------------------------- */

typedef struct reader {
    rng random;
    const char *path;
    caterva_array *array;
    model m; /* in state `state` */
    int state;
} reader;

static int state_of(caterva_array *array)
{
    caterva_error err;
    void *value;
    size_t size;
    int32_t state = 0;
    caterva_status status = caterva_attr_get(array, "state", &value, &size, &err);
    if (status == CATERVA_ENOTFOUND) return 0;
    CHECK(status == CATERVA_OK && size == sizeof state, "%s", err.message);
    memcpy(&state, value, sizeof state);
    caterva_free(value);
    return state;
}

/* Checks a random box, or the whole array, against the state's model. */
static void check_box(reader *r, bool all)
{
    caterva_error err;
    const int64_t *shape = info_of(r->array)->shape;
    int64_t start[2] = {0, 0}, stop[2] = {shape[0], shape[1]};
    for (int d = 0; d < 2; d++) {
        CHECK(shape[d] == r->m.shape[d], "state %d: axis %d has %lld, not %lld", r->state, d,
              (long long)shape[d], (long long)r->m.shape[d]);
        if (!all) start[d] = rng_between(&r->random, 0, shape[d]);
        if (!all) stop[d] = rng_between(&r->random, start[d], shape[d]);
    }
    int64_t width = stop[1] - start[1];
    size_t size = (size_t)((stop[0] - start[0]) * width) * sizeof(int32_t);
    int32_t *got = check_alloc(size);
    CHECK_OK(caterva_read(r->array, start, stop, got, size, &err), err);
    for (int64_t row = start[0]; row < stop[0]; row++)
        CHECK(memcmp(got + (row - start[0]) * width, r->m.items + row * shape[1] + start[1],
                     (size_t)width * sizeof *got) == 0,
              "row %lld is not of state %d", (long long)row, r->state);
    free(got);
    atomic_fetch_add(&shared->n_reads, 1);
}

/* Advances the model to the state that was opened. */
static void follow(reader *r, int at_least)
{
    int state = state_of(r->array);
    CHECK(state >= r->state && state >= at_least, "state %d after %d, %d was committed",
          state, r->state, at_least);
    for (; r->state < state; r->state++)
        CHECK(model_step(&r->m, kind, r->state, NULL, NULL) == CATERVA_OK, "no step");
}

static void try_to_write(reader *r)
{
    caterva_error err;
    caterva_open_options options = CATERVA_OPEN_INIT;
    options.mode = CATERVA_MODE_WRITE;
    caterva_array *array;
    int closings = atomic_load(&shared->closings);
    if (!atomic_load(&shared->holding)) return;
    caterva_status status = caterva_open(r->path, &options, &array, &err);
    if (status == CATERVA_EBUSY) {
        atomic_fetch_add(&shared->n_busy, 1);
        return;
    }
    CHECK(status == CATERVA_OK, "a second writer: %s", err.message);
    CHECK(atomic_load(&shared->closings) > closings, "a second writer beside the first");
    caterva_discard(array);
}

static void read_states(const char *path, uint64_t seed)
{
    caterva_error err;
    reader r = {.random = rng_from_seed(seed), .path = path, .m = model_begin(kind)};
    bool last = false;
    CHECK_OK(caterva_open(path, NULL, &r.array, &err), err);
    follow(&r, 0);
    while (!last) {
        last = atomic_load(&shared->done) != 0; /* then one more time */
        for (int i = rng_int(&r.random, 1, 4); i > 0; i--) {
            check_box(&r, rng_one_in(&r.random, 2));
            if (rng_one_in(&r.random, 3)) usleep((useconds_t)rng_int(&r.random, 0, 3000));
        }
        check_box(&r, true);
        if (rng_one_in(&r.random, 4)) try_to_write(&r);
        int committed = atomic_load(&shared->committed);
        if (rng_one_in(&r.random, 3)) {
            CHECK_OK(caterva_close(r.array, &err), err);
            if (rng_one_in(&r.random, 2)) usleep(2000); /* no reader: it tidies */
            CHECK_OK(caterva_open(path, NULL, &r.array, &err), err);
        } else {
            CHECK_OK(caterva_refresh(r.array, &err), err);
        }
        follow(&r, committed);
    }
    CHECK(r.state == atomic_load(&shared->last), "the last state is %d", r.state);
    check_box(&r, true);
    CHECK_OK(caterva_close(r.array, &err), err);
    model_free(&r.m);
}

/* ---- Processes ----------------------------------------------------------- */

/* Runs this program with the name of one of `roles`. */
static process start(const char *role, const char *path, uint64_t seed)
{
    char number[32];
    snprintf(number, sizeof number, "%" PRIu64, seed);
    fflush(stdout);
    return process_start((const char *[]){NULL, role, board_path, path, number, NULL});
}

static bool ended_well(process p) { return process_wait(p) == 0; }

static void begin(char path[SCRATCH_PATH], const char *name)
{
    scratch_path(path, name);
    scratch_remove(path);
    *shared = (board){.n_commits = shared->n_commits, .n_kills = shared->n_kills};
}

/* Returns the mean time of a commit in microseconds. */
static int run_processes(const char *name, caterva_layout layout, uint64_t seed)
{
    caterva_error err;
    char path[SCRATCH_PATH];
    begin(path, name);
    model m = model_begin(kind);
    CHECK_OK(model_create(&m, path, layout, &err), err);
    model_free(&m);

    process readers[READERS];
    for (int i = 0; i < READERS; i++)
        readers[i] = start("reader", path, seed + (uint64_t)i + 1);
    struct timespec before, after;
    clock_gettime(CLOCK_MONOTONIC, &before);
    bool good = ended_well(start("writer", path, seed));
    clock_gettime(CLOCK_MONOTONIC, &after);
    atomic_store(&shared->last, shared->n_commits);
    atomic_store(&shared->done, 1);
    for (int i = 0; i < READERS; i++) good = ended_well(readers[i]) && good;
    CHECK(good, "%s: a process failed", name);
    CHECK(atomic_load(&shared->n_reads) > shared->n_commits / 4, "only %d reads",
          atomic_load(&shared->n_reads));
    printf("%s: %d commits, %d reads, a second writer refused %d times\n", name,
           shared->n_commits, atomic_load(&shared->n_reads), atomic_load(&shared->n_busy));
    double ns = (double)(after.tv_sec - before.tv_sec) * 1e9 +
                (double)(after.tv_nsec - before.tv_nsec);
    return (int)(ns / 1000 / shared->n_commits);
}

/* ---- Killed writers -------------------------------------------------------- */

static model killed; /* in the state that the last writer left */
static int killed_state;

/* Writes until killed. In many sessions, so that most writes reuse space of an earlier
 * session, of another process. */
static void write_until_killed(const char *path, uint64_t seed)
{
    caterva_error err;
    rng r = rng_from_seed(seed);
    model m = model_begin(kind);
    int left = atomic_load(&shared->left);
    for (int i = 0; i < left; i++)
        CHECK(model_step(&m, kind, i, NULL, NULL) == CATERVA_OK, "no step");
    atomic_store(&shared->started, 1);
    caterva_durability durability =
        rng_one_in(&r, 4) ? CATERVA_DURABILITY_ORDERED : CATERVA_DURABILITY_NONE;
    caterva_array *array = open_writer(path, durability);
    for (int i = left;; i++) {
        int32_t state = i + 1;
        CHECK_OK(model_step(&m, kind, i, array, &err), err);
        CHECK_OK(caterva_attr_set(array, "state", &state, sizeof state, &err), err);
        CHECK_OK(caterva_commit(array, &err), err);
        atomic_store(&shared->committed, state);
        if (!rng_one_in(&r, 3)) continue;
        CHECK_OK(caterva_close(array, &err), err);
        array = open_writer(path, durability);
    }
}

/* The array must hold the acknowledged state, or the one in flight. */
static void check_left(const char *path, rng *r)
{
    caterva_error err;
    caterva_verify_result result = CATERVA_VERIFY_RESULT_INIT;
    reader left = {.random = *r, .path = path, .m = killed, .state = killed_state};
    int committed = atomic_load(&shared->committed);
    CHECK_OK(caterva_open(path, NULL, &left.array, &err), err);
    follow(&left, committed);
    CHECK(left.state <= committed + 1, "state %d, %d was the last", left.state, committed);
    check_box(&left, true);
    CHECK_OK(caterva_verify(left.array, NULL, &result, &err), err);
    CHECK(result.damages == 0, "%lld damages", (long long)result.damages);
    CHECK_OK(caterva_close(left.array, &err), err);
    killed = left.m;
    killed_state = left.state;
    atomic_store(&shared->committed, left.state);
}

static void kill_writers(const char *path, int longest_us, uint64_t seed)
{
    rng r = rng_from_seed(seed);
    for (int i = 0; i < shared->n_kills; i++) {
        atomic_store(&shared->started, 0);
        atomic_store(&shared->left, killed_state);
        process writer = start("killed", path, rng_next(&r));
        while (!atomic_load(&shared->started)) usleep(100);
        usleep((useconds_t)rng_int(&r, 500, longest_us));
        process_kill(writer);
        CHECK(process_wait(writer) == -1, "writer %d failed", i);
        check_left(path, &r);
    }
}

static void run_kills(const char *name, caterva_layout layout, int longest_us, uint64_t seed)
{
    caterva_error err;
    char path[SCRATCH_PATH];
    begin(path, name);
    killed = model_begin(kind);
    killed_state = 0;
    CHECK_OK(model_create(&killed, path, layout, &err), err);
    process readers[READERS];
    for (int i = 0; i < READERS; i++)
        readers[i] = start("reader", path, seed + (uint64_t)i + 1);
    kill_writers(path, longest_us, seed);
    atomic_store(&shared->last, killed_state);
    atomic_store(&shared->done, 1);
    bool good = true;
    for (int i = 0; i < READERS; i++) good = ended_well(readers[i]) && good;
    CHECK(good, "%s: a reader failed", name);
    printf("%s: %d writers killed after %d commits, %d reads, nothing lost or mixed\n", name,
           shared->n_kills, killed_state, atomic_load(&shared->n_reads));
    model_free(&killed);
}

static const struct {
    const char *name;
    void (*run)(const char *path, uint64_t seed);
} roles[] = {
    {"reader", read_states}, {"writer", write_states}, {"killed", write_until_killed}};

static bool run_role(int argc, char **argv)
{
    for (size_t i = 0; argc == 5 && i < sizeof roles / sizeof *roles; i++) {
        if (strcmp(argv[1], roles[i].name) != 0) continue;
        shared = process_share(argv[2], sizeof *shared);
        roles[i].run(argv[3], strtoull(argv[4], NULL, 10));
        return true;
    }
    return false;
}

int main(int argc, char **argv)
{
    if (run_role(argc, argv)) return 0;
    bool is_long = argc > 1 && strcmp(argv[1], "--long") == 0;
    bool is_emulated = getenv("CATERVA_EMULATED") != NULL;
    bool is_longer = is_long || getenv("CATERVA_TEST_LONG");
    uint64_t seed = seed_argument(argc, argv, is_long ? 2 : 1);
    scratch_path(board_path, "board");
    shared = process_share(board_path, sizeof *shared);
    shared->n_commits = is_longer ? 3000 : 120;
    shared->n_kills = is_longer ? 500 : is_emulated ? 200 : 25;
    int commit_us = run_processes("file", CATERVA_LAYOUT_CONTIGUOUS, seed);
    (void)run_processes("directory", CATERVA_LAYOUT_SPARSE, seed + 10);
    int longest_us = is_emulated ? 250000 + 4 * commit_us : 25000;
    run_kills("killed", CATERVA_LAYOUT_CONTIGUOUS, longest_us, seed + 20);
    if (is_emulated) /* wine removes a file before it renames the one that replaces it */
        printf("killed-directory: not tried in wine\n");
    else
        run_kills("killed-directory", CATERVA_LAYOUT_SPARSE, 100000, seed + 30);
    return 0;
}
