/* Iteration over an array chunk by chunk, against the naive oracle: random arrays and
 * partitions, kinds and positions of chunks and blocks, decoded chunks; chunks moved as
 * stored into an array with another codec; and damaged chunks, which must be refused, or
 * accepted and read.
 *
 * usage: test_chunks [ARRAYS [SEED]] */
#include "caterva.h"
#include "caterva_upkeep.h"

#include "support/check.h"
#include "support/info.h"
#include "support/oracle.h"
#include "support/pipelines.h"
#include "support/random.h"
#include "support/refuse.h"
#include "unit/mutate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEFAULT_ARRAYS = 400, MAX_DIMS = 4, MAX_ITEMS = 3000, DAMAGES = 20 };

static int64_t n_moved, n_refused, n_taken, n_undecoded;
static int64_t n_kinds[5];

typedef struct trial {
    rng *random;
    geometry geometry;
    oracle oracle;
    caterva_array *array;
} trial;

static caterva_array *make(trial *t, caterva_fill fill, const void *item)
{
    caterva_error err;
    pipeline p = random_pipeline(t->random, t->geometry.item_size);
    caterva_create_options options = options_for(&t->geometry, &p);
    caterva_array *array = NULL;
    options.fill = fill;
    options.fill_value = item;
    CHECK_OK(caterva_create("mem:", &options, &array, &err), err);
    return array;
}

static void write_some(trial *t)
{
    caterva_error err;
    box b = rng_one_in(t->random, 3) ? whole_box(&t->geometry)
                                     : random_box(t->random, &t->geometry);
    size_t size = box_size(&b, &t->geometry);
    uint8_t *bytes = check_alloc(size);
    random_data(t->random, bytes, size, t->geometry.item_size);
    CHECK_OK(caterva_write(t->array, b.start, b.stop, bytes, size, &err), err);
    oracle_write(&t->oracle, &b, bytes);
    free(bytes);
}

static void make_array(trial *t)
{
    uint8_t item[512];
    size_t size = (size_t)t->geometry.item_size;
    caterva_fill fills[] = {CATERVA_FILL_ZEROS, CATERVA_FILL_UNINIT, CATERVA_FILL_VALUE};
    caterva_fill fill = fills[rng_int(t->random, 0, 2)];
    rng_fill(t->random, item, size);
    t->array = make(t, fill, item);
    t->oracle = oracle_new(&t->geometry);
    if (fill == CATERVA_FILL_VALUE) oracle_fill(&t->oracle, item);
    for (int n = rng_int(t->random, 0, 2); n > 0; n--) write_some(t);
}

/* ---- Decoded --------------------------------------------------------------- */

/* Compares the items of the box that describes the block with the oracle's. */
static void check_block(const trial *t, const caterva_block_info *block)
{
    const geometry *g = &t->geometry;
    caterva_error err;
    box b;
    memcpy(b.start, block->start, sizeof b.start);
    memcpy(b.stop, block->stop, sizeof b.stop);
    size_t size = box_size(&b, g);
    uint8_t *want = check_alloc(size), *got = check_alloc(size);
    oracle_read(&t->oracle, &b, want);
    CHECK_OK(caterva_read(t->array, b.start, b.stop, got, size, &err), err);
    CHECK(memcmp(got, want, size) == 0, "block %lld", (long long)block->block);
    free(got);
    free(want);
}

static int64_t check_blocks(const trial *t, const caterva_chunk_iter *chunk)
{
    caterva_error err;
    const caterva_info *info = info_of(t->array);
    int64_t items = 0, n = 0, stored = 0;
    for (; n < info->n_blocks; n++) {
        caterva_block_info block = CATERVA_BLOCK_INFO_INIT;
        CHECK_OK(caterva_block_describe(t->array, chunk->chunk.chunk, n, &block, &err), err);
        CHECK(block.block == n, "block %lld", (long long)block.block);
        check_block(t, &block);
        box b;
        memcpy(b.start, block.start, sizeof b.start);
        memcpy(b.stop, block.stop, sizeof b.stop);
        items += box_items(&b, info->ndim);
        stored += block.stored_bytes;
    }
    CHECK((stored > 0) == (chunk->chunk.kind == CATERVA_CHUNK_STORED) &&
              stored <= chunk->chunk.stored_bytes,
          "kind %d: %lld bytes in blocks, %lld in the chunk", (int)chunk->chunk.kind,
          (long long)stored, (long long)chunk->chunk.stored_bytes);
    return items;
}

static void check_chunks(const trial *t)
{
    caterva_error err;
    const caterva_info *info = info_of(t->array);
    caterva_chunk_iter it = CATERVA_CHUNK_ITER_INIT;
    int64_t items = 0, n = 0;
    for (;;) {
        CHECK_OK(caterva_chunk_next(t->array, &it, &err), err);
        if (it.done) break;
        CHECK(it.chunk.chunk == n++, "chunk %lld", (long long)it.chunk.chunk);
        box b;
        memcpy(b.start, it.chunk.start, sizeof b.start);
        memcpy(b.stop, it.chunk.stop, sizeof b.stop);
        int64_t in_blocks = check_blocks(t, &it);
        CHECK(in_blocks == box_items(&b, info->ndim), "%lld items", (long long)in_blocks);
        items += in_blocks;
        n_kinds[it.chunk.kind]++;
    }
    CHECK(n == info->n_chunks && items == info->n_items, "%lld chunks, %lld items",
          (long long)n, (long long)items);
}

/* ---- As stored ------------------------------------------------------------- */

static uint8_t *stored_chunk(caterva_array *array, int64_t chunk, size_t *size)
{
    caterva_error err;
    CHECK_OK(caterva_chunk_read_stored(array, chunk, NULL, 0, size, &err), err);
    const caterva_info *info = info_of(array);
    CHECK(*size >= 32 && *size <= (size_t)info->chunk_bytes + 32, "%zu bytes", *size);
    uint8_t *bytes = check_alloc(*size);
    size_t again;
    CHECK(caterva_chunk_read_stored(array, chunk, bytes, *size - 1, &again, &err) ==
              CATERVA_ESHORT,
          "too small a buffer");
    CHECK_OK(caterva_chunk_read_stored(array, chunk, bytes, *size, &again, &err), err);
    CHECK(again == *size, "%zu and %zu bytes", again, *size);
    return bytes;
}

static void check_whole(const trial *t, caterva_array *array)
{
    caterva_error err;
    box whole = whole_box(&t->geometry);
    uint8_t *got = check_alloc(t->oracle.size);
    CHECK_OK(caterva_read(array, whole.start, whole.stop, got, t->oracle.size, &err), err);
    CHECK(memcmp(got, t->oracle.bytes, t->oracle.size) == 0, "items differ");
    free(got);
}

/* Has a fill, and unflushed writes: none of them may be visible. */
static caterva_array *make_target(trial *t)
{
    caterva_error err;
    uint8_t item[512];
    rng_fill(t->random, item, sizeof item);
    caterva_array *target = make(t, CATERVA_FILL_VALUE, item);
    box b = random_box(t->random, &t->geometry);
    size_t size = box_size(&b, &t->geometry);
    uint8_t *bytes = check_alloc(size);
    rng_fill(t->random, bytes, size);
    CHECK_OK(caterva_write(target, b.start, b.stop, bytes, size, &err), err);
    free(bytes);
    return target;
}

static int needs_plugin(caterva_array *array)
{
    const caterva_info *info = info_of(array);
    for (int i = 0; i < CATERVA_MAX_FILTERS; i++)
        if (info->filters[i] >= 32 && info->filters[i] != CATERVA_FILTER_NONE)
            return 1;
    return info->codec >= 32 && info->codec != CATERVA_CODEC_BLOSCLZ;
}

static void move_chunks(trial *t)
{
    caterva_error err;
    caterva_array *target = make_target(t);
    int may_refuse = needs_plugin(t->array) && !needs_plugin(target);
    int refused = 0;
    for (int64_t c = 0; c < info_of(t->array)->n_chunks; c++) {
        size_t size;
        uint8_t *bytes = stored_chunk(t->array, c, &size);
        caterva_status status = n_moved % 2 == 0
                                    ? caterva_chunk_write_stored(target, c, bytes, size, &err)
                                    : caterva_chunk_write_undecoded(target, c, bytes, size, &err);
        free(bytes);
        refused += status == CATERVA_EUNSUPPORTED && may_refuse;
        CHECK(status == CATERVA_OK || (status == CATERVA_EUNSUPPORTED && may_refuse), "%s",
              err.message);
        n_moved++;
    }
    if (refused == 0) {
        check_whole(t, target);
        CHECK_OK(caterva_commit(target, &err), err);
        check_whole(t, target);
    }
    caterva_discard(target);
}

/* ---- Damaged ----------------------------------------------------------------- */

static void put_damaged(const uint8_t *bytes, size_t size, void *context)
{
    trial *t = context;
    caterva_error err = {.code = CATERVA_OK};
    caterva_status status = caterva_chunk_write_stored(t->array, 0, bytes, size, &err);
    if (status == CATERVA_OK) {
        n_taken++;
        return;
    }
    n_refused++;
    CHECK(status == err.code && err.message[0], "a refusal without a sentence");
    CHECK(status == CATERVA_ECORRUPT || status == CATERVA_EUNSUPPORTED, "%d: %s", (int)status,
          err.message);
}

static void put_damaged_chunks(trial *t)
{
    caterva_error err;
    caterva_verify_result result = CATERVA_VERIFY_RESULT_INIT;
    if (info_of(t->array)->n_chunks == 0) return;
    size_t size;
    uint8_t *bytes = stored_chunk(t->array, 0, &size);
    put_damaged(bytes, size - 1, t);
    int64_t taken = n_taken;
    check_mutants(t->random, DAMAGES, bytes, size, put_damaged, t);
    if (n_taken == taken) check_whole(t, t->array); /* a refusal changes nothing */
    free(bytes);
    CHECK_OK(caterva_commit(t->array, &err), err);
    CHECK_OK(caterva_verify(t->array, NULL, &result, &err), err);
    CHECK(result.damages == 0, "%lld damages of what was taken", (long long)result.damages);
}

/* What is taken undecoded may be damaged: reads and verify must say so, or return items. */
static void put_undecoded(const uint8_t *bytes, size_t size, void *context)
{
    trial *t = context;
    caterva_error err = {.code = CATERVA_OK};
    caterva_verify_result result = CATERVA_VERIFY_RESULT_INIT;
    caterva_status status = caterva_chunk_write_undecoded(t->array, 0, bytes, size, &err);
    CHECK(status == CATERVA_OK || status == CATERVA_ECORRUPT || status == CATERVA_EUNSUPPORTED,
          "%d: %s", (int)status, err.message);
    if (status != CATERVA_OK) return;
    n_undecoded++;
    box whole = whole_box(&t->geometry);
    size_t room = (size_t)info_of(t->array)->data_bytes;
    void *items = malloc(room + 1);
    status = caterva_read(t->array, whole.start, whole.stop, items, room, &err);
    free(items);
    CHECK(status == CATERVA_OK || status == CATERVA_ECORRUPT || status == CATERVA_EUNSUPPORTED,
          "%d: %s", (int)status, err.message);
    status = caterva_commit(t->array, &err);
    CHECK(status == CATERVA_OK, "%s", err.message);
    status = caterva_verify(t->array, NULL, &result, &err);
    CHECK(status == CATERVA_OK || status == CATERVA_ECORRUPT, "%d: %s", (int)status, err.message);
}

static void put_undecoded_chunks(trial *t)
{
    size_t size;
    if (info_of(t->array)->n_chunks == 0) return;
    uint8_t *bytes = stored_chunk(t->array, 0, &size);
    check_mutants(t->random, DAMAGES, bytes, size, put_undecoded, t);
    free(bytes);
}

static void try_array(rng *random)
{
    caterva_error err;
    trial t = {.random = random, .geometry = random_geometry(random, MAX_DIMS, MAX_ITEMS)};
    make_array(&t);
    move_chunks(&t); /* of a writer, with dirty blocks */
    CHECK_OK(caterva_commit(t.array, &err), err);
    check_chunks(&t);
    move_chunks(&t);
    put_damaged_chunks(&t);
    put_undecoded_chunks(&t);
    caterva_discard(t.array);
    oracle_free(&t.oracle);
}

static void refuse_misuse(void)
{
    caterva_array *a = make_small_array("mem:");
    uint8_t bytes[200];
    size_t size;
    caterva_chunk_iter it = CATERVA_CHUNK_ITER_INIT;
    caterva_block_info block = CATERVA_BLOCK_INFO_INIT;
    it.next = -1;
    REFUSE(EINVAL_BIT, caterva_chunk_next(NULL, &it, err));
    REFUSE(EINVAL_BIT, caterva_chunk_next(a, NULL, err));
    REFUSE(ERANGE_BIT, caterva_chunk_next(a, &it, err));
    REFUSE(ERANGE_BIT, caterva_block_describe(a, 0, 99, &block, err));
    REFUSE(ERANGE_BIT, caterva_block_describe(a, -1, 0, &block, err));
    REFUSE(EINVAL_BIT, caterva_chunk_read_stored(a, 0, bytes, sizeof bytes, NULL, err));
    REFUSE(ERANGE_BIT, caterva_chunk_read_stored(a, 99, bytes, sizeof bytes, &size, err));
    REFUSE(EINVAL_BIT, caterva_chunk_write_stored(a, 0, NULL, 32, err));
    REFUSE(ERANGE_BIT, caterva_chunk_write_stored(a, 99, bytes, 32, err));
    REFUSE(ECORRUPT_BIT, caterva_chunk_write_stored(a, 0, bytes, 31, err));
    REFUSE(ECORRUPT_BIT, caterva_chunk_write_undecoded(a, 0, bytes, 31, err));
    check_small_array(a);
    caterva_discard(a);
}

int main(int argc, char **argv)
{
    int64_t n = (int64_t)number_argument(argc, argv, 1, DEFAULT_ARRAYS);
    uint64_t seed = seed_argument(argc, argv, 2);
    refuse_misuse();
    for (int64_t i = 0; i < n; i++) {
        rng random = rng_from_seed(seed + (uint64_t)i);
        try_array(&random);
    }
    printf("%lld arrays, %lld chunks moved; of damaged ones %lld refused, %lld taken\n",
           (long long)n, (long long)n_moved, (long long)n_refused, (long long)n_taken);
    CHECK(n < DEFAULT_ARRAYS ||
              (n_refused > 0 && n_taken > 0 && n_undecoded > 0 && n_kinds[CATERVA_CHUNK_STORED] > 0 &&
               n_kinds[CATERVA_CHUNK_VALUE] > 0 && n_kinds[CATERVA_CHUNK_UNINIT] > 0 &&
               n_kinds[CATERVA_CHUNK_ZEROS] > 0),
          "the run met too little");
    return 0;
}
