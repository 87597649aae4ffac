/* Frames of this library with false numbers and valid checksums: an attacker who can write a
 * file can compute its checksums, too. Each number of header, chunk, block table, index,
 * seal, footer, trailer and header copy is set to values that are too small, too large, and
 * nearly right; all checksums above it are recomputed; then the file is tried as described in
 * support/hostile.h. In a file, in a directory, and as a frame that is not an array.
 *
 * usage: test_hostile_seals [CASE, one of those it prints] */
#include "base/arith.h"
#include "base/crc.h"
#include "format/frame_header.h"
#include "format/seal.h"

#include "caterva.h"

#include "support/check.h"
#include "support/hostile.h"
#include "support/sanitized.h"
#include "support/scratch.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ITEMS = 400, CHUNK = 100, BLOCK = 50, LARGEST_FRAME = 64 * 1024 };

/* ---- A frame and its parts ------------------------------------------------ */

typedef enum part { HEADER, COPY, CHUNK_HEADER, TABLE, INDEX, HEAD, FOOTER, TRAILER } part;

typedef struct parts {
    uint8_t bytes[LARGEST_FRAME];
    size_t size, header_size;
    bool has_copy, has_chunk; /* in the frame itself */
    size_t at[TRAILER + 1];
    size_t index_head; /* bytes of the index before its first block */
} parts;

static uint32_t load_be32(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static size_t find(const parts *f, const char *what, size_t size)
{
    for (size_t i = 0; i + size <= f->size; i++)
        if (memcmp(f->bytes + i, what, size) == 0) return i;
    return 0;
}

static void find_parts(parts *f)
{
    cv_frame_header header;
    cv_seal_footer footer;
    f->header_size = load_be32(f->bytes + 11);
    CHECK(cv_frame_header_parse(f->bytes, f->header_size, &header, NULL) == CV_OK, "header");
    f->size = (size_t)header.frame_size;
    f->at[TRAILER] = f->size - load_be32(f->bytes + f->size - 22);
    f->at[FOOTER] = f->at[TRAILER] - CV_SEAL_FOOTER;
    CHECK(cv_seal_footer_read(f->bytes + f->at[FOOTER], &footer), "no footer");
    f->at[HEAD] = f->at[TRAILER] - (size_t)footer.size;
    f->at[CHUNK_HEADER] = f->header_size;
    f->at[INDEX] = f->header_size + (header.sparse ? 0 : (size_t)header.cbytes);
    f->at[COPY] = find(f, "cv-head\x01", 8);
    f->at[TABLE] = find(f, "cvbt", 4);
    f->has_copy = f->at[COPY] != 0;
    f->has_chunk = f->at[TABLE] != 0;
    for (f->index_head = 32; f->index_head <= f->at[HEAD] - f->at[INDEX]; f->index_head++)
        if (cv_crc32c(0, f->bytes + f->at[INDEX], f->index_head) ==
            cv_load_le32(f->bytes + f->at[HEAD] + 20))
            return;
    CHECK(false, "no head of the index");
}

/* ---- Checksums ------------------------------------------------------------ */

/* Recomputes the checksums of the first chunk, whose name is the first in the list. */
static void seal_chunk(const parts *from, uint8_t *b)
{
    size_t head = from->at[HEAD], n_index = cv_load_le32(from->bytes + head + 16);
    size_t names = head + 28 + 4 * n_index + 4, n_chunks = ITEMS / CHUNK;
    uint8_t *table = b + from->at[TABLE];
    uint32_t n = cv_load_le32(from->bytes + from->at[TABLE] + 4);
    cv_store_le32(table + 8, cv_crc32c(0, b + from->at[CHUNK_HEADER], 32 + 4 * (size_t)n));
    uint32_t name = cv_crc32c(0, table, 12 + 4 * (size_t)n);
    cv_store_le32(table + 12 + 4 * (size_t)n, name);
    cv_store_le32(b + names, name);
    cv_store_le32(b + names - 4, cv_seal_page_sum(b + names, CV_SEAL_NAME * n_chunks));
}

/* Recomputes all checksums above `changed`. */
static void seal(const parts *from, part changed, uint8_t *b)
{
    size_t head = from->at[HEAD], footer = from->at[FOOTER];
    size_t head_size = cv_load_le32(from->bytes + footer + 24);
    if (changed == COPY) {
        uint8_t *copy = b + from->at[COPY];
        size_t covered = 20 + from->header_size;
        cv_store_le32(copy + covered, cv_crc32c(0, copy, covered));
    }
    if (changed == CHUNK_HEADER || changed == TABLE) seal_chunk(from, b);
    if (changed == INDEX)
        cv_store_le32(b + head + 20, cv_crc32c(0, b + from->at[INDEX], from->index_head));
    cv_store_le32(b + footer + 28, cv_crc32c(0, b + head, head_size));
    size_t header_size = load_be32(b + 11);
    if (header_size > from->size) header_size = from->header_size;
    cv_seal_root_write(b + footer, from->size - footer, b, header_size);
}

/* ---- Numbers --------------------------------------------------------------- */

typedef struct number {
    const char *name;
    part part;
    int at, width;
    bool little;
} number;

static const number fields[] = {
    {"header_size", HEADER, 11, 4, false},
    {"frame_size", HEADER, 16, 8, false},
    {"header_flags", HEADER, 25, 4, false},
    {"nbytes", HEADER, 30, 8, false},
    {"cbytes", HEADER, 39, 8, false},
    {"item_size", HEADER, 48, 4, false},
    {"block_size", HEADER, 53, 4, false},
    {"chunk_size", HEADER, 58, 4, false},
    {"filters", HEADER, 70, 2, false},
    {"map_size", HEADER, 89, 2, false},
    {"metalayers", HEADER, 92, 2, false},
    {"layer_at", HEADER, 100, 4, false},
    {"layers", HEADER, 105, 2, false},
    {"layer_size", HEADER, 108, 4, false},
    {"ndim", HEADER, 114, 2, false},
    {"shape", HEADER, 117, 8, false},
    {"chunk_shape", HEADER, 127, 4, false},
    {"block_shape", HEADER, 133, 4, false},
    {"dtype_size", HEADER, 139, 4, false},
    {"copy_commit", COPY, 8, 8, true},
    {"copy_size", COPY, 16, 4, true},
    {"copy_frame_size", COPY, 36, 8, false},
    {"copy_nbytes", COPY, 50, 8, false},
    {"copy_cbytes", COPY, 59, 8, false},
    {"copy_chunk_size", COPY, 78, 4, false},
    {"copy_shape", COPY, 137, 8, false},
    {"chunk_nbytes", CHUNK_HEADER, 4, 4, true},
    {"chunk_block_size", CHUNK_HEADER, 8, 4, true},
    {"chunk_cbytes", CHUNK_HEADER, 12, 4, true},
    {"chunk_kind", CHUNK_HEADER, 28, 4, true},
    {"block_start", CHUNK_HEADER, 32, 4, true},
    {"table_blocks", TABLE, 4, 4, true},
    {"index_nbytes", INDEX, 4, 4, true},
    {"index_block_size", INDEX, 8, 4, true},
    {"index_cbytes", INDEX, 12, 4, true},
    {"index_kind", INDEX, 28, 4, true},
    {"index_block_start", INDEX, 32, 4, true},
    {"seal_chunks", HEAD, 0, 8, true},
    {"seal_strays", HEAD, 8, 8, true},
    {"seal_index_blocks", HEAD, 16, 4, true},
    {"page", HEAD, 32, 4, true},
    {"commit", FOOTER, 8, 8, true},
    {"seal_size", FOOTER, 16, 8, true},
    {"head_size", FOOTER, 24, 4, true},
    {"attributes", TRAILER, 7, 2, false},
    {"attribute_at", TRAILER, 15, 4, false},
    {"values", TRAILER, 20, 2, false},
    {"value_size", TRAILER, 23, 4, false},
    {"value_nbytes", TRAILER, 31, 4, true},
    {"value_blocks", TRAILER, 35, 4, true},
    {"value_cbytes", TRAILER, 39, 4, true},
};

static void store(uint8_t *to, const number *field, uint64_t value)
{
    for (int i = 0; i < field->width; i++)
        to[field->little ? i : field->width - 1 - i] = (uint8_t)(value >> (8 * i));
}

static uint64_t load(const uint8_t *from, const number *field)
{
    uint64_t value = 0;
    for (int i = 0; i < field->width; i++)
        value |= (uint64_t)from[field->little ? i : field->width - 1 - i] << (8 * i);
    return value;
}

static int list_lies(const number *field, uint64_t now, uint64_t lies[16])
{
    const uint64_t all[] = {
        0,         1,         now + 1,           now - 1,   now * 2,
        17,        8193,      UINT64_C(1) << 28, INT32_MAX, UINT64_C(1) << 40,
        INT64_MAX, UINT64_MAX};
    int n = 0;
    uint64_t most = field->width == 8 ? UINT64_MAX : (UINT64_C(1) << 8 * field->width) - 1;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        if (all[i] != now && (all[i] <= most || i == 11)) lies[n++] = all[i] & most;
    return n;
}

/* ---- Arrays ----------------------------------------------------------------- */

/* Noise, so that blocks are stored; an attribute. */
static void make_array(const char *path, caterva_layout layout)
{
    caterva_error err;
    caterva_array *array;
    static uint8_t items[ITEMS];
    static const int64_t shape[] = {ITEMS}, origin[] = {0};
    static const int32_t chunk_shape[] = {CHUNK}, block_shape[] = {BLOCK};
    caterva_create_options o = CATERVA_CREATE_INIT;
    for (int i = 0; i < ITEMS; i++) items[i] = (uint8_t)(i % BLOCK / 25);
    o.ndim = 1, o.shape = shape, o.chunk_shape = chunk_shape, o.block_shape = block_shape;
    o.dtype = "|u1";
    o.layout = layout;
    o.durability = CATERVA_DURABILITY_NONE;
    CHECK_OK(caterva_create(path, &o, &array, &err), err);
    CHECK_OK(caterva_write(array, origin, shape, items, sizeof items, &err), err);
    CHECK_OK(caterva_attr_set(array, "note", items, sizeof items, &err), err);
    CHECK_OK(caterva_close(array, &err), err);
}

/* The same without the metalayer and the seal: a frame of bytes. */
static void make_plain(parts *f)
{
    cv_frame_header header;
    cv_buffer out = {0};
    size_t before = f->header_size;
    CHECK(cv_frame_header_parse(f->bytes, before, &header, NULL) == CV_OK, "header");
    header.n_metalayers = 0;
    for (int pass = 0; pass < 2; pass++) {
        out.size = 0;
        CHECK(cv_frame_header_write(&header, &out, NULL) == CV_OK, "header");
        header.frame_size = f->size - before + header.header_size;
    }
    CHECK(cv_buffer_append(&out, f->bytes + before, f->size - before, NULL) == CV_OK,
          "memory");
    memset(out.data + out.size - 17, 0, 17);
    memcpy(f->bytes, out.data, out.size);
    f->size = out.size;
    cv_buffer_free(&out);
}

/* ---- Trying ----------------------------------------------------------------- */

typedef struct kind {
    const char *name;
    caterva_layout layout;
    bool plain;
} kind;

static void lie(const kind *k, const parts *from, const number *field, uint64_t value,
                hostile *h)
{
    static uint8_t bytes[LARGEST_FRAME];
    memcpy(bytes, from->bytes, from->size);
    store(bytes + from->at[field->part] + field->at, field, value);
    if (!k->plain) seal(from, field->part, bytes);
    if (field->part == COPY) memset(bytes, 0, 10); /* torn: its copy is used */
    h->bytes = bytes;
    h->size = from->size;
    hostile_restore(h);
    hostile_run_library(h);
}

static bool is_there(const kind *k, const parts *f, const number *field)
{
    bool layers = field->part == HEADER && field->at > 86;
    bool sealed = field->part == COPY || field->part == HEAD || field->part == FOOTER;
    if (k->plain && (layers || sealed)) return false;
    if (field->part == COPY && !f->has_copy) return false;
    return f->has_chunk || (field->part != CHUNK_HEADER && field->part != TABLE);
}

static int try_kind(const kind *k, const char *only)
{
    parts f = {0};
    char path[SCRATCH_PATH], file[SCRATCH_PATH + 32], name[80];
    int n = 0;
    snprintf(name, sizeof name, "hostile-%s", k->name);
    make_array(scratch_path(path, name), k->layout);
    snprintf(file, sizeof file,
             k->layout == CATERVA_LAYOUT_SPARSE ? "%s/chunks.b2frame" : "%s", path);
    uint8_t *loaded = scratch_load(file, &f.size);
    CHECK(loaded && f.size <= sizeof f.bytes, "%s has %zu bytes", file, f.size);
    memcpy(f.bytes, loaded, f.size);
    free(loaded);
    find_parts(&f);
    if (k->plain) {
        size_t before = f.header_size;
        make_plain(&f);
        f.header_size = load_be32(f.bytes + 11);
        for (int p = CHUNK_HEADER; p <= TRAILER; p++) f.at[p] -= before - f.header_size;
    }
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        uint64_t lies[16],
            now = load(f.bytes + f.at[fields[i].part] + fields[i].at, &fields[i]);
        snprintf(name, sizeof name, "%s/%s", k->name, fields[i].name);
        if (!is_there(k, &f, &fields[i]) || (only && strcmp(only, name) != 0)) continue;
        hostile h = {.name = name, .path = path, .file = file};
        puts(name);
        for (int j = list_lies(&fields[i], now, lies); j-- > 0; n++)
            lie(k, &f, &fields[i], lies[j], &h);
    }
    scratch_remove(path);
    return n;
}

int main(int argc, char **argv)
{
    static const kind kinds[] = {{"file", CATERVA_LAYOUT_CONTIGUOUS, false},
                                 {"directory", CATERVA_LAYOUT_SPARSE, false},
                                 {"plain", CATERVA_LAYOUT_CONTIGUOUS, true}};
    int n = 0;
    if (SANITIZED) {
        puts("a sanitizer needs more memory than this test allows");
        return 77;
    }
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        n += try_kind(&kinds[i], argc > 1 ? argv[1] : NULL);
    printf("%d lies\n", n);
    return n > 0 ? 0 : 1;
}
