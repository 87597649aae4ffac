/* The header of a Blosc2 frame: bytes <-> struct. Layout: FORMAT.md section 1,
 * written down once, as the field list in frame_header.c. */
#ifndef CV_FORMAT_FRAME_HEADER_H
#define CV_FORMAT_FRAME_HEADER_H

/* Bytes that every frame begins with. */
enum { CV_FRAME_MAGIC_SIZE = 10 };

#include "format/metalayers.h"

enum { CV_FRAME_VERSION = 2, CV_FRAME_VERSION_MAX = 3, CV_FRAME_HEADER_MIN = 97 };

#define CV_MAX_FILTERS 6

typedef struct cv_frame_header {
    uint32_t header_size;   /* bytes */
    uint64_t frame_size;    /* bytes, header to trailer; chunk files not counted */
    uint8_t version;        /* 1..3 */
    bool sparse;            /* chunks are files of a directory */
    bool variable_chunks;   /* chunks of different sizes (or chunk size 0) */
    bool vl_blocks;         /* chunks of variable-length blocks */
    uint8_t codec;          /* the compcode: blosclz 0, lz4 1, lz4hc 2, zlib 4, zstd 5, plugins >= 32 */
    uint8_t codec_meta;
    uint8_t level;          /* 0..15 as stored */
    uint8_t split_mode;     /* 1..4: always, never, auto, forward-compatible */
    bool use_dict;
    int64_t nbytes;         /* n_chunks * chunk_size */
    int64_t cbytes;         /* header end to index, dead space included */
    int32_t type_size, block_size, chunk_size;
    int16_t encode_threads, decode_threads; /* 0: written by us */
    bool has_attributes;
    uint8_t filters[CV_MAX_FILTERS], filters_meta[CV_MAX_FILTERS];
    int n_metalayers;
    cv_metalayer metalayers[CV_MAX_METALAYERS];
} cv_frame_header;

/* From the first bytes of a frame (>= 15): is it a frame at all, and how long
 * is its header? CATERVA_ECORRUPT "not a Blosc2 frame" otherwise. */
cv_status cv_frame_header_peek(const uint8_t *bytes, size_t size, uint32_t *header_size,
                               cv_error *err);

/* The two sizes that tell where a commit's tail stands, from the first CV_FRAME_HEADER_MIN
 * bytes of a header that may be damaged. False when they cannot be made out, or cannot
 * both be right. */
bool cv_frame_header_peek_sizes(const uint8_t *bytes, size_t size, uint64_t *frame_size,
                                int64_t *cbytes);

/* Parses `size` = header_size bytes; metalayers borrow from `bytes`. Every
 * field is checked for its own range here (sizes not negative, header within
 * frame, known version, split mode, filter count...), not against geometry. */
cv_status cv_frame_header_parse(const uint8_t *bytes, size_t size, cv_frame_header *out,
                                cv_error *err);

/* Appends the encoded header; sets header->header_size. frame_size etc. are
 * taken as they are. */
cv_status cv_frame_header_write(cv_frame_header *header, cv_buffer *out, cv_error *err);

#endif
