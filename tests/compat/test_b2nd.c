/* Differential test against C-Blosc2's own b2nd: random arrays written by each
 * side, random boxes read and overwritten through both, compared with the
 * naive oracle.
 *
 * usage: test_b2nd [BOXES [SEED]] */
#include "caterva.h"

#include "support/check.h"
#include "support/oracle.h"
#include "support/pipelines.h"
#include "support/random.h"
#include "support/scratch.h"

#include <b2nd.h>
#include <blosc2.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEFAULT_BOXES = 8000, BOXES_PER_FILE = 8, MAX_ITEMS = 20000 };

typedef struct trial {
    rng *random;
    geometry geometry;
    pipeline pipeline;
    int sparse;
    int64_t number;
    int64_t boxes; /* compared so far */
    oracle oracle;
    char theirs[SCRATCH_PATH]; /* written by b2nd    */
    char ours[SCRATCH_PATH];   /* written by caterva */
} trial;

static void report(const trial *t, const char *what, const box *b)
{
    char text[512];
    char range[512] = "";
    if (b != NULL) box_text(b, t->geometry.ndim, range, sizeof(range));
    fprintf(stderr, "array %lld, %s, sparse %d, codec %d level %d filters %d %d: %s %s\n",
            (long long)t->number, geometry_text(&t->geometry, text, sizeof(text)), t->sparse,
            t->pipeline.codec, t->pipeline.level, t->pipeline.filters[0],
            t->pipeline.filters[1], what, range);
}

static void need(const trial *t, int good, const char *what, const box *b, const char *detail)
{
    if (good) return;
    report(t, what, b);
    CHECK(good, "%s", detail);
}

static void need_ok(const trial *t, caterva_status status, const caterva_error *err,
                    const char *what, const box *b)
{
    need(t, status == CATERVA_OK, what, b, status == CATERVA_OK ? "" : err->message);
}

/* b2nd's functions return 0 or more on success. */
static void need_b2nd(const trial *t, int result, const char *what, const box *b)
{
    need(t, result >= 0, what, b, result >= 0 ? "" : blosc2_error_string(result));
}

/* ---- Writing -------------------------------------------------------------- */

static blosc2_cparams cparams_for(const trial *t)
{
    blosc2_cparams c = BLOSC2_CPARAMS_DEFAULTS;
    c.typesize = t->geometry.item_size;
    c.compcode = (uint8_t)t->pipeline.codec;
    c.clevel = (uint8_t)t->pipeline.level;
    /* Several threads store the blocks of a chunk in any order. */
    c.nthreads = rng_one_in(t->random, 2) ? 1 : 8;
    for (int i = 0; i < BLOSC2_MAX_FILTERS; i++) {
        c.filters[i] = (uint8_t)t->pipeline.filters[i];
        c.filters_meta[i] = (uint8_t)t->pipeline.filters_meta[i];
    }
    return c;
}

static void write_theirs(trial *t)
{
    blosc2_cparams cparams = cparams_for(t);
    blosc2_dparams dparams = BLOSC2_DPARAMS_DEFAULTS;
    blosc2_storage storage = {.contiguous = !t->sparse,
                              .urlpath = t->theirs,
                              .cparams = &cparams,
                              .dparams = &dparams};
    char dtype[16];
    snprintf(dtype, sizeof(dtype), "|V%d", (int)t->geometry.item_size);
    b2nd_context_t *ctx = b2nd_create_ctx(
        &storage, (int8_t)t->geometry.ndim, t->geometry.shape, t->geometry.chunk_shape,
        t->geometry.block_shape, dtype, DTYPE_NUMPY_FORMAT, NULL, 0);
    b2nd_array_t *array = NULL;
    need(t, ctx != NULL, "b2nd_create_ctx", NULL, "gave NULL");
    int result = b2nd_from_cbuffer(ctx, &array, t->oracle.bytes, (int64_t)t->oracle.size);
    need_b2nd(t, result, "b2nd_from_cbuffer", NULL);
    b2nd_free(array);
    b2nd_free_ctx(ctx);
}

static void write_ours(trial *t)
{
    caterva_error err;
    caterva_array *array = NULL;
    caterva_create_options options = options_for(&t->geometry, &t->pipeline);
    options.layout = t->sparse ? CATERVA_LAYOUT_SPARSE : CATERVA_LAYOUT_CONTIGUOUS;
    options.durability = CATERVA_DURABILITY_NONE;
    need_ok(t, caterva_create(t->ours, &options, &array, &err), &err, "create", NULL);
    box all = whole_box(&t->geometry);
    caterva_status status =
        caterva_write(array, all.start, all.stop, t->oracle.bytes, t->oracle.size, &err);
    need_ok(t, status, &err, "write", &all);
    need_ok(t, caterva_close(array, &err), &err, "close", NULL);
}

/* ---- Reading and overwriting a box through both --------------------------- */

static void box_shape(const box *b, int ndim, int64_t *shape)
{
    for (int i = 0; i < ndim; i++) shape[i] = b->stop[i] - b->start[i];
}

static void compare_ours(trial *t, caterva_array *ours)
{
    caterva_error err;
    box b = random_box(t->random, &t->geometry);
    size_t size = box_size(&b, &t->geometry);
    uint8_t *want = check_alloc(size);
    uint8_t *got = check_alloc(size);
    oracle_read(&t->oracle, &b, want);
    caterva_status status = caterva_read(ours, b.start, b.stop, got, size, &err);
    need_ok(t, status, &err, "our read", &b);
    need(t, memcmp(got, want, size) == 0, "our read", &b, "differs from the oracle");
    free(want);
    free(got);
    t->boxes++;
}

static void compare_theirs(trial *t, const char *path, const b2nd_array_t *theirs)
{
    box b = random_box(t->random, &t->geometry);
    size_t size = box_size(&b, &t->geometry);
    int64_t shape[CATERVA_MAX_DIMS];
    uint8_t *want = check_alloc(size);
    uint8_t *got = check_alloc(size);
    oracle_read(&t->oracle, &b, want);
    box_shape(&b, t->geometry.ndim, shape);
    memset(got, 0x77, size);
    int result = b2nd_get_slice_cbuffer(theirs, b.start, b.stop, got, shape, (int64_t)size);
    need_b2nd(t, result, "b2nd's read", &b);
    need(t, memcmp(got, want, size) == 0, path, &b, "b2nd's read differs from the oracle");
    free(want);
    free(got);
    t->boxes++;
}

static void compare_file(trial *t, const char *path)
{
    caterva_error err;
    caterva_array *ours = NULL;
    b2nd_array_t *theirs = NULL;
    need_ok(t, caterva_open(path, NULL, &ours, &err), &err, path, NULL);
    need_b2nd(t, b2nd_open(path, &theirs), path, NULL);
    for (int i = 0; i < BOXES_PER_FILE; i++) {
        compare_ours(t, ours);
        compare_theirs(t, path, theirs);
    }
    b2nd_free(theirs);
    caterva_discard(ours);
}

/* Puts a random box of new data into the oracle; the caller writes it to `path`. */
static uint8_t *new_data(trial *t, box *b, size_t *size)
{
    *b = random_box(t->random, &t->geometry);
    *size = box_size(b, &t->geometry);
    uint8_t *bytes = check_alloc(*size);
    random_data(t->random, bytes, *size, t->geometry.item_size);
    oracle_write(&t->oracle, b, bytes);
    return bytes;
}

static void overwrite_by_us(trial *t, const char *path, const box *b, const uint8_t *bytes,
                            size_t size)
{
    caterva_error err;
    caterva_array *array = NULL;
    caterva_open_options options = CATERVA_OPEN_INIT;
    options.mode = CATERVA_MODE_WRITE;
    options.durability = CATERVA_DURABILITY_NONE;
    need_ok(t, caterva_open(path, &options, &array, &err), &err, path, b);
    caterva_status status = caterva_write(array, b->start, b->stop, bytes, size, &err);
    need_ok(t, status, &err, "our write", b);
    need_ok(t, caterva_close(array, &err), &err, "close", b);
}

static void overwrite_by_b2nd(trial *t, const char *path, const box *b, const uint8_t *bytes,
                              size_t size)
{
    b2nd_array_t *array = NULL;
    int64_t shape[CATERVA_MAX_DIMS];
    if (size == 0) return;
    box_shape(b, t->geometry.ndim, shape);
    need_b2nd(t, b2nd_open(path, &array), path, b);
    int result =
        b2nd_set_slice_cbuffer(bytes, shape, (int64_t)size, b->start, b->stop, array);
    need_b2nd(t, result, "b2nd's write", b);
    b2nd_free(array);
}

static void start_trial(trial *t, rng *r, int64_t number)
{
    char name[64];
    memset(t, 0, sizeof(*t));
    t->random = r;
    t->number = number;
    do t->geometry = random_geometry(r, 6, MAX_ITEMS);
    while (t->geometry.ndim == 0);
    /* Not delta: its blocks refer to block 0 of their chunk, and b2nd (C-Blosc2 3.3.5)
     * decodes only the blocks of a box and reads wrong items. */
    do t->pipeline = random_pipeline(r, t->geometry.item_size);
    while (t->pipeline.filters[0] == CATERVA_FILTER_DELTA);
    t->sparse = rng_one_in(r, 4);
    t->oracle = oracle_new(&t->geometry);
    random_data(r, t->oracle.bytes, t->oracle.size, t->geometry.item_size);
    snprintf(name, sizeof(name), "theirs-%lld.b2nd", (long long)number);
    scratch_path(t->theirs, name);
    snprintf(name, sizeof(name), "ours-%lld.b2nd", (long long)number);
    scratch_path(t->ours, name);
}

/* Each side reads both files; then each overwrites a box in the other's file,
 * and both read again. */
static int64_t run_trial(rng *r, int64_t number)
{
    trial t;
    box b;
    size_t size = 0;
    start_trial(&t, r, number);
    write_theirs(&t);
    write_ours(&t);
    compare_file(&t, t.theirs);
    compare_file(&t, t.ours);
    uint8_t *bytes = new_data(&t, &b, &size);
    overwrite_by_us(&t, t.theirs, &b, bytes, size);
    overwrite_by_b2nd(&t, t.ours, &b, bytes, size);
    compare_file(&t, t.theirs);
    compare_file(&t, t.ours);
    free(bytes);
    scratch_remove(t.theirs);
    scratch_remove(t.ours);
    oracle_free(&t.oracle);
    return t.boxes;
}

int main(int argc, char **argv)
{
    int64_t wanted = (int64_t)number_argument(argc, argv, 1, DEFAULT_BOXES);
    rng r = rng_from_seed(seed_argument(argc, argv, 2));
    int64_t boxes = 0;
    int64_t arrays = 0;
    blosc2_init();
    while (boxes < wanted) boxes += run_trial(&r, arrays++);
    blosc2_destroy();
    printf("%lld boxes of %lld arrays equal through both\n", (long long)boxes,
           (long long)arrays);
    return 0;
}
