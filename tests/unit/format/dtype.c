/* NumPy type descriptions: what str(numpy.dtype) prints is accepted, invalid ones are
 * reported with the character, and no bytes do harm. Sizes and offsets are NumPy's. */
#include "format/dtype.h"

#include "mutate.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#define MACHINE '>'
#else
#define MACHINE '<'
#endif

static uint64_t seed;

static caterva_dtype *parse_ok(const char *text)
{
    caterva_dtype *type = NULL;
    cv_error err = {0};
    if (caterva_dtype_parse(text, &type, &err) != CV_OK)
        fail_msg("%s: %s", text, err.message);
    return type;
}

typedef struct scalar {
    const char *text;
    char kind, byte_order;
    int64_t item_size;
    const char *unit;
} scalar;

static void scalars_are_understood(void **state)
{
    (void)state;
    static const scalar scalars[] = {
        {"|b1", 'b', '|', 1, ""},
        {"|i1", 'i', '|', 1, ""},
        {"<i2", 'i', '<', 2, ""},
        {">i4", 'i', '>', 4, ""},
        {"<i8", 'i', '<', 8, ""},
        {"|u1", 'u', '|', 1, ""},
        {"<u2", 'u', '<', 2, ""},
        {"<u4", 'u', '<', 4, ""},
        {">u8", 'u', '>', 8, ""},
        {"<f2", 'f', '<', 2, ""},
        {"<f4", 'f', '<', 4, ""},
        {">f8", 'f', '>', 8, ""},
        {"<f16", 'f', '<', 16, ""},
        {"<c8", 'c', '<', 8, ""},
        {"<c16", 'c', '<', 16, ""},
        {"<c32", 'c', '<', 32, ""},
        {"|S1", 'S', '|', 1, ""},
        {"|S300", 'S', '|', 300, ""},
        {"<U6", 'U', '<', 24, ""},
        {">U1", 'U', '>', 4, ""},
        {"|V4", 'V', '|', 4, ""},
        {"|S0", 'S', '|', 0, ""},
        {"<M8", 'M', '<', 8, ""},
        {"<M8[ns]", 'M', '<', 8, "ns"},
        {"<M8[25s]", 'M', '<', 8, "25s"},
        {">M8[D]", 'M', '>', 8, "D"},
        {"<m8", 'm', '<', 8, ""},
        {"<m8[us]", 'm', '<', 8, "us"},
        {"<m8[7W]", 'm', '<', 8, "7W"},
        {"datetime64[ns]", 'M', MACHINE, 8, "ns"},
        {"timedelta64[25s]", 'm', MACHINE, 8, "25s"},
        {"datetime64", 'M', MACHINE, 8, ""},
        {"bool", 'b', '|', 1, ""},
        {"int8", 'i', '|', 1, ""},
        {"uint16", 'u', MACHINE, 2, ""},
        {"int64", 'i', MACHINE, 8, ""},
        {"float16", 'f', MACHINE, 2, ""},
        {"float32", 'f', MACHINE, 4, ""},
        {"float64", 'f', MACHINE, 8, ""},
        {"float128", 'f', MACHINE, 16, ""},
        {"complex64", 'c', MACHINE, 8, ""},
        {"complex128", 'c', MACHINE, 16, ""},
        {"?", 'b', '|', 1, ""},
        {"B", 'u', '|', 1, ""},
        {"d", 'f', MACHINE, 8, ""},
        {">i1", 'i', '|', 1, ""},
        {"=f4", 'f', MACHINE, 4, ""},
        {"i4", 'i', MACHINE, 4, ""},
    };
    for (size_t i = 0; i < sizeof scalars / sizeof *scalars; i++) {
        caterva_dtype *type = parse_ok(scalars[i].text);
        if (type->kind != scalars[i].kind || type->byte_order != scalars[i].byte_order ||
            type->item_size != scalars[i].item_size ||
            strcmp(type->unit, scalars[i].unit) != 0)
            fail_msg("%s: %c%c%d[%s]", scalars[i].text, type->byte_order, type->kind,
                     (int)type->item_size, type->unit);
        assert_int_equal(type->ndim, 0);
        assert_int_equal(type->n_fields, 0);
        caterva_dtype_free(type);
    }
}

static void lists_of_fields_are_understood(void **state)
{
    (void)state;
    caterva_dtype *type =
        parse_ok("[('a', '<f4'), ('b', '<f8', (3,)), (('title', 'c'), '?'), "
                 "('d', [('x', '>i2'), ('y', '<U2', (2, 3))], (2,))]");
    assert_int_equal(type->kind, 'V');
    assert_int_equal(type->byte_order, '|');
    assert_int_equal(type->item_size, 4 + 24 + 1 + 2 * (2 + 48));
    assert_int_equal(type->n_fields, 4);
    assert_string_equal(type->fields[0].name, "a");
    assert_int_equal(type->fields[1].offset, 4);
    assert_int_equal(type->fields[1].dtype->kind, 'f');
    assert_int_equal(type->fields[1].dtype->ndim, 1);
    assert_int_equal(type->fields[1].dtype->shape[0], 3);
    assert_int_equal(type->fields[1].dtype->item_size, 24);
    assert_string_equal(type->fields[2].name, "c");
    const caterva_dtype *inner = type->fields[3].dtype;
    assert_int_equal(type->fields[3].offset, 29);
    assert_int_equal(inner->kind, 'V');
    assert_int_equal(inner->item_size, 100);
    assert_int_equal(inner->shape[0], 2);
    assert_int_equal(inner->fields[1].offset, 2);
    assert_int_equal(inner->fields[1].dtype->ndim, 2);
    assert_int_equal(inner->fields[1].dtype->shape[1], 3);
    caterva_dtype_free(type);
}

static void dictionaries_are_understood(void **state)
{
    (void)state;
    caterva_dtype *type =
        parse_ok("{'names': ['a', 'b'], 'formats': ['u1', ('<f8', (2,))], 'offsets': [3, 8], "
                 "'titles': [None, 'B'], 'itemsize': 40, 'aligned': True}");
    assert_int_equal(type->item_size, 40);
    assert_int_equal(type->n_fields, 2);
    assert_int_equal(type->fields[0].offset, 3);
    assert_int_equal(type->fields[1].offset, 8);
    assert_int_equal(type->fields[1].dtype->item_size, 16);
    caterva_dtype_free(type);

    /* Lists inside an aligned dictionary are laid out as C does. */
    type = parse_ok("{'names': ['s'], 'formats': [[('a', 'i1'), ('b', '<i4'), ('c', 'i1')]], "
                    "'offsets': [0], 'itemsize': 16, 'aligned': True}");
    assert_int_equal(type->fields[0].dtype->item_size, 12);
    assert_int_equal(type->fields[0].dtype->fields[1].offset, 4);
    caterva_dtype_free(type);
    type = parse_ok("{'names': ['s'], 'formats': [[('a', 'i1'), ('b', '<i4'), ('c', 'i1')]], "
                    "'offsets': [0], 'itemsize': 16}");
    assert_int_equal(type->fields[0].dtype->item_size, 6);
    assert_int_equal(type->fields[0].dtype->fields[1].offset, 1);
    caterva_dtype_free(type);

    /* A complex number is aligned as its parts are. */
    type = parse_ok("{'names': ['s'], 'formats': [[('a', 'i1'), ('b', '<c16')]], "
                    "'offsets': [0], 'itemsize': 24, 'aligned': True}");
    assert_int_equal(type->fields[0].dtype->item_size, 24);
    assert_int_equal(type->fields[0].dtype->fields[1].offset, 8);
    caterva_dtype_free(type);
}

static void names_are_unescaped(void **state)
{
    (void)state;
    caterva_dtype *type =
        parse_ok("[(\"it's\", 'i1'), ('q\"\\'', 'i1'), ('b\\\\\\n\\t', 'i1'), "
                 "('\\xe9\\u20ac\\U0001f600', 'i1'), ('\xc3\xa9', 'i1')]");
    assert_string_equal(type->fields[0].name, "it's");
    assert_string_equal(type->fields[1].name, "q\"'");
    assert_string_equal(type->fields[2].name, "b\\\n\t");
    assert_string_equal(type->fields[3].name, "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80");
    assert_string_equal(type->fields[4].name, "\xc3\xa9");
    caterva_dtype_free(type);
}

static void wrong_descriptions_are_named(void **state)
{
    (void)state;
    static const struct {
        const char *text, *words;
    } cases[] = {
        {"", "no type"},
        {"<", "character 1: no type"},
        {"<f3", "impossible size in \"<f3\""},
        {"O", "Python objects"},
        {"|O", "Python objects"},
        {"<i4x", "character 3: unexpected text"},
        {"Float32", "unknown type"},
        {"StringDType()", "unknown type"},
        {"U2147483647", "impossible size"},
        {"S99999999999", "the size is too large"},
        {"<M8[qq]", "unknown time unit"},
        {"<M8[ns", "unknown time unit"},
        {"<M8[0s]", "impossible time unit"},
        {"[", "'(' is missing"},
        {"[('a', '<f4')", "character 13: ']' is missing"},
        {"[('a', '<f4')]]", "unexpected text"},
        {"[('a')]", "',' is missing"},
        {"[('a', '<f4' (3,))]", "')' is missing"},
        {"[('a, '<f4')]", "',' is missing"},
        {"[('a', 'O')]", "character 8: Python objects"},
        {"[('a', 'S2147483647'), ('b', 'i1')]", "the item exceeds 2147483647 bytes"},
        {"[('a', 'i1', (65536, 65536))]", "the item exceeds 2147483647 bytes"},
        {"[('a', 'i1', (1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1))]", "more than 16 dimensions"},
        {"[('a', ('i1', (1,1,1,1,1,1,1,1,1)), (1,1,1,1,1,1,1,1))]",
         "a sub-array of 17 dimensions"},
        {"{'names': ['a', 'b'], 'formats': ['<i4', 'S2147483641'], 'aligned': True}",
         "the item exceeds 2147483647 bytes"},
        {"U2147483648", "the size is too large"},
        {"[('a', 'i1', (-1,))]", "a number is missing"},
        {"[('a', 'i1', (9999999999,))]", "the number exceeds"},
        {"[('\\x00', 'i1')]", "U+0000 cannot stand in a name"},
        {"[('\\ud800', 'i1')]", "U+D800 cannot stand in a name"},
        {"[('\\q', 'i1')]", "unknown escape"},
        {"{}", "names are missing"},
        {"{'names': ['a']}", "formats are missing"},
        {"{'names': ['a', 'b'], 'formats': ['i1']}", "2 names, 1 formats"},
        {"{'names': ['a'], 'formats': ['i1'], 'offsets': [0, 1]}", "2 offsets"},
        {"{'names': ['a'], 'names': ['b']}", "the same list twice"},
        {"{'names': ['a'], 'formats': ['f4'], 'offsets': [2], 'itemsize': 4}",
         "ends at byte 6 of an item of 4"},
        {"{'name': ['a']}", "unknown key 'name'"},
        {"((((((((((((((((((((((((", "nested deeper than 16"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        caterva_dtype *type = NULL;
        cv_error err = {0};
        cv_status status = caterva_dtype_parse(cases[i].text, &type, &err);
        if (status != CATERVA_EINVAL || !strstr(err.message, cases[i].words))
            fail_msg("%s: %d \"%s\", not \"%s\"", cases[i].text, status, err.message,
                     cases[i].words);
        assert_null(type);
    }
    caterva_dtype *type = NULL;
    assert_int_equal(caterva_dtype_parse(NULL, &type, NULL), CATERVA_EINVAL);
    assert_int_equal(caterva_dtype_parse("<f4", NULL, NULL), CATERVA_EINVAL);
    caterva_dtype_free(NULL);
}

static void the_text_needs_no_terminator(void **state)
{
    (void)state;
    static const char text[] = "<f8garbage";
    int64_t size = 0;
    assert_int_equal(cv_dtype_item_size(text, 3, &size, NULL), CV_OK);
    assert_int_equal(size, 8);
    assert_int_equal(cv_dtype_item_size(text, 4, &size, NULL), CATERVA_EINVAL);
    assert_int_equal(cv_dtype_item_size("<f8\0", 4, &size, NULL), CATERVA_EINVAL);
}

/* A field never ends after its item. */
static void check_fields(const caterva_dtype *type)
{
    int64_t items = 1;
    assert_true(type->item_size >= 0 && type->item_size <= INT32_MAX);
    for (int i = 0; i < type->ndim; i++) items *= type->shape[i];
    for (int i = 0; i < type->n_fields; i++) {
        const caterva_field *field = &type->fields[i];
        assert_non_null(field->name);
        assert_true(field->offset >= 0);
        if (items > 0)
            assert_true(field->offset + field->dtype->item_size <= type->item_size / items);
        check_fields(field->dtype);
    }
}

static void check_mutant(const uint8_t *bytes, size_t size, void *context)
{
    int *n_parsed = context;
    caterva_dtype *type = NULL;
    cv_error err = {0};
    if (cv_dtype_parse((const char *)bytes, size, &type, &err) != CV_OK) {
        assert_true(err.message[0] != 0);
        assert_null(type);
        return;
    }
    check_fields(type);
    caterva_dtype_free(type);
    (*n_parsed)++;
}

static void no_bytes_do_harm(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "<M8[25s]",
        "datetime64[ns]",
        "[('a', '<f4'), ('b', '<f8', (3,)), (('t', 'c'), [('x', '>i2'), ('y', 'U2')], (2,))]",
        "{'names': ['a', 'b'], 'formats': ['u1', ('<f8', (2, 3))], 'offsets': [3, 8], "
        "'titles': [None, 'B'], 'itemsize': 80, 'aligned': True}",
        "[('\\xe9\\u20ac\\U0001f600', 'i1'), (\"it's\", {'names': ['q'], 'formats': [[('z', "
        "'S3')]], 'offsets': [4], 'itemsize': 9})]",
    };
    rng random = rng_from_seed(seed);
    int n_parsed = 0;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        const uint8_t *bytes = (const uint8_t *)texts[i];
        check_truncations(bytes, strlen(texts[i]), check_mutant, &n_parsed);
        check_mutants(&random, 30000, bytes, strlen(texts[i]), check_mutant, &n_parsed);
    }
    assert_true(n_parsed > 0);
}

int main(int argc, char **argv)
{
    seed = seed_argument(argc, argv, 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scalars_are_understood),
        cmocka_unit_test(lists_of_fields_are_understood),
        cmocka_unit_test(dictionaries_are_understood),
        cmocka_unit_test(names_are_unescaped),
        cmocka_unit_test(wrong_descriptions_are_named),
        cmocka_unit_test(the_text_needs_no_terminator),
        cmocka_unit_test(no_bytes_do_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
