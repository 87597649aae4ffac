/* Items to compressed bytes. An encoder belongs to one thread at a time; nothing is
 * shared. */
#ifndef CV_CODEC_ENCODE_H
#define CV_CODEC_ENCODE_H

#include "base/heap.h"
#include "base/watch.h"
#include "codec/spec.h"

typedef struct cv_encoder cv_encoder;

cv_status cv_encoder_create(const cv_codec_spec *spec, cv_encoder **out, cv_error *err);
void cv_encoder_free(cv_encoder *encoder);

/* Encodes one chunk of spec.chunk_bytes; the result stands in `out` (sized to
 * it). Never larger than chunk_bytes + 32. */
cv_status cv_encode_chunk(cv_encoder *encoder, const void *src, cv_buffer *out,
                          cv_error *err);

/* Where the blocks of a chunk come from that does not lie in memory as it is stored:
 * `fill` writes block `block` to `out`, spec.block_bytes long. */
typedef struct cv_block_source {
    void (*fill)(const void *context, int64_t block, uint8_t *out);
    const void *context;
} cv_block_source;

/* The same of such a chunk: each block is asked for right before it is encoded, once or
 * twice, so that it still is in the processor's caches and the chunk takes no memory of
 * its own. Only for specs of which cv_codec_gathers is true. */
bool cv_codec_gathers(const cv_codec_spec *spec);
cv_status cv_encode_gathered(cv_encoder *encoder, const cv_block_source *source,
                             cv_buffer *out, cv_error *err);

/* True for an encoded chunk that says nothing but "zeros": lossy filters can
 * make one of other bytes. C-Blosc2 wants it in the index, not stored. */
bool cv_codec_is_zeros(const cv_buffer *encoded);

/* Encodes one block of spec.block_bytes: appends its streams to `out`, as they
 * stand in a chunk of this array, and gives the header that such a chunk has
 * (but for nbytes and cbytes). *encoded is false, and nothing appended, where
 * libblosc2 makes no streams of a block alone (tiny blocks). Only for specs
 * whose blocks are independent. */
cv_status cv_encode_block(cv_encoder *encoder, const void *block, cv_buffer *out,
                          uint8_t header[32], bool *encoded, cv_error *err);

/* The same for a chunk's last block, `size` <= spec.block_bytes bytes long (more
 * blocks than one, and never split). Appends nothing where there are no streams. */
cv_status cv_encode_last_block(cv_encoder *encoder, const void *block, int32_t size,
                               cv_buffer *out, uint8_t header[32], cv_error *err);

/* True when streams encoded under one header decode under the other: same
 * codec, filters, item size and splitting. */
bool cv_codec_same_encoding(const uint8_t a[32], const uint8_t b[32]);

/* Makes `header` that of a chunk of these sizes with block starts. */
void cv_codec_set_sizes(uint8_t header[32], int32_t chunk_bytes, int32_t cbytes);
void cv_codec_set_block_size(uint8_t header[32], int32_t block_bytes);

/* Makes a header with streams that of the same items, stored without compression. */
void cv_codec_set_plain(uint8_t header[32], int32_t chunk_bytes);

/* A chunk that repeats one item of spec.item_size bytes. */
cv_status cv_encode_repeated(const cv_codec_spec *spec, const void *item, cv_buffer *out,
                             cv_error *err);

/* A chunk that is nothing but zeros, NaN (items of 4 or 8 bytes) or not written:
 * a header. */
typedef enum cv_empty_chunk { CV_EMPTY_ZEROS, CV_EMPTY_NAN, CV_EMPTY_UNINIT } cv_empty_chunk;
cv_status cv_encode_empty(const cv_codec_spec *spec, cv_empty_chunk kind, cv_buffer *out,
                          cv_error *err);

/* Chunks that are not part of the grid: `size` bytes encoded as `spec` says, but
 * for its chunk_bytes; and attribute values, of whose bytes `watch`, or NULL, hears. */
cv_status cv_encode_bytes(const cv_codec_spec *spec, const void *src, int32_t size,
                          cv_buffer *out, cv_error *err);
cv_status cv_encode_plain(const void *src, size_t size, cv_watch *watch, cv_buffer *out,
                          cv_error *err);

#endif
