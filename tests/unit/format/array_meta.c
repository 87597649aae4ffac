/* The array's own metalayer: real ones are rewritten byte for byte, invalid ones are
 * reported, and no bytes do harm. */
#include "format/array_meta.h"

#include "format/frame_header.h"
#include "mutate.h"
#include "real_frames.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static uint64_t seed;

/* The metalayer of a real header; borrowed from its bytes. */
static cv_metalayer real_layer(const uint8_t *bytes, size_t size)
{
    cv_frame_header header;
    assert_int_equal(cv_frame_header_parse(bytes, size, &header, NULL), CV_OK);
    return header.metalayers[0];
}

static void real_metalayers_come_back_byte_for_byte(void **state)
{
    (void)state;
    for (int i = 0; i < N_REAL_FRAMES; i++) {
        cv_metalayer layer = real_layer(REAL_FRAMES[i].header, REAL_FRAMES[i].header_size);
        assert_string_equal(layer.name, "b2nd");
        cv_array_meta meta;
        assert_int_equal(cv_array_meta_parse(layer.data, layer.size, false, 0, &meta, NULL),
                         CV_OK);
        cv_buffer out = {0};
        assert_int_equal(cv_array_meta_write(&meta, &out, NULL), CV_OK);
        assert_int_equal(out.size, layer.size);
        assert_memory_equal(out.data, layer.data, out.size);
        cv_buffer_free(&out);
    }
}

static void fields_mean_what_their_writer_meant(void **state)
{
    (void)state;
    cv_array_meta meta;
    cv_metalayer layer = real_layer(plain_header, sizeof plain_header);
    assert_int_equal(cv_array_meta_parse(layer.data, layer.size, false, 0, &meta, NULL),
                     CV_OK);
    assert_int_equal(meta.ndim, 2);
    assert_int_equal(meta.shape[1], 5);
    assert_int_equal(meta.chunk_shape[0], 4);
    assert_int_equal(meta.chunk_shape[1], 3);
    assert_int_equal(meta.block_shape[0], 3);
    assert_int_equal(meta.block_shape[1], 2);
    assert_int_equal(meta.dtype_size, 3);
    assert_memory_equal(meta.dtype, "<i4", 3);

    layer = real_layer(zero_dims_header, sizeof zero_dims_header);
    assert_int_equal(cv_array_meta_parse(layer.data, layer.size, false, 0, &meta, NULL),
                     CV_OK);
    assert_int_equal(meta.ndim, 0);
    layer = real_layer(empty_header, sizeof empty_header);
    assert_int_equal(cv_array_meta_parse(layer.data, layer.size, false, 0, &meta, NULL),
                     CV_OK);
    assert_int_equal(meta.shape[0], 0);
    layer = real_layer(sixteen_dims_header, sizeof sixteen_dims_header);
    assert_int_equal(cv_array_meta_parse(layer.data, layer.size, false, 0, &meta, NULL),
                     CV_OK);
    assert_int_equal(meta.ndim, 16);
    assert_int_equal(meta.shape[15], 1);
}

static void the_older_metalayer_has_no_dtype(void **state)
{
    (void)state;
    cv_array_meta meta = {.legacy = true, .ndim = 1};
    meta.shape[0] = 7;
    meta.chunk_shape[0] = 4;
    meta.block_shape[0] = 2;
    static const uint8_t expected[] = {0x95, 0,    1,    0x91, 0xd3, 0,    0, 0, 0,
                                       0,    0,    0,    7,    0x91, 0xd2, 0, 0, 0,
                                       4,    0x91, 0xd2, 0,    0,    0,    2};
    cv_buffer out = {0};
    assert_int_equal(cv_array_meta_write(&meta, &out, NULL), CV_OK);
    assert_int_equal(out.size, sizeof expected);
    assert_memory_equal(out.data, expected, sizeof expected);

    cv_array_meta again;
    assert_int_equal(cv_array_meta_parse(out.data, out.size, true, 0, &again, NULL), CV_OK);
    assert_true(again.legacy);
    assert_int_equal(again.block_shape[0], 2);
    assert_null(again.dtype);
    assert_int_equal(again.dtype_size, 0);
    assert_int_equal(cv_array_meta_parse(out.data, out.size, false, 0, &again, NULL),
                     CATERVA_ECORRUPT);
    cv_buffer_free(&out);
}

/* C-Blosc2 overwrites only the front of a metalayer that became shorter. */
static void an_old_tail_is_let_through(void **state)
{
    (void)state;
    cv_metalayer layer = real_layer(plain_header, sizeof plain_header);
    uint8_t bytes[128] = {0};
    memcpy(bytes, layer.data, layer.size);
    cv_array_meta meta;
    assert_int_equal(cv_array_meta_parse(bytes, layer.size + 10, false, 0, &meta, NULL),
                     CV_OK);
    assert_int_equal(meta.dtype_size, 3);
}

static void each_bad_field_is_named(void **state)
{
    (void)state;
    static const struct {
        size_t at;
        uint8_t byte;
        cv_status status;
        const char *words;
    } cases[] = {
        {0, 0x95, CATERVA_ECORRUPT, "entries: byte 112 is 0x95 instead of 0x97"},
        {1, 1, CATERVA_EUNSUPPORTED, "version 1"},
        {2, 17, CATERVA_EUNSUPPORTED, "17 dimensions, at most 16"},
        {2, 200, CATERVA_ECORRUPT, "200 dimensions"},
        {2, 3, CATERVA_ECORRUPT, "shape: byte 115 is 0x92 instead of 0x93"},
        {4, 0xd2, CATERVA_ECORRUPT, "shape: byte 116"},
        {5, 0xff, CATERVA_ECORRUPT, "shape[0] is -"},
        {27, 0x00, CATERVA_ECORRUPT, "chunk shape[0] is 0 where shape is 5"},
        {24, 0x80, CATERVA_ECORRUPT, "chunk shape[0] is -"},
        {43, 0x00, CATERVA_ECORRUPT, "block shape[1] is 0"},
        {45, 0xda, CATERVA_ECORRUPT, "dtype: byte 157"},
        {46, 0xff, CATERVA_ECORRUPT, "dtype claims"},
        {49, 4, CATERVA_ECORRUPT, "dtype needs 4 bytes at byte 162, but only 3"},
        {44, 0x80, CATERVA_ECORRUPT, "dtype format is 0x80"},
    };
    cv_metalayer layer = real_layer(plain_header, sizeof plain_header);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint8_t copy[128];
        memcpy(copy, layer.data, layer.size);
        copy[cases[i].at] = cases[i].byte;
        cv_array_meta meta;
        cv_error err = {0};
        cv_status status = cv_array_meta_parse(copy, layer.size, false, 112, &meta, &err);
        if (status != cases[i].status || !strstr(err.message, cases[i].words))
            fail_msg("case %zu: %d \"%s\", not \"%s\"", i, status, err.message,
                     cases[i].words);
    }
}

static void refuses_what_cannot_be_written(void **state)
{
    (void)state;
    cv_buffer out = {0};
    cv_array_meta meta = {.ndim = 17};
    assert_int_equal(cv_array_meta_write(&meta, &out, NULL), CATERVA_EINVAL);
    meta.ndim = -1;
    assert_int_equal(cv_array_meta_write(&meta, &out, NULL), CATERVA_EINVAL);
    meta = (cv_array_meta){.ndim = 1, .dtype = "", .dtype_size = (uint32_t)INT32_MAX + 1};
    assert_int_equal(cv_array_meta_write(&meta, &out, NULL), CATERVA_EINVAL);
    assert_int_equal(out.size, 0);
    cv_buffer_free(&out);
}

static void check_mutant(const uint8_t *bytes, size_t size, void *context)
{
    int *n_parsed = context;
    cv_array_meta meta;
    cv_error err = {0};
    if (cv_array_meta_parse(bytes, size, false, 0, &meta, &err) != CV_OK) {
        assert_true(err.message[0] != 0);
        return;
    }
    cv_buffer out = {0};
    assert_int_equal(cv_array_meta_write(&meta, &out, NULL), CV_OK);
    assert_true(out.size <= size);
    assert_memory_equal(out.data, bytes, out.size);
    cv_buffer_free(&out);
    (*n_parsed)++;
}

static void no_bytes_do_harm(void **state)
{
    (void)state;
    rng random = rng_from_seed(seed);
    int n_parsed = 0;
    for (int i = 0; i < N_REAL_FRAMES; i++) {
        cv_metalayer layer = real_layer(REAL_FRAMES[i].header, REAL_FRAMES[i].header_size);
        check_truncations(layer.data, layer.size, check_mutant, &n_parsed);
        assert_int_equal(n_parsed, 0);
    }
    for (int i = 0; i < N_REAL_FRAMES; i++) {
        cv_metalayer layer = real_layer(REAL_FRAMES[i].header, REAL_FRAMES[i].header_size);
        check_mutants(&random, 15000, layer.data, layer.size, check_mutant, &n_parsed);
    }
    assert_true(n_parsed > 0);
}

int main(int argc, char **argv)
{
    seed = seed_argument(argc, argv, 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(real_metalayers_come_back_byte_for_byte),
        cmocka_unit_test(fields_mean_what_their_writer_meant),
        cmocka_unit_test(the_older_metalayer_has_no_dtype),
        cmocka_unit_test(an_old_tail_is_let_through),
        cmocka_unit_test(each_bad_field_is_named),
        cmocka_unit_test(refuses_what_cannot_be_written),
        cmocka_unit_test(no_bytes_do_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
