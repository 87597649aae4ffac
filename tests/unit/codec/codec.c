/* Decoding a chunk block by block, in ranges and whole gives the same items,
 * for every codec, filter and item size; special chunks and the
 * index are chunks like others.
 *
 * usage: test_codec [SEED] */
#include "codec/decode.h"
#include "codec/encode.h"
#include "codec/spec.h"
#include "codec_setting.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static uint64_t seed;

/* Decodes in place, from a buffer whose bytes before and after must not change. */
static void check_block_in_place(const setting *s, const packed *p, cv_decoder *decoder,
                                 int32_t b, const uint8_t *whole)
{
    cv_error err;
    size_t size = (size_t)(p->ranges[b].end - p->ranges[b].start);
    uint8_t *room = check_alloc(CV_BLOCK_PREFIX + size),
            *saved = check_alloc(CV_BLOCK_PREFIX + size);
    uint8_t *dst = check_alloc((size_t)s->spec.block_bytes);
    memset(room, 0xab, CV_BLOCK_PREFIX);
    memcpy(room + CV_BLOCK_PREFIX, p->chunk.data + p->ranges[b].start, size);
    memcpy(saved, room, CV_BLOCK_PREFIX + size);
    cv_packed_block block = block_of(s, p, b, p->chunk.data);
    block.streams = room + CV_BLOCK_PREFIX;
    block.in_place = true;
    CHECK_OK(cv_decode_block(decoder, &block, dst, s->spec.block_bytes, &err), err);
    CHECK(memcmp(dst, whole + (size_t)b * (size_t)s->spec.block_bytes,
                 (size_t)s->spec.block_bytes) == 0,
          "%s: block %d in place", s->name, b);
    CHECK(memcmp(room, saved, CV_BLOCK_PREFIX + size) == 0, "%s: bytes not restored",
          s->name);
    free(dst);
    free(room);
    free(saved);
}

static void check_block(const setting *s, const packed *p, cv_decoder *decoder, int32_t b,
                        const uint8_t *whole)
{
    cv_error err;
    size_t size = (size_t)s->spec.block_bytes;
    uint8_t *dst = check_alloc(size);
    const uint8_t *expected = whole + (size_t)b * size;
    if (p->access == CV_ACCESS_BLOCK) {
        cv_packed_block block = block_of(s, p, b, p->chunk.data);
        CHECK_OK(cv_decode_block(decoder, &block, dst, s->spec.block_bytes, &err), err);
        CHECK(memcmp(dst, expected, size) == 0, "%s: block %d alone", s->name, b);
        memset(dst, 0, size);
        block.chunk = p->chunk.data;
        block.chunk_size = (int32_t)p->chunk.size;
        CHECK_OK(cv_decode_block(decoder, &block, dst, s->spec.block_bytes, &err), err);
        CHECK(memcmp(dst, expected, size) == 0, "%s: block %d from its chunk", s->name, b);
        check_block_in_place(s, p, decoder, b, whole);
    }
    if (p->access == CV_ACCESS_RAW)
        CHECK(memcmp(p->chunk.data + 32 + (size_t)b * size, expected, size) == 0, "%s: raw",
              s->name);
    if (p->access != CV_ACCESS_CHUNK) {
        memset(dst, 0, size);
        CHECK_OK(cv_decode_range(decoder, p->chunk.data, (int32_t)p->chunk.size,
                                 b * s->spec.block_bytes, s->spec.block_bytes, dst, &err),
                 err);
        CHECK(memcmp(dst, expected, size) == 0, "%s: block %d as a range", s->name, b);
    }
    free(dst);
}

/* Returns the access that the chunk's blocks allow. */
static cv_block_access check_setting(const setting *s)
{
    cv_error err;
    cv_decoder *decoder;
    rng r = rng_from_seed(seed);
    uint8_t *items = make_items(s, &r), *whole = check_alloc((size_t)s->spec.chunk_bytes);
    packed p = encode(s, items);
    CHECK_OK(cv_decoder_create(&s->spec, &decoder, &err), err);
    CHECK_OK(cv_decode_chunk(decoder, p.chunk.data, (int32_t)p.chunk.size, whole,
                             s->spec.chunk_bytes, &err),
             err);
    if (!s->lossy)
        CHECK(memcmp(whole, items, (size_t)s->spec.chunk_bytes) == 0, "%s: whole", s->name);
    for (int32_t b = 0; b < s->n_blocks; b++) check_block(s, &p, decoder, b, whole);
    cv_block_access access = p.access;
    cv_decoder_free(decoder);
    free_packed(&p);
    free(items);
    free(whole);
    return access;
}

/* ---- Every codec, filter and size ------------------------------------------------- */

static void every_codec_filter_and_item_size(void **state)
{
    (void)state;
    static const int filters[][2] = {{0, 0}, {0, 1}, {0, 2}, {0, 3}, {3, 1}, {1, 35}};
    int seen[4] = {0};
    for (size_t c = 0; c < COUNT(codecs); c++) {
        for (size_t f = 0; f < COUNT(filters); f++) {
            for (size_t i = 0; i < COUNT(sizes); i++) {
                if (codecs[c] == CATERVA_CODEC_NDLZ) continue; /* 2-d: below */
                if (filters[f][1] == CATERVA_FILTER_BYTEDELTA && sizes[i] > 255) continue;
                setting s = make_setting(codecs[c], filters[f], sizes[i], 9);
                if (filters[f][1] == CATERVA_FILTER_BYTEDELTA)
                    s.spec.filters_meta[5] = (uint8_t)sizes[i];
                seen[check_setting(&s)]++;
                free_setting(&s);
            }
        }
    }
    assert_true(seen[CV_ACCESS_BLOCK] > 100);
    assert_true(seen[CV_ACCESS_CHUNK] > 50);
}

static void any_number_of_blocks(void **state)
{
    (void)state;
    static const int32_t counts[] = {1, 2, 63, 64, 65, MAX_BLOCKS};
    const int shuffle[] = {0, 1};
    for (size_t i = 0; i < COUNT(counts); i++) {
        for (int split = 1; split <= 4; split++) {
            for (int level = 0; level <= 9; level += 3) {
                setting s = make_setting(CATERVA_CODEC_LZ4, shuffle, 4, counts[i]);
                s.spec.split_mode = split;
                s.spec.level = level;
                check_setting(&s);
                free_setting(&s);
            }
        }
    }
}

static void split_and_unsplit_streams(void **state)
{
    (void)state;
    const int shuffle[] = {0, 1};
    rng r = rng_from_seed(seed);
    for (int mode = 1; mode <= 2; mode++) {
        setting s = make_setting(CATERVA_CODEC_LZ4, shuffle, 8, 6);
        s.spec.split_mode = mode;
        uint8_t *items = make_items(&s, &r);
        packed p = encode(&s, items);
        assert_int_equal(p.header.split, mode == 1);
        free_packed(&p);
        free(items);
        check_setting(&s);
        free_setting(&s);
    }
}

/* libblosc2 makes those of lz4 and lz4hc with an overlapping memcpy, so they are not used. */
static void dictionaries_need_their_chunk(void **state)
{
    (void)state;
    static const int with_dict[] = {CATERVA_CODEC_ZSTD, CATERVA_CODEC_LZ4,
                                    CATERVA_CODEC_LZ4HC};
    const int shuffle[] = {0, 1};
    for (size_t c = 0; c < COUNT(with_dict); c++) {
        setting s = make_setting(with_dict[c], shuffle, 8, 64);
        s.spec.use_dict = true;
        bool together = check_setting(&s) == CV_ACCESS_CHUNK;
        assert_int_equal(together, with_dict[c] == CATERVA_CODEC_ZSTD);
        free_setting(&s);
    }
    setting s = make_setting(FRAME_BLOSCLZ, shuffle, 8, 64);
    s.spec.use_dict = true;
    assert_int_equal(cv_codec_check_encoding(&s.spec, NULL), CATERVA_EPIPELINE);
    free_setting(&s);
}

static void lossy_filters_decode_alike_everywhere(void **state)
{
    (void)state;
    static const int filters[][3] = {{CATERVA_FILTER_TRUNC_PREC, 1, 10},
                                     {CATERVA_FILTER_INT_TRUNC, 1, 8}};
    for (size_t f = 0; f < COUNT(filters); f++) {
        for (int32_t size = 4; size <= 8; size += 4) {
            setting s = make_setting(CATERVA_CODEC_LZ4, filters[f], size, 9);
            s.spec.filters_meta[4] = (uint8_t)filters[f][2];
            s.lossy = true;
            check_setting(&s);
            free_setting(&s);
        }
    }
}

/* n-d plugins read the geometry from the metalayer. */
static void plugins_read_the_geometry(void **state)
{
    (void)state;
    static const struct {
        int codec, codec_meta, filter, filter_meta;
        bool lossy;
    } plugins[] = {
        {CATERVA_CODEC_NDLZ, 4, 0, 0, false},
        {CATERVA_CODEC_ZFP_ACCURACY, 1, 0, 0, true},
        {CATERVA_CODEC_ZFP_PRECISION, 20, 0, 0, true},
        {CATERVA_CODEC_ZFP_RATE, 50, 0, 0, true},
        {CATERVA_CODEC_LZ4, 0, CATERVA_FILTER_NDCELL, 4, false},
        {CATERVA_CODEC_LZ4, 0, CATERVA_FILTER_NDMEAN, 4, true},
    };
    for (size_t i = 0; i < COUNT(plugins); i++) {
        bool zfp = plugins[i].codec >= CATERVA_CODEC_ZFP_ACCURACY;
        bool mean = plugins[i].filter == CATERVA_FILTER_NDMEAN;
        int32_t item = plugins[i].codec == CATERVA_CODEC_NDLZ ? 1 : zfp || mean ? 4 : 8;
        setting s = make_setting(plugins[i].codec, NULL, item, 4);
        cv_array_meta meta = {.ndim = 2,
                              .shape = {64, 32},
                              .chunk_shape = {64, 32},
                              .block_shape = {16, 32},
                              .dtype = "|u1",
                              .dtype_size = 3};
        s.spec.ndim = 2;
        s.spec.block_shape[0] = 16;
        s.spec.block_shape[1] = 32;
        s.geometry.size = 0;
        CHECK(cv_array_meta_write(&meta, &s.geometry, NULL) == CV_OK, "geometry");
        s.spec.geometry = s.geometry.data;
        s.spec.geometry_size = (int32_t)s.geometry.size;
        s.spec.codec_meta = plugins[i].codec_meta;
        s.spec.filters[5] = (uint8_t)plugins[i].filter;
        s.spec.filters_meta[5] = (uint8_t)plugins[i].filter_meta;
        s.lossy = plugins[i].lossy;
        check_setting(&s);
        free_setting(&s);
    }
}

static void what_libblosc2_lacks_is_refused(void **state)
{
    (void)state;
    cv_error err;
    setting s = make_setting(CATERVA_CODEC_LZ4, NULL, 4, 2);
    s.spec.codec = 200;
    assert_int_equal(cv_codec_check(&s.spec, &err), CATERVA_EUNSUPPORTED);
    assert_non_null(strstr(err.message, "200"));
    s.spec.codec = CATERVA_CODEC_LZ4;
    s.spec.filters[3] = 77;
    assert_int_equal(cv_codec_check(&s.spec, &err), CATERVA_EUNSUPPORTED);
    assert_non_null(strstr(err.message, "77"));
    s.spec.filters[3] = 0;
    s.spec.level = 10;
    assert_int_equal(cv_codec_check(&s.spec, NULL), CATERVA_EINVAL);
    s.spec.level = 5;
    s.spec.codec = CATERVA_CODEC_ZFP_RATE;
    s.spec.item_size = 2;
    assert_int_equal(cv_codec_check_encoding(&s.spec, NULL), CATERVA_EPIPELINE);
    free_setting(&s);
}

/* ---- Special and plain chunks ------------------------------------------------------ */

/* Also if a dictionary was requested, which such a chunk must not claim to have. */
static void check_noise(bool use_dict)
{
    rng r = rng_from_seed(seed);
    setting s = make_setting(CATERVA_CODEC_LZ4, NULL, 4, 8);
    s.spec.use_dict = use_dict;
    uint8_t *items = check_alloc((size_t)s.spec.chunk_bytes);
    rng_fill(&r, items, (size_t)s.spec.chunk_bytes);
    packed p = encode(&s, items);
    assert_true(p.header.memcpyed);
    assert_int_equal(p.access, CV_ACCESS_RAW);
    assert_memory_equal(p.chunk.data + 32, items, (size_t)s.spec.chunk_bytes);
    cv_error err;
    cv_decoder *decoder;
    uint8_t *whole = check_alloc((size_t)s.spec.chunk_bytes);
    CHECK_OK(cv_decoder_create(&s.spec, &decoder, &err), err);
    CHECK_OK(cv_decode_chunk(decoder, p.chunk.data, (int32_t)p.chunk.size, whole,
                             s.spec.chunk_bytes, &err),
             err);
    assert_memory_equal(whole, items, (size_t)s.spec.chunk_bytes);
    cv_decoder_free(decoder);
    free_packed(&p);
    free(items);
    free(whole);
    free_setting(&s);
}

static void noise_is_stored_plainly(void **state)
{
    (void)state;
    check_noise(false);
    check_noise(true);
}

/* Chunks too short to be compressed, and chunks with hardly any space. */
static void short_chunks_with_a_dictionary(void **state)
{
    (void)state;
    static const int with_dict[] = {CATERVA_CODEC_ZSTD, CATERVA_CODEC_LZ4,
                                    CATERVA_CODEC_LZ4HC};
    enum { LONGEST = 300 };
    uint8_t items[LONGEST], got[LONGEST];
    rng r = rng_from_seed(seed);
    for (int32_t n = 1; n <= LONGEST; n++) {
        memset(items, 7, sizeof items);
        rng_fill(&r, items + rng_int(&r, 0, n - 1), 1);
        for (size_t c = 0; c < COUNT(with_dict); c++) {
            setting s = make_setting(with_dict[c], NULL, 1, 1);
            cv_encoder *encoder;
            cv_decoder *decoder;
            cv_error err;
            cv_buffer out = {0};
            s.spec.use_dict = true;
            s.spec.block_bytes = s.spec.chunk_bytes = n;
            CHECK_OK(cv_encoder_create(&s.spec, &encoder, &err), err);
            CHECK_OK(cv_encode_chunk(encoder, items, &out, &err), err);
            bool plain = out.data[2] & 2;
            CHECK(!plain || out.size == (size_t)n + 32, "%s: %d bytes in %zu", s.name, n,
                  out.size);
            CHECK_OK(cv_decoder_create(&s.spec, &decoder, &err), err);
            CHECK_OK(cv_decode_chunk(decoder, out.data, (int32_t)out.size, got, n, &err),
                     err);
            CHECK(memcmp(got, items, (size_t)n) == 0, "%s: %d bytes differ", s.name, n);
            cv_encoder_free(encoder);
            cv_decoder_free(decoder);
            cv_buffer_free(&out);
            free_setting(&s);
        }
    }
}

static void a_repeated_item_takes_its_own_size(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(sizes); i++) {
        setting s = make_setting(CATERVA_CODEC_ZSTD, NULL, sizes[i], 5);
        uint8_t item[300], *got = check_alloc((size_t)s.spec.chunk_bytes);
        rng r = rng_from_seed(seed);
        cv_buffer out = {0};
        cv_chunk_header header;
        cv_decoder *decoder;
        rng_fill(&r, item, sizeof item);
        assert_int_equal(cv_encode_repeated(&s.spec, item, &out, NULL), CV_OK);
        assert_int_equal(out.size, 32 + sizes[i]);
        cv_chunk_expect expect = expectation(&s, &out);
        assert_int_equal(cv_chunk_header_parse(out.data, &expect, &header, NULL), CV_OK);
        assert_int_equal(header.special, CV_SPECIAL_VALUE);
        assert_memory_equal(out.data + 32, item, (size_t)sizes[i]);
        assert_int_equal(cv_decoder_create(&s.spec, &decoder, NULL), CV_OK);
        if (sizes[i] <=
            255) { /* libblosc2 loses the size of longer items: the engine fills them */
            assert_int_equal(cv_decode_chunk(decoder, out.data, (int32_t)out.size, got,
                                             s.spec.chunk_bytes, NULL),
                             CV_OK);
            for (int32_t at = 0; at < s.spec.chunk_bytes; at += sizes[i])
                assert_memory_equal(got + at, item, (size_t)sizes[i]);
        }
        cv_decoder_free(decoder);
        cv_buffer_free(&out);
        free(got);
        free_setting(&s);
    }
}

static void names_and_numbers_agree(void **state)
{
    (void)state;
    for (int i = -1; i < 256; i++) {
        const char *codec = cv_codec_name(i), *filter = cv_filter_name(i);
        if (codec) assert_int_equal(cv_codec_number(codec), i);
        if (filter) assert_int_equal(cv_filter_number(filter), i);
    }
    assert_int_equal(cv_codec_number("zstd"), CATERVA_CODEC_ZSTD);
    assert_int_equal(cv_filter_number("bitshuffle"), CATERVA_FILTER_BITSHUFFLE);
    assert_int_equal(cv_codec_number("snappy"), -1);
    assert_int_equal(cv_codec_number(NULL), -1);
    assert_int_equal(cv_filter_number(NULL), -1);
    assert_null(cv_codec_name(3));
}

int main(int argc, char **argv)
{
    seed = seed_argument(argc, argv, 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_codec_filter_and_item_size),
        cmocka_unit_test(any_number_of_blocks),
        cmocka_unit_test(split_and_unsplit_streams),
        cmocka_unit_test(dictionaries_need_their_chunk),
        cmocka_unit_test(lossy_filters_decode_alike_everywhere),
        cmocka_unit_test(plugins_read_the_geometry),
        cmocka_unit_test(what_libblosc2_lacks_is_refused),
        cmocka_unit_test(noise_is_stored_plainly),
        cmocka_unit_test(short_chunks_with_a_dictionary),
        cmocka_unit_test(a_repeated_item_takes_its_own_size),
        cmocka_unit_test(names_and_numbers_agree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
