/* A chunk that takes long to encode is encoded block by block if on_progress is set: it can
 * be stopped inside, and becomes the same bytes as without. */
#include "caterva.h"
#include "caterva_store.h"

#include "support/check.h"
#include "support/every_step.h"
#include "support/random.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ITEMS = 100 * 1024, BLOCK = 10 * 1024, BLOCKS = ITEMS / BLOCK };
static const int64_t shape[1] = {ITEMS};
static const int32_t chunk_shape[1] = {ITEMS}, block_shape[1] = {BLOCK};
static uint32_t items[ITEMS];

typedef struct watching {
    int stop_at; /* call; -1: never */
    int calls;
    int64_t done;
    int n_steps; /* different numbers reported */
} watching;

static int on_progress(void *context, int64_t done, int64_t total)
{
    watching *w = context;
    CHECK(done >= w->done && done <= total, "%lld of %lld", (long long)done,
          (long long)total);
    w->n_steps += done > w->done;
    w->done = done;
    return w->calls++ == w->stop_at;
}

typedef enum data { SMOOTH, NOISE, HALF_ZEROS, ONE_NOISY_BLOCK, N_DATA } data;

static void make_items(data kind, rng *r)
{
    for (int i = 0; i < ITEMS; i++) {
        uint32_t noise = (uint32_t)rng_next(r);
        bool noisy = kind == NOISE || (kind == ONE_NOISY_BLOCK && i / BLOCK == 3);
        items[i] = noisy ? noise : (uint32_t)i * 3 + (noise & 7);
        if (kind == HALF_ZEROS && i / BLOCK % 2 == 0) items[i] = 0;
    }
}

static caterva_status write_all(int level, watching *w, void **frame, size_t *size,
                                caterva_error *err)
{
    caterva_array *array;
    caterva_create_options o = CATERVA_CREATE_INIT;
    o.ndim = 1;
    o.shape = shape;
    o.chunk_shape = chunk_shape;
    o.block_shape = block_shape;
    o.dtype = "<u4";
    o.codec = CATERVA_CODEC_ZSTD;
    o.level = level;
    o.filters[0] = CATERVA_FILTER_SHUFFLE;
    o.threads = 1;
    o.progress = every_step(w ? on_progress : NULL, w);
    caterva_status status =
        caterva_create_from_memory("mem:", &o, items, sizeof items, &array, err);
    if (status != CATERVA_OK) return status;
    if (w) w->done = 0;
    status = caterva_frame_copy(array, frame, size, err);
    caterva_discard(array);
    return status;
}

static void check_same(data kind)
{
    caterva_error err;
    void *plain, *watched;
    size_t plain_size, watched_size;
    watching w = {.stop_at = -1};
    CHECK_OK(write_all(9, NULL, &plain, &plain_size, &err), err);
    CHECK_OK(write_all(9, &w, &watched, &watched_size, &err), err);
    CHECK(plain_size == watched_size && memcmp(plain, watched, plain_size) == 0,
          "data %d: %zu bytes, watched %zu", (int)kind, plain_size, watched_size);
    CHECK(w.n_steps >= BLOCKS - 1, "data %d: %d steps in a chunk of %d blocks", (int)kind,
          w.n_steps, BLOCKS);
    caterva_free(plain);
    caterva_free(watched);
}

static void stop_inside(void)
{
    for (int k = 0; k < BLOCKS; k++) {
        caterva_error err;
        void *frame;
        size_t size;
        watching w = {.stop_at = k};
        caterva_status status = write_all(9, &w, &frame, &size, &err);
        CHECK(status == CATERVA_ESTOPPED && w.calls == k + 1, "call %d of %d: %s", k, w.calls,
              caterva_status_name(status));
    }
}

int main(int argc, char **argv)
{
    rng r = rng_from_seed(seed_argument(argc, argv, 1));
    for (int kind = 0; kind < N_DATA; kind++) {
        make_items((data)kind, &r);
        check_same((data)kind);
    }
    make_items(SMOOTH, &r);
    stop_inside();
    return 0;
}
