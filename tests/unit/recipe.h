/* Frames assembled by hand, so that a test can falsify any part of them. Include instead of
 * cmocka.h. */
#ifndef UNIT_RECIPE_H
#define UNIT_RECIPE_H

#include "base/arith.h"
#include "base/heap.h"
#include "format/chunk_header.h"
#include "made.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { N = 40, CHUNK = 10, BLOCK = 5, N_CHUNKS = 4, CHUNK_SIZE = 32 + CHUNK * 4 };

/* The parts of a frame, which a test changes before it is assembled. */
typedef struct recipe {
    cv_frame_header header;
    cv_buffer meta;
    cv_buffer chunks; /* the chunk area */
    cv_buffer index;  /* an encoded chunk */
    cv_buffer trailer;
    int64_t gap; /* bytes between index and trailer */
} recipe;

/* A memcpyed chunk whose items are first, first + 1, ... */
static inline void append_chunk(cv_buffer *out, int32_t first)
{
    uint8_t chunk[CHUNK_SIZE] = {5, 1, 0x17, 4};
    cv_store_le32(chunk + 4, CHUNK * 4);
    cv_store_le32(chunk + 8, BLOCK * 4);
    cv_store_le32(chunk + 12, CHUNK_SIZE);
    for (int i = 0; i < CHUNK; i++) cv_store_le32(chunk + 32 + 4 * i, (uint32_t)(first + i));
    assert_int_equal(cv_buffer_append(out, chunk, sizeof chunk, NULL), CV_OK);
}

static inline void set_index(recipe *p, const int64_t *offsets)
{
    p->index.size = 0;
    assert_int_equal(made_index(offsets, N_CHUNKS, &p->index), CV_OK);
}

static inline void set_meta(recipe *p, int64_t shape, int32_t chunk, int32_t block)
{
    cv_array_meta meta = {.ndim = 1,
                          .shape = {shape},
                          .chunk_shape = {chunk},
                          .block_shape = {block},
                          .dtype = "<i4",
                          .dtype_size = 3};
    p->meta.size = 0;
    assert_int_equal(cv_array_meta_write(&meta, &p->meta, NULL), CV_OK);
    p->header.metalayers[0] = (cv_metalayer){"b2nd", p->meta.data, (uint32_t)p->meta.size};
}

static inline recipe new_recipe(void)
{
    recipe p = {.gap = 0};
    p.header = (cv_frame_header){.version = 2,
                                 .codec = 1,
                                 .level = 5,
                                 .split_mode = 3,
                                 .nbytes = N_CHUNKS * CHUNK * 4,
                                 .type_size = 4,
                                 .block_size = BLOCK * 4,
                                 .chunk_size = CHUNK * 4,
                                 .encode_threads = 1,
                                 .decode_threads = 1,
                                 .n_metalayers = 1};
    set_meta(&p, N, CHUNK, BLOCK);
    int64_t offsets[N_CHUNKS];
    for (int i = 0; i < N_CHUNKS; i++) {
        offsets[i] = (int64_t)p.chunks.size;
        append_chunk(&p.chunks, i * CHUNK);
    }
    set_index(&p, offsets);
    assert_int_equal(cv_trailer_write(NULL, 0, &p.trailer, NULL), CV_OK);
    p.header.cbytes = (int64_t)p.chunks.size;
    return p;
}

static inline void free_recipe(recipe *p)
{
    cv_buffer_free(&p->meta);
    cv_buffer_free(&p->chunks);
    cv_buffer_free(&p->index);
    cv_buffer_free(&p->trailer);
}

/* Returns the frame's bytes; sizes are right unless a test changes them afterwards. */
static inline cv_buffer assemble(recipe *p)
{
    cv_buffer frame = {0};
    for (int pass = 0; pass < 2; pass++) {
        frame.size = 0;
        assert_int_equal(cv_frame_header_write(&p->header, &frame, NULL), CV_OK);
        p->header.frame_size = p->header.header_size + p->chunks.size + p->index.size +
                               (uint64_t)p->gap + p->trailer.size;
    }
    assert_int_equal(cv_buffer_append(&frame, p->chunks.data, p->chunks.size, NULL), CV_OK);
    assert_int_equal(cv_buffer_append(&frame, p->index.data, p->index.size, NULL), CV_OK);
    for (int64_t i = 0; i < p->gap; i++)
        assert_int_equal(cv_buffer_append(&frame, "\xee", 1, NULL), CV_OK);
    assert_int_equal(cv_buffer_append(&frame, p->trailer.data, p->trailer.size, NULL), CV_OK);
    return frame;
}

/* An index stored without compression. */
static inline void set_plain_index(recipe *p, const int64_t *offsets)
{
    uint8_t chunk[32 + 8 * N_CHUNKS] = {5, 1, 0x17, 8};
    cv_store_le32(chunk + 4, 8 * N_CHUNKS);
    cv_store_le32(chunk + 8, 8 * N_CHUNKS);
    cv_store_le32(chunk + 12, sizeof chunk);
    for (int i = 0; i < N_CHUNKS; i++)
        cv_store_le64(chunk + 32 + 8 * i, (uint64_t)offsets[i]);
    p->index.size = 0;
    assert_int_equal(cv_buffer_append(&p->index, chunk, sizeof chunk, NULL), CV_OK);
}

/* One of libblosc2's special chunks, 32 bytes and perhaps one value. */
static inline void set_special_index(recipe *p, uint8_t kind, int64_t value)
{
    uint8_t chunk[40] = {5, 1, 0x05, 8};
    size_t size = kind == 3 ? 40 : 32;
    cv_store_le32(chunk + 4, 8 * N_CHUNKS);
    cv_store_le32(chunk + 8, 8 * N_CHUNKS);
    cv_store_le32(chunk + 12, (uint32_t)size);
    chunk[31] = (uint8_t)(kind << 4);
    cv_store_le64(chunk + 32, (uint64_t)value);
    p->index.size = 0;
    assert_int_equal(cv_buffer_append(&p->index, chunk, size, NULL), CV_OK);
}

#endif
