/* Every pipeline of 1 to 6 filters, for every item size, gives back its input, or what its
 * filters define, or it is refused; the input, which is in read-only memory, does not change.
 *
 * usage: test_pipelines [SEED] [--long] */
#include "codec/decode.h"
#include "codec/encode.h"
#include "codec/spec.h"
#include "codec_setting.h"
#include "filter_model.h"
#include "sanitized.h"

#include <setjmp.h>
#include <stdarg.h>
#include <sys/mman.h>

#include <cmocka.h>

enum { EDGE = 8, N_BLOCKS = 4, BLOCK = EDGE * EDGE, MAX_ITEM = 300, MAX_LENGTH = 6 };

static const int32_t item_sizes[] = {1, 2, 4, 7, 8, 16, 300};
static const int block_codecs[] = {FRAME_BLOSCLZ, CATERVA_CODEC_LZ4, CATERVA_CODEC_LZ4HC,
                                   CATERVA_CODEC_ZLIB, CATERVA_CODEC_ZSTD};

static uint64_t seed;
static bool is_long;
static cv_buffer geometry;

/* ---- Contents ------------------------------------------------------------------- */

typedef enum content { NOISE, RAMP, SMALL_NUMBERS, FLOATS, MIXED, N_CONTENTS } content;

static void fill(content kind, rng *r, int32_t item_size, uint8_t *items)
{
    size_t size = (size_t)item_size, n = BLOCK * N_BLOCKS;
    memset(items, 0, n * size);
    for (size_t i = 0; i < n; i++) {
        uint8_t *item = items + i * size;
        const float number = (float)rng_int(r, 0, 1000) / 7;
        const double wide = number;
        content now = kind == MIXED ? (content)(i / BLOCK % MIXED) : kind;
        if (now == NOISE) rng_fill(r, item, size);
        if (now == RAMP) item[0] = (uint8_t)i;
        if (now == SMALL_NUMBERS) item[0] = (uint8_t)rng_int(r, 0, 15);
        if (now == FLOATS)
            memcpy(item, size == 4 ? (const void *)&number : (void *)&wide,
                   size < sizeof wide ? size : sizeof wide);
    }
}

/* Whole pages, read-only. */
static uint8_t *guarded;

static const uint8_t *guard(const uint8_t *items, size_t size)
{
    size_t room = (size_t)BLOCK * N_BLOCKS * MAX_ITEM;
    if (!guarded) {
        guarded = mmap(NULL, room, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        CHECK(guarded != MAP_FAILED, "mmap");
    }
    CHECK(mprotect(guarded, room, PROT_READ | PROT_WRITE) == 0, "mprotect");
    memcpy(guarded, items, size);
    CHECK(mprotect(guarded, room, PROT_READ) == 0, "mprotect");
    return guarded;
}

/* ---- One pipeline ----------------------------------------------------------------- */

typedef struct trial {
    cv_codec_spec spec;
    int filters[MAX_LENGTH];
    int n;
    char name[200];
} trial;

/* Filters that do nothing are placed anywhere between. */
static trial make_trial(const int *filters, int n, int32_t item_size, int codec, rng *r)
{
    trial t = {.n = n};
    t.spec = (cv_codec_spec){.codec = codec,
                             .level = rng_int(r, 1, 9),
                             .split_mode = rng_int(r, 1, 4),
                             .item_size = item_size,
                             .block_bytes = BLOCK * item_size,
                             .chunk_bytes = BLOCK * N_BLOCKS * item_size,
                             .ndim = 2,
                             .block_shape = {EDGE, EDGE},
                             .geometry = geometry.data,
                             .geometry_size = (int32_t)geometry.size};
    int slot = 0;
    for (int i = 0; i < n; i++, slot++) {
        slot += rng_int(r, 0, MAX_LENGTH - n - (slot - i));
        t.filters[i] = filters[i];
        t.spec.filters[slot] = (uint8_t)filters[i];
        t.spec.filters_meta[slot] = (uint8_t)filter_number_for(filters[i], item_size);
    }
    int at = snprintf(t.name, sizeof t.name,
                      "%s level %d split %d, items of %d:", cv_codec_name(codec),
                      t.spec.level, t.spec.split_mode, item_size);
    for (int i = 0; i < n; i++)
        at += snprintf(t.name + at, sizeof t.name - (size_t)at, " %s",
                       cv_filter_name(filters[i]));
    return t;
}

/* The bits of a NaN mean depend on the compiler. */
static bool is_nan(const uint8_t *item, int32_t item_size)
{
    double number = 0;
    float narrow = 0;
    if (item_size == 8) memcpy(&number, item, sizeof number);
    if (item_size == 4) memcpy(&narrow, item, sizeof narrow);
    return number != number || narrow != narrow;
}

static bool same_items(const trial *t, const uint8_t *got, const uint8_t *model)
{
    bool averages = false;
    for (int i = 0; i < t->n; i++)
        averages = averages || t->filters[i] == CATERVA_FILTER_NDMEAN;
    int32_t size = t->spec.item_size;
    if (!averages) return memcmp(got, model, (size_t)t->spec.block_bytes) == 0;
    for (int32_t at = 0; at < t->spec.block_bytes; at += size)
        if (memcmp(got + at, model + at, (size_t)size) != 0 &&
            !(is_nan(got + at, size) && is_nan(model + at, size)))
            return false;
    return true;
}

/* Incompressible blocks are stored unchanged. */
static void check_items(const trial *t, const uint8_t *got, const uint8_t *items, int n)
{
    uint8_t *model = check_alloc((size_t)t->spec.block_bytes);
    size_t size = (size_t)t->spec.block_bytes;
    for (int b = 0; b < n; b++) {
        const uint8_t *block = items + (size_t)b * size;
        memcpy(model, block, size);
        apply_filters(t->filters, t->n, t->spec.item_size, EDGE, model);
        bool same = same_items(t, got + (size_t)b * size, model) ||
                    memcmp(got + (size_t)b * size, block, size) == 0;
        CHECK(same, "%s: block %d of %d comes back as something else", t->name, b, n);
    }
    free(model);
}

static void check_whole(const trial *t, cv_encoder *encoder, const uint8_t *items,
                        uint8_t *got)
{
    cv_error err;
    cv_buffer chunk = {0};
    cv_decoder *decoder;
    CHECK_OK(cv_encode_chunk(encoder, items, &chunk, &err), err);
    CHECK(chunk.size <= (size_t)t->spec.chunk_bytes + 32, "%s: %zu bytes", t->name,
          chunk.size);
    CHECK_OK(cv_decoder_create(&t->spec, &decoder, &err), err);
    const uint8_t *stored = guard(chunk.data, chunk.size); /* as in borrowed memory */
    cv_status status =
        cv_decode_chunk(decoder, stored, (int32_t)chunk.size, got, t->spec.chunk_bytes, &err);
    CHECK(status == CV_OK, "%s: %s", t->name, err.message);
    cv_decoder_free(decoder);
    cv_buffer_free(&chunk);
}

/* Alone, as a writer of single blocks encodes them. */
static void check_alone(const trial *t, cv_encoder *encoder, const uint8_t *block, int32_t n,
                        uint8_t *got)
{
    cv_error err;
    cv_buffer streams = {0};
    cv_decoder *decoder;
    uint8_t header[32];
    cv_status status = cv_encode_block(encoder, block, n, &streams, header, &err);
    CHECK(status == CV_OK, "%s: %s", t->name, err.message);
    if (streams.size > 0) {
        cv_packed_block alone = {.chunk_header = header,
                                 .streams = streams.data,
                                 .streams_size = (int32_t)streams.size,
                                 .n_blocks = 1};
        CHECK_OK(cv_decoder_create(&t->spec, &decoder, &err), err);
        status = cv_decode_block(decoder, &alone, got, n, &err);
        CHECK(status == CV_OK, "%s, alone: %s", t->name, err.message);
        cv_decoder_free(decoder);
    } else {
        memcpy(got, block, (size_t)n);
    }
    cv_buffer_free(&streams);
}

static bool changes_items(const trial *t)
{
    for (int i = 0; i < t->n; i++)
        if (t->filters[i] == CATERVA_FILTER_NDMEAN ||
            t->filters[i] == CATERVA_FILTER_TRUNC_PREC ||
            t->filters[i] == CATERVA_FILTER_INT_TRUNC)
            return true;
    return false;
}

static bool needs_whole_blocks(const trial *t)
{
    for (int i = 0; i < t->n; i++)
        if (t->filters[i] == CATERVA_FILTER_NDCELL || t->filters[i] == CATERVA_FILTER_NDMEAN)
            return true;
    /* a short block is never split, and its context has blocks of powers of 2 bytes */
    return t->spec.split_mode != 2 || t->spec.item_size != 8;
}

static void check_short(const trial *t, cv_encoder *encoder, const uint8_t *items,
                        uint8_t *got)
{
    int32_t n = t->spec.item_size * (BLOCK / 2 + 1);
    if (needs_whole_blocks(t) || changes_items(t)) return;
    check_alone(t, encoder, items, n, got);
    CHECK(memcmp(got, items, (size_t)n) == 0, "%s: a short block", t->name);
}

static void check_content(const trial *t, content kind, rng *r)
{
    size_t size = (size_t)t->spec.chunk_bytes;
    uint8_t *items = check_alloc(size), *got = check_alloc(size);
    cv_error err;
    cv_encoder *encoder;
    fill(kind, r, t->spec.item_size, items);
    CHECK_OK(cv_encoder_create(&t->spec, &encoder, &err), err);
    for (int again = 0; again < 2; again++) {
        check_whole(t, encoder, guard(items, size), got);
        check_items(t, got, items, N_BLOCKS);
    }
    if (cv_codec_blocks_independent(&t->spec)) {
        check_alone(t, encoder, guard(items, size), t->spec.block_bytes, got);
        check_items(t, got, items, 1);
        check_short(t, encoder, guard(items, size), got);
    }
    cv_encoder_free(encoder);
    free(items);
    free(got);
}

/* Returns whether the pipeline was accepted. */
static bool check_trial(const trial *t, int n_contents, rng *r)
{
    cv_error err;
    cv_status status = cv_codec_check_encoding(&t->spec, &err);
    if (status != CV_OK) {
        CHECK(status == CATERVA_EPIPELINE, "%s: %d", t->name, status);
        CHECK(strstr(err.message, "filter"), "%s: names no filter: %s", t->name, err.message);
        return false;
    }
    int first = n_contents == N_CONTENTS ? 0 : rng_int(r, 0, N_CONTENTS - n_contents);
    for (int c = first; c < first + n_contents; c++) check_content(t, (content)c, r);
    return true;
}

/* ---- All of them -------------------------------------------------------------------- */

static void every_short_pipeline_for_every_item_size(void **state)
{
    (void)state;
    rng r = rng_from_seed(seed);
    int64_t taken = 0, refused = 0;
    for (int n = 1; n <= 3; n++)
        for (int64_t k = 0; k < count_pipelines(n); k++)
            for (size_t i = 0; i < COUNT(item_sizes); i++) {
                int filters[MAX_LENGTH];
                number_pipeline(k, n, filters);
                int codec = block_codecs[(size_t)rng_int(&r, 0, COUNT(block_codecs) - 1)];
                trial t = make_trial(filters, n, item_sizes[i], codec, &r);
                *(check_trial(&t, few_if_sanitized(N_CONTENTS, 1), &r) ? &taken : &refused) +=
                    1;
            }
    printf("%lld taken, %lld refused\n", (long long)taken, (long long)refused);
    assert_true(taken > 900 && refused > 1000);
}

static void every_long_pipeline(void **state)
{
    (void)state;
    rng r = rng_from_seed(seed + 1);
    int64_t taken = 0, refused = 0;
    for (int n = 4; n <= MAX_LENGTH; n++)
        for (int64_t k = 0; k < count_pipelines(n); k++) {
            int filters[MAX_LENGTH];
            if (is_shortened() && !rng_one_in(&r, 5)) continue;
            number_pipeline(k, n, filters);
            for (size_t i = 0; i < COUNT(item_sizes); i++) {
                if (!is_long && i != (size_t)rng_int(&r, 2, 3) + 1) continue;
                int codec = block_codecs[(size_t)rng_int(&r, 0, COUNT(block_codecs) - 1)];
                trial t = make_trial(filters, n, item_sizes[i], codec, &r);
                *(check_trial(&t, is_long ? N_CONTENTS : 1, &r) ? &taken : &refused) += 1;
            }
        }
    printf("%lld taken, %lld refused\n", (long long)taken, (long long)refused);
    assert_true(taken > 900 && refused > 1000);
}

static void with_a_dictionary(void **state)
{
    (void)state;
    rng r = rng_from_seed(seed + 2);
    static const int with_dict[] = {CATERVA_CODEC_LZ4, CATERVA_CODEC_LZ4HC,
                                    CATERVA_CODEC_ZSTD};
    int64_t taken = 0;
    for (int n = 1; n <= 3; n++)
        for (int64_t k = 0; k < count_pipelines(n); k++)
            for (size_t i = 0; i < COUNT(item_sizes); i++) {
                int filters[MAX_LENGTH];
                number_pipeline(k, n, filters);
                trial t =
                    make_trial(filters, n, item_sizes[i], with_dict[rng_int(&r, 0, 2)], &r);
                t.spec.use_dict = true;
                taken += check_trial(&t, few_if_sanitized(2, 1), &r);
            }
    assert_true(taken > 100);
}

/* ---- Streams of one byte each --------------------------------------------------------- */

static void unshuffle(const uint8_t *from, int32_t size, int32_t width, uint8_t *to)
{
    int32_t n = size / width;
    for (int32_t i = 0; i < n; i++)
        for (int32_t b = 0; b < width; b++) to[i * width + b] = from[b * n + i];
}

/* They are the bytes of one repeated item if they were shuffled once, by items; otherwise
 * not. */
static void split_streams_that_are_runs(void **state)
{
    (void)state;
    static const int shuffles[][3] = {{0}, {1}, {1, 1}, {1, 1, 1}};
    static const uint8_t widths[] = {0, 2, 4, 8, 16};
    rng r = rng_from_seed(seed + 3);
    for (size_t f = 0; f < COUNT(shuffles); f++)
        for (size_t w = 0; w < COUNT(widths); w++) {
            trial t = make_trial(shuffles[f], (int)f, 8, CATERVA_CODEC_LZ4, &r);
            int32_t size = t.spec.block_bytes;
            uint8_t *items = check_alloc((size_t)t.spec.chunk_bytes);
            uint8_t *got = check_alloc((size_t)t.spec.chunk_bytes);
            t.spec.split_mode = 1;
            memset(items, 0, (size_t)t.spec.chunk_bytes);
            for (int32_t i = 0; i < size; i++) items[i] = (uint8_t)(i / (size / 8) * 7);
            for (int i = CV_CODEC_FILTERS - 1; i >= 0; i--) {
                if (t.spec.filters[i] == 0) continue;
                t.spec.filters_meta[i] = widths[w];
                unshuffle(items, size, widths[w] ? widths[w] : 8, got);
                memcpy(items, got, (size_t)size);
            }
            cv_error err;
            cv_encoder *encoder;
            CHECK_OK(cv_encoder_create(&t.spec, &encoder, &err), err);
            check_alone(&t, encoder, items, size, got);
            CHECK(memcmp(got, items, (size_t)size) == 0, "%s, groups of %d", t.name,
                  widths[w]);
            cv_encoder_free(encoder);
            free(items);
            free(got);
        }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_short_pipeline_for_every_item_size),
        cmocka_unit_test(every_long_pipeline),
        cmocka_unit_test(with_a_dictionary),
        cmocka_unit_test(split_streams_that_are_runs),
    };
    seed = seed_argument(argc, argv, 1);
    is_long = argc > 2 && strcmp(argv[2], "--long") == 0;
    cv_array_meta meta = {.ndim = 2,
                          .shape = {EDGE * 2, EDGE * 2},
                          .chunk_shape = {EDGE * 2, EDGE * 2},
                          .block_shape = {EDGE, EDGE},
                          .dtype = "|u1",
                          .dtype_size = 3};
    CHECK(cv_array_meta_write(&meta, &geometry, NULL) == CV_OK, "geometry");
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    cv_buffer_free(&geometry);
    return failed;
}
