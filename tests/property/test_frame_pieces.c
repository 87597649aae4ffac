/* The pieces of a frame, put together and opened, are the array, in any store, with pending
 * changes, and after other writers have committed since; and it is undamaged.
 *
 * usage: test_frame_pieces [SEED] */
#include "caterva.h"
#include "caterva_upkeep.h"
#include "caterva_store.h"

#include "support/check.h"
#include "support/cube.h"
#include "support/info.h"
#include "support/scratch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int32_t *model;
static char path[SCRATCH_PATH];

typedef struct heap {
    uint8_t *bytes;
    size_t size;
    uint64_t total;
    int n, most; /* pieces; stops after `most`, 0: never */
} heap;

static int take(void *context, const void *piece, size_t size, uint64_t total)
{
    heap *h = context;
    CHECK(size > 0 && (h->n == 0 || total == h->total), "a piece of %zu bytes", size);
    if (h->n++ == 0) h->bytes = check_alloc(total);
    h->total = total;
    CHECK(h->size + size <= total, "more than %llu bytes", (unsigned long long)total);
    memcpy(h->bytes + h->size, piece, size);
    h->size += size;
    return h->most > 0 && h->n == h->most;
}

static void ignore(void *context, const caterva_damage *damage)
{
    (void)context;
    CHECK(0, "damage: %s", damage->message);
}

static void check_frame(const heap *h)
{
    caterva_error err;
    caterva_array *array;
    caterva_verify_options o = CATERVA_VERIFY_INIT;
    caterva_verify_result result = CATERVA_VERIFY_RESULT_INIT;
    cube_box all = cube_box_of(cube_origin, cube_shape);
    o.on_damage = ignore;
    CHECK(h->size == h->total, "%zu of %llu bytes", h->size, (unsigned long long)h->total);
    CHECK_OK(caterva_frame_open(h->bytes, h->size, 0, NULL, &array, &err), err);
    cube_check_read(array, model, &all);
    CHECK_OK(caterva_verify(array, &o, &result, &err), err);
    caterva_discard(array);
}

static void check_pieces(caterva_array *array)
{
    caterva_error err;
    heap h = {.n = 0};
    CHECK_OK(caterva_frame_pieces(array, take, &h, &err), err);
    check_frame(&h);
    if (h.n > 1) {
        heap less = {.most = h.n - 1};
        CHECK(caterva_frame_pieces(array, take, &less, &err) == CATERVA_ESTOPPED, "goes on");
        CHECK(less.n == h.n - 1, "%d pieces of %d", less.n, h.n);
        free(less.bytes);
    }
    free(h.bytes);
}

static void change(caterva_array *array, rng *r)
{
    caterva_error err;
    cube_box b = cube_random_box(r, 0, CUBE_SIDE);
    int32_t *items = check_alloc(b.size);
    for (size_t i = 0; i < b.size / sizeof *items; i++)
        items[i] = (int32_t)(rng_next(r) & 0xFFFF);
    CHECK_OK(caterva_write(array, b.start, b.stop, items, b.size, &err), err);
    cube_copy(model, &b, items, true);
    free(items);
}

/* Other writers commit repeatedly: an old state is returned unchanged. */
static void beside_a_writer(rng *r)
{
    caterva_error err;
    caterva_array *array, *reader;
    cube_create(path, model, 0, true, &(rng){0}, &array);
    for (int i = 0; i < 5; i++) {
        CHECK_OK(caterva_commit(array, &err), err);
        reader = cube_open(path, 1, 0, false);
        int32_t *now = model;
        model = check_alloc(CUBE_ITEMS * sizeof *model);
        memcpy(model, now, CUBE_ITEMS * sizeof *model);
        for (int k = 0; k < 3; k++) {
            change(array, r);
            CHECK_OK(caterva_commit(array, &err), err);
        }
        int32_t *later = model;
        model = now;
        check_pieces(reader);
        free(model);
        model = later;
        caterva_discard(reader);
    }
    caterva_discard(array);
}

/* A frame after other bytes of its file. */
static void behind_others(void)
{
    caterva_error err;
    caterva_array *array;
    caterva_open_options o = CATERVA_OPEN_INIT;
    cube_create("mem:", model, 0, true, &(rng){0}, &array);
    scratch_save(path, "others", 6);
    CHECK_OK(caterva_frame_append(array, path, CATERVA_DURABILITY_NONE, &o.offset, &err), err);
    caterva_discard(array);
    CHECK(o.offset >= 6, "offset %llu", (unsigned long long)o.offset);
    CHECK_OK(caterva_open(path, &o, &array, &err), err);
    check_pieces(array);
    caterva_discard(array);
}

int main(int argc, char **argv)
{
    uint64_t seed = seed_argument(argc, argv, 1);
    rng r = rng_from_seed(seed);
    model = cube_new(seed);
    scratch_path(path, "pieces");
    for (int i = 0; i < 12; i++) {
        caterva_error err;
        caterva_array *array;
        rng pipeline = rng_from_seed(rng_next(&r));
        cube_create(i % 3 ? path : "mem:", model, 0, i % 2, &pipeline, &array);
        check_pieces(array);
        change(array, &r);
        check_pieces(array); /* pending */
        CHECK_OK(caterva_commit(array, &err), err);
        check_pieces(array); /* with dead space */
        caterva_discard(array);
        scratch_remove(path);
    }
    beside_a_writer(&r);
    behind_others();
    scratch_remove(path);
    free(model);
    return 0;
}
