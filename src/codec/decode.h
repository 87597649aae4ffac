/* Compressed bytes to items. A decoder belongs to one thread at a time. */
#ifndef CV_CODEC_DECODE_H
#define CV_CODEC_DECODE_H

#include "codec/spec.h"

/* How the blocks of a stored chunk can be had, decided here alone. */
typedef enum cv_block_access {
    CV_ACCESS_RAW,   /* memcpyed: block k is the bytes at 32 + k * block_bytes     */
    CV_ACCESS_BLOCK, /* each block decodes from its own streams: cv_decode_block   */
    CV_ACCESS_CHUNK  /* blocks need other parts of the chunk (dictionary, delta):
                        cv_decode_chunk only                                       */
} cv_block_access;

cv_block_access cv_codec_access(const uint8_t chunk_header[32]);

typedef struct cv_decoder cv_decoder;

cv_status cv_decoder_create(const cv_codec_spec *spec, cv_decoder **out, cv_error *err);
void cv_decoder_free(cv_decoder *decoder);

/* Bytes before `in_place` streams that cv_decode_block may overwrite and restore. */
enum { CV_BLOCK_PREFIX = 36 };

/* One block's compressed streams, and what is known of the chunk they are from. */
typedef struct cv_packed_block {
    const uint8_t *chunk_header; /* 32 bytes */
    uint8_t *streams;
    int32_t streams_size;
    bool in_place;        /* the CV_BLOCK_PREFIX bytes before streams are ours to use */
    const uint8_t *chunk; /* the whole chunk where it is at hand, else NULL */
    int32_t chunk_size;
    int32_t block; /* number in the chunk, and how many there are */
    int32_t n_blocks;
} cv_packed_block;

/* Decodes a CV_ACCESS_BLOCK block to `dst`, dst_size = block_bytes. CATERVA_ECORRUPT: bad
 * streams. */
cv_status cv_decode_block(cv_decoder *decoder, const cv_packed_block *block, void *dst,
                          int32_t dst_size, cv_error *err);

/* How far a block was decoded. */
typedef enum cv_block_form {
    CV_FORM_ITEMS,    /* whole: its items, one after another */
    CV_FORM_SHUFFLED, /* byte k of all items stands before byte k + 1 of any */
    CV_FORM_ITEM      /* all items are equal, and this is one */
} cv_block_form;

/* As cv_decode_block, but leaves to the caller what can be done while items are copied. */
cv_status cv_decode_loose(cv_decoder *decoder, const cv_packed_block *block, void *dst,
                          int32_t dst_size, cv_block_form *form, cv_error *err);

/* Decodes bytes [start, start + size), multiples of the item size, of a whole
 * CV_ACCESS_BLOCK chunk. */
cv_status cv_decode_range(cv_decoder *decoder, const uint8_t *chunk, int32_t chunk_size,
                          int32_t start, int32_t size, void *dst, cv_error *err);

/* Decodes a whole chunk of any kind, exactly `dst_size` bytes. */
cv_status cv_decode_chunk(cv_decoder *decoder, const uint8_t *chunk, int32_t chunk_size,
                          void *dst, int32_t dst_size, cv_error *err);

#endif
