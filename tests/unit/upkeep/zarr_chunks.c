/* caterva_zarr_chunk: which blocks are passed on as stored, decoded, or missing, and what C-Blosc2,
 * which reads Blosc 1 buffers, decodes from them. zarr-python reads all kinds of arrays in
 * python/tests/test_zarr_store.py. */
#include "caterva.h"
#include "caterva_store.h"
#include "caterva_upkeep.h"

#include "support/check.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* cmocka has a print_error of its own. */
#define print_error blosc2_print_error
#include <blosc2.h>
#undef print_error

#include <cmocka.h>

enum { ROWS = 50, COLUMNS = 70, ITEMS = ROWS * COLUMNS };

typedef struct wanted {
    int32_t chunk, block; /* along both axes */
    int filter;
} wanted;

/* An array for reading, of the frame that `w` describes, in `*frame` (to be freed). */
static caterva_array *make(const wanted *w, const int32_t *items, void **frame)
{
    static const int64_t shape[] = {ROWS, COLUMNS}, origin[] = {0, 0};
    const int32_t chunk[] = {w->chunk, w->chunk}, block[] = {w->block, w->block};
    caterva_create_options o = CATERVA_CREATE_INIT;
    caterva_array *array;
    caterva_error err;
    size_t size;
    o.ndim = 2;
    o.shape = shape;
    o.chunk_shape = chunk;
    o.block_shape = block;
    o.dtype = "=i4";
    o.filters[0] = w->filter;
    CHECK_OK(caterva_create("mem:", &o, &array, &err), err);
    CHECK_OK(caterva_write(array, origin, shape, items, ITEMS * sizeof *items, &err), err);
    CHECK_OK(caterva_frame_copy(array, frame, &size, &err), err);
    caterva_discard(array);
    CHECK_OK(caterva_frame_open(*frame, size, 1, NULL, &array, &err), err);
    return array;
}

static void check_block(caterva_array *array, const wanted *w, const int32_t *items,
                        const int64_t *index)
{
    void *bytes;
    size_t size;
    caterva_error err;
    int32_t n = w->block * w->block, *block = check_alloc(sizeof *block * (size_t)n);
    memset(block, 0, sizeof *block * (size_t)n);
    CHECK_OK(caterva_zarr_chunk(array, index, &bytes, &size, &err), err);
    if (bytes) assert_int_equal(blosc2_decompress(bytes, (int32_t)size, block, n * 4), n * 4);
    for (int32_t i = 0; i < n; i++) {
        int64_t row = index[0] * w->block + i / w->block;
        int64_t column = index[1] * w->block + i % w->block;
        if (row < ROWS && column < COLUMNS)
            assert_int_equal(block[i], items[row * COLUMNS + column]);
    }
    free(block);
    caterva_free(bytes);
}

static void all_blocks(void **state)
{
    static const wanted list[] = {{20, 10, 0},
                                  {20, 10, CATERVA_FILTER_SHUFFLE},
                                  {24, 8, CATERVA_FILTER_BITSHUFFLE},
                                  {20, 10, CATERVA_FILTER_DELTA},
                                  {20, 10, CATERVA_FILTER_NONE},
                                  {25, 10, CATERVA_FILTER_SHUFFLE}, /* no whole blocks */
                                  {70, 70, CATERVA_FILTER_SHUFFLE}};
    int32_t items[ITEMS];
    (void)state;
    blosc2_init();
    for (int i = 0; i < ITEMS; i++) items[i] = i % 900 < 500 ? 3 : i * i % 1009;
    for (size_t k = 0; k < sizeof list / sizeof list[0]; k++) {
        void *frame;
        caterva_array *array = make(&list[k], items, &frame);
        int64_t index[2];
        for (index[0] = 0; index[0] * list[k].block < ROWS; index[0]++)
            for (index[1] = 0; index[1] * list[k].block < COLUMNS; index[1]++)
                check_block(array, &list[k], items, index);
        caterva_discard(array);
        caterva_free(frame);
    }
    blosc2_destroy();
}

static void missing_and_outside(void **state)
{
    static const wanted w = {20, 10, CATERVA_FILTER_SHUFFLE};
    static const int64_t zeros[] = {0, 0}, ones[] = {2, 2};
    static const int64_t outside[][2] = {{5, 0}, {0, 7}, {-1, 0}, {INT64_MAX, 0}};
    int32_t items[ITEMS] = {0};
    void *frame, *bytes;
    size_t size;
    caterva_error err;
    (void)state;
    items[25 * COLUMNS + 25] = 1;
    caterva_array *array = make(&w, items, &frame);
    CHECK_OK(caterva_zarr_chunk(array, zeros, &bytes, &size, &err), err);
    assert_null(bytes);
    CHECK_OK(caterva_zarr_chunk(array, ones, &bytes, &size, &err), err);
    assert_non_null(bytes);
    caterva_free(bytes);
    for (size_t i = 0; i < sizeof outside / sizeof outside[0]; i++)
        assert_int_equal(caterva_zarr_chunk(array, outside[i], &bytes, &size, &err),
                         CATERVA_ERANGE);
    caterva_discard(array);
    caterva_free(frame);
}

static void handles_for_writing_are_refused(void **state)
{
    static const int64_t index[] = {0};
    caterva_create_options o = CATERVA_CREATE_INIT;
    caterva_array *array;
    caterva_error err;
    void *bytes;
    char *text;
    size_t size;
    (void)state;
    o.ndim = 1;
    o.shape = (const int64_t[]){4};
    o.dtype = "=i4";
    CHECK_OK(caterva_create("mem:", &o, &array, &err), err);
    assert_int_equal(caterva_zarr_chunk(array, index, &bytes, &size, &err), CATERVA_EINVAL);
    assert_int_equal(caterva_zarr_metadata(array, &text, &size, &err), CATERVA_EINVAL);
    caterva_discard(array);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_blocks),
        cmocka_unit_test(missing_and_outside),
        cmocka_unit_test(handles_for_writing_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
