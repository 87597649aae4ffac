/* Invalid files: each is refused with the right status and a message, as a file and in
 * memory.
 *
 * C-Blosc2 makes the frames that are not n-d arrays; the others are good frames with a few
 * header bytes changed. */
#include "caterva.h"
#include "caterva_upkeep.h"
#include "caterva_store.h"

#include "support/check.h"
#include "support/info.h"
#include "support/refuse.h"
#include "support/scratch.h"
#include "support/unseal.h"

#include <b2nd.h>
#include <blosc2.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Bytes of the frame header (the Blosc2 frame format). */
enum {
    AT_GENERAL_FLAGS = 25,
    AT_FRAME_TYPE = 26,
    AT_CODEC = 27,
    AT_CHUNK_BYTES = 58,
    AT_FILTERS = 71,
    AT_USER_CODEC = 77
};

/* A whole frame in memory, and the path to write it to. */
typedef struct sample {
    uint8_t *bytes;
    size_t size;
    char path[SCRATCH_PATH];
} sample;

static void refuse_bytes(sample *s, const void *bytes, size_t size, unsigned allowed)
{
    caterva_array *array = NULL;
    scratch_save(s->path, bytes, size);
    REFUSE(allowed, caterva_open(s->path, NULL, &array, err));
    if (size > 0) REFUSE(allowed, caterva_frame_open(bytes, size, 0, NULL, &array, err));
    CHECK(array == NULL, "a handle in spite of the refusal");
}

/* The message must name the problem. */
static void need_words(const char *path, const char *words)
{
    caterva_error err = {.code = CATERVA_OK};
    caterva_array *array = NULL;
    CHECK(caterva_open(path, NULL, &array, &err) != CATERVA_OK, "%s was opened", path);
    CHECK(strstr(err.message, words) != NULL, "\"%s\" does not say \"%s\"", err.message,
          words);
}

static sample good_sample(void)
{
    caterva_error err;
    sample s;
    void *frame = NULL;
    caterva_array *array = make_small_array("mem:");
    scratch_path(s.path, "bad.b2nd");
    CHECK_OK(caterva_frame_copy(array, &frame, &s.size, &err), err);
    s.bytes = check_alloc(s.size);
    memcpy(s.bytes, frame, s.size);
    unseal(s.bytes, s.size); /* each field is refused for its value */
    caterva_free(frame);
    caterva_discard(array);
    return s;
}

static void refuse_missing_and_empty(sample *s)
{
    static const char text[] =
        "shape: 6 x 7, but this is a text file that somebody renamed\n";
    uint8_t *other = check_alloc(5000);
    caterva_array *array = NULL;
    char path[SCRATCH_PATH];
    scratch_path(path, "not-there.b2nd");
    REFUSE(ENOTFOUND_BIT, caterva_open(path, NULL, &array, err));
    refuse_bytes(s, "", 0, ECORRUPT_BIT);
    refuse_bytes(s, text, sizeof(text), ECORRUPT_BIT);
    refuse_bytes(s, other, 5000, ECORRUPT_BIT);
    memset(other, 0xFF, 5000);
    refuse_bytes(s, other, 5000, ECORRUPT_BIT);
    memcpy(other, "\x93NUMPY\x01\x00v\x00{'descr': '<f4'", 26);
    refuse_bytes(s, other, 5000, ECORRUPT_BIT);
    free(other);
}

/* Truncated at any byte it is refused; with bytes after its end it is still valid. */
static void refuse_truncated(sample *s)
{
    caterva_error err;
    caterva_array *array = NULL;
    for (size_t n = 0; n < s->size; n++) refuse_bytes(s, s->bytes, n, ECORRUPT_BIT);
    uint8_t *longer = check_alloc(s->size + 50);
    memcpy(longer, s->bytes, s->size);
    scratch_save(s->path, longer, s->size + 50);
    CHECK_OK(caterva_open(s->path, NULL, &array, &err), err);
    check_small_array(array);
    caterva_discard(array);
    free(longer);
}

/* The good frame with one header byte changed. */
static void refuse_patched(sample *s, size_t at, uint8_t byte, unsigned allowed)
{
    uint8_t *bytes = check_alloc(s->size);
    memcpy(bytes, s->bytes, s->size);
    bytes[at] = byte;
    refuse_bytes(s, bytes, s->size, allowed);
    free(bytes);
}

static void refuse_newer_versions(sample *s)
{
    uint8_t flags = s->bytes[AT_GENERAL_FLAGS];
    for (unsigned version = 4; version < 16; version++)
        refuse_patched(s, AT_GENERAL_FLAGS, (uint8_t)((flags & 0xF0u) | version),
                       EUNSUPPORTED_BIT);
    refuse_patched(s, AT_GENERAL_FLAGS, flags | 0x40u, EUNSUPPORTED_BIT | ECORRUPT_BIT);
    refuse_patched(s, AT_GENERAL_FLAGS, flags | 0x80u, EUNSUPPORTED_BIT | ECORRUPT_BIT);
    refuse_patched(s, AT_FRAME_TYPE, 1, ECORRUPT_BIT | EUNSUPPORTED_BIT);
    refuse_patched(s, AT_FRAME_TYPE, 9, ECORRUPT_BIT | EUNSUPPORTED_BIT);
    refuse_patched(s, AT_CHUNK_BYTES, 1, ECORRUPT_BIT);
}

static void refuse_unknown_codec_and_filter(sample *s)
{
    uint8_t *bytes = check_alloc(s->size);
    memcpy(bytes, s->bytes, s->size);
    bytes[AT_CODEC] = (uint8_t)((bytes[AT_CODEC] & 0xF0u) | 6u); /* see the byte below */
    bytes[AT_USER_CODEC] = 201;
    refuse_bytes(s, bytes, s->size, EUNSUPPORTED_BIT);
    need_words(s->path, "201");
    memcpy(bytes, s->bytes, s->size);
    bytes[AT_FILTERS] = 199;
    refuse_bytes(s, bytes, s->size, EUNSUPPORTED_BIT);
    need_words(s->path, "199");
    free(bytes);
}

/* Every header field that has one right value, with a wrong one. */
static void refuse_broken_headers(sample *s)
{
    static const size_t markers[] = {0, 1, 2, 9, 10, 15, 24, 29, 38, 47, 52, 57, 69, 70};
    for (int i = 0; i < COUNT(markers); i++)
        refuse_patched(s, markers[i], (uint8_t)(s->bytes[markers[i]] ^ 0x55u), ECORRUPT_BIT);
}

/* ---- Frames of C-Blosc2 without an array's metalayer ---------------------------------- */

static blosc2_schunk *new_schunk(const char *path, int contiguous)
{
    blosc2_cparams cparams = BLOSC2_CPARAMS_DEFAULTS;
    blosc2_dparams dparams = BLOSC2_DPARAMS_DEFAULTS;
    blosc2_storage storage = {.contiguous = contiguous != 0,
                              .urlpath = (char *)(uintptr_t)path,
                              .cparams = &cparams,
                              .dparams = &dparams};
    blosc2_remove_urlpath(path);
    blosc2_schunk *schunk = blosc2_schunk_new(&storage);
    CHECK(schunk != NULL, "C-Blosc2 makes no super-chunk at %s", path);
    return schunk;
}

/* They are read as their items; no other operation is possible. */
static void check_plain_frame(const char *path, int64_t n)
{
    caterva_array *array = NULL;
    caterva_error opened;
    caterva_open_options options = CATERVA_OPEN_INIT;
    int64_t items[1000] = {0}, start = 0;
    options.mode = CATERVA_MODE_WRITE;
    REFUSE(EUNSUPPORTED_BIT, caterva_open(path, &options, &array, err));
    REFUSE(EUNSUPPORTED_BIT, caterva_compact(path, NULL, err));
    CHECK_OK(caterva_open(path, NULL, &array, &opened), opened);
    const caterva_info *info = info_of(array);
    CHECK(info->ndim == 1 && info->metalayer == CATERVA_METALAYER_NONE, "%s", path);
    CHECK(info->shape[0] * info->item_size == n * (int64_t)sizeof(items[0]), "%s", path);
    CHECK_OK(caterva_read(array, &start, info->shape, items, sizeof(items), &opened), opened);
    CHECK(n == 0 || (items[0] == 1 && items[2] == 3 && items[999] == 0), "%s", path);
    CHECK_OK(caterva_close(array, &opened), opened);
}

static void check_plain_frames(void)
{
    char path[SCRATCH_PATH];
    int64_t data[1000] = {1, 2, 3};
    for (int contiguous = 0; contiguous < 2; contiguous++) {
        scratch_path(path, contiguous ? "plain.b2frame" : "plain-folder");
        blosc2_schunk *schunk = new_schunk(path, contiguous);
        CHECK(blosc2_schunk_append_buffer(schunk, data, sizeof(data)) == 1, "no append");
        blosc2_schunk_free(schunk);
        check_plain_frame(path, 1000);
    }
    scratch_path(path, "no-chunks.b2frame");
    blosc2_schunk_free(new_schunk(path, 1));
    check_plain_frame(path, 0);
}

/* Variable-length blocks, also with an array's metalayer: no array has them. */
static void refuse_variable_blocks(void)
{
    char path[SCRATCH_PATH];
    uint8_t chunk[4096];
    static const char *const words[] = {"blocks", "of", "variable length, each its own"};
    const void *sources[3] = {words[0], words[1], words[2]};
    int32_t sizes[3] = {6, 2, 29};
    int64_t shape = 37;
    int32_t part = 37;
    uint8_t *meta = NULL;
    caterva_array *array = NULL;
    blosc2_cparams cparams = BLOSC2_CPARAMS_DEFAULTS;
    cparams.typesize = 1;
    blosc2_context *ctx = blosc2_create_cctx(cparams);
    int size = blosc2_vlcompress_ctx(ctx, sources, sizes, 3, chunk, sizeof(chunk));
    CHECK(size > 0, "C-Blosc2 compresses no variable blocks: %d", size);
    int meta_size = b2nd_serialize_meta(1, &shape, &part, &part, "|u1", 0, &meta);
    for (int with_meta = 0; with_meta < 2; with_meta++) {
        scratch_path(path, "variable-blocks.b2frame");
        blosc2_schunk *schunk = new_schunk(path, 1);
        if (with_meta)
            CHECK(blosc2_meta_add(schunk, "b2nd", meta, meta_size) >= 0, "no metalayer");
        CHECK(blosc2_schunk_append_chunk(schunk, chunk, true) == 1, "no append");
        blosc2_schunk_free(schunk);
        REFUSE(EUNSUPPORTED_BIT | ECORRUPT_BIT, caterva_open(path, NULL, &array, err));
    }
    free(meta);
    blosc2_free_ctx(ctx);
}

static void refuse_folders(void)
{
    char path[SCRATCH_PATH];
    caterva_array *array = NULL;
    scratch_path(path, "folder");
    mkdir(path, 0777);
    REFUSE(ENOTFOUND_BIT | EUNSUPPORTED_BIT | ECORRUPT_BIT,
           caterva_open(path, NULL, &array, err));
    scratch_path(path, "folder/chunks.b2frame");
    scratch_save(path, "rubbish", 7);
    scratch_path(path, "folder");
    REFUSE(ECORRUPT_BIT, caterva_open(path, NULL, &array, err));
}

/* A sparse array whose chunk files disappear or shrink: an error; the rest is readable. */
static void damage_chunk_files(void)
{
    char path[SCRATCH_PATH];
    char chunk[SCRATCH_PATH];
    caterva_error detail;
    caterva_array *array = NULL;
    caterva_create_options o = small_options();
    int64_t start[2] = {0, 0};
    int64_t stop[2] = {1, 1};
    int64_t last[2] = {5, 6};
    int32_t got[42];
    scratch_path(path, "sparse");
    o.layout = CATERVA_LAYOUT_SPARSE;
    CHECK_OK(caterva_create(path, &o, &array, &detail), detail);
    CHECK_OK(
        caterva_write(array, start, small_shape, small_values, sizeof(small_values), &detail),
        detail);
    CHECK_OK(caterva_close(array, &detail), detail);
    scratch_path(chunk, "sparse/00000000.chunk");
    CHECK(truncate(chunk, 20) == 0, "there is no %s", chunk);
    CHECK_OK(caterva_open(path, NULL, &array, &detail), detail);
    REFUSE(ECORRUPT_BIT, caterva_read(array, start, stop, got, sizeof(got), err));
    CHECK_OK(caterva_read(array, last, small_shape, got, sizeof(got), &detail), detail);
    CHECK(got[0] == small_values[41], "the last item is %d", (int)got[0]);
    CHECK(remove(chunk) == 0, "cannot remove %s", chunk);
    REFUSE(ECORRUPT_BIT | EIO_BIT | ENOTFOUND_BIT,
           caterva_read(array, start, stop, got, sizeof(got), err));
    caterva_discard(array);
}

int main(void)
{
    blosc2_init();
    sample s = good_sample();
    refuse_missing_and_empty(&s);
    refuse_truncated(&s);
    refuse_newer_versions(&s);
    refuse_unknown_codec_and_filter(&s);
    refuse_broken_headers(&s);
    check_plain_frames();
    refuse_variable_blocks();
    refuse_folders();
    damage_chunk_files();
    free(s.bytes);
    printf("%d refusals\n", refusals());
    return 0;
}
