/* The `_caterva` attribute: what is written is read back, keys of later versions are skipped,
 * and invalid contents are reported. */
#include "format/array_meta.h"

#include <string.h>

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define BYTES(text) (const uint8_t *)(text), sizeof(text) - 1

static void it_comes_back(void **state)
{
    (void)state;
    static const uint8_t fill[3] = {1, 2, 3};
    cv_own own = {.fill = fill, .fill_size = 3}, back;
    cv_buffer out = {0};
    assert_int_equal(cv_own_write(&own, &out, NULL), CV_OK);
    assert_int_equal(cv_own_parse(out.data, out.size, &back, NULL), CV_OK);
    assert_int_equal(back.fill_size, 3);
    assert_memory_equal(back.fill, fill, 3);

    out.size = 0;
    own = (cv_own){.fill = NULL};
    assert_int_equal(cv_own_write(&own, &out, NULL), CV_OK);
    assert_int_equal(cv_own_parse(out.data, out.size, &back, NULL), CV_OK);
    assert_null(back.fill);
    cv_buffer_free(&out);
}

/* A number of nine bytes, and bytes under unknown keys. */
static void unknown_keys_are_passed_over(void **state)
{
    (void)state;
    cv_own own;
    assert_int_equal(cv_own_parse(BYTES("\xde\x00\x04"
                                        "\xa3new\xcf\x01\x02\x03\x04\x05\x06\x07\x08"
                                        "\xa7version\x01"
                                        "\xa5other\xc6\x00\x00\x00\x02xy"
                                        "\xa4"
                                        "fill\xc6\x00\x00\x00\x01z"),
                                  &own, NULL),
                     CV_OK);
    assert_int_equal(own.fill_size, 1);
    assert_int_equal(own.fill[0], 'z');
}

static void what_is_not_understood_is_named(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        size_t size;
        cv_status status;
        const char *words;
    } cases[] = {
        {"\xde\x00\x01\xa7version\x02", 12, CATERVA_EUNSUPPORTED,
         "version 2 is newer than 1"},
        {"\xde\x00\x01\xa7version\xcf\0\0\0\1\0\0\0\0", 20, CATERVA_EUNSUPPORTED,
         "version 4294967296 is newer than 1"},
        {"\xde\x00\x01\xa3new\xc0", 8, CATERVA_EUNSUPPORTED, "unknown kind 0xc0"},
        {"\xdf\x00\x01", 3, CATERVA_ECORRUPT, "the map"},
        {"\xde\x00\x01\xa4"
         "fill\xc6\x00\x00\x00\x05xy",
         15, CATERVA_ECORRUPT, "a value"},
        {"\xde\x00\x01\xa4"
         "fill",
         8, CATERVA_ECORRUPT, "a value"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cv_own own;
        cv_error err = {0};
        cv_status status =
            cv_own_parse((const uint8_t *)cases[i].bytes, cases[i].size, &own, &err);
        if (status != cases[i].status || !strstr(err.message, cases[i].words))
            fail_msg("case %zu: %d \"%s\"", i, status, err.message);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_comes_back),
        cmocka_unit_test(unknown_keys_are_passed_over),
        cmocka_unit_test(what_is_not_understood_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
