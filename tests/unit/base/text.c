/* Foreign text: what is UTF-8, what may be printed on a terminal, and which names the library
 * refuses because other programs cannot read them. */
#include "base/status.h"
#include "support/info.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void utf8_is_what_unicode_says(void **state)
{
    (void)state;
    static const char *const good[] = {"",
                                       "plain",
                                       "\xc2\x80",
                                       "\xdf\xbf",
                                       "\xe0\xa0\x80",
                                       "\xed\x9f\xbf",
                                       "\xee\x80\x80",
                                       "\xf0\x90\x80\x80",
                                       "\xf4\x8f\xbf\xbf"};
    static const char *const bad[] = {"\x80",
                                      "a\xff",
                                      "\xc0\x80",
                                      "\xc1\xbf",
                                      "\xc2",
                                      "\xc2z",
                                      "\xe0\x9f\xbf",
                                      "\xed\xa0\x80",
                                      "\xe2\x82",
                                      "\xf0\x8f\xbf\xbf",
                                      "\xf4\x90\x80\x80",
                                      "\xf5\x80\x80\x80"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) assert_true(cv_is_utf8(good[i]));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) assert_false(cv_is_utf8(bad[i]));
}

static void shown(const char *text, const char *want)
{
    char got[200];
    cv_show_text(got, sizeof got, text);
    assert_string_equal(got, want);
}

static void what_a_terminal_obeys_is_escaped(void **state)
{
    (void)state;
    shown("plain \xc3\xa9 \xf0\x9f\x98\x80", "plain \xc3\xa9 \xf0\x9f\x98\x80");
    shown("\x1b[31m\n\x7f", "\\x1b[31m\\x0a\\x7f");
    shown("\xc2\x9b"
          "31m \xc2\xa0",
          "\\xc2\\x9b31m \xc2\xa0");
    shown("a\xff\xe2\x82", "a\\xff\\xe2\\x82");
}

static void what_does_not_fit_is_cut_between_characters(void **state)
{
    (void)state;
    char got[8];
    for (size_t size = 1; size <= sizeof got; size++) {
        memset(got, 0x55, sizeof got);
        cv_show_text(got, size, "\xc3\xa9\x1b\xc3\xa9");
        assert_string_equal(got, size < 3 ? "" : size < 7 ? "\xc3\xa9" : "\xc3\xa9\\x1b");
    }
}

static void no_message_holds_a_control_character(void **state)
{
    (void)state;
    cv_error err;
    cv_fail(&err, CATERVA_EINVAL, -1, "no attribute \"%s\"", "\x1b[2J\xff");
    assert_string_equal(err.message, "no attribute \"\\x1b[2J\\xff\"");
    assert_int_equal(caterva_open("/nowhere/\x1b]0;x\x07", NULL, NULL, &err), CATERVA_EINVAL);
    caterva_array *array;
    assert_int_equal(caterva_open("/nowhere/\x1b]0;x\x07", NULL, &array, &err),
                     CATERVA_ENOTFOUND);
    assert_string_equal(err.message, "/nowhere/\\x1b]0;x\\x07 does not exist");
}

static void names_that_are_no_utf8_are_refused(void **state)
{
    (void)state;
    caterva_array *array;
    caterva_error err;
    caterva_create_options options = CATERVA_CREATE_INIT;
    const int64_t shape[] = {3};
    caterva_metalayer layer = {.name = "\xff", .content = "x", .size = 1};
    options.ndim = 1;
    options.shape = shape;
    options.dtype = "[('\xff', '<i4')]";
    assert_int_equal(caterva_create("mem:", &options, &array, &err), CATERVA_EINVAL);
    options.dtype = "[('\xc3\xbf', '<i4')]";
    options.metalayers = &layer;
    options.n_metalayers = 1;
    assert_int_equal(caterva_create("mem:", &options, &array, &err), CATERVA_EINVAL);
    assert_string_equal(err.message, "the metalayer name \"\\xff\" is not UTF-8");
    layer.name = "\xc3\xbf";
    assert_int_equal(caterva_create("mem:", &options, &array, &err), CATERVA_OK);
    assert_int_equal(caterva_attr_set(array, "a\xff", "\xc0", 1, &err), CATERVA_EINVAL);
    assert_string_equal(err.message, "the attribute name \"a\\xff\" is not UTF-8");
    assert_int_equal(caterva_attr_set(array, "\xc3\xbf", "\xc0", 1, &err), CATERVA_OK);
    assert_string_equal(info_of(array)->attribute_names[0], "\xc3\xbf");
    assert_int_equal(info_of(array)->n_attributes, 1);
    caterva_discard(array);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(utf8_is_what_unicode_says),
        cmocka_unit_test(what_a_terminal_obeys_is_escaped),
        cmocka_unit_test(what_does_not_fit_is_cut_between_characters),
        cmocka_unit_test(no_message_holds_a_control_character),
        cmocka_unit_test(names_that_are_no_utf8_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
