/* Threads on one handle: eight (long: sixteen, until they have read a million times, smaller
 * ones) read random boxes while another writes and commits. The test is meant to run under
 * ThreadSanitizer as well.
 *
 * The left half of the array never changes: boxes there must be exact. The right half is
 * written in bands of whole chunks, each item holding its position and the number of the
 * write. A read must return complete values for all items, no older than the last finished
 * write of its band and no newer than the one that may be running. A handle opened beside the
 * writer must see one commit: the same number in all bands.
 *
 * usage: test_threads [ROUNDS [SEED]] | --long [SEED] */
#include "caterva.h"

#include "support/check.h"
#include "support/random.h"
#include "support/scratch.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    SIDE = 256,      /* the array is SIDE x SIDE           */
    HALF = SIDE / 2, /* columns from here on are rewritten */
    BAND = 32,       /* rows of one write, one chunk       */
    N_BANDS = SIDE / BAND,
    N_READERS = 8,
    LONG_READERS = 16,
    LONG_READS = 1000000,
    LONG_BOX = 20,       /* of a side, at most */
    MAX_ROUNDS = 0xFFFF, /* as an item can contain */
    DEFAULT_ROUNDS = 150
};

typedef struct shared {
    caterva_array *array;
    char path[SCRATCH_PATH];
    uint64_t seed;
    int rounds; /* of the writer at least; all when it is done */
    int64_t reads_wanted;
    int64_t longest;              /* side of a box */
    atomic_int started[N_BANDS];  /* number of the last write begun    */
    atomic_int finished[N_BANDS]; /* number of the last write returned */
    atomic_int committed;
    atomic_int done;
    atomic_llong reads;
} shared;

typedef struct reader {
    shared *shared;
    int number;
} reader;

/* An item of write `number`, with its position in the low 16 bits. */
static uint32_t item_of(int number, int64_t row, int64_t column)
{
    return (uint32_t)number << 16 | (uint32_t)(row * SIDE + column);
}

static void check_left(const uint32_t *got, const int64_t *start, const int64_t *stop)
{
    for (int64_t row = start[0]; row < stop[0]; row++) {
        for (int64_t column = start[1]; column < stop[1]; column++, got++)
            CHECK(*got == item_of(0, row, column), "item (%lld, %lld) is 0x%x",
                  (long long)row, (long long)column, (unsigned)*got);
    }
}

static void check_right(const uint32_t *got, const int64_t *start, const int64_t *stop,
                        const int *oldest, const int *newest)
{
    for (int64_t row = start[0]; row < stop[0]; row++) {
        int band = (int)(row / BAND);
        for (int64_t column = start[1]; column < stop[1]; column++, got++) {
            int number = (int)(*got >> 16);
            CHECK((*got & 0xFFFFu) == item_of(0, row, column), "item (%lld, %lld) is 0x%x",
                  (long long)row, (long long)column, (unsigned)*got);
            CHECK(number >= oldest[band] && number <= newest[band],
                  "item (%lld, %lld) is of write %d, not %d..%d", (long long)row,
                  (long long)column, number, oldest[band], newest[band]);
        }
    }
}

static void random_range(const shared *s, rng *r, int64_t low, int64_t high, int64_t *start,
                         int64_t *stop)
{
    *start = rng_between(r, low, high - 1);
    *stop =
        rng_between(r, *start + 1, high - *start > s->longest ? *start + s->longest : high);
}

static void load_all(const atomic_int *from, int *to)
{
    for (int i = 0; i < N_BANDS; i++) to[i] = atomic_load(&from[i]);
}

static void read_one_box(shared *s, rng *r, uint32_t *bytes)
{
    caterva_error err;
    int64_t start[2];
    int64_t stop[2];
    int oldest[N_BANDS];
    int newest[N_BANDS];
    int right = rng_one_in(r, 2);
    random_range(s, r, 0, SIDE, &start[0], &stop[0]);
    random_range(s, r, right ? HALF : 0, right ? SIDE : HALF, &start[1], &stop[1]);
    load_all(s->finished, oldest);
    CHECK_OK(caterva_read(s->array, start, stop, bytes, SIDE * SIDE * sizeof(*bytes), &err),
             err);
    load_all(s->started, newest);
    if (right)
        check_right(bytes, start, stop, oldest, newest);
    else
        check_left(bytes, start, stop);
    atomic_fetch_add(&s->reads, 1);
}

/* A second handle sees a complete commit: not older than the last one that had returned
 * before, not newer than the one that may be running. */
static void read_committed_state(shared *s, uint32_t *bytes)
{
    caterva_error err;
    caterva_array *other = NULL;
    int64_t start[2] = {0, HALF};
    int64_t stop[2] = {SIDE, SIDE};
    int oldest = atomic_load(&s->committed);
    CHECK_OK(caterva_open(s->path, NULL, &other, &err), err);
    int newest = atomic_load(&s->started[0]);
    CHECK_OK(caterva_read(other, start, stop, bytes, SIDE * SIDE * sizeof(*bytes), &err),
             err);
    int number = (int)(bytes[0] >> 16);
    int numbers[N_BANDS];
    for (int i = 0; i < N_BANDS; i++) numbers[i] = number;
    CHECK(number >= oldest && number <= newest, "commit %d, not %d..%d", number, oldest,
          newest);
    check_right(bytes, start, stop, numbers, numbers);
    caterva_discard(other);
}

static void *run_reader(void *argument)
{
    reader *self = argument;
    shared *s = self->shared;
    rng r = rng_from_seed(s->seed + (uint64_t)self->number);
    uint32_t *bytes = check_alloc(SIDE * SIDE * sizeof(*bytes));
    int looks_at_commits = self->number < 2;
    do {
        read_one_box(s, &r, bytes);
        if (looks_at_commits && rng_one_in(&r, 8)) read_committed_state(s, bytes);
    } while (!atomic_load(&s->done));
    free(bytes);
    return NULL;
}

static void write_band(shared *s, int band, int number, uint32_t *bytes)
{
    caterva_error err;
    int64_t start[2] = {band * BAND, HALF};
    int64_t stop[2] = {(band + 1) * BAND, SIDE};
    uint32_t *to = bytes;
    for (int64_t row = start[0]; row < stop[0]; row++) {
        for (int64_t column = start[1]; column < stop[1]; column++)
            *to++ = item_of(number, row, column);
    }
    atomic_store(&s->started[band], number);
    CHECK_OK(caterva_write(s->array, start, stop, bytes, BAND * HALF * sizeof(*bytes), &err),
             err);
    atomic_store(&s->finished[band], number);
}

static void run_writer(shared *s)
{
    caterva_error err;
    rng r = rng_from_seed(s->seed ^ 0xABCDu);
    uint32_t *bytes = check_alloc(BAND * HALF * sizeof(*bytes));
    int number = 0;
    while (number < s->rounds || atomic_load(&s->reads) < s->reads_wanted) {
        CHECK(++number <= MAX_ROUNDS, "only %lld reads", (long long)atomic_load(&s->reads));
        int first = rng_int(&r, 0, N_BANDS - 1);
        for (int i = 0; i < N_BANDS; i++) write_band(s, (first + i) % N_BANDS, number, bytes);
        CHECK_OK(caterva_commit(s->array, &err), err);
        atomic_store(&s->committed, number);
    }
    s->rounds = number;
    free(bytes);
}

static void create_array(shared *s)
{
    caterva_error err;
    caterva_create_options options = CATERVA_CREATE_INIT;
    int64_t shape[2] = {SIDE, SIDE};
    int32_t chunks[2] = {BAND, 64};
    int32_t blocks[2] = {8, 16};
    int64_t start[2] = {0, 0};
    uint32_t *bytes = check_alloc(SIDE * SIDE * sizeof(*bytes));
    for (int64_t i = 0; i < SIDE * SIDE; i++) bytes[i] = item_of(0, i / SIDE, i % SIDE);
    options.ndim = 2;
    options.shape = shape;
    options.chunk_shape = chunks;
    options.block_shape = blocks;
    options.dtype = "<u4";
    options.durability = CATERVA_DURABILITY_NONE;
    options.threads = 2;
    scratch_path(s->path, "threads.b2nd");
    CHECK_OK(caterva_create(s->path, &options, &s->array, &err), err);
    CHECK_OK(caterva_write(s->array, start, shape, bytes, SIDE * SIDE * sizeof(*bytes), &err),
             err);
    CHECK_OK(caterva_commit(s->array, &err), err);
    free(bytes);
}

/* After all threads: the file holds the last write of every band. */
static void check_file(const shared *s)
{
    caterva_error err;
    caterva_array *array = NULL;
    int64_t start[2] = {0, 0};
    int64_t stop[2] = {SIDE, SIDE};
    uint32_t *bytes = check_alloc(SIDE * SIDE * sizeof(*bytes));
    CHECK_OK(caterva_open(s->path, NULL, &array, &err), err);
    CHECK_OK(caterva_read(array, start, stop, bytes, SIDE * SIDE * sizeof(*bytes), &err),
             err);
    for (int64_t row = 0; row < SIDE; row++) {
        for (int64_t column = 0; column < SIDE; column++) {
            uint32_t want = item_of(column < HALF ? 0 : s->rounds, row, column);
            CHECK(bytes[row * SIDE + column] == want, "item (%lld, %lld)", (long long)row,
                  (long long)column);
        }
    }
    caterva_discard(array);
    free(bytes);
}

int main(int argc, char **argv)
{
    static shared s;
    reader readers[LONG_READERS];
    pthread_t threads[LONG_READERS];
    caterva_error err;
    bool is_long = argc > 1 && strcmp(argv[1], "--long") == 0;
    int n_readers = is_long ? LONG_READERS : N_READERS;
    s.reads_wanted = is_long ? LONG_READS : 0;
    s.longest = is_long ? LONG_BOX : SIDE;
    s.rounds = is_long ? DEFAULT_ROUNDS : (int)number_argument(argc, argv, 1, DEFAULT_ROUNDS);
    s.seed = seed_argument(argc, argv, 2);
    create_array(&s);
    for (int i = 0; i < n_readers; i++) {
        readers[i] = (reader){.shared = &s, .number = i};
        CHECK(pthread_create(&threads[i], NULL, run_reader, &readers[i]) == 0, "no thread");
    }
    run_writer(&s);
    atomic_store(&s.done, 1);
    for (int i = 0; i < n_readers; i++) pthread_join(threads[i], NULL);
    CHECK_OK(caterva_close(s.array, &err), err);
    check_file(&s);
    printf("%lld boxes read beside %d commits\n", (long long)atomic_load(&s.reads), s.rounds);
    return 0;
}
