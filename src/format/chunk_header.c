/* Room: format. Parses the 32-byte header and the block starts of a chunk, as C-Blosc2 2.0 to 3.x
 * writes them. Accepts only chunks that agree with the grid and that libblosc2 supports. Does not
 * read the streams. */
#include "format/chunk_header.h"

#include "base/arith.h"
#include "base/crc.h"
#include "base/grid.h"
#include "base/heap.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- Chunk header ---- */

/* Positions of the fields, which are little-endian; see README_CHUNK_FORMAT.rst of C-Blosc2. */
enum {
    AT_VERSION = 0,
    AT_CODEC_VERSION = 1,
    AT_FLAGS = 2,
    AT_TYPE_SIZE = 3,
    AT_NBYTES = 4,
    AT_BLOCK_SIZE = 8,
    AT_CBYTES = 12,
    AT_FILTERS = 16,
    AT_CODEC_ID = 22,
    AT_CODEC_META = 23,
    AT_FILTERS_META = 24,
    AT_MORE_FLAGS = 30,
    AT_BLOSC2_FLAGS = 31
};

enum {
    FLAG_EXTENDED = 0x05, /* both bits are set in a 32-byte header */
    FLAG_MEMCPYED = 0x02,
    FLAG_DELTA = 0x08, /* redundant: delta is also among the filters */
    FLAG_NOT_SPLIT = 0x10,

    BLOSC2_DICT = 0x01,
    BLOSC2_BIG_ENDIAN = 0x02,
    BLOSC2_RESERVED = 0x04,
    BLOSC2_LAZY = 0x08,
    BLOSC2_INSTRUMENTED = 0x80,

    MORE_VL_BLOCKS = 0x01
};

enum { MIN_VERSION = 1, MAX_VERSION = 5, VL_BLOCKS_VERSION = 6 };

enum { CODEC_BLOSCLZ = 0, CODEC_PLUGIN = 6 };

/* libblosc2's BloscLZ decoder overflows on longer streams. In bytes. */
enum { MAX_BLOSCLZ_STREAM = 8 << 20 };

/* Fails with "chunk 17 at byte 4096 <problem>". */
static cv_status refuse(const cv_chunk_expect *expect, cv_status code, cv_error *err,
                        const char *fmt, ...) CV_PRINTF(4, 5);

static cv_status refuse(const cv_chunk_expect *expect, cv_status code, cv_error *err,
                        const char *fmt, ...)
{
    char name[40], problem[160];
    if (expect->chunk >= 0)
        snprintf(name, sizeof name, "chunk %lld", (long long)expect->chunk);
    else
        snprintf(name, sizeof name, "the %s chunk",
                 expect->chunk == -1 ? "index" : "attribute");
    va_list args;
    va_start(args, fmt);
    vsnprintf(problem, sizeof problem, fmt, args);
    va_end(args);
    return cv_fail(err, code, expect->pos, "%s at byte %lld %s", name, (long long)expect->pos,
                   problem);
}

static cv_chunk_header decode(const uint8_t *bytes)
{
    uint8_t flags = bytes[AT_FLAGS], blosc2_flags = bytes[AT_BLOSC2_FLAGS];
    cv_chunk_header header = {
        .version = bytes[AT_VERSION],
        .codec_version = bytes[AT_CODEC_VERSION],
        .memcpyed = (flags & FLAG_MEMCPYED) != 0,
        .split = (flags & FLAG_NOT_SPLIT) == 0,
        .has_dict = (blosc2_flags & BLOSC2_DICT) != 0,
        .big_endian = (blosc2_flags & BLOSC2_BIG_ENDIAN) != 0,
        .lazy = (blosc2_flags & BLOSC2_LAZY) != 0,
        .vl_blocks = (bytes[AT_MORE_FLAGS] & MORE_VL_BLOCKS) != 0,
        .instrumented = (blosc2_flags & BLOSC2_INSTRUMENTED) != 0,
        .special = (cv_special)(blosc2_flags >> 4 & 7),
        .codec = flags >> 5,
        .codec_id = bytes[AT_CODEC_ID],
        .codec_meta = bytes[AT_CODEC_META],
        .type_size = bytes[AT_TYPE_SIZE],
        .nbytes = (int32_t)cv_load_le32(bytes + AT_NBYTES),
        .block_size = (int32_t)cv_load_le32(bytes + AT_BLOCK_SIZE),
        .cbytes = (int32_t)cv_load_le32(bytes + AT_CBYTES),
    };
    memcpy(header.filters, bytes + AT_FILTERS, sizeof header.filters);
    memcpy(header.filters_meta, bytes + AT_FILTERS_META, sizeof header.filters_meta);
    return header;
}

/* ---- Checks ------------------------------------------------------------- */

static cv_status check_flags(const uint8_t *bytes, const cv_chunk_header *header,
                             const cv_chunk_expect *expect, cv_error *err)
{
    if (header->vl_blocks || header->version == VL_BLOCKS_VERSION)
        return refuse(expect, CATERVA_EUNSUPPORTED, err,
                      "has blocks of variable length (version %d)", header->version);
    if (header->version > MAX_VERSION)
        return refuse(expect, CATERVA_EUNSUPPORTED, err,
                      "has format version %d, newer than %d", header->version, MAX_VERSION);
    if (header->version < MIN_VERSION)
        return refuse(expect, CATERVA_ECORRUPT, err, "has format version %d",
                      header->version);
    if ((bytes[AT_FLAGS] & FLAG_EXTENDED) != FLAG_EXTENDED)
        return refuse(expect, CATERVA_ECORRUPT, err, "has no Blosc2 header (flags 0x%02x)",
                      bytes[AT_FLAGS]);
    if (header->lazy)
        return refuse(expect, CATERVA_ECORRUPT, err,
                      "is marked lazy (flags 0x%02x), which is never stored",
                      bytes[AT_BLOSC2_FLAGS]);
    if (header->instrumented)
        return refuse(expect, CATERVA_EUNSUPPORTED, err, "is instrumented (flags 0x%02x)",
                      bytes[AT_BLOSC2_FLAGS]);
    if ((bytes[AT_MORE_FLAGS] & ~MORE_VL_BLOCKS) != 0 ||
        (bytes[AT_BLOSC2_FLAGS] & BLOSC2_RESERVED) != 0 ||
        header->special > CV_SPECIAL_UNINIT)
        return refuse(expect, CATERVA_EUNSUPPORTED, err, "has unknown flags 0x%02x 0x%02x",
                      bytes[AT_MORE_FLAGS], bytes[AT_BLOSC2_FLAGS]);
    return CV_OK;
}

static cv_status check_type_size(const cv_chunk_header *header, const cv_chunk_expect *expect,
                                 cv_error *err)
{
    if (header->type_size == 0)
        return refuse(expect, CATERVA_ECORRUPT, err, "claims items of %d bytes",
                      header->type_size);
    if (expect->item_size == 0) return CV_OK;
    int64_t wanted = expect->item_size > UINT8_MAX ? 1 : expect->item_size;
    if (header->type_size != wanted)
        return refuse(expect, CATERVA_ECORRUPT, err,
                      "claims items of %d bytes, the array's have %lld", header->type_size,
                      (long long)expect->item_size);
    return CV_OK;
}

/* Special and memcpyed chunks have no streams, and often an arbitrary block size. */
static cv_status check_block_size(const cv_chunk_header *header,
                                  const cv_chunk_expect *expect, cv_error *err)
{
    bool has_streams = !header->memcpyed && header->special == CV_SPECIAL_NONE;
    if (header->block_size < 0 || header->block_size > CV_MAX_BLOCK_BYTES)
        return refuse(expect, CATERVA_ECORRUPT, err, "claims blocks of %d bytes",
                      header->block_size);
    if (header->nbytes > 0 &&
        (header->block_size == 0 || header->block_size > header->nbytes))
        return refuse(expect, CATERVA_ECORRUPT, err, "claims blocks of %d bytes in %d",
                      header->block_size, header->nbytes);
    if (!has_streams) return CV_OK;
    if (expect->block_size > 0 && header->block_size != expect->block_size)
        return refuse(expect, CATERVA_ECORRUPT, err,
                      "claims blocks of %d bytes, the grid's have %lld", header->block_size,
                      (long long)expect->block_size);
    if (header->nbytes == 0)
        return refuse(expect, CATERVA_ECORRUPT, err, "holds %d bytes, but is compressed",
                      header->nbytes);
    if (header->split && header->block_size < header->type_size)
        return refuse(expect, CATERVA_ECORRUPT, err,
                      "splits blocks of %d bytes into %d streams", header->block_size,
                      header->type_size);
    return CV_OK;
}

static cv_status check_sizes(const cv_chunk_header *header, const cv_chunk_expect *expect,
                             cv_error *err)
{
    if (header->nbytes < 0 || (expect->nbytes >= 0 && header->nbytes != expect->nbytes))
        return refuse(expect, CATERVA_ECORRUPT, err,
                      "claims %d bytes of data instead of %lld", header->nbytes,
                      (long long)expect->nbytes);
    if (header->cbytes < CV_CHUNK_HEADER_SIZE || header->cbytes > expect->max_cbytes)
        return refuse(expect, CATERVA_ECORRUPT, err,
                      "claims to take %d bytes, there is room for %lld", header->cbytes,
                      (long long)expect->max_cbytes);
    CV_TRY(check_type_size(header, expect, err));
    return check_block_size(header, expect, err);
}

static cv_status check_special(const cv_chunk_header *header, const cv_chunk_expect *expect,
                               cv_error *err)
{
    int32_t payload = header->cbytes - CV_CHUNK_HEADER_SIZE;
    if (header->special != CV_SPECIAL_VALUE) {
        if (payload != 0)
            return refuse(expect, CATERVA_ECORRUPT, err,
                          "is special without a value, but has %d bytes of payload", payload);
        if (header->special == CV_SPECIAL_NAN && header->type_size != 4 &&
            header->type_size != 8)
            return refuse(expect, CATERVA_ECORRUPT, err,
                          "is all NaN, but its items have %d bytes", header->type_size);
        return CV_OK;
    }
    /* The value has the array's item size, which may exceed the type size byte. */
    int64_t wanted = expect->item_size > 0 ? expect->item_size : header->type_size;
    bool unknown = expect->item_size == 0 && header->type_size == 1;
    if (payload == 0 || (payload != wanted && !unknown))
        return refuse(expect, CATERVA_ECORRUPT, err,
                      "repeats a value of %d bytes, the items have %lld", payload,
                      (long long)wanted);
    if (header->nbytes % payload != 0)
        return refuse(expect, CATERVA_ECORRUPT, err,
                      "holds %d bytes, not a multiple of its value's %d", header->nbytes,
                      payload);
    return CV_OK;
}

/* A split block has one stream for each byte of an item, unless it is a shorter last block. */
static cv_status check_blosclz(const cv_chunk_header *header, const cv_chunk_expect *expect,
                               cv_error *err)
{
    bool split =
        header->split && header->type_size > 0 && header->nbytes % header->block_size == 0;
    int32_t stream = split ? header->block_size / header->type_size : header->block_size;
    if (stream <= MAX_BLOSCLZ_STREAM) return CV_OK;
    return refuse(expect, CATERVA_EUNSUPPORTED, err,
                  "has BloscLZ streams of %d bytes; above %d they are unsafe", stream,
                  MAX_BLOSCLZ_STREAM);
}

static cv_status check_codec(const cv_chunk_header *header, const cv_chunk_expect *expect,
                             cv_error *err)
{
    enum { LZ4 = 1, ZLIB = 3, ZSTD = 4, NDLZ = 32, ZFP_LAST = 35 };
    switch (header->codec) {
    case LZ4:
    case ZLIB:
    case ZSTD: return CV_OK;
    case CODEC_BLOSCLZ: return check_blosclz(header, expect, err);
    case CODEC_PLUGIN:
        if (header->codec_id >= NDLZ && header->codec_id <= ZFP_LAST) return CV_OK;
        return refuse(expect, CATERVA_EUNSUPPORTED, err,
                      "needs codec %d, which is not built in", header->codec_id);
    default:
        return refuse(expect, CATERVA_EUNSUPPORTED, err, "has unknown codec format %d",
                      header->codec);
    }
}

static cv_status check_filters(const cv_chunk_header *header, const cv_chunk_expect *expect,
                               cv_error *err)
{
    enum { LAST_PLAIN = 4, NDCELL = 32, INT_TRUNC = 36 };
    for (size_t i = 0; i < sizeof header->filters; i++) {
        int filter = header->filters[i];
        if (filter > LAST_PLAIN && (filter < NDCELL || filter > INT_TRUNC))
            return refuse(expect, CATERVA_EUNSUPPORTED, err,
                          "needs filter %d, which is not built in", filter);
    }
    return CV_OK;
}

/* Checks a chunk with streams: codec and filters must be known, and the block starts must fit. */
static cv_status check_streams(const cv_chunk_header *header, const cv_chunk_expect *expect,
                               cv_error *err)
{
    CV_TRY(check_codec(header, expect, err));
    CV_TRY(check_filters(header, expect, err));
    int64_t n_blocks = cv_ceil_div(header->nbytes, header->block_size);
    if (CV_CHUNK_HEADER_SIZE + 4 * n_blocks > header->cbytes)
        return refuse(expect, CATERVA_ECORRUPT, err,
                      "takes %d bytes, too few for the starts of %lld blocks", header->cbytes,
                      (long long)n_blocks);
    return CV_OK;
}

cv_status cv_chunk_header_parse(const uint8_t *bytes, const cv_chunk_expect *expect,
                                cv_chunk_header *out, cv_error *err)
{
    cv_chunk_header header = decode(bytes);
    CV_TRY(check_flags(bytes, &header, expect, err));
    CV_TRY(check_sizes(&header, expect, err));
    if (header.special != CV_SPECIAL_NONE)
        CV_TRY(check_special(&header, expect, err));
    else if (!header.memcpyed)
        CV_TRY(check_streams(&header, expect, err));
    else if (header.cbytes - CV_CHUNK_HEADER_SIZE != header.nbytes)
        return refuse(expect, CATERVA_ECORRUPT, err,
                      "takes %d bytes to store %d uncompressed", header.cbytes,
                      header.nbytes);
    if (expect->block_size > 0) header.block_size = (int32_t)expect->block_size;
    *out = header;
    return CV_OK;
}

void cv_chunk_header_set_size(uint8_t *bytes, int32_t cbytes)
{
    cv_store_le32(bytes + AT_CBYTES, (uint32_t)cbytes);
}

void cv_chunk_header_set_streams(uint8_t *bytes, int codec, int32_t block_size)
{
    bytes[AT_FLAGS] = (uint8_t)(codec << 5 | FLAG_EXTENDED | FLAG_NOT_SPLIT);
    cv_store_le32(bytes + AT_BLOCK_SIZE, (uint32_t)block_size);
    memset(bytes + AT_FILTERS, 0, AT_MORE_FLAGS - AT_FILTERS); /* also the codec's numbers */
}

/* ---- Block starts ------------------------------------------------------- */

int32_t cv_block_starts_size(const cv_chunk_header *header)
{
    if (header->memcpyed || header->special != CV_SPECIAL_NONE) return 0;
    return (int32_t)(4 * cv_ceil_div(header->nbytes, header->block_size));
}

typedef struct place {
    uint32_t start;
    int32_t block;
} place;

enum { DIGIT_BITS = 11, DIGITS = 1 << DIGIT_BITS };

static void sort_by_digit(const place *src, place *dst, int32_t n, int shift)
{
    int32_t next[DIGITS] = {0}; /* counts, then positions */
    for (int32_t i = 0; i < n; i++) next[src[i].start >> shift & (DIGITS - 1)]++;
    for (int32_t digit = 0, sum = 0; digit < DIGITS; digit++) {
        int32_t count = next[digit];
        next[digit] = sum;
        sum += count;
    }
    for (int32_t i = 0; i < n; i++)
        dst[next[src[i].start >> shift & (DIGITS - 1)]++] = src[i];
}

/* Finds the ends of blocks that were stored in any order, for example by several threads: each
 * block ends at the next larger start. Sorts by radix, in two passes for chunks up to 4 MiB. */
static cv_status find_ends(cv_block_range *ranges, int32_t n, int32_t chunk_end,
                           cv_error *err)
{
    size_t size = 2 * (size_t)n * sizeof(place);
    place *places = cv_malloc(size);
    if (!places) return cv_fail_memory(err, size, "block starts");
    place *sorted = places, *other = places + n;
    for (int32_t i = 0; i < n; i++) sorted[i] = (place){(uint32_t)ranges[i].start, i};
    for (int shift = 0; shift < 32 && (uint32_t)chunk_end >> shift > 0; shift += DIGIT_BITS) {
        sort_by_digit(sorted, other, n, shift);
        place *swapped = sorted;
        sorted = other;
        other = swapped;
    }
    uint32_t larger = (uint32_t)chunk_end, previous = (uint32_t)chunk_end;
    for (int32_t i = n - 1; i >= 0; i--) {
        /* NOLINTNEXTLINE(clang-analyzer-core.UndefinedBinaryOperatorResult): sorting set all n */
        if (sorted[i].start != previous) larger = previous;
        previous = sorted[i].start;
        ranges[sorted[i].block].end = (int32_t)larger;
    }
    cv_free(places);
    return CV_OK;
}

cv_status cv_block_starts_parse(const cv_chunk_header *header, const uint8_t *starts,
                                int64_t n_blocks, const cv_chunk_expect *expect,
                                cv_block_range *out, cv_error *err)
{
    int32_t starts_size = cv_block_starts_size(header);
    if (n_blocks < 0 || n_blocks > INT32_MAX / 4 || starts_size != 4 * n_blocks)
        return refuse(expect, CATERVA_ECORRUPT, err, "has %d blocks, the grid has %lld",
                      starts_size / 4, (long long)n_blocks);

    /* a stream, or the size of the dictionary, takes at least four bytes */
    int64_t first = CV_CHUNK_HEADER_SIZE + (int64_t)starts_size + (header->has_dict ? 4 : 0);
    int64_t last = (int64_t)header->cbytes - 4;
    bool ordered = true;
    for (int32_t i = 0; i < n_blocks; i++) {
        int32_t start = (int32_t)cv_load_le32(starts + 4 * (size_t)i);
        if (start < first || start > last)
            return refuse(expect, CATERVA_ECORRUPT, err,
                          "puts block %d at byte %d, outside its streams %lld to %d", i,
                          start, (long long)first, header->cbytes);
        if (i > 0 && start <= out[i - 1].start) ordered = false;
        out[i].start = start;
        if (i > 0) out[i - 1].end = start;
    }
    if (n_blocks > 0) out[n_blocks - 1].end = header->cbytes;
    return ordered ? CV_OK : find_ends(out, (int32_t)n_blocks, header->cbytes, err);
}

/* ---- The block table ---- */

static const char MAGIC[4] = {'c', 'v', 'b', 't'};

enum { AT_COUNT = 4, AT_HEAD = 8, AT_BLOCKS = 12 };

int64_t cv_block_table_blocks(const cv_chunk_header *header, int64_t n_blocks)
{
    return header->special == CV_SPECIAL_NONE ? n_blocks : 0;
}

cv_block_range cv_block_table_range(const cv_chunk_header *header,
                                    const cv_block_range *ranges, int64_t i)
{
    if (ranges) return ranges[i];
    int64_t start = CV_CHUNK_HEADER_SIZE + i * header->block_size;
    int64_t end = cv_min_i64(start + header->block_size, header->cbytes);
    return (cv_block_range){(int32_t)start, (int32_t)end};
}

int32_t cv_block_table_head(const cv_chunk_header *header, const cv_block_range *ranges,
                            int64_t n)
{
    int32_t head = header->cbytes;
    for (int64_t i = 0; i < n; i++) {
        int32_t start = cv_block_table_range(header, ranges, i).start;
        if (start < head) head = start;
        if (!ranges) break; /* without ranges, block 0 is the first */
    }
    return head;
}

void cv_block_table_make(const uint8_t *chunk, const cv_chunk_header *header,
                         const cv_block_range *ranges, cv_block_table *table)
{
    table->head = cv_crc32c(0, chunk, (size_t)cv_block_table_head(header, ranges, table->n));
    for (int64_t i = 0; i < table->n; i++) {
        cv_block_range range = cv_block_table_range(header, ranges, i);
        table->blocks[i] =
            cv_crc32c(0, chunk + range.start, (size_t)(range.end - range.start));
    }
}

uint32_t cv_block_table_write(const cv_block_table *table, uint8_t *out)
{
    memcpy(out, MAGIC, sizeof MAGIC);
    cv_store_le32(out + AT_COUNT, (uint32_t)table->n);
    cv_store_le32(out + AT_HEAD, table->head);
    for (int64_t i = 0; i < table->n; i++)
        cv_store_le32(out + AT_BLOCKS + 4 * i, table->blocks[i]);
    size_t before = AT_BLOCKS + 4 * (size_t)table->n;
    uint32_t name = cv_crc32c(0, out, before);
    cv_store_le32(out + before, name);
    return name;
}

uint32_t cv_block_table_name(const uint8_t *bytes, int64_t n)
{
    return cv_load_le32(bytes + AT_BLOCKS + 4 * n);
}

bool cv_block_table_read(const uint8_t *bytes, cv_block_table *table)
{
    if (memcmp(bytes, MAGIC, sizeof MAGIC) != 0 ||
        cv_load_le32(bytes + AT_COUNT) != (uint32_t)table->n)
        return false;
    size_t before = AT_BLOCKS + 4 * (size_t)table->n;
    if (cv_crc32c(0, bytes, before) != cv_block_table_name(bytes, table->n)) return false;
    table->head = cv_load_le32(bytes + AT_HEAD);
    for (int64_t i = 0; i < table->n; i++)
        table->blocks[i] = cv_load_le32(bytes + AT_BLOCKS + 4 * i);
    return true;
}
