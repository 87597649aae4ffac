/* Shared by the codec tests: a spec with everything it borrows, items that are partly noise
 * and partly smooth, and a chunk checked as a file's would be. */
#ifndef UNIT_CODEC_SETTING_H
#define UNIT_CODEC_SETTING_H

#include "base/arith.h"
#include "codec/decode.h"
#include "codec/encode.h"
#include "format/array_meta.h"
#include "format/chunk_header.h"

#include "check.h"
#include "random.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK_ITEMS = 512, MAX_BLOCKS = 100 };

enum { FRAME_BLOSCLZ = 0 }; /* the number in frames, as in a spec */
static const int codecs[] = {FRAME_BLOSCLZ, CATERVA_CODEC_LZ4,  CATERVA_CODEC_LZ4HC,
                             CATERVA_CODEC_ZLIB,    CATERVA_CODEC_ZSTD, CATERVA_CODEC_NDLZ};
static const int32_t sizes[] = {1, 2, 3, 4, 8, 12, 16, 300};

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

/* A spec with everything that it borrows. */
typedef struct setting {
    cv_codec_spec spec;
    cv_buffer geometry;
    int32_t n_blocks;
    bool lossy;
    char name[80];
} setting;

static inline setting make_setting(int codec, const int *filters, int32_t item_size,
                                   int32_t n_blocks)
{
    setting s = {.n_blocks = n_blocks};
    s.spec = (cv_codec_spec){.codec = codec,
                             .level = 5,
                             .split_mode = 3,
                             .item_size = item_size,
                             .block_bytes = BLOCK_ITEMS * item_size,
                             .chunk_bytes = n_blocks * BLOCK_ITEMS * item_size};
    for (int i = 0; filters && i < 2; i++) s.spec.filters[4 + i] = (uint8_t)filters[i];
    cv_array_meta meta = {.ndim = 1,
                          .shape = {n_blocks * BLOCK_ITEMS},
                          .chunk_shape = {n_blocks * BLOCK_ITEMS},
                          .block_shape = {BLOCK_ITEMS},
                          .dtype = "|u1",
                          .dtype_size = 3};
    CHECK(cv_array_meta_write(&meta, &s.geometry, NULL) == CV_OK, "geometry");
    s.spec.ndim = 1;
    s.spec.block_shape[0] = BLOCK_ITEMS;
    s.spec.geometry = s.geometry.data;
    s.spec.geometry_size = (int32_t)s.geometry.size;
    snprintf(s.name, sizeof s.name, "%s, filters %d %d, items of %d, %d blocks",
             cv_codec_name(codec), s.spec.filters[4], s.spec.filters[5], item_size, n_blocks);
    return s;
}

static inline void free_setting(setting *s) { cv_buffer_free(&s->geometry); }

/* Smooth parts, noise, and one block of zeros. */
static inline uint8_t *make_items(const setting *s, rng *r)
{
    size_t size = (size_t)s->spec.chunk_bytes, block = (size_t)s->spec.block_bytes;
    uint8_t *items = check_alloc(size);
    for (size_t i = 0; i < size; i++)
        items[i] = i % (size_t)s->spec.item_size == 0 ? (uint8_t)(i / 64) : 0;
    for (int32_t b = 1; b < s->n_blocks; b++) {
        if (b % 4 == 1) rng_fill(r, items + (size_t)b * block, block / 4);
        if (b % 4 == 2) memset(items + (size_t)b * block, 0, block);
        if (b % 4 == 3) rng_fill(r, items + (size_t)b * block, block);
    }
    return items;
}

/* An encoded chunk, checked as a file's would be. */
typedef struct packed {
    cv_buffer chunk;
    cv_chunk_header header;
    cv_block_range *ranges;
    cv_block_access access;
} packed;

static inline cv_chunk_expect expectation(const setting *s, const cv_buffer *chunk)
{
    return (cv_chunk_expect){.nbytes = s->spec.chunk_bytes,
                             .block_size = s->spec.block_bytes,
                             .item_size = s->spec.item_size,
                             .max_cbytes = (int64_t)chunk->size};
}

static inline packed encode(const setting *s, const uint8_t *items)
{
    packed p = {.access = CV_ACCESS_RAW};
    cv_error err;
    cv_encoder *encoder;
    CHECK_OK(cv_codec_check(&s->spec, &err), err);
    CHECK_OK(cv_encoder_create(&s->spec, &encoder, &err), err);
    CHECK_OK(cv_encode_chunk(encoder, items, &p.chunk, &err), err);
    cv_encoder_free(encoder);
    CHECK(p.chunk.size <= (size_t)s->spec.chunk_bytes + 32, "%s: %zu bytes", s->name,
          p.chunk.size);
    cv_chunk_expect expect = expectation(s, &p.chunk);
    CHECK_OK(cv_chunk_header_parse(p.chunk.data, &expect, &p.header, &err), err);
    CHECK(p.header.cbytes == (int32_t)p.chunk.size, "%s: cbytes", s->name);
    p.access = cv_codec_access(p.chunk.data);
    p.ranges = check_alloc((size_t)s->n_blocks * sizeof p.ranges[0]);
    if (cv_block_starts_size(&p.header) > 0)
        CHECK_OK(cv_block_starts_parse(&p.header, p.chunk.data + 32, s->n_blocks, &expect,
                                       p.ranges, &err),
                 err);
    return p;
}

static inline void free_packed(packed *p)
{
    cv_buffer_free(&p->chunk);
    free(p->ranges);
}

static inline cv_packed_block block_of(const setting *s, const packed *p, int32_t b,
                                       uint8_t *chunk)
{
    return (cv_packed_block){.chunk_header = p->chunk.data,
                             .streams = chunk + p->ranges[b].start,
                             .streams_size = p->ranges[b].end - p->ranges[b].start,
                             .block = b,
                             .n_blocks = s->n_blocks};
}

#endif
