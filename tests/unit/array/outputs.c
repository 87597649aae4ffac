/* Output structs of any version: a shorter one of an older program is filled up to its size;
 * in a longer one, unknown members stay zero, and non-zero ones are refused. */
#include "array/array.h"
#include "support/info.h"

#include <caterva_upkeep.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const int64_t shape[] = {10};
static const int32_t chunk_shape[] = {4};

static caterva_create_options good_options(void)
{
    caterva_create_options o = CATERVA_CREATE_INIT;
    o.ndim = 1;
    o.shape = shape;
    o.chunk_shape = chunk_shape;
    o.dtype = "<i4";
    return o;
}

static caterva_status fill_chunk_info(caterva_array *array, void *out, cv_error *err)
{
    return caterva_chunk_describe(array, 1, out, err);
}

static caterva_status fill_block_info(caterva_array *array, void *out, cv_error *err)
{
    return caterva_block_describe(array, 1, 0, out, err);
}

static caterva_status fill_space(caterva_array *array, void *out, cv_error *err)
{
    return caterva_measure(array, out, err);
}

static caterva_status fill_stats(caterva_array *array, void *out, cv_error *err)
{
    return caterva_statistics(array, NULL, out, err);
}

static caterva_status fill_chunk_iter(caterva_array *array, void *out, cv_error *err)
{
    return caterva_chunk_next(array, out, err);
}

static caterva_status fill_cache_info(caterva_array *array, void *out, cv_error *err)
{
    return caterva_cache_describe(array, out, err);
}

static caterva_status fill_verify_result(caterva_array *array, void *out, cv_error *err)
{
    return caterva_verify(array, NULL, out, err);
}

/* An output struct; `inner` is the offset of the size of a nested struct, or 0. */
typedef struct output {
    size_t size;
    size_t inner;
    caterva_status (*fill)(caterva_array *array, void *out, cv_error *err);
} output;

static void check_filled(const output *o, const uint8_t *got, const uint8_t *full,
                         size_t size)
{
    for (size_t i = sizeof(size_t); i < size; i++) {
        bool says_size = o->inner > 0 && i >= o->inner && i < o->inner + sizeof(size_t);
        if (!says_size) assert_int_equal(got[i], full[i]);
    }
}

/* From the shortest struct of an older header: equal to the full one, cut. */
static void fill_older_ones(caterva_array *array, const output *o, const uint8_t *full)
{
    for (size_t size = sizeof(size_t); size < o->size; size += sizeof(int)) {
        uint8_t *old = calloc(1, size);
        assert_non_null(old);
        memcpy(old, &size, sizeof size);
        assert_int_equal(o->fill(array, old, NULL), CV_OK);
        check_filled(o, old, full, size);
        free(old);
    }
}

static void fill_a_newer_one(caterva_array *array, const output *o, const uint8_t *full)
{
    enum { TAIL = 40 };
    size_t size = o->size + TAIL;
    uint8_t *newer = calloc(1, size), zeros[TAIL] = {0};
    assert_non_null(newer);
    memcpy(newer, &size, sizeof size);
    assert_int_equal(o->fill(array, newer, NULL), CV_OK);
    check_filled(o, newer, full, o->size);
    assert_memory_equal(newer + o->size, zeros, TAIL);
    newer[o->size + 3] = 1;
    assert_int_equal(o->fill(array, newer, NULL), CATERVA_EINVAL);
    free(newer);
}

static void outputs_of_any_age_are_filled(void **state)
{
    (void)state;
    static const output cases[] = {
        {sizeof(caterva_chunk_info), 0, fill_chunk_info},
        {sizeof(caterva_block_info), 0, fill_block_info},
        {sizeof(caterva_space), 0, fill_space},
        {sizeof(caterva_stats), 0, fill_stats},
        {sizeof(caterva_chunk_iter), offsetof(caterva_chunk_iter, chunk), fill_chunk_iter},
        {sizeof(caterva_cache_info), 0, fill_cache_info},
        {sizeof(caterva_verify_result), 0, fill_verify_result},
    };
    static const int32_t items[] = {5, 3, 1, 7, 7, 7, 2, 0, 9, 8};
    const int64_t origin[1] = {0};
    caterva_create_options o = good_options();
    caterva_array *array = NULL;
    o.cache_bytes = -1; /* counts nothing */
    assert_int_equal(caterva_create("mem:", &o, &array, NULL), CV_OK);
    assert_int_equal(caterva_write(array, origin, shape, items, sizeof items, NULL), CV_OK);
    assert_int_equal(caterva_commit(array, NULL), CV_OK);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint8_t *full = calloc(1, cases[i].size);
        assert_non_null(full);
        memcpy(full, &cases[i].size, sizeof cases[i].size);
        assert_int_equal(cases[i].fill(array, full, NULL), CV_OK);
        fill_older_ones(array, &cases[i], full);
        fill_a_newer_one(array, &cases[i], full);
        free(full);
    }
    caterva_discard(array);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(outputs_of_any_age_are_filled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
