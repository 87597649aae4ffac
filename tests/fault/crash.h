/* Shared by the fault tests: an array in a fault store with an oracle, and the judgement of a
 * crash image. */
#ifndef FAULT_CRASH_H
#define FAULT_CRASH_H

#include "support/fault.h"
#include "unit/made.h"

/* cmocka has a print_error of its own. */
#define print_error blosc2_print_error
#include <b2nd.h>
#include <blosc2.h>
#include <caterva_store.h>
#include <caterva_upkeep.h>
#undef print_error

#include <stdio.h>

enum { MAX_STATES = 16 };

/* The states that were committed, or were about to be, in order. */
typedef struct history {
    geometry geometry;
    oracle now; /* what the handle holds, including pending changes */
    oracle states[MAX_STATES];
    int n_states;
} history;

static inline history history_new(const geometry *g)
{
    return (history){.geometry = *g, .now = oracle_new(g)};
}

static inline void history_free(history *h)
{
    for (int i = 0; i < h->n_states; i++) oracle_free(&h->states[i]);
    oracle_free(&h->now);
}

/* Records the handle's state as the next one; returns its number. */
static inline int history_add(history *h)
{
    CHECK(h->n_states < MAX_STATES, "too many states");
    h->states[h->n_states] = oracle_new(&h->geometry);
    oracle_copy(&h->states[h->n_states], &h->now);
    return h->n_states++;
}

/* Returns the number in [low, high] of the state that equals `bytes`, or -1. */
static inline int history_find(const history *h, const uint8_t *bytes, int low, int high)
{
    for (int i = low < 0 ? 0 : low; i <= high && i < h->n_states; i++)
        if (memcmp(bytes, h->states[i].bytes, h->states[i].size) == 0) return i;
    return -1;
}

/* Reads the whole array through the public API. */
static inline void read_all(caterva_array *array, const geometry *g, uint8_t *dst)
{
    caterva_error err;
    box all = whole_box(g);
    CHECK_OK(caterva_read(array, all.start, all.stop, dst, box_size(&all, g), &err), err);
}

/* Writes random data into a random box, and into the oracle on success. */
static inline caterva_status write_random(rng *r, caterva_array *array, history *h,
                                          const box *b, caterva_error *err)
{
    size_t size = box_size(b, &h->geometry);
    uint8_t *data = check_alloc(size);
    random_data(r, data, size, h->geometry.item_size);
    caterva_status status = caterva_write(array, b->start, b->stop, data, size, err);
    oracle_write(&h->now, b, data); /* after a failure the caller writes it again */
    free(data);
    return status;
}

/* A box of whole chunks. */
static inline box chunk_box(rng *r, const geometry *g)
{
    box b = {{0}, {0}};
    for (int d = 0; d < g->ndim; d++) {
        int64_t chunk = g->chunk_shape[d], n = (g->shape[d] + chunk - 1) / chunk;
        int64_t first = rng_between(r, 0, n - 1);
        b.start[d] = first * chunk;
        b.stop[d] = rng_between(r, first + 1, n) * chunk;
        if (b.stop[d] > g->shape[d]) b.stop[d] = g->shape[d];
    }
    return b;
}

/* Closes the array; libblosc2 opened it with status `result`. */
static inline void check_read_by_blosc2(b2nd_array_t *array, int result, const oracle *state,
                                        const char *what)
{
    CHECK(result >= 0, "%s: libblosc2 does not open it: %d", what, result);
    uint8_t *got = check_alloc(state->size);
    result = b2nd_to_cbuffer(array, got, (int64_t)state->size);
    CHECK(result >= 0, "%s: libblosc2 does not read it: %d", what, result);
    CHECK(memcmp(got, state->bytes, state->size) == 0, "%s: libblosc2 reads otherwise", what);
    free(got);
    b2nd_free(array);
}

static inline void check_with_blosc2(const uint8_t *bytes, size_t size, const oracle *state,
                                     const char *what)
{
    CHECK(size >= 24, "%s: %zu bytes", what, size);
    int64_t frame_size = 0;
    for (int i = 16; i < 24; i++) frame_size = frame_size << 8 | bytes[i];
    CHECK((size_t)frame_size <= size, "%s: frame of %lld bytes", what, (long long)frame_size);
    b2nd_array_t *array = NULL;
    int result = b2nd_from_cframe((uint8_t *)bytes, frame_size, true, &array);
    check_read_by_blosc2(array, result, state, what);
}

static inline void show_damage(void *context, const caterva_damage *damage)
{
    printf("%s: chunk %lld: %s\n", (const char *)context, (long long)damage->chunk,
           damage->message);
}

static inline void check_whole(caterva_array *array, const char *what)
{
    caterva_error err;
    caterva_verify_result result = CATERVA_VERIFY_RESULT_INIT;
    caterva_verify_options options = CATERVA_VERIFY_INIT;
    options.on_damage = show_damage;
    options.context = (void *)what;
    CHECK_OK(caterva_verify(array, &options, &result, &err), err);
    CHECK(result.damages == 0, "%s: %lld damages", what, (long long)result.damages);
}

/* Opens the image and checks that every chunk is whole. */
static inline caterva_array *open_image(const uint8_t *bytes, size_t size, const char *what)
{
    caterva_error err;
    caterva_array *array;
    caterva_status status = caterva_frame_open(bytes, size, 0, NULL, &array, &err);
    CHECK(status == CATERVA_OK, "%s: does not open: %s", what, err.message);
    check_whole(array, what);
    return array;
}

/* Returns the number of the state in [low, high] that the array holds. */
static inline int state_of(const history *h, caterva_array *array, int low, int high,
                           const char *what)
{
    uint8_t *got = check_alloc(h->now.size);
    read_all(array, &h->geometry, got);
    int state = history_find(h, got, low, high);
    CHECK(state >= 0, "%s: holds none of the states %d to %d, but %d", what, low, high,
          history_find(h, got, 0, h->n_states - 1));
    free(got);
    return state;
}

/* Opens the image with both readers. It must hold one of the states [low, high], whose number
 * is returned. */
static inline int check_image(const history *h, const uint8_t *bytes, size_t size, int low,
                              int high, const char *what)
{
    caterva_array *array = open_image(bytes, size, what);
    int state = state_of(h, array, low, high, what);
    caterva_discard(array);
    check_with_blosc2(bytes, size, &h->states[state], what);
    return state;
}

/* The same for the file at a path while a writer has it open. */
static inline int check_path(const history *h, const char *path, int low, int high,
                             const char *what)
{
    caterva_error err;
    caterva_array *array;
    b2nd_array_t *theirs = NULL;
    caterva_status status = caterva_open(path, NULL, &array, &err);
    CHECK(status == CATERVA_OK, "%s: does not open: %s", what, err.message);
    check_whole(array, what);
    int state = state_of(h, array, low, high, what);
    caterva_discard(array);
    int result = b2nd_open(path, &theirs);
    check_read_by_blosc2(theirs, result, &h->states[state], what);
    return state;
}

/* The header is inside one sector, which a disk writes completely or not at all. */
static inline bool may_tear(const cv_store *store, int64_t entry)
{
    const cv_fault_entry *e = &cv_store_fault_journal(store)->entries[entry];
    return e->kind == CV_FAULT_ENTRY_WRITE && e->size > 1 &&
           !(e->pos < 512 && e->pos + e->size <= 512);
}

static inline geometry crash_geometry(void)
{
    return (geometry){.ndim = 2,
                      .shape = {50, 60},
                      .chunk_shape = {20, 25},
                      .block_shape = {10, 9},
                      .item_size = 4};
}

#endif
