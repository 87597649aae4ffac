/* caterva_buffer_convert: items of one buffer in another dtype, and refusals.
 * compat/test_convert.py compares the casts with NumPy's. */
#include <caterva.h>
#include <caterva_value.h>

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static caterva_buffer buffer_of(void *data, size_t size, const char *dtype)
{
    caterva_buffer b = CATERVA_BUFFER_INIT;
    b.data = data;
    b.size = size;
    b.dtype = dtype;
    return b;
}

static void numbers_are_cast(void **state)
{
    (void)state;
    double src[] = {1.5, -2, 300};
    float narrow[3];
    int16_t whole[3];
    caterva_buffer from = buffer_of(src, sizeof src, "float64");
    caterva_buffer to = buffer_of(narrow, sizeof narrow, "=f4");
    assert_int_equal(caterva_buffer_convert(&from, 3, &to, NULL, NULL), CATERVA_OK);
    assert_true(narrow[0] == 1.5f && narrow[1] == -2 && narrow[2] == 300);
    caterva_error err;
    to = buffer_of(whole, sizeof whole, "=i2");
    assert_int_equal(caterva_buffer_convert(&from, 3, &to, NULL, &err), CATERVA_ECAST);
    assert_non_null(strstr(err.message, "not a same-kind cast"));
    to.casting = CATERVA_CASTING_UNSAFE;
    assert_int_equal(caterva_buffer_convert(&from, 3, &to, NULL, &err), CATERVA_OK);
    assert_true(whole[0] == 1 && whole[1] == -2 && whole[2] == 300);
}

static void equal_items_are_copied(void **state)
{
    (void)state;
    char src[] = "abcdef", dst[7] = "xxxxxx";
    caterva_buffer from = buffer_of(src, 6, "|S3"), to = buffer_of(dst, 6, "|S3");
    assert_int_equal(caterva_buffer_convert(&from, 2, &to, NULL, NULL), CATERVA_OK);
    assert_string_equal(dst, "abcdef");
    from.dtype = to.dtype = "bfloat16";
    memcpy(dst, "xxxxxx", 6);
    assert_int_equal(caterva_buffer_convert(&from, 2, &to, NULL, NULL), CATERVA_OK);
    assert_string_equal(dst, "abcdxx");
    assert_int_equal(caterva_buffer_convert(&from, 0, &to, NULL, NULL), CATERVA_OK);
}

static void what_is_wrong_is_said(void **state)
{
    (void)state;
    float src[2] = {0};
    double dst[2];
    caterva_error err;
    caterva_buffer from = buffer_of(src, sizeof src, "=f4");
    caterva_buffer to = buffer_of(dst, sizeof dst, "<f8");
    assert_int_equal(caterva_buffer_convert(NULL, 2, &to, NULL, &err), CATERVA_EINVAL);
    assert_int_equal(caterva_buffer_convert(&from, 2, NULL, NULL, &err), CATERVA_EINVAL);
    assert_int_equal(caterva_buffer_convert(&from, -1, &to, NULL, &err), CATERVA_EINVAL);
    assert_int_equal(caterva_buffer_convert(&from, 3, &to, NULL, &err), CATERVA_ESHORT);
    assert_string_equal(err.message,
                        "3 items of 4 bytes do not fit the 8 bytes of the source");
    assert_int_equal(caterva_buffer_convert(&from, INT64_MAX, &to, NULL, &err),
                     CATERVA_ESHORT);
    to.size = 15;
    assert_int_equal(caterva_buffer_convert(&from, 2, &to, NULL, &err), CATERVA_ESHORT);
    to = buffer_of(dst, sizeof dst, "|S8");
    assert_int_equal(caterva_buffer_convert(&from, 2, &to, NULL, &err), CATERVA_EDTYPE);
    to.dtype = "?8";
    assert_int_equal(caterva_buffer_convert(&from, 2, &to, NULL, &err), CATERVA_EINVAL);
    to.dtype = NULL;
    assert_int_equal(caterva_buffer_convert(&from, 2, &to, NULL, &err), CATERVA_EINVAL);
    to.dtype = "<f8";
    to.field = "a";
    assert_int_equal(caterva_buffer_convert(&from, 2, &to, NULL, &err), CATERVA_EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_cast),
        cmocka_unit_test(equal_items_are_copied),
        cmocka_unit_test(what_is_wrong_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
