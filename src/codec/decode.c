/* Room: codec. Compressed bytes to items. Chunks come with a header that was
 * checked against the grid; the streams inside are anyone's bytes, and
 * libblosc2's refusal of them is our CATERVA_ECORRUPT.
 *
 * One block is decoded through a chunk of its own, made on the spot:
 *
 *     | header, 32 bytes       | start | the block's streams, as stored ... |
 *     | nbytes := block_bytes  |  36   |                                    |
 *     | cbytes := 36 + streams |       |                                    |
 *
 * so the cost does not grow with the number of blocks in the real chunk. Where
 * the streams stand in a buffer of ours, the 36 bytes before them are borrowed
 * for it and restored: nothing is copied. */
#include "base/arith.h"
#include "codec/internal.h"

#include <stdlib.h>
#include <string.h>

/* Up to so many blocks, libblosc2's own walk over a chunk's block starts is
 * cheaper than copying a block's streams (measured at 128 KiB blocks). */
enum { FEW_BLOCKS = 64 };

struct cv_decoder {
    blosc2_context *context;
    blosc2_schunk *schunk; /* NULL unless the codec needs geometry */
    cv_buffer block_chunk; /* for streams that may not be touched */
};

cv_block_access cv_codec_access(const uint8_t chunk_header[32])
{
    if (chunk_header[BLOSC2_CHUNK_FLAGS] & BLOSC_MEMCPYED) return CV_ACCESS_RAW;
    /* blosc2_getitem_* would do for a dictionary if it loaded one: it decodes
     * with that of the chunk decompressed last (3.3.5). */
    if (chunk_header[BLOSC2_CHUNK_BLOSC2_FLAGS] & BLOSC2_USEDICT) return CV_ACCESS_CHUNK;
    for (int i = 0; i < CV_CODEC_FILTERS; i++)
        if (chunk_header[BLOSC2_CHUNK_FILTER_CODES + i] == BLOSC_DELTA)
            return CV_ACCESS_CHUNK;
    return CV_ACCESS_BLOCK;
}

cv_status cv_decoder_create(const cv_codec_spec *spec, cv_decoder **out, cv_error *err)
{
    cv_codec_init();
    cv_decoder *decoder = calloc(1, sizeof *decoder);
    if (!decoder) return cv_fail_memory(err, sizeof *decoder, "a decoder");

    cv_status status = CV_OK;
    if (cv_codec_needs_geometry(spec))
        status = cv_codec_geometry_schunk(spec, &decoder->schunk, err);
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
    free(decoder);
}

static cv_status check_decoded(int result, int32_t expected, cv_error *err)
{
    if (result == expected) return CV_OK;
    if (result == BLOSC2_ERROR_MEMORY_ALLOC)
        return cv_fail_memory(err, (size_t)expected, "decoding");
    if (result < 0)
        return cv_fail(err, CATERVA_ECORRUPT, -1, "libblosc2 cannot decode it: %s",
                       blosc2_error_string(result));
    return cv_fail(err, CATERVA_ECORRUPT, -1, "decodes to %d bytes, not %d", result,
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

cv_status cv_decode_block(cv_decoder *decoder, const cv_packed_block *block, void *dst,
                          int32_t dst_size, cv_error *err)
{
    if (!block->in_place && block->chunk && block->n_blocks <= FEW_BLOCKS)
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
    int result = blosc2_decompress_ctx(decoder->context, chunk, chunk_size, dst, dst_size);
    if (block->in_place) memcpy(chunk, saved, CV_BLOCK_PREFIX);
    return check_decoded(result, dst_size, err);
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
