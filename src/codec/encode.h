/* Items to compressed bytes. An encoder belongs to one thread at a time. */
#ifndef CV_CODEC_ENCODE_H
#define CV_CODEC_ENCODE_H

#include "base/heap.h"
#include "base/watch.h"
#include "codec/spec.h"

typedef struct cv_encoder cv_encoder;

cv_status cv_encoder_create(const cv_codec_spec *spec, cv_encoder **out, cv_error *err);
void cv_encoder_free(cv_encoder *encoder);

/* Encodes a chunk of spec.chunk_bytes into `out`, which gets at most chunk_bytes + 32 bytes. */
cv_status cv_encode_chunk(cv_encoder *encoder, const void *src, cv_buffer *out,
                          cv_error *err);

/* Provides the blocks of a chunk that is not in memory: `fill` writes block `block`,
 * spec.block_bytes long, to `out`. */
typedef struct cv_block_source {
    void (*fill)(const void *context, int64_t block, uint8_t *out);
    const void *context;
} cv_block_source;

/* Encodes such a chunk, if cv_codec_gathers. Requests each block once or twice, right before it is
 * encoded. So the block stays in the CPU's cache, and the chunk needs no memory. */
bool cv_codec_gathers(const cv_codec_spec *spec);
cv_status cv_encode_gathered(cv_encoder *encoder, const cv_block_source *source,
                             cv_buffer *out, cv_error *err);

/* Whether an encoded chunk is the special chunk of zeros, which lossy filters can cause. For such a
 * chunk C-Blosc2 stores only an index entry. */
bool cv_codec_is_zeros(const cv_buffer *encoded);

/* Encodes one block. Appends its streams, as in a chunk of this array, and sets `header` to the
 * chunk's header, without nbytes and cbytes. Appends nothing if the block is so small that
 * libblosc2 makes no streams. Blocks must be independent. A block may be shorter than
 * spec.block_bytes only if it is the last of several blocks, and blocks are never split. */
cv_status cv_encode_block(cv_encoder *encoder, const void *block, int32_t size,
                          cv_buffer *out, uint8_t header[32], cv_error *err);

/* Whether streams decode with either header: same codec, filters, item size, splitting. */
bool cv_codec_same_encoding(const uint8_t a[32], const uint8_t b[32]);

/* Set the sizes in the header of a chunk with block starts. */
void cv_codec_set_sizes(uint8_t header[32], int32_t chunk_bytes, int32_t cbytes);
void cv_codec_set_block_size(uint8_t header[32], int32_t block_bytes);

/* Converts the header of a chunk with streams to that of the same items stored uncompressed. */
void cv_codec_set_plain(uint8_t header[32], int32_t chunk_bytes);

/* Makes a chunk that repeats one item of spec.item_size bytes. */
cv_status cv_encode_repeated(const cv_codec_spec *spec, const void *item, cv_buffer *out,
                             cv_error *err);

/* A chunk that is only a header: zeros, NaN (items of 4 or 8 bytes), or uninitialised. */
typedef enum cv_empty_chunk { CV_EMPTY_ZEROS, CV_EMPTY_NAN, CV_EMPTY_UNINIT } cv_empty_chunk;
cv_status cv_encode_empty(const cv_codec_spec *spec, cv_empty_chunk kind, cv_buffer *out,
                          cv_error *err);

/* Encode chunks outside the grid. cv_encode_bytes encodes `size` bytes with `spec`, but ignores
 * spec.chunk_bytes. cv_encode_plain encodes an attribute value with default parameters; `watch` may
 * be NULL. */
cv_status cv_encode_bytes(const cv_codec_spec *spec, const void *src, int32_t size,
                          cv_buffer *out, cv_error *err);
cv_status cv_encode_plain(const void *src, size_t size, cv_watch *watch, cv_buffer *out,
                          cv_error *err);

#endif
