/* Property test: results of reads never depend on the block cache. Random boxes, many of them
 * repeatedly, are read through a writing handle and through one that reads the same array,
 * while boxes are written, committed and rolled back, so that positions in the file are
 * reused, and while C-Blosc2 changes the file in place without the reader's knowledge. The
 * caches: shared, none, the handle's own, and one smaller than a chunk.
 *
 * usage: test_cache [READS [SEED]] */
#include "caterva.h"

#include "support/check.h"
#include "support/oracle.h"
#include "support/pipelines.h"
#include "support/random.h"
#include "support/scratch.h"

#include <b2nd.h>
#include <blosc2.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEFAULT_READS = 24000, STEPS_PER_ARRAY = 300, MAX_ITEMS = 6000, N_BOXES = 12 };

typedef enum place { IN_MEMORY, IN_FILE, IN_DIRECTORY } place;

static const int64_t caches[] = {0, -1, 1 << 20, 3000};
enum { N_CACHES = sizeof(caches) / sizeof(caches[0]) };

typedef struct subject {
    rng *random;
    geometry geometry;
    place place;
    int64_t cache_bytes;
    char path[SCRATCH_PATH];
    caterva_array *writer;
    caterva_array *reader; /* NULL: none at the moment       */
    oracle now;            /* expected from the writer       */
    oracle committed;      /* expected from other handles    */
    oracle seen;           /* expected from the reader       */
    box boxes[N_BOXES];    /* read most often                */
    int step;
    int first_reader; /* step of the first reader; before it, space is reused */
} subject;

static int64_t n_reads, n_hits;

/* ---- Reading ------------------------------------------------------------------- */

static void check_read(const subject *s, caterva_array *array, const oracle *expected,
                       const char *who)
{
    caterva_error err;
    box b = rng_one_in(s->random, 4) ? random_box(s->random, &s->geometry)
                                     : s->boxes[rng_int(s->random, 0, N_BOXES - 1)];
    size_t size = box_size(&b, &s->geometry);
    uint8_t *want = check_alloc(size), *got = check_alloc(size);
    char array_text[512], range[512];
    memset(got, 0xA5, size);
    CHECK_OK(caterva_read(array, b.start, b.stop, got, size, &err), err);
    oracle_read(expected, &b, want);
    CHECK(memcmp(got, want, size) == 0, "%s, cache of %lld, place %d, %s: box %s", who,
          (long long)s->cache_bytes, s->place,
          geometry_text(&s->geometry, array_text, sizeof(array_text)),
          box_text(&b, s->geometry.ndim, range, sizeof(range)));
    free(want);
    free(got);
    n_reads++;
}

/* Adds the hits of handles before they are closed. */
static void check_counts(caterva_array *array, int64_t cache_bytes)
{
    caterva_cache_info counts = CATERVA_CACHE_INFO_INIT;
    caterva_cache_describe(array, &counts, NULL);
    CHECK(counts.bytes <= counts.limit, "%lld of %lld bytes", (long long)counts.bytes,
          (long long)counts.limit);
    CHECK(cache_bytes >= 0 || counts.hits == 0, "%lld hits without a cache",
          (long long)counts.hits);
    if (cache_bytes != 0) n_hits += counts.hits;
}

/* ---- Handles --------------------------------------------------------------------- */

static caterva_array *open_as(const subject *s, caterva_mode mode)
{
    caterva_error err;
    caterva_array *array = NULL;
    caterva_open_options options = CATERVA_OPEN_INIT;
    options.mode = mode;
    options.durability = CATERVA_DURABILITY_NONE;
    options.cache_bytes = s->cache_bytes;
    options.threads = rng_int(s->random, 1, 3);
    CHECK_OK(caterva_open(s->path, &options, &array, &err), err);
    return array;
}

static void close_reader(subject *s)
{
    if (s->reader == NULL) return;
    check_counts(s->reader, s->cache_bytes);
    caterva_discard(s->reader);
    s->reader = NULL;
}

static void refresh(subject *s)
{
    caterva_error err;
    if (s->reader == NULL) return;
    CHECK_OK(caterva_refresh(s->reader, &err), err);
    oracle_copy(&s->seen, &s->committed);
}

/* Opens, closes or refreshes the second handle. */
static void change_reader(subject *s)
{
    if (s->place == IN_MEMORY || s->step < s->first_reader) return;
    if (s->reader != NULL && rng_one_in(s->random, 2)) {
        close_reader(s);
        return;
    }
    if (s->reader == NULL) s->reader = open_as(s, CATERVA_MODE_READ);
    refresh(s);
}

/* ---- Writing --------------------------------------------------------------------- */

static void write_box(subject *s)
{
    caterva_error err;
    box b = rng_one_in(s->random, 3) ? whole_box(&s->geometry)
                                     : random_box(s->random, &s->geometry);
    size_t size = box_size(&b, &s->geometry);
    uint8_t *bytes = check_alloc(size);
    random_data(s->random, bytes, size, s->geometry.item_size);
    CHECK_OK(caterva_write(s->writer, b.start, b.stop, bytes, size, &err), err);
    oracle_write(&s->now, &b, bytes);
    free(bytes);
}

/* A commit deletes the chunk files of a directory that it replaces. */
static void commit(subject *s)
{
    caterva_error err;
    CHECK_OK(caterva_commit(s->writer, &err), err);
    oracle_copy(&s->committed, &s->now);
    if (s->place == IN_DIRECTORY) refresh(s);
}

static void roll_back(subject *s)
{
    caterva_error err;
    CHECK_OK(caterva_rollback(s->writer, &err), err);
    oracle_copy(&s->now, &s->committed);
}

/* C-Blosc2 rewrites chunks in place. The writer is closed for it, the reader is not: cached
 * blocks must not be found after the refresh. */
static void write_by_b2nd(subject *s)
{
    caterva_error err;
    b2nd_array_t *theirs = NULL;
    box b = random_box(s->random, &s->geometry);
    size_t size = box_size(&b, &s->geometry);
    if (s->place != IN_FILE || size == 0) return;
    commit(s);
    CHECK_OK(caterva_close(s->writer, &err), err);

    uint8_t *bytes = check_alloc(size);
    int64_t shape[CATERVA_MAX_DIMS];
    for (int d = 0; d < s->geometry.ndim; d++) shape[d] = b.stop[d] - b.start[d];
    random_data(s->random, bytes, size, s->geometry.item_size);
    CHECK(b2nd_open(s->path, &theirs) >= 0, "b2nd_open");
    CHECK(b2nd_set_slice_cbuffer(bytes, shape, (int64_t)size, b.start, b.stop, theirs) >= 0,
          "b2nd_set_slice_cbuffer");
    b2nd_free(theirs);
    oracle_write(&s->now, &b, bytes);
    oracle_copy(&s->committed, &s->now);
    free(bytes);
    refresh(s);
    s->writer = open_as(s, CATERVA_MODE_WRITE);
}

/* ---- One array -------------------------------------------------------------------- */

static void begin(subject *s)
{
    caterva_error err;
    s->geometry = random_geometry(s->random, 4, MAX_ITEMS);
    s->place = (place)rng_int(s->random, 0, 2);
    pipeline p = random_pipeline(s->random, s->geometry.item_size);
    caterva_create_options options = options_for(&s->geometry, &p);
    options.durability = CATERVA_DURABILITY_NONE;
    options.cache_bytes = s->cache_bytes;
    options.threads = rng_int(s->random, 1, 3);
    options.layout =
        s->place == IN_DIRECTORY ? CATERVA_LAYOUT_SPARSE : CATERVA_LAYOUT_CONTIGUOUS;
    scratch_path(s->path, "array");
    scratch_remove(s->path);
    CHECK_OK(
        caterva_create(s->place == IN_MEMORY ? "mem:" : s->path, &options, &s->writer, &err),
        err);
    s->reader = NULL;
    s->first_reader = rng_int(s->random, 0, STEPS_PER_ARRAY);
    s->now = oracle_new(&s->geometry);
    s->committed = oracle_new(&s->geometry);
    s->seen = oracle_new(&s->geometry);
    for (int i = 0; i < N_BOXES; i++) s->boxes[i] = random_box(s->random, &s->geometry);
    write_box(s);
    commit(s);
}

static void step(subject *s)
{
    int kind = rng_int(s->random, 0, 99);
    if (kind < 10)
        write_box(s);
    else if (kind < 17)
        commit(s);
    else if (kind < 19)
        roll_back(s);
    else if (kind < 24)
        change_reader(s);
    else if (kind < 25)
        write_by_b2nd(s);
    else if (s->reader != NULL && kind < 60)
        check_read(s, s->reader, &s->seen, "reader");
    else
        check_read(s, s->writer, &s->now, "writer");
}

static void end(subject *s)
{
    close_reader(s);
    check_counts(s->writer, s->cache_bytes);
    caterva_discard(s->writer);
    scratch_remove(s->path);
    oracle_free(&s->now);
    oracle_free(&s->committed);
    oracle_free(&s->seen);
}

/* ---- One position, many chunks ------------------------------------------------- */

enum { ROW = 4096, REWRITES = 11 };

/* One item of each block, so that no block is wanted whole. */
static void check_items(caterva_array *array, const int32_t *expected, const char *who)
{
    caterva_error err;
    for (int64_t start = 5; start < ROW; start += 64) {
        int64_t stop = start + 1;
        int32_t got = -1;
        CHECK_OK(caterva_read(array, &start, &stop, &got, sizeof(got), &err), err);
        CHECK(got == expected[start], "%s: item %lld is %d, not %d", who, (long long)start,
              (int)got, (int)expected[start]);
    }
}

/* Each commit stores slightly smaller chunks than before, so that they reuse older positions,
 * alternating between two. All are read through the writer, and then through later handles:
 * the positions are equal, the chunks are not. */
static void check_positions(rng *r)
{
    caterva_error err;
    caterva_array *writer = NULL, *reader = NULL;
    char path[SCRATCH_PATH];
    int64_t start = 0, stop = ROW;
    int32_t chunk = 1024, block = 64, items[ROW];
    caterva_create_options options = CATERVA_CREATE_INIT;
    options.ndim = 1;
    options.shape = &stop;
    options.chunk_shape = &chunk;
    options.block_shape = &block;
    options.dtype = "<i4";
    options.durability = CATERVA_DURABILITY_NONE;
    CHECK_OK(caterva_create(scratch_path(path, "row"), &options, &writer, &err), err);
    for (int k = 0; k < REWRITES; k++) {
        for (int i = 0; i < ROW; i++) items[i] = rng_int(r, 1, 1 << (24 - k));
        CHECK_OK(caterva_write(writer, &start, &stop, items, sizeof(items), &err), err);
        CHECK_OK(caterva_commit(writer, &err), err);
        check_items(writer, items, "writer");
    }
    CHECK_OK(caterva_open(path, NULL, &reader, &err), err);
    check_items(reader, items, "reader");
    caterva_discard(reader);
    caterva_discard(writer);
    scratch_remove(path);
}

int main(int argc, char **argv)
{
    int64_t reads = (int64_t)number_argument(argc, argv, 1, DEFAULT_READS);
    rng random = rng_from_seed(seed_argument(argc, argv, 2));
    caterva_cache_info shared = CATERVA_CACHE_INFO_INIT;
    blosc2_init();
    check_positions(&random);
    for (int i = 0; n_reads < reads; i++) {
        subject s = {.random = &random, .cache_bytes = caches[i % N_CACHES]};
        begin(&s);
        for (; s.step < STEPS_PER_ARRAY; s.step++) step(&s);
        end(&s);
    }
    caterva_cache_describe(NULL, &shared, NULL);
    CHECK(shared.hits > 0 && n_hits > 0, "%lld and %lld hits: nothing was put to the test",
          (long long)shared.hits, (long long)n_hits);
    CHECK(shared.bytes == 0, "%lld bytes left by handles that are closed",
          (long long)shared.bytes);
    printf("%lld reads, %lld blocks from the shared cache, %lld from others\n",
           (long long)n_reads, (long long)shared.hits, (long long)n_hits);
    return 0;
}
