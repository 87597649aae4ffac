/* Random damage of good frames: opening, reading, listing and verifying must end, with any
 * status, without a crash or an invalid access. Most useful under AddressSanitizer: each
 * frame is in an allocation of exactly its size.
 *
 * usage: test_mutations [MUTATIONS [SEED]] */
#include "caterva.h"
#include "caterva_store.h"
#include "caterva_upkeep.h"

#include "support/check.h"
#include "support/every_step.h"
#include "support/info.h"
#include "support/oracle.h"
#include "support/pipelines.h"
#include "support/random.h"
#include "support/scratch.h"

#include <b2nd.h>
#include <blosc2.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    DEFAULT_MUTATIONS = 20000,
    N_FRAMES = 40,
    MAX_ITEMS = 600,
    MAX_READ = 1 << 20, /* bytes of one read */
    HANG_SECONDS = 60,
    SLOW_SECONDS = 20 /* of processor time: the limit for one damaged frame */
};

typedef struct frame {
    uint8_t *bytes;
    size_t size;
} frame;

static int n_opened;
static int n_read;

/* ---- Good frames ------------------------------------------------------------- */

static frame frame_by_us(rng *r)
{
    caterva_error err;
    caterva_array *array = NULL;
    void *bytes = NULL;
    frame f = {NULL, 0};
    geometry g = random_geometry(r, 4, MAX_ITEMS);
    pipeline p = random_pipeline(r, g.item_size);
    caterva_create_options options = options_for(&g, &p);
    box all = whole_box(&g);
    size_t size = box_size(&all, &g);
    uint8_t *data = check_alloc(size);
    random_data(r, data, size, g.item_size);
    CHECK_OK(caterva_create("mem:", &options, &array, &err), err);
    CHECK_OK(caterva_write(array, all.start, all.stop, data, size, &err), err);
    CHECK_OK(caterva_frame_copy(array, &bytes, &f.size, &err), err);
    f.bytes = check_alloc(f.size);
    memcpy(f.bytes, bytes, f.size);
    caterva_free(bytes);
    caterva_discard(array);
    free(data);
    return f;
}

/* With features that this library does not write: attributes, dictionaries, blocks out of
 * order. */
static frame frame_by_b2nd(rng *r)
{
    frame f = {NULL, 0};
    uint8_t *bytes = NULL;
    int64_t size = 0;
    bool needs_free = false;
    int64_t shape[2] = {rng_between(r, 1, 60), rng_between(r, 1, 60)};
    int32_t chunks[2] = {rng_int(r, 1, 40), rng_int(r, 1, 40)};
    int32_t blocks[2] = {rng_int(r, 1, chunks[0]), rng_int(r, 1, chunks[1])};
    blosc2_cparams cparams = BLOSC2_CPARAMS_DEFAULTS;
    blosc2_dparams dparams = BLOSC2_DPARAMS_DEFAULTS;
    blosc2_storage storage = {.contiguous = true, .cparams = &cparams, .dparams = &dparams};
    b2nd_array_t *array = NULL;
    cparams.typesize = 4;
    cparams.nthreads = 4;
    cparams.compcode = rng_one_in(r, 2) ? BLOSC_ZSTD : BLOSC_LZ4;
    if (rng_one_in(r, 2)) {
        /* C-Blosc2 moves a dictionary (a twentieth of the chunk) by the length of the block
         * starts with memcpy: with many blocks it does not overlap. */
        cparams.use_dict = 1;
        shape[0] = shape[1] = chunks[0] = chunks[1] = 40;
        blocks[0] = blocks[1] = 4;
    }
    int32_t *data = check_alloc((size_t)(shape[0] * shape[1]) * sizeof(*data));
    for (int64_t i = 0; i < shape[0] * shape[1]; i++) data[i] = (int32_t)(i * 3);
    b2nd_context_t *ctx =
        b2nd_create_ctx(&storage, 2, shape, chunks, blocks, "<i4", 0, NULL, 0);
    CHECK(b2nd_from_cbuffer(ctx, &array, data, shape[0] * shape[1] * 4) >= 0, "b2nd");
    uint8_t value[64] = {0xA3, 'o', 'n', 'e'};
    CHECK(blosc2_vlmeta_add(array->sc, "name", value, sizeof(value), NULL) >= 0, "attribute");
    CHECK(b2nd_to_cframe(array, &bytes, &size, &needs_free) >= 0, "b2nd");
    f.size = (size_t)size;
    f.bytes = check_alloc(f.size);
    memcpy(f.bytes, bytes, f.size);
    if (needs_free) free(bytes);
    b2nd_free(array);
    b2nd_free_ctx(ctx);
    free(data);
    return f;
}

/* ---- Damage ------------------------------------------------------------------ */

/* Most structure is in the header and after the chunks: positions there are preferred. */
static size_t random_place(rng *r, size_t size)
{
    size_t span = size < 220 ? size : 220;
    int kind = rng_int(r, 0, 3);
    if (kind == 0) return (size_t)rng_between(r, 0, (int64_t)span - 1);
    if (kind == 1) return size - 1 - (size_t)rng_between(r, 0, (int64_t)span - 1);
    return (size_t)rng_between(r, 0, (int64_t)size - 1);
}

/* Writes a number that may break a parser, big- or little-endian, 4 or 8 bytes. */
static void put_number(rng *r, uint8_t *at, size_t room)
{
    static const uint64_t numbers[] = {0,
                                       1,
                                       31,
                                       32,
                                       0x7FFFFFFF,
                                       0x80000000,
                                       0xFFFFFFFF,
                                       0x7FFFFFFFFFFFFFFF,
                                       0x8000000000000000,
                                       UINT64_MAX};
    uint64_t number = numbers[rng_int(r, 0, 9)] + (uint64_t)rng_between(r, -2, 2);
    size_t width = rng_one_in(r, 2) ? 4 : 8;
    int big = rng_one_in(r, 2);
    for (size_t i = 0; i < width && i < room; i++)
        at[i] = (uint8_t)(number >> 8 * (big ? width - 1 - i : i));
}

static void damage_once(rng *r, frame *f)
{
    size_t at = random_place(r, f->size);
    size_t room = f->size - at;
    size_t run = (size_t)rng_between(r, 1, 40);
    run = run < room ? run : room;
    switch (rng_int(r, 0, 6)) {
    case 0: f->bytes[at] ^= (uint8_t)(1u << rng_int(r, 0, 7)); break;
    case 1: f->bytes[at] = (uint8_t)rng_next(r); break;
    case 2: memset(f->bytes + at, rng_one_in(r, 2) ? 0 : 0xFF, run); break;
    case 3: rng_fill(r, f->bytes + at, run); break;
    case 4: put_number(r, f->bytes + at, room); break;
    case 5: memmove(f->bytes + at, f->bytes + random_place(r, f->size - run + 1), run); break;
    default: f->size = rng_one_in(r, 4) ? at + 1 : f->size; break;
    }
}

/* ---- Use --------------------------------------------------------------------- */

/* A box of at most MAX_READ bytes at the start or the end of the array. */
static box bounded_box(rng *r, const caterva_info *info)
{
    box b;
    int64_t room = MAX_READ / (info->item_size > 0 ? info->item_size : 1);
    int at_end = rng_one_in(r, 2);
    memset(&b, 0, sizeof(b));
    for (int i = info->ndim - 1; i >= 0; i--) {
        int64_t n = info->shape[i] < room ? info->shape[i] : room;
        b.start[i] = at_end ? info->shape[i] - n : 0;
        b.stop[i] = b.start[i] + n;
        room /= n > 0 ? n : 1;
    }
    return b;
}

static int stop_long_verify(void *context, int64_t done, int64_t total)
{
    (void)context;
    (void)total;
    return done > 100000;
}

static void use_attributes(caterva_array *array)
{
    const caterva_info *info = info_of(array);
    for (int i = 0; i < info->n_attributes; i++) {
        void *value = NULL;
        size_t size = 0;
        caterva_attr_get(array, info->attribute_names[i], &value, &size, NULL);
        caterva_free(value);
    }
}

static void use_array(rng *r, caterva_array *array)
{
    const caterva_info *info = info_of(array);
    caterva_verify_options verify = CATERVA_VERIFY_INIT;
    caterva_verify_result result = CATERVA_VERIFY_RESULT_INIT;
    caterva_chunk_info chunk = CATERVA_CHUNK_INFO_INIT;
    caterva_space space = CATERVA_SPACE_INIT;
    box b = bounded_box(r, info);
    geometry g = {.ndim = info->ndim, .item_size = info->item_size};
    size_t size = box_size(&b, &g);
    if (size <= MAX_READ) { /* larger items are skipped */
        uint8_t *bytes = check_alloc(size);
        n_read += caterva_read(array, b.start, b.stop, bytes, size, NULL) == CATERVA_OK;
        free(bytes);
    }
    use_attributes(array);
    caterva_chunk_describe(array, 0, &chunk, NULL);
    caterva_chunk_describe(array, info->n_chunks - 1, &chunk, NULL);
    if (info->n_chunks < 100000) caterva_measure(array, &space, NULL);
    verify.progress = every_step(stop_long_verify, NULL);
    caterva_verify(array, &verify, &result, NULL);
}

static caterva_status open_damaged(rng *r, const frame *f, const char *path,
                                   caterva_array **array)
{
    if (!rng_one_in(r, 30))
        return caterva_frame_open(f->bytes, f->size, rng_one_in(r, 4), NULL, array, NULL);
    scratch_save(path, f->bytes, f->size);
    return caterva_open(path, NULL, array, NULL);
}

static void try_damaged(rng *r, const frame *good, const char *path)
{
    caterva_array *array = NULL;
    frame f = {check_alloc(good->size), good->size};
    memcpy(f.bytes, good->bytes, good->size);
    int times = rng_one_in(r, 2) ? 1 : rng_int(r, 2, 5);
    for (int i = 0; i < times; i++) damage_once(r, &f);
    if (f.size < good->size) { /* exactly its size, so that an overread is detected */
        uint8_t *cut = check_alloc(f.size);
        memcpy(cut, f.bytes, f.size);
        free(f.bytes);
        f.bytes = cut;
    }
    if (open_damaged(r, &f, path, &array) == CATERVA_OK) {
        n_opened++;
        use_array(r, array);
        caterva_discard(array);
    }
    free(f.bytes);
}

int main(int argc, char **argv)
{
    int mutations = (int)number_argument(argc, argv, 1, DEFAULT_MUTATIONS);
    uint64_t seed = seed_argument(argc, argv, 2);
    rng r = rng_from_seed(seed);
    frame frames[N_FRAMES];
    char path[SCRATCH_PATH];
    double slowest = 0;
    blosc2_init();
    scratch_path(path, "damaged.b2nd");
    for (int i = 0; i < N_FRAMES; i++)
        frames[i] = i % 2 == 0 ? frame_by_us(&r) : frame_by_b2nd(&r);
    for (int i = 0; i < mutations; i++) {
        /* Each has a seed of its own, printed if it is slow. */
        rng own = rng_from_seed(seed + (uint64_t)i);
        alarm(HANG_SECONDS); /* a hang ends the program with a signal */
        clock_t start = clock();
        try_damaged(&own, &frames[i % N_FRAMES], path);
        double took = (double)(clock() - start) / CLOCKS_PER_SEC;
        slowest = took > slowest ? took : slowest;
        CHECK(took <= SLOW_SECONDS, "mutation %d took %.1f s", i, took);
    }
    for (int i = 0; i < N_FRAMES; i++) free(frames[i].bytes);
    printf("%d damaged frames, %d opened, %d read, slowest %.1f s\n", mutations, n_opened,
           n_read, slowest);
    return 0;
}
