/* Compressed bytes to items. A decoder belongs to one thread at a time. */
#ifndef CV_CODEC_DECODE_H
#define CV_CODEC_DECODE_H

#include "codec/spec.h"

/* How the blocks of a stored chunk can be decoded. */
typedef enum cv_block_access {
    CV_ACCESS_RAW,   /* memcpyed: block k is the bytes at 32 + k * block_bytes */
    CV_ACCESS_BLOCK, /* each block decodes from its own streams: cv_decode_block */
    CV_ACCESS_CHUNK  /* blocks need each other (dictionary, delta): cv_decode_chunk */
} cv_block_access;

cv_block_access cv_codec_access(const uint8_t chunk_header[32]);

typedef struct cv_decoder cv_decoder;

cv_status cv_decoder_create(const cv_codec_spec *spec, cv_decoder **out, cv_error *err);
void cv_decoder_free(cv_decoder *decoder);

/* Number of bytes before `in_place` streams that cv_decode_block may overwrite and restore. */
enum { CV_BLOCK_PREFIX = 36 };

/* The compressed streams of one block, with data of its chunk. */
typedef struct cv_packed_block {
    const uint8_t *chunk_header; /* 32 bytes */
    uint8_t *streams;
    int32_t streams_size;
    bool in_place;        /* the CV_BLOCK_PREFIX bytes before `streams` may be used */
    const uint8_t *chunk; /* the whole chunk if it is in memory, else NULL */
    int32_t chunk_size;
    int32_t block; /* number of the block in the chunk */
    int32_t n_blocks;
} cv_packed_block;

/* Decodes a block of a CV_ACCESS_BLOCK chunk to `dst`; `dst_size` is block_bytes. CATERVA_ECORRUPT
 * if the streams are invalid. */
cv_status cv_decode_block(cv_decoder *decoder, const cv_packed_block *block, void *dst,
                          int32_t dst_size, cv_error *err);

/* The form in which a block was decoded. */
typedef enum cv_block_form {
    CV_FORM_ITEMS,    /* complete: its items, one after another */
    CV_FORM_SHUFFLED, /* bytes k of all items precede all bytes k + 1 */
    CV_FORM_ITEM      /* one item: all items of the block are equal */
} cv_block_form;

/* As cv_decode_block, but may leave the last step, unshuffling or repeating, to the caller, which
 * does it while copying the items. Sets *form to the form of `dst`. */
cv_status cv_decode_loose(cv_decoder *decoder, const cv_packed_block *block, void *dst,
                          int32_t dst_size, cv_block_form *form, cv_error *err);

/* Decodes bytes [start, start + size) of a CV_ACCESS_BLOCK chunk that is whole in memory. `start`
 * and `size` are multiples of the item size. */
cv_status cv_decode_range(cv_decoder *decoder, const uint8_t *chunk, int32_t chunk_size,
                          int32_t start, int32_t size, void *dst, cv_error *err);

/* Decodes a whole chunk of any kind; `dst_size` is its exact size. */
cv_status cv_decode_chunk(cv_decoder *decoder, const uint8_t *chunk, int32_t chunk_size,
                          void *dst, int32_t dst_size, cv_error *err);

#endif
