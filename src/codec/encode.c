/* Room: codec. Items to compressed chunks: those of the grid, and the two
 * others a frame holds (its index, and the values of attributes). */
#include "base/arith.h"
#include "codec/internal.h"

#include <stdlib.h>
#include <string.h>

enum { INDEX_BLOCK_BYTES = 16 * 1024 };

struct cv_encoder {
    blosc2_context *context;
    blosc2_schunk *schunk; /* NULL unless the codec needs geometry */
    int32_t chunk_bytes;
    int32_t block_bytes;
    cv_buffer pair;        /* an incompressible block and one of zeros */
    cv_buffer block_chunk; /* a block, encoded as a chunk of its own */
};

cv_status cv_encoder_create(const cv_codec_spec *spec, cv_encoder **out, cv_error *err)
{
    cv_codec_init();
    CV_TRY(cv_codec_check_encoding(spec, err));
    cv_encoder *encoder = calloc(1, sizeof *encoder);
    if (!encoder) return cv_fail_memory(err, sizeof *encoder, "an encoder");
    encoder->chunk_bytes = spec->chunk_bytes;
    encoder->block_bytes = spec->block_bytes;

    cv_status status = CV_OK;
    if (cv_codec_needs_geometry(spec))
        status = cv_codec_geometry_schunk(spec, &encoder->schunk, err);
    if (status == CV_OK) {
        blosc2_cparams params = cv_codec_cparams(spec);
        params.schunk = encoder->schunk;
        encoder->context = blosc2_create_cctx(params);
        if (!encoder->context)
            status = cv_fail(err, CATERVA_EINVAL, -1,
                             "libblosc2 takes no %s with these filters and sizes",
                             cv_codec_name(spec->codec));
    }
    if (status != CV_OK) {
        cv_encoder_free(encoder);
        return status;
    }
    *out = encoder;
    return CV_OK;
}

void cv_encoder_free(cv_encoder *encoder)
{
    if (!encoder) return;
    if (encoder->context) blosc2_free_ctx(encoder->context);
    if (encoder->schunk) blosc2_schunk_free(encoder->schunk);
    cv_buffer_free(&encoder->pair);
    cv_buffer_free(&encoder->block_chunk);
    free(encoder);
}

/* Compresses into `out`, which is left exactly as long as the chunk. */
static cv_status compress(blosc2_context *context, const void *src, int32_t size,
                          cv_buffer *out, cv_error *err)
{
    int32_t room = size + BLOSC2_MAX_OVERHEAD;
    CV_TRY(cv_buffer_resize(out, (size_t)room, err));
    int result = blosc2_compress_ctx(context, src, size, out->data, room);
    if (result <= 0)
        return cv_fail(err, CATERVA_EINVAL, -1, "libblosc2 cannot encode a chunk: %s",
                       blosc2_error_string(result));
    out->size = (size_t)result;
    return CV_OK;
}

cv_status cv_encode_chunk(cv_encoder *encoder, const void *src, cv_buffer *out, cv_error *err)
{
    CV_TRY(compress(encoder->context, src, encoder->chunk_bytes, out, err));

    int32_t block_bytes = (int32_t)cv_load_le32(out->data + BLOSC2_CHUNK_BLOCKSIZE);
    bool has_blocks = !(out->data[BLOSC2_CHUNK_FLAGS] & BLOSC_MEMCPYED) &&
                      out->size > BLOSC_EXTENDED_HEADER_LENGTH;
    if (has_blocks && block_bytes != encoder->block_bytes)
        return cv_fail(err, CATERVA_EINVAL, -1,
                       "libblosc2 cuts the chunk into blocks of %d bytes, not %d: it needs "
                       "another block shape",
                       block_bytes, encoder->block_bytes);
    return CV_OK;
}

bool cv_codec_is_zeros(const cv_buffer *encoded)
{
    return encoded->size == BLOSC_EXTENDED_HEADER_LENGTH &&
           (encoded->data[BLOSC2_CHUNK_BLOSC2_FLAGS] >> 4 & BLOSC2_SPECIAL_MASK) ==
               BLOSC2_SPECIAL_ZERO;
}

/* ---- One block ---------------------------------------------------------- */

/* Header bytes that decide how streams decode. The flags byte counts without
 * "memcpyed", which belongs to a chunk and not to its streams. */
bool cv_codec_same_encoding(const uint8_t a[32], const uint8_t b[32])
{
    return a[BLOSC2_CHUNK_VERSIONLZ] == b[BLOSC2_CHUNK_VERSIONLZ] &&
           (a[BLOSC2_CHUNK_FLAGS] | BLOSC_MEMCPYED) ==
               (b[BLOSC2_CHUNK_FLAGS] | BLOSC_MEMCPYED) &&
           a[BLOSC2_CHUNK_TYPESIZE] == b[BLOSC2_CHUNK_TYPESIZE] &&
           memcmp(a + BLOSC2_CHUNK_BLOCKSIZE, b + BLOSC2_CHUNK_BLOCKSIZE, sizeof(int32_t)) ==
               0 &&
           memcmp(a + BLOSC2_CHUNK_FILTER_CODES, b + BLOSC2_CHUNK_FILTER_CODES,
                  BLOSC_EXTENDED_HEADER_LENGTH - BLOSC2_CHUNK_FILTER_CODES) == 0;
}

void cv_codec_set_sizes(uint8_t header[32], int32_t chunk_bytes, int32_t cbytes)
{
    cv_store_le32(header + BLOSC2_CHUNK_NBYTES, (uint32_t)chunk_bytes);
    cv_store_le32(header + BLOSC2_CHUNK_CBYTES, (uint32_t)cbytes);
}

/* Alone, a block of zeros becomes a special chunk and an incompressible one a
 * memcpyed chunk, and neither has streams. Beside a block that is the other of
 * the two, it has: in [block, filler] the first block is stored as in any
 * larger chunk. The filler of zeros is a few bytes; the filler for zeros is one
 * bit in one item. */
static cv_status encode_pair(cv_encoder *encoder, const void *block, bool zeros,
                             cv_error *err)
{
    size_t size = (size_t)encoder->block_bytes;
    CV_TRY(cv_buffer_resize(&encoder->pair, 2 * size, err));
    memcpy(encoder->pair.data, block, size);
    memset(encoder->pair.data + size, 0, size);
    if (zeros) encoder->pair.data[2 * size - 1] = 0x40;
    return compress(encoder->context, encoder->pair.data, 2 * encoder->block_bytes,
                    &encoder->block_chunk, err);
}

static bool has_streams(const cv_buffer *chunk)
{
    return chunk->size > BLOSC_EXTENDED_HEADER_LENGTH + sizeof(int32_t) &&
           !(chunk->data[BLOSC2_CHUNK_FLAGS] & BLOSC_MEMCPYED) &&
           (chunk->data[BLOSC2_CHUNK_BLOSC2_FLAGS] >> 4 & BLOSC2_SPECIAL_MASK) == 0;
}

cv_status cv_encode_block(cv_encoder *encoder, const void *block, cv_buffer *out,
                          uint8_t header[32], bool *encoded, cv_error *err)
{
    cv_buffer *chunk = &encoder->block_chunk;
    CV_TRY(compress(encoder->context, block, encoder->block_bytes, chunk, err));
    int32_t n_blocks = 1;
    if (!has_streams(chunk)) {
        bool zeros = chunk->size == BLOSC_EXTENDED_HEADER_LENGTH;
        CV_TRY(encode_pair(encoder, block, zeros, err));
        n_blocks = 2;
    }
    const uint8_t *starts = chunk->data + BLOSC_EXTENDED_HEADER_LENGTH;
    size_t begin = BLOSC_EXTENDED_HEADER_LENGTH + (size_t)n_blocks * sizeof(int32_t);
    size_t end = n_blocks == 1 ? chunk->size : cv_load_le32(starts + sizeof(int32_t));
    *encoded = has_streams(chunk) && cv_load_le32(starts) == begin && end >= begin &&
               end <= chunk->size;
    if (!*encoded) return CV_OK;
    memcpy(header, chunk->data, BLOSC_EXTENDED_HEADER_LENGTH);
    return cv_buffer_append(out, chunk->data + begin, end - begin, err);
}

cv_status cv_encode_repeated(const cv_codec_spec *spec, const void *item, cv_buffer *out,
                             cv_error *err)
{
    cv_codec_init();
    int32_t room = BLOSC_EXTENDED_HEADER_LENGTH + spec->item_size;
    CV_TRY(cv_buffer_resize(out, (size_t)room, err));
    int result = blosc2_chunk_repeatval(cv_codec_cparams(spec), spec->chunk_bytes, out->data,
                                        room, item);
    if (result != room)
        return cv_fail(err, CATERVA_EINVAL, -1,
                       "libblosc2 cannot encode a repeated value: %s",
                       blosc2_error_string(result));
    return CV_OK;
}

static cv_status compress_once(blosc2_cparams params, const void *src, int32_t size,
                               cv_buffer *out, cv_error *err)
{
    cv_codec_init();
    blosc2_context *context = blosc2_create_cctx(params);
    if (!context) return cv_fail_memory(err, 1, "an encoder");
    cv_status status = compress(context, src, size, out, err);
    blosc2_free_ctx(context);
    return status;
}

static bool all_equal(const int64_t *offsets, int64_t n)
{
    for (int64_t i = 1; i < n; i++)
        if (offsets[i] != offsets[0]) return false;
    return true;
}

cv_status cv_encode_index(const int64_t *offsets, int64_t n, cv_buffer *out, cv_error *err)
{
    blosc2_cparams params = BLOSC2_CPARAMS_DEFAULTS;
    params.compcode = BLOSC_BLOSCLZ;
    params.splitmode = BLOSC_NEVER_SPLIT;
    params.typesize = sizeof(int64_t);
    params.blocksize = INDEX_BLOCK_BYTES;
    int64_t most = BLOSC2_MAX_BUFFERSIZE / (int64_t)sizeof(int64_t);
    if (n > most)
        return cv_fail(err, CATERVA_EINVAL, -1,
                       "an index of %lld chunks, the format allows %lld", (long long)n,
                       (long long)most);
    int32_t size = (int32_t)(n * (int64_t)sizeof(int64_t));
    if (n < 8 || !all_equal(offsets, n))
        return compress_once(params, offsets, size, out, err);

    cv_codec_init();
    int32_t room = BLOSC_EXTENDED_HEADER_LENGTH + (int32_t)sizeof(int64_t);
    CV_TRY(cv_buffer_resize(out, (size_t)room, err));
    if (blosc2_chunk_repeatval(params, size, out->data, room, offsets) != room)
        return cv_fail_memory(err, (size_t)room, "the index");
    return CV_OK;
}

cv_status cv_encode_plain(const void *src, size_t size, cv_buffer *out, cv_error *err)
{
    if (size > (size_t)BLOSC2_MAX_BUFFERSIZE)
        return cv_fail(err, CATERVA_EINVAL, -1, "a value of %zu bytes, the format allows %d",
                       size, BLOSC2_MAX_BUFFERSIZE);
    blosc2_cparams params = BLOSC2_CPARAMS_DEFAULTS;
    params.typesize = 1;
    return compress_once(params, src, (int32_t)size, out, err);
}
