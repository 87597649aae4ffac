/* Reuse never touches a byte that is still needed. Random changes, commits, rollbacks,
 * sessions that end well or not, beside readers that keep their state, refresh, open and
 * close: after each step every reader's whole content is that of its state, and so is the
 * file's; verify finds nothing; at the end C-Blosc2 reads the same.
 *
 * usage: test_reuse [SEED [ROUNDS]] */
#include "support/buffer.h"
#include "support/check.h"
#include "support/info.h"
#include "support/random.h"
#include "support/scratch.h"

#include <b2nd.h>
#include <caterva_upkeep.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { READERS = 4, STEPS = 250, CHUNK = 500, BLOCK = 100, MOST = 40 * CHUNK };

typedef struct state {
    uint16_t items[MOST];
    int64_t n;
} state;

typedef struct reader {
    caterva_array *array;
    state seen;
} reader;

typedef struct game {
    rng random;
    char path[SCRATCH_PATH];
    caterva_array *writer;
    state now, committed;
    reader readers[READERS];
    int64_t n_checks;
} game;

/* ---- Checking ------------------------------------------------------------- */

static void check_content(caterva_array *array, const state *wanted, const char *who)
{
    caterva_error err;
    static uint16_t got[MOST];
    int64_t start = 0, n = info_of(array)->shape[0];
    CHECK(n == wanted->n, "%s: %lld items, not %lld", who, (long long)n,
          (long long)wanted->n);
    CHECK_OK(caterva_read(array, &start, &n, got, sizeof got, &err), err);
    for (int64_t i = 0; i < n; i++)
        CHECK(got[i] == wanted->items[i], "%s: item %lld of %lld", who, (long long)i,
              (long long)n);
}

static void verify(caterva_array *array, const char *who)
{
    caterva_error err;
    caterva_verify_result result = CATERVA_VERIFY_RESULT_INIT;
    CHECK_OK(caterva_verify(array, NULL, &result, &err), err);
    CHECK(result.damages == 0, "%s: %lld damages", who, (long long)result.damages);
}

static caterva_array *open_reader(const game *g)
{
    caterva_error err;
    caterva_open_options options = CATERVA_OPEN_INIT;
    options.threads = 1;
    options.cache_bytes = -1;
    options.keep_bytes = -1; /* only the present file counts */
    caterva_array *array;
    CHECK_OK(caterva_open(g->path, &options, &array, &err), err);
    return array;
}

static void check_all(game *g)
{
    for (int i = 0; i < READERS; i++) {
        reader *r = &g->readers[i];
        if (!r->array) continue;
        check_content(r->array, &r->seen, "a reader");
        if (rng_one_in(&g->random, 4)) verify(r->array, "a reader");
    }
    if (g->writer) check_content(g->writer, &g->now, "the writer");
    caterva_array *fresh = open_reader(g);
    check_content(fresh, &g->committed, "a new reader");
    verify(fresh, "the file");
    caterva_discard(fresh);
    g->n_checks++;
}

/* ---- Moves ---------------------------------------------------------------- */

/* Some compress, some do not: chunks of all sizes. */
static void fill(game *g, uint16_t *items, int64_t n)
{
    uint16_t mask = rng_one_in(&g->random, 2) ? 0xffff : (uint16_t)rng_int(&g->random, 0, 63);
    rng_fill(&g->random, items, (size_t)n * sizeof *items);
    for (int64_t i = 0; i < n; i++) items[i] &= mask;
}

static void move_write(game *g)
{
    caterva_error err;
    if (g->now.n == 0) return;
    int64_t start = rng_between(&g->random, 0, g->now.n - 1);
    int64_t n = rng_between(&g->random, 1, rng_one_in(&g->random, 4) ? 8 * CHUNK : CHUNK);
    int64_t stop = start + n > g->now.n ? g->now.n : start + n;
    fill(g, g->now.items + start, stop - start);
    CHECK_OK(caterva_write(g->writer, &start, &stop, g->now.items + start,
                           (size_t)(stop - start) * 2, &err),
             err);
}

static void move_append(game *g)
{
    caterva_error err;
    int64_t n = rng_between(&g->random, 1, 3 * CHUNK);
    if (g->now.n + n > MOST) return;
    fill(g, g->now.items + g->now.n, n);
    CHECK_OK(
        caterva_append(g->writer, 0, n, PLAIN(g->now.items + g->now.n, (size_t)n * 2), &err),
        err);
    g->now.n += n;
}

static void move_remove(game *g)
{
    caterva_error err;
    int64_t chunks = g->now.n / CHUNK;
    if (chunks == 0) return;
    int64_t from = rng_between(&g->random, 0, chunks - 1);
    int64_t n = rng_between(&g->random, 1, chunks - from < 6 ? chunks - from : 6);
    CHECK_OK(caterva_remove(g->writer, 0, from * CHUNK, (from + n) * CHUNK, &err), err);
    memmove(g->now.items + from * CHUNK, g->now.items + (from + n) * CHUNK,
            (size_t)(g->now.n - (from + n) * CHUNK) * 2);
    g->now.n -= n * CHUNK;
}

static void move_resize(game *g)
{
    caterva_error err;
    int64_t n = rng_one_in(&g->random, 5) ? 0 : rng_between(&g->random, 0, MOST);
    for (int64_t i = g->now.n; i < n; i++) g->now.items[i] = 0;
    CHECK_OK(caterva_resize(g->writer, &n, &err), err);
    g->now.n = n;
}

static void move_attribute(game *g)
{
    caterva_error err;
    uint8_t value[2000];
    size_t size = (size_t)rng_between(&g->random, 0, sizeof value);
    rng_fill(&g->random, value, size);
    CHECK_OK(caterva_attr_set(g->writer, "note", value, size, &err), err);
}

static void move_commit(game *g)
{
    caterva_error err;
    CHECK_OK(caterva_commit(g->writer, &err), err);
    g->committed = g->now;
}

static void move_rollback(game *g)
{
    caterva_error err;
    CHECK_OK(caterva_rollback(g->writer, &err), err);
    g->now = g->committed;
}

static void open_writer(game *g)
{
    caterva_error err;
    caterva_open_options options = CATERVA_OPEN_INIT;
    options.mode = CATERVA_MODE_WRITE;
    options.threads = rng_int(&g->random, 1, 2);
    options.durability =
        (caterva_durability)(rng_one_in(&g->random, 4) ? rng_int(&g->random, 0, 1) : 2);
    options.dirty_budget = rng_one_in(&g->random, 2) ? 4096 : 0;
    CHECK_OK(caterva_open(g->path, &options, &g->writer, &err), err);
}

static void move_session(game *g)
{
    caterva_error err;
    bool ends_well = !rng_one_in(&g->random, 3);
    if (ends_well) {
        CHECK_OK(caterva_close(g->writer, &err), err);
        g->committed = g->now;
    } else {
        caterva_discard(g->writer);
        g->now = g->committed;
    }
    g->writer = NULL;
    check_all(g);
    open_writer(g);
}

static void move_reader(game *g)
{
    caterva_error err;
    reader *r = &g->readers[rng_int(&g->random, 0, READERS - 1)];
    if (!r->array) {
        r->array = open_reader(g);
    } else if (rng_one_in(&g->random, 3)) {
        caterva_discard(r->array);
        r->array = NULL;
    } else {
        CHECK_OK(caterva_refresh(r->array, &err), err);
    }
    r->seen = g->committed;
}

/* All readers refresh: the committed state is the only one in use. */
static void move_follow(game *g)
{
    caterva_error err;
    for (int i = 0; i < READERS; i++) {
        if (!g->readers[i].array) continue;
        CHECK_OK(caterva_refresh(g->readers[i].array, &err), err);
        g->readers[i].seen = g->committed;
    }
}

/* ---- A game --------------------------------------------------------------- */

static void step(game *g)
{
    static void (*const moves[])(game *) = {
        move_write,  move_write,  move_write,    move_append,  move_append, move_remove,
        move_resize, move_commit, move_commit,   move_commit,  move_commit, move_attribute,
        move_reader, move_reader, move_rollback, move_session, move_follow, move_follow,
    };
    moves[rng_int(&g->random, 0, (int)(sizeof moves / sizeof moves[0]) - 1)](g);
    check_all(g);
}

static void begin(game *g)
{
    caterva_error err;
    int64_t n = 10 * CHUNK, start = 0;
    int32_t chunk = CHUNK, block = BLOCK;
    scratch_path(g->path, "reuse.b2nd");
    caterva_create_options options = CATERVA_CREATE_INIT;
    options.ndim = 1;
    options.shape = &n;
    options.chunk_shape = &chunk;
    options.block_shape = &block;
    options.dtype = "<u2";
    options.overwrite = 1;
    options.codec = CATERVA_CODEC_LZ4;
    options.level = 1;
    CHECK_OK(caterva_create(g->path, &options, &g->writer, &err), err);
    g->now.n = n;
    fill(g, g->now.items, n);
    CHECK_OK(caterva_write(g->writer, &start, &n, g->now.items, (size_t)n * 2, &err), err);
    move_commit(g);
}

static void check_with_blosc2(const game *g)
{
    b2nd_array_t *theirs;
    static uint16_t got[MOST];
    CHECK(b2nd_open(g->path, &theirs) >= 0, "C-Blosc2 does not open it");
    CHECK(theirs->shape[0] == g->committed.n, "C-Blosc2 has another shape");
    int64_t size = g->committed.n * 2;
    CHECK(size == 0 || b2nd_to_cbuffer(theirs, got, size) >= 0, "C-Blosc2 does not read it");
    CHECK(memcmp(got, g->committed.items, (size_t)size) == 0, "C-Blosc2 reads otherwise");
    b2nd_free(theirs);
}

static void end(game *g)
{
    caterva_error err;
    for (int i = 0; i < READERS; i++) caterva_discard(g->readers[i].array);
    CHECK_OK(caterva_close(g->writer, &err), err);
    g->writer = NULL;
    memset(g->readers, 0, sizeof g->readers);
    g->committed = g->now;
    check_all(g);
    check_with_blosc2(g);
    scratch_remove(g->path);
}

int main(int argc, char **argv)
{
    static game g;
    g.random = rng_from_seed(seed_argument(argc, argv, 1));
    int64_t rounds = (int64_t)number_argument(argc, argv, 2, 6);
    blosc2_init();
    for (int64_t i = 0; i < rounds; i++) {
        begin(&g);
        for (int s = 0; s < STEPS; s++) step(&g);
        end(&g);
    }
    blosc2_destroy();
    printf("%lld steps, each reader right after each\n", (long long)g.n_checks);
    return 0;
}
