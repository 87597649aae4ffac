/* The trailer and its attributes: real ones are rewritten byte for byte, invalid ones are
 * reported, and no bytes do harm. */
#include "format/frame_header.h"

#include "mutate.h"
#include "real_frames.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static uint64_t seed;

static void real_trailers_come_back_byte_for_byte(void **state)
{
    (void)state;
    for (int i = 0; i < N_REAL_FRAMES; i++) {
        const real_frame *frame = &REAL_FRAMES[i];
        const uint8_t *tail = frame->trailer + frame->trailer_size - CV_TRAILER_TAIL;
        uint32_t size = 0;
        assert_int_equal(cv_trailer_peek(tail, 5000, &size, NULL), CV_OK);
        assert_int_equal(size, frame->trailer_size);

        cv_trailer trailer;
        assert_int_equal(cv_trailer_parse(frame->trailer, size, 5000, &trailer, NULL), CV_OK);
        assert_int_equal(trailer.fingerprint_type, 0);
        cv_buffer out = {0};
        assert_int_equal(
            cv_trailer_write(trailer.attributes, trailer.n_attributes, &out, NULL), CV_OK);
        assert_int_equal(out.size, size);
        assert_memory_equal(out.data, frame->trailer, size);
        cv_buffer_free(&out);
        cv_trailer_free(&trailer);
    }
}

static void attributes_have_names_and_chunks(void **state)
{
    (void)state;
    cv_trailer trailer;
    assert_int_equal(
        cv_trailer_parse(with_meta_trailer, sizeof with_meta_trailer, 0, &trailer, NULL),
        CV_OK);
    assert_int_equal(trailer.n_attributes, 2);
    assert_string_equal(trailer.attributes[0].name, "x");
    assert_string_equal(trailer.attributes[1].name, "longer name");
    assert_int_equal(trailer.attributes[0].size, 32 + 6); /* a chunk of "\xa5hello" */
    assert_memory_equal(trailer.attributes[0].data + 32, "\xa5hello", 6);
    cv_trailer_free(&trailer);
    cv_trailer_free(NULL);
}

static void a_trailer_starts_where_the_buffer_ends(void **state)
{
    (void)state;
    static const uint8_t value[3] = {1, 2, 3};
    cv_metalayer attributes[2] = {{"first", value, 3}, {"", value, 0}};
    cv_buffer out = {0};
    assert_int_equal(cv_buffer_append(&out, "index", 5, NULL), CV_OK);
    assert_int_equal(cv_trailer_write(attributes, 2, &out, NULL), CV_OK);

    cv_trailer trailer;
    assert_int_equal(cv_trailer_parse(out.data + 5, out.size - 5, 5, &trailer, NULL), CV_OK);
    assert_int_equal(trailer.n_attributes, 2);
    assert_memory_equal(trailer.attributes[0].data, value, 3);
    assert_string_equal(trailer.attributes[1].name, "");
    assert_int_equal(trailer.attributes[1].size, 0);
    cv_trailer_free(&trailer);
    cv_buffer_free(&out);
}

static void refuses_what_cannot_be_written(void **state)
{
    (void)state;
    cv_buffer out = {0};
    cv_metalayer attribute = {{0}, NULL, 0};
    memset(attribute.name, 'n', sizeof attribute.name);
    assert_int_equal(cv_trailer_write(&attribute, 1, &out, NULL), CATERVA_EINVAL);
    assert_int_equal(out.size, 0);

    /* Sizes above 31 bits are refused before a byte of the values is read. */
    static const uint8_t nothing[1];
    cv_metalayer large[2] = {{"a", nothing, INT32_MAX - 60}, {"b", nothing, 40}};
    cv_error err = {0};
    assert_int_equal(cv_trailer_write(large, 2, &out, &err), CATERVA_EINVAL);
    assert_non_null(strstr(err.message, "\"b\" of 40 bytes would end behind 2 GiB"));
    large[0].size = UINT32_MAX;
    assert_int_equal(cv_trailer_write(large, 1, &out, &err), CATERVA_EINVAL);
    assert_int_equal(out.size, 0);

    assert_int_equal(cv_trailer_write(NULL, UINT16_MAX + 1, &out, &err), CATERVA_EINVAL);
    assert_int_equal(cv_trailer_write(NULL, -1, &out, &err), CATERVA_EINVAL);
    assert_non_null(strstr(err.message, "-1 metalayers do not fit"));
    enum { MANY = 2000 };
    cv_metalayer *names = calloc(MANY, sizeof *names);
    assert_non_null(names);
    for (int i = 0; i < MANY; i++) memset(names[i].name, 'n', CV_MAX_NAME);
    assert_int_equal(cv_trailer_write(names, MANY, &out, &err), CATERVA_EINVAL);
    assert_non_null(strstr(err.message, "the names of 2000 metalayers take"));
    free(names);
    assert_int_equal(out.size, 0);
    cv_buffer_free(&out);
}

static void many_attributes_are_read(void **state)
{
    (void)state;
    enum { MANY = 5000 };
    cv_metalayer *attributes = calloc(MANY, sizeof *attributes);
    assert_non_null(attributes);
    for (int i = 0; i < MANY; i++)
        attributes[i] = (cv_metalayer){{(char)('a' + i % 26), 0}, NULL, 0};
    cv_buffer out = {0};
    cv_trailer trailer;
    assert_int_equal(cv_trailer_write(attributes, MANY, &out, NULL), CV_OK);
    assert_int_equal(cv_trailer_parse(out.data, out.size, 0, &trailer, NULL), CV_OK);
    assert_int_equal(trailer.n_attributes, MANY);
    assert_string_equal(trailer.attributes[27].name, "b");
    cv_trailer_free(&trailer);

    out.data[7] = 0xff; /* 65,416 of them in as many bytes as before */
    cv_error err = {0};
    assert_int_equal(cv_trailer_parse(out.data, out.size, 0, &trailer, &err),
                     CATERVA_ECORRUPT);
    assert_non_null(strstr(err.message, "claims 65416 attributes"));
    cv_buffer_free(&out);
    free(attributes);
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
        {0, 0x95, CATERVA_ECORRUPT, "byte 100 is 0x95"},
        {1, 0x02, CATERVA_EUNSUPPORTED, "version 2 is not 1"},
        {2, 0x92, CATERVA_ECORRUPT, "metalayer section: byte 102"},
        {8, 0x04, CATERVA_ECORRUPT, "claims 4 attributes in 33 bytes"},
        {11, 0x01, CATERVA_ECORRUPT, "0 metalayer names but 1 values"},
        {12, 0xcf, CATERVA_ECORRUPT, "trailer size: byte 112"},
        {16, 0x24, CATERVA_ECORRUPT, "claims 36 bytes, it has 35"},
        {17, 0xd7, CATERVA_ECORRUPT, "fingerprint: byte 117"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint8_t copy[sizeof plain_trailer];
        memcpy(copy, plain_trailer, sizeof copy);
        copy[cases[i].at] = cases[i].byte;
        cv_trailer trailer;
        cv_error err = {0};
        cv_status status = cv_trailer_parse(copy, sizeof copy, 100, &trailer, &err);
        if (status != cases[i].status || !strstr(err.message, cases[i].words))
            fail_msg("case %zu: %d \"%s\"", i, status, err.message);
    }
}

static void peek_bounds_the_size(void **state)
{
    (void)state;
    uint8_t tail[CV_TRAILER_TAIL];
    memcpy(tail, plain_trailer + sizeof plain_trailer - sizeof tail, sizeof tail);
    uint32_t size = 0;
    cv_error err = {0};
    assert_int_equal(cv_trailer_peek(tail, 12, &size, &err), CV_OK);
    assert_int_equal(cv_trailer_peek(tail, 11, &size, &err), CATERVA_ECORRUPT);
    assert_non_null(strstr(err.message, "claims 35 bytes in a frame of 34"));
    tail[4] = 34;
    assert_int_equal(cv_trailer_peek(tail, 5000, &size, &err), CATERVA_ECORRUPT);
    tail[0] = 0;
    assert_int_equal(cv_trailer_peek(tail, 5000, &size, &err), CATERVA_ECORRUPT);
    assert_int_equal(size, 35);
}

static void check_mutant(const uint8_t *bytes, size_t size, void *context)
{
    int *n_parsed = context;
    cv_trailer trailer;
    cv_error err = {0};
    if (cv_trailer_parse(bytes, size, 0, &trailer, &err) != CV_OK) {
        assert_true(err.message[0] != 0);
        return;
    }
    cv_buffer out = {0};
    assert_int_equal(cv_trailer_write(trailer.attributes, trailer.n_attributes, &out, NULL),
                     CV_OK);
    assert_int_equal(out.size, size);
    cv_buffer_free(&out);
    cv_trailer_free(&trailer);
    (*n_parsed)++;
}

static void no_bytes_do_harm(void **state)
{
    (void)state;
    rng random = rng_from_seed(seed);
    int n_parsed = 0;
    check_truncations(with_meta_trailer, sizeof with_meta_trailer, check_mutant, &n_parsed);
    assert_int_equal(n_parsed, 0);
    check_mutants(&random, 80000, with_meta_trailer, sizeof with_meta_trailer, check_mutant,
                  &n_parsed);
    check_mutants(&random, 20000, plain_trailer, sizeof plain_trailer, check_mutant,
                  &n_parsed);
    assert_true(n_parsed > 0);
}

int main(int argc, char **argv)
{
    seed = seed_argument(argc, argv, 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(real_trailers_come_back_byte_for_byte),
        cmocka_unit_test(attributes_have_names_and_chunks),
        cmocka_unit_test(a_trailer_starts_where_the_buffer_ends),
        cmocka_unit_test(refuses_what_cannot_be_written),
        cmocka_unit_test(many_attributes_are_read),
        cmocka_unit_test(each_bad_field_is_named),
        cmocka_unit_test(peek_bounds_the_size),
        cmocka_unit_test(no_bytes_do_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
