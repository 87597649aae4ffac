/* The two sides, caterva and b2nd, which read the same bytes; and the arrays that they read. */
#ifndef BENCH_READERS_H
#define BENCH_READERS_H

#include "bench_rivals.h"

#include <caterva_store.h>
#include <math.h>

/* The cache of decoded blocks that our side uses. */
enum { BENCH_CACHE_OFF = -1, BENCH_CACHE_SHARED = 0, BENCH_CACHE_64_MIB = 64 << 20 };

typedef struct bench_readers {
    bench_spec spec;
    char path[512];
    caterva_array *ours;
    b2nd_array_t *theirs;
    uint8_t *our_bytes, *their_bytes; /* destinations, as large as the caller needs */
} bench_readers;

/* ---- The arrays --------------------------------------------------------------- */

/* Makes side^3 items. Noisy: a smooth field whose 16 low mantissa bits are random. Otherwise
 * compressible: small cubes of one value. */
static inline float *bench_field(int noisy, int64_t side, uint64_t *random)
{
    float *data = bench_alloc((size_t)(side * side * side) * sizeof(float));
    float *at = data;
    for (int64_t i = 0; i < side; i++) {
        for (int64_t j = 0; j < side; j++) {
            float base = 2.0F + sinf((float)i / 40.0F) * cosf((float)j / 50.0F);
            for (int64_t k = 0; k < side; k++, at++) {
                uint32_t bits;
                *at =
                    noisy ? base + (float)k / 300.0F : (float)((i / 8 + j / 8 + k / 8) % 19);
                if (!noisy) continue;
                memcpy(&bits, at, sizeof(bits));
                bits ^= (uint32_t)bench_random(random) & 0xFFFFu;
                memcpy(at, &bits, sizeof(bits));
            }
        }
    }
    return data;
}

/* A cube of float32 in 128^3 chunks, LZ4. */
static inline bench_spec bench_cube(int64_t side, int32_t block)
{
    return (bench_spec){.ndim = 3,
                        .shape = {side, side, side},
                        .chunk = {128, 128, 128},
                        .block = {block, block, block},
                        .threads = 2,
                        .durability = CATERVA_DURABILITY_NONE};
}

static inline void bench_scratch_path(char path[512], const char *what)
{
    const char *tmp = getenv("TMPDIR");
    snprintf(path, 512, "%s/caterva-bench-%d-%s.b2nd", tmp != NULL ? tmp : "/tmp",
             (int)getpid(), what);
}

/* Writes `size` bytes of items to r->path as r->spec requires. Returns the size of the file. */
static inline int64_t bench_make_file(const bench_readers *r, const void *data, int64_t size,
                                      int by_us)
{
    unlink(r->path);
    if (!by_us) {
        b2nd_array_t *theirs = bench_create_theirs(r->path, &r->spec, data, size);
        int64_t stored = theirs->sc->cbytes;
        b2nd_free(theirs);
        return stored;
    }
    caterva_array *ours = bench_create_ours(r->path, &r->spec);
    bench_box all = bench_box_of((int64_t[]){0, 0, 0}, r->spec.shape, size);
    caterva_error err;
    bench_need_ok(caterva_write(ours, all.start, all.stop, data, (size_t)size, &err), &err,
                  "write");
    bench_commit_ours(ours);
    int64_t stored = bench_info(ours).frame_bytes;
    bench_close_ours(ours);
    return stored;
}

static inline uint8_t *bench_load_file(const char *path, size_t *size)
{
    FILE *file = fopen(path, "rb");
    bench_need(file != NULL, path, "cannot be read");
    fseek(file, 0, SEEK_END);
    *size = (size_t)ftell(file);
    rewind(file);
    uint8_t *bytes = bench_alloc(*size);
    bench_need(fread(bytes, 1, *size, file) == *size, path, "cannot be read");
    fclose(file);
    return bytes;
}

/* ---- Opening and closing --------------------------------------------------------- */

/* Returns the options of our side. They are set only here. */
static inline caterva_open_options bench_reading(int threads, int64_t cache_bytes)
{
    caterva_open_options options = CATERVA_OPEN_INIT;
    options.threads = threads;
    options.cache_bytes = cache_bytes;
    return options;
}

static inline caterva_array *bench_open_reader(const char *path, int threads,
                                               int64_t cache_bytes)
{
    caterva_error err;
    caterva_array *array = NULL;
    caterva_open_options options = bench_reading(threads, cache_bytes);
    bench_need_ok(caterva_open(path, &options, &array, &err), &err, "open");
    return array;
}

/* Opens r->path or, when `frame` is not NULL, its bytes in memory. */
static inline void bench_open_readers(bench_readers *r, uint8_t *frame, size_t size,
                                      int threads, int64_t cache_bytes)
{
    caterva_error err;
    if (frame == NULL) {
        r->ours = bench_open_reader(r->path, threads, cache_bytes);
        r->theirs = bench_open_theirs(r->path, threads);
        return;
    }
    caterva_open_options options = bench_reading(threads, cache_bytes);
    bench_need_ok(caterva_frame_open(frame, size, 0, &options, &r->ours, &err), &err,
                  "open_frame");
    bench_need_b2nd(b2nd_from_cframe(frame, (int64_t)size, false, &r->theirs),
                    "b2nd_from_cframe");
    bench_set_their_threads(r->theirs, threads);
}

static inline void bench_close_readers(bench_readers *r)
{
    caterva_discard(r->ours);
    b2nd_free(r->theirs);
    r->ours = NULL;
    r->theirs = NULL;
}

/* ---- Reading --------------------------------------------------------------------- */

static inline bench_box bench_random_box(const bench_spec *spec, const int64_t *lengths,
                                         uint64_t *random)
{
    int64_t start[BENCH_NDIM] = {0};
    for (int i = 0; i < spec->ndim; i++)
        start[i] = bench_below(random, spec->shape[i] - lengths[i] + 1);
    return bench_box_of(start, lengths, spec->item_size == 8 ? 8 : 4);
}

/* A size of boxes. */
typedef struct bench_kind {
    const char *name;
    int64_t lengths[BENCH_NDIM]; /* 0: the whole axis */
    int count;                   /* boxes in one turn */
} bench_kind;

enum { BENCH_MAX_BOXES = 300 };

/* The boxes of one turn. */
typedef struct bench_boxes {
    const bench_kind *kind;
    bench_box at[BENCH_MAX_BOXES];
} bench_boxes;

/* Moves all boxes of a turn to new random places. */
static inline void bench_move_boxes(bench_boxes *boxes, const bench_spec *spec,
                                    uint64_t *random)
{
    int64_t lengths[BENCH_NDIM];
    for (int d = 0; d < BENCH_NDIM; d++)
        lengths[d] = boxes->kind->lengths[d] > 0 ? boxes->kind->lengths[d] : spec->shape[d];
    for (int i = 0; i < boxes->kind->count; i++)
        boxes->at[i] = bench_random_box(spec, lengths, random);
}

/* Returns the mean seconds in which our side reads one of the boxes. */
static inline double bench_read_boxes(const bench_boxes *boxes, caterva_array *array,
                                      uint8_t *bytes)
{
    double started = bench_now();
    for (int i = 0; i < boxes->kind->count; i++) bench_read_ours(array, &boxes->at[i], bytes);
    return (bench_now() - started) / boxes->kind->count;
}

static inline const bench_box *bench_last_box(const bench_boxes *boxes)
{
    return &boxes->at[boxes->kind->count - 1];
}

static inline void bench_need_same(const bench_readers *r, const bench_box *b)
{
    bench_need(memcmp(r->our_bytes, r->their_bytes, (size_t)b->size) == 0, "read",
               "the two sides read different bytes");
}

#endif
