/* The sticky reader and writer: exact widths, the first failure is kept, nothing is read
 * after the end. */
#include "format/msgpack.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void everything_written_is_read(void **state)
{
    (void)state;
    cv_buffer out = {0};
    cv_writer w = cv_writer_open(&out, NULL);
    cv_write_byte(&w, 0x97);
    cv_write_i16(&w, -2);
    cv_write_i32(&w, INT32_MIN);
    cv_write_i64(&w, INT64_MIN);
    cv_write_u16(&w, UINT16_MAX);
    cv_write_u32(&w, 0x01020304);
    cv_write_u64(&w, UINT64_MAX);
    cv_write_bool(&w, true);
    cv_write_bool(&w, false);
    cv_write_fixstr(&w, "name", 4);
    cv_write_str32(&w, "<f8", 3);
    cv_write_bin32(&w, (const uint8_t *)"\0\1", 2);
    cv_write_map16(&w, 3);
    cv_write_array16(&w, 4);
    assert_int_equal(w.status, CV_OK);

    cv_reader r = cv_reader_open(out.data, out.size, 0, "test");
    assert_int_equal(cv_read_byte(&r, "byte"), 0x97);
    assert_int_equal(cv_read_i16(&r, "i16"), -2);
    assert_int_equal(cv_read_i32(&r, "i32"), INT32_MIN);
    assert_true(cv_read_i64(&r, "i64") == INT64_MIN);
    assert_int_equal(cv_read_u16(&r, "u16"), UINT16_MAX);
    assert_int_equal(cv_read_u32(&r, "u32"), 0x01020304);
    assert_true(cv_read_u64(&r, "u64") == UINT64_MAX);
    assert_true(cv_read_bool(&r, "bool"));
    assert_false(cv_read_bool(&r, "bool"));
    assert_int_equal(cv_read_fixstr(&r, "name"), 4);
    assert_memory_equal(cv_read_bytes(&r, 4, "name"), "name", 4);
    assert_int_equal(cv_read_str32(&r, "dtype"), 3);
    assert_memory_equal(cv_read_bytes(&r, 3, "dtype"), "<f8", 3);
    assert_int_equal(cv_read_bin32(&r, "value"), 2);
    assert_memory_equal(cv_read_bytes(&r, 2, "value"), "\0\1", 2);
    assert_int_equal(cv_read_map16(&r, "map"), 3);
    assert_int_equal(cv_read_array16(&r, "array"), 4);
    assert_int_equal(cv_reader_finish(&r, NULL), CV_OK);
    cv_buffer_free(&out);
}

static void widths_and_markers_are_exact(void **state)
{
    (void)state;
    static const uint8_t expected[] = {0xd1, 0xff, 0xfe, 0xd2, 0x00, 0x00, 0x00,
                                       0x05, 0xd3, 0,    0,    0,    0,    0,
                                       0,    0,    7,    0xcd, 0,    9};
    cv_buffer out = {0};
    cv_writer w = cv_writer_open(&out, NULL);
    cv_write_i16(&w, -2);
    cv_write_i32(&w, 5);
    cv_write_i64(&w, 7);
    cv_write_u16(&w, 9);
    assert_int_equal(out.size, sizeof expected);
    assert_memory_equal(out.data, expected, sizeof expected);
    cv_buffer_free(&out);
}

static void the_first_failure_is_kept(void **state)
{
    (void)state;
    static const uint8_t bytes[] = {0xd2, 0, 0, 0, 5, 0xd3, 1, 2, 3};
    cv_reader r = cv_reader_open(bytes, sizeof bytes, 1000, "header");
    assert_int_equal(cv_read_i32(&r, "first"), 5);
    assert_int_equal(cv_read_u32(&r, "second"), 0); /* d3 is no ce */
    assert_int_equal(cv_read_u64(&r, "third"), 0);
    assert_null(cv_read_bytes(&r, 1, "fourth"));
    cv_reader_fail(&r, CATERVA_EUNSUPPORTED, 0, "fifth");

    cv_error err = {0};
    assert_int_equal(cv_reader_finish(&r, &err), CATERVA_ECORRUPT);
    assert_int_equal(err.code, CATERVA_ECORRUPT);
    assert_int_equal(err.position, 1005);
    assert_string_equal(err.message, "header: second: byte 1005 is 0xd3 instead of 0xce");
}

static void the_end_is_respected(void **state)
{
    (void)state;
    static const uint8_t bytes[] = {0xcf, 1, 2, 3};
    cv_reader r = cv_reader_open(bytes, sizeof bytes, 0, "header");
    assert_int_equal(cv_read_u64(&r, "size"), 0);
    cv_error err = {0};
    assert_int_equal(cv_reader_check(&r, &err), CATERVA_ECORRUPT);
    assert_string_equal(err.message,
                        "header: size needs 8 bytes at byte 1, but only 3 are left");

    r = cv_reader_open(bytes, sizeof bytes, 0, "header");
    assert_null(cv_read_bytes(&r, SIZE_MAX, "all"));
    assert_int_equal(cv_reader_check(&r, NULL), CATERVA_ECORRUPT);

    r = cv_reader_open(NULL, 0, 0, "nothing");
    assert_int_equal(cv_reader_finish(&r, NULL), CV_OK);
    assert_false(cv_read_bool(&r, "flag"));
    assert_int_equal(cv_reader_finish(&r, NULL), CATERVA_ECORRUPT);
}

static void left_over_bytes_are_reported(void **state)
{
    (void)state;
    static const uint8_t bytes[] = {1, 2, 3};
    cv_reader r = cv_reader_open(bytes, sizeof bytes, 10, "header");
    (void)cv_read_byte(&r, "one");
    assert_int_equal(cv_reader_check(&r, NULL), CV_OK);
    cv_error err = {0};
    assert_int_equal(cv_reader_finish(&r, &err), CATERVA_ECORRUPT);
    assert_string_equal(err.message, "header: 2 bytes are left over behind byte 11");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everything_written_is_read),
        cmocka_unit_test(widths_and_markers_are_exact),
        cmocka_unit_test(the_first_failure_is_kept),
        cmocka_unit_test(the_end_is_respected),
        cmocka_unit_test(left_over_bytes_are_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
