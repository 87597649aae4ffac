/* Room: frame. Values of attributes: each is a Blosc2 chunk of its own, whose header says
 * how long the value is. What it says is believed only as far as somebody asks for it:
 * values are read and checked in pieces. */
#include "frame/attribute.h"

#include "base/arith.h"
#include "base/heap.h"
#include "codec/decode.h"
#include "format/chunk_header.h"

#include <string.h>

/* A piece, and the largest block, or chunk that must be decoded whole, that is decoded
 * for a piece of it. */
enum { PIECE = 1 << 20, MOST_AT_ONCE = 32 << 20 };

static cv_status parse(const cv_metalayer *attribute, cv_chunk_header *out, cv_error *err)
{
    cv_chunk_expect expect = {
        .chunk = -2, .pos = -1, .nbytes = -1, .max_cbytes = attribute->size};
    if (attribute->size < CV_CHUNK_HEADER_SIZE)
        return cv_fail(err, CATERVA_ECORRUPT, -1, "attribute \"%s\" is no chunk",
                       attribute->name);
    return cv_chunk_header_parse(attribute->data, &expect, out, err);
}

static cv_status new_decoder(cv_decoder **out, cv_error *err)
{
    cv_codec_spec spec = {.item_size = 1};
    return cv_decoder_create(&spec, out, err);
}

/* In pieces of whole blocks, where somebody listens and blocks can be had. */
static int32_t piece_of(const cv_chunk_header *header, const cv_metalayer *attribute,
                        const cv_watch *watch)
{
    int32_t piece = header->block_size;
    if (!watch || header->special != CV_SPECIAL_NONE || piece <= 0 ||
        cv_codec_access(attribute->data) == CV_ACCESS_CHUNK)
        return header->nbytes;
    while (piece < PIECE) piece *= 2;
    return (int32_t)cv_min_i64(piece, header->nbytes);
}

static cv_status decode_told(cv_decoder *decoder, const cv_chunk_header *header,
                             const cv_metalayer *attribute, uint8_t *dst, cv_watch *watch,
                             cv_error *err)
{
    int32_t piece = piece_of(header, attribute, watch);
    if (piece == header->nbytes) {
        CV_TRY(cv_decode_chunk(decoder, attribute->data, header->cbytes, dst, piece, err));
        return cv_watch_tick(watch, piece, err);
    }
    for (int64_t at = 0; at < header->nbytes; at += piece) {
        int32_t size = (int32_t)cv_min_i64(piece, header->nbytes - at);
        if (header->memcpyed)
            memcpy(dst + at, attribute->data + CV_CHUNK_HEADER_SIZE + at, (size_t)size);
        else
            CV_TRY(cv_decode_range(decoder, attribute->data, header->cbytes, (int32_t)at,
                                   size, dst + at, err));
        CV_TRY(cv_watch_tick(watch, size, err));
    }
    return CV_OK;
}

static cv_status decode_whole(const cv_chunk_header *header, const cv_metalayer *attribute,
                              uint8_t *dst, cv_watch *watch, cv_error *err)
{
    cv_decoder *decoder;
    CV_TRY(new_decoder(&decoder, err));
    cv_watch_expect(watch, header->nbytes);
    cv_status status = decode_told(decoder, header, attribute, dst, watch, err);
    cv_decoder_free(decoder);
    return status;
}

cv_status cv_frame_attribute(const cv_metalayer *attribute, cv_buffer *out, cv_watch *watch,
                             cv_error *err)
{
    cv_chunk_header header;
    CV_TRY(parse(attribute, &header, err));
    CV_TRY(cv_buffer_resize(out, (size_t)header.nbytes, err));
    if (header.nbytes == 0) return CV_OK;
    return decode_whole(&header, attribute, out->data, watch, err);
}

cv_status cv_frame_attribute_size(const cv_metalayer *attribute, int64_t *size, cv_error *err)
{
    cv_chunk_header header;
    CV_TRY(parse(attribute, &header, err));
    *size = header.nbytes;
    return CV_OK;
}

/* ---- In pieces ---------------------------------------------------------- */

/* Bytes [start, start + size) of a value that repeats its item. */
static void repeat(const cv_chunk_header *header, const uint8_t *item, int64_t start,
                   int64_t size, uint8_t *dst)
{
    int64_t length = header->cbytes - CV_CHUNK_HEADER_SIZE;
    for (int64_t i = 0; i < size; i++) dst[i] = item[(start + i) % length];
}

static cv_status fail_large(const cv_metalayer *attribute, int32_t size, cv_error *err)
{
    return cv_fail(err, CATERVA_EUNSUPPORTED, -1,
                   "attribute \"%s\" can be read only %d bytes at a time", attribute->name,
                   size);
}

static cv_status decode_piece(const cv_chunk_header *header, const cv_metalayer *attribute,
                              int32_t start, int32_t size, uint8_t *dst, cv_error *err)
{
    bool by_block = cv_codec_access(attribute->data) != CV_ACCESS_CHUNK;
    int32_t at_once = by_block ? header->block_size : header->nbytes;
    cv_decoder *decoder;
    if (start == 0 && size == header->nbytes)
        return decode_whole(header, attribute, dst, NULL, err);
    if (at_once > MOST_AT_ONCE && !header->memcpyed)
        return fail_large(attribute, at_once, err);
    if (by_block) {
        CV_TRY(new_decoder(&decoder, err));
        cv_status status =
            cv_decode_range(decoder, attribute->data, header->cbytes, start, size, dst, err);
        cv_decoder_free(decoder);
        return status;
    }
    cv_buffer whole = {0};
    cv_status status = cv_frame_attribute(attribute, &whole, NULL, err);
    if (status == CV_OK) memcpy(dst, whole.data + start, (size_t)size);
    cv_buffer_free(&whole);
    return status;
}

cv_status cv_frame_attribute_read(const cv_metalayer *attribute, int64_t start, void *dst,
                                  int64_t size, cv_error *err)
{
    cv_chunk_header header;
    CV_TRY(parse(attribute, &header, err));
    if (size == 0) return CV_OK;
    switch (header.special) {
    case CV_SPECIAL_NONE:
        if (!header.memcpyed)
            return decode_piece(&header, attribute, (int32_t)start, (int32_t)size, dst, err);
        memcpy(dst, attribute->data + CV_CHUNK_HEADER_SIZE + start, (size_t)size);
        return CV_OK;
    case CV_SPECIAL_VALUE:
        repeat(&header, attribute->data + CV_CHUNK_HEADER_SIZE, start, size, dst);
        return CV_OK;
    case CV_SPECIAL_NAN: {
        cv_buffer whole = {0};
        cv_status status = header.nbytes > MOST_AT_ONCE
                               ? fail_large(attribute, header.nbytes, err)
                               : cv_frame_attribute(attribute, &whole, NULL, err);
        if (status == CV_OK) memcpy(dst, whole.data + start, (size_t)size);
        cv_buffer_free(&whole);
        return status;
    }
    default: memset(dst, 0, (size_t)size); return CV_OK;
    }
}

cv_status cv_frame_attribute_check(const cv_metalayer *attribute, cv_error *err)
{
    cv_chunk_header header;
    CV_TRY(parse(attribute, &header, err));
    if (header.special != CV_SPECIAL_NONE || header.memcpyed) return CV_OK;
    int32_t piece = header.block_size; /* a block is decoded once */
    while (piece < PIECE) piece *= 2;
    if (piece > MOST_AT_ONCE && header.nbytes <= MOST_AT_ONCE) piece = header.nbytes;
    if (piece > header.nbytes || cv_codec_access(attribute->data) == CV_ACCESS_CHUNK)
        piece = header.nbytes;
    if (piece > MOST_AT_ONCE) return fail_large(attribute, piece, err);
    uint8_t *scratch = cv_malloc((size_t)piece);
    if (!scratch) return cv_fail_memory(err, (size_t)piece, "an attribute");
    cv_status status = CV_OK;
    for (int64_t at = 0; at < header.nbytes && status == CV_OK; at += piece)
        status = cv_frame_attribute_read(attribute, at, scratch,
                                         cv_min_i64(piece, header.nbytes - at), err);
    cv_free(scratch);
    return status;
}
