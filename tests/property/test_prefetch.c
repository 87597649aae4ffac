/* Prefetch and read-ahead. What a read gives never depends on them: random boxes are
 * prefetched, read, written, committed, rolled back and reshaped by several threads of
 * one handle, and handles closed and refreshed in the middle of it. And they do what
 * they are for: what was prefetched is found, a scan finds what was decoded ahead of
 * it; told by the counts of the cache, never by a clock.
 *
 * Each cell is written by one thread only, so it knows what it must read back: rows of
 * the array belong to threads by turns, in bands that are not chunks.
 *
 * usage: test_prefetch [ROUNDS [SEED]] */
#include "caterva.h"

#include "base/os.h"
#include "support/check.h"
#include "support/random.h"
#include "support/scratch.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif

enum { SIDE = 64, N_ITEMS = SIDE * SIDE * SIDE, N_THREADS = 4, BAND = SIDE / N_THREADS };
enum { PATIENCE_MS = 60000 };

static const int64_t shape[3] = {SIDE, SIDE, SIDE};
static const int64_t origin[3] = {0, 0, 0};

typedef struct box3 {
    int64_t start[3], stop[3];
    size_t size;
} box3;

static box3 make_box(const int64_t *start, const int64_t *stop)
{
    box3 b = {.size = sizeof(int32_t)};
    for (int d = 0; d < 3; d++) {
        b.start[d] = start[d];
        b.stop[d] = stop[d];
        b.size *= (size_t)(stop[d] - start[d]);
    }
    return b;
}

static box3 plane(int axis, int64_t at, int64_t thick)
{
    int64_t start[3], stop[3];
    memcpy(start, origin, sizeof start);
    memcpy(stop, shape, sizeof stop);
    start[axis] = at;
    stop[axis] = at + thick;
    return make_box(start, stop);
}

/* Anywhere in rows [first, last). */
static box3 random_box3(rng *r, int64_t first, int64_t last)
{
    int64_t start[3], stop[3];
    for (int d = 0; d < 3; d++) {
        start[d] = rng_between(r, d ? 0 : first, (d ? SIDE : last) - 1);
        stop[d] = rng_between(r, start[d] + 1, d ? SIDE : last);
    }
    return make_box(start, stop);
}

/* Between a buffer and a plain copy of the array. */
static void copy_box(int32_t *model, const box3 *b, int32_t *buffer, bool to_model)
{
    size_t line = (size_t)(b->stop[2] - b->start[2]);
    for (int64_t i = b->start[0]; i < b->stop[0]; i++)
        for (int64_t j = b->start[1]; j < b->stop[1]; j++, buffer += line) {
            int32_t *items = model + (i * SIDE + j) * SIDE + b->start[2];
            memcpy(to_model ? items : buffer, to_model ? buffer : items,
                   line * sizeof(int32_t));
        }
}

static int32_t *new_model(uint64_t seed)
{
    int32_t *model = check_alloc(N_ITEMS * sizeof *model);
    rng r = rng_from_seed(seed);
    for (int i = 0; i < N_ITEMS; i++)
        model[i] = (int32_t)((unsigned)i / 3 + (rng_next(&r) & 7)); /* compresses */
    return model;
}

/* The ways of reading a box. */
typedef enum way { AS_BOX, AS_SELECTION, THROUGH_VIEW, AROUND_DAMAGE, N_WAYS } way;

static void no_damage(void *context, const caterva_damage *damage)
{
    (void)context;
    (void)damage;
    CHECK(0, "damage in a good file");
}

static void read_selected(caterva_array *array, bool view, const box3 *b, int32_t *got)
{
    caterva_error err;
    caterva_selection box = CATERVA_SELECTION_INIT;
    caterva_buffer buffer = CATERVA_BUFFER_INIT;
    box.start = b->start;
    box.stop = b->stop;
    buffer.data = got;
    buffer.size = b->size;
    if (view) {
        caterva_view *all;
        CHECK_OK(caterva_view_of(array, &all, &err), err);
        CHECK_OK(caterva_view_read(all, &box, &buffer, &err), err);
        caterva_view_free(all);
    } else {
        CHECK_OK(caterva_read_selection(array, &box, &buffer, &err), err);
    }
}

static void read_by(way how, caterva_array *array, const box3 *b, int32_t *got)
{
    caterva_error err;
    caterva_skip_options skip = CATERVA_SKIP_INIT;
    skip.on_damage = no_damage;
    switch (how) {
    case AS_SELECTION:
    case THROUGH_VIEW: read_selected(array, how == THROUGH_VIEW, b, got); return;
    case AROUND_DAMAGE:
        CHECK_OK(caterva_read_skipping(array, b->start, b->stop, got, b->size, &skip, &err),
                 err);
        return;
    default: CHECK_OK(caterva_read(array, b->start, b->stop, got, b->size, &err), err);
    }
}

static void check_read_by(way how, caterva_array *array, int32_t *model, const box3 *b)
{
    int32_t *got = check_alloc(b->size), *expected = check_alloc(b->size);
    read_by(how, array, b, got);
    copy_box(model, b, expected, false);
    CHECK(memcmp(got, expected, b->size) == 0, "box %lld:%lld, %lld:%lld, %lld:%lld",
          (long long)b->start[0], (long long)b->stop[0], (long long)b->start[1],
          (long long)b->stop[1], (long long)b->start[2], (long long)b->stop[2]);
    free(got);
    free(expected);
}

static void check_read(caterva_array *array, int32_t *model, const box3 *b)
{
    check_read_by(AS_BOX, array, model, b);
}

static void prefetch(caterva_array *array, const box3 *b)
{
    caterva_error err;
    CHECK_OK(caterva_prefetch(array, b->start, b->stop, &err), err);
}

/* `even`: chunks and blocks divide the shape. */
static void create_at(const char *url, int32_t *model, int64_t cache_bytes, bool even,
                      const rng *pipeline, caterva_array **out)
{
    caterva_error err;
    caterva_create_options o = CATERVA_CREATE_INIT;
    rng r = *pipeline;
    o.ndim = 3;
    o.shape = shape;
    o.chunk_shape = even ? (int32_t[]){32, 32, 32} : (int32_t[]){32, 24, 40};
    o.block_shape = even ? (int32_t[]){16, 16, 16} : (int32_t[]){16, 12, 16};
    o.dtype = "<i4";
    o.threads = 3;
    o.overwrite = 1;
    o.durability = CATERVA_DURABLE_NONE;
    o.cache_bytes = cache_bytes;
    o.layout =
        strcmp(url, "mem:") != 0 && rng_one_in(&r, 3) ? CATERVA_SPARSE : CATERVA_CONTIGUOUS;
    o.codec_set = 1;
    o.codec = CATERVA_CODEC_ZSTD;
    o.level = rng_one_in(&r, 4) ? 0 : 1;
    o.use_dict = o.level > 0 && rng_one_in(&r, 3); /* blocks that need their chunk */
    o.filters[0] = CATERVA_FILTER_SHUFFLE;
    CHECK_OK(caterva_create_from_buffer(url, &o, model, N_ITEMS * sizeof *model, out, &err),
             err);
    CHECK_OK(caterva_commit(*out, &err), err);
}

static caterva_cache_counts counts_of(const caterva_array *array)
{
    caterva_cache_counts counts;
    caterva_cache_statistics(array, &counts);
    return counts;
}

/* False when so many were not prefetched after a long while. */
static bool wait_for(const caterva_array *array, int64_t prefetched)
{
    for (int ms = 0; ms < PATIENCE_MS; ms++) {
        if (counts_of(array).prefetched >= prefetched) return true;
        usleep(1000);
    }
    return false;
}

/* ---- What they are for ------------------------------------------------------------- */

enum { PLENTY = 16 << 20, BLOCK_BYTES = 16 * 16 * 16 * 4 };

static caterva_array *open_with(const char *path, int threads, int64_t cache_bytes, bool off)
{
    caterva_error err;
    caterva_array *array;
    caterva_open_options o = CATERVA_OPEN_INIT;
    o.threads = threads;
    o.cache_bytes = cache_bytes;
    o.no_read_ahead = off;
    CHECK_OK(caterva_open(path, &o, &array, &err), err);
    return array;
}

enum { LAYERS = SIDE / 16, LAYER_BLOCKS = LAYERS * LAYERS };

static void what_is_prefetched_is_found(const char *path, int32_t *model)
{
    caterva_array *array = open_with(path, 2, PLENTY, true);
    box3 all = make_box(origin, shape);
    prefetch(array, &all);
    CHECK(wait_for(array, LAYERS * LAYER_BLOCKS), "%lld blocks were prefetched",
          (long long)counts_of(array).prefetched);
    CHECK(counts_of(array).misses == 0 && counts_of(array).hits == 0, "they were counted");
    check_read(array, model, &all);
    for (int axis = 0; axis < 3; axis++) {
        box3 b = plane(axis, 17, 1);
        check_read(array, model, &b);
    }
    CHECK(counts_of(array).misses == 0, "%lld were decoded again",
          (long long)counts_of(array).misses);
    prefetch(array, &all); /* all there */
    usleep(20000);
    CHECK(counts_of(array).prefetched == LAYERS * LAYER_BLOCKS, "some came twice");
    caterva_discard(array);
}

static void it_gets_half_of_the_cache(const char *path)
{
    enum { BLOCKS = 40 };
    caterva_array *array = open_with(path, 3, BLOCKS * (BLOCK_BYTES + 300), false);
    box3 all = make_box(origin, shape);
    for (int i = 0; i < 20; i++) prefetch(array, &all); /* eight wait; no more is put in */
    CHECK(wait_for(array, BLOCKS / 2 - 2), "only %lld blocks",
          (long long)counts_of(array).prefetched);
    usleep(20000);
    CHECK(counts_of(array).prefetched <= BLOCKS / 2 + 1, "%lld blocks",
          (long long)counts_of(array).prefetched);
    caterva_discard(array);
}

static void it_may_do_nothing(const char *path, int32_t *model)
{
    static const struct {
        int threads;
        int64_t cache_bytes;
    } cases[] = {{1, PLENTY}, {2, -1}, {2, 100}};
    box3 all = make_box(origin, shape);
    caterva_error err;
    for (int i = 0; i < 3; i++) {
        caterva_array *array = open_with(path, cases[i].threads, cases[i].cache_bytes, false);
        prefetch(array, &all);
        for (int64_t k = 0; k < SIDE; k++) {
            box3 b = plane(0, k, 1);
            check_read(array, model, &b);
        }
        CHECK(counts_of(array).prefetched == 0, "case %d", i);
        int64_t beyond[3] = {SIDE, SIDE, SIDE + 1};
        CHECK(caterva_prefetch(array, origin, beyond, &err) == CATERVA_EINVAL, "accepted");
        CHECK(caterva_prefetch(array, NULL, shape, &err) == CATERVA_EINVAL, "accepted");
        CHECK(caterva_prefetch(NULL, origin, shape, &err) == CATERVA_EINVAL, "accepted");
        CHECK_OK(caterva_prefetch(array, origin, origin, &err), err);
        caterva_discard(array);
    }
}

/* A patient scan, forwards or backwards: but for the layer it begins in, every block
 * was decoded in the background. */
static void a_scan_finds_all(const char *path, int32_t *model, bool backwards, bool off,
                             way how)
{
    caterva_array *array = open_with(path, 2, PLENTY, off);
    int64_t misses_at_first = 0;
    bool expected = !off && cv_os_cores() >= 2;
    for (int64_t k = 0; k < SIDE; k++) {
        box3 b = plane(0, backwards ? SIDE - 1 - k : k, 1);
        check_read_by(how, array, model, &b);
        if (k == 2) misses_at_first = counts_of(array).misses;
        int64_t layers = k < 2 ? 0 : k / 16 + 1 < LAYERS ? k / 16 + 1 : LAYERS - 1;
        if (!expected) continue;
        CHECK(wait_for(array, layers * LAYER_BLOCKS), "plane %lld: %lld blocks", (long long)k,
              (long long)counts_of(array).prefetched);
    }
    caterva_cache_counts counts = counts_of(array);
    if (expected)
        CHECK(counts.misses == misses_at_first, "%lld blocks were decoded by the scan",
              (long long)(counts.misses - misses_at_first));
    else
        CHECK(counts.prefetched == 0, "read ahead all the same");
    CHECK(counts.inserted == LAYERS * LAYER_BLOCKS, "%lld blocks",
          (long long)counts.inserted);
    caterva_discard(array);
}

/* Whole blocks, prefetched and read once, leave the cache to others. */
static void a_scan_of_whole_blocks_passes(const char *path, int32_t *model)
{
    enum { BLOCKS = 40 };
    caterva_array *array = open_with(path, 2, BLOCKS * (BLOCK_BYTES + 300), true);
    box3 kept = plane(0, 1, 1); /* once: anything could push it out */
    check_read(array, model, &kept);
    int64_t n = 0;
    for (int64_t i = 16; i < SIDE; i += 16) {
        box3 slab = plane(0, i, 16);
        prefetch(array, &slab);
        n += LAYER_BLOCKS;
        CHECK(wait_for(array, n), "only %lld", (long long)counts_of(array).prefetched);
        check_read(array, model, &slab);
    }
    int64_t misses = counts_of(array).misses;
    check_read(array, model, &kept);
    CHECK(counts_of(array).misses <= misses + LAYER_BLOCKS / 2, "%lld of %d were pushed out",
          (long long)(counts_of(array).misses - misses), LAYER_BLOCKS);
    caterva_discard(array);
}

#ifndef SANITIZED

static int use_in_child(caterva_array *array, int32_t *model)
{
    alarm(60);
    box3 all = make_box(origin, shape);
    for (int64_t k = 0; k < 20; k++) {
        box3 b = plane(0, k, 1);
        check_read(array, model, &b);
    }
    caterva_prefetch(array, all.start, all.stop, NULL);
    check_read(array, model, &all);
    caterva_discard(array);
    return 0;
}

/* Fork in the middle of the background's work, its handle used and closed there. */
static void a_child_goes_on(const char *path, int32_t *model)
{
    box3 all = make_box(origin, shape);
    for (int i = 0; i < 30; i++) {
        caterva_array *array = open_with(path, 3, i % 2 ? PLENTY : 0, false);
        prefetch(array, &all);
        usleep((useconds_t)(i % 5) * 100);
        pid_t child = fork();
        if (child == 0) _exit(use_in_child(array, model));
        int status = -1;
        CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0, "child %d: %d",
              i, status);
        check_read(array, model, &all);
        caterva_discard(array);
    }
}

#endif

static void closing_in_the_middle(const char *path, rng *r)
{
    caterva_error err;
    for (int i = 0; i < 200; i++) {
        caterva_array *array = open_with(path, 2 + i % 3, i % 2 ? PLENTY : 0, false);
        for (int k = rng_int(r, 1, 3); k > 0; k--) {
            box3 b = random_box3(r, 0, SIDE);
            prefetch(array, &b);
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
    box3 b = random_box3(&m->random, m->number * BAND, (m->number + 1) * BAND);
    int32_t *items = check_alloc(b.size);
    for (size_t i = 0; i < b.size / sizeof *items; i++)
        items[i] = (int32_t)(rng_next(&m->random) & 1023);
    CHECK_OK(caterva_write(m->team->array, b.start, b.stop, items, b.size, &err), err);
    copy_box(m->team->model, &b, items, true);
    free(items);
}

static void scan_own(member *m)
{
    int64_t at = rng_int(&m->random, 0, BAND - 6);
    for (int64_t i = at; i < at + 6; i++) {
        box3 b = plane(0, m->number * BAND + i, 1);
        check_read(m->team->array, m->team->model, &b);
    }
}

static void *work(void *argument)
{
    member *m = argument;
    caterva_error err;
    for (int i = 0; i < m->team->steps; i++) {
        box3 any = random_box3(&m->random, 0, SIDE);
        box3 own = random_box3(&m->random, m->number * BAND, (m->number + 1) * BAND);
        switch (rng_int(&m->random, 0, 9)) {
        case 0:
        case 1:
        case 2: prefetch(m->team->array, &any); break;
        case 3: write_own(m); break;
        case 4: CHECK_OK(caterva_commit(m->team->array, &err), err); break;
        case 5: scan_own(m); break;
        default: check_read(m->team->array, m->team->model, &own);
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

/* Alone: what needs it, in the middle of what the threads left in the background. */
static void disturb(caterva_array *array, int32_t *model, rng *r)
{
    caterva_error err;
    box3 all = make_box(origin, shape), rows = plane(0, 0, SIDE / 2);
    CHECK_OK(caterva_commit(array, &err), err);
    prefetch(array, &all);
    if (rng_one_in(r, 2)) { /* written, and taken back */
        int32_t *zeros = check_alloc(rows.size);
        memset(zeros, 0, rows.size);
        CHECK_OK(caterva_write(array, rows.start, rows.stop, zeros, rows.size, &err), err);
        prefetch(array, &all);
        free(zeros);
    }
    if (rng_one_in(r, 2)) {
        CHECK_OK(caterva_resize(array, (int64_t[]){SIDE / 2, SIDE, 20}, &err), err);
        prefetch(array, &(box3){.stop = {SIDE / 2, SIDE, 20}});
        CHECK_OK(caterva_resize(array, shape, &err), err);
    }
    CHECK_OK(caterva_rollback(array, &err), err);
    check_read(array, model, &all);
}

static void run_round(rng *r, uint64_t seed)
{
    static const int64_t caches[] = {PLENTY, 0, 60 * BLOCK_BYTES, 10 * BLOCK_BYTES};
    caterva_error err;
    char path[SCRATCH_PATH];
    caterva_array *array;
    int32_t *model = new_model(seed);
    scratch_path(path, "random");
    create_at(rng_one_in(r, 3) ? "mem:" : path, model, caches[rng_int(r, 0, 3)], false, r,
              &array);
    for (int i = 0; i < 3; i++) {
        run_threads(array, model, 40, r);
        disturb(array, model, r);
    }
    box3 all = make_box(origin, shape);
    prefetch(array, &all);
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
    int rounds = (int)number_argument(argc, argv, 1, 12);
    uint64_t seed = seed_argument(argc, argv, 2);
    rng r = rng_from_seed(seed);
    int32_t *model = new_model(seed);
    scratch_path(path, "fixed");
    create_at(path, model, -1, true, &(rng){0}, &array);
    CHECK_OK(caterva_close(array, &err), err);
    what_is_prefetched_is_found(path, model);
    it_gets_half_of_the_cache(path);
    it_may_do_nothing(path, model);
    for (int i = 0; i < 4 * N_WAYS; i++)
        a_scan_finds_all(path, model, i & 1, i & 2, (way)(i / 4));
    a_scan_of_whole_blocks_passes(path, model);
#ifndef SANITIZED /* the child may find its own locks taken */
    a_child_goes_on(path, model);
#endif
    closing_in_the_middle(path, &r);
    for (int i = 0; i < rounds; i++) run_round(&r, seed + (uint64_t)i);
    free(model);
    return 0;
}
