/* Reads around damage, with every kind of selection, in any order of the buffer's axes,
 * converted or not: lost items become the fill, all others are what the array held. The
 * oracle is a second, undamaged array that holds the fill in the lost chunks.
 *
 * usage: test_around_damage [ROUNDS [SEED]] */
#include "caterva.h"
#include "caterva_upkeep.h"

#include "support/buffer.h"
#include "support/check.h"
#include "support/random.h"
#include "support/scratch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { A = 21, B = 17, C = 30, N = A * B * C, N_CHUNKS = 4 * 4 * 3, MOST = 30, FILL = 7777 };
static const int64_t shape[3] = {A, B, C};
static const int32_t chunk_shape[3] = {6, 5, 13}, block_shape[3] = {2, 5, 4};
static char path[SCRATCH_PATH];
static int32_t items[N];
static int reported[N_CHUNKS], is_lost[N_CHUNKS];

static caterva_create_options drawn(caterva_layout layout)
{
    caterva_create_options o = CATERVA_CREATE_INIT;
    o.ndim = 3;
    o.shape = shape;
    o.chunk_shape = chunk_shape;
    o.block_shape = block_shape;
    o.dtype = "<i4";
    o.layout = layout;
    o.overwrite = 1;
    o.durability = CATERVA_DURABILITY_NONE;
    return o;
}

static void lose_chunk(caterva_array *oracle, int64_t chunk)
{
    caterva_error err;
    caterva_chunk_info info = CATERVA_CHUNK_INFO_INIT;
    caterva_buffer fill = CATERVA_BUFFER_INIT;
    int32_t item = FILL;
    int64_t one[3] = {1, 1, 1};
    char file[SCRATCH_PATH + 64];
    caterva_array *array;
    CHECK_OK(caterva_open(path, NULL, &array, &err), err);
    CHECK_OK(caterva_chunk_describe(array, chunk, &info, &err), err);
    caterva_discard(array);
    snprintf(file, sizeof file, "%s/%08llX.chunk", path, (unsigned long long)info.position);
    CHECK(unlink(file) == 0, "%s is not there", file);
    fill.data = &item;
    fill.size = sizeof item;
    fill.ndim = 3;
    fill.shape = one;
    CHECK_OK(caterva_write_selection(oracle, BOX(info.start, info.stop), &fill, &err), err);
    is_lost[chunk] = 1;
}

static void make(rng *r, caterva_array **oracle)
{
    caterva_error err;
    caterva_array *array;
    caterva_create_options o = drawn(CATERVA_LAYOUT_SPARSE), plain = drawn(0);
    for (int i = 0; i < N; i++) items[i] = rng_int(r, -1000, 1000);
    memset(is_lost, 0, sizeof is_lost);
    CHECK_OK(caterva_create_from_memory(path, &o, items, sizeof items, &array, &err), err);
    CHECK_OK(caterva_close(array, &err), err);
    CHECK_OK(caterva_create_from_memory("mem:", &plain, items, sizeof items, oracle, &err),
             err);
    for (int i = rng_int(r, 0, 5); i > 0; i--) {
        int chunk = rng_int(r, 0, N_CHUNKS - 1);
        if (!is_lost[chunk]) lose_chunk(*oracle, chunk);
    }
}

/* ---- What is asked for ------------------------------------------------------------ */

typedef struct words {
    caterva_selection selection;
    caterva_buffer dst;
    caterva_axis axes[3];
    int64_t start[3], stop[3], list[MOST], points[MOST * 3], strides[3];
    uint8_t line[B], mask[N];
} words;

static void draw(words *w, rng *r)
{
    memset(w, 0, sizeof *w);
    w->selection = (caterva_selection)CATERVA_SELECTION_INIT;
    w->dst = (caterva_buffer)CATERVA_BUFFER_INIT;
    for (int d = 0; d < 3; d++) {
        w->start[d] = rng_between(r, 0, shape[d] - 1);
        w->stop[d] = rng_between(r, w->start[d], shape[d]);
    }
    for (int i = 0; i < MOST; i++) w->list[i] = rng_between(r, -A, A - 1);
    for (int i = 0; i < MOST * 3; i++) w->points[i] = rng_between(r, 0, shape[i % 3] - 1);
    for (int i = 0; i < B; i++) w->line[i] = (uint8_t)rng_int(r, 0, 1);
    for (int i = 0, dense = rng_int(r, 0, 1); i < N; i++)
        w->mask[i] = (uint8_t)(rng_one_in(r, dense ? 2 : 500) != 0);
    w->axes[0] = (caterva_axis){.kind = CATERVA_AXIS_LIST, .indices = w->list};
    w->axes[0].n = rng_int(r, 0, MOST);
    w->axes[1] = (caterva_axis){.kind = CATERVA_AXIS_MASK, .mask = w->line, .n = B};
    w->axes[2] = (caterva_axis){.kind = CATERVA_AXIS_SLICE, .start = 28, .stop = 2};
    w->axes[2].step = -rng_int(r, 1, 9);
    w->selection.kind = (caterva_selection_kind)rng_int(r, 0, 3);
    w->selection.start = w->start;
    w->selection.stop = w->stop;
    w->selection.axes = w->axes;
    w->selection.n_axes = 3;
    w->selection.points = w->points;
    w->selection.n_points = rng_int(r, 0, MOST);
    w->selection.mask = w->mask;
    w->selection.mask_size = N;
    if (rng_one_in(r, 2)) w->dst.dtype = "<f8";
}

static size_t lay_out(words *w, caterva_array *array, rng *r)
{
    caterva_error err;
    int64_t result[CATERVA_MAX_DIMS], size = w->dst.dtype ? 8 : 4;
    int ndim;
    CHECK_OK(caterva_selection_shape(array, &w->selection, &ndim, result, &err), err);
    int fortran = rng_one_in(r, 2);
    for (int i = 0; i < ndim; i++) {
        int d = fortran ? i : ndim - 1 - i;
        w->strides[d] = size;
        size = size * result[d] + 4 * rng_int(r, 0, 2); /* and a gap */
    }
    w->dst.strides = w->strides;
    w->dst.ndim = ndim;
    w->dst.size = (size_t)size;
    return w->dst.size;
}

static void note(void *context, const caterva_damage *damage)
{
    (void)context;
    CHECK(damage->chunk >= 0 && damage->chunk < N_CHUNKS, "chunk %lld",
          (long long)damage->chunk);
    reported[damage->chunk]++;
}

static void check_read(caterva_array *damaged, caterva_array *oracle, rng *r)
{
    static words w; /* large */
    caterva_error err;
    caterva_skip_options skip = CATERVA_SKIP_INIT;
    int32_t fill = FILL;
    draw(&w, r);
    size_t size = lay_out(&w, oracle, r);
    uint8_t *got = check_alloc(size), *expected = check_alloc(size);
    memset(got, 0x33, size);
    memset(expected, 0x33, size);
    memset(reported, 0, sizeof reported);
    skip.fill = &fill;
    skip.on_damage = note;
    w.dst.data = expected;
    CHECK_OK(caterva_read_selection(oracle, &w.selection, &w.dst, &err), err);
    w.dst.data = got;
    CHECK_OK(caterva_read_skipping(damaged, &w.selection, &w.dst, &skip, &err), err);
    CHECK(memcmp(got, expected, size) == 0, "kind %d, dtype %s", (int)w.selection.kind,
          w.dst.dtype ? w.dst.dtype : "as it is");
    caterva_status plain = caterva_read_selection(damaged, &w.selection, &w.dst, &err);
    int n = 0;
    for (int i = 0; i < N_CHUNKS; i++) {
        CHECK(reported[i] <= is_lost[i], "chunk %d was reported %d times", i, reported[i]);
        n += reported[i];
    }
    CHECK((plain == CATERVA_ECORRUPT) == (n > 0), "%d chunks reported, a plain read gives %s",
          n, caterva_status_name(plain));
    free(got);
    free(expected);
}

int main(int argc, char **argv)
{
    caterva_error err;
    int rounds = (int)number_argument(argc, argv, 1, 40);
    rng r = rng_from_seed(seed_argument(argc, argv, 2));
    scratch_path(path, "damaged");
    for (int i = 0; i < rounds; i++) {
        caterva_array *oracle, *damaged;
        caterva_open_options o = CATERVA_OPEN_INIT;
        make(&r, &oracle);
        o.threads = rng_int(&r, 1, 3);
        o.cache_bytes = rng_one_in(&r, 2) ? -1 : 0;
        CHECK_OK(caterva_open(path, &o, &damaged, &err), err);
        for (int k = 0; k < 10; k++) check_read(damaged, oracle, &r);
        caterva_discard(damaged);
        caterva_discard(oracle);
    }
    scratch_remove(path);
    return 0;
}
