/* Files below 1 MB that claim large numbers. For each number of a frame, one file is made in
 * which it is as large as is plausible, and tried as described in support/hostile.h: it may
 * be refused, but not for lack of memory.
 *
 * usage: test_hostile [CASE], CASE being one of those it prints; with TIMES in the
 * environment it prints how long each step took */
#include "base/arith.h"
#include "codec/encode.h"
#include "format/array_meta.h"
#include "format/frame_header.h"

#include "caterva.h"

#include "support/check.h"
#include "support/hostile.h"
#include "support/sanitized.h"
#include "support/scratch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    LARGEST_FILE = 1000000,
    MANY_CHUNKS = 268435451, /* as many as an index can have */
    KIND_ZEROS = 1,
    KIND_NAN = 2,
    KIND_VALUE = 3
};

/* ---- Frames ------------------------------------------------------------- */

/* The parts of a frame. Zero members are small and right. */
typedef struct frame {
    int ndim;
    int64_t shape[CV_MAX_DIMS];
    int32_t chunk_shape[CV_MAX_DIMS], block_shape[CV_MAX_DIMS];
    int32_t item_size;
    const char *dtype;
    cv_buffer chunks, index;
    cv_metalayer attributes[CV_MAX_METALAYERS];
    int n_attributes;
} frame;

static void append(cv_buffer *to, const void *bytes, size_t size)
{
    CHECK(cv_buffer_append(to, bytes, size, NULL) == CV_OK, "no memory");
}

/* Appends a chunk of a header and perhaps an item. */
static void append_special(cv_buffer *to, int kind, int item_size, int64_t n_bytes,
                           int64_t block_bytes, const void *item)
{
    uint8_t chunk[32] = {5, 1, 0x05, (uint8_t)(item_size > 255 ? 1 : item_size)};
    size_t size = sizeof chunk + (kind == KIND_VALUE ? (size_t)item_size : 0);
    cv_store_le32(chunk + 4, (uint32_t)n_bytes);
    cv_store_le32(chunk + 8, (uint32_t)block_bytes);
    cv_store_le32(chunk + 12, (uint32_t)size);
    chunk[31] = (uint8_t)(kind << 4);
    append(to, chunk, sizeof chunk);
    if (kind == KIND_VALUE) append(to, item, (size_t)item_size);
}

/* Appends compressed zeros; `block_bytes` 0: chosen by the library. */
static void append_packed(cv_buffer *to, int item_size, size_t size, int32_t block_bytes)
{
    cv_codec_spec spec = {.codec = CATERVA_CODEC_ZSTD,
                          .level = 1,
                          .split_mode = 2,
                          .item_size = item_size,
                          .block_bytes = block_bytes};
    cv_buffer packed = {0};
    uint8_t *bytes = calloc(1, size);
    CHECK(bytes, "no memory");
    bytes[size / 2] = 1; /* otherwise they would be special */
    CHECK(cv_encode_bytes(&spec, bytes, (int32_t)size, &packed, NULL) == CV_OK, "encode");
    append(to, packed.data, packed.size);
    cv_buffer_free(&packed);
    free(bytes);
}

static int64_t chunk_items(const frame *f, const int32_t *shape)
{
    int64_t n = 1;
    for (int d = 0; d < f->ndim; d++) {
        int64_t block = f->block_shape[d];
        n *= (shape[d] + block - 1) / block * block;
    }
    return n;
}

static int64_t count_chunks(const frame *f)
{
    int64_t n = 1;
    for (int d = 0; d < f->ndim; d++)
        n *= (f->shape[d] + f->chunk_shape[d] - 1) / f->chunk_shape[d];
    return n;
}

/* All entries are `entry`. */
static void set_index(frame *f, int64_t entry)
{
    int64_t n_bytes = count_chunks(f) * 8;
    uint8_t value[8];
    cv_store_le64(value, (uint64_t)entry);
    append_special(&f->index, KIND_VALUE, 8, n_bytes, n_bytes < 16384 ? n_bytes : 16384,
                   value);
}

static void set_zeros(frame *f) { set_index(f, (int64_t)((uint64_t)0x81 << 56)); }

static frame line(int64_t items, int32_t chunk, int32_t block)
{
    return (frame){.ndim = 1,
                   .shape = {items},
                   .chunk_shape = {chunk},
                   .block_shape = {block},
                   .item_size = 1,
                   .dtype = "|u1"};
}

static void add_attribute(frame *f, const cv_buffer *value)
{
    cv_metalayer *a = &f->attributes[f->n_attributes];
    snprintf(a->name, sizeof a->name, "attribute%d", f->n_attributes++);
    a->data = value->data;
    a->size = (uint32_t)value->size;
}

static void save(frame *f, const char *path)
{
    cv_array_meta meta = {
        .ndim = f->ndim, .dtype = f->dtype, .dtype_size = (uint32_t)strlen(f->dtype)};
    cv_frame_header header = {.version = 2,
                              .codec = CATERVA_CODEC_ZSTD,
                              .level = 1,
                              .split_mode = 3,
                              .cbytes = (int64_t)f->chunks.size,
                              .type_size = f->item_size,
                              .encode_threads = 1,
                              .decode_threads = 1,
                              .has_attributes = f->n_attributes > 0,
                              .n_metalayers = 1};
    cv_buffer bytes = {0}, layer = {0}, trailer = {0};
    memcpy(meta.shape, f->shape, sizeof meta.shape);
    memcpy(meta.chunk_shape, f->chunk_shape, sizeof meta.chunk_shape);
    memcpy(meta.block_shape, f->block_shape, sizeof meta.block_shape);
    header.chunk_size = (int32_t)(chunk_items(f, f->chunk_shape) * f->item_size);
    header.block_size = (int32_t)(chunk_items(f, f->block_shape) * f->item_size);
    header.nbytes = count_chunks(f) * header.chunk_size;
    CHECK(cv_array_meta_write(&meta, &layer, NULL) == CV_OK, "metalayer");
    CHECK(cv_trailer_write(f->attributes, f->n_attributes, &trailer, NULL) == CV_OK,
          "trailer");
    header.metalayers[0] = (cv_metalayer){"b2nd", layer.data, (uint32_t)layer.size};
    for (int pass = 0; pass < 2; pass++) {
        bytes.size = 0;
        CHECK(cv_frame_header_write(&header, &bytes, NULL) == CV_OK, "header");
        header.frame_size =
            header.header_size + f->chunks.size + f->index.size + trailer.size;
    }
    append(&bytes, f->chunks.data, f->chunks.size);
    append(&bytes, f->index.data, f->index.size);
    append(&bytes, trailer.data, trailer.size);
    CHECK(bytes.size < LARGEST_FILE, "%s has %zu bytes", path, bytes.size);
    scratch_save(path, bytes.data, bytes.size);
    cv_buffer_free(&bytes);
    cv_buffer_free(&layer);
    cv_buffer_free(&trailer);
    cv_buffer_free(&f->chunks);
    cv_buffer_free(&f->index);
}

/* ---- Cases -------------------------------------------------------------- */

static frame small(void)
{
    frame f = line(100, 10, 5);
    set_zeros(&f);
    return f;
}

static frame attributes_of_zeros(void)
{
    static cv_buffer value;
    frame f = small();
    value.size = 0;
    append_special(&value, KIND_ZEROS, 1, 300000000, 16384, NULL);
    for (int i = 0; i < 10; i++) add_attribute(&f, &value);
    return f;
}

static frame attributes_compressed(void)
{
    static cv_buffer value;
    frame f = small();
    value.size = 0;
    append_packed(&value, 1, 300000000, 1 << 20);
    for (int i = 0; i < 5; i++) add_attribute(&f, &value);
    return f;
}

/* One block with the whole attribute. */
static frame attribute_in_one_block(void)
{
    static cv_buffer value;
    frame f = small();
    value.size = 0;
    append_packed(&value, 1, 400000000, 400000000);
    add_attribute(&f, &value);
    return f;
}

static frame blocks_of_a_byte(void)
{
    frame f = line(1 << 24, 1 << 24, 1);
    set_zeros(&f);
    return f;
}

static frame blocks_of_a_byte_stored(void)
{
    uint8_t seven = 7;
    frame f = line(1 << 28, 1 << 28, 1);
    append_special(&f.chunks, KIND_VALUE, 1, 1 << 28, 1, &seven);
    set_index(&f, 0);
    return f;
}

static frame many_special_chunks(void)
{
    frame f = line(MANY_CHUNKS, 1, 1);
    set_zeros(&f);
    return f;
}

/* All at one position. */
static frame many_stored_chunks(void)
{
    uint8_t seven = 7;
    frame f = line(MANY_CHUNKS, 1, 1);
    append_special(&f.chunks, KIND_VALUE, 1, 1, 1, &seven);
    set_index(&f, 0);
    return f;
}

/* A compressed, not special, index. */
static frame many_indexed_chunks(void)
{
    uint8_t seven = 7;
    frame f = line(1 << 26, 1, 1);
    append_special(&f.chunks, KIND_VALUE, 1, 1, 1, &seven);
    append_packed(&f.index, 8, (size_t)8 << 26, 1 << 20);
    return f;
}

static frame index_in_one_block(void)
{
    uint8_t seven = 7;
    frame f = line(1 << 26, 1, 1);
    append_special(&f.chunks, KIND_VALUE, 1, 1, 1, &seven);
    append_packed(&f.index, 8, (size_t)8 << 26, 8 << 26);
    return f;
}

static frame a_long_axis(void)
{
    frame f = line(INT64_C(1) << 57, 1 << 30, 1 << 20);
    set_zeros(&f);
    return f;
}

static frame large_blocks(void)
{
    frame f = line(INT64_C(1) << 40, 500 << 20, 500 << 20);
    set_zeros(&f);
    return f;
}

static frame large_items(void)
{
    frame f = line(1000, 1, 1);
    f.item_size = 100 << 20;
    f.dtype = "|V104857600";
    set_zeros(&f);
    return f;
}

static frame sixteen_axes(void)
{
    frame f = {.ndim = 15, .item_size = 8, .dtype = "<f8"};
    for (int d = 0; d < f.ndim; d++) {
        f.shape[d] = d < 7 ? 16 : 2;
        f.chunk_shape[d] = d < 7 ? 1 : 2;
        f.block_shape[d] = 1;
    }
    set_zeros(&f);
    return f;
}

static char text[60000];

static frame nested_dtype(void)
{
    frame f = small();
    int deep = 4000;
    size_t at = 0;
    for (int i = 0; i < deep; i++) at += (size_t)snprintf(text + at, 12, "[('a', ");
    at += (size_t)snprintf(text + at, 12, "'|u1'");
    for (int i = 0; i < deep; i++) at += (size_t)snprintf(text + at, 12, ")]");
    f.dtype = text;
    return f;
}

static frame many_fields(void)
{
    frame f = small();
    size_t at = (size_t)snprintf(text, 8, "[");
    for (int i = 0; i < 3000; i++) at += (size_t)snprintf(text + at, 20, "('f%d','|u1'),", i);
    snprintf(text + at, 8, "]");
    f.dtype = text;
    return f;
}

static frame a_large_subarray(void)
{
    frame f = small();
    f.dtype = "[('a', '|u1', (2000000000, 2000000000))]";
    return f;
}

/* A chunk header with false numbers: bytes, blocks, and space. */
static frame lying_chunk(int32_t n_bytes, int32_t block_bytes, int32_t cbytes)
{
    uint8_t chunk[64] = {5, 1, 0x95, 1};
    frame f = line(2147480000, 2147480000, 1000);
    cv_store_le32(chunk + 4, (uint32_t)n_bytes);
    cv_store_le32(chunk + 8, (uint32_t)block_bytes);
    cv_store_le32(chunk + 12, (uint32_t)cbytes);
    append(&f.chunks, chunk, sizeof chunk);
    set_index(&f, 0);
    return f;
}

static frame chunk_lies_of_bytes(void) { return lying_chunk(INT32_MAX, 1000, 64); }
static frame chunk_lies_of_blocks(void) { return lying_chunk(2147480000, 1, 64); }
static frame chunk_lies_of_room(void) { return lying_chunk(2147480000, 1000, INT32_MAX); }

static const struct {
    const char *name;
    frame (*make)(void);
} cases[] = {
    {"attributes_of_zeros", attributes_of_zeros},
    {"attributes_compressed", attributes_compressed},
    {"attribute_in_one_block", attribute_in_one_block},
    {"blocks_of_a_byte", blocks_of_a_byte},
    {"blocks_of_a_byte_stored", blocks_of_a_byte_stored},
    {"many_special_chunks", many_special_chunks},
    {"many_stored_chunks", many_stored_chunks},
    {"many_indexed_chunks", many_indexed_chunks},
    {"index_in_one_block", index_in_one_block},
    {"a_long_axis", a_long_axis},
    {"large_blocks", large_blocks},
    {"large_items", large_items},
    {"sixteen_axes", sixteen_axes},
    {"nested_dtype", nested_dtype},
    {"many_fields", many_fields},
    {"a_large_subarray", a_large_subarray},
    {"chunk_lies_of_bytes", chunk_lies_of_bytes},
    {"chunk_lies_of_blocks", chunk_lies_of_blocks},
    {"chunk_lies_of_room", chunk_lies_of_room},
};

int main(int argc, char **argv)
{
    char path[SCRATCH_PATH];
    if (SANITIZED) {
        puts("a sanitizer needs more memory than this test allows");
        return 77;
    }
    scratch_path(path, "hostile.b2nd");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        if (argc > 1 && strcmp(argv[1], cases[i].name) != 0) continue;
        hostile h = {.name = cases[i].name, .path = path, .file = path};
        printf("%s\n", h.name);
        fflush(stdout);
        frame f = cases[i].make();
        save(&f, path);
        uint8_t *bytes = scratch_load(path, &h.size);
        CHECK(bytes, "%s", path);
        h.bytes = bytes;
        hostile_run_library(&h);
        hostile_run_programs(&h);
        scratch_remove(path);
        free(bytes);
    }
    return 0;
}
