/* Errors: filled after a failure, unchanged otherwise, truncated to size, and optional.
 * Checked arithmetic, which decides whether they are set. */
#include "base/arith.h"
#include "base/status.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static void a_failure_says_everything(void **state)
{
    (void)state;
    cv_error err = {.code = CV_OK};
    assert_int_equal(cv_fail(&err, CATERVA_ECORRUPT, 4096, "chunk %d of %s", 17, "x"),
                     CATERVA_ECORRUPT);
    assert_int_equal(err.code, CATERVA_ECORRUPT);
    assert_int_equal(err.sys_errno, 0);
    assert_int_equal(err.position, 4096);
    assert_string_equal(err.message, "chunk 17 of x");
}

static void a_failed_call_adds_the_system_text(void **state)
{
    (void)state;
    cv_error err = {.code = CV_OK};
    assert_int_equal(cv_fail_sys(&err, ENOSPC, "cannot write %s", "a.b2nd"), CATERVA_EIO);
    assert_int_equal(err.sys_errno, ENOSPC);
    assert_int_equal(err.position, -1);
    assert_string_equal(err.message, "cannot write a.b2nd: No space left on device");
    assert_int_equal(cv_fail_sys(&err, 99999, "x"), CATERVA_EIO);
    assert_int_equal(strncmp(err.message, "x: ", 3), 0);
}

static void the_error_may_be_null(void **state)
{
    (void)state;
    assert_int_equal(cv_fail(NULL, CATERVA_EBUSY, 0, "%d", 1), CATERVA_EBUSY);
    assert_int_equal(cv_fail_sys(NULL, EIO, "%d", 1), CATERVA_EIO);
    assert_int_equal(cv_fail_memory(NULL, 1, "x"), CATERVA_ENOMEM);
}

static void long_sentences_are_cut(void **state)
{
    (void)state;
    cv_error err;
    char text[1000];
    memset(text, 'a', sizeof text);
    text[sizeof text - 1] = 0;
    for (size_t n = 200; n < 300; n++) {
        memset(&err, 0x55, sizeof err);
        cv_fail(&err, CATERVA_EINVAL, -1, "%.*s", (int)n, text);
        size_t kept = n < sizeof err.message ? n : sizeof err.message - 1;
        assert_int_equal(strnlen(err.message, sizeof err.message), kept);
        memset(&err, 0x55, sizeof err);
        cv_fail_sys(&err, ENOSPC, "%.*s", (int)n, text);
        assert_true(strnlen(err.message, sizeof err.message) < sizeof err.message);
    }
}

static cv_status tries(cv_status inner, int *after)
{
    CV_TRY(inner);
    *after = 1;
    return CV_OK;
}

static void try_returns_what_failed(void **state)
{
    (void)state;
    int after = 0;
    assert_int_equal(tries(CATERVA_EEXIST, &after), CATERVA_EEXIST);
    assert_int_equal(after, 0);
    assert_int_equal(tries(CV_OK, &after), CV_OK);
    assert_int_equal(after, 1);
}

static void every_status_has_a_name(void **state)
{
    (void)state;
    for (int s = CATERVA_OK; s >= CATERVA_ESTOPPED; s--) {
        const char *name = caterva_status_name((caterva_status)s);
        assert_int_equal(strncmp(name, "CATERVA_", 8), 0);
        for (int t = CATERVA_OK; t > s; t--)
            assert_string_not_equal(name, caterva_status_name((caterva_status)t));
    }
    assert_string_equal(caterva_status_name((caterva_status)1), "unknown status");
    assert_string_equal(caterva_status_name((caterva_status)-99), "unknown status");
}

static void arithmetic_notices_overflow(void **state)
{
    (void)state;
    int64_t out;
    uint64_t sum;
    assert_true(cv_add_i64(INT64_MAX - 1, 1, &out) && out == INT64_MAX);
    assert_false(cv_add_i64(INT64_MAX, 1, &out));
    assert_false(cv_add_i64(INT64_MIN, -1, &out));
    assert_true(cv_mul_i64(INT64_C(1) << 31, INT64_C(1) << 31, &out));
    assert_int_equal(out, INT64_C(1) << 62);
    assert_false(cv_mul_i64(INT64_C(1) << 32, INT64_C(1) << 31, &out));
    assert_true(cv_add_u64(UINT64_MAX - 1, 1, &sum));
    assert_false(cv_add_u64(UINT64_MAX, 1, &sum));
    assert_int_equal(cv_ceil_div(0, 7), 0);
    assert_int_equal(cv_ceil_div(7, 7), 1);
    assert_int_equal(cv_ceil_div(8, 7), 2);
    assert_int_equal(cv_ceil_div(INT64_MAX, 2), INT64_MAX / 2 + 1);
}

static void byte_order_is_written_out(void **state)
{
    (void)state;
    uint8_t bytes[8];
    cv_store_be64(bytes, UINT64_C(0x0102030405060708));
    assert_memory_equal(bytes, "\1\2\3\4\5\6\7\10", 8);
    assert_int_equal(cv_load_be64(bytes), UINT64_C(0x0102030405060708));
    assert_int_equal(cv_load_le64(bytes), UINT64_C(0x0807060504030201));
    assert_int_equal(cv_load_be32(bytes), 0x01020304);
    cv_store_le64(bytes, UINT64_C(0xf102030405060708));
    assert_memory_equal(bytes, "\10\7\6\5\4\3\2\xf1", 8);
    assert_int_equal(cv_load_le64(bytes), UINT64_C(0xf102030405060708));
    cv_store_le32(bytes, 0xf1020304);
    assert_int_equal(cv_load_le32(bytes), 0xf1020304);
    assert_int_equal(cv_load_be32(bytes), 0x040302f1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_failure_says_everything),
        cmocka_unit_test(a_failed_call_adds_the_system_text),
        cmocka_unit_test(the_error_may_be_null),
        cmocka_unit_test(long_sentences_are_cut),
        cmocka_unit_test(try_returns_what_failed),
        cmocka_unit_test(every_status_has_a_name),
        cmocka_unit_test(arithmetic_notices_overflow),
        cmocka_unit_test(byte_order_is_written_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
