/* Many sparse arrays in a process that may have 64 files open: each keeps descriptors of
 * chunk files that it has read, and gives them up if another array needs one. Random reads
 * from all of them, in several threads, beside writers; then files and arrays are created and
 * opened while all others stay open. */
#include "caterva.h"
#include "caterva_upkeep.h"

#include "support/check.h"
#include "support/random.h"
#include "support/scratch.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum {
    LIMIT = 64,
    ARRAYS = 40,
    WRITERS = 6, /* the last ones */
    N = 6400,
    CHUNK = 64,
    THREADS = 4,
    READS = 1500,
    ROUNDS = 25
};

static caterva_array *arrays[ARRAYS];
static atomic_int wrong;

static void array_path(char path[SCRATCH_PATH], int i)
{
    char name[32];
    snprintf(name, sizeof name, "array-%02d", i);
    scratch_path(path, name);
}

static int32_t item_of(int array, int64_t i)
{
    return (int32_t)(array * 100000 + i * i % 977);
}

static void create(const char *path, caterva_layout layout, int array)
{
    static int32_t items[N];
    caterva_error err;
    caterva_array *made = NULL;
    caterva_create_options options = CATERVA_CREATE_INIT;
    options.ndim = 1;
    options.shape = (int64_t[]){N};
    options.chunk_shape = (int32_t[]){CHUNK};
    options.block_shape = (int32_t[]){CHUNK / 2};
    options.dtype = "<i4";
    options.layout = layout;
    options.overwrite = 1;
    options.durability = CATERVA_DURABILITY_NONE;
    options.threads = 1;
    for (int64_t i = 0; i < N; i++) items[i] = item_of(array, i);
    CHECK_OK(caterva_create_from_memory(path, &options, items, sizeof items, &made, &err),
             err);
    CHECK_OK(caterva_close(made, &err), err);
}

static caterva_status read_some(rng *r, int array, caterva_error *err)
{
    int32_t items[3 * CHUNK];
    int64_t start = rng_between(r, 0, N - 1), stop = start + rng_between(r, 1, 3 * CHUNK);
    if (stop > N) stop = N;
    caterva_status status =
        caterva_read(arrays[array], &start, &stop, items, sizeof items, err);
    for (int64_t i = start; i < stop && status == CATERVA_OK; i++)
        if (items[i - start] != item_of(array, i)) {
            status = CATERVA_ECORRUPT;
            snprintf(err->message, sizeof err->message, "item %lld", (long long)i);
        }
    return status;
}

static void *read_all_over(void *context)
{
    rng r = rng_from_seed((uint64_t)(uintptr_t)context);
    for (int i = 0; i < READS; i++) {
        caterva_error err = {.code = CATERVA_OK};
        int array = rng_int(&r, 0, ARRAYS - 1);
        if (read_some(&r, array, &err) == CATERVA_OK) continue;
        if (atomic_fetch_add(&wrong, 1) == 0) printf("array %d: %s\n", array, err.message);
    }
    return NULL;
}

/* Writes the same items again: chunk files, frames and their descriptors change. */
static void write_some(rng *r, int array)
{
    static int32_t items[N];
    caterva_error err;
    int64_t start = rng_between(r, 0, N - 1), stop = rng_between(r, start + 1, N);
    for (int64_t i = start; i < stop; i++) items[i - start] = item_of(array, i);
    CHECK_OK(caterva_write(arrays[array], &start, &stop, items, sizeof items, &err), err);
    CHECK_OK(caterva_commit(arrays[array], &err), err);
}

static void open_all(void)
{
    char path[SCRATCH_PATH];
    caterva_error err;
    for (int i = 0; i < ARRAYS; i++) {
        caterva_open_options options = CATERVA_OPEN_INIT;
        options.mode = i < ARRAYS - WRITERS ? CATERVA_MODE_READ : CATERVA_MODE_WRITE;
        options.cache_bytes = -1;
        options.no_read_ahead = 1;
        options.threads = 1;
        options.durability = CATERVA_DURABILITY_NONE;
        array_path(path, i);
        CHECK_OK(caterva_open(path, &options, &arrays[i], &err), err);
        for (int64_t at = 0; at < N; at += CHUNK) { /* descriptors of all its chunks */
            int64_t stop = at + 1;
            int32_t item;
            CHECK_OK(caterva_read(arrays[i], &at, &stop, &item, sizeof item, &err), err);
            CHECK(item == item_of(i, at), "array %d, item %lld", i, (long long)at);
        }
    }
}

static void work(uint64_t seed)
{
    pthread_t threads[THREADS];
    rng r = rng_from_seed(seed);
    for (int i = 0; i < THREADS; i++) {
        void *context = (void *)(uintptr_t)(seed + (uint64_t)i + 1);
        CHECK(pthread_create(&threads[i], NULL, read_all_over, context) == 0, "no thread");
    }
    for (int i = 0; i < ROUNDS; i++) write_some(&r, ARRAYS - WRITERS + i % WRITERS);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    CHECK(wrong == 0, "%d reads failed or were wrong", (int)wrong);
}

/* Other ways of opening need descriptors, too. */
static void make_more(void)
{
    char path[SCRATCH_PATH];
    caterva_error err;
    scratch_path(path, "more");
    create(path, CATERVA_LAYOUT_CONTIGUOUS, 1);
    create(path, CATERVA_LAYOUT_SPARSE, 2);
    CHECK_OK(caterva_compact(path, NULL, &err), err);
    create(path, CATERVA_LAYOUT_CONTIGUOUS, 3);
    caterva_array *array = NULL;
    CHECK_OK(caterva_open(path, NULL, &array, &err), err);
    caterva_discard(array);
    for (int i = 0; i < ARRAYS - WRITERS; i++)
        CHECK_OK(caterva_refresh(arrays[i], &err), err);
}

int main(int argc, char **argv)
{
    char path[SCRATCH_PATH];
    uint64_t seed = seed_argument(argc, argv, 1);
    rng r = rng_from_seed(seed);
    for (int i = 0; i < ARRAYS; i++) {
        array_path(path, i);
        create(path, CATERVA_LAYOUT_SPARSE, i);
    }
    for (int fd = 3; fd < 256; fd++) close(fd); /* inherited from the parent */
    CHECK(setrlimit(RLIMIT_NOFILE, &(struct rlimit){LIMIT, LIMIT}) == 0, "setrlimit");
    open_all();
    work(seed);
    make_more();
    caterva_error err;
    for (int i = 0; i < 200; i++) {
        int array = rng_int(&r, 0, ARRAYS - 1);
        CHECK_OK(read_some(&r, array, &err), err);
    }
    for (int i = 0; i < ARRAYS; i++) CHECK_OK(caterva_close(arrays[i], &err), err);
    return 0;
}
