/* Property: an array in a custom store equals the same array in a file, through random
 * writes, resizes, commits, rollbacks and reopenings, with short and slow reads; its bytes
 * are those of a file. And each call of the store may fail: the committed state remains
 * complete, and the message names the store.
 *
 * usage: test_own_store [SEED [ROUNDS]] */
#include "blob.h"
#include "check.h"
#include "oracle.h"
#include "random.h"
#include "scratch.h"

#include <caterva_store.h>
#include <caterva_upkeep.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- The same in a file -------------------------------------------------------------- */

typedef struct pair {
    blob blob;
    char path[SCRATCH_PATH];
    caterva_array *own, *file;
    geometry geometry;
    rng *r;
} pair;

static caterva_array *open_own(pair *p, caterva_mode mode)
{
    caterva_error err;
    caterva_array *array;
    caterva_store s = blob_store(&p->blob);
    caterva_open_options o = CATERVA_OPEN_INIT;
    o.mode = mode;
    o.threads = rng_int(p->r, 1, 4);
    s.one_at_a_time = rng_one_in(p->r, 3);
    CHECK_OK(caterva_store_open(&s, &o, &array, &err), err);
    return array;
}

static caterva_array *open_file(const pair *p, caterva_mode mode)
{
    caterva_error err;
    caterva_array *array;
    caterva_open_options o = CATERVA_OPEN_INIT;
    o.mode = mode;
    CHECK_OK(caterva_open(p->path, &o, &array, &err), err);
    return array;
}

static void create_both(pair *p)
{
    caterva_error err;
    const geometry *g = &p->geometry;
    caterva_store s = blob_store(&p->blob);
    caterva_create_options o = CATERVA_CREATE_INIT;
    o.ndim = g->ndim;
    o.shape = g->shape;
    o.chunk_shape = g->chunk_shape;
    o.block_shape = g->block_shape;
    o.item_size = g->item_size;
    o.overwrite = 1;
    o.dirty_budget = rng_one_in(p->r, 2) ? 1000 : 0;
    CHECK_OK(caterva_store_create(&s, &o, &p->own, &err), err);
    CHECK_OK(caterva_create(p->path, &o, &p->file, &err), err);
}

static void expect_equal(const pair *p, caterva_array *own, caterva_array *file)
{
    caterva_error err;
    box b = rng_one_in(p->r, 3) ? whole_box(&p->geometry) : random_box(p->r, &p->geometry);
    size_t size = box_size(&b, &p->geometry);
    uint8_t *x = check_alloc(size), *y = check_alloc(size);
    CHECK_OK(caterva_read(own, b.start, b.stop, x, size, &err), err);
    CHECK_OK(caterva_read(file, b.start, b.stop, y, size, &err), err);
    CHECK(memcmp(x, y, size) == 0, "the store and the file differ");
    free(x);
    free(y);
}

static void write_both(const pair *p)
{
    caterva_error err;
    box b = random_box(p->r, &p->geometry);
    size_t size = box_size(&b, &p->geometry);
    uint8_t *bytes = check_alloc(size);
    rng_fill(p->r, bytes, rng_one_in(p->r, 2) ? size : size / 2);
    CHECK_OK(caterva_write(p->own, b.start, b.stop, bytes, size, &err), err);
    CHECK_OK(caterva_write(p->file, b.start, b.stop, bytes, size, &err), err);
    free(bytes);
}

static void resize_both(pair *p)
{
    caterva_error err;
    int d = rng_int(p->r, 0, p->geometry.ndim - 1);
    int64_t shape[CATERVA_MAX_DIMS];
    memcpy(shape, p->geometry.shape, sizeof shape);
    shape[d] = rng_between(p->r, 0, shape[d] + 3);
    CHECK_OK(caterva_resize(p->own, shape, &err), err);
    CHECK_OK(caterva_resize(p->file, shape, &err), err);
    memcpy(p->geometry.shape, shape, sizeof shape);
}

/* The store contains a frame like any other. */
static void expect_a_file(const pair *p)
{
    char path[SCRATCH_PATH];
    caterva_error err;
    caterva_array *saved;
    caterva_verify_result result = CATERVA_VERIFY_RESULT_INIT;
    scratch_save(scratch_path(path, "saved"), p->blob.bytes, (size_t)p->blob.size);
    CHECK_OK(caterva_open(path, NULL, &saved, &err), err);
    CHECK_OK(caterva_verify(saved, NULL, &result, &err), err);
    CHECK(result.damages == 0, "%lld damages", (long long)result.damages);
    expect_equal(p, saved, p->file);
    caterva_discard(saved);
    scratch_remove(path);
}

static void commit_both(pair *p)
{
    caterva_error err;
    CHECK_OK(caterva_commit(p->own, &err), err);
    CHECK_OK(caterva_commit(p->file, &err), err);
    expect_a_file(p);
}

static void reopen_both(pair *p)
{
    caterva_error err;
    CHECK_OK(caterva_close(p->own, &err), err);
    CHECK_OK(caterva_close(p->file, &err), err);
    caterva_array *reader = open_own(p, CATERVA_MODE_READ);
    p->own = open_own(p, CATERVA_MODE_WRITE);
    p->file = open_file(p, CATERVA_MODE_WRITE);
    expect_equal(p, reader, p->file);
    caterva_discard(reader);
}

static void live(rng *r)
{
    enum { STEPS = 40, MAX_ITEMS = 6000 };
    caterva_error err;
    pair p = {.r = r};
    do {
        p.geometry = random_geometry(r, 4, MAX_ITEMS);
    } while (p.geometry.ndim == 0);
    blob_init(&p.blob);
    p.blob.short_reads = rng_one_in(r, 2);
    p.blob.slow = rng_one_in(r, 4);
    p.blob.waves = rng_one_in(r, 2);
    p.blob.leaves_out = rng_one_in(r, 4);
    p.blob.lies = rng_one_in(r, 4);
    scratch_path(p.path, "beside");
    create_both(&p);
    for (int i = 0; i < STEPS; i++) {
        p.blob.has_readers = rng_one_in(r, 3);
        int what = rng_int(r, 0, 9);
        if (what < 4) write_both(&p);
        if (what == 4) resize_both(&p);
        if (what == 5 || what == 6) commit_both(&p);
        if (what == 7) reopen_both(&p);
        expect_equal(&p, p.own, p.file);
    }
    CHECK_OK(caterva_close(p.own, &err), err);
    CHECK_OK(caterva_close(p.file, &err), err);
    p.file = open_file(&p, CATERVA_MODE_READ);
    expect_a_file(&p);
    caterva_discard(p.file);
    scratch_remove(p.path);
    blob_free(&p.blob);
}

/* ---- Each call fails -------------------------------------------------------------------- */

enum { N = 600 };

static int64_t shape[1] = {N}, zero[1] = {0};

static caterva_status put(caterva_array *array, int32_t first, caterva_error *err)
{
    int32_t values[N];
    for (int i = 0; i < N; i++) values[i] = first + 7 * i;
    return caterva_write(array, zero, shape, values, sizeof values, err);
}

static caterva_array *open_blob(blob *b, caterva_mode mode, caterva_status *status,
                                caterva_error *err)
{
    caterva_array *array = NULL;
    caterva_store s = blob_store(b);
    caterva_open_options o = CATERVA_OPEN_INIT;
    o.mode = mode;
    o.threads = 1;
    *status = caterva_store_open(&s, &o, &array, err);
    return array;
}

static void make_blob(blob *b)
{
    caterva_error err;
    caterva_array *array;
    int32_t chunk[1] = {200}, block[1] = {50};
    caterva_store s = blob_store(b);
    caterva_create_options o = CATERVA_CREATE_INIT;
    o.ndim = 1;
    o.shape = shape;
    o.chunk_shape = chunk;
    o.block_shape = block;
    o.dtype = "<i4";
    o.overwrite = 1;
    CHECK_OK(caterva_store_create(&s, &o, &array, &err), err);
    CHECK_OK(put(array, 0, &err), err);
    CHECK_OK(caterva_close(array, &err), err);
}

/* 0 or 1000: the number of the complete state. */
static int32_t state_of(blob *b)
{
    int32_t values[N];
    caterva_error err;
    caterva_status status;
    caterva_array *array = open_blob(b, CATERVA_MODE_READ, &status, &err);
    CHECK_OK(status, err);
    CHECK_OK(caterva_read(array, zero, shape, values, sizeof values, &err), err);
    for (int i = 0; i < N; i++)
        CHECK(values[i] == values[0] + 7 * i, "item %d is %d", i, values[i]);
    caterva_discard(array);
    return values[0];
}

static void expect_words(caterva_status status, const caterva_error *err, long call)
{
    CHECK(status == CATERVA_EIO && strstr(err->message, "the blob") &&
              strstr(err->message, "out of paper"),
          "call %ld: %s: %s", call, caterva_status_name(status), err->message);
}

/* Returns false if there are no more than `call` calls. */
static bool fail_at(blob *b, long call, bool half)
{
    caterva_error err = {.code = CATERVA_OK};
    caterva_status status;
    make_blob(b);
    b->half = half;
    b->fail_at = b->calls + call;
    b->why = "out of paper";
    bool committed = false;
    caterva_array *array = open_blob(b, CATERVA_MODE_WRITE, &status, &err);
    if (status == CATERVA_OK) status = put(array, 1000, &err);
    if (status == CATERVA_OK) status = caterva_commit(array, &err);
    committed = status == CATERVA_OK;
    if (!committed) expect_words(status, &err, call);
    if (committed)
        (void)caterva_close(array, &err);
    else
        caterva_discard(array);
    bool met = b->calls > b->fail_at;
    CHECK(met || committed, "call %ld: nothing failed", call);
    b->fail_at = -1;
    int32_t state = state_of(b);
    CHECK(state == 1000 || (!committed && state == 0), "call %ld: %d", call, state);
    return met;
}

static void reads_fail(blob *b)
{
    bool failed = true;
    make_blob(b);
    b->why = "out of paper";
    for (long call = 0; failed; call++) {
        int32_t values[N];
        caterva_error err = {.code = CATERVA_OK};
        caterva_status status;
        b->fail_at = b->calls + call;
        caterva_array *array = open_blob(b, CATERVA_MODE_READ, &status, &err);
        if (array) status = caterva_read(array, zero, shape, values, sizeof values, &err);
        failed = b->calls > b->fail_at;
        b->fail_at = -1;
        bool helped = b->waves && status == CATERVA_OK; /* `read` read what a wave did not */
        CHECK(failed == (status != CATERVA_OK) || helped, "call %ld goes unnoticed", call);
        if (failed && !helped) expect_words(status, &err, call);
        if (array)
            CHECK_OK(caterva_read(array, zero, shape, values, sizeof values, &err), err);
        caterva_discard(array);
    }
}

int main(int argc, char **argv)
{
    rng r = rng_from_seed(seed_argument(argc, argv, 1));
    uint64_t rounds = number_argument(argc, argv, 2, 40);
    /* One of its stores ends with a chunk's table, which has the checksum of a Zarr index. */
    rng known = rng_from_seed(UINT64_C(0x0006612cc45e1ddb));
    blob b;
    for (int i = 0; i < 40; i++) live(&known);
    for (uint64_t i = 0; i < rounds; i++) live(&r);
    long n = 0;
    for (int waves = 0; waves < 2; waves++) {
        blob_init(&b);
        b.waves = waves != 0;
        for (int half = 0; half < 2; half++)
            for (n = 0; fail_at(&b, n, half != 0); n++) {}
        CHECK(n > 10, "only %ld calls", n);
        reads_fail(&b);
        blob_free(&b);
    }
    printf("%" PRIu64 " rounds, each of %ld calls failed\n", rounds, n);
    return 0;
}
