/* Room: codec. Decodes compressed bytes. Callers have checked the headers against the grid. Streams
 * are not trusted: an error of libblosc2 becomes CATERVA_ECORRUPT. A block is decoded as a chunk
 * that contains only this block:
 *
 *   | header, 32 bytes       | start | the block's streams, as stored ... |
 *   | nbytes := block_bytes  |  36   |                                    |
 *   | cbytes := 36 + streams |       |                                    |
 *
 * So the cost does not depend on the number of blocks in the stored chunk. If the streams are in a
 * buffer of this library, the 36 bytes before them are overwritten and restored, which saves a
 * copy. */
#include "codec/decode.h"

#include "base/arith.h"
#include "base/heap.h"
#include "codec/params.h"

#include <string.h>

/* Up to this many blocks, libblosc2's loop over block starts costs less than a copy of the streams
 * (measured with 128 KiB blocks). */
enum { FEW_BLOCKS = 64 };

struct cv_decoder {
    blosc2_context *context;
    blosc2_schunk *schunk; /* NULL unless the codec needs geometry */
    cv_buffer block_chunk; /* copies of streams that are not `in_place` */
    int32_t item_size;
};

cv_block_access cv_codec_access(const uint8_t chunk_header[32])
{
    if (chunk_header[BLOSC2_CHUNK_FLAGS] & BLOSC_MEMCPYED) return CV_ACCESS_RAW;
    /* blosc2_getitem_* of 3.3.5 would use the dictionary of the last decompressed chunk. */
    if (chunk_header[BLOSC2_CHUNK_BLOSC2_FLAGS] & BLOSC2_USEDICT) return CV_ACCESS_CHUNK;
    for (int i = 0; i < CV_CODEC_FILTERS; i++)
        if (chunk_header[BLOSC2_CHUNK_FILTER_CODES + i] == BLOSC_DELTA)
            return CV_ACCESS_CHUNK;
    return CV_ACCESS_BLOCK;
}

cv_status cv_decoder_create(const cv_codec_spec *spec, cv_decoder **out, cv_error *err)
{
    cv_decoder *decoder = cv_calloc(1, sizeof *decoder);
    if (!decoder) return cv_fail_memory(err, sizeof *decoder, "a decoder");
    decoder->item_size = spec->item_size;

    cv_status status = cv_codec_prepare(spec, &decoder->schunk, err);
    if (status == CV_OK) {
        blosc2_dparams params = BLOSC2_DPARAMS_DEFAULTS;
        params.nthreads = 1;
        params.schunk = decoder->schunk;
        params.typesize = spec->item_size;
        decoder->context = blosc2_create_dctx(params);
        if (!decoder->context) status = cv_fail_memory(err, 1, "a decoder");
    }
    if (status != CV_OK) {
        cv_decoder_free(decoder);
        return status;
    }
    *out = decoder;
    return CV_OK;
}

void cv_decoder_free(cv_decoder *decoder)
{
    if (!decoder) return;
    if (decoder->context) blosc2_free_ctx(decoder->context);
    if (decoder->schunk) blosc2_schunk_free(decoder->schunk);
    cv_buffer_free(&decoder->block_chunk);
    cv_free(decoder);
}

static cv_status check_decoded(int result, int32_t expected, cv_error *err)
{
    if (result == expected) return CV_OK;
    if (result == BLOSC2_ERROR_MEMORY_ALLOC)
        return cv_fail_memory(err, (size_t)expected, "decoding");
    if (result < 0)
        return cv_fail(err, CATERVA_ECORRUPT, -1, "libblosc2 cannot decode the data: %s",
                       blosc2_error_string(result));
    return cv_fail(err, CATERVA_ECORRUPT, -1, "the data decodes to %d bytes, not %d", result,
                   expected);
}

static void write_block_header(uint8_t *at, const cv_packed_block *block, int32_t block_bytes)
{
    memcpy(at, block->chunk_header, BLOSC_EXTENDED_HEADER_LENGTH);
    cv_store_le32(at + BLOSC2_CHUNK_NBYTES, (uint32_t)block_bytes);
    cv_store_le32(at + BLOSC2_CHUNK_BLOCKSIZE, (uint32_t)block_bytes);
    cv_store_le32(at + BLOSC2_CHUNK_CBYTES,
                  (uint32_t)(CV_BLOCK_PREFIX + block->streams_size));
    cv_store_le32(at + BLOSC_EXTENDED_HEADER_LENGTH, CV_BLOCK_PREFIX);
}

/* ---- Blocks of one repeated item ------------------------------------------ */

/* Whether a shuffle of whole items is the only filter that must be reversed. */
static bool only_shuffled(const uint8_t *header, int32_t block_bytes)
{
    int n = 0;
    for (int i = 0; i < CV_CODEC_FILTERS; i++) {
        uint8_t filter = header[BLOSC2_CHUNK_FILTER_CODES + i];
        if (filter == BLOSC_SHUFFLE && header[BLOSC2_CHUNK_FILTER_META + i] == 0)
            n++;
        else if (filter != BLOSC_NOFILTER && filter != BLOSC_TRUNC_PREC)
            return false;
    }
    int32_t item_size = header[BLOSC2_CHUNK_TYPESIZE];
    return n == 1 && item_size > 1 && block_bytes % item_size == 0;
}

/* Whether all filters map a block of equal bytes to itself. */
static bool filters_keep_runs(const uint8_t *header)
{
    for (int i = 0; i < CV_CODEC_FILTERS; i++) {
        uint8_t filter = header[BLOSC2_CHUNK_FILTER_CODES + i];
        if (filter != BLOSC_NOFILTER && filter != BLOSC_SHUFFLE && filter != BLOSC_TRUNC_PREC)
            return false;
    }
    return true;
}

static bool all_same(const uint8_t *bytes, int32_t n)
{
    for (int32_t i = 1; i < n; i++)
        if (bytes[i] != bytes[0]) return false;
    return true;
}

/* A block has one stream, or one for each byte of an item. A stream is an int32 size and that many
 * bytes. Size 0 means a run of zeros; size -v, followed by an odd byte, means a run of bytes v.
 * Returns whether all *n streams are runs, and sets `item` to their values. */
static bool read_runs(const cv_packed_block *block, uint8_t *item, int32_t *n)
{
    enum { ONE_STREAM = 0x10 };
    const uint8_t *header = block->chunk_header;
    const uint8_t *at = block->streams;
    const uint8_t *end = at + block->streams_size;
    *n = header[BLOSC2_CHUNK_FLAGS] & ONE_STREAM ? 1 : header[BLOSC2_CHUNK_TYPESIZE];
    for (int32_t i = 0; i < *n; i++) {
        if (end - at < (ptrdiff_t)sizeof(int32_t)) return false;
        int32_t size = (int32_t)cv_load_le32(at);
        at += sizeof(int32_t);
        if (size > 0 || size < -255) return false;
        item[i] = (uint8_t)-size;
        if (size < 0 && (at == end || (*at++ & 1) == 0)) return false;
    }
    return at == end;
}

/* Whether the block is one repeated item whose streams all are runs, which is common in smooth and
 * sparse data. Does not call libblosc2. After a shuffle of whole items the values of the runs are
 * the bytes of the item; with other filters all bytes must be equal. Sets `item`, *item_size. */
static bool read_repeated(const cv_packed_block *block, int32_t block_bytes, uint8_t *item,
                          int32_t *item_size)
{
    return filters_keep_runs(block->chunk_header) && read_runs(block, item, item_size) &&
           *item_size > 0 && block_bytes % *item_size == 0 &&
           (all_same(item, *item_size) || only_shuffled(block->chunk_header, block_bytes));
}

static void repeat(uint8_t *dst, int32_t size, const uint8_t *item, int32_t item_size)
{
    if (all_same(item, item_size)) {
        memset(dst, item[0], (size_t)size);
        return;
    }
    memcpy(dst, item, (size_t)item_size);
    for (int32_t done = item_size; done < size;) {
        int32_t step = done < size - done ? done : size - done;
        memcpy(dst + done, dst, (size_t)step);
        done += step;
    }
}

/* ---- Any block --------------------------------------------------------------- */

enum { NO_FILTERS = 1 };

/* Decodes any block: as a part of its chunk if the chunk is in memory and has few blocks, else as a
 * chunk that contains only this block. If `how` is NO_FILTERS, reverses no filter. */
static cv_status decode_streams(cv_decoder *decoder, const cv_packed_block *block, int how,
                                void *dst, int32_t dst_size, cv_error *err)
{
    if (how != NO_FILTERS && !block->in_place && block->chunk &&
        block->n_blocks <= FEW_BLOCKS)
        return cv_decode_range(decoder, block->chunk, block->chunk_size,
                               block->block * dst_size, dst_size, dst, err);
    int32_t chunk_size = CV_BLOCK_PREFIX + block->streams_size;
    uint8_t saved[CV_BLOCK_PREFIX];
    uint8_t *chunk;
    if (block->in_place) {
        chunk = block->streams - CV_BLOCK_PREFIX;
        memcpy(saved, chunk, CV_BLOCK_PREFIX);
    } else {
        CV_TRY(cv_buffer_reserve(&decoder->block_chunk, (size_t)chunk_size, err));
        chunk = decoder->block_chunk.data;
        memcpy(chunk + CV_BLOCK_PREFIX, block->streams, (size_t)block->streams_size);
    }
    write_block_header(chunk, block, dst_size);
    if (how == NO_FILTERS) memset(chunk + BLOSC2_CHUNK_FILTER_CODES, 0, CV_CODEC_FILTERS);
    int result = blosc2_decompress_ctx(decoder->context, chunk, chunk_size, dst, dst_size);
    if (block->in_place) memcpy(chunk, saved, CV_BLOCK_PREFIX);
    return check_decoded(result, dst_size, err);
}

cv_status cv_decode_block(cv_decoder *decoder, const cv_packed_block *block, void *dst,
                          int32_t dst_size, cv_error *err)
{
    uint8_t item[UINT8_MAX];
    int32_t item_size;
    if (!read_repeated(block, dst_size, item, &item_size))
        return decode_streams(decoder, block, 0, dst, dst_size, err);
    repeat(dst, dst_size, item, item_size);
    return CV_OK;
}

/* ---- Partly decoded blocks --------------------------------------------------------- */

/* Whether to leave the block shuffled. This needs a copy of streams that are not `in_place`, which
 * pays only if they are short. */
static bool may_stay_shuffled(const cv_decoder *decoder, const cv_packed_block *block,
                              int32_t block_bytes)
{
    enum { MOST_COPIED = 8 * 1024 };
    return (block->in_place || block->streams_size <= MOST_COPIED) &&
           block->chunk_header[BLOSC2_CHUNK_TYPESIZE] == decoder->item_size &&
           only_shuffled(block->chunk_header, block_bytes);
}

cv_status cv_decode_loose(cv_decoder *decoder, const cv_packed_block *block, void *dst,
                          int32_t dst_size, cv_block_form *form, cv_error *err)
{
    uint8_t item[UINT8_MAX];
    int32_t size;
    bool is_repeated = read_repeated(block, dst_size, item, &size);
    if (is_repeated && decoder->item_size % size == 0) {
        *form = CV_FORM_ITEM;
        repeat(dst, decoder->item_size, item, size);
        return CV_OK;
    }
    *form = CV_FORM_ITEMS;
    if (is_repeated) {
        repeat(dst, dst_size, item, size);
        return CV_OK;
    }
    if (!may_stay_shuffled(decoder, block, dst_size))
        return decode_streams(decoder, block, 0, dst, dst_size, err);
    *form = CV_FORM_SHUFFLED;
    return decode_streams(decoder, block, NO_FILTERS, dst, dst_size, err);
}

cv_status cv_decode_range(cv_decoder *decoder, const uint8_t *chunk, int32_t chunk_size,
                          int32_t start, int32_t size, void *dst, cv_error *err)
{
    int result =
        blosc2_getitem_bytes_ctx(decoder->context, chunk, chunk_size, start, size, dst, size);
    return check_decoded(result, size, err);
}

cv_status cv_decode_chunk(cv_decoder *decoder, const uint8_t *chunk, int32_t chunk_size,
                          void *dst, int32_t dst_size, cv_error *err)
{
    int result = blosc2_decompress_ctx(decoder->context, chunk, chunk_size, dst, dst_size);
    return check_decoded(result, dst_size, err);
}
