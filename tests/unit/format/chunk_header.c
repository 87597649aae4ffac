/* Chunk headers: every kind that C-Blosc2 writes is accepted, every false value is reported,
 * and no bytes do harm. Compares block ranges with a naive search. */
#include "format/chunk_header.h"

#include "base/arith.h"
#include "mutate.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static uint64_t seed;

/* Written by C-Blosc2 3.3 through python-blosc2. */
static const struct {
    const char *name;
    int64_t item_size;
    const char *hex;
} REAL_CHUNKS[] = {
    {"blosclz nofilter noise", 4,
     "0501150400200000000400001716000000000000000000000000000000000000"},
    {"blosclz nofilter rand", 4,
     "0501170400200000000400002020000000000000000000000000000000000000"},
    {"blosclz nofilter zero", 4,
     "0501150400200000000400002000000000000000000000000000000000000010"},
    {"blosclz nofilter f", 8,
     "0501170800400000000800002040000000000000000000000000000000000000"},
    {"blosclz shuffle noise", 4,
     "050105040020000000040000c008000001000000000000000000000000000000"},
    {"blosclz shuffle f", 8,
     "050105080040000000080000f53d000001000000000000000000000000000000"},
    {"blosclz bitshuffle noise", 4,
     "050115040020000000040000f006000002000000000000000000000000000000"},
    {"blosclz delta noise", 4,
     "05011d0400200000000400008f16000003000000000000000000000000000000"},
    {"blosclz trunc prec f", 8,
     "0501150800400000000800001f3d000004000000000000000a00000000000000"},
    {"blosclz ndcell noise", 4,
     "0501150400200000000400000616000020000000000000000400000000000000"},
    {"blosclz ndmean noise", 4,
     "050115040020000000040000f702000021000000000000000400000000000000"},
    {"blosclz int trunc f", 8,
     "050115080040000000080000c507000024000000000000000a00000000000000"},
    {"lz4 nofilter noise", 4,
     "0501350400200000000400007118000000000000000001000000000000000000"},
    {"lz4 shuffle noise", 4,
     "050125040020000000040000c008000001000000000001000000000000000000"},
    {"lz4 shuffle noise, dictionary", 4,
     "0501250400200000000400006f09000001000000000001000000000000000001"},
    {"lz4 bytedelta noise", 4,
     "050135040020000000040000b419000023000000000001000400000000000000"},
    {"lz4hc nofilter noise", 4,
     "050135040020000000040000e711000000000000000002000000000000000000"},
    {"lz4hc shuffle noise, dictionary", 4,
     "0501350400200000000400007709000001000000000002000000000000000001"},
    {"zlib nofilter noise", 4,
     "050175040020000000040000910b000000000000000004000000000000000000"},
    {"zstd nofilter noise", 4,
     "050195040020000000040000740a000000000000000005000000000000000000"},
    {"zstd shuffle noise", 4,
     "0501850400200000000400007407000001000000000005000000000000000000"},
    {"zstd shuffle noise, dictionary", 4,
     "0501850400200000000400008d09000001000000000005000000000000000001"},
    {"zfp acc nofilter f", 8,
     "0501d50800400000000800007011000000000000000021fd0000000000000000"},
    {"zfp prec nofilter f", 8,
     "0501d50800400000000800001015000000000000000022100000000000000000"},
    {"zfp rate nofilter f", 8,
     "0501d50800400000000800006020000000000000000023320000000000000000"},
    {"ndlz, cells of 4", 1,
     "0501d5010008000000010000ed03000000000000000020040000000000000000"},
    {"ndlz, cells of 8", 1,
     "0501d5010008000000010000d806000000000000000020080000000000000000"},
    {"items of 256 bytes", 256,
     "0501850100320000000a00006200000000000000000105000000000000000000"},
    {"items of 256 bytes, zeros", 256,
     "0501850100320000000a00002000000000000000000105000000000000000010"},
    {"repeated items of 2 bytes", 2,
     "0501050264000000140000002200000000000000000000000000000000000030"},
    {"level 0", 4, "0501070400200000000400002020000000000000000105000000000000000000"},
    {"items of 7 bytes", 7,
     "0501950764000000620000004d00000000000000000105000000000000000000"},
    {"zeros", 8, "0501050880380100803801002000000000000000000000000000000000000010"},
    {"not-a-number", 8, "0501050880380100803801002000000000000000000000000000000000000020"},
    {"repeated 7.0", 8, "0501050880380100803801002800000000000000000000000000000000000030"},
    {"uninitialised", 8, "0501050880380100803801002000000000000000000000000000000000000040"},
    {"repeated items of 300 bytes", 300,
     "0501050170170000b80b00004c01000000000000000000000000000000000030"},
    {"index of one chunk", 8,
     "0501070808000000080000002800000000000000000001000000000000000000"},
    {"attribute", 8, "0501070806000000010000002600000000000000000100000000000000000000"},
};

enum { N_REAL_CHUNKS = sizeof REAL_CHUNKS / sizeof *REAL_CHUNKS };

static void decode_hex(const char *hex, uint8_t *bytes)
{
    for (int i = 0; i < CV_CHUNK_HEADER_SIZE; i++) {
        char digits[3] = {hex[2 * i], hex[2 * i + 1], 0};
        bytes[i] = (uint8_t)strtoul(digits, NULL, 16);
    }
}

static int32_t load32(const uint8_t *p) { return (int32_t)cv_load_le32(p); }

static void store32(uint8_t *p, int32_t value) { cv_store_le32(p, (uint32_t)value); }

static cv_chunk_expect expect_itself(const uint8_t *bytes, int64_t item_size)
{
    return (cv_chunk_expect){.chunk = 17,
                             .pos = 4096,
                             .nbytes = load32(bytes + 4),
                             .block_size = load32(bytes + 8),
                             .item_size = item_size,
                             .max_cbytes = load32(bytes + 12)};
}

static void real_chunks_pass(void **state)
{
    (void)state;
    for (int i = 0; i < N_REAL_CHUNKS; i++) {
        uint8_t bytes[CV_CHUNK_HEADER_SIZE];
        decode_hex(REAL_CHUNKS[i].hex, bytes);
        cv_chunk_expect expect = expect_itself(bytes, REAL_CHUNKS[i].item_size);
        cv_chunk_header header;
        cv_error err = {0};
        if (cv_chunk_header_parse(bytes, &expect, &header, &err) != CV_OK)
            fail_msg("%s: %s", REAL_CHUNKS[i].name, err.message);
        assert_int_equal(header.nbytes, expect.nbytes);
        assert_int_equal(header.cbytes, expect.max_cbytes);

        expect.nbytes = -1; /* only the available space is known */
        expect.block_size = expect.item_size = 0;
        if (cv_chunk_header_parse(bytes, &expect, &header, &err) != CV_OK)
            fail_msg("%s, nothing known: %s", REAL_CHUNKS[i].name, err.message);
    }
}

/* A Zstd chunk of 8 blocks of 1024 bytes, items of 4. */
static const char REGULAR[] =
    "0501850400200000000400007407000001000000000005000000000000000000";
static const char MEMCPYED[] =
    "0501070400200000000400002020000000000000000105000000000000000000";
static const char NANS[] = "0501050880380100803801002000000000000000000000000000000000000020";
static const char VALUE[] =
    "0501050880380100803801002800000000000000000000000000000000000030";

static void fields_mean_what_their_writer_meant(void **state)
{
    (void)state;
    uint8_t bytes[CV_CHUNK_HEADER_SIZE];
    decode_hex(REGULAR, bytes);
    cv_chunk_expect expect = expect_itself(bytes, 4);
    cv_chunk_header h;
    assert_int_equal(cv_chunk_header_parse(bytes, &expect, &h, NULL), CV_OK);
    assert_int_equal(h.version, 5);
    assert_true(h.split);
    assert_false(h.memcpyed);
    assert_int_equal(h.codec, 4);
    assert_int_equal(h.filters[0], 1);
    assert_int_equal(h.special, CV_SPECIAL_NONE);
    assert_int_equal(h.block_size, 1024);
    assert_int_equal(h.nbytes, 8192);
    assert_int_equal(h.cbytes, 0x774);
    assert_int_equal(cv_block_starts_size(&h), 32);

    decode_hex(VALUE, bytes);
    expect = expect_itself(bytes, 8);
    assert_int_equal(cv_chunk_header_parse(bytes, &expect, &h, NULL), CV_OK);
    assert_int_equal(h.special, CV_SPECIAL_VALUE);
    assert_int_equal(cv_block_starts_size(&h), 0);
}

typedef struct lie {
    const char *chunk;
    int at;
    uint8_t byte;
    cv_status status;
    const char *words;
} lie;

static void every_lie_is_named(void **state)
{
    (void)state;
    static const lie lies[] = {
        {REGULAR, 0, 6, CATERVA_EUNSUPPORTED, "chunk 17 at byte 4096 has blocks of variable"},
        {REGULAR, 0, 7, CATERVA_EUNSUPPORTED, "format version 7, newer than 5"},
        {REGULAR, 0, 0, CATERVA_ECORRUPT, "format version 0"},
        {REGULAR, 2, 0x80, CATERVA_ECORRUPT, "no Blosc2 header (flags 0x80)"},
        {REGULAR, 2, 0x45, CATERVA_EUNSUPPORTED, "unknown codec format 2"},
        {REGULAR, 2, 0xa5, CATERVA_EUNSUPPORTED, "unknown codec format 5"},
        {REGULAR, 2, 0xc5, CATERVA_EUNSUPPORTED, "needs codec 5"},
        {REGULAR, 2, 0x87, CATERVA_ECORRUPT, "1908 bytes to store 8192 uncompressed"},
        {REGULAR, 3, 0, CATERVA_ECORRUPT, "items of 0 bytes"},
        {REGULAR, 3, 8, CATERVA_ECORRUPT, "items of 8 bytes, the array's have 4"},
        {REGULAR, 5, 0x40, CATERVA_ECORRUPT, "16384 bytes of data instead of 8192"},
        {REGULAR, 7, 0x80, CATERVA_ECORRUPT, "bytes of data instead of 8192"},
        {REGULAR, 9, 8, CATERVA_ECORRUPT, "blocks of 2048 bytes, the grid's have 1024"},
        {REGULAR, 10, 1, CATERVA_ECORRUPT, "blocks of 66560 bytes in 8192"},
        {REGULAR, 11, 0x80, CATERVA_ECORRUPT, "claims blocks of -"},
        {REGULAR, 13, 8, CATERVA_ECORRUPT, "to take 2164 bytes, there is room for 1908"},
        {REGULAR, 15, 0x80, CATERVA_ECORRUPT, "claims to take -"},
        {REGULAR, 16, 5, CATERVA_EUNSUPPORTED, "needs filter 5"},
        {REGULAR, 21, 200, CATERVA_EUNSUPPORTED, "needs filter 200"},
        {REGULAR, 30, 1, CATERVA_EUNSUPPORTED, "blocks of variable length"},
        {REGULAR, 30, 2, CATERVA_EUNSUPPORTED, "unknown flags 0x02 0x00"},
        {REGULAR, 31, 4, CATERVA_EUNSUPPORTED, "unknown flags 0x00 0x04"},
        {REGULAR, 31, 8, CATERVA_ECORRUPT, "lazy"},
        {REGULAR, 31, 0x80, CATERVA_EUNSUPPORTED, "instrumented"},
        {REGULAR, 31, 0x50, CATERVA_EUNSUPPORTED, "unknown flags 0x00 0x50"},
        {REGULAR, 31, 0x10, CATERVA_ECORRUPT, "but has 1876 bytes of payload"},
        {MEMCPYED, 12, 0x1f, CATERVA_ECORRUPT, "8223 bytes to store 8192 uncompressed"},
        {NANS, 3, 2, CATERVA_ECORRUPT, "all NaN, but its items have 2 bytes"},
        {VALUE, 12, 0x24, CATERVA_ECORRUPT, "a value of 4 bytes, the items have 8"},
        {VALUE, 12, 0x20, CATERVA_ECORRUPT, "a value of 0 bytes"},
    };
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
        uint8_t bytes[CV_CHUNK_HEADER_SIZE];
        decode_hex(lies[i].chunk, bytes);
        cv_chunk_expect expect =
            expect_itself(bytes, strcmp(lies[i].chunk, NANS) ? bytes[3] : 0);
        bytes[lies[i].at] = lies[i].byte;
        cv_chunk_header header;
        cv_error err = {0};
        cv_status status = cv_chunk_header_parse(bytes, &expect, &header, &err);
        if (status != lies[i].status || !strstr(err.message, lies[i].words))
            fail_msg("lie %zu: %d \"%s\", not \"%s\"", i, status, err.message, lies[i].words);
        assert_int_equal(err.position, 4096);
    }
}

/* Without expectations, a header must still be consistent. */
static void sizes_must_fit_each_other(void **state)
{
    (void)state;
    uint8_t bytes[CV_CHUNK_HEADER_SIZE];
    cv_chunk_expect anything = {.chunk = -1, .nbytes = -1, .max_cbytes = INT32_MAX};
    cv_chunk_header header;
    cv_error err = {0};
    decode_hex(REGULAR, bytes);
    store32(bytes + 4, 0);
    assert_int_equal(cv_chunk_header_parse(bytes, &anything, &header, &err),
                     CATERVA_ECORRUPT);
    assert_non_null(strstr(err.message, "holds 0 bytes, but is compressed"));

    decode_hex(VALUE, bytes);
    store32(bytes + 4, load32(bytes + 4) + 4);
    assert_int_equal(cv_chunk_header_parse(bytes, &anything, &header, &err),
                     CATERVA_ECORRUPT);
    assert_non_null(strstr(err.message, "not a multiple of its value's 8"));
}

static void the_starts_need_room(void **state)
{
    (void)state;
    uint8_t bytes[CV_CHUNK_HEADER_SIZE];
    decode_hex(REGULAR, bytes);
    cv_chunk_expect expect = expect_itself(bytes, 4);
    store32(bytes + 12, 32 + 8 * 4 - 1);
    cv_chunk_header header;
    cv_error err = {0};
    assert_int_equal(cv_chunk_header_parse(bytes, &expect, &header, &err), CATERVA_ECORRUPT);
    assert_non_null(
        strstr(err.message, "takes 63 bytes, too few for the starts of 8 blocks"));
}

/* Special and memcpyed chunks are stored with any block size. */
static void the_block_size_counts_only_for_streams(void **state)
{
    (void)state;
    static const char *const chunks[] = {MEMCPYED, NANS, VALUE};
    for (size_t i = 0; i < sizeof chunks / sizeof *chunks; i++) {
        uint8_t bytes[CV_CHUNK_HEADER_SIZE];
        decode_hex(chunks[i], bytes);
        cv_chunk_expect expect = expect_itself(bytes, bytes[3]);
        expect.block_size = 64;
        cv_chunk_header header;
        assert_int_equal(cv_chunk_header_parse(bytes, &expect, &header, NULL), CV_OK);
    }
}

/* An unknown codec does not matter if no stream is decoded. */
static void plugins_count_only_for_streams(void **state)
{
    (void)state;
    uint8_t bytes[CV_CHUNK_HEADER_SIZE];
    decode_hex(MEMCPYED, bytes);
    bytes[2] |= 0xc0;
    bytes[22] = 200;
    cv_chunk_expect expect = expect_itself(bytes, 4);
    cv_chunk_header header;
    assert_int_equal(cv_chunk_header_parse(bytes, &expect, &header, NULL), CV_OK);
}

static void long_blosclz_blocks_are_refused(void **state)
{
    (void)state;
    uint8_t bytes[CV_CHUNK_HEADER_SIZE];
    decode_hex(REGULAR, bytes);
    bytes[2] = 0x15;
    memcpy(bytes + 4, "\0\0\0\1", 4); /* 16 MiB in blocks of 8 MiB + 256 */
    memcpy(bytes + 8, "\0\1\x80\0", 4);
    cv_chunk_expect expect = expect_itself(bytes, 4);
    cv_chunk_header header;
    cv_error err = {0};
    assert_int_equal(cv_chunk_header_parse(bytes, &expect, &header, &err),
                     CATERVA_EUNSUPPORTED);
    assert_non_null(strstr(err.message, "BloscLZ streams of 8388864 bytes"));
    bytes[2] = 0x05; /* split, except the last block, which is shorter */
    assert_int_equal(cv_chunk_header_parse(bytes, &expect, &header, &err),
                     CATERVA_EUNSUPPORTED);
    memcpy(bytes + 4, "\0\2\0\1", 4); /* two whole blocks: streams of a quarter */
    expect.nbytes = 2 * (int64_t)expect.block_size;
    assert_int_equal(cv_chunk_header_parse(bytes, &expect, &header, &err), CV_OK);
    bytes[2] = 0x15;
    memcpy(bytes + 4, "\0\0\0\1", 4);
    bytes[9] = 0;
    expect.nbytes = 16 << 20;
    expect.block_size = 8 << 20;
    assert_int_equal(cv_chunk_header_parse(bytes, &expect, &header, &err), CV_OK);
}

static void messages_name_the_place(void **state)
{
    (void)state;
    uint8_t bytes[CV_CHUNK_HEADER_SIZE] = {0};
    cv_chunk_expect expect = {.chunk = -1, .pos = 77};
    cv_chunk_header header;
    cv_error err = {0};
    assert_int_equal(cv_chunk_header_parse(bytes, &expect, &header, &err), CATERVA_ECORRUPT);
    assert_string_equal(err.message, "the index chunk at byte 77 has format version 0");
    expect.chunk = -2;
    assert_int_equal(cv_chunk_header_parse(bytes, &expect, &header, &err), CATERVA_ECORRUPT);
    assert_string_equal(err.message, "the attribute chunk at byte 77 has format version 0");
}

/* ---- Block starts ------------------------------------------------------- */

static int32_t naive_end(const uint8_t *starts, int n, int block, int32_t chunk_end)
{
    int32_t end = chunk_end, start = load32(starts + 4 * block);
    for (int i = 0; i < n; i++) {
        int32_t other = load32(starts + 4 * i);
        if (other > start && other < end) end = other;
    }
    return end;
}

static void ranges_agree_with_a_naive_search(void **state)
{
    (void)state;
    enum { MOST = 60 };
    rng random = rng_from_seed(seed);
    for (int trial = 0; trial < 3000; trial++) {
        int n = rng_int(&random, 1, MOST), order = rng_int(&random, 0, 2);
        int32_t first = 32 + 4 * n;
        int32_t room = trial % 3 == 0 ? 20 : rng_int(&random, 20, INT32_MAX / (n + 1) - 36);
        cv_chunk_header header = {
            .nbytes = 100 * n, .block_size = 100, .cbytes = first + room * n};
        cv_chunk_expect expect = {.chunk = 3, .pos = 9};
        uint8_t *starts = malloc((size_t)n * 4);
        cv_block_range ranges[MOST];
        assert_non_null(starts);
        for (int i = 0; i < n; i++) {
            int32_t start = order == 0   ? first + room * i /* as written by one thread */
                            : order == 1 ? first + room * (n - 1 - i) /* backwards */
                                         : first + rng_int(&random, 0, room * n - 4);
            store32(starts + 4 * i, start);
        }
        assert_int_equal(cv_block_starts_parse(&header, starts, n, &expect, ranges, NULL),
                         CV_OK);
        for (int i = 0; i < n; i++) {
            assert_int_equal(ranges[i].start, load32(starts + 4 * i));
            assert_int_equal(ranges[i].end, naive_end(starts, n, i, header.cbytes));
        }
        free(starts);
    }
}

static void bad_starts_are_named(void **state)
{
    (void)state;
    cv_chunk_header header = {.nbytes = 300, .block_size = 100, .cbytes = 100};
    cv_chunk_expect expect = {.chunk = 3, .pos = 9};
    cv_block_range ranges[3];
    cv_error err = {0};
    static const int32_t bad[] = {43, 0, -1, 97, 100, INT32_MAX, INT32_MIN};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        uint8_t starts[12];
        store32(starts, 44);
        store32(starts + 4, bad[i]);
        store32(starts + 8, 96);
        assert_int_equal(cv_block_starts_parse(&header, starts, 3, &expect, ranges, &err),
                         CATERVA_ECORRUPT);
        assert_non_null(strstr(err.message, "chunk 3 at byte 9 puts block 1 at byte"));
        store32(starts + 4, 48);
        assert_int_equal(cv_block_starts_parse(&header, starts, 3, &expect, ranges, &err),
                         CV_OK);
        header.has_dict = true; /* its size is at byte 44 */
        assert_int_equal(cv_block_starts_parse(&header, starts, 3, &expect, ranges, &err),
                         CATERVA_ECORRUPT);
        header.has_dict = false;
        assert_int_equal(cv_block_starts_parse(&header, starts, 2, &expect, ranges, &err),
                         CATERVA_ECORRUPT);
        assert_non_null(strstr(err.message, "has 3 blocks, the grid has 2"));
    }
}

/* ---- Any bytes ---------------------------------------------------------- */

/* Accepted mutants must satisfy what the engine relies on. */
static void check_mutant(const uint8_t *bytes, size_t size, void *context)
{
    const cv_chunk_expect *expect = context;
    cv_chunk_header header;
    cv_error err = {0};
    if (size < CV_CHUNK_HEADER_SIZE) return;
    if (cv_chunk_header_parse(bytes, expect, &header, &err) != CV_OK) {
        assert_true(err.message[0] != 0);
        return;
    }
    assert_int_equal(header.nbytes, expect->nbytes);
    assert_in_range(header.cbytes, CV_CHUNK_HEADER_SIZE, expect->max_cbytes);
    assert_in_range(cv_block_starts_size(&header), 0, header.cbytes - CV_CHUNK_HEADER_SIZE);
    if (cv_block_starts_size(&header) > 0)
        assert_int_equal(header.block_size, expect->block_size);
}

static void no_bytes_do_harm(void **state)
{
    (void)state;
    rng random = rng_from_seed(seed);
    for (int i = 0; i < N_REAL_CHUNKS; i++) {
        uint8_t bytes[CV_CHUNK_HEADER_SIZE];
        decode_hex(REAL_CHUNKS[i].hex, bytes);
        cv_chunk_expect expect = expect_itself(bytes, REAL_CHUNKS[i].item_size);
        check_mutants(&random, 5000, bytes, sizeof bytes, check_mutant, &expect);
    }
}

int main(int argc, char **argv)
{
    seed = seed_argument(argc, argv, 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(real_chunks_pass),
        cmocka_unit_test(fields_mean_what_their_writer_meant),
        cmocka_unit_test(every_lie_is_named),
        cmocka_unit_test(sizes_must_fit_each_other),
        cmocka_unit_test(the_starts_need_room),
        cmocka_unit_test(the_block_size_counts_only_for_streams),
        cmocka_unit_test(plugins_count_only_for_streams),
        cmocka_unit_test(long_blosclz_blocks_are_refused),
        cmocka_unit_test(messages_name_the_place),
        cmocka_unit_test(ranges_agree_with_a_naive_search),
        cmocka_unit_test(bad_starts_are_named),
        cmocka_unit_test(no_bytes_do_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
