/* Property: operations over many chunks of a far store read it in waves. In a custom store
 * that counts its calls, statistics, histograms, reductions, reads around damage, prefetches,
 * copies of every kind, returned frames and verify take a few waves and no single read, on
 * any number of threads, and give the same as with a file. Damaged or unreadable chunks are
 * reported as usual; a stop reaches the store.
 *
 * usage: test_waves_jobs [SEED] */
#include "support/every_step.h"
#include "waves_array.h"

#include <caterva_store.h>
#include <caterva_upkeep.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The same array in a store without latency. */
static caterva_array *near_array;

static caterva_array *make_near(void)
{
    caterva_error err;
    caterva_array *array;
    caterva_create_options o = options();
    CHECK_OK(caterva_create_from_memory("mem:", &o, items, sizeof items, &array, &err), err);
    CHECK_OK(caterva_commit(array, &err), err);
    return array;
}

/* ---- Counting -------------------------------------------------------------------------- */

/* A handle that has read its index. */
static caterva_array *open_warm(blob *b, int threads, int64_t cache_bytes)
{
    const int64_t start[3] = {0, 0, 70}, stop[3] = {1, 1, 71};
    int32_t item;
    caterva_error err;
    caterva_array *array = open_blob(b, threads, cache_bytes);
    CHECK_OK(caterva_read(array, start, stop, &item, sizeof item, &err), err);
    forget_counts(b);
    return array;
}

/* Layouts, and the wanted bytes of the chunks: some have no tables at the estimated
 * position. */
static void check_waves(const blob *b, const char *what, int threads, long least)
{
    CHECK(b->n_waves >= least && b->n_waves <= 3 && b->n_reads == 0,
          "%s on %d threads: %ld waves and %ld reads", what, threads, b->n_waves, b->n_reads);
}

/* ---- What is done ---------------------------------------------------------------------- */

typedef void (*job_fn)(caterva_array *array);

static void statistics(caterva_array *array)
{
    caterva_stats a = CATERVA_STATS_INIT, b = CATERVA_STATS_INIT;
    caterva_error err;
    CHECK_OK(caterva_statistics(array, NULL, &a, &err), err);
    CHECK_OK(caterva_statistics(near_array, NULL, &b, &err), err);
    CHECK(a.n_items == N_ITEMS && a.sum.i == b.sum.i && a.min.i == b.min.i &&
              a.max.i == b.max.i && a.std == b.std,
          "statistics differ");
}

static void histogram(caterva_array *array)
{
    enum { N_BINS = 100 };
    const double range[2] = {0, N_ITEMS};
    int64_t a[N_BINS], b[N_BINS];
    caterva_error err;
    CHECK_OK(caterva_histogram(array, range, N_BINS, NULL, a, &err), err);
    CHECK_OK(caterva_histogram(near_array, range, N_BINS, NULL, b, &err), err);
    CHECK(memcmp(a, b, sizeof a) == 0, "histograms differ");
}

/* Some planes with uneven steps, along each axis in turn. */
static void reduce(caterva_array *array)
{
    static const int64_t list[] = {1, 7, 40, 41, 90};
    static int64_t a[SIDE * SIDE], b[SIDE * SIDE];
    caterva_axis picked[3] = {{.n = 0}};
    caterva_selection s = CATERVA_SELECTION_INIT;
    caterva_reduce_options o = CATERVA_REDUCE_INIT;
    caterva_error err;
    s.kind = CATERVA_SELECTION_AXES;
    s.axes = picked;
    s.n_axes = 3;
    picked[2] = (caterva_axis){.kind = CATERVA_AXIS_LIST, .indices = list, .n = 5};
    int axes[] = {0};
    o.axes = axes;
    o.n_axes = 1;
    o.selection = &s;
    CHECK_OK(caterva_reduce(array, CATERVA_REDUCTION_SUM, &o, a, sizeof a, &err), err);
    CHECK_OK(caterva_reduce(near_array, CATERVA_REDUCTION_SUM, &o, b, sizeof b, &err), err);
    CHECK(memcmp(a, b, sizeof a[0] * SIDE * 5) == 0, "sums differ");
}

static void reduce_planes(caterva_array *array)
{
    static int32_t a[SIDE * SIDE], b[SIDE * SIDE];
    int axes[] = {1};
    caterva_reduce_options o = CATERVA_REDUCE_INIT;
    caterva_error err;
    o.axes = axes;
    o.n_axes = 1;
    CHECK_OK(caterva_reduce(array, CATERVA_REDUCTION_MAX, &o, a, sizeof a, &err), err);
    CHECK_OK(caterva_reduce(near_array, CATERVA_REDUCTION_MAX, &o, b, sizeof b, &err), err);
    CHECK(memcmp(a, b, sizeof a) == 0, "maxima differ");
}

static void note_damage(void *context, const caterva_damage *damage)
{
    (void)context;
    CHECK(damage->chunk == 13, "chunk %lld is damaged: %s", (long long)damage->chunk,
          damage->message);
}

static int32_t got[N_ITEMS];

static void read_around(caterva_array *array)
{
    caterva_skip_options o = CATERVA_SKIP_INIT;
    caterva_selection s = CATERVA_SELECTION_INIT;
    caterva_buffer out = CATERVA_BUFFER_INIT;
    caterva_error err;
    out.data = got;
    out.size = sizeof got;
    o.on_damage = note_damage;
    CHECK_OK(caterva_read_skipping(array, &s, &out, &o, &err), err);
}

static void skip(caterva_array *array)
{
    read_around(array);
    CHECK(memcmp(got, items, sizeof got) == 0, "items differ");
}

static void check_copy(caterva_array *copy)
{
    caterva_error err;
    CHECK_OK(caterva_read(copy, origin, shape, got, sizeof got, &err), err);
    CHECK(memcmp(got, items, sizeof got) == 0, "the copy differs");
    caterva_discard(copy);
}

static void copy_moved(caterva_array *array)
{
    caterva_array *copy;
    caterva_error err;
    CHECK_OK(caterva_copy(array, "mem:", NULL, &copy, &err), err);
    check_copy(copy);
}

/* In slabs: all of them fit one here. */
static void copy_recoded(caterva_array *array)
{
    caterva_create_options create = CATERVA_CREATE_INIT;
    caterva_copy_options o = CATERVA_COPY_INIT;
    caterva_array *copy;
    caterva_error err;
    create.codec = CATERVA_CODEC_LZ4;
    create.level = 1;
    o.create = &create;
    CHECK_OK(caterva_copy(array, "mem:", &o, &copy, &err), err);
    check_copy(copy);
}

static void copy_view(caterva_array *array)
{
    caterva_view *view;
    caterva_array *copy;
    caterva_error err;
    CHECK_OK(caterva_view_of(array, &view, &err), err);
    CHECK_OK(caterva_view_copy(view, "mem:", NULL, &copy, &err), err);
    check_copy(copy);
    caterva_view_free(view);
}

static void copy_frame(caterva_array *array)
{
    void *frame;
    size_t size;
    caterva_array *copy;
    caterva_error err;
    CHECK_OK(caterva_frame_copy(array, &frame, &size, &err), err);
    CHECK_OK(caterva_frame_open(frame, size, 1, NULL, &copy, &err), err);
    caterva_free(frame);
    check_copy(copy);
}

static void verify(caterva_array *array)
{
    caterva_verify_result result = CATERVA_VERIFY_RESULT_INIT;
    caterva_error err;
    CHECK_OK(caterva_verify(array, NULL, &result, &err), err);
    CHECK(result.damages == 0 && result.checked_chunks == N_CHUNKS, "%lld damages",
          (long long)result.damages);
}

static const struct row {
    const char *name;
    job_fn fn;
    long most_reads; /* of the seal and the index, one read each; and for a copy, the search
                      * for a layout area */
} rows[] = {
    {"statistics", statistics, 0},        {"a histogram", histogram, 0},
    {"a reduction", reduce, 0},           {"a reduction to planes", reduce_planes, 0},
    {"a read around damage", skip, 0},    {"a copy that moves", copy_moved, 1},
    {"a copy in slabs", copy_recoded, 1}, {"a copy of a view", copy_view, 1},
    {"a frame", copy_frame, 1},           {"verify", verify, 8},
};
enum { N_ROWS = sizeof rows / sizeof rows[0] };

static void counts(blob *b)
{
    for (int i = 0; i < N_ROWS; i++)
        for (int threads = 1; threads <= 4; threads++) {
            caterva_array *array = open_warm(b, threads, -1);
            rows[i].fn(array);
            CHECK(b->n_reads <= rows[i].most_reads, "%s: %ld reads", rows[i].name,
                  b->n_reads);
            b->n_reads = 0;
            check_waves(b, rows[i].name, threads, 2);
            caterva_discard(array);
        }
}

/* Cached blocks are not fetched again. */
static void keeps(blob *b)
{
    caterva_error err;
    caterva_array *array = open_warm(b, 2, 64 << 20);
    for (int64_t i = 0; i < SIDE; i += CHUNK) { /* not all of it at once */
        const int64_t start[3] = {i, 0, 0}, stop[3] = {i + CHUNK, SIDE, SIDE};
        CHECK_OK(caterva_read(array, start, stop, got, sizeof got, &err), err);
    }
    forget_counts(b);
    statistics(array);
    CHECK(b->n_waves == 0 && b->n_reads == 0, "of the cache: %ld waves and %ld reads",
          b->n_waves, b->n_reads);
    caterva_discard(array);
}

/* ---- Prefetch ---------------------------------------------------------------------------- */

static int64_t n_prefetched(caterva_array *array)
{
    caterva_cache_info info = CATERVA_CACHE_INFO_INIT;
    caterva_error err;
    CHECK_OK(caterva_cache_describe(array, &info, &err), err);
    return info.prefetched;
}

static void prefetches(blob *b)
{
    enum { WANTED = 9 * 4, AT = 40 }; /* blocks of a plane */
    const int64_t start[3] = {AT, 0, 0}, stop[3] = {AT + 1, SIDE, SIDE};
    static int32_t plane[SIDE * SIDE];
    caterva_error err;
    caterva_array *array = open_warm(b, 3, 64 << 20);
    CHECK_OK(caterva_prefetch(array, start, stop, &err), err);
    while (n_prefetched(array) < WANTED) usleep(1000);
    CHECK_OK(caterva_read(array, start, stop, plane, sizeof plane, &err), err);
    CHECK(memcmp(plane, items + AT * SIDE * SIDE, sizeof plane) == 0, "items differ");
    check_waves(b, "a prefetch, and its read", 3, 2);
    caterva_discard(array);
}

/* ---- What goes wrong ------------------------------------------------------------------------ */

static uint64_t position_of(blob *b, int64_t chunk)
{
    caterva_chunk_info info = CATERVA_CHUNK_INFO_INIT;
    caterva_error err;
    caterva_array *array = open_blob(b, 1, -1);
    CHECK_OK(caterva_chunk_describe(array, chunk, &info, &err), err);
    caterva_discard(array);
    return (uint64_t)info.position;
}

/* Chunk 13's header, its block starts, or some block are damaged. */
static void damaged(blob *b)
{
    uint64_t pos = position_of(b, 13);
    const uint64_t at[] = {pos + 1, pos + 34, pos + 20000};
    for (int i = 0; i < 3; i++)
        for (int threads = 1; threads <= 3; threads++) {
            caterva_stats stats = CATERVA_STATS_INIT;
            caterva_verify_result result = CATERVA_VERIFY_RESULT_INIT;
            caterva_verify_options v = CATERVA_VERIFY_INIT;
            caterva_error err;
            v.on_damage = note_damage;
            b->bytes[at[i]] ^= 0x55;
            caterva_array *array = open_blob(b, threads, -1);
            CHECK_OK(caterva_verify(array, &v, &result, &err), err);
            CHECK(result.damaged_chunks == 1 && result.checked_chunks == N_CHUNKS,
                  "%lld chunks are damaged", (long long)result.damaged_chunks);
            read_around(array);
            for (int k = 0; k < N_ITEMS; k++) {
                bool lost = k / (SIDE * SIDE) / CHUNK == 1 && k / SIDE % SIDE / CHUNK == 1 &&
                            k % SIDE / CHUNK == 1;
                CHECK(got[k] == (lost ? 0 : items[k]), "item %d is %d", k, got[k]);
            }
            CHECK(caterva_statistics(array, NULL, &stats, &err) == CATERVA_ECORRUPT &&
                      strstr(err.message, "chunk 13"),
                  "%s", err.message);
            caterva_discard(array);
            b->bytes[at[i]] ^= 0x55;
        }
}

/* Bytes that the store does not return are not damage: the error says so. */
static void unreadable(blob *b)
{
    b->bad = position_of(b, 13) + 20000;
    b->why = "out of paper";
    for (int threads = 1; threads <= 3; threads++) {
        caterva_stats stats = CATERVA_STATS_INIT;
        caterva_array *copy, *array = open_blob(b, threads, -1);
        caterva_error err;
        CHECK(caterva_statistics(array, NULL, &stats, &err) == CATERVA_EIO &&
                  strstr(err.message, "out of paper"),
              "%s", err.message);
        CHECK(caterva_copy(array, "mem:", NULL, &copy, &err) == CATERVA_EIO &&
                  strstr(err.message, "out of paper"),
              "%s", err.message);
        caterva_discard(array);
    }
    b->bad = 0;
    b->why = NULL;
}

static int stop_at(void *context, int64_t done, int64_t total)
{
    (void)total;
    return done >= *(int64_t *)context;
}

/* The store is stopped during a wave. */
static void stops(blob *b)
{
    for (int threads = 1; threads <= 3; threads++) {
        int64_t most = 0;
        caterva_verify_options v = CATERVA_VERIFY_INIT;
        caterva_verify_result result = CATERVA_VERIFY_RESULT_INIT;
        caterva_reduce_options r = CATERVA_REDUCE_INIT;
        caterva_stats stats = CATERVA_STATS_INIT;
        caterva_error err;
        caterva_array *array = open_warm(b, threads, -1);
        long before = b->n_stopped;
        v.progress = r.progress = every_step(stop_at, &most);
        CHECK(caterva_verify(array, &v, &result, &err) == CATERVA_ESTOPPED, "it goes on");
        CHECK(caterva_statistics(array, &r, &stats, &err) == CATERVA_ESTOPPED, "it goes on");
        CHECK(b->n_stopped > before, "%d threads: the store was not stopped", threads);
        statistics(array);
        verify(array);
        caterva_discard(array);
    }
}

/* Pending changes are ignored, also if they leave fewer chunks, or none of these. */
static void verifies_beside_pending(blob *b)
{
    static const int64_t smaller[][3] = {{8, 70, 96}, {96, 96, 1}, {1, 1, 1}, {0, 96, 96}};
    for (int i = 0; i < 8; i++) {
        caterva_error err;
        caterva_array *array;
        caterva_open_options o = CATERVA_OPEN_INIT;
        caterva_store s = blob_store(b);
        o.mode = CATERVA_MODE_WRITE;
        o.threads = 1 + i % 3;
        CHECK_OK(caterva_store_open(&s, &o, &array, &err), err);
        CHECK_OK(caterva_resize(array, smaller[i / 2], &err), err);
        if (i % 2 == 0)
            CHECK_OK(caterva_write(array, origin, smaller[i / 2], items, sizeof items, &err),
                     err);
        verify(array);
        caterva_discard(array);
    }
}

/* Any store, any order, a cache that is too small. */
static void disorder(blob *b, rng *r)
{
    for (int round = 0; round < 6; round++) {
        b->leaves_out = rng_one_in(r, 3);
        b->lies = rng_one_in(r, 3);
        b->short_reads = rng_one_in(r, 3);
        caterva_array *array =
            open_blob(b, rng_int(r, 1, 4), rng_one_in(r, 2) ? -1 : 1 << 20);
        for (int i = 0; i < N_ROWS; i++) rows[i].fn(array);
        caterva_discard(array);
    }
    b->leaves_out = b->lies = b->short_reads = false;
}

int main(int argc, char **argv)
{
    rng r = rng_from_seed(seed_argument(argc, argv, 1));
    blob b;
    blob_init(&b);
    b.waves = true;
    make_items(&r);
    make_blob(&b);
    near_array = make_near();
    counts(&b);
    keeps(&b);
    prefetches(&b);
    verifies_beside_pending(&b);
    damaged(&b);
    unreadable(&b);
    stops(&b);
    disorder(&b, &r);
    caterva_discard(near_array);
    blob_free(&b);
    return 0;
}
