/* Updates in place of whole chunks: random arrays of every lossless codec and filter are
 * written, then patched with random boxes over several commits, and read back by this library
 * and by C-Blosc2's b2nd. A rebuilt chunk mixes old streams with new ones; this test proves
 * that libblosc2 reads such chunks. Also large chunks, in files and directories, with more
 * threads than chunks: then several threads patch, encode and write the shares of one chunk.
 *
 * usage: test_updates [cases [seed]] */
#include "support/check.h"
#include "support/oracle.h"
#include "support/pipelines.h"
#include "support/sanitized.h"
#include "support/scratch.h"

#include <b2nd.h>
#include <caterva_store.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CASES = 600, SMALL_FOR_A_LARGE = 40, PATCHES = 6, MAX_ITEMS = 20000 };

typedef struct run {
    rng r;
    geometry g;
    pipeline p;
    oracle o;
    char text[256];
} run;

static void patch(run *t, caterva_array *a)
{
    caterva_error err;
    box b = random_box(&t->r, &t->g);
    size_t size = box_size(&b, &t->g);
    uint8_t *data = check_alloc(size);
    random_data(&t->r, data, size, t->g.item_size);
    CHECK_OK(caterva_write(a, b.start, b.stop, data, size, &err), err);
    oracle_write(&t->o, &b, data);
    free(data);
    if (rng_one_in(&t->r, 2)) CHECK_OK(caterva_commit(a, &err), err);
}

static void check_ours(const run *t, caterva_array *a)
{
    caterva_error err;
    box all = whole_box(&t->g);
    uint8_t *got = check_alloc(t->o.size);
    CHECK_OK(caterva_read(a, all.start, all.stop, got, t->o.size, &err), err);
    CHECK(memcmp(got, t->o.bytes, t->o.size) == 0, "ours differs: %s codec %d level %d",
          t->text, t->p.codec, t->p.level);
    free(got);
}

/* b2nd_get_slice_cbuffer of 3.3.5 decodes delta chunks wrongly if it skips blocks (their
 * reference, block 0, is missing then). */
static bool theirs_can_read(const run *t)
{
    for (int i = 0; i < CATERVA_MAX_FILTERS; i++)
        if (t->p.filters[i] == CATERVA_FILTER_DELTA) return false;
    return true;
}

static void check_theirs(const run *t, caterva_array *a)
{
    caterva_error err;
    if (!theirs_can_read(t)) return;
    void *frame;
    size_t size;
    CHECK_OK(caterva_frame_copy(a, &frame, &size, &err), err);
    b2nd_array_t *theirs;
    CHECK(b2nd_from_cframe(frame, (int64_t)size, true, &theirs) >= 0, "b2nd opens: %s",
          t->text);
    uint8_t *got = check_alloc(t->o.size);
    if (t->o.size > 0)
        CHECK(b2nd_to_cbuffer(theirs, got, (int64_t)t->o.size) >= 0,
              "b2nd reads: %s codec %d", t->text, t->p.codec);
    CHECK(memcmp(got, t->o.bytes, t->o.size) == 0, "b2nd's differs: %s codec %d level %d",
          t->text, t->p.codec, t->p.level);
    free(got);
    b2nd_free(theirs);
    caterva_free(frame);
}

static void patch_and_compare(run *t, caterva_array *a)
{
    caterva_error err;
    t->o = oracle_new(&t->g);
    geometry_text(&t->g, t->text, sizeof t->text);
    if (!rng_one_in(&t->r, 4)) { /* else patches hit a special chunk */
        box all = whole_box(&t->g);
        random_data(&t->r, t->o.bytes, t->o.size, t->g.item_size);
        CHECK_OK(caterva_write(a, all.start, all.stop, t->o.bytes, t->o.size, &err), err);
        CHECK_OK(caterva_commit(a, &err), err);
    }
    for (int i = 0; i < PATCHES; i++) patch(t, a);
    CHECK_OK(caterva_commit(a, &err), err);
    check_ours(t, a);
    check_theirs(t, a);
    CHECK_OK(caterva_close(a, &err), err);
    oracle_free(&t->o);
}

static void small_case(run *t)
{
    caterva_error err;
    caterva_array *a;
    t->g = random_geometry(&t->r, 4, MAX_ITEMS);
    t->p = random_pipeline(&t->r, t->g.item_size);
    caterva_create_options options = options_for(&t->g, &t->p);
    CHECK_OK(caterva_create("mem:", &options, &a, &err), err);
    patch_and_compare(t, a);
}

/* One chunk or two, of 8 MiB at most. */
static void large_case(run *t, int number)
{
    static const char *const names[] = {"large.b2nd", "large.b2d"};
    caterva_error err;
    caterva_array *a;
    char path[SCRATCH_PATH];
    int32_t block = rng_one_in(&t->r, 2) ? 16 : 32;
    t->g = (geometry){.ndim = 3,
                      .shape = {rng_between(&t->r, 60, 200), 128, 128},
                      .chunk_shape = {128, 128, 128},
                      .block_shape = {block, 32, block},
                      .item_size = 4};
    t->p = random_pipeline(&t->r, t->g.item_size);
    caterva_create_options options = options_for(&t->g, &t->p);
    options.threads = rng_int(&t->r, 2, 6);
    options.overwrite = 1;
    options.layout = number % 2 ? CATERVA_LAYOUT_SPARSE : CATERVA_LAYOUT_CONTIGUOUS;
    options.durability = CATERVA_DURABILITY_NONE;
    CHECK_OK(caterva_create(scratch_path(path, names[number % 2]), &options, &a, &err), err);
    patch_and_compare(t, a);
}

int main(int argc, char **argv)
{
    int cases =
        (int)number_argument(argc, argv, 1, (uint64_t)few_if_sanitized(CASES, CASES / 3));
    run t = {.r = rng_from_seed(seed_argument(argc, argv, 2))};
    blosc2_init();
    for (int i = 0; i < cases; i++) small_case(&t);
    for (int i = 0; i < cases / SMALL_FOR_A_LARGE; i++) large_case(&t, i);
    blosc2_destroy();
    printf("%d arrays patched and read back by both\n", cases + cases / SMALL_FOR_A_LARGE);
    return 0;
}
