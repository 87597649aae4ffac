/* Damage of arrays that are also Zarr arrays, in the frame, behind it and in zarr.json. Opening,
 * verify, reads, copies, and the chunks that Zarr readers get of the array as it is: each of them
 * fails, or is right. verify reports every change outside the frame.
 *
 * usage: test_zarr_mutations [TRIALS [SEED]] */
#include "caterva.h"
#include "caterva_store.h"
#include "caterva_upkeep.h"

#include "support/check.h"
#include "support/info.h"
#include "support/oracle.h"
#include "support/pipelines.h"
#include "support/random.h"
#include "support/sanitized.h"
#include "support/scratch.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_DIMS = 4, MOST_ITEMS = 2000, SAMPLES = 40, TAIL = 300, HANG_SECONDS = 60 };

/* Blocks in C order, the last one empty. */
typedef struct zarr_chunk {
    void *bytes;
    size_t size;
} zarr_chunk;

typedef struct file {
    char path[SCRATCH_PATH + 64];
    uint8_t *bytes;
    size_t size;
} file;

typedef struct sample {
    geometry g; /* of the items; the partition is that of the Zarr array */
    oracle items;
    char path[SCRATCH_PATH];
    file meta, shard;
    size_t frame_size;
    zarr_chunk *chunks;
    size_t n_chunks;
} sample;

/* ---- Samples ------------------------------------------------------------------------ */

static file load_file(const sample *s, const char *name)
{
    file f;
    snprintf(f.path, sizeof f.path, "%s/%s", s->path, name);
    f.bytes = scratch_load(f.path, &f.size);
    CHECK(f.bytes != NULL, "cannot read %s", f.path);
    return f;
}

static bool next_index(const sample *s, const caterva_info *info, int64_t *index)
{
    int d = s->g.ndim - 1;
    for (; d >= 0; d--) {
        if (++index[d] * info->block_shape[d] < s->g.shape[d]) return true;
        index[d] = 0;
    }
    return false;
}

static void load_chunks(sample *s, caterva_array *a)
{
    caterva_error err;
    const caterva_info *info = info_of(a);
    int64_t index[CATERVA_MAX_DIMS] = {0};
    s->chunks = check_alloc(MOST_ITEMS * sizeof *s->chunks);
    do {
        zarr_chunk *c = &s->chunks[s->n_chunks++];
        CHECK(s->n_chunks <= MOST_ITEMS, "%zu blocks", s->n_chunks);
        CHECK_OK(caterva_zarr_chunk(a, index, &c->bytes, &c->size, &err), err);
    } while (next_index(s, info, index));
}

static void load_files(sample *s)
{
    caterva_array *a;
    caterva_error err;
    char shard[2 + 2 * CATERVA_MAX_DIMS] = "c";
    for (int d = 0; d < s->g.ndim; d++) strcat(shard, "/0");
    s->meta = load_file(s, "zarr.json");
    s->shard = load_file(s, shard);
    CHECK_OK(caterva_open(s->path, NULL, &a, &err), err);
    s->frame_size = (size_t)info_of(a)->frame_bytes;
    load_chunks(s, a);
    CHECK_OK(caterva_close(a, &err), err);
}

static sample *make_sample(rng *r, int number)
{
    char name[32];
    caterva_array *a;
    caterva_error err;
    caterva_copy_options options = CATERVA_COPY_INIT;
    sample *s = check_alloc(sizeof *s);
    box all;
    do {
        s->g = random_geometry(r, MOST_DIMS, MOST_ITEMS);
        all = whole_box(&s->g);
    } while (box_items(&all, s->g.ndim) == 0);
    s->items = oracle_new(&s->g);
    random_data(r, s->items.bytes, s->items.size, s->g.item_size);
    pipeline p = random_pipeline(r, s->g.item_size);
    caterva_create_options create = options_for(&s->g, &p);
    options.zarr = 1;
    snprintf(name, sizeof name, "%d.zarr", number);
    scratch_path(s->path, name);
    CHECK_OK(
        caterva_create_from_memory("mem:", &create, s->items.bytes, s->items.size, &a, &err),
        err);
    CHECK_OK(caterva_attr_set(a, "note", "\xa4text", 5, &err), err);
    CHECK_OK(caterva_copy(a, s->path, &options, NULL, &err), err);
    caterva_discard(a);
    load_files(s);
    return s;
}

static void free_sample(sample *s)
{
    for (size_t i = 0; i < s->n_chunks; i++) caterva_free(s->chunks[i].bytes);
    free(s->chunks);
    free(s->meta.bytes);
    free(s->shard.bytes);
    oracle_free(&s->items);
    free(s);
}

/* ---- Damage ------------------------------------------------------------------------- */

/* Changes or cuts a few bytes between `low` and the end; returns the new size. */
static size_t damage(rng *r, uint8_t *bytes, size_t size, size_t low)
{
    size_t at = (size_t)rng_between(r, (int64_t)low, (int64_t)size - 1);
    size_t n = (size_t)rng_int(r, 1, 16);
    switch (rng_int(r, 0, 4)) {
    case 0: bytes[at] ^= (uint8_t)(1 << rng_int(r, 0, 7)); break;
    case 1: bytes[at] = (uint8_t)rng_next(r); break;
    case 2:
        memset(bytes + at, rng_int(r, 0, 1) ? 0 : 0xff, n < size - at ? n : size - at);
        break;
    case 3: memmove(bytes + at, bytes + low, n < size - at ? n : size - at); break;
    default: return at;
    }
    return size;
}

/* ---- What must fail or be right ------------------------------------------------------- */

static bool are_items(const sample *s, caterva_array *a, const char *how)
{
    box all = whole_box(&s->g);
    const caterva_info *info = info_of(a);
    bool is_same = info->ndim == s->g.ndim && info->item_size == s->g.item_size;
    for (int d = 0; d < s->g.ndim && is_same; d++) is_same = info->shape[d] == s->g.shape[d];
    CHECK(is_same, "%s: %s: another shape or item size", s->path, how);
    uint8_t *found = check_alloc(s->items.size);
    caterva_status status = caterva_read(a, all.start, all.stop, found, s->items.size, NULL);
    CHECK(status != CATERVA_OK || memcmp(found, s->items.bytes, s->items.size) == 0,
          "%s: %s: other items", s->path, how);
    free(found);
    return status == CATERVA_OK;
}

static void check_copy(const sample *s, caterva_array *a)
{
    caterva_array *copy;
    caterva_copy_options options = CATERVA_COPY_INIT;
    if (caterva_copy(a, "mem:", &options, &copy, NULL) != CATERVA_OK) return;
    (void)are_items(s, copy, "copy");
    caterva_discard(copy);
}

static void check_chunks(const sample *s, caterva_array *a)
{
    int64_t index[CATERVA_MAX_DIMS] = {0};
    const zarr_chunk *c = s->chunks;
    do {
        void *bytes;
        size_t size;
        if (caterva_zarr_chunk(a, index, &bytes, &size, NULL) != CATERVA_OK) continue;
        CHECK(size == c->size && (size == 0 || memcmp(bytes, c->bytes, size) == 0),
              "%s: other bytes of chunk %zu", s->path, (size_t)(c - s->chunks));
        caterva_free(bytes);
    } while (c++, next_index(s, info_of(a), index));
}

/* Returns whether the damage was noticed. */
static bool look(const sample *s)
{
    caterva_array *a;
    caterva_error err;
    caterva_verify_result result = CATERVA_VERIFY_RESULT_INIT;
    if (caterva_open(s->path, NULL, &a, NULL) != CATERVA_OK) return true;
    bool is_noticed = !are_items(s, a, "read");
    check_copy(s, a);
    check_chunks(s, a);
    if (caterva_verify(a, NULL, &result, &err) != CATERVA_OK || result.damages > 0)
        is_noticed = true;
    caterva_discard(a);
    return is_noticed;
}

typedef struct tally {
    int noticed, harmless;
} tally;

static void try_once(rng *r, const sample *s, tally *seen)
{
    int where = rng_int(r, 0, 3);
    const file *f = where == 0 ? &s->meta : &s->shard;
    size_t low = where == 1 ? s->frame_size : 0;
    if (where == 2 && f->size > TAIL) low = f->size - TAIL;
    uint8_t *bytes = check_alloc(f->size);
    memcpy(bytes, f->bytes, f->size);
    size_t size = damage(r, bytes, f->size, low);
    bool is_changed = size != f->size || memcmp(bytes, f->bytes, size) != 0;
    /* A file that ends with the frame is a plain frame. */
    bool is_outside =
        where == 0 || (size > s->frame_size && memcmp(bytes, f->bytes, s->frame_size) == 0);
    scratch_save(f->path, bytes, size);
    bool is_noticed = look(s);
    scratch_save(f->path, f->bytes, f->size);
    free(bytes);
    CHECK(is_changed || !is_noticed, "%s: damage in a good array", s->path);
    CHECK(!is_changed || !is_outside || is_noticed, "%s: not noticed outside the frame",
          s->path);
    if (is_noticed) seen->noticed++;
    if (is_changed && !is_noticed) seen->harmless++;
}

int main(int argc, char **argv)
{
    int usual = getenv("CATERVA_TEST_LONG") ? 20000 : few_if_sanitized(5000, 1500);
    int trials = argc > 1 ? atoi(argv[1]) : usual;
    uint64_t seed = seed_argument(argc, argv, 2);
    rng r = rng_from_seed(seed);
    sample *samples[SAMPLES];
    tally seen = {0, 0};
    for (int i = 0; i < SAMPLES; i++) {
        samples[i] = make_sample(&r, i);
        CHECK(!look(samples[i]), "damage in %s", samples[i]->path);
    }
    for (int t = 0; t < trials; t++) {
        alarm(HANG_SECONDS); /* a hang ends the program with a signal */
        try_once(&r, samples[t % SAMPLES], &seen);
    }
    for (int i = 0; i < SAMPLES; i++) free_sample(samples[i]);
    printf("%d trials: %d noticed, %d hit nothing that counts\n", trials, seen.noticed,
           seen.harmless);
    return seen.noticed > trials / 2 ? 0 : 1;
}
