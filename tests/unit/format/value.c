/* Values of attributes: MessagePack, NumPy arrays in it, and the JSON of attribute maps. */
#include "format/json.h"
#include "format/values.h"

#include <caterva_value.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

/* The bytes that python-blosc2 4.14 writes for np.array([-999], dtype="<i2"). */
static void an_array_is_what_python_writes(void **state)
{
    (void)state;
    static const char expected[] = "\xc7\x21\x2e\x83\xa5"
                                   "dtype\x81\xa3str\xa3<i2\xa5"
                                   "shape"
                                   "\x91\x01\xa4"
                                   "data\xc4\x02\x19\xfc";
    static const uint8_t item[] = {0x19, 0xfc}; /* -999 */
    void *packed;
    size_t size, at = 0;
    caterva_error err;
    caterva_value array = CATERVA_VALUE_INIT, read = CATERVA_VALUE_INIT;
    array.kind = CATERVA_VALUE_ARRAY;
    strcpy(array.dtype, "<i2");
    array.ndim = 1;
    array.shape[0] = 1;
    array.bytes = item;
    array.size = sizeof item;
    assert_int_equal(caterva_value_pack(&array, 1, &packed, &size, &err), CATERVA_OK);
    assert_int_equal(size, sizeof expected - 1);
    assert_memory_equal(packed, expected, size);
    assert_int_equal(caterva_value_next(packed, size, &at, &read, &err), CATERVA_OK);
    assert_int_equal(at, size);
    assert_int_equal(read.kind, CATERVA_VALUE_ARRAY);
    assert_string_equal(read.dtype, "<i2");
    assert_int_equal(read.ndim, 1);
    assert_int_equal(read.shape[0], 1);
    assert_int_equal(read.size, 2);
    assert_memory_equal(read.bytes, &item, 2);
    caterva_free(packed);
    array.size = 1;
    assert_int_equal(caterva_value_pack(&array, 1, &packed, &size, &err), CATERVA_ESHORT);
    array.size = 2;
    strcpy(array.dtype, "[('a', 'i2')]");
    assert_int_equal(caterva_value_pack(&array, 1, &packed, &size, &err), CATERVA_EDTYPE);
}

/* ---- Tokens in public ---------------------------------------------------- */

static void values_come_one_by_one(void **state)
{
    (void)state;
    static const char packed[] = "\x94\x92\xa9__tuple__\x01\xd4\x2d\x90\x81\xa1k\xc3"
                                 "\xcf\xff\xff\xff\xff\xff\xff\xff\xff";
    static const struct {
        caterva_value_kind kind;
        int64_t count, integer;
    } expected[] = {
        {CATERVA_VALUE_LIST, 4, 0}, {CATERVA_VALUE_TUPLE, 1, 0}, {CATERVA_VALUE_INT, 0, 1},
        {CATERVA_VALUE_SET, 0, 0},  {CATERVA_VALUE_MAP, 1, 0},   {CATERVA_VALUE_TEXT, 0, 0},
        {CATERVA_VALUE_BOOL, 0, 1}, {CATERVA_VALUE_UINT, 0, -1},
    };
    size_t at = 0;
    caterva_error err;
    for (size_t i = 0; i < COUNT(expected); i++) {
        caterva_value v = CATERVA_VALUE_INIT;
        assert_int_equal(caterva_value_next(packed, sizeof packed - 1, &at, &v, &err),
                         CATERVA_OK);
        assert_int_equal(v.kind, expected[i].kind);
        assert_int_equal(v.count, expected[i].count);
        assert_int_equal(v.integer, expected[i].integer);
    }
    assert_int_equal(at, sizeof packed - 1);
    caterva_value v = CATERVA_VALUE_INIT;
    assert_int_equal(caterva_value_next(packed, at, &at, &v, &err), CATERVA_ECORRUPT);
    at = sizeof packed;
    assert_int_equal(caterva_value_next(packed, sizeof packed - 1, &at, &v, &err),
                     CATERVA_ERANGE);
}

static void what_is_read_is_packed_again(void **state)
{
    (void)state;
    static const char packed[] = "\x95\x92\xa9__tuple__\x01\xd5\x2d\x91\x05\x81\xa1k\xc3"
                                 "\xd8\x2c\x3f\xf0\0\0\0\0\0\0\xc0\0\0\0\0\0\0\0\xc4\x01\xff";
    caterva_value values[16];
    size_t n = 0, at = 0, size;
    caterva_error err;
    void *again;
    for (; at < sizeof packed - 1; n++) {
        values[n] = (caterva_value)CATERVA_VALUE_INIT;
        assert_int_equal(caterva_value_next(packed, sizeof packed - 1, &at, &values[n], &err),
                         CATERVA_OK);
    }
    assert_int_equal(caterva_value_pack(values, n, &again, &size, &err), CATERVA_OK);
    assert_int_equal(size, sizeof packed - 1);
    assert_memory_equal(again, packed, size);
    caterva_free(again);
    assert_int_equal(caterva_value_pack(values, n - 1, &again, &size, &err), CATERVA_EINVAL);
    assert_int_equal(caterva_value_pack(&values[2], 2, &again, &size, &err), CATERVA_EINVAL);
    values[1].count = -1;
    assert_int_equal(caterva_value_pack(values, n, &again, &size, &err), CATERVA_EINVAL);
    caterva_value key[] = {CATERVA_VALUE_INIT, CATERVA_VALUE_INIT, CATERVA_VALUE_INIT};
    key[0].kind = CATERVA_VALUE_MAP;
    key[0].count = 1;
    key[1].kind = CATERVA_VALUE_LIST; /* of none: a list is no key */
    assert_int_equal(caterva_value_pack(key, 3, &again, &size, &err), CATERVA_EINVAL);
}

/* ---- Limits -------------------------------------------------------------- */

static void depth_has_an_end(void **state)
{
    (void)state;
    uint8_t lists[CV_VALUE_DEPTH + 2];
    memset(lists, 0x91, sizeof lists);
    lists[CV_VALUE_DEPTH] = 0;
    assert_true(cv_is_value(lists, CV_VALUE_DEPTH + 1));
    lists[CV_VALUE_DEPTH] = 0x91;
    lists[CV_VALUE_DEPTH + 1] = 0;
    assert_false(cv_is_value(lists, CV_VALUE_DEPTH + 2));
    caterva_value deeper[CV_VALUE_DEPTH + 2];
    void *packed;
    size_t size;
    for (size_t i = 0; i < COUNT(deeper); i++) {
        deeper[i] = (caterva_value)CATERVA_VALUE_INIT;
        deeper[i].kind = CATERVA_VALUE_LIST;
        deeper[i].count = i + 1 < COUNT(deeper);
    }
    assert_int_equal(caterva_value_pack(deeper, COUNT(deeper), &packed, &size, NULL), CATERVA_EINVAL);
    assert_int_equal(caterva_value_pack(deeper + 2, COUNT(deeper) - 2, &packed, &size, NULL),
                     CATERVA_OK);
    caterva_free(packed);

    enum { MANY = 1 << 20 }; /* more than a stack could hold */
    uint8_t *deep = malloc(MANY);
    assert_non_null(deep);
    memset(deep, 0x91, MANY);
    assert_false(cv_is_value(deep, MANY));
    memset(deep, '[', MANY);
    cv_buffer out = {0};
    assert_int_equal(cv_json_to_msgpack((char *)deep, MANY, &out, NULL), CATERVA_EINVAL);
    assert_int_equal(out.size, 0);
    free(deep);
}

/* ---- JSON ----------------------------------------------------------------- */

#define PAIR(bytes, json)                                                                    \
    {                                                                                        \
        bytes, sizeof(bytes) - 1, json                                                       \
    }

static const struct {
    const char *packed;
    size_t size;
    const char *json;
} texts[] = {
    PAIR("\xc0", "null"),
    PAIR("\xc3", " true\n"),
    PAIR("\x7f", "127"),
    PAIR("\xe0", "-32"),
    PAIR("\x00", "-0"),
    PAIR("\xd3\x80\0\0\0\0\0\0\0", "-9223372036854775808"),
    PAIR("\xcf\xff\xff\xff\xff\xff\xff\xff\xff", "18446744073709551615"),
    PAIR("\xcb\x3f\xb9\x99\x99\x99\x99\x99\x9a", "0.1"),
    PAIR("\xcb\x80\0\0\0\0\0\0\0", "-0.0"),
    PAIR("\xcb\x40\xa3\x88\0\0\0\0\0", "25.0E+2"),
    PAIR("\xcb\0\0\0\0\0\0\0\1", "5e-324"),
    PAIR("\xa2\xc3\xa9", "\"\xc3\xa9\""),
    PAIR("\xa4\xf0\x9f\x98\x80", "\"\\ud83d\\ude00\""),
    PAIR("\xa4\"\\\n/", "\"\\\"\\\\\\n\\/\""),
    PAIR("\x90", "[ ]"),
    PAIR("\x92\x01\x92\x02\x90", "[1, [2, []]]"),
    PAIR("\x82\xa1"
         "a\x01\xa1"
         "b\x80",
         "{\"a\": 1, \"b\": {}}"),
    PAIR("\x81\xa4$set\x90", "{\"$set\": []}"), /* the command line's word, not the format's */
};

static void json_becomes_messagepack(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(texts); i++) {
        cv_buffer out = {0};
        assert_int_equal(cv_json_to_msgpack(texts[i].json, strlen(texts[i].json), &out, NULL),
                         CV_OK);
        if (out.size != texts[i].size || memcmp(out.data, texts[i].packed, out.size) != 0)
            fail_msg("%s", texts[i].json);
        cv_buffer_free(&out);
    }
}

static void what_is_not_json_is_refused(void **state)
{
    (void)state;
    static const char *const wrong[] = {
        "",       "  ",    "kelvin",     "[1,]",  "[1 2]",  "{\"a\" 1}", "{a: 1}", "{\"a\": 1,}",
        "[1",     "{\"a\"", "\"abc",      "1 2",   "01",     "1.",      ".5",     "+1",
        "1e",     "0x10",  "NaN",        "1e999", "True",   "nul",     "]",      "[1}",
        "\"\\x\"", "-",     "\"\\u12g4\"", "\"a\tb\"", "\"\\ud800\"", "\"\\udc00\"", "\"\xff\"",
        "18446744073709551616", "-9223372036854775809"};
    for (size_t i = 0; i < COUNT(wrong); i++) {
        cv_buffer out = {0};
        if (cv_json_to_msgpack(wrong[i], strlen(wrong[i]), &out, NULL) != CATERVA_EINVAL)
            fail_msg("%s is taken", wrong[i]);
        assert_int_equal(out.size, 0);
    }
}

static void the_locale_does_not_matter(void **state)
{
    (void)state;
    static const char *const names[] = {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "de_DE"};
    bool found = false;
    for (size_t i = 0; i < COUNT(names) && !found; i++)
        found = setlocale(LC_NUMERIC, names[i]) != NULL;
    json_becomes_messagepack(NULL);
    setlocale(LC_NUMERIC, "C");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_array_is_what_python_writes),
        cmocka_unit_test(values_come_one_by_one),
        cmocka_unit_test(what_is_read_is_packed_again),
        cmocka_unit_test(depth_has_an_end),
        cmocka_unit_test(json_becomes_messagepack),
        cmocka_unit_test(what_is_not_json_is_refused),
        cmocka_unit_test(the_locale_does_not_matter),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
