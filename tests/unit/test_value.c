/* Values of attributes: MessagePack and JSON, both ways, and arrays of NumPy in them. */
#include "format/values.h"
#include "value/base64.h"
#include "value/json_read.h"
#include "value/json_write.h"

#include <caterva_value.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

static char *json_of(const void *value, size_t size)
{
    caterva_error err;
    char *json;
    size_t length;
    assert_int_equal(caterva_value_to_json(value, size, NULL, &json, &length, &err),
                     CATERVA_OK);
    assert_int_equal(strlen(json), length);
    return json;
}

/* ---- What stands for what ------------------------------------------------ */

typedef struct pair {
    const char *value;
    size_t size;
    const char *json;
} pair;
#define PAIR(bytes, json)                                                                    \
    {                                                                                        \
        bytes, sizeof(bytes) - 1, json                                                       \
    }

static const pair both_ways[] = {
    PAIR("\xc0", "null"),
    PAIR("\xc3", "true"),
    PAIR("\x7f", "127"),
    PAIR("\xe0", "-32"),
    PAIR("\xd3\x80\0\0\0\0\0\0\0", "-9223372036854775808"),
    PAIR("\xcf\xff\xff\xff\xff\xff\xff\xff\xff", "18446744073709551615"),
    PAIR("\xcb\x3f\xb9\x99\x99\x99\x99\x99\x9a", "0.1"),
    PAIR("\xcb\x40\0\0\0\0\0\0\0", "2.0"),
    PAIR("\xa2\xc3\xa9", "\"\xc3\xa9\""),
    PAIR("\xa3\"\\\n", "\"\\\"\\\\\\n\""),
    PAIR("\x92\x01\x92\x02\x90", "[1, [2, []]]"),
    PAIR("\x82\xa1"
         "a\x01\xa1"
         "b\x80",
         "{\"a\": 1, \"b\": {}}"),
    PAIR("\xc4\x02\x00\xff", "{\"$binary\": \"AP8=\"}"),
    PAIR("\xc4\x00", "{\"$binary\": \"\"}"),
    PAIR("\x92\xa9__tuple__\x01", "{\"$tuple\": [1]}"),
    PAIR("\x91\xa9__tuple__", "{\"$tuple\": []}"),
    PAIR("\x91\x92\xa9__tuple__\x01", "[{\"$tuple\": [1]}]"),
    PAIR("\xc7\x03\x2d\x92\x01\x02", "{\"$set\": [1, 2]}"),
    PAIR("\xd4\x2d\x90", "{\"$set\": []}"),
    PAIR("\xd8\x2c\x3f\xf0\0\0\0\0\0\0\xc0\0\0\0\0\0\0\0", "{\"$complex\": [1.0, -2.0]}"),
    PAIR("\xd8\x2c\x3f\xf0\0\0\0\0\0\0\x7f\xf8\0\0\0\0\0\0",
         "{\"$complex\": [1.0, \"NaN\"]}"),
    PAIR("\xd4\x01\xff", "{\"$ext\": 1, \"data\": \"/w==\"}"),
    PAIR("\xd4\x80\xff", "{\"$ext\": -128, \"data\": \"/w==\"}"),
    PAIR("\xd6\x2a"
         "abcd",
         "{\"$ext\": 42, \"data\": \"YWJjZA==\"}"),
    PAIR("\x81\x01\x02", "{\"$map\": [[1, 2]]}"),
    PAIR("\x81\xc0\x91\x81\x02\x03", "{\"$map\": [[null, [{\"$map\": [[2, 3]]}]]]}"),
    PAIR("\x81\xa4$set\x90", "{\"$map\": [[\"$set\", []]]}"),
    PAIR("\x82\xa1x\x01\xa4$set\x90", "{\"x\": 1, \"$set\": []}"),
    PAIR("\x81\xa7$schema\x01", "{\"$schema\": 1}"),
};

static void each_value_has_its_json(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(both_ways); i++) {
        const pair *p = &both_ways[i];
        caterva_error err;
        char *json = json_of(p->value, p->size);
        assert_string_equal(json, p->json);
        void *packed;
        size_t size;
        caterva_status status =
            caterva_value_from_json(json, strlen(json), NULL, NULL, &packed, &size, &err);
        if (status != CATERVA_OK) fail_msg("%s: %s", json, err.message);
        if (size != p->size || memcmp(packed, p->value, size) != 0)
            fail_msg("%s does not come back", json);
        caterva_free(json);
        caterva_free(packed);
    }
}

static const pair to_json_only[] = {
    PAIR("\xd9\x01x", "\"x\""), /* wider than needed */
    PAIR("\xca\x3d\xcc\xcc\xcd", "0.10000000149011612"),
    PAIR("\xcb\x7f\xf0\0\0\0\0\0\0", "\"Infinity\""),
    PAIR("\xa2\xff\x1b", "\"\\ufffd\\u001b\""),
    PAIR("\xd5\x2c\x01\x02", "{\"$ext\": 44, \"data\": \"AQI=\"}"), /* no complex number */
    PAIR("\xd4\x2e\x80", "{\"$ext\": 46, \"data\": \"gA==\"}"),     /* no array */
    PAIR("", "{\"$binary\": \"\"}"),
    PAIR("\x92\x01", "{\"$binary\": \"kgE=\"}"), /* ends too early */
    PAIR("\x01\x02", "{\"$binary\": \"AQI=\"}"), /* and too late */
    PAIR("\xdd\xff\xff\xff\xff", "{\"$binary\": \"3f////8=\"}"),
    PAIR("\xc1", "{\"$binary\": \"wQ==\"}"),
    PAIR("\x81\x90\x01", "{\"$binary\": \"gZAB\"}"),         /* a list as key */
    PAIR("\xd4\x2d\x01", "{\"$binary\": \"1C0B\"}"),         /* a set of no list */
    PAIR("\xd5\x2d\x90\x00", "{\"$binary\": \"1S2QAA==\"}"), /* and of more than one */
};

static void what_json_cannot_say_is_said_as_near_as_it_can(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(to_json_only); i++) {
        char *json = json_of(to_json_only[i].value, to_json_only[i].size);
        assert_string_equal(json, to_json_only[i].json);
        caterva_free(json);
    }
}

/* Long base64 is decoded in pieces: padding between them, bad digits and what follows. */
static void base64_of_any_length_is_judged_as_one(void **state)
{
    (void)state;
    enum { PIECE = 1 << 16 };
    static const struct {
        size_t size, at;             /* `text` stands there among so many digits */
        const char *text, *expected; /* NULL: it is base64 */
    } cases[] = {
        {PIECE, 0, "AQID", NULL},
        {PIECE + 4, PIECE, "AQI=", NULL},
        {2 * PIECE, PIECE - 4, "AQID", NULL},
        {3 * PIECE, 3 * PIECE - 4, "AQ==", NULL},
        {PIECE + 1, 0, "AQID", "base64 before"},
        {2 * PIECE, PIECE - 8, "AQI=", "base64 before"},
        {2 * PIECE, PIECE - 4, "AQI=", "base64 before"},
        {2 * PIECE, PIECE, "AQ==", "base64 before"},
        {2 * PIECE, 4, "AQ!D", "base64 before"},
        {2 * PIECE, 4, "\"AQI", "'}'"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        static const char begin[] = "{\"$binary\": \"", end[] = "\"}";
        size_t size = sizeof begin - 1 + cases[i].size + sizeof end - 1, packed_size;
        char *json = malloc(size);
        void *packed = NULL;
        caterva_error err;
        memset(json, 'A', size);
        memcpy(json, begin, sizeof begin - 1);
        memcpy(json + sizeof begin - 1 + cases[i].at, cases[i].text, 4);
        memcpy(json + size - sizeof end + 1, end, sizeof end - 1);
        caterva_status status =
            caterva_value_from_json(json, size, NULL, NULL, &packed, &packed_size, &err);
        assert_int_equal(status, cases[i].expected ? CATERVA_EINVAL : CATERVA_OK);
        if (cases[i].expected) assert_non_null(strstr(err.message, cases[i].expected));
        caterva_free(packed);
        free(json);
    }
}

static const struct {
    const char *json, *expected;
} wrong[] = {
    {"{\"$binary\": 1}", "base64 as text at position 13"},
    {"{\"$binary\": \"a\"}", "base64 before"},
    {"{\"$binary\": \"AB==\"}", "base64 before"}, /* bits that no byte takes */
    {"{\"$binary\": \"AA==\", \"x\": 1}", "'}' at position 19"},
    {"{\"$ext\": 128, \"data\": \"\"}", "-128 to 127"},
    {"{\"$ext\": 1}", "','"},
    {"{\"$complex\": [1]}", "','"},
    {"{\"$tuple\": 1}", "'['"},
    {"{\"$tuple\": [1}", "',' or ']'"},
    {"{\"$set\": [1]", "'}'"},
    {"{\"$map\": [1]}", "[key, value]"},
    {"{\"$map\": [[1]]}", "','"},
    {"{\"$map\": [[1, 2, 3]]}", "']'"},
    {"{\"$map\": [[[], 2]]}", "a key that is no list"},
    {"{\"$map\": [[1, 2],]}", "[key, value]"},
    {"{\"$array\": {\"dtype\": \"O\", \"shape\": [], \"data\": []}}", "dtype of a scalar"},
    {"{\"$array\": {\"dtype\": \"S0\", \"shape\": [9], \"data\": []}}", "dtype of a scalar"},
    {"{\"$array\": {\"dtype\": \"i1\", \"shape\": [2], \"data\": [1]}}", "as many items"},
    {"{\"$array\": {\"dtype\": \"i1\", \"shape\": [-1], \"data\": [1]}}",
     "a number of items"},
    {"{\"$array\": {\"dtype\": \"i1\", \"shape\": [1], \"data\": [128]}}", "fits the dtype"},
    {"{\"$array\": {\"dtype\": \"u1\", \"shape\": [1], \"data\": [-1]}}", "fits the dtype"},
    {"{\"$array\": {\"dtype\": \"f4\", \"shape\": [1], \"data\": [1e39]}}",
     "the range of the"},
    {"{\"$array\": {\"dtype\": \"S1\", \"shape\": [1], \"data\": [\"ab\"]}}",
     "fits the dtype"},
    {"{\"$array\": {\"dtype\": \"f2\", \"shape\": [1], \"data\": [1]}}", "$binary"},
};

static void what_a_word_lacks_is_said(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(wrong); i++) {
        caterva_error err;
        void *packed;
        size_t size;
        assert_int_equal(caterva_value_from_json(wrong[i].json, strlen(wrong[i].json), NULL,
                                                 NULL, &packed, &size, &err),
                         CATERVA_EINVAL);
        if (!strstr(err.message, wrong[i].expected))
            fail_msg("%s: %s", wrong[i].json, err.message);
    }
}

/* ---- Arrays -------------------------------------------------------------- */

static void arrays_keep_their_type(void **state)
{
    (void)state;
    static const struct {
        const char *dtype, *json, *back;
    } cases[] = {
        {"<i2", "-999",
         "{\"$array\": {\"dtype\": \"<i2\", \"shape\": [], \"data\": [-999]}}"},
        {"<i2", "[-999]",
         "{\"$array\": {\"dtype\": \"<i2\", \"shape\": [1], \"data\": [-999]}}"},
        {">u4", "[[1, 2], [3, 4294967295]]",
         "{\"$array\": {\"dtype\": \">u4\", \"shape\": [2, 2], \"data\": [1, 2, 3, "
         "4294967295]}}"},
        {"<f4", "[0.1, \"NaN\", \"-Infinity\"]",
         "{\"$array\": {\"dtype\": \"<f4\", \"shape\": [3], \"data\": [0.1, \"NaN\", "
         "\"-Infinity\"]}}"},
        {"?", "[true, false]",
         "{\"$array\": {\"dtype\": \"|b1\", \"shape\": [2], \"data\": [true, false]}}"},
        {"<U3", "[\"\xc3\xa9t\", \"\"]",
         "{\"$array\": {\"dtype\": \"<U3\", \"shape\": [2], \"data\": [\"\xc3\xa9t\", "
         "\"\"]}}"},
        {"S3", "\"\xc3\xa9\"",
         "{\"$array\": {\"dtype\": \"|S3\", \"shape\": [], \"data\": [\"\xc3\xa9\"]}}"},
        {"<M8[ns]", "-1",
         "{\"$array\": {\"dtype\": \"<M8[ns]\", \"shape\": [], \"data\": [-1]}}"},
        {"<i8", "[]", "{\"$array\": {\"dtype\": \"<i8\", \"shape\": [0], \"data\": []}}"},
        {"<i8", "[[], []]",
         "{\"$array\": {\"dtype\": \"<i8\", \"shape\": [2, 0], \"data\": []}}"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        caterva_error err;
        void *packed, *again;
        size_t size, again_size;
        caterva_status status = caterva_value_from_json(
            cases[i].json, strlen(cases[i].json), cases[i].dtype, NULL, &packed, &size, &err);
        if (status != CATERVA_OK) fail_msg("%s: %s", cases[i].json, err.message);
        char *json = json_of(packed, size);
        assert_string_equal(json, cases[i].back);
        assert_int_equal(caterva_value_from_json(json, strlen(json), NULL, NULL, &again,
                                                 &again_size, &err),
                         CATERVA_OK);
        assert_int_equal(size, again_size);
        assert_memory_equal(packed, again, size);
        caterva_free(packed);
        caterva_free(again);
        caterva_free(json);
    }
}

static void lists_of_no_one_shape_are_refused(void **state)
{
    (void)state;
    static const char *const cases[] = {
        "[1, [2]]", "[[1], 2]", "[[1], [2, 3]]", "[[], [1]]",  "[[], [[]]]", "[1",
        "[1,]",     "",         "[true]",        "{\"a\": 1}", "1 2",        "[1.5]"};
    for (size_t i = 0; i < COUNT(cases); i++) {
        caterva_error err;
        void *packed;
        size_t size;
        if (caterva_value_from_json(cases[i], strlen(cases[i]), "<i4", NULL, &packed, &size,
                                    &err) != CATERVA_EINVAL)
            fail_msg("%s is taken", cases[i]);
    }
}

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
    int64_t shape = 1;
    void *packed;
    size_t size, at = 0;
    caterva_error err;
    caterva_value value = CATERVA_VALUE_INIT;
    assert_int_equal(caterva_value_pack_array("<i2", 1, &shape, item, sizeof item, NULL,
                                              &packed, &size, &err),
                     CATERVA_OK);
    assert_int_equal(size, sizeof expected - 1);
    assert_memory_equal(packed, expected, size);
    assert_int_equal(caterva_value_next(packed, size, &at, &value, &err), CATERVA_OK);
    assert_int_equal(at, size);
    assert_int_equal(value.kind, CATERVA_VALUE_ARRAY);
    assert_string_equal(value.dtype, "<i2");
    assert_int_equal(value.ndim, 1);
    assert_int_equal(value.shape[0], 1);
    assert_int_equal(value.size, 2);
    assert_memory_equal(value.bytes, &item, 2);
    caterva_free(packed);
    assert_int_equal(
        caterva_value_pack_array("i2", 1, &shape, &item, 1, NULL, &packed, &size, &err),
        CATERVA_ESHORT);
    assert_int_equal(caterva_value_pack_array("[('a', 'i2')]", 1, &shape, &item, 2, NULL,
                                              &packed, &size, &err),
                     CATERVA_EDTYPE);
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

    enum { MANY = 1 << 20 }; /* no stack could hold them */
    uint8_t *deep = malloc(MANY);
    assert_non_null(deep);
    memset(deep, 0x91, MANY);
    assert_false(cv_is_value(deep, MANY));
    memset(deep, '[', MANY);
    cv_buffer out = {0};
    cv_error err;
    assert_int_equal(cv_json_read((char *)deep, MANY, NULL, &out, &err), CATERVA_EINVAL);
    assert_non_null(strstr(err.message, "less depth at position 66"));
    free(deep);
}

static void the_locale_does_not_matter(void **state)
{
    (void)state;
    static const char *const names[] = {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "de_DE"};
    bool found = false;
    for (size_t i = 0; i < COUNT(names) && !found; i++)
        found = setlocale(LC_NUMERIC, names[i]) != NULL;
    void *packed;
    size_t size;
    caterva_error err;
    assert_int_equal(caterva_value_from_json("0.1", 3, NULL, NULL, &packed, &size, &err),
                     CATERVA_OK);
    char *json = json_of(packed, size);
    assert_string_equal(json, "0.1");
    setlocale(LC_NUMERIC, "C");
    caterva_free(packed);
    caterva_free(json);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_value_has_its_json),
        cmocka_unit_test(what_json_cannot_say_is_said_as_near_as_it_can),
        cmocka_unit_test(base64_of_any_length_is_judged_as_one),
        cmocka_unit_test(what_a_word_lacks_is_said),
        cmocka_unit_test(arrays_keep_their_type),
        cmocka_unit_test(lists_of_no_one_shape_are_refused),
        cmocka_unit_test(an_array_is_what_python_writes),
        cmocka_unit_test(values_come_one_by_one),
        cmocka_unit_test(depth_has_an_end),
        cmocka_unit_test(the_locale_does_not_matter),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
