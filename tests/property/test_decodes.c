/* The cost of selections: exactly the blocks that hold a wanted item are decoded, each once,
 * for any order of the items and any number of threads. Also the cost of repeated scans; and
 * in an array that fits the cache, no block is decoded twice, whatever is read in any order.
 * Counts the engine's calls of the decoder, which the linker redirects.
 *
 * usage: test_decodes [SEED] */
#include "caterva.h"
#include "caterva_store.h"

#include "codec/decode.h"
#include "support/check.h"
#include "support/random.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    SIDE = 64,
    CHUNK = 32,
    BLOCK = 8,
    N_ITEMS = SIDE * SIDE * SIDE,
    BLOCKS_ALONG = SIDE / BLOCK,
    N_BLOCKS = BLOCKS_ALONG * BLOCKS_ALONG * BLOCKS_ALONG,
    N_POINTS = 10000
};

/* ---- Counters ------------------------------------------------------------------ */

static atomic_int n_decoded; /* blocks */
static atomic_int n_whole;   /* calls that decode more than one block */

cv_status __real_cv_decode_block(cv_decoder *decoder, const cv_packed_block *block, void *dst,
                                 int32_t dst_size, cv_error *err);
cv_status __wrap_cv_decode_block(cv_decoder *decoder, const cv_packed_block *block, void *dst,
                                 int32_t dst_size, cv_error *err);
cv_status __real_cv_decode_loose(cv_decoder *decoder, const cv_packed_block *block, void *dst,
                                 int32_t dst_size, cv_block_form *form, cv_error *err);
cv_status __wrap_cv_decode_loose(cv_decoder *decoder, const cv_packed_block *block, void *dst,
                                 int32_t dst_size, cv_block_form *form, cv_error *err);
cv_status __real_cv_decode_chunk(cv_decoder *decoder, const uint8_t *chunk,
                                 int32_t chunk_size, void *dst, int32_t dst_size,
                                 cv_error *err);
cv_status __wrap_cv_decode_chunk(cv_decoder *decoder, const uint8_t *chunk,
                                 int32_t chunk_size, void *dst, int32_t dst_size,
                                 cv_error *err);
cv_status __real_cv_decode_range(cv_decoder *decoder, const uint8_t *chunk,
                                 int32_t chunk_size, int32_t start, int32_t size, void *dst,
                                 cv_error *err);
cv_status __wrap_cv_decode_range(cv_decoder *decoder, const uint8_t *chunk,
                                 int32_t chunk_size, int32_t start, int32_t size, void *dst,
                                 cv_error *err);

cv_status __wrap_cv_decode_block(cv_decoder *decoder, const cv_packed_block *block, void *dst,
                                 int32_t dst_size, cv_error *err)
{
    atomic_fetch_add(&n_decoded, 1);
    return __real_cv_decode_block(decoder, block, dst, dst_size, err);
}

cv_status __wrap_cv_decode_loose(cv_decoder *decoder, const cv_packed_block *block, void *dst,
                                 int32_t dst_size, cv_block_form *form, cv_error *err)
{
    atomic_fetch_add(&n_decoded, 1);
    return __real_cv_decode_loose(decoder, block, dst, dst_size, form, err);
}

cv_status __wrap_cv_decode_chunk(cv_decoder *decoder, const uint8_t *chunk,
                                 int32_t chunk_size, void *dst, int32_t dst_size,
                                 cv_error *err)
{
    atomic_fetch_add(&n_whole, 1);
    return __real_cv_decode_chunk(decoder, chunk, chunk_size, dst, dst_size, err);
}

cv_status __wrap_cv_decode_range(cv_decoder *decoder, const uint8_t *chunk,
                                 int32_t chunk_size, int32_t start, int32_t size, void *dst,
                                 cv_error *err)
{
    atomic_fetch_add(&n_whole, 1);
    return __real_cv_decode_range(decoder, chunk, chunk_size, start, size, dst, err);
}

/* ---- The array ----------------------------------------------------------------- */

static int32_t *items; /* random: every chunk is stored, and compresses badly */

static void make_array(rng *r, void **frame, size_t *size)
{
    caterva_error err;
    caterva_create_options options = CATERVA_CREATE_INIT;
    caterva_array *array = NULL;
    options.ndim = 3;
    options.shape = (int64_t[]){SIDE, SIDE, SIDE};
    options.chunk_shape = (int32_t[]){CHUNK, CHUNK, CHUNK};
    options.block_shape = (int32_t[]){BLOCK, BLOCK, BLOCK};
    options.dtype = "<i4";
    items = check_alloc(N_ITEMS * sizeof items[0]);
    for (int i = 0; i < N_ITEMS; i++) items[i] = rng_int(r, 0, 1 << 20);
    CHECK_OK(caterva_create_from_memory("mem:", &options, items, N_ITEMS * sizeof items[0],
                                        &array, &err),
             err);
    CHECK_OK(caterva_frame_copy(array, frame, size, &err), err);
    caterva_discard(array);
}

/* ---- Selections ---------------------------------------------------------------- */

/* The numbers of the items that a selection takes, in the order of the result. */
typedef struct answer {
    int64_t *items;
    int64_t n;
} answer;

static int count_blocks(const answer *a)
{
    static uint8_t touched[N_BLOCKS];
    int n = 0;
    memset(touched, 0, sizeof touched);
    for (int64_t i = 0; i < a->n; i++) {
        int64_t x = a->items[i] / (SIDE * SIDE), y = a->items[i] / SIDE % SIDE;
        int64_t z = a->items[i] % SIDE;
        int64_t b = (x / BLOCK * BLOCKS_ALONG + y / BLOCK) * BLOCKS_ALONG + z / BLOCK;
        n += !touched[b];
        touched[b] = 1;
    }
    return n;
}

static void read_and_count(caterva_array *array, const caterva_selection *words,
                           const answer *a, const char *what)
{
    caterva_error err;
    caterva_buffer buffer = CATERVA_BUFFER_INIT;
    int32_t *out = check_alloc((size_t)a->n * sizeof out[0]);
    buffer.data = out;
    buffer.size = (size_t)a->n * sizeof out[0];
    atomic_store(&n_decoded, 0);
    atomic_store(&n_whole, 0);
    CHECK_OK(caterva_read_selection(array, words, &buffer, &err), err);
    int decoded = atomic_load(&n_decoded), touched = count_blocks(a);
    CHECK(decoded == touched, "%s: %d blocks decoded, %d touched", what, decoded, touched);
    CHECK(atomic_load(&n_whole) == 0, "%s: a chunk was decoded whole", what);
    for (int64_t i = 0; i < a->n; i++)
        CHECK(out[i] == items[a->items[i]], "%s: item %lld", what, (long long)i);
    free(out);
}

static void read_points(caterva_array *array, rng *r, int64_t n, answer *a)
{
    int64_t *points = check_alloc((size_t)n * 3 * sizeof points[0]);
    caterva_selection words = CATERVA_SELECTION_INIT;
    for (int64_t i = 0; i < 3 * n; i++) points[i] = rng_between(r, 0, SIDE - 1);
    a->n = n;
    for (int64_t i = 0; i < n; i++)
        a->items[i] = (points[3 * i] * SIDE + points[3 * i + 1]) * SIDE + points[3 * i + 2];
    words.kind = CATERVA_SELECTION_POINTS;
    words.points = points;
    words.n_points = n;
    read_and_count(array, &words, a, "points");
    free(points);
}

static void read_mask(caterva_array *array, rng *r, int one_in, answer *a)
{
    uint8_t *mask = check_alloc(N_ITEMS);
    caterva_selection words = CATERVA_SELECTION_INIT;
    a->n = 0;
    for (int64_t i = 0; i < N_ITEMS; i++) {
        mask[i] = rng_one_in(r, one_in) ? (uint8_t)rng_int(r, 1, 255) : 0;
        if (mask[i]) a->items[a->n++] = i;
    }
    words.kind = CATERVA_SELECTION_MASK;
    words.mask = mask;
    words.mask_size = N_ITEMS;
    read_and_count(array, &words, a, "mask");
    free(mask);
}

/* Lists if n is not 0, else every `step`-th item. */
static void read_axes(caterva_array *array, rng *r, int n, int64_t step, answer *a)
{
    int64_t lists[3][SIDE], counts[3];
    caterva_axis axes[3];
    caterva_selection words = CATERVA_SELECTION_INIT;
    for (int d = 0; d < 3; d++) {
        int64_t start = rng_between(r, 0, step - 1);
        counts[d] = n > 0 ? n : (SIDE - start + step - 1) / step;
        for (int64_t i = 0; i < counts[d]; i++)
            lists[d][i] = n > 0 ? rng_between(r, 0, SIDE - 1) : start + i * step;
        axes[d] = (caterva_axis){.kind = n > 0 ? CATERVA_AXIS_LIST : CATERVA_AXIS_SLICE,
                                 .indices = lists[d],
                                 .n = counts[d],
                                 .start = start,
                                 .stop = CATERVA_AXIS_OMIT,
                                 .step = step};
    }
    a->n = 0;
    for (int64_t i = 0; i < counts[0]; i++)
        for (int64_t j = 0; j < counts[1]; j++)
            for (int64_t k = 0; k < counts[2]; k++)
                a->items[a->n++] = (lists[0][i] * SIDE + lists[1][j]) * SIDE + lists[2][k];
    words.kind = CATERVA_SELECTION_AXES;
    words.axes = axes;
    words.n_axes = 3;
    read_and_count(array, &words, a, n > 0 ? "lists" : "steps");
}

/* ---- Scans ---------------------------------------------------------------------- */

/* Reads and checks one slice of an axis. */
static void read_slice(caterva_array *array, int axis, int at, int32_t *out)
{
    caterva_error err;
    int64_t start[3] = {0}, stop[3] = {SIDE, SIDE, SIDE};
    start[axis] = at;
    stop[axis] = at + 1;
    CHECK_OK(caterva_read(array, start, stop, out, SIDE * SIDE * sizeof out[0], &err), err);
    int64_t step[] = {SIDE * SIDE, SIDE, 1};
    int64_t rows = axis == 0 ? SIDE : SIDE * SIDE, columns = axis == 2 ? SIDE : 1;
    for (int64_t i = 0; i < SIDE; i++)
        for (int64_t j = 0; j < SIDE; j++)
            CHECK(out[i * SIDE + j] == items[at * step[axis] + i * rows + j * columns],
                  "slice %d of axis %d", at, axis);
}

/* Reads all slices of an axis one by one. If the cache holds a layer of blocks, each block is
 * decoded once, however often the scan is repeated and whatever else was cached; blocks
 * beyond that are found again. */
static void scan_again(const void *frame, size_t size, int axis, double n_layers,
                       bool backwards)
{
    enum { BLOCK_BYTES = BLOCK * BLOCK * BLOCK * sizeof(int32_t), ENTRY_BYTES = 256 };
    enum { LAYER = BLOCKS_ALONG * BLOCKS_ALONG, N_SCANS = 6 };
    caterva_error err;
    caterva_open_options options = CATERVA_OPEN_INIT;
    caterva_array *array = NULL;
    int32_t *out = check_alloc(SIDE * SIDE * sizeof out[0]);
    options.threads = 1;
    options.no_read_ahead = 1;
    options.cache_bytes = (int64_t)(n_layers * LAYER * (BLOCK_BYTES + ENTRY_BYTES));
    CHECK_OK(caterva_frame_open(frame, size, 0, &options, &array, &err), err);
    for (int scan = 0; scan < N_SCANS; scan++) {
        if (n_layers >= 2) read_slice(array, (axis + 1) % 3, 5, out); /* uses other blocks */
        atomic_store(&n_decoded, 0);
        for (int i = 0; i < SIDE; i++)
            read_slice(array, axis, backwards ? SIDE - 1 - i : i, out);
        int decoded = atomic_load(&n_decoded);
        int most = scan == 0 || n_layers < 4 ? N_BLOCKS : N_BLOCKS - LAYER;
        CHECK(decoded <= most, "axis %d, %.1f layers, scan %d: %d blocks decoded, not %d",
              axis, n_layers, scan, decoded, most);
    }
    CHECK_OK(caterva_close(array, &err), err);
    free(out);
}

static void read_scans(const void *frame, size_t size)
{
    for (int axis = 0; axis < 3; axis++)
        for (int backwards = 0; backwards < 2; backwards++) {
            scan_again(frame, size, axis, 1.4, backwards);
            scan_again(frame, size, axis, 2.5, backwards);
            scan_again(frame, size, axis, 5, backwards);
        }
}

/* ---- An array that fits the cache ---------------------------------------------- */

static uint8_t touched[N_BLOCKS]; /* since the handle was opened */

static int64_t block_of(int64_t x, int64_t y, int64_t z)
{
    return (x / BLOCK * BLOCKS_ALONG + y / BLOCK) * BLOCKS_ALONG + z / BLOCK;
}

/* Counts blocks of a box that were not touched before, and marks them. */
static int touch_box(const int64_t *start, const int64_t *stop)
{
    int n = 0;
    for (int64_t x = start[0]; x < stop[0]; x++)
        for (int64_t y = start[1]; y < stop[1]; y++)
            for (int64_t z = start[2]; z < stop[2]; z++) {
                int64_t b = block_of(x, y, z);
                n += !touched[b];
                touched[b] = 1;
            }
    return n;
}

/* A point, a line, a plane, a box of any size except all, or one of whole blocks. */
static const char *choose_box(rng *r, int64_t start[3], int64_t stop[3])
{
    static const char *const kinds[] = {"point", "line", "plane", "box", "box of blocks"};
    int kind = rng_int(r, 0, 4), axis = rng_int(r, 0, 2);
    for (int d = 0; d < 3; d++) {
        bool is_long = kind == 1 ? d == axis : kind == 2 && d != axis;
        start[d] = is_long ? 0 : rng_between(r, 0, SIDE - 1);
        stop[d] = is_long ? SIDE : start[d] + 1;
        if (kind < 3) continue;
        stop[d] = rng_between(r, start[d] + 1, SIDE);
        if (kind < 4) continue;
        start[d] = start[d] / BLOCK * BLOCK;
        stop[d] = (stop[d] + BLOCK - 1) / BLOCK * BLOCK;
    }
    if (kind > 2 && start[axis] == 0 && stop[axis] == SIDE) start[axis] = BLOCK;
    return kinds[kind];
}

static void read_box_and_count(caterva_array *array, rng *r, int32_t *out)
{
    caterva_error err;
    int64_t start[3], stop[3], n_items = 1, i = 0;
    const char *what = choose_box(r, start, stop);
    for (int d = 0; d < 3; d++) n_items *= stop[d] - start[d];
    atomic_store(&n_decoded, 0);
    CHECK_OK(caterva_read(array, start, stop, out, (size_t)n_items * sizeof out[0], &err),
             err);
    int decoded = atomic_load(&n_decoded), fresh = touch_box(start, stop);
    CHECK(decoded == fresh, "%s: %d blocks decoded, %d not touched before", what, decoded,
          fresh);
    for (int64_t x = start[0]; x < stop[0]; x++)
        for (int64_t y = start[1]; y < stop[1]; y++)
            for (int64_t z = start[2]; z < stop[2]; z++)
                CHECK(out[i++] == items[(x * SIDE + y) * SIDE + z], "%s: item %lld", what,
                      (long long)i);
}

static void read_points_and_count(caterva_array *array, rng *r, int32_t *out)
{
    enum { MOST = 40 };
    int64_t points[3 * MOST], n = rng_between(r, 1, MOST);
    caterva_error err;
    caterva_selection words = CATERVA_SELECTION_INIT;
    caterva_buffer buffer = CATERVA_BUFFER_INIT;
    int fresh = 0;
    for (int64_t i = 0; i < 3 * n; i++) points[i] = rng_between(r, 0, SIDE - 1);
    for (int64_t i = 0; i < n; i++) {
        int64_t *at = points + 3 * i, next[3] = {at[0] + 1, at[1] + 1, at[2] + 1};
        fresh += touch_box(at, next);
    }
    words.kind = CATERVA_SELECTION_POINTS;
    words.points = points;
    words.n_points = n;
    buffer.data = out;
    buffer.size = (size_t)n * sizeof out[0];
    atomic_store(&n_decoded, 0);
    CHECK_OK(caterva_read_selection(array, &words, &buffer, &err), err);
    int decoded = atomic_load(&n_decoded);
    CHECK(decoded == fresh, "points: %d blocks decoded, %d not touched before", decoded,
          fresh);
    for (int64_t i = 0; i < n; i++)
        CHECK(
            out[i] ==
                items[(points[3 * i] * SIDE + points[3 * i + 1]) * SIDE + points[3 * i + 2]],
            "point %lld", (long long)i);
}

/* A cache as large as the array needs, empty at first. */
static void read_fitting(const void *frame, size_t size, int threads, rng *r)
{
    enum { BYTES = N_ITEMS * sizeof(int32_t) + N_BLOCKS * 256, N_READS = 60 };
    caterva_error err;
    caterva_open_options options = CATERVA_OPEN_INIT;
    caterva_array *array = NULL;
    int32_t *out = check_alloc(N_ITEMS * sizeof out[0]);
    options.threads = threads;
    options.no_read_ahead = 1;
    options.cache_bytes = BYTES;
    CHECK_OK(caterva_frame_open(frame, size, 0, &options, &array, &err), err);
    memset(touched, 0, sizeof touched);
    for (int i = 0; i < N_READS; i++)
        if (rng_one_in(r, 4))
            read_points_and_count(array, r, out);
        else
            read_box_and_count(array, r, out);
    CHECK_OK(caterva_close(array, &err), err);
    free(out);
}

/* Reading the whole array once caches nothing; repeated reads of it are served. */
static void read_all_of_fitting(const void *frame, size_t size, int threads)
{
    enum { BYTES = N_ITEMS * sizeof(int32_t) + N_BLOCKS * 256, N_READS = 4 };
    static const int64_t start[3] = {0}, stop[3] = {SIDE, SIDE, SIDE};
    static const int most[N_READS] = {N_BLOCKS, N_BLOCKS, 0, 0};
    caterva_error err;
    caterva_open_options options = CATERVA_OPEN_INIT;
    caterva_cache_info counts = CATERVA_CACHE_INFO_INIT;
    caterva_array *array = NULL;
    int32_t *out = check_alloc(N_ITEMS * sizeof out[0]);
    options.threads = threads;
    options.cache_bytes = BYTES;
    CHECK_OK(caterva_frame_open(frame, size, 0, &options, &array, &err), err);
    for (int i = 0; i < N_READS; i++) {
        memset(out, 0, N_ITEMS * sizeof out[0]);
        atomic_store(&n_decoded, 0);
        CHECK_OK(caterva_read(array, start, stop, out, N_ITEMS * sizeof out[0], &err), err);
        int decoded = atomic_load(&n_decoded);
        CHECK(decoded == most[i], "read %d of all: %d blocks decoded", i, decoded);
        CHECK(memcmp(out, items, N_ITEMS * sizeof out[0]) == 0, "read %d of all", i);
        caterva_cache_describe(array, &counts, NULL);
        CHECK(counts.blocks == (i == 0 ? 0 : N_BLOCKS), "read %d: %lld blocks kept", i,
              (long long)counts.blocks);
    }
    CHECK_OK(caterva_close(array, &err), err);
    free(out);
}

/* Scans of it through a cache full of blocks that another handle has used: they get room, and
 * leave none behind. */
static void scan_fitting_beside_another(const void *frame, size_t size, int axis)
{
    enum { BYTES = N_ITEMS * sizeof(int32_t) + N_BLOCKS * 256, N_SCANS = 3 };
    caterva_error err;
    caterva_array *arrays[2] = {NULL, NULL};
    caterva_open_options options = CATERVA_OPEN_INIT;
    caterva_cache_info before = CATERVA_CACHE_INFO_INIT;
    int32_t *out = check_alloc(N_ITEMS * sizeof out[0]);
    caterva_cache_describe(NULL, &before, NULL);
    CHECK_OK(caterva_cache_set_limit(BYTES * 5 / 4, &err), err);
    options.threads = 1;
    options.no_read_ahead = 1;
    for (int i = 0; i < 2; i++)
        CHECK_OK(caterva_frame_open(frame, size, 0, &options, &arrays[i], &err), err);
    for (int round = 0; round < 2; round++) /* twice the same: used */
        for (int i = 0; i < SIDE; i += BLOCK) read_slice(arrays[0], 0, i, out);
    int decoded = 0;
    for (int scan = 0; scan < N_SCANS; scan++) {
        atomic_store(&n_decoded, 0);
        for (int i = 0; i < SIDE; i++) read_slice(arrays[1], axis, i, out);
        decoded = atomic_load(&n_decoded);
        CHECK(decoded <= N_BLOCKS, "scan %d: %d blocks decoded", scan, decoded);
    }
    CHECK(decoded == 0, "the last scan along axis %d decodes %d blocks", axis, decoded);
    for (int i = 0; i < 2; i++) CHECK_OK(caterva_close(arrays[i], &err), err);
    CHECK_OK(caterva_cache_set_limit(before.limit, &err), err);
    free(out);
}

int main(int argc, char **argv)
{
    caterva_error err;
    rng r = rng_from_seed(seed_argument(argc, argv, 1));
    void *frame;
    size_t size;
    make_array(&r, &frame, &size);
    answer a = {.items = check_alloc(N_ITEMS * sizeof a.items[0])};
    for (int threads = 1; threads <= 2; threads++) {
        caterva_open_options options = CATERVA_OPEN_INIT;
        caterva_array *array = NULL;
        options.threads = threads;
        options.cache_bytes = -1; /* rows are not cached */
        CHECK_OK(caterva_frame_open(frame, size, 0, &options, &array, &err), err);
        /* The index is a chunk that is decoded on first use. */
        CHECK_OK(caterva_read(array, (int64_t[3]){0}, (int64_t[]){1, 1, 1}, a.items,
                              sizeof items[0], &err),
                 err);
        read_points(array, &r, N_POINTS, &a);
        for (int i = 0; i < 20; i++) read_points(array, &r, rng_between(&r, 1, 200), &a);
        for (int one_in = 2; one_in <= 20000; one_in *= 10) read_mask(array, &r, one_in, &a);
        for (int n = 1; n <= 16; n *= 2) read_axes(array, &r, n, 1, &a);
        for (int64_t step = 2; step <= 32; step += 5) read_axes(array, &r, 0, step, &a);
        CHECK_OK(caterva_close(array, &err), err);
    }
    read_scans(frame, size);
    for (int round = 0; round < 20; round++) read_fitting(frame, size, 1 + round % 3, &r);
    for (int threads = 1; threads <= 3; threads++) read_all_of_fitting(frame, size, threads);
    for (int axis = 0; axis < 3; axis++) scan_fitting_beside_another(frame, size, axis);
    free(a.items);
    free(items);
    caterva_free(frame);
    return 0;
}
