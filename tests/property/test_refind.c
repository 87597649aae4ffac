/* A sealed file whose index is overwritten: each stored chunk is found by the name of its
 * block table, anywhere in a file of some MiB, also if chunks are equal and if C-Blosc2 wrote
 * them; chunks without a name are lost and reported.
 *
 * usage: test_refind [ROUNDS [SEED]] */
#include "support/check.h"
#include "support/oracle.h"
#include "support/pipelines.h"
#include "support/random.h"
#include "support/scratch.h"

#include <b2nd.h>
#include <blosc2.h>
#include <caterva_upkeep.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef enum writer { CONTIGUOUS, SPARSE, BLOSC2, N_WRITERS } writer;

enum { SIDE = 900, EQUAL_ROWS = 200, CBYTES_AT = 39, HEADER_SIZE_AT = 12 };

/* Noise, so that no chunk is small; but some rows of chunks are equal. */
static oracle random_state(rng *r, const geometry *g)
{
    oracle state = oracle_new(g);
    size_t row = (size_t)(g->shape[1] * g->item_size);
    size_t equal = (size_t)(g->chunk_shape[0]) * row;
    rng_fill(r, state.bytes, state.size);
    for (size_t at = equal; at + equal <= EQUAL_ROWS * row; at += equal)
        memcpy(state.bytes + at, state.bytes, equal);
    return state;
}

static void write_ours(const char *path, const oracle *state, bool sparse)
{
    pipeline p = {
        .codec = CATERVA_CODEC_LZ4, .level = 5, .filters = {CATERVA_FILTER_SHUFFLE}};
    caterva_create_options options = options_for(&state->geometry, &p);
    caterva_error err;
    caterva_array *array;
    options.durability = CATERVA_DURABILITY_NONE;
    options.layout = sparse ? CATERVA_LAYOUT_SPARSE : CATERVA_LAYOUT_CONTIGUOUS;
    CHECK_OK(
        caterva_create_from_memory(path, &options, state->bytes, state->size, &array, &err),
        err);
    CHECK_OK(caterva_close(array, &err), err);
}

static void write_b2nd(char *path, const oracle *state)
{
    blosc2_cparams cparams = BLOSC2_CPARAMS_DEFAULTS;
    blosc2_dparams dparams = BLOSC2_DPARAMS_DEFAULTS;
    const geometry *g = &state->geometry;
    cparams.typesize = g->item_size;
    blosc2_storage storage = {
        .contiguous = true, .urlpath = path, .cparams = &cparams, .dparams = &dparams};
    b2nd_array_t *array = NULL;
    caterva_error err;
    b2nd_context_t *ctx = b2nd_create_ctx(&storage, 2, g->shape, g->chunk_shape,
                                          g->block_shape, "<i4", 0, NULL, 0);
    CHECK(b2nd_from_cbuffer(ctx, &array, state->bytes, (int64_t)state->size) >= 0, "b2nd");
    b2nd_free(array);
    b2nd_free_ctx(ctx);
    CHECK_OK(caterva_seal(path, NULL, &err), err);
}

/* Overwrites the first bytes of the index, at the position that the header gives. */
static void overwrite_index(const char *path, bool sparse)
{
    char frame[SCRATCH_PATH];
    size_t size, pos = 0;
    snprintf(frame, sizeof frame, "%.480s%s", path, sparse ? "/chunks.b2frame" : "");
    uint8_t *bytes = scratch_load(frame, &size);
    for (int i = 0; i < 8 && !sparse; i++) pos = pos << 8 | bytes[CBYTES_AT + i];
    for (int i = 0; i < 2; i++) pos += (size_t)bytes[HEADER_SIZE_AT + 1 + i] << (8 - 8 * i);
    memset(bytes + pos, 0xff, 40);
    scratch_save(frame, bytes, size);
    free(bytes);
}

static void count(void *context, const caterva_damage *damage)
{
    int64_t *n_lost = context;
    *n_lost += damage->chunk >= 0;
}

/* The result must be `state`, with `lost` chunks as the fill. */
static void check_repair(const char *path, const oracle *state, int64_t lost)
{
    char repaired[SCRATCH_PATH];
    caterva_error err;
    caterva_repair_options options = CATERVA_REPAIR_INIT;
    caterva_repair_result result = CATERVA_REPAIR_RESULT_INIT;
    caterva_array *array;
    int64_t n_reported = 0;
    uint8_t *got = check_alloc(state->size);
    box all = whole_box(&state->geometry);
    snprintf(repaired, sizeof repaired, "%.480s.repaired", path);
    scratch_remove(repaired);
    options.durability = CATERVA_DURABILITY_NONE;
    options.on_damage = count;
    options.context = &n_reported;
    CHECK_OK(caterva_repair(path, &options, &result, &err), err);
    CHECK(result.written && result.lost_chunks == lost && n_reported == lost &&
              result.lost_attributes == 0 && result.complete == (lost == 0),
          "%lld chunks lost, %lld reported, should be %lld", (long long)result.lost_chunks,
          (long long)n_reported, (long long)lost);
    CHECK_OK(caterva_open(repaired, NULL, &array, &err), err);
    CHECK_OK(caterva_read(array, all.start, all.stop, got, state->size, &err), err);
    CHECK(memcmp(got, state->bytes, state->size) == 0, "other items came back");
    caterva_discard(array);
    free(got);
    scratch_remove(repaired);
}

/* Chunks of zeros are in the index only. */
static int64_t write_zeros(const char *path, oracle *state)
{
    caterva_open_options options = CATERVA_OPEN_INIT;
    caterva_error err;
    caterva_array *array;
    const geometry *g = &state->geometry;
    box chunk = {{0}, {g->chunk_shape[0], g->chunk_shape[1]}};
    size_t size = box_size(&chunk, g);
    uint8_t *zeros = check_alloc(size);
    memset(zeros, 0, size);
    options.mode = CATERVA_MODE_WRITE;
    options.durability = CATERVA_DURABILITY_NONE;
    CHECK_OK(caterva_open(path, &options, &array, &err), err);
    CHECK_OK(caterva_write(array, chunk.start, chunk.stop, zeros, size, &err), err);
    CHECK_OK(caterva_close(array, &err), err);
    oracle_write(state, &chunk, zeros);
    free(zeros);
    return 1;
}

static void write_file(char *path, const oracle *state, writer w)
{
    scratch_remove(path);
    if (w == BLOSC2)
        write_b2nd(path, state);
    else
        write_ours(path, state, w == SPARSE);
}

static void run(rng *r, writer w)
{
    char path[SCRATCH_PATH];
    geometry g = {.ndim = 2, .shape = {SIDE, SIDE}, .item_size = 4};
    for (int d = 0; d < 2; d++) {
        g.chunk_shape[d] = (int32_t)rng_between(r, 40, 300);
        g.block_shape[d] = (int32_t)rng_between(r, 10, g.chunk_shape[d]);
    }
    oracle state = random_state(r, &g);
    scratch_path(path, "refind");
    write_file(path, &state, w);
    overwrite_index(path, w == SPARSE);
    check_repair(path, &state, 0);

    write_file(path, &state, w);
    int64_t lost = write_zeros(path, &state);
    overwrite_index(path, w == SPARSE);
    check_repair(path, &state, lost);
    scratch_remove(path);
    oracle_free(&state);
}

int main(int argc, char **argv)
{
    int rounds = (int)number_argument(argc, argv, 1, 2);
    rng r = rng_from_seed(seed_argument(argc, argv, 2));
    blosc2_init();
    for (int i = 0; i < rounds; i++)
        for (int w = 0; w < N_WRITERS; w++) run(&r, (writer)w);
    blosc2_destroy();
    return 0;
}
