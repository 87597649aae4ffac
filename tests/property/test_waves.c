/* Property: far stores are read in waves. In a custom store that counts its calls, a point
 * takes two; a plane, a box or a selection takes no more, with any number of chunks, and
 * hardly more bytes than their blocks have. Items are right with ranges arriving in any
 * order, from stores that omit ranges and report false results, on any number of threads. An
 * unreadable range is reported with its chunk, a stop takes effect, and the handle is usable
 * afterwards. Files and directories whose bytes are not in the page cache give the same.
 *
 * usage: test_waves [SEED [ROUNDS]] */
#include "scratch.h"
#include "support/every_step.h"
#include "waves_array.h"

#include <caterva_store.h>
#include <caterva_upkeep.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- Reading --------------------------------------------------------------------------- */

typedef struct cuboid {
    int64_t start[3], stop[3];
} cuboid;

static size_t count(const cuboid *b)
{
    size_t n = 1;
    for (int d = 0; d < 3; d++) n *= (size_t)(b->stop[d] - b->start[d]);
    return n;
}

static void check_items(const int32_t *got, const cuboid *b)
{
    for (int64_t i = b->start[0]; i < b->stop[0]; i++)
        for (int64_t j = b->start[1]; j < b->stop[1]; j++)
            for (int64_t k = b->start[2]; k < b->stop[2]; k++, got++)
                CHECK(*got == items[(i * SIDE + j) * SIDE + k], "item %lld, %lld, %lld is %d",
                      (long long)i, (long long)j, (long long)k, *got);
}

static caterva_status try_box(caterva_array *array, const cuboid *b, caterva_error *err)
{
    size_t size = count(b) * sizeof items[0];
    int32_t *got = check_alloc(size > 0 ? size : 1);
    caterva_status status = caterva_read(array, b->start, b->stop, got, size, err);
    if (status == CATERVA_OK) check_items(got, b);
    free(got);
    return status;
}

static void read_box(caterva_array *array, const cuboid *b)
{
    caterva_error err;
    CHECK_OK(try_box(array, b, &err), err);
}

static cuboid random_cuboid(rng *r)
{
    cuboid b;
    for (int d = 0; d < 3; d++) {
        b.start[d] = rng_int(r, 0, SIDE - 1);
        b.stop[d] = rng_int(r, (int)b.start[d] + 1, SIDE);
        if (rng_one_in(r, 3)) b.stop[d] = b.start[d] + 1;
    }
    return b;
}

static void read_points(caterva_array *array, rng *r, int n)
{
    caterva_error err;
    caterva_selection s = CATERVA_SELECTION_INIT;
    caterva_buffer out = CATERVA_BUFFER_INIT;
    int64_t *points = check_alloc((size_t)n * 3 * sizeof points[0]);
    int32_t *got = check_alloc((size_t)n * sizeof got[0]);
    for (int i = 0; i < 3 * n; i++) points[i] = rng_int(r, 0, SIDE - 1);
    s.kind = CATERVA_SELECTION_POINTS;
    s.points = points;
    s.n_points = n;
    out.data = got;
    out.size = (size_t)n * sizeof got[0];
    CHECK_OK(caterva_read_selection(array, &s, &out, &err), err);
    for (int i = 0; i < n; i++) {
        const int64_t *p = points + 3 * i;
        CHECK(got[i] == items[(p[0] * SIDE + p[1]) * SIDE + p[2]], "point %d is %d", i,
              got[i]);
    }
    free(points);
    free(got);
}

/* ---- Counting -------------------------------------------------------------------------- */

/* The stored bytes of the blocks that a box touches. */
static long stored(caterva_array *array, const cuboid *b)
{
    caterva_error err;
    long total = 0;
    int64_t i[3];
    for (i[0] = b->start[0] / BLOCK; i[0] * BLOCK < b->stop[0]; i[0]++)
        for (i[1] = b->start[1] / BLOCK; i[1] * BLOCK < b->stop[1]; i[1]++)
            for (i[2] = b->start[2] / BLOCK; i[2] * BLOCK < b->stop[2]; i[2]++) {
                int64_t chunk = 0, block = 0;
                for (int d = 0; d < 3; d++) {
                    chunk = chunk * (SIDE / CHUNK) + i[d] / (CHUNK / BLOCK);
                    block = block * (CHUNK / BLOCK) + i[d] % (CHUNK / BLOCK);
                }
                caterva_block_info info = CATERVA_BLOCK_INFO_INIT;
                CHECK_OK(caterva_block_describe(array, chunk, block, &info, &err), err);
                total += (long)info.stored_bytes;
            }
    return total;
}

enum { HEAD = 4096, TABLE = 16 + 4 * N_BLOCKS };

/* Two calls with a handle that has read its index, and one if the layouts are known. */
static void count_box(blob *b, const char *what, const cuboid *box, int n_chunks)
{
    const cuboid elsewhere = {{0, 0, 70}, {1, 1, 71}}; /* chunk 2 */
    caterva_array *array = open_blob(b, 1, -1);
    caterva_array *other = open_blob(b, 1, -1);
    long needed = stored(other, box);
    caterva_discard(other);
    read_box(array, &elsewhere);
    forget_counts(b);
    read_box(array, box);
    CHECK(b->n_waves == 2 && b->n_reads == 0, "%s: %ld waves and %ld reads", what, b->n_waves,
          b->n_reads);
    long most = needed + needed / 50 + (long)n_chunks * (HEAD + TABLE);
    CHECK(b->n_bytes >= needed && b->n_bytes <= most, "%s: %ld bytes where %ld are needed",
          what, b->n_bytes, needed);
    forget_counts(b);
    read_box(array, box);
    CHECK(b->n_waves == 1 && b->n_reads == 0, "%s again: %ld waves and %ld reads", what,
          b->n_waves, b->n_reads);
    caterva_discard(array);
}

static void counts(blob *b, rng *r)
{
    const cuboid point = {{40, 41, 42}, {41, 42, 43}};
    const cuboid planes[3] = {{{50, 0, 0}, {51, SIDE, SIDE}},
                              {{0, 50, 0}, {SIDE, 51, SIDE}},
                              {{0, 0, 50}, {SIDE, SIDE, 51}}};
    const cuboid box = {{20, 20, 20}, {70, 70, 70}};
    const cuboid all = {{0, 0, 0}, {SIDE, SIDE, SIDE}};
    count_box(b, "a point", &point, 1);
    for (int d = 0; d < 3; d++) count_box(b, "a plane", &planes[d], 9);
    count_box(b, "a box", &box, N_CHUNKS);
    count_box(b, "the array", &all, N_CHUNKS);

    caterva_array *array = open_blob(b, 2, -1);
    read_points(array, r, 1);
    read_points(array, r, 1);
    forget_counts(b);
    read_points(array, r, 200);
    CHECK(b->n_waves == 2 && b->n_reads == 0, "200 points: %ld waves and %ld reads",
          b->n_waves, b->n_reads);
    caterva_discard(array);
}

/* ---- What goes wrong --------------------------------------------------------------------- */

static void check_named(const caterva_error *err, int64_t chunk)
{
    char name[32];
    snprintf(name, sizeof name, "chunk %lld:", (long long)chunk);
    CHECK(strstr(err->message, name) && strstr(err->message, "out of paper") &&
              strstr(err->message, "the blob"),
          "%s", err->message);
}

/* A byte of a chunk's head, or of a block in its middle, cannot be read. */
static void bad_ranges(blob *b)
{
    const cuboid plane = {{0, 50, 0}, {SIDE, 51, SIDE}};
    enum { CHUNK_13 = 13 }; /* in the middle of the plane */
    caterva_error err;
    for (int where = 0; where < 2; where++)
        for (int threads = 1; threads <= 4; threads += 3) {
            caterva_block_info block = CATERVA_BLOCK_INFO_INIT;
            caterva_array *array = open_blob(b, threads, -1);
            CHECK_OK(caterva_block_describe(array, CHUNK_13, 2, &block, &err), err);
            CHECK(block.stored_bytes > 0, "the block is not stored");
            caterva_discard(array);
            array = open_blob(b, threads, -1);
            caterva_chunk_info chunk = CATERVA_CHUNK_INFO_INIT;
            CHECK_OK(caterva_chunk_describe(array, CHUNK_13, &chunk, &err), err);
            caterva_discard(array);
            array = open_blob(b, threads, -1);
            b->why = "out of paper";
            b->bad = where == 0 ? (uint64_t)chunk.position + 40 : 0;
            if (where == 1) b->bad = (uint64_t)chunk.position + 20000;
            memset(&err, 0, sizeof err);
            CHECK(try_box(array, &plane, &err) == CATERVA_EIO, "byte %" PRIu64 " is read",
                  b->bad);
            check_named(&err, CHUNK_13);
            b->bad = 0;
            b->why = NULL;
            read_box(array, &plane);
            caterva_discard(array);
        }
}

static int stop_soon(void *context, int64_t done, int64_t total)
{
    (void)total;
    return done > *(int64_t *)context;
}

/* The store is stopped before all ranges have arrived. */
static void stops(blob *b)
{
    const cuboid all = {{0, 0, 0}, {SIDE, SIDE, SIDE}};
    for (int threads = 1; threads <= 3; threads++) {
        int64_t most = 400000;
        caterva_error err;
        caterva_array *array;
        caterva_open_options o = CATERVA_OPEN_INIT;
        caterva_store s = blob_store(b);
        o.threads = threads;
        o.cache_bytes = -1;
        o.progress = every_step(stop_soon, &most);
        CHECK_OK(caterva_store_open(&s, &o, &array, &err), err);
        long before = b->n_stopped;
        forget_counts(b);
        CHECK(try_box(array, &all, &err) == CATERVA_ESTOPPED, "%d threads: it goes on",
              threads);
        CHECK(b->n_stopped == before + 1, "%d threads: the store was not stopped", threads);
        most = INT64_MAX;
        read_box(array, &all);
        caterva_discard(array);
    }
}

/* ---- Any store, any order ---------------------------------------------------------------- */

static void random_reads(blob *b, rng *r)
{
    b->leaves_out = rng_one_in(r, 3);
    b->lies = rng_one_in(r, 3);
    b->slow = rng_one_in(r, 4);
    b->short_reads = rng_one_in(r, 3);
    caterva_array *array = open_blob(b, rng_int(r, 1, 4), rng_one_in(r, 2) ? -1 : 1 << 20);
    for (int i = 0; i < 6; i++) {
        cuboid box = random_cuboid(r);
        read_box(array, &box);
        read_points(array, r, rng_int(r, 1, 300));
    }
    caterva_discard(array);
    b->leaves_out = b->lies = b->slow = b->short_reads = false;
}

/* ---- Files ------------------------------------------------------------------------------- */

/* A hint: if it has no effect, the test uses cached files. */
static void cool(const char *path)
{
    int fd = open(path, O_RDONLY);
    if (fd < 0) return;
    (void)fsync(fd);
    (void)posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    close(fd);
}

static void cool_directory(const char *path)
{
    char name[SCRATCH_PATH + 32];
    for (int i = 0; i <= N_CHUNKS; i++) {
        snprintf(name, sizeof name, "%s/%08X.chunk", path, (unsigned)i);
        cool(name);
    }
}

static void cold_reads(rng *r, caterva_layout layout)
{
    char path[SCRATCH_PATH];
    caterva_error err;
    caterva_array *array;
    caterva_create_options o = options();
    o.layout = layout;
    o.threads = rng_int(r, 1, 3); /* chunks in any order */
    scratch_path(path, layout == CATERVA_LAYOUT_SPARSE ? "cold.dir" : "cold");
    CHECK_OK(caterva_create(path, &o, &array, &err), err);
    put(array);
    for (int i = 0; i < 8; i++) {
        caterva_open_options open = CATERVA_OPEN_INIT;
        open.threads = rng_int(r, 1, 4);
        open.cache_bytes = rng_one_in(r, 2) ? -1 : 1 << 20;
        CHECK_OK(caterva_open(path, &open, &array, &err), err);
        for (int k = 0; k < 3; k++) {
            cuboid box = random_cuboid(r);
            cool(path);
            if (layout == CATERVA_LAYOUT_SPARSE) cool_directory(path);
            if (rng_one_in(r, 2))
                read_box(array, &box);
            else
                read_points(array, r, rng_int(r, 1, 300));
        }
        caterva_discard(array);
    }
    CHECK_OK(caterva_delete(path, NULL, &err), err);
}

int main(int argc, char **argv)
{
    rng r = rng_from_seed(seed_argument(argc, argv, 1));
    uint64_t rounds = number_argument(argc, argv, 2, 12);
    blob b;
    blob_init(&b);
    b.waves = true;
    make_items(&r);
    make_blob(&b);
    counts(&b, &r);
    bad_ranges(&b);
    stops(&b);
    for (uint64_t i = 0; i < rounds; i++) random_reads(&b, &r);
    blob_free(&b);
    cold_reads(&r, CATERVA_LAYOUT_CONTIGUOUS);
    cold_reads(&r, CATERVA_LAYOUT_SPARSE);
    printf("%" PRIu64 " rounds\n", rounds);
    return 0;
}
