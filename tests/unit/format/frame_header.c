/* The frame header: real ones are rewritten byte for byte, every field is checked, and no
 * bytes do harm. */
#include "format/frame_header.h"

#include "format/array_meta.h"
#include "mutate.h"
#include "real_frames.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static uint64_t seed;

static cv_frame_header parse_ok(const uint8_t *bytes, size_t size)
{
    cv_frame_header header;
    cv_error err = {0};
    if (cv_frame_header_parse(bytes, size, &header, &err) != CV_OK)
        fail_msg("%s", err.message);
    return header;
}

static void real_headers_come_back_byte_for_byte(void **state)
{
    (void)state;
    for (int i = 0; i < N_REAL_FRAMES; i++) {
        const real_frame *frame = &REAL_FRAMES[i];
        uint32_t header_size = 0;
        assert_int_equal(cv_frame_header_peek(frame->header, 15, &header_size, NULL), CV_OK);
        assert_int_equal(header_size, frame->header_size);

        cv_frame_header header = parse_ok(frame->header, frame->header_size);
        header.header_size = 0; /* the writer computes it */
        cv_buffer out = {0};
        assert_int_equal(cv_frame_header_write(&header, &out, NULL), CV_OK);
        assert_int_equal(out.size, frame->header_size);
        assert_int_equal(header.header_size, frame->header_size);
        assert_memory_equal(out.data, frame->header, out.size);
        cv_buffer_free(&out);
    }
}

static void fields_mean_what_their_writer_meant(void **state)
{
    (void)state;
    cv_frame_header h = parse_ok(with_meta_header, sizeof with_meta_header);
    assert_int_equal(h.version, 2);
    assert_false(h.sparse);
    assert_false(h.variable_chunks);
    assert_int_equal(h.codec, 2);
    assert_int_equal(h.level, 9);
    assert_int_equal(h.split_mode, 2);
    assert_int_equal(h.filters[0], 2);
    assert_int_equal(h.filters[1], 4);
    assert_int_equal(h.filters_meta[1], 5);
    assert_int_equal(h.type_size, 2);
    assert_int_equal(h.block_size, 10);
    assert_int_equal(h.chunk_size, 20);
    assert_int_equal(h.nbytes, 60);
    assert_true(h.has_attributes);
    assert_int_equal(h.n_metalayers, 3);
    assert_string_equal(h.metalayers[1].name, "foo");
    assert_ptr_equal(cv_metalayers_find(h.metalayers, 3, "bar"), &h.metalayers[2]);
    assert_null(cv_metalayers_find(h.metalayers, 3, "baz"));
    assert_int_equal(h.metalayers[2].size, 5);

    h = parse_ok(plugin_header, sizeof plugin_header);
    assert_int_equal(h.codec, 35);
    assert_int_equal(h.codec_meta, 50);
    h = parse_ok(long_items_header, sizeof long_items_header);
    assert_int_equal(h.block_size, 3000);
    assert_int_equal(h.type_size, 1); /* of S300: to_cframe loses the size of long items */
    assert_true(h.use_dict);
}

/* Parses a copy of the plain header with bytes[at...] replaced. */
static cv_status parse_with(size_t at, const char *bytes, size_t n, cv_error *err)
{
    uint8_t copy[sizeof plain_header];
    memcpy(copy, plain_header, sizeof copy);
    memcpy(copy + at, bytes, n);
    cv_frame_header header;
    return cv_frame_header_parse(copy, sizeof copy, &header, err);
}

typedef struct bad_field {
    size_t at;
    const char *bytes;
    size_t size;
    cv_status status;
    const char *words; /* that the message must contain */
} bad_field;

static void each_bad_field_is_named(void **state)
{
    (void)state;
    static const bad_field cases[] = {
        {0, "\x9d", 1, CATERVA_ECORRUPT, "byte 0 is 0x9d instead of 0x9e"},
        {4, "X", 1, CATERVA_ECORRUPT, "byte 4"},
        {11, "\0\0\0\x61", 4, CATERVA_ECORRUPT, "claims 97 bytes, 165 were given"},
        {11, "\xff\xff\xff\xff", 4, CATERVA_ECORRUPT, "claims -1 bytes"},
        {16, "\0\0\0\0\0\0\0\x10", 8, CATERVA_ECORRUPT, "a frame of 16 bytes"},
        {16, "\xff\xff\xff\xff\xff\xff\xff\xff", 8, CATERVA_ECORRUPT, "a frame of"},
        {25, "\x14", 1, CATERVA_EUNSUPPORTED, "version 4 is newer than 3"},
        {25, "\x10", 1, CATERVA_ECORRUPT, "version 0"},
        {25, "\x02", 1, CATERVA_EUNSUPPORTED, "offsets are not 64 bits"},
        {26, "\x02", 1, CATERVA_EUNSUPPORTED, "frame type 2"},
        {27, "\x57", 1, CATERVA_EUNSUPPORTED, "unknown codec 7"},
        {27, "\x56", 1, CATERVA_ECORRUPT, "codec 5 is marked as a plugin"},
        {30, "\x80", 1, CATERVA_ECORRUPT, "bytes of data stored in"},
        {39, "\x80", 1, CATERVA_ECORRUPT, "bytes of data stored in"},
        {39, "\0\0\0\0\0\0\x10\0", 8, CATERVA_ECORRUPT, "4096 bytes of chunks"},
        {47, "\xd3", 1, CATERVA_ECORRUPT, "type_size: byte 47 is 0xd3 instead of 0xd2"},
        {48, "\0\0\0\0", 4, CATERVA_ECORRUPT, "items of 0"},
        {53, "\x80", 1, CATERVA_ECORRUPT, "blocks of -"},
        {58, "\x80", 1, CATERVA_ECORRUPT, "chunks of -"},
        {68, "\xc1", 1, CATERVA_ECORRUPT, "neither false nor true"},
        {70, "\x07", 1, CATERVA_ECORRUPT, "7 filters"},
        {85, "\x02", 1, CATERVA_EUNSUPPORTED, "unknown flags 0x02 0x00"},
        {86, "\x01", 1, CATERVA_EUNSUPPORTED, "unknown flags 0x00 0x01"},
        {92, "\0\x11", 2, CATERVA_ECORRUPT, "17 metalayers, at most 16"},
        {92, "\0\0", 2, CATERVA_ECORRUPT, "metalayer values: byte 94"},
        {94, "\xc4", 1, CATERVA_ECORRUPT, "not a short string"},
        {95, "\0", 1, CATERVA_ECORRUPT, "zero byte"},
        {100, "\0\0\0\x6c", 4, CATERVA_ECORRUPT, "at byte 108, it is at byte 107"},
        {105, "\0\x02", 2, CATERVA_ECORRUPT, "1 metalayer names but 2 values"},
        {108, "\0\0\1\0", 4, CATERVA_ECORRUPT, "needs 256 bytes at byte 112, but only 53"},
        {108, "\0\0\0\x34", 4, CATERVA_ECORRUPT, "1 bytes are left over"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cv_error err = {0};
        cv_status status = parse_with(cases[i].at, cases[i].bytes, cases[i].size, &err);
        if (status != cases[i].status || !strstr(err.message, cases[i].words))
            fail_msg("case %zu: %d \"%s\", not \"%s\"", i, status, err.message,
                     cases[i].words);
    }
}

static void the_split_mode_is_two_bits(void **state)
{
    (void)state;
    uint8_t copy[sizeof plain_header];
    memcpy(copy, plain_header, sizeof copy);
    copy[28] = 0xff;
    assert_int_equal(parse_ok(copy, sizeof copy).split_mode, 4);
}

static void peek_says_what_is_no_frame(void **state)
{
    (void)state;
    uint32_t size = 7;
    cv_error err = {0};
    assert_int_equal(cv_frame_header_peek((const uint8_t *)"", 0, &size, &err),
                     CATERVA_ECORRUPT);
    assert_non_null(strstr(err.message, "not a Blosc2 frame"));
    assert_int_equal(
        cv_frame_header_peek((const uint8_t *)"PK\3\4 a zip archive", 19, &size, &err),
        CATERVA_ECORRUPT);
    assert_non_null(strstr(err.message, "not a Blosc2 frame"));

    uint8_t tiny[15];
    memcpy(tiny, plain_header, sizeof tiny);
    tiny[14] = 96;
    assert_int_equal(cv_frame_header_peek(tiny, 15, &size, &err), CATERVA_ECORRUPT);
    assert_non_null(strstr(err.message, "96 bytes, fewer than 97"));
    assert_int_equal(size, 7);
}

static void a_failed_write_leaves_the_buffer(void **state)
{
    (void)state;
    cv_frame_header header = parse_ok(plain_header, sizeof plain_header);
    cv_buffer out = {0};
    assert_int_equal(cv_buffer_append(&out, "before", 6, NULL), CV_OK);
    memset(header.metalayers[0].name, 'n', sizeof header.metalayers[0].name);
    assert_int_equal(cv_frame_header_write(&header, &out, NULL), CATERVA_EINVAL);
    assert_int_equal(out.size, 6);
    header.n_metalayers = CV_MAX_METALAYERS + 1;
    assert_int_equal(cv_frame_header_write(&header, &out, NULL), CATERVA_EINVAL);
    assert_int_equal(out.size, 6);
    cv_buffer_free(&out);
}

/* What parses can be written and parsed again. */
static void check_mutant(const uint8_t *bytes, size_t size, void *context)
{
    int *n_parsed = context;
    cv_frame_header header, again;
    cv_error err = {0};
    uint32_t header_size = 0;
    (void)cv_frame_header_peek(bytes, size, &header_size, &err);
    if (cv_frame_header_parse(bytes, size, &header, &err) != CV_OK) {
        assert_true(err.message[0] != 0);
        return;
    }
    cv_buffer out = {0};
    assert_int_equal(cv_frame_header_write(&header, &out, NULL), CV_OK);
    assert_int_equal(out.size, size);
    again = parse_ok(out.data, out.size);
    assert_int_equal(again.nbytes, header.nbytes);
    assert_int_equal(again.codec, header.codec);
    assert_int_equal(again.n_metalayers, header.n_metalayers);
    cv_buffer_free(&out);
    (*n_parsed)++;
}

static void no_bytes_do_harm(void **state)
{
    (void)state;
    rng random = rng_from_seed(seed);
    int n_parsed = 0;
    for (int i = 0; i < N_REAL_FRAMES; i++) {
        const real_frame *frame = &REAL_FRAMES[i];
        check_truncations(frame->header, frame->header_size, check_mutant, &n_parsed);
        assert_int_equal(n_parsed, 0);
    }
    for (int i = 0; i < N_REAL_FRAMES; i++)
        check_mutants(&random, 25000, REAL_FRAMES[i].header, REAL_FRAMES[i].header_size,
                      check_mutant, &n_parsed);
    assert_true(n_parsed > 0);
}

/* ---- Files that others wrote -------------------------------------------- */

static uint8_t *load(const char *path, size_t *size)
{
    FILE *file = fopen(path, "rb");
    if (!file) return NULL;
    uint8_t *bytes = malloc(1 << 20);
    assert_non_null(bytes);
    *size = fread(bytes, 1, 1 << 20, file);
    fclose(file);
    return bytes;
}

typedef struct real_file {
    const char *path;
    const char *metalayer; /* NULL: not an array */
    int ndim;
    const char *dtype;
} real_file;

static void check_real_file(const uint8_t *bytes, size_t size, const real_file *file)
{
    uint32_t header_size = 0, trailer_size = 0;
    cv_trailer trailer;
    cv_array_meta meta;
    assert_int_equal(cv_frame_header_peek(bytes, size, &header_size, NULL), CV_OK);
    cv_frame_header header = parse_ok(bytes, header_size);
    assert_in_range(header.frame_size, header_size + CV_TRAILER_MIN, size);

    size_t end = (size_t)header.frame_size;
    assert_int_equal(cv_trailer_peek(bytes + end - CV_TRAILER_TAIL,
                                     (int64_t)end - CV_TRAILER_TAIL, &trailer_size, NULL),
                     CV_OK);
    size_t start = end - trailer_size;
    assert_int_equal(
        cv_trailer_parse(bytes + start, trailer_size, (int64_t)start, &trailer, NULL), CV_OK);
    assert_int_equal(trailer.n_attributes > 0, header.has_attributes);
    cv_trailer_free(&trailer);

    if (!file->metalayer) return;
    const cv_metalayer *layer =
        cv_metalayers_find(header.metalayers, header.n_metalayers, file->metalayer);
    assert_non_null(layer);
    assert_int_equal(cv_array_meta_parse(layer->data, layer->size, file->dtype == NULL,
                                         layer->data - bytes, &meta, NULL),
                     CV_OK);
    assert_int_equal(meta.ndim, file->ndim);
    if (!file->dtype) return;
    assert_int_equal(meta.dtype_size, strlen(file->dtype));
    assert_memory_equal(meta.dtype, file->dtype, meta.dtype_size);
}

static void files_of_others_parse(void **state)
{
    (void)state;
    static const real_file files[] = {
        {"example_day_month_temp.b2nd", "b2nd", 2, "|u1"},
        {"ds-3d.b2nd", "b2nd", 3, "<f4"},
        {"ds-2d-fields.b2nd", "b2nd", 2, "[('a', '<f4'), ('b', '<f8')]"},
        {"ds-sc-attr.b2nd", "b2nd", 0, "<U6"},
        {"caterva-2d-i4-lz4.cat", "caterva", 2, NULL},
        {"caterva-4d-u1-blosclz-sparse.cat/chunks.b2frame", "caterva", 4, NULL},
        {"varchunks-lz4-3.0.0.b2frame", NULL, 0, NULL},
        {"frame_simple-zstd.b2frame", NULL, 0, NULL},
    };
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        char path[1024];
        size_t size = 0;
        snprintf(path, sizeof path, "%s/../shared/data/%s", CATERVA_SOURCE_DIR,
                 files[i].path);
        uint8_t *bytes = load(path, &size);
        if (!bytes) {
            print_message("skipped, no such file: %s\n", path);
            skip();
        }
        check_real_file(bytes, size, &files[i]);
        free(bytes);
    }
}

int main(int argc, char **argv)
{
    seed = seed_argument(argc, argv, 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(real_headers_come_back_byte_for_byte),
        cmocka_unit_test(fields_mean_what_their_writer_meant),
        cmocka_unit_test(each_bad_field_is_named),
        cmocka_unit_test(the_split_mode_is_two_bits),
        cmocka_unit_test(peek_says_what_is_no_frame),
        cmocka_unit_test(a_failed_write_leaves_the_buffer),
        cmocka_unit_test(no_bytes_do_harm),
        cmocka_unit_test(files_of_others_parse),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
