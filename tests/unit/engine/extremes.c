/* Frames with sizes at the limits of 31, 32, 63 and 64 bits: every position of the header,
 * the chunks, the index and the trailer is overwritten with each of them, in either byte
 * order; and sizes whose products wrap to something that fits. What opens is read and
 * verified; sanitizers detect overflows. */
#include "recipe.h"
#include "support/info.h"
#include <caterva_store.h>
#include <caterva_upkeep.h>

static const uint64_t EXTREMES[] = {0,
                                    1,
                                    INT32_MAX,
                                    (uint64_t)INT32_MAX + 1,
                                    UINT32_MAX - 31,
                                    UINT32_MAX,
                                    (uint64_t)UINT32_MAX + 1,
                                    INT64_MAX,
                                    (uint64_t)INT64_MAX + 1,
                                    UINT64_MAX - 4,
                                    UINT64_MAX};

static int n_opened;

static void use(const uint8_t *bytes, size_t size)
{
    caterva_array *array;
    caterva_error err = {0};
    if (caterva_frame_open(bytes, size, 0, NULL, &array, &err) != CATERVA_OK) {
        assert_true(err.message[0] != 0);
        return;
    }
    n_opened++;
    const caterva_info *info = info_of(array);
    caterva_chunk_info chunk = CATERVA_CHUNK_INFO_INIT;
    caterva_verify_result result = CATERVA_VERIFY_RESULT_INIT;
    for (int64_t i = 0; i < info->n_chunks && i < 8; i++)
        caterva_chunk_describe(array, i, &chunk, NULL);
    if (info->ndim == 1 && info->item_size <= 16)
        for (int64_t i = 0; i < info->shape[0] && i < N; i += 9) {
            uint8_t item[16];
            int64_t stop = i + 1;
            caterva_read(array, &i, &stop, item, sizeof item, NULL);
        }
    if (info->n_chunks < 100) caterva_verify(array, NULL, &result, NULL);
    caterva_discard(array);
}

static void overwrite(const cv_buffer *frame, size_t at, uint64_t value, int width,
                      bool big_endian)
{
    uint8_t bytes[8];
    uint8_t *copy = check_alloc(frame->size);
    memcpy(copy, frame->data, frame->size);
    if (big_endian)
        cv_store_be64(bytes, value << (64 - 8 * width));
    else
        cv_store_le64(bytes, value);
    if (at + (size_t)width <= frame->size) {
        memcpy(copy + at, bytes, (size_t)width);
        use(copy, frame->size);
    }
    free(copy);
}

static void every_place_at_its_ends(void **state)
{
    (void)state;
    recipe p = new_recipe();
    cv_buffer frame = assemble(&p);
    for (size_t at = 0; at < frame.size; at++)
        for (size_t i = 0; i < sizeof EXTREMES / sizeof EXTREMES[0]; i++)
            for (int kind = 0; kind < 4; kind++)
                overwrite(&frame, at, EXTREMES[i], kind < 2 ? 4 : 8, kind % 2);
    assert_true(n_opened > 1000); /* if only items or dead bytes were hit */
    cv_buffer_free(&frame);
    free_recipe(&p);
}

/* Partitions whose byte counts modulo 2^32 equal those of the existing chunks. */
static void products_that_wrap(void **state)
{
    (void)state;
    static const struct {
        int64_t shape;
        int32_t chunk, block;
    } wraps[] = {
        {N, CHUNK + (1 << 30), BLOCK},                 /* chunk: 2^32 + 40 bytes     */
        {N, CHUNK, BLOCK + (1 << 30)},                 /* block                      */
        {N, INT32_MAX, INT32_MAX},                     /* 2^33 - 4                   */
        {(INT64_C(1) << 62) + N, CHUNK, BLOCK},        /* the array: 2^64 + 160      */
        {INT64_C(1) << 61, 1 << 29, BLOCK},            /* 2^63 bytes, 2^32 chunks    */
        {(INT64_C(1) << 32) * CHUNK + N, CHUNK, BLOCK} /* 2^32 + 4 chunks            */
    };
    for (size_t i = 0; i < sizeof wraps / sizeof wraps[0]; i++) {
        recipe p = new_recipe();
        set_meta(&p, wraps[i].shape, wraps[i].chunk, wraps[i].block);
        p.header.chunk_size = (int32_t)((uint32_t)wraps[i].chunk * 4u);
        p.header.block_size = (int32_t)((uint32_t)wraps[i].block * 4u);
        p.header.nbytes = (int64_t)((uint64_t)wraps[i].shape * 4u);
        if (p.header.nbytes < 0) p.header.nbytes = INT64_MAX;
        cv_buffer frame = assemble(&p);
        caterva_error err = {0};
        caterva_array *array;
        assert_int_equal(caterva_frame_open(frame.data, frame.size, 0, NULL, &array, &err),
                         CATERVA_ECORRUPT);
        assert_true(err.message[0] != 0);
        cv_buffer_free(&frame);
        free_recipe(&p);
    }
}

static int64_t damaged_of(const int64_t *offsets)
{
    recipe p = new_recipe();
    set_plain_index(&p, offsets);
    cv_buffer frame = assemble(&p);
    caterva_error err = {0};
    caterva_array *array;
    caterva_verify_result result = CATERVA_VERIFY_RESULT_INIT;
    CHECK_OK(caterva_frame_open(frame.data, frame.size, 0, NULL, &array, &err), err);
    CHECK_OK(caterva_verify(array, NULL, &result, &err), err);
    assert_int_equal(result.checked_chunks, N_CHUNKS);
    caterva_discard(array);
    cv_buffer_free(&frame);
    free_recipe(&p);
    return result.damaged_chunks;
}

/* Verify ends at the highest position that the index contains. */
static void the_highest_place(void **state)
{
    (void)state;
    const int64_t size = CHUNK_SIZE, last = INT64_MAX;
    const int64_t good[] = {0, size, 2 * size, 3 * size};
    const int64_t one[] = {0, size, last, 3 * size};
    const int64_t all[] = {last, last, last, last};
    assert_int_equal(damaged_of(good), 0);
    assert_int_equal(damaged_of(one), 1);
    assert_int_equal(damaged_of(all), N_CHUNKS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_place_at_its_ends),
        cmocka_unit_test(products_that_wrap),
        cmocka_unit_test(the_highest_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
