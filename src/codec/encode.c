/* Room: codec. Encodes chunks: those of the grid, the index, and attribute values. */
#include "codec/encode.h"

#include "base/arith.h"
#include "base/heap.h"
#include "codec/params.h"
#include "codec/spec.h"

#include <string.h>

struct cv_encoder {
    blosc2_context *context;
    blosc2_schunk *schunk; /* NULL unless the codec needs geometry */
    blosc2_cparams params;
    int32_t chunk_bytes;
    int32_t block_bytes;
    bool is_slow;
    bool spoils_source;        /* libblosc2 uses its source as scratch */
    cv_buffer source;          /* a copy of the source, if spoils_source */
    int32_t room;              /* extra bytes for a growing chunk: see room_to_grow */
    blosc2_context *gathering; /* takes its input from `blocks`; NULL until needed */
    cv_block_source blocks;
    blosc2_context *short_context; /* for short blocks; or NULL */
    int32_t short_bytes;           /* block size of short_context */
    cv_buffer pair;                /* a block and a filler: see encode_pair */
    cv_buffer block_chunk;         /* a block, encoded as a chunk */
};

/* libblosc2 (up to 3.3.5 at least) runs the filters over three buffers in rotation, the third of
 * which is the source (pipeline_forward). So the third and later filters overwrite the source. */
static bool spoils_source(const cv_codec_spec *spec) { return cv_codec_n_filters(spec) > 2; }

/* Returns the bytes that a chunk may need beyond BLOSC2_MAX_OVERHEAD. If a block's streams do not
 * fit, the n-d codecs fail, and zfp writes beyond the end. Counts 8 bytes for each stream. */
static int32_t room_to_grow(const cv_codec_spec *spec)
{
    enum { PER_BLOCK = 2 * sizeof(int32_t) };
    if (spec->codec < BLOSC2_GLOBAL_REGISTERED_CODECS_START) return 0;
    int64_t n_blocks = 2 + spec->chunk_bytes / spec->block_bytes; /* 2: for encode_pair */
    int64_t streams = spec->split_mode == BLOSC_ALWAYS_SPLIT ? spec->item_size : 1;
    return (int32_t)cv_min_i64(n_blocks * streams * PER_BLOCK, INT32_MAX / 2);
}

cv_status cv_encoder_create(const cv_codec_spec *spec, cv_encoder **out, cv_error *err)
{
    CV_TRY(cv_codec_check_encoding(spec, err));
    cv_encoder *encoder = cv_calloc(1, sizeof *encoder);
    if (!encoder) return cv_fail_memory(err, sizeof *encoder, "an encoder");
    encoder->chunk_bytes = spec->chunk_bytes;
    encoder->block_bytes = spec->block_bytes;
    encoder->is_slow = cv_codec_is_slow(spec);
    encoder->spoils_source = spoils_source(spec);
    encoder->room = room_to_grow(spec);

    cv_status status = cv_codec_prepare(spec, &encoder->schunk, err);
    if (status == CV_OK) {
        encoder->params = cv_codec_cparams(spec);
        encoder->params.schunk = encoder->schunk;
        encoder->context = blosc2_create_cctx(encoder->params);
        if (!encoder->context)
            status = cv_fail(err, CATERVA_EPIPELINE, -1,
                             "libblosc2 does not support %s with these filters and sizes",
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
    if (encoder->short_context) blosc2_free_ctx(encoder->short_context);
    if (encoder->gathering) blosc2_free_ctx(encoder->gathering);
    if (encoder->schunk) blosc2_schunk_free(encoder->schunk);
    cv_buffer_free(&encoder->source);
    cv_buffer_free(&encoder->pair);
    cv_buffer_free(&encoder->block_chunk);
    cv_free(encoder);
}

/* Compresses into `out`, which is resized to the chunk. `room` is the room_to_grow. libblosc2 may
 * overwrite the source: see compress_borrowed. */
static cv_status compress(blosc2_context *context, const void *src, int32_t size,
                          int32_t room, cv_buffer *out, cv_error *err)
{
    int64_t most = (int64_t)size + BLOSC2_MAX_OVERHEAD + room;
    if (most > INT32_MAX) most = INT32_MAX;
    CV_TRY(cv_buffer_resize(out, (size_t)most, err));
    int result = blosc2_compress_ctx(context, src, size, out->data, (int32_t)most);
    if (result <= 0)
        return cv_fail(err, CATERVA_EPIPELINE, -1, "libblosc2 cannot encode a chunk: %s",
                       blosc2_error_string(result));
    out->size = (size_t)result;
    return CV_OK;
}

static void store_plainly(cv_buffer *chunk, const void *src, int32_t size)
{
    chunk->size = (size_t)size + BLOSC_EXTENDED_HEADER_LENGTH;
    chunk->data[BLOSC2_CHUNK_FLAGS] |= BLOSC_MEMCPYED;
    cv_codec_set_sizes(chunk->data, size, (int32_t)chunk->size);
    memcpy(chunk->data + BLOSC_EXTENDED_HEADER_LENGTH, src, (size_t)size);
}

/* Compresses a source that must not change. Stores the items uncompressed if libblosc2 may have
 * copied them from a source that it had overwritten, or if it may have marked a short compressed
 * chunk as copied, which happens with a dictionary. */
static cv_status compress_borrowed(cv_encoder *encoder, const void *src, int32_t size,
                                   cv_buffer *out, cv_error *err)
{
    const void *scratch = src;
    if (encoder->spoils_source) {
        CV_TRY(cv_buffer_resize(&encoder->source, (size_t)size, err));
        scratch = memcpy(encoder->source.data, src, (size_t)size);
    }
    CV_TRY(compress(encoder->context, scratch, size, encoder->room, out, err));
    bool doubtful = encoder->spoils_source || encoder->params.use_dict;
    bool copied = out->data[BLOSC2_CHUNK_FLAGS] & BLOSC_MEMCPYED;
    if ((copied && doubtful) || out->size > (size_t)size + BLOSC_EXTENDED_HEADER_LENGTH)
        store_plainly(out, src, size);
    return CV_OK;
}

static cv_status check_chunk(const cv_encoder *encoder, cv_buffer *out, cv_error *err)
{
    int32_t block_bytes = (int32_t)cv_load_le32(out->data + BLOSC2_CHUNK_BLOCKSIZE);
    bool memcpyed = out->data[BLOSC2_CHUNK_FLAGS] & BLOSC_MEMCPYED;
    if (memcpyed) /* else decoders would look for a dictionary */
        out->data[BLOSC2_CHUNK_BLOSC2_FLAGS] &= (uint8_t)~BLOSC2_USEDICT;
    bool has_blocks = !memcpyed && out->size > BLOSC_EXTENDED_HEADER_LENGTH;
    if (has_blocks && block_bytes != encoder->block_bytes)
        return cv_fail(err, CATERVA_EPIPELINE, -1,
                       "libblosc2 divides the chunk into blocks of %d bytes, not %d: choose "
                       "another block shape",
                       block_bytes, encoder->block_bytes);
    return CV_OK;
}

cv_status cv_encode_chunk(cv_encoder *encoder, const void *src, cv_buffer *out, cv_error *err)
{
    CV_TRY(compress_borrowed(encoder, src, encoder->chunk_bytes, out, err));
    return check_chunk(encoder, out, err);
}

/* ---- Chunks gathered block by block ---------------------------------------- */

/* With a prefilter libblosc2 ignores the source, unless delta or a second filter uses it. */
bool cv_codec_gathers(const cv_codec_spec *spec)
{
    return cv_codec_n_filters(spec) <= 1 && cv_codec_blocks_independent(spec) &&
           !cv_codec_needs_geometry(spec);
}

static int fill_block(blosc2_prefilter_params *params)
{
    const cv_block_source *blocks = params->user_data;
    blocks->fill(blocks->context, params->nblock, params->output);
    return 0;
}

static cv_status new_gathering(cv_encoder *encoder, cv_error *err)
{
    blosc2_prefilter_params preparams = {.user_data = &encoder->blocks};
    blosc2_cparams params = encoder->params;
    params.prefilter = fill_block;
    params.preparams = &preparams; /* copied */
    encoder->gathering = blosc2_create_cctx(params);
    return encoder->gathering ? CV_OK : cv_fail_memory(err, 1, "an encoder");
}

/* libblosc2 requires a source of the chunk's length but does not read it, so it gets `out`. */
cv_status cv_encode_gathered(cv_encoder *encoder, const cv_block_source *source,
                             cv_buffer *out, cv_error *err)
{
    if (!encoder->gathering) CV_TRY(new_gathering(encoder, err));
    encoder->blocks = *source;
    CV_TRY(cv_buffer_reserve(out, (size_t)encoder->chunk_bytes + BLOSC2_MAX_OVERHEAD, err));
    CV_TRY(compress(encoder->gathering, out->data, encoder->chunk_bytes, 0, out, err));
    return check_chunk(encoder, out, err);
}

bool cv_codec_is_zeros(const cv_buffer *encoded)
{
    return encoded->size == BLOSC_EXTENDED_HEADER_LENGTH &&
           (encoded->data[BLOSC2_CHUNK_BLOSC2_FLAGS] >> 4 & BLOSC2_SPECIAL_MASK) ==
               BLOSC2_SPECIAL_ZERO;
}

/* ---- One block ---------------------------------------------------------- */

/* Compares the header bytes that determine decoding. Ignores the flag "memcpyed", which belongs to
 * the chunk and not to its streams. */
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

void cv_codec_set_plain(uint8_t header[32], int32_t chunk_bytes)
{
    header[BLOSC2_CHUNK_FLAGS] |= BLOSC_MEMCPYED;
    cv_codec_set_sizes(header, chunk_bytes, chunk_bytes + BLOSC_EXTENDED_HEADER_LENGTH);
}

void cv_codec_set_block_size(uint8_t header[32], int32_t block_bytes)
{
    cv_store_le32(header + BLOSC2_CHUNK_BLOCKSIZE, (uint32_t)block_bytes);
}

/* A block is encoded in a pair with a filler, [block, filler], so that it always gets streams.
 * Alone, a block of zeros would become a special chunk, and an incompressible block a memcpyed
 * chunk, both without streams. So zeros get a filler with one bit set, and other blocks a filler of
 * zeros, which takes a few bytes. */
static uint8_t *new_pair(cv_encoder *encoder, size_t filler_pos, size_t filler_size,
                         size_t size, cv_error *err)
{
    if (cv_buffer_resize(&encoder->pair, size, err) != CV_OK) return NULL;
    memset(encoder->pair.data + filler_pos, 0, filler_size);
    return encoder->pair.data;
}

static cv_status encode_pair(cv_encoder *encoder, const void *block, bool filler_is_zeros,
                             cv_error *err)
{
    size_t size = (size_t)encoder->block_bytes;
    uint8_t *pair = new_pair(encoder, size, size, 2 * size, err);
    if (!pair) return CATERVA_ENOMEM;
    memcpy(pair, block, size);
    if (!filler_is_zeros) pair[2 * size - 1] = 0x40;
    return compress(encoder->context, pair, 2 * (int32_t)size, encoder->room,
                    &encoder->block_chunk, err);
}

/* Makes a context with small blocks for a short block of `size` bytes. The streams of unsplit
 * blocks do not depend on the block size. The context's blocks have less than twice `size` bytes,
 * so that a filler is cheap, but at least 256 bytes, as room for other parts of a chunk. */
static cv_status take_short_context(cv_encoder *encoder, int32_t size, cv_error *err)
{
    enum { LEAST = 256 };
    int32_t bytes = LEAST;
    while (bytes < size) bytes *= 2;
    if (encoder->short_context && encoder->short_bytes == bytes) return CV_OK;
    if (encoder->short_context) blosc2_free_ctx(encoder->short_context);
    blosc2_cparams params = encoder->params;
    params.blocksize = encoder->short_bytes = bytes;
    encoder->short_context = blosc2_create_cctx(params);
    return encoder->short_context ? CV_OK : cv_fail_memory(err, 1, "an encoder");
}

/* Encodes a short block behind a filler, [filler, block]. Encoded alone, a short block would change
 * the context's block size permanently. */
static cv_status encode_short(cv_encoder *encoder, const void *block, int32_t size,
                              bool filler_is_zeros, cv_error *err)
{
    CV_TRY(take_short_context(encoder, size, err));
    int32_t first = encoder->short_bytes, total = first + size;
    uint8_t *pair = new_pair(encoder, 0, (size_t)first, (size_t)total, err);
    if (!pair) return CATERVA_ENOMEM;
    memcpy(pair + first, block, (size_t)size);
    if (!filler_is_zeros) pair[first - 1] = 0x40;
    CV_TRY(compress(encoder->short_context, pair, total, encoder->room, &encoder->block_chunk,
                    err));
    cv_codec_set_block_size(encoder->block_chunk.data, encoder->block_bytes);
    return CV_OK;
}

static bool has_streams(const cv_buffer *chunk)
{
    return chunk->size > BLOSC_EXTENDED_HEADER_LENGTH + sizeof(int32_t) &&
           !(chunk->data[BLOSC2_CHUNK_FLAGS] & BLOSC_MEMCPYED) &&
           (chunk->data[BLOSC2_CHUNK_BLOSC2_FLAGS] >> 4 & BLOSC2_SPECIAL_MASK) == 0;
}

/* Finds the streams of block `k` of `chunk`, which has n blocks. False if it has none. */
static bool find_streams(const cv_buffer *chunk, uint32_t n, uint32_t k, size_t *begin,
                         size_t *end)
{
    if (!has_streams(chunk)) return false;
    const uint8_t *starts = chunk->data + BLOSC_EXTENDED_HEADER_LENGTH;
    *begin = cv_load_le32(starts + k * sizeof(int32_t));
    *end = k + 1 < n ? cv_load_le32(starts + (k + 1) * sizeof(int32_t)) : chunk->size;
    return *begin >= BLOSC_EXTENDED_HEADER_LENGTH + n * sizeof(int32_t) && *end >= *begin &&
           *end <= chunk->size;
}

static bool is_zeros(const uint8_t *bytes, int32_t size)
{
    return bytes[0] == 0 && memcmp(bytes, bytes + 1, (size_t)size - 1) == 0;
}

static cv_status append_streams(const cv_buffer *chunk, uint32_t n, uint32_t k,
                                cv_buffer *out, uint8_t header[32], cv_error *err)
{
    size_t begin, end;
    if (!find_streams(chunk, n, k, &begin, &end)) return CV_OK;
    memcpy(header, chunk->data, BLOSC_EXTENDED_HEADER_LENGTH);
    return cv_buffer_append(out, chunk->data + begin, end - begin, err);
}

cv_status cv_encode_block(cv_encoder *encoder, const void *block, int32_t size,
                          cv_buffer *out, uint8_t header[32], cv_error *err)
{
    cv_buffer *chunk = &encoder->block_chunk;
    if (size < encoder->block_bytes) {
        CV_TRY(encode_short(encoder, block, size, !is_zeros(block, size), err));
        return append_streams(chunk, 2, 1, out, header, err);
    }
    if (encoder->is_slow && !is_zeros(block, size)) { /* code below may encode it twice */
        size_t before = out->size;
        CV_TRY(encode_pair(encoder, block, true, err));
        CV_TRY(append_streams(chunk, 2, 0, out, header, err));
        if (out->size > before) return CV_OK;
    }
    CV_TRY(compress_borrowed(encoder, block, size, chunk, err));
    if (has_streams(chunk)) return append_streams(chunk, 1, 0, out, header, err);
    bool zeros = chunk->size == BLOSC_EXTENDED_HEADER_LENGTH;
    CV_TRY(encode_pair(encoder, block, !zeros, err));
    return append_streams(chunk, 2, 0, out, header, err);
}

/* Makes the sizes in a special chunk little-endian: libblosc2 3.3.5 uses the machine's order. */
static void mend_sizes(uint8_t *chunk, int32_t chunk_bytes)
{
    static const int at[] = {BLOSC2_CHUNK_NBYTES, BLOSC2_CHUNK_BLOCKSIZE,
                             BLOSC2_CHUNK_CBYTES};
    if (cv_load_le32(chunk + BLOSC2_CHUNK_NBYTES) == (uint32_t)chunk_bytes) return;
    for (int i = 0; i < 3; i++) {
        uint32_t size;
        memcpy(&size, chunk + at[i], sizeof size);
        cv_store_le32(chunk + at[i], size);
    }
}

static cv_status finish_special(const cv_codec_spec *spec, int result, cv_buffer *out,
                                cv_error *err)
{
    if (result != (int)out->size)
        return cv_fail(err, CATERVA_EPIPELINE, -1,
                       "libblosc2 cannot encode a chunk of one repeated item: %s",
                       blosc2_error_string(result));
    mend_sizes(out->data, spec->chunk_bytes);
    return CV_OK;
}

cv_status cv_encode_repeated(const cv_codec_spec *spec, const void *item, cv_buffer *out,
                             cv_error *err)
{
    cv_codec_init();
    int32_t room = BLOSC_EXTENDED_HEADER_LENGTH + spec->item_size;
    CV_TRY(cv_buffer_resize(out, (size_t)room, err));
    int result = blosc2_chunk_repeatval(cv_codec_cparams(spec), spec->chunk_bytes, out->data,
                                        room, item);
    return finish_special(spec, result, out, err);
}

cv_status cv_encode_empty(const cv_codec_spec *spec, cv_empty_chunk kind, cv_buffer *out,
                          cv_error *err)
{
    static int (*const encode[])(blosc2_cparams, int32_t, void *, int32_t) = {
        [CV_EMPTY_ZEROS] = blosc2_chunk_zeros,
        [CV_EMPTY_NAN] = blosc2_chunk_nans,
        [CV_EMPTY_UNINIT] = blosc2_chunk_uninit,
    };
    cv_codec_init();
    CV_TRY(cv_buffer_resize(out, BLOSC_EXTENDED_HEADER_LENGTH, err));
    int result = encode[kind](cv_codec_cparams(spec), spec->chunk_bytes, out->data,
                              BLOSC_EXTENDED_HEADER_LENGTH);
    return finish_special(spec, result, out, err);
}

static cv_status compress_once(blosc2_cparams params, const void *src, int32_t size,
                               cv_buffer *out, cv_error *err)
{
    cv_codec_init();
    blosc2_context *context = blosc2_create_cctx(params);
    if (!context) return cv_fail_memory(err, 1, "an encoder");
    cv_status status = compress(context, src, size, 0, out, err);
    blosc2_free_ctx(context);
    return status;
}

cv_status cv_encode_bytes(const cv_codec_spec *spec, const void *src, int32_t size,
                          cv_buffer *out, cv_error *err)
{
    return compress_once(cv_codec_cparams(spec), src, size, out, err);
}

/* ---- Values, with progress for each block ------------------------------------- */

typedef struct block_progress {
    const uint8_t *src;
    cv_watch *watch;
    int32_t passed; /* bytes counted; libblosc2 requests incompressible blocks twice */
    cv_status status;
    cv_error *err;
} block_progress;

/* The prefilter that libblosc2 calls for each block. A non-zero result ends the compression. */
static int copy_block(blosc2_prefilter_params *params)
{
    block_progress *p = params->user_data;
    int32_t end = params->output_offset + params->output_size;
    int32_t passed = end > p->passed ? end - p->passed : 0;
    memcpy(params->output, p->src + params->output_offset, (size_t)params->output_size);
    p->passed += passed;
    if (p->status == CV_OK) p->status = cv_watch_tick(p->watch, passed, p->err);
    return p->status != CV_OK;
}

static cv_status compress_watched(blosc2_cparams params, const void *src, int32_t size,
                                  cv_watch *watch, cv_buffer *out, cv_error *err)
{
    cv_error stop = {.position = -1};
    block_progress p = {.src = src, .watch = watch, .err = &stop};
    blosc2_prefilter_params preparams = {.user_data = &p};
    params.prefilter = copy_block;
    params.preparams = &preparams; /* copied */
    cv_watch_expect(watch, size);
    cv_status status = compress_once(params, src, size, out, err);
    if (p.status == CV_OK) return status;
    if (err) *err = stop;
    return p.status;
}

cv_status cv_encode_plain(const void *src, size_t size, cv_watch *watch, cv_buffer *out,
                          cv_error *err)
{
    enum { LITTLE = 1 << 20 }; /* bytes that take a millisecond */
    if (size > (size_t)BLOSC2_MAX_BUFFERSIZE)
        return cv_fail(err, CATERVA_EINVAL, -1, "a value of %zu bytes, the format allows %d",
                       size, BLOSC2_MAX_BUFFERSIZE);
    blosc2_cparams params = BLOSC2_CPARAMS_DEFAULTS;
    params.typesize = 1;
    if (watch && size > LITTLE)
        return compress_watched(params, src, (int32_t)size, watch, out, err);
    return compress_once(params, src, (int32_t)size, out, err);
}
