/* Misuse of functions that change an array's shape, attributes and chunks, iterate over its
 * chunks and blocks, compute over it, or take a path: every call that breaks a documented
 * rule is refused with a message, and the array is unchanged. */
#include "caterva.h"
#include "caterva_upkeep.h"

#include "support/buffer.h"
#include "support/check.h"
#include "support/refuse.h"
#include "support/scratch.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static int32_t items[200];

static void abuse_shapes(caterva_array *a)
{
    static const int axes[] = {-1, 2, 16, INT32_MAX, INT32_MIN};
    static const int64_t shapes[][2] = {{-1, 7},        {6, -1},
                                        {INT64_MIN, 7}, {INT64_MAX, 7},
                                        {6, INT64_MAX}, {INT64_MAX, INT64_MAX}};
    for (int i = 0; i < COUNT(axes); i++) {
        REFUSE(ERANGE_BIT, caterva_append(a, axes[i], 1, PLAIN(items, sizeof items), err));
        REFUSE(ERANGE_BIT, caterva_insert(a, axes[i], 0, 1, PLAIN(items, sizeof items), err));
        REFUSE(ERANGE_BIT, caterva_insert(a, axes[i], 0, 1, NULL, err));
        REFUSE(ERANGE_BIT, caterva_remove(a, axes[i], 0, 1, err));
    }
    for (int i = 0; i < COUNT(shapes); i++)
        REFUSE(EINVAL_BIT, caterva_resize(a, shapes[i], err));
    REFUSE(EINVAL_BIT, caterva_resize(a, NULL, err));
    REFUSE(EINVAL_BIT, caterva_resize(NULL, small_shape, err));

    REFUSE(EINVAL_BIT, caterva_append(NULL, 0, 1, PLAIN(items, sizeof items), err));
    REFUSE(EINVAL_BIT, caterva_append(a, 0, 1, NULL, err));
    REFUSE(EINVAL_BIT, caterva_append(a, 0, -1, PLAIN(items, sizeof items), err));
    REFUSE(ESHORT_BIT, caterva_append(a, 0, 1, PLAIN(items, 7 * 4 - 1), err));
    REFUSE(ESHORT_BIT, caterva_append(a, 1, 2, PLAIN(items, 12 * 4 - 1), err));
    REFUSE(EINVAL_BIT, caterva_append(a, 0, INT64_MAX, PLAIN(items, sizeof items), err));
    REFUSE(EINVAL_BIT, caterva_append(a, 0, INT64_MIN, PLAIN(items, sizeof items), err));

    REFUSE(EINVAL_BIT, caterva_insert(NULL, 0, 0, 1, PLAIN(items, sizeof items), err));
    REFUSE(ERANGE_BIT, caterva_insert(a, 0, -1, 1, PLAIN(items, sizeof items), err));
    REFUSE(ERANGE_BIT, caterva_insert(a, 0, 7, 1, PLAIN(items, sizeof items), err));
    REFUSE(ERANGE_BIT, caterva_insert(a, 0, INT64_MIN, 1, PLAIN(items, sizeof items), err));
    REFUSE(EINVAL_BIT, caterva_insert(a, 0, 0, -1, PLAIN(items, sizeof items), err));
    REFUSE(EINVAL_BIT, caterva_insert(a, 0, 0, INT64_MAX, NULL, err));
    REFUSE(EINVAL_BIT, caterva_insert(a, 0, 0, INT64_MAX - 6, NULL, err));
    REFUSE(ESHORT_BIT, caterva_insert(a, 1, 3, 1, PLAIN(items, 6 * 4 - 1), err));

    static const int64_t ranges[][2] = {{-1, 2},        {2, 1},         {0, 7},        {7, 7},
                                        {INT64_MIN, 6}, {0, INT64_MAX}, {INT64_MAX, 0}};
    REFUSE(EINVAL_BIT, caterva_remove(NULL, 0, 0, 1, err));
    for (int i = 0; i < COUNT(ranges); i++)
        REFUSE(ERANGE_BIT, caterva_remove(a, 0, ranges[i][0], ranges[i][1], err));
    check_small_array(a);
}

static void abuse_names(caterva_array *a)
{
    static const char longest[] = "a name of thirty-two bytes is to";
    REFUSE(EINVAL_BIT, caterva_attr_set(NULL, "a", items, 4, err));
    REFUSE(EINVAL_BIT, caterva_attr_set(a, NULL, items, 4, err));
    REFUSE(EINVAL_BIT, caterva_attr_set(a, "", items, 4, err));
    REFUSE(EINVAL_BIT, caterva_attr_set(a, longest, items, 4, err));
    REFUSE(EINVAL_BIT, caterva_attr_set(a, "a", NULL, 4, err));
    REFUSE(EINVAL_BIT, caterva_attr_set(a, "a", items, SIZE_MAX, err));
    REFUSE(EINVAL_BIT, caterva_attr_set(a, "a", items, (size_t)INT32_MAX + 1, err));
    REFUSE(EINVAL_BIT, caterva_attr_set(a, "_caterva", items, 4, err));
    REFUSE(EINVAL_BIT, caterva_attr_delete(NULL, "a", err));
    REFUSE(EINVAL_BIT, caterva_attr_delete(a, NULL, err));
    REFUSE(ENOTFOUND_BIT, caterva_attr_delete(a, "nothing", err));
    REFUSE(ENOTFOUND_BIT | EINVAL_BIT, caterva_attr_delete(a, longest, err));
    REFUSE(EINVAL_BIT, caterva_metalayer_update(NULL, "a", items, 4, err));
    REFUSE(EINVAL_BIT, caterva_metalayer_update(a, NULL, items, 4, err));
    REFUSE(EINVAL_BIT, caterva_metalayer_update(a, "b2nd", items, 4, err));
    REFUSE(EINVAL_BIT | ENOTFOUND_BIT, caterva_metalayer_update(a, "x", NULL, 4, err));
    REFUSE(ENOTFOUND_BIT, caterva_metalayer_update(a, "nothing", items, 4, err));

    caterva_error detail;
    char name[32];
    for (int i = 0; i < 16; i++) {
        snprintf(name, sizeof name, "attribute %d", i);
        CHECK_OK(caterva_attr_set(a, name, items, 4, &detail), detail);
    }
    REFUSE(EINVAL_BIT, caterva_attr_set(a, "one too many", items, 4, err));
    CHECK_OK(caterva_rollback(a, &detail), detail);
    check_small_array(a);
}

/* Changes a single byte of the chunk. */
static void check_spoiled(caterva_array *a, const uint8_t *chunk, size_t size, size_t at,
                          uint8_t byte)
{
    uint8_t spoiled[4096];
    memcpy(spoiled, chunk, size);
    spoiled[at] = byte;
    REFUSE(ECORRUPT_BIT | EUNSUPPORTED_BIT | EINVAL_BIT,
           caterva_chunk_write_stored(a, 0, spoiled, size, err));
}

static void abuse_chunks(caterva_array *a)
{
    static const int64_t chunks[] = {-1, 6, 7, INT64_MAX, INT64_MIN};
    uint8_t bytes[4096];
    size_t size;
    caterva_error detail;
    for (int i = 0; i < COUNT(chunks); i++) {
        REFUSE(ERANGE_BIT,
               caterva_chunk_read_stored(a, chunks[i], bytes, sizeof bytes, &size, err));
        REFUSE(ERANGE_BIT, caterva_chunk_write_stored(a, chunks[i], bytes, 100, err));
    }
    REFUSE(EINVAL_BIT, caterva_chunk_read_stored(NULL, 0, bytes, 100, &size, err));
    REFUSE(EINVAL_BIT, caterva_chunk_read_stored(a, 0, bytes, 100, NULL, err));
    REFUSE(ESHORT_BIT, caterva_chunk_read_stored(a, 0, bytes, 31, &size, err));
    CHECK_OK(caterva_chunk_read_stored(a, 0, bytes, sizeof bytes, &size, &detail), detail);

    REFUSE(EINVAL_BIT, caterva_chunk_write_stored(NULL, 0, bytes, size, err));
    REFUSE(EINVAL_BIT, caterva_chunk_write_stored(a, 0, NULL, size, err));
    for (size_t n = 0; n < size; n += 5)
        REFUSE(EINVAL_BIT | ECORRUPT_BIT | EUNSUPPORTED_BIT,
               caterva_chunk_write_stored(a, 0, bytes, n, err));
    REFUSE(EINVAL_BIT | ECORRUPT_BIT, caterva_chunk_write_stored(a, 0, bytes, size + 1, err));
    check_spoiled(a, bytes, size, 0, 99);    /* version */
    check_spoiled(a, bytes, size, 2, 0x45);  /* codec */
    check_spoiled(a, bytes, size, 3, 3);     /* item size */
    check_spoiled(a, bytes, size, 4, 1);     /* decoded size */
    check_spoiled(a, bytes, size, 7, 0x80);  /* negative */
    check_spoiled(a, bytes, size, 15, 0x80); /* stored size, negative */
    check_spoiled(a, bytes, size, 16, 200);  /* an unknown filter */
    check_spoiled(a, bytes, size, 30, 2);    /* unknown flags */
    check_small_array(a);
}

static void abuse_iterators(caterva_array *a)
{
    static const int64_t numbers[] = {-1, INT64_MIN, INT64_MAX};
    caterva_chunk_iter chunk = CATERVA_CHUNK_ITER_INIT;
    caterva_block_info info = CATERVA_BLOCK_INFO_INIT;
    REFUSE(EINVAL_BIT, caterva_chunk_next(NULL, &chunk, err));
    REFUSE(EINVAL_BIT, caterva_chunk_next(a, NULL, err));
    REFUSE(EINVAL_BIT, caterva_block_describe(NULL, 0, 0, &info, err));
    REFUSE(EINVAL_BIT, caterva_block_describe(a, 0, 0, NULL, err));
    for (int i = 0; i < COUNT(numbers); i++) {
        REFUSE(ERANGE_BIT, caterva_block_describe(a, numbers[i], 0, &info, err));
        REFUSE(ERANGE_BIT, caterva_block_describe(a, 0, numbers[i], &info, err));
    }
    REFUSE(ERANGE_BIT, caterva_block_describe(a, 0, 2, &info, err)); /* of 2 */
    REFUSE(ERANGE_BIT, caterva_block_describe(a, 6, 0, &info, err));
    chunk.next = -1;
    REFUSE(ERANGE_BIT, caterva_chunk_next(a, &chunk, err));
}

static void abuse_reductions(caterva_array *a)
{
    static const int64_t boxes[][4] = {/* start, stop */
                                       {-1, 0, 6, 7},
                                       {0, 0, 7, 7},
                                       {3, 0, 2, 7},
                                       {0, 0, 6, -1},
                                       {0, 0, INT64_MAX, 7}};
    static const caterva_axis broken[][2] = {
        {{.kind = CATERVA_AXIS_SLICE, .stop = 6, .reserved = {0, 1}}},
        {{.kind = (caterva_axis_kind)7}}};
    static const int axes[][2] = {{0, 0}, {-1, 0}, {2, 0}, {1, INT32_MAX}};
    double range[2] = {0, 100}, out[64];
    int64_t counts[8];
    caterva_stats stats = CATERVA_STATS_INIT;
    caterva_reduce_options o = CATERVA_REDUCE_INIT;
    for (int i = 0; i < COUNT(boxes); i++) {
        o.selection = BOX(boxes[i], boxes[i] + 2);
        REFUSE(ERANGE_BIT, caterva_statistics(a, &o, &stats, err));
        REFUSE(ERANGE_BIT, caterva_histogram(a, range, 8, &o, counts, err));
        REFUSE(ERANGE_BIT,
               caterva_reduce(a, CATERVA_REDUCTION_SUM, &o, out, sizeof out, err));
    }
    caterva_selection selection = CATERVA_SELECTION_INIT;
    selection.kind = CATERVA_SELECTION_AXES;
    selection.n_axes = 1;
    o.selection = &selection;
    for (int i = 0; i < COUNT(broken); i++) {
        selection.axes = broken[i];
        REFUSE(EINVAL_BIT, caterva_statistics(a, &o, &stats, err));
        REFUSE(EINVAL_BIT, caterva_histogram(a, range, 8, &o, counts, err));
        REFUSE(EINVAL_BIT,
               caterva_reduce(a, CATERVA_REDUCTION_SUM, &o, out, sizeof out, err));
    }
    o = (caterva_reduce_options)CATERVA_REDUCE_INIT;
    for (int i = 0; i < COUNT(axes); i++) {
        o.axes = axes[i];
        o.n_axes = 2;
        REFUSE(i == 0 ? EINVAL_BIT : ERANGE_BIT,
               caterva_reduce(a, CATERVA_REDUCTION_SUM, &o, out, sizeof out, err));
    }
    o.n_axes = -1;
    REFUSE(EINVAL_BIT, caterva_reduce(a, CATERVA_REDUCTION_SUM, &o, out, sizeof out, err));
    o.n_axes = 17;
    REFUSE(ERANGE_BIT, caterva_reduce(a, CATERVA_REDUCTION_SUM, &o, out, sizeof out, err));
    o = (caterva_reduce_options){.struct_size = 1};
    REFUSE(EINVAL_BIT, caterva_statistics(a, &o, &stats, err));
    REFUSE(EINVAL_BIT, caterva_reduce(a, CATERVA_REDUCTION_SUM, &o, out, sizeof out, err));

    REFUSE(EINVAL_BIT, caterva_statistics(NULL, NULL, &stats, err));
    REFUSE(EINVAL_BIT, caterva_statistics(a, NULL, NULL, err));
    REFUSE(EINVAL_BIT,
           caterva_reduce(NULL, CATERVA_REDUCTION_SUM, NULL, out, sizeof out, err));
    REFUSE(EINVAL_BIT, caterva_reduce(a, CATERVA_REDUCTION_SUM, NULL, NULL, sizeof out, err));
    REFUSE(ESHORT_BIT, caterva_reduce(a, CATERVA_REDUCTION_SUM, NULL, out, 7, err));
    REFUSE(EINVAL_BIT, caterva_reduce(a, (caterva_reduction)-1, NULL, out, sizeof out, err));
    REFUSE(EINVAL_BIT, caterva_reduce(a, (caterva_reduction)4, NULL, out, sizeof out, err));

    static const double ranges[][2] = {
        {0, NAN}, {NAN, 0}, {0, INFINITY}, {-INFINITY, 0}, {2, 1}};
    for (int i = 0; i < COUNT(ranges); i++)
        REFUSE(EINVAL_BIT, caterva_histogram(a, ranges[i], 8, NULL, counts, err));
    REFUSE(EINVAL_BIT, caterva_histogram(NULL, range, 8, NULL, counts, err));
    REFUSE(EINVAL_BIT, caterva_histogram(a, NULL, 8, NULL, counts, err));
    REFUSE(EINVAL_BIT, caterva_histogram(a, range, 8, NULL, NULL, err));
    REFUSE(EINVAL_BIT, caterva_histogram(a, range, 0, NULL, counts, err));
    REFUSE(EINVAL_BIT, caterva_histogram(a, range, -1, NULL, counts, err));
    REFUSE(EINVAL_BIT, caterva_histogram(a, range, CATERVA_MAX_BINS + 1, NULL, counts, err));
    check_small_array(a);
}

static void abuse_paths(void)
{
    static const char *const nowhere[] = {"", "/nowhere/at/all"};
    char path[SCRATCH_PATH];
    caterva_array *array;
    caterva_create_options o = small_options();
    for (int i = 0; i < COUNT(nowhere); i++) {
        REFUSE(ENOTFOUND_BIT | EINVAL_BIT, caterva_seal(nowhere[i], NULL, err));
        REFUSE(ENOTFOUND_BIT | EINVAL_BIT, caterva_compact(nowhere[i], NULL, err));
    }
    REFUSE(EINVAL_BIT, caterva_seal(NULL, NULL, err));
    REFUSE(EINVAL_BIT | ENOTFOUND_BIT, caterva_seal("mem:", NULL, err));
    REFUSE(EINVAL_BIT, caterva_compact(NULL, NULL, err));
    REFUSE(EINVAL_BIT | ENOTFOUND_BIT, caterva_compact("mem:", NULL, err));
    scratch_save(scratch_path(path, "text"), (const uint8_t *)"no array", 8);
    REFUSE(ECORRUPT_BIT | EUNSUPPORTED_BIT, caterva_seal(path, NULL, err));
    REFUSE(ECORRUPT_BIT | EUNSUPPORTED_BIT, caterva_compact(path, NULL, err));

    array = make_small_array(scratch_path(path, "busy")); /* a writer */
    REFUSE(EBUSY_BIT, caterva_seal(path, NULL, err));
    REFUSE(EBUSY_BIT, caterva_compact(path, NULL, err));
    caterva_discard(array);
    caterva_upkeep_options upkeep = CATERVA_UPKEEP_INIT;
    upkeep.durability = (caterva_durability)9;
    REFUSE(EINVAL_BIT, caterva_seal(path, &upkeep, err));
    upkeep.durability = (caterva_durability)-1;
    REFUSE(EINVAL_BIT, caterva_compact(path, &upkeep, err));
    upkeep.struct_size = 0;
    REFUSE(EINVAL_BIT, caterva_compact(path, &upkeep, err));
    REFUSE(EINVAL_BIT, caterva_create_from_memory("mem:", &o, NULL, 168, &array, err));
    REFUSE(ESHORT_BIT, caterva_create_from_memory("mem:", &o, items, 167, &array, err));
    REFUSE(EINVAL_BIT, caterva_create_from_memory(NULL, &o, items, 168, &array, err));
    REFUSE(EINVAL_BIT, caterva_create_from_memory("mem:", NULL, items, 168, &array, err));
    REFUSE(EINVAL_BIT, caterva_create_from_memory("mem:", &o, items, 168, NULL, err));
    REFUSE(EINVAL_BIT, caterva_refresh(NULL, err));
    REFUSE(EINVAL_BIT, caterva_cache_set_limit(-2, err));
    REFUSE(EINVAL_BIT, caterva_cache_set_limit(INT64_MIN, err));
}

/* A handle for reading refuses every change. */
static void abuse_reader(void)
{
    char path[SCRATCH_PATH];
    caterva_error detail;
    caterva_array *a;
    int64_t start[2] = {0, 0}, stop[2] = {1, 1};
    uint8_t chunk[4096];
    size_t size;
    caterva_discard(make_small_array(scratch_path(path, "reader")));
    CHECK_OK(caterva_open(path, NULL, &a, &detail), detail);
    CHECK_OK(caterva_chunk_read_stored(a, 0, chunk, sizeof chunk, &size, &detail), detail);
    REFUSE(EREADONLY_BIT, caterva_write(a, start, stop, items, 4, err));
    REFUSE(EREADONLY_BIT, caterva_resize(a, stop, err));
    REFUSE(EREADONLY_BIT, caterva_append(a, 0, 1, PLAIN(items, sizeof items), err));
    REFUSE(EREADONLY_BIT, caterva_insert(a, 0, 0, 1, NULL, err));
    REFUSE(EREADONLY_BIT, caterva_remove(a, 0, 0, 1, err));
    REFUSE(EREADONLY_BIT, caterva_attr_set(a, "a", items, 4, err));
    REFUSE(EREADONLY_BIT, caterva_attr_delete(a, "a", err));
    REFUSE(EREADONLY_BIT, caterva_metalayer_update(a, "a", items, 4, err));
    REFUSE(EREADONLY_BIT, caterva_chunk_write_stored(a, 0, chunk, size, err));
    check_small_array(a);
    caterva_discard(a);
}

int main(void)
{
    caterva_array *array = make_small_array("mem:");
    abuse_shapes(array);
    abuse_names(array);
    abuse_chunks(array);
    abuse_iterators(array);
    abuse_reductions(array);
    check_small_array(array);
    caterva_discard(array);
    abuse_paths();
    abuse_reader();
    printf("%d misuses refused\n", refusals());
    CHECK(refusals() >= 200, "too few");
    return 0;
}
