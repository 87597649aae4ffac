/* The requirements for the text of an errno number with either strerror_r. The including file
 * selects one and is the test. */
#ifndef UNIT_ERROR_TEXT_H
#define UNIT_ERROR_TEXT_H

#include "base/status.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void the_words_are_the_systems(void **state)
{
    (void)state;
    char text[96];
    assert_string_equal(cv_error_text(ENOSPC, text, sizeof text), "No space left on device");
    assert_string_equal(cv_error_text(EACCES, text, sizeof text), "Permission denied");
}

static void unknown_numbers_have_words(void **state)
{
    (void)state;
    char text[96];
    const char *words = cv_error_text(99999, text, sizeof text);
    assert_non_null(words);
    assert_int_not_equal(strlen(words), 0);
    assert_null(strstr(words, "null"));
}

static void the_buffer_is_not_overrun(void **state)
{
    (void)state;
    char text[21] = "12345678901234567890";
    const char *words = cv_error_text(ENOSPC, text, 16);
    assert_non_null(words);
    assert_true(strlen(words) <= 15 || words != text);
    assert_memory_equal(text + 16, "7890", 5);
}

/* Forms that other systems return. */
static void each_form_is_understood(void **state)
{
    (void)state;
    char text[32] = "filled";
    assert_string_equal(cv_error_text_returned("words", 5, text, sizeof text), "words");
    assert_string_equal(cv_error_text_returned(text, 5, text, sizeof text), "filled");
    assert_string_equal(cv_error_text_filled(0, 5, text, sizeof text), "filled");
    assert_string_equal(cv_error_text_filled(EINVAL, 5, text, sizeof text), "error 5");
    text[0] = '\0';
    assert_string_equal(cv_error_text_filled(0, 6, text, sizeof text), "error 6");
    assert_string_equal(cv_error_text_returned(NULL, 7, text, sizeof text), "error 7");
}

static inline int run_error_text(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_words_are_the_systems),
        cmocka_unit_test(unknown_numbers_have_words),
        cmocka_unit_test(the_buffer_is_not_overrun),
        cmocka_unit_test(each_form_is_understood),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#endif
