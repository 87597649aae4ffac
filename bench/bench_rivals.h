/* Functions that create, open, write, read and compare an array of ours and one of b2nd. Items are
 * float32 unless stated otherwise. */
#ifndef BENCH_RIVALS_H
#define BENCH_RIVALS_H

#include "bench.h"

#include <b2nd.h>
#include <blosc2.h>

#include <string.h>
#include <unistd.h>

enum { BENCH_NDIM = 3 };

typedef struct bench_spec {
    int8_t ndim;
    int64_t shape[BENCH_NDIM];
    int32_t chunk[BENCH_NDIM], block[BENCH_NDIM];
    int item_size; /* 8: float64; else float32 */
    int zstd;      /* else LZ4; level 5, with shuffle */
    int threads;
    caterva_durability durability; /* of ours; b2nd never syncs */
} bench_spec;

typedef struct bench_box {
    int64_t start[BENCH_NDIM], stop[BENCH_NDIM], shape[BENCH_NDIM];
    int64_t size; /* bytes */
} bench_box;

typedef struct bench_rivals {
    char our_path[512], their_path[512];
    bench_spec spec;
    caterva_array *ours;
    b2nd_array_t *theirs;
} bench_rivals;

static inline void bench_need_b2nd(int result, const char *what)
{
    bench_need(result >= 0, what, result >= 0 ? "" : blosc2_error_string(result));
}

static inline const char *bench_dtype(const bench_spec *spec)
{
    return spec->item_size == 8 ? "<f8" : "<f4";
}

static inline bench_box bench_box_of(const int64_t *start, const int64_t *shape,
                                     int64_t item_size)
{
    bench_box b = {.size = item_size};
    for (int i = 0; i < BENCH_NDIM; i++) {
        b.start[i] = start[i];
        b.shape[i] = shape[i];
        b.stop[i] = start[i] + shape[i];
        b.size *= shape[i];
    }
    return b;
}

static inline bench_box bench_box_at(const int64_t *start, const int64_t *shape)
{
    return bench_box_of(start, shape, sizeof(float));
}

/* Fills `to` with a ramp whose `bits` low mantissa bits are random. */
static inline void bench_noise(float *to, int64_t n, int bits, uint64_t *random)
{
    for (int64_t i = 0; i < n; i++) {
        float value = 2.0F + (float)(i % 384) / 300.0F;
        uint32_t word;
        memcpy(&word, &value, sizeof(word));
        word ^= (uint32_t)bench_random(random) & ((1u << bits) - 1);
        memcpy(&to[i], &word, sizeof(word));
    }
}

/* ---- Ours ------------------------------------------------------------------------ */

static inline caterva_array *bench_create_ours(const char *path, const bench_spec *spec)
{
    caterva_error err;
    caterva_create_options options = CATERVA_CREATE_INIT;
    caterva_array *array = NULL;
    options.ndim = spec->ndim;
    options.shape = spec->shape;
    options.chunk_shape = spec->chunk;
    options.block_shape = spec->block;
    options.dtype = bench_dtype(spec);
    options.codec = spec->zstd ? CATERVA_CODEC_ZSTD : CATERVA_CODEC_LZ4;
    options.level = 5;
    options.filters[0] = CATERVA_FILTER_SHUFFLE;
    options.threads = spec->threads;
    options.durability = spec->durability;
    bench_need_ok(caterva_create(path, &options, &array, &err), &err, "create");
    return array;
}

static inline caterva_array *bench_open_ours(const char *path, const bench_spec *spec)
{
    caterva_error err;
    caterva_open_options options = CATERVA_OPEN_INIT;
    caterva_array *array = NULL;
    options.mode = CATERVA_MODE_WRITE;
    options.threads = spec->threads;
    options.durability = spec->durability;
    bench_need_ok(caterva_open(path, &options, &array, &err), &err, "open");
    return array;
}

static inline void bench_write_ours(caterva_array *array, const bench_box *b, const void *src)
{
    caterva_error err;
    bench_need_ok(caterva_write(array, b->start, b->stop, src, (size_t)b->size, &err), &err,
                  "write");
}

static inline void bench_read_ours(caterva_array *array, const bench_box *b, void *dst)
{
    caterva_error err;
    bench_need_ok(caterva_read(array, b->start, b->stop, dst, (size_t)b->size, &err), &err,
                  "read");
}

static inline void bench_commit_ours(caterva_array *array)
{
    caterva_error err;
    bench_need_ok(caterva_commit(array, &err), &err, "commit");
}

static inline void bench_close_ours(caterva_array *array)
{
    caterva_error err;
    bench_need_ok(caterva_close(array, &err), &err, "close");
}

/* ---- Theirs ---------------------------------------------------------------------- */

/* Creates an array with `data`, or with zeros if `data` is NULL. */
static inline b2nd_array_t *bench_create_theirs(const char *path, const bench_spec *spec,
                                                const void *data, int64_t size)
{
    blosc2_cparams cparams = BLOSC2_CPARAMS_DEFAULTS;
    blosc2_dparams dparams = BLOSC2_DPARAMS_DEFAULTS;
    blosc2_storage storage = {.contiguous = true,
                              .urlpath = (char *)(uintptr_t)path,
                              .cparams = &cparams,
                              .dparams = &dparams};
    b2nd_array_t *array = NULL;
    cparams.typesize = spec->item_size == 8 ? 8 : sizeof(float);
    cparams.compcode = spec->zstd ? BLOSC_ZSTD : BLOSC_LZ4;
    cparams.clevel = 5;
    cparams.filters[BLOSC2_MAX_FILTERS - 1] = BLOSC_SHUFFLE;
    cparams.nthreads = dparams.nthreads = (int16_t)spec->threads;
    b2nd_context_t *ctx =
        b2nd_create_ctx(&storage, spec->ndim, spec->shape, spec->chunk, spec->block,
                        bench_dtype(spec), DTYPE_NUMPY_FORMAT, NULL, 0);
    bench_need_b2nd(data != NULL ? b2nd_from_cbuffer(ctx, &array, data, size)
                                 : b2nd_zeros(ctx, &array),
                    "b2nd_from_cbuffer or b2nd_zeros");
    b2nd_free_ctx(ctx);
    return array;
}

/* Sets the threads of an open array: it would use the process's default, not its creator's
 * number. */
static inline void bench_set_their_threads(b2nd_array_t *array, int threads)
{
    blosc2_cparams *cparams = NULL;
    blosc2_dparams dparams = BLOSC2_DPARAMS_DEFAULTS;
    blosc2_schunk *schunk = array->sc;
    bench_need_b2nd(blosc2_schunk_get_cparams(schunk, &cparams), "blosc2_schunk_get_cparams");
    cparams->nthreads = dparams.nthreads = (int16_t)threads;
    cparams->schunk = dparams.schunk = schunk;
    blosc2_free_ctx(schunk->cctx);
    blosc2_free_ctx(schunk->dctx);
    schunk->cctx = blosc2_create_cctx(*cparams);
    schunk->dctx = blosc2_create_dctx(dparams);
    free(cparams);
}

static inline b2nd_array_t *bench_open_theirs(const char *path, int threads)
{
    b2nd_array_t *array = NULL;
    bench_need_b2nd(b2nd_open(path, &array), "b2nd_open");
    bench_set_their_threads(array, threads);
    return array;
}

static inline void bench_write_theirs(b2nd_array_t *array, const bench_box *b,
                                      const void *src)
{
    bench_need_b2nd(b2nd_set_slice_cbuffer(src, b->shape, b->size, b->start, b->stop, array),
                    "b2nd_set_slice_cbuffer");
}

static inline void bench_read_theirs(b2nd_array_t *array, const bench_box *b, void *dst)
{
    bench_need_b2nd(b2nd_get_slice_cbuffer(array, b->start, b->stop, dst, b->shape, b->size),
                    "b2nd_get_slice_cbuffer");
}

static inline const char *bench_codec_name(const bench_spec *spec)
{
    return spec->zstd ? "zstd" : "lz4";
}

/* ---- Both ------------------------------------------------------------------------ */

static inline void bench_paths(bench_rivals *r)
{
    const char *tmp = getenv("TMPDIR");
    if (tmp == NULL) tmp = "/tmp";
    snprintf(r->our_path, sizeof(r->our_path), "%s/caterva-bench-%d-ours.b2nd", tmp,
             (int)getpid());
    snprintf(r->their_path, sizeof(r->their_path), "%s/caterva-bench-%d-theirs.b2nd", tmp,
             (int)getpid());
}

static inline void bench_unlink_both(const bench_rivals *r)
{
    unlink(r->our_path);
    unlink(r->their_path);
}

static inline void bench_create_both(bench_rivals *r, const void *data)
{
    bench_box all = bench_box_at((int64_t[]){0, 0, 0}, r->spec.shape);
    r->ours = bench_create_ours(r->our_path, &r->spec);
    bench_write_ours(r->ours, &all, data);
    r->theirs = bench_create_theirs(r->their_path, &r->spec, data, all.size);
}

static inline void bench_open_both(bench_rivals *r)
{
    r->ours = bench_open_ours(r->our_path, &r->spec);
    r->theirs = bench_open_theirs(r->their_path, r->spec.threads);
}

static inline void bench_close_both(bench_rivals *r)
{
    bench_close_ours(r->ours);
    b2nd_free(r->theirs);
    r->ours = NULL;
    r->theirs = NULL;
}

/* Call this when both arrays are closed. Reads every item of both files through b2nd and compares
 * them; compares our file also as caterva reads it. */
static inline void bench_compare_files(const bench_rivals *r, const char *name)
{
    enum { SLAB_BYTES = 32 << 20 };
    caterva_error err;
    caterva_array *ours = NULL;
    b2nd_array_t *mine = bench_open_theirs(r->our_path, 2);
    b2nd_array_t *theirs = bench_open_theirs(r->their_path, 2);
    int64_t start[BENCH_NDIM] = {0};
    int64_t shape[BENCH_NDIM] = {1, 1, 1};
    bench_need(mine->ndim == theirs->ndim &&
                   memcmp(mine->shape, theirs->shape, (size_t)mine->ndim * 8) == 0,
               name, "the two files differ in shape");
    bench_need_ok(caterva_open(r->our_path, NULL, &ours, &err), &err, "open");
    memcpy(shape, mine->shape, (size_t)mine->ndim * sizeof(shape[0]));
    int64_t row = shape[1] * shape[2] * (int64_t)sizeof(float);
    int64_t rows = 1 + SLAB_BYTES / row;
    uint8_t *bytes[3];
    for (int i = 0; i < 3; i++) bytes[i] = bench_alloc((size_t)(rows * row));
    for (int64_t length = shape[0]; start[0] < length; start[0] += rows) {
        shape[0] = start[0] + rows < length ? rows : length - start[0];
        bench_box b = bench_box_at(start, shape);
        bench_read_theirs(mine, &b, bytes[0]);
        bench_read_theirs(theirs, &b, bytes[1]);
        bench_read_ours(ours, &b, bytes[2]);
        bench_need(memcmp(bytes[0], bytes[1], (size_t)b.size) == 0, name,
                   "the two files hold different items");
        bench_need(memcmp(bytes[0], bytes[2], (size_t)b.size) == 0, name,
                   "our file reads differently through b2nd");
    }
    for (int i = 0; i < 3; i++) free(bytes[i]);
    bench_close_ours(ours);
    b2nd_free(mine);
    b2nd_free(theirs);
}

#endif
