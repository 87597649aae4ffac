/* The only room that knows libblosc2: chunks and blocks to bytes and back.
 * What a chunk belongs to, and where it is stored, is not known here; headers
 * were checked in format/ before bytes come here.
 *
 * A decoder or encoder belongs to one thread at a time; nothing is shared. */
#ifndef CV_CODEC_CODEC_H
#define CV_CODEC_CODEC_H

#include "base/buffer.h"
#include "base/grid.h"

#define CV_CODEC_FILTERS 6

/* How the chunks of one array are encoded. */
typedef struct cv_codec_spec {
    int codec; /* compcode, as in the frame header */
    int codec_meta;
    int level;      /* 0..9 */
    int split_mode; /* 1..4 */
    bool use_dict;
    uint8_t filters[CV_CODEC_FILTERS];
    uint8_t filters_meta[CV_CODEC_FILTERS];
    int32_t item_size;
    int32_t block_bytes;
    int32_t chunk_bytes;
    char item_kind;     /* as in a dtype: 'f', 'i', ...; 'V' is no number, 0: not known */
    bool items_swapped; /* in the byte order that this machine has not */
    int ndim;
    int64_t block_shape[CV_MAX_DIMS];
    /* The `b2nd` metalayer's bytes, which n-d codecs and filters read their
     * geometry from; borrowed for the call. */
    const uint8_t *geometry;
    int32_t geometry_size;
} cv_codec_spec;

/* CATERVA_EUNSUPPORTED naming codec or filter when libblosc2 has it not (a plugin
 * that is not built in), CATERVA_EINVAL for a level that there is not. */
cv_status cv_codec_check(const cv_codec_spec *spec, cv_error *err);

/* The same for writing: CATERVA_EINVAL, with a sentence that says what is needed, for
 * codecs, filters, items and blocks that libblosc2 cannot encode together, or of
 * which something else than what went in would come out. */
cv_status cv_codec_check_encoding(const cv_codec_spec *spec, cv_error *err);

const char *cv_codec_engine_version(void);

/* Codec and filter names as in caterva_codec_name; NULL or -1 without. */
const char *cv_codec_name(int codec);
int cv_codec_number(const char *name);
const char *cv_filter_name(int filter);
int cv_filter_number(const char *name);

/* How the blocks of a stored chunk can be had, decided here alone. */
typedef enum cv_block_access {
    CV_ACCESS_RAW,   /* memcpyed: block k is the bytes at 32 + k * block_bytes     */
    CV_ACCESS_BLOCK, /* each block decodes from its own streams: cv_decode_block   */
    CV_ACCESS_CHUNK  /* blocks need other parts of the chunk (dictionary, delta):
                        cv_decode_chunk only                                       */
} cv_block_access;

cv_block_access cv_codec_access(const uint8_t chunk_header[32]);

/* True when chunks encoded by this spec are CV_ACCESS_BLOCK (or raw). */
bool cv_codec_blocks_independent(const cv_codec_spec *spec);

/* True when libblosc2 reads the array's geometry from the schunk behind the
 * context: the n-d plugins, and bytedelta that takes its stream count there. */
bool cv_codec_needs_geometry(const cv_codec_spec *spec);

/* True when a chunk may take so long to encode that somebody who watches should hear
 * between its blocks. Decoding is not as slow with any codec. */
bool cv_codec_is_slow(const cv_codec_spec *spec);

/* ---- Decoding ----------------------------------------------------------- */

typedef struct cv_decoder cv_decoder;

cv_status cv_decoder_create(const cv_codec_spec *spec, cv_decoder **out, cv_error *err);
void cv_decoder_free(cv_decoder *decoder);

/* Bytes that cv_decode_block needs free, and may overwrite and restore, before
 * a block's streams when they are `in_place`. */
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

/* Decodes one block (CV_ACCESS_BLOCK) into `dst`, exactly `dst_size` =
 * block_bytes. CATERVA_ECORRUPT when the streams are no good. */
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

/* Decodes bytes [start, start + size) of a CV_ACCESS_BLOCK chunk present whole. start and size are multiples of the item size. */
cv_status cv_decode_range(cv_decoder *decoder, const uint8_t *chunk, int32_t chunk_size,
                          int32_t start, int32_t size, void *dst, cv_error *err);

/* Decodes a whole chunk of any kind, exactly `dst_size` bytes. */
cv_status cv_decode_chunk(cv_decoder *decoder, const uint8_t *chunk, int32_t chunk_size,
                          void *dst, int32_t dst_size, cv_error *err);

/* ---- Encoding ----------------------------------------------------------- */

typedef struct cv_encoder cv_encoder;

cv_status cv_encoder_create(const cv_codec_spec *spec, cv_encoder **out, cv_error *err);
void cv_encoder_free(cv_encoder *encoder);

/* Encodes one chunk of spec.chunk_bytes; the result stands in `out` (sized to
 * it). Never larger than chunk_bytes + 32. */
cv_status cv_encode_chunk(cv_encoder *encoder, const void *src, cv_buffer *out,
                          cv_error *err);

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

/* CATERVA_EUNSUPPORTED for a chunk whose codec or filters need the array's geometry
 * where decoders made by `spec` have none. */
cv_status cv_codec_check_chunk(const cv_codec_spec *spec, const uint8_t chunk_header[32],
                               cv_error *err);

/* Chunks that are not part of the grid: `size` bytes encoded as `spec` says, but
 * for its chunk_bytes; and attribute values. */
cv_status cv_encode_bytes(const cv_codec_spec *spec, const void *src, int32_t size,
                          cv_buffer *out, cv_error *err);
cv_status cv_encode_plain(const void *src, size_t size, cv_buffer *out, cv_error *err);

#endif
