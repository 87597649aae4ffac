/* Test support: see cube.h. Uses the public API only; copies boxes line by line. */
#include "cube.h"

#include "buffer.h"
#include "check.h"

#include <caterva_upkeep.h>
#include <stdlib.h>
#include <string.h>

const int64_t cube_shape[3] = {CUBE_SIDE, CUBE_SIDE, CUBE_SIDE};
const int64_t cube_origin[3] = {0, 0, 0};

cube_box cube_box_of(const int64_t *start, const int64_t *stop)
{
    cube_box b = {.size = sizeof(int32_t)};
    for (int d = 0; d < 3; d++) {
        b.start[d] = start[d];
        b.stop[d] = stop[d];
        b.size *= (size_t)(stop[d] - start[d]);
    }
    return b;
}

cube_box cube_plane(int axis, int64_t at, int64_t thick)
{
    int64_t start[3], stop[3];
    memcpy(start, cube_origin, sizeof start);
    memcpy(stop, cube_shape, sizeof stop);
    start[axis] = at;
    stop[axis] = at + thick;
    return cube_box_of(start, stop);
}

cube_box cube_random_box(rng *r, int64_t first, int64_t last)
{
    int64_t start[3], stop[3];
    for (int d = 0; d < 3; d++) {
        start[d] = rng_between(r, d ? 0 : first, (d ? CUBE_SIDE : last) - 1);
        stop[d] = rng_between(r, start[d] + 1, d ? CUBE_SIDE : last);
    }
    return cube_box_of(start, stop);
}

void cube_copy(int32_t *model, const cube_box *b, int32_t *buffer, bool to_model)
{
    size_t line = (size_t)(b->stop[2] - b->start[2]);
    for (int64_t i = b->start[0]; i < b->stop[0]; i++)
        for (int64_t j = b->start[1]; j < b->stop[1]; j++, buffer += line) {
            int32_t *items = model + (i * CUBE_SIDE + j) * CUBE_SIDE + b->start[2];
            memcpy(to_model ? items : buffer, to_model ? buffer : items,
                   line * sizeof(int32_t));
        }
}

int32_t *cube_new(uint64_t seed)
{
    int32_t *model = check_alloc(CUBE_ITEMS * sizeof *model);
    rng r = rng_from_seed(seed);
    for (int i = 0; i < CUBE_ITEMS; i++)
        model[i] = (int32_t)((unsigned)i / 3 + (rng_next(&r) & 7)); /* compressible */
    return model;
}

static void no_damage(void *context, const caterva_damage *damage)
{
    (void)context;
    (void)damage;
    CHECK(0, "damage in a good file");
}

static void read_selected(caterva_array *array, bool view, const cube_box *b, int32_t *got)
{
    caterva_error err;
    caterva_selection box = CATERVA_SELECTION_INIT;
    caterva_buffer buffer = CATERVA_BUFFER_INIT;
    box.start = b->start;
    box.stop = b->stop;
    buffer.data = got;
    buffer.size = b->size;
    if (view) {
        caterva_view *all;
        CHECK_OK(caterva_view_of(array, &all, &err), err);
        CHECK_OK(caterva_view_read(all, &box, &buffer, &err), err);
        caterva_view_free(all);
    } else {
        CHECK_OK(caterva_read_selection(array, &box, &buffer, &err), err);
    }
}

static void read_by(cube_way how, caterva_array *array, const cube_box *b, int32_t *got)
{
    caterva_error err;
    caterva_skip_options skip = CATERVA_SKIP_INIT;
    skip.on_damage = no_damage;
    switch (how) {
    case CUBE_AS_SELECTION:
    case CUBE_THROUGH_VIEW: read_selected(array, how == CUBE_THROUGH_VIEW, b, got); return;
    case CUBE_AROUND_DAMAGE:
        CHECK_OK(caterva_read_skipping(array, BOX(b->start, b->stop), PLAIN(got, b->size),
                                       &skip, &err),
                 err);
        return;
    default: CHECK_OK(caterva_read(array, b->start, b->stop, got, b->size, &err), err);
    }
}

void cube_check_read_by(cube_way how, caterva_array *array, int32_t *model, const cube_box *b)
{
    int32_t *got = check_alloc(b->size), *expected = check_alloc(b->size);
    read_by(how, array, b, got);
    cube_copy(model, b, expected, false);
    CHECK(memcmp(got, expected, b->size) == 0, "box %lld:%lld, %lld:%lld, %lld:%lld",
          (long long)b->start[0], (long long)b->stop[0], (long long)b->start[1],
          (long long)b->stop[1], (long long)b->start[2], (long long)b->stop[2]);
    free(got);
    free(expected);
}

void cube_check_read(caterva_array *array, int32_t *model, const cube_box *b)
{
    cube_check_read_by(CUBE_AS_BOX, array, model, b);
}

void cube_create(const char *url, int32_t *model, int64_t cache_bytes, bool even,
                 const rng *pipeline, caterva_array **out)
{
    caterva_error err;
    caterva_create_options o = CATERVA_CREATE_INIT;
    rng r = *pipeline;
    o.ndim = 3;
    o.shape = cube_shape;
    o.chunk_shape = even ? (int32_t[]){32, 32, 32} : (int32_t[]){32, 24, 40};
    o.block_shape = even ? (int32_t[]){16, 16, 16} : (int32_t[]){16, 12, 16};
    o.dtype = "<i4";
    o.threads = 3;
    o.overwrite = 1;
    o.durability = CATERVA_DURABILITY_NONE;
    o.cache_bytes = cache_bytes;
    o.layout = strcmp(url, "mem:") != 0 && rng_one_in(&r, 3) ? CATERVA_LAYOUT_SPARSE
                                                             : CATERVA_LAYOUT_CONTIGUOUS;
    o.codec = CATERVA_CODEC_ZSTD;
    o.level = rng_one_in(&r, 4) ? CATERVA_NONE : 1;
    o.use_dict = o.level > 0 && rng_one_in(&r, 3); /* blocks then need a dictionary */
    o.filters[0] = CATERVA_FILTER_SHUFFLE;
    CHECK_OK(
        caterva_create_from_memory(url, &o, model, CUBE_ITEMS * sizeof *model, out, &err),
        err);
    CHECK_OK(caterva_commit(*out, &err), err);
}

caterva_array *cube_open(const char *path, int threads, int64_t cache_bytes, bool off)
{
    caterva_error err;
    caterva_array *array;
    caterva_open_options o = CATERVA_OPEN_INIT;
    o.threads = threads;
    o.cache_bytes = cache_bytes;
    o.no_read_ahead = off;
    o.keep_bytes = -1; /* a file kept in memory needs no cache for raw chunks */
    CHECK_OK(caterva_open(path, &o, &array, &err), err);
    return array;
}

void cube_prefetch(caterva_array *array, const cube_box *b)
{
    caterva_error err;
    CHECK_OK(caterva_prefetch(array, b->start, b->stop, &err), err);
}
