/* All functions that describe an array, beside a thread that changes it: shape, attributes,
 * metalayers, commits and rollbacks, through the same handle and through another one. Meant
 * for ThreadSanitizer and AddressSanitizer, too, which detect a description that changes or
 * is freed during use.
 *
 * usage: test_described [ROUNDS [SEED]] */
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

enum { COLUMNS = 8, MAX_ROWS = 60, MIN_ROWS = 20, N_READERS = 3, N_NAMES = 6, ROUNDS = 300 };

typedef struct shared {
    caterva_array *array; /* of the writer */
    char path[SCRATCH_PATH];
    uint64_t seed;
    int rounds;
    atomic_int done;
} shared;

typedef struct reader {
    shared *shared;
    int number;
    atomic_long asked;
} reader;

/* Statuses that a concurrent change may cause. */
static void check_status(caterva_status status, const caterva_error *err, const char *what)
{
    CHECK(status == CATERVA_OK || status == CATERVA_ERANGE || status == CATERVA_ESTALE ||
              status == CATERVA_ENOTFOUND,
          "%s: %s: %s", what, caterva_status_name(status), err->message);
}

/* One state, not a mixture of two. */
static void check_info(const caterva_info *info)
{
    int64_t rows = info->shape[0];
    CHECK(info->ndim == 2 && info->shape[1] == COLUMNS, "%d axes", info->ndim);
    CHECK(rows >= MIN_ROWS && rows <= MAX_ROWS, "%lld rows", (long long)rows);
    CHECK(info->n_items == rows * COLUMNS, "%lld items", (long long)info->n_items);
    CHECK(info->n_chunks == info->chunk_counts[0] * info->chunk_counts[1], "chunks");
    CHECK(info->chunk_counts[0] == (rows + 9) / 10, "%lld chunks of %lld rows",
          (long long)info->chunk_counts[0], (long long)rows);
    CHECK(strcmp(info->dtype, "<i4") == 0, "dtype %s", info->dtype);
    for (int i = 0; i < info->n_attributes; i++)
        CHECK(strncmp(info->attribute_names[i], "name", 4) == 0, "attribute %s",
              info->attribute_names[i]);
    CHECK(info->n_metalayers == 2 && strcmp(info->metalayers[1].name, "mine") == 0, "layers");
    const char *content = info->metalayers[1].content;
    for (int i = 1; i < 16; i++) CHECK(content[i] == content[0], "two contents in one");
}

/* ---- Ways of asking ----------------------------------------------------- */

static void ask_descriptions(caterva_array *array)
{
    caterva_error err;
    const caterva_info *info, *held;
    CHECK_OK(caterva_info_get(array, &info, &err), err);
    CHECK_OK(caterva_info_get(array, &held, &err), err);
    check_info(info);
    check_info(held);
    caterva_info_release(held);
    check_info(info); /* unchanged */
    caterva_info_release(info);
}

static void ask_names(caterva_array *array)
{
    caterva_error err;
    const caterva_info *info;
    CHECK_OK(caterva_info_get(array, &info, &err), err);
    const caterva_metalayer *layer = caterva_info_metalayer(info, "mine");
    CHECK(layer, "the metalayer is gone");
    for (int i = 0; i < info->n_attributes; i++) {
        void *value = NULL;
        size_t size;
        const char *name = info->attribute_names[i];
        CHECK(strncmp(name, "name", 4) == 0, "attribute %s", name);
        caterva_status status = caterva_attr_get(array, name, &value, &size, &err);
        check_status(status, &err, "attr_get");
        if (status == CATERVA_OK) caterva_free(value);
    }
    const char *content = layer->content;
    for (int i = 1; i < 16; i++) CHECK(content[i] == content[0], "two contents");
    caterva_info_release(info);
}

static void ask_views(caterva_array *array)
{
    caterva_error err;
    caterva_view *view, *turned;
    static _Thread_local int32_t items[MAX_ROWS * COLUMNS];
    caterva_buffer dst = CATERVA_BUFFER_INIT;
    dst.data = items;
    dst.size = sizeof items;
    CHECK_OK(caterva_view_of(array, &view, &err), err);
    CHECK_OK(caterva_view_transpose(view, NULL, &turned, &err), err);
    CHECK(caterva_view_shape(turned)[0] == COLUMNS, "a view's shape");
    check_status(caterva_view_read(turned, NULL, &dst, &err), &err, "view_read");
    caterva_view_free(view);
    caterva_view_free(turned);
}

static void ask_chunks(caterva_array *array)
{
    caterva_error err;
    caterva_chunk_iter chunks = CATERVA_CHUNK_ITER_INIT;
    caterva_chunk_info chunk = CATERVA_CHUNK_INFO_INIT;
    caterva_status status;
    while ((status = caterva_chunk_next(array, &chunks, &err)) == CATERVA_OK &&
           !chunks.done) {
        caterva_block_info block = CATERVA_BLOCK_INFO_INIT;
        status = caterva_block_describe(array, chunks.chunk.chunk, 0, &block, &err);
        check_status(status, &err, "describe_block");
    }
    check_status(status, &err, "next_chunk");
    check_status(caterva_chunk_describe(array, 0, &chunk, &err), &err, "describe_chunk");
}

static void ask_numbers(caterva_array *array)
{
    caterva_error err;
    caterva_space space = CATERVA_SPACE_INIT;
    caterva_stats stats = CATERVA_STATS_INIT;
    caterva_verify_result result = CATERVA_VERIFY_RESULT_INIT;
    CHECK_OK(caterva_measure(array, &space, &err), err);
    CHECK_OK(caterva_statistics(array, NULL, &stats, &err), err);
    CHECK(stats.n_items % COLUMNS == 0, "%lld items", (long long)stats.n_items);
    CHECK_OK(caterva_verify(array, NULL, &result, &err), err);
    CHECK(result.damages == 0, "%lld damages", (long long)result.damages);
}

static void ask(caterva_array *array, int what)
{
    switch (what) {
    case 0: ask_descriptions(array); break;
    case 1: ask_names(array); break;
    case 2: ask_views(array); break;
    case 3: ask_chunks(array); break;
    default: ask_numbers(array); break;
    }
}

/* ---- Threads ------------------------------------------------------------ */

/* On the writer's handle. */
static void *read_beside(void *context)
{
    reader *r = context;
    rng random = rng_from_seed(r->shared->seed + (uint64_t)r->number);
    while (!atomic_load(&r->shared->done)) {
        ask(r->shared->array, rng_int(&random, 0, 4));
        atomic_fetch_add(&r->asked, 1);
    }
    return NULL;
}

/* On a handle of its own. */
static void *read_elsewhere(void *context)
{
    reader *r = context;
    caterva_error err;
    caterva_array *array;
    rng random = rng_from_seed(r->shared->seed + (uint64_t)r->number);
    CHECK_OK(caterva_open(r->shared->path, NULL, &array, &err), err);
    while (!atomic_load(&r->shared->done)) {
        const caterva_info *held;
        CHECK_OK(caterva_info_get(array, &held, &err), err);
        ask(array, rng_int(&random, 0, 4));
        CHECK_OK(caterva_refresh(array, &err), err);
        check_info(held);
        caterva_info_release(held);
        atomic_fetch_add(&r->asked, 1);
    }
    CHECK_OK(caterva_close(array, &err), err);
    return NULL;
}

static void change(shared *s, rng *random)
{
    caterva_error err;
    char name[] = "name0", content[16];
    int64_t shape[2] = {rng_between(random, MIN_ROWS, MAX_ROWS), COLUMNS};
    memset(content, rng_int(random, 'a', 'z'), sizeof content);
    name[4] = (char)('0' + rng_int(random, 0, N_NAMES - 1));
    CHECK_OK(caterva_resize(s->array, shape, &err), err);
    CHECK_OK(caterva_metalayer_update(s->array, "mine", content, sizeof content, &err), err);
    if (rng_one_in(random, 2))
        CHECK_OK(caterva_attr_set(s->array, name, content, sizeof content, &err), err);
    else
        check_status(caterva_attr_delete(s->array, name, &err), &err, "attr_remove");
    static const int64_t origin[2] = {0, 0};
    int32_t items[MIN_ROWS * COLUMNS];
    const int64_t stop[2] = {MIN_ROWS, COLUMNS};
    rng_fill(random, items, sizeof items);
    CHECK_OK(caterva_write(s->array, origin, stop, items, sizeof items, &err), err);
    if (rng_one_in(random, 8))
        CHECK_OK(caterva_rollback(s->array, &err), err);
    else
        CHECK_OK(caterva_commit(s->array, &err), err);
}

static void create(shared *s)
{
    caterva_error err;
    const int64_t shape[2] = {MIN_ROWS, COLUMNS};
    const int32_t chunks[2] = {10, 8}, blocks[2] = {5, 4};
    const caterva_metalayer layer = {
        .name = "mine", .content = "................", .size = 16};
    caterva_create_options options = CATERVA_CREATE_INIT;
    options.ndim = 2;
    options.shape = shape;
    options.chunk_shape = chunks;
    options.block_shape = blocks;
    options.dtype = "<i4";
    options.metalayers = &layer;
    options.n_metalayers = 1;
    options.durability = CATERVA_DURABILITY_NONE;
    CHECK_OK(caterva_create(s->path, &options, &s->array, &err), err);
    CHECK_OK(caterva_commit(s->array, &err), err);
}

int main(int argc, char **argv)
{
    shared s = {.rounds = (int)number_argument(argc, argv, 1, ROUNDS)};
    reader readers[N_READERS] = {{.shared = NULL}};
    pthread_t threads[N_READERS];
    s.seed = seed_argument(argc, argv, 2);
    scratch_path(s.path, "described.b2nd");
    create(&s);
    for (int i = 0; i < N_READERS; i++) {
        readers[i].shared = &s;
        readers[i].number = i + 1;
        void *(*body)(void *) = i < 2 ? read_beside : read_elsewhere;
        CHECK(pthread_create(&threads[i], NULL, body, &readers[i]) == 0, "thread %d", i);
    }
    rng random = rng_from_seed(s.seed);
    int round = 0;
    for (int waiting = 1; waiting || round < s.rounds; round++) {
        change(&s, &random);
        waiting = 0; /* every thread has read a few times */
        for (int i = 0; i < N_READERS; i++) waiting |= atomic_load(&readers[i].asked) < 20;
    }
    atomic_store(&s.done, 1);
    long asked = 0;
    for (int i = 0; i < N_READERS; i++) {
        pthread_join(threads[i], NULL);
        asked += atomic_load(&readers[i].asked);
    }
    caterva_error err;
    CHECK_OK(caterva_close(s.array, &err), err);
    printf("%d changes, %ld questions beside them\n", round, asked);
    return 0;
}
