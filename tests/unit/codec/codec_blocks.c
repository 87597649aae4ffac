/* Blocks encoded one by one make a chunk equivalent to one encoded whole; damaged streams are
 * refused and do no harm.
 *
 * usage: test_codec_blocks [SEED] */
#include "codec/decode.h"
#include "codec/encode.h"
#include "codec_setting.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static uint64_t seed;

/* ---- Single blocks ----------------------------------------------------------------- */

/* A chunk assembled from blocks that were encoded one by one. */
static void check_assembled(const setting *s, const cv_buffer *streams, const size_t *ends,
                            uint8_t header[32], const uint8_t *items)
{
    cv_error err;
    cv_decoder *decoder;
    size_t starts = 32 + (size_t)s->n_blocks * 4, size = starts + streams->size;
    uint8_t *chunk = check_alloc(size), *got = check_alloc((size_t)s->spec.chunk_bytes);
    cv_codec_set_sizes(header, s->spec.chunk_bytes, (int32_t)size);
    memcpy(chunk, header, 32);
    for (int32_t b = 0; b < s->n_blocks; b++)
        cv_store_le32(chunk + 32 + 4 * (size_t)b, (uint32_t)(starts + (b ? ends[b - 1] : 0)));
    memcpy(chunk + starts, streams->data, streams->size);
    CHECK_OK(cv_decoder_create(&s->spec, &decoder, &err), err);
    CHECK_OK(cv_decode_chunk(decoder, chunk, (int32_t)size, got, s->spec.chunk_bytes, &err),
             err);
    CHECK(memcmp(got, items, (size_t)s->spec.chunk_bytes) == 0, "%s: assembled", s->name);
    cv_decoder_free(decoder);
    free(chunk);
    free(got);
}

static bool check_single_blocks(const setting *s)
{
    cv_error err;
    rng r = rng_from_seed(seed);
    uint8_t *items = make_items(s, &r), header[32], first[32];
    size_t ends[MAX_BLOCKS];
    cv_buffer streams = {0};
    cv_encoder *encoder;
    bool encoded = true;
    CHECK_OK(cv_encoder_create(&s->spec, &encoder, &err), err);
    for (int32_t b = 0; b < s->n_blocks && encoded; b++) {
        size_t before = streams.size;
        CHECK_OK(cv_encode_block(encoder, items + (size_t)b * (size_t)s->spec.block_bytes,
                                 s->spec.block_bytes, &streams, header, &err),
                 err);
        encoded = streams.size > before;
        if (b == 0) memcpy(first, header, 32);
        encoded = encoded && cv_codec_same_encoding(first, header);
        ends[b] = streams.size;
    }
    if (encoded) check_assembled(s, &streams, ends, header, items);
    cv_encoder_free(encoder);
    cv_buffer_free(&streams);
    free(items);
    return encoded;
}

static void single_blocks_make_a_chunk(void **state)
{
    (void)state;
    static const int filters[][2] = {{0, 0}, {0, 1}, {0, 2}};
    int done = 0, all = 0;
    for (size_t c = 0; c < 5; c++) {
        for (size_t f = 0; f < COUNT(filters); f++) {
            for (size_t i = 0; i < COUNT(sizes); i++) {
                setting s = make_setting(codecs[c], filters[f], sizes[i], 9);
                done += check_single_blocks(&s);
                all++;
                free_setting(&s);
            }
        }
    }
    assert_true(done > all * 3 / 4);
}

/* ---- Gathered chunks --------------------------------------------------------------- */

typedef struct lying {
    const uint8_t *items;
    size_t block_bytes;
} lying;

static void give_block(const void *context, int64_t block, uint8_t *out)
{
    const lying *from = context;
    memcpy(out, from->items + (size_t)block * from->block_bytes, from->block_bytes);
}

/* Checks that the chunk equals, byte for byte, one made of contiguous items; twice with one
 * encoder, over the first result. */
static void check_gathered(const setting *s, const uint8_t *items)
{
    cv_error err;
    cv_encoder *encoder;
    cv_buffer gathered = {0};
    lying from = {items, (size_t)s->spec.block_bytes};
    cv_block_source source = {give_block, &from};
    packed whole = encode(s, items);
    CHECK_OK(cv_encoder_create(&s->spec, &encoder, &err), err);
    for (int i = 0; i < 2; i++) {
        CHECK_OK(cv_encode_gathered(encoder, &source, &gathered, &err), err);
        CHECK(gathered.size == whole.chunk.size, "%s: %zu bytes, not %zu", s->name,
              gathered.size, whole.chunk.size);
        CHECK(memcmp(gathered.data, whole.chunk.data, gathered.size) == 0, "%s: other bytes",
              s->name);
        memset(gathered.data, 0xa5, gathered.capacity);
    }
    cv_encoder_free(encoder);
    cv_buffer_free(&gathered);
    free_packed(&whole);
}

static void check_gathered_setting(setting *s)
{
    rng r = rng_from_seed(seed);
    uint8_t *items = make_items(s, &r);
    size_t size = (size_t)s->spec.chunk_bytes;
    check_gathered(s, items);
    memset(items, 0, size);
    check_gathered(s, items);
    rng_fill(&r, items, size); /* incompressible */
    check_gathered(s, items);
    s->spec.level = 0;
    check_gathered(s, items);
    free(items);
    free_setting(s);
}

static void gathered_chunks_are_the_same(void **state)
{
    (void)state;
    static const int filters[][2] = {{0, 0},
                                     {0, CATERVA_FILTER_SHUFFLE},
                                     {CATERVA_FILTER_BITSHUFFLE, 0}};
    static const int32_t n_blocks[] = {1, 2, 9};
    for (size_t c = 0; c < 5; c++)
        for (size_t f = 0; f < COUNT(filters); f++)
            for (size_t i = 0; i < COUNT(sizes) * COUNT(n_blocks); i++) {
                setting s = make_setting(codecs[c], filters[f], sizes[i % COUNT(sizes)],
                                         n_blocks[i / COUNT(sizes)]);
                assert_true(cv_codec_gathers(&s.spec));
                check_gathered_setting(&s);
            }
}

/* For these, libblosc2 inspects the source, or needs all of it. */
static void what_is_not_gathered(void **state)
{
    (void)state;
    static const int two[2] = {CATERVA_FILTER_SHUFFLE, CATERVA_FILTER_BITSHUFFLE};
    static const int delta[2] = {0, CATERVA_FILTER_DELTA};
    setting s = make_setting(CATERVA_CODEC_LZ4, two, 4, 4);
    assert_false(cv_codec_gathers(&s.spec));
    free_setting(&s);
    s = make_setting(CATERVA_CODEC_LZ4, delta, 4, 4);
    assert_false(cv_codec_gathers(&s.spec));
    free_setting(&s);
    s = make_setting(CATERVA_CODEC_NDLZ, NULL, 1, 4);
    assert_false(cv_codec_gathers(&s.spec));
    free_setting(&s);
    s = make_setting(CATERVA_CODEC_ZSTD, NULL, 4, 4);
    s.spec.use_dict = true;
    assert_false(cv_codec_gathers(&s.spec));
    free_setting(&s);
}

static void encodings_are_distinguished(void **state)
{
    (void)state;
    rng r = rng_from_seed(seed);
    setting s = make_setting(CATERVA_CODEC_LZ4, NULL, 4, 4);
    uint8_t *items = make_items(&s, &r), other[32];
    packed p = encode(&s, items);
    memcpy(other, p.chunk.data, 32);
    cv_codec_set_sizes(other, 1000, 2000);
    assert_true(cv_codec_same_encoding(p.chunk.data, other));
    static const int matter[] = {1, 2, 3, 8, 16, 21, 22, 23, 24, 29, 31};
    for (size_t i = 0; i < COUNT(matter); i++) {
        other[matter[i]] ^= 0x10;
        assert_false(cv_codec_same_encoding(p.chunk.data, other));
        other[matter[i]] ^= 0x10;
    }
    free_packed(&p);
    free(items);
    free_setting(&s);
}

/* How often blocks were returned in each form. */
static int n_of_form[CV_FORM_ITEM + 1];

/* ---- Runs ---------------------------------------------------------------------------- */

/* Blocks of zeros, of one byte, of one item, of one item except its last byte, and others:
 * libblosc2 stores them as runs, which are decoded without libblosc2. */
static void fill_runs(const setting *s, rng *r, uint8_t *items)
{
    size_t size = (size_t)s->spec.block_bytes, item = (size_t)s->spec.item_size;
    for (int32_t b = 0; b < s->n_blocks; b++) {
        uint8_t *block = items + (size_t)b * size;
        memset(block, b % 5 == 0 ? 0 : rng_int(r, 0, 255), size);
        if (b % 5 < 2) continue;
        rng_fill(r, block, item);
        for (size_t i = item; i < size; i++) block[i] = block[i - item];
        if (b % 5 == 3) block[size - 1] ^= 1;
        if (b % 5 == 4) rng_fill(r, block, size / 3);
    }
}

/* Does what cv_decode_loose leaves to the caller: the block is the same. */
static void check_loose(const setting *s, cv_decoder *decoder, const cv_packed_block *block,
                        const uint8_t *whole)
{
    cv_error err;
    cv_block_form form;
    size_t size = (size_t)s->spec.block_bytes, item_size = (size_t)s->spec.item_size;
    size_t n = size / item_size;
    uint8_t *dst = check_alloc(size);
    CHECK_OK(cv_decode_loose(decoder, block, dst, s->spec.block_bytes, &form, &err), err);
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < item_size; k++) {
            size_t at = i * item_size + k;
            if (form == CV_FORM_ITEM) at = k;
            if (form == CV_FORM_SHUFFLED) at = k * n + i;
            CHECK(dst[at] == whole[i * item_size + k], "%s: form %d, byte %zu of item %zu",
                  s->name, (int)form, k, i);
        }
    n_of_form[form]++;
    free(dst);
}

static void check_runs(const setting *s, rng *r)
{
    cv_error err;
    cv_decoder *decoder;
    uint8_t *items = check_alloc((size_t)s->spec.chunk_bytes);
    uint8_t *dst = check_alloc((size_t)s->spec.block_bytes);
    fill_runs(s, r, items);
    packed p = encode(s, items);
    CHECK_OK(cv_decoder_create(&s->spec, &decoder, &err), err);
    for (int32_t b = 0; b < s->n_blocks && p.access == CV_ACCESS_BLOCK; b++) {
        cv_packed_block block = block_of(s, &p, b, p.chunk.data);
        CHECK_OK(cv_decode_block(decoder, &block, dst, s->spec.block_bytes, &err), err);
        CHECK(memcmp(dst, items + (size_t)b * (size_t)s->spec.block_bytes,
                     (size_t)s->spec.block_bytes) == 0,
              "%s: block %d", s->name, b);
        check_loose(s, decoder, &block, dst);
    }
    cv_decoder_free(decoder);
    free_packed(&p);
    free(items);
    free(dst);
}

static void runs_are_decoded(void **state)
{
    (void)state;
    static const int filters[][2] = {{0, 0}, {0, 1}, {0, 2}, {3, 1}, {1, 35}, {1, 1}};
    rng r = rng_from_seed(seed);
    for (size_t c = 0; c < COUNT(codecs) - 1; c++) {
        for (size_t f = 0; f < COUNT(filters); f++) {
            for (size_t i = 0; i < COUNT(sizes); i++) {
                for (int split = 1; split <= 4; split++) {
                    setting s = make_setting(codecs[c], filters[f], sizes[i], 10);
                    s.spec.split_mode = split;
                    check_runs(&s, &r);
                    free_setting(&s);
                }
            }
        }
    }
    for (int form = 0; form <= CV_FORM_ITEM; form++)
        assert_in_range(n_of_form[form], 100, INT32_MAX);
}

/* A block of four streams, a run each; the odd byte after a value missing or even, a value
 * out of range, bytes left over: libblosc2 decides, and refuses. */
static void false_runs_are_refused(void **state)
{
    (void)state;
    const int shuffle[] = {0, 1};
    setting s = make_setting(CATERVA_CODEC_LZ4, shuffle, 4, 2);
    s.spec.split_mode = 1;
    uint8_t *items = check_alloc((size_t)s.spec.chunk_bytes), header[32],
            dst[BLOCK_ITEMS * 4];
    for (int32_t i = 0; i < s.spec.chunk_bytes; i++) items[i] = (uint8_t)(i / 64);
    packed p = encode(&s, items);
    memcpy(header, p.chunk.data, 32);
    cv_decoder *decoder;
    assert_int_equal(cv_decoder_create(&s.spec, &decoder, NULL), CV_OK);
    static const struct {
        int32_t value;
        uint8_t token;
        int extra; /* bytes more, or fewer, than the streams need */
        cv_status status;
    } cases[] = {{-7, 1, 0, CV_OK},
                 {-255, 3, 0, CV_OK},
                 {-7, 2, 0, CATERVA_ECORRUPT},
                 {-256, 1, 0, CATERVA_ECORRUPT},
                 {-7, 1, -1, CATERVA_ECORRUPT},
                 {-7, 1, -2, CATERVA_ECORRUPT}};
    for (size_t c = 0; c < COUNT(cases); c++) {
        uint8_t bytes[CV_BLOCK_PREFIX + 4 * 4 + 1] = {0}, *at = bytes + CV_BLOCK_PREFIX;
        cv_store_le32(at + 12, (uint32_t)cases[c].value); /* after three runs of zeros */
        at[16] = cases[c].token;
        cv_packed_block block = {.chunk_header = header,
                                 .streams = at,
                                 .streams_size = 17 + cases[c].extra,
                                 .in_place = true,
                                 .n_blocks = 2};
        memset(dst, 1, sizeof dst);
        assert_int_equal(cv_decode_block(decoder, &block, dst, sizeof dst, NULL),
                         cases[c].status);
        for (int i = 0; i < BLOCK_ITEMS && cases[c].status == CV_OK; i++)
            assert_int_equal(cv_load_le32(dst + 4 * i), (uint32_t)-cases[c].value << 24);
    }
    cv_decoder_free(decoder);
    free_packed(&p);
    free(items);
    free_setting(&s);
}

/* ---- Damage ------------------------------------------------------------------------ */

static void damage_streams(const packed *p, rng *r, uint8_t *chunk)
{
    memcpy(chunk, p->chunk.data, p->chunk.size);
    int64_t first = 32 + cv_block_starts_size(&p->header);
    for (int n = rng_int(r, 1, 8); n > 0; n--)
        chunk[rng_between(r, first, (int64_t)p->chunk.size - 1)] = (uint8_t)rng_next(r);
}

/* Each damaged chunk is in an allocation of its own size. The status is OK (a codec without
 * checks may not detect the damage) or ECORRUPT. */
static int check_damaged(const setting *s, int times)
{
    cv_error err;
    cv_decoder *decoder;
    rng r = rng_from_seed(seed);
    int refused = 0;
    uint8_t *items = make_items(s, &r), *dst = check_alloc((size_t)s->spec.chunk_bytes);
    packed p = encode(s, items);
    uint8_t *chunk = check_alloc(p.chunk.size);
    CHECK_OK(cv_decoder_create(&s->spec, &decoder, &err), err);
    for (int i = 0; i < times; i++) {
        damage_streams(&p, &r, chunk);
        cv_status status = cv_decode_chunk(decoder, chunk, (int32_t)p.chunk.size, dst,
                                           s->spec.chunk_bytes, &err);
        CHECK(status == CV_OK || status == CATERVA_ECORRUPT, "%s: %d", s->name, status);
        refused += status != CV_OK;
        for (int32_t b = 0; b < s->n_blocks && p.access == CV_ACCESS_BLOCK; b++) {
            cv_packed_block block = block_of(s, &p, b, chunk);
            status = cv_decode_block(decoder, &block, dst, s->spec.block_bytes, &err);
            CHECK(status == CV_OK || status == CATERVA_ECORRUPT, "%s: %d", s->name, status);
        }
    }
    /* The decoder works normally after all that. */
    CHECK_OK(cv_decode_chunk(decoder, p.chunk.data, (int32_t)p.chunk.size, dst,
                             s->spec.chunk_bytes, &err),
             err);
    cv_decoder_free(decoder);
    free_packed(&p);
    free(chunk);
    free(dst);
    free(items);
    return refused;
}

static void damaged_streams_are_refused(void **state)
{
    (void)state;
    static const int filters[][2] = {{0, 1}, {0, 2}, {3, 1}};
    for (size_t c = 0; c < 5; c++) {
        for (size_t f = 0; f < COUNT(filters); f++) {
            setting s = make_setting(codecs[c], filters[f], 4, 6);
            assert_true(check_damaged(&s, 60) > 0);
            free_setting(&s);
        }
    }
    const int shuffle[] = {0, 1};
    setting s = make_setting(CATERVA_CODEC_ZSTD, shuffle, 8, 64);
    s.spec.use_dict = true;
    assert_true(check_damaged(&s, 60) > 0);
    free_setting(&s);
}

int main(int argc, char **argv)
{
    seed = seed_argument(argc, argv, 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(single_blocks_make_a_chunk),
        cmocka_unit_test(gathered_chunks_are_the_same),
        cmocka_unit_test(what_is_not_gathered),
        cmocka_unit_test(encodings_are_distinguished),
        cmocka_unit_test(runs_are_decoded),
        cmocka_unit_test(false_runs_are_refused),
        cmocka_unit_test(damaged_streams_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
