/* Pipelines of filters through the public functions, on arrays of this library and on arrays
 * that C-Blosc2's b2nd made: created, written, changed in part, copied, moved chunk by chunk.
 * Items come back unchanged or as their filters define, or the pipeline is refused by name
 * with nothing changed. The input memory is read-only.
 *
 * usage: test_pipelines [SEED] [N: longer pipelines to try] */
#include "caterva.h"
#include "caterva_store.h"
#include "caterva_upkeep.h"

#include "support/check.h"
#include "support/filter_model.h"
#include "support/info.h"
#include "support/random.h"
#include "support/sanitized.h"

#include <b2nd.h>
#include <blosc2.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/lsan_interface.h>
#endif

enum { EDGE = 8, CHUNK = 2 * EDGE, SHAPE = 3 * EDGE, MAX_ITEM = 300 };
enum { ITEMS = SHAPE * SHAPE, BLOCK_ITEMS = EDGE * EDGE };

static const int32_t item_sizes[] = {1, 2, 4, 8, 16, 7, 300};
static uint8_t *page; /* input of the library: read-only */

static const uint8_t *guard(const uint8_t *items, size_t size)
{
    CHECK(mprotect(page, ITEMS * MAX_ITEM, PROT_READ | PROT_WRITE) == 0, "mprotect");
    memcpy(page, items, size);
    CHECK(mprotect(page, ITEMS * MAX_ITEM, PROT_READ) == 0, "mprotect");
    return page;
}

typedef struct trial {
    int filters[CATERVA_MAX_FILTERS];
    int n;
    int32_t item_size;
    caterva_create_options options;
    char name[160];
} trial;

static const int64_t shape[] = {SHAPE, SHAPE}, origin[] = {0, 0};
static const int32_t chunk_shape[] = {CHUNK, CHUNK}, block_shape[] = {EDGE, EDGE};

static void set_trial(trial *t, const int *filters, int n, int32_t item_size, rng *r)
{
    static const int codecs[] = {CATERVA_CODEC_BLOSCLZ, CATERVA_CODEC_LZ4,
                                 CATERVA_CODEC_LZ4HC, CATERVA_CODEC_ZLIB, CATERVA_CODEC_ZSTD};
    caterva_create_options o = CATERVA_CREATE_INIT;
    *t = (trial){.n = n, .item_size = item_size};
    o.ndim = 2, o.shape = shape, o.chunk_shape = chunk_shape, o.block_shape = block_shape;
    o.item_size = item_size;
    o.codec = codecs[rng_int(r, 0, 4)], o.level = rng_int(r, 1, 9);
    int at = snprintf(t->name, sizeof t->name, "items of %d, %s %d:", item_size,
                      caterva_codec_name(o.codec), o.level);
    for (int i = 0; i < n; i++) {
        t->filters[i] = o.filters[i] = filters[i];
        o.filters_meta[i] = filter_number_for(filters[i], item_size);
        at += snprintf(t->name + at, sizeof t->name - (size_t)at, " %s",
                       caterva_filter_name(filters[i]));
    }
    t->options = o;
}

static size_t array_bytes(const trial *t) { return (size_t)ITEMS * (size_t)t->item_size; }

/* Noise, a ramp and floats in turn. */
static void fill_items(const trial *t, rng *r, uint8_t *items)
{
    size_t size = (size_t)t->item_size;
    int kind = rng_int(r, 0, 2);
    memset(items, 0, array_bytes(t));
    for (size_t i = 0; i < ITEMS; i++) {
        const float number = (float)rng_int(r, 0, 999) / 7;
        const double wide = number;
        if (kind == 0) rng_fill(r, items + i * size, size);
        if (kind == 1) items[i * size] = (uint8_t)i;
        if (kind == 2)
            memcpy(items + i * size, size == 4 ? (const void *)&number : (const void *)&wide,
                   size < sizeof wide ? size : sizeof wide);
    }
}

/* ---- What must come back ---------------------------------------------------------- */

static void take_block(const trial *t, const uint8_t *items, int row, int column, uint8_t *to)
{
    size_t size = (size_t)t->item_size;
    for (int y = 0; y < EDGE; y++)
        memcpy(to + (size_t)y * EDGE * size,
               items + ((size_t)(row + y) * SHAPE + (size_t)column) * size, EDGE * size);
}

/* Means of means are equal except for rounding; everything else is exact, or unchanged. */
static bool is_near(const trial *t, const uint8_t *a, const uint8_t *b)
{
    bool averages = false;
    for (int i = 0; i < t->n; i++) averages |= t->filters[i] == CATERVA_FILTER_NDMEAN;
    for (int i = 0; i < BLOCK_ITEMS; i++, a += t->item_size, b += t->item_size) {
        if (memcmp(a, b, (size_t)t->item_size) == 0) continue;
        double x, y;
        float u, v;
        if (!averages || (t->item_size != 4 && t->item_size != 8)) return false;
        memcpy(&u, a, sizeof u), memcpy(&v, b, sizeof v);
        x = u, y = v;
        if (t->item_size == 8) memcpy(&x, a, sizeof x), memcpy(&y, b, sizeof y);
        if (x != x && y != y) continue; /* the bits of a mean of NaN depend on the compiler */
        double most = (x < 0 ? -x : x) * 1e-4, off = x - y;
        if (!(off <= most && -off <= most)) return false;
    }
    return true;
}

static void check_items(const trial *t, caterva_array *a, const uint8_t *wanted,
                        const char *when)
{
    static uint8_t got[ITEMS * MAX_ITEM], model[BLOCK_ITEMS * MAX_ITEM],
        block[BLOCK_ITEMS * MAX_ITEM], read[BLOCK_ITEMS * MAX_ITEM];
    caterva_error err;
    CHECK(caterva_read(a, origin, shape, got, array_bytes(t), &err) == CATERVA_OK,
          "%s, %s: %s", t->name, when, err.message);
    for (int row = 0; row < SHAPE; row += EDGE)
        for (int column = 0; column < SHAPE; column += EDGE) {
            take_block(t, got, row, column, read);
            take_block(t, wanted, row, column, block);
            memcpy(model, block, sizeof model);
            apply_filters(t->filters, t->n, t->item_size, EDGE, model);
            CHECK(is_near(t, block, read) || is_near(t, model, read),
                  "%s, %s: the block at %d, %d has other items", t->name, when, row, column);
        }
}

/* ---- Ours ---------------------------------------------------------------------------- */

static void close_array(caterva_array *a)
{
    caterva_error err;
    CHECK_OK(caterva_close(a, &err), err);
}

static void write_part(const trial *t, caterva_array *a, rng *r, uint8_t *items)
{
    size_t size = (size_t)t->item_size;
    int64_t start[] = {EDGE * rng_int(r, 0, 1), EDGE * rng_int(r, 0, 1)};
    int64_t stop[] = {start[0] + EDGE, start[1] + EDGE};
    uint8_t *patch = check_alloc(BLOCK_ITEMS * size);
    caterva_error err;
    rng_fill(r, patch, BLOCK_ITEMS * size);
    if (size == 4 || size == 8) /* numbers, so that they have means */
        take_block(t, items, SHAPE - EDGE, SHAPE - EDGE, patch);
    for (int y = 0; y < EDGE; y++)
        memcpy(items + ((size_t)(start[0] + y) * SHAPE + (size_t)start[1]) * size,
               patch + (size_t)y * EDGE * size, EDGE * size);
    CHECK(caterva_write(a, start, stop, guard(patch, BLOCK_ITEMS * size), BLOCK_ITEMS * size,
                        &err) == CATERVA_OK,
          "%s: %s", t->name, err.message);
    free(patch);
}

static void check_copies(const trial *t, caterva_array *a, const uint8_t *items)
{
    caterva_error err;
    caterva_array *copy, *moved;
    caterva_copy_options options = CATERVA_COPY_INIT;
    caterva_create_options others = t->options;
    static const int32_t other_chunk[] = {SHAPE, EDGE};
    others.chunk_shape = other_chunk;
    options.create = &others;
    CHECK_OK(caterva_copy(a, "mem:", &options, &copy, &err), err);
    check_items(t, copy, items, "copied");
    caterva_discard(copy);
    CHECK_OK(caterva_create("mem:", &t->options, &moved, &err), err);
    for (int64_t i = 0; i < info_of(a)->n_chunks; i++) {
        static uint8_t stored[CHUNK * CHUNK * MAX_ITEM + 32];
        size_t size;
        CHECK_OK(caterva_chunk_read_stored(a, i, stored, sizeof stored, &size, &err), err);
        if (i % 2 == 0)
            CHECK_OK(caterva_chunk_write_stored(moved, i, guard(stored, size), size, &err), err);
        else
            CHECK_OK(caterva_chunk_write_undecoded(moved, i, guard(stored, size), size, &err),
                     err);
    }
    CHECK_OK(caterva_commit(moved, &err), err);
    check_items(t, moved, items, "moved");
    caterva_discard(moved);
}

static bool names_a_filter(const trial *t, const caterva_error *err)
{
    for (int i = 0; i < t->n; i++)
        if (strstr(err->message, caterva_filter_name(t->filters[i]))) return true;
    return false;
}

/* Also as a borrowed frame in read-only memory. */
static void check_frame(const trial *t, caterva_array *a, const uint8_t *items)
{
    caterva_error err;
    void *frame;
    size_t size;
    caterva_array *borrowed;
    CHECK_OK(caterva_frame_copy(a, &frame, &size, &err), err);
    uint8_t *guarded =
        mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(guarded != MAP_FAILED, "mmap");
    memcpy(guarded, frame, size);
    CHECK(mprotect(guarded, size, PROT_READ) == 0, "mprotect");
    CHECK_OK(caterva_frame_open(guarded, size, 0, NULL, &borrowed, &err), err);
    check_items(t, borrowed, items, "borrowed");
    close_array(borrowed);
    munmap(guarded, size);
    caterva_free(frame);
}

static bool check_ours(const trial *t, rng *r)
{
    static uint8_t items[ITEMS * MAX_ITEM];
    caterva_array *a;
    caterva_error err;
    caterva_status status = caterva_create("mem:", &t->options, &a, &err);
    if (status != CATERVA_OK) {
        CHECK(status == CATERVA_EPIPELINE && names_a_filter(t, &err), "%s: %s", t->name,
              err.message);
        return false;
    }
    fill_items(t, r, items);
    CHECK(caterva_write(a, origin, shape, guard(items, array_bytes(t)), array_bytes(t),
                        &err) == CATERVA_OK,
          "%s: %s", t->name, err.message);
    CHECK_OK(caterva_commit(a, &err), err);
    check_items(t, a, items, "written");
    write_part(t, a, r, items);
    CHECK_OK(caterva_commit(a, &err), err);
    check_items(t, a, items, "changed in part");
    check_frame(t, a, items);
    check_copies(t, a, items);
    caterva_discard(a);
    return true;
}

/* ---- Theirs -------------------------------------------------------------------------- */

/* If a filter fails, C-Blosc2 (3.3) leaks the two buffers of b2nd_set_slice_cbuffer, which
 * are not reachable from outside: leaks of this call are ignored. */
static int from_cbuffer(b2nd_context_t *ctx, b2nd_array_t **array, const uint8_t *items,
                        int64_t size)
{
#ifdef __SANITIZE_ADDRESS__
    __lsan_disable();
#endif
    int status = b2nd_from_cbuffer(ctx, array, items, size);
#ifdef __SANITIZE_ADDRESS__
    __lsan_enable();
#endif
    return status;
}

/* NULL if b2nd cannot make it. Overwrites `items`, which are a copy. */
static b2nd_array_t *make_theirs(const trial *t, uint8_t *items)
{
    blosc2_cparams cparams = BLOSC2_CPARAMS_DEFAULTS;
    blosc2_storage storage = {.cparams = &cparams, .contiguous = true};
    b2nd_array_t *array = NULL;
    cparams.typesize = t->item_size;
    cparams.compcode = (uint8_t)t->options.codec;
    cparams.clevel = (uint8_t)t->options.level;
    memset(cparams.filters, 0, sizeof cparams.filters);
    for (int i = 0; i < t->n; i++) {
        cparams.filters[i] = (uint8_t)t->filters[i];
        cparams.filters_meta[i] = (uint8_t)t->options.filters_meta[i];
    }
    b2nd_context_t *ctx =
        b2nd_create_ctx(&storage, 2, shape, chunk_shape, block_shape, NULL, 0, NULL, 0);
    CHECK(ctx, "b2nd_create_ctx");
    if (from_cbuffer(ctx, &array, items, (int64_t)array_bytes(t)) < 0) {
        if (array) b2nd_free(array);
        array = NULL;
    }
    b2nd_free_ctx(ctx);
    return array;
}

/* What C-Blosc2 stored reads as C-Blosc2 reads it. Changing it gives the right items, or is
 * refused with nothing changed. */
static void check_theirs(const trial *t, rng *r)
{
    static uint8_t items[ITEMS * MAX_ITEM], before[ITEMS * MAX_ITEM], got[ITEMS * MAX_ITEM];
    fill_items(t, r, items);
    b2nd_array_t *theirs = make_theirs(t, items);
    uint8_t *frame;
    int64_t size;
    bool needs_free;
    if (!theirs) return;
    CHECK(b2nd_to_cbuffer(theirs, before, (int64_t)array_bytes(t)) >= 0, "%s", t->name);
    CHECK(b2nd_to_cframe(theirs, &frame, &size, &needs_free) >= 0, "b2nd_to_cframe");
    caterva_open_options options = CATERVA_OPEN_INIT;
    caterva_array *a;
    caterva_error err;
    options.mode = CATERVA_MODE_WRITE;
    CHECK_OK(caterva_frame_open(frame, (size_t)size, 1, &options, &a, &err), err);
    CHECK_OK(caterva_read(a, origin, shape, got, array_bytes(t), &err), err);
    CHECK(memcmp(got, before, array_bytes(t)) == 0, "%s: read otherwise than b2nd does",
          t->name);
    caterva_array *taken;
    bool refused = caterva_create("mem:", &t->options, &taken, NULL) != CATERVA_OK;
    if (!refused) {
        caterva_discard(taken);
        write_part(t, a, r, before);
        CHECK_OK(caterva_commit(a, &err), err);
        check_items(t, a, before, "theirs, changed in part");
    } else {
        caterva_status status = caterva_write(a, origin, shape, guard(items, array_bytes(t)),
                                              array_bytes(t), &err);
        CHECK(status == CATERVA_EPIPELINE && names_a_filter(t, &err), "%s: %d", t->name,
              status);
        CHECK(caterva_copy(a, "mem:", NULL, &taken, &err) == CATERVA_EPIPELINE, "%s: copied",
              t->name);
        CHECK_OK(caterva_commit(a, &err), err);
        CHECK_OK(caterva_read(a, origin, shape, got, array_bytes(t), &err), err);
        CHECK(memcmp(got, before, array_bytes(t)) == 0, "%s: changed, yet refused", t->name);
    }
    caterva_discard(a);
    if (needs_free) free(frame);
    b2nd_free(theirs);
}

int main(int argc, char **argv)
{
    rng r = rng_from_seed(seed_argument(argc, argv, 1));
    int64_t longer = (int64_t)number_argument(argc, argv, 2,
                                              (uint64_t)few_if_sanitized(3000, 600)),
            taken = 0, refused = 0;
    blosc2_init();
    page = mmap(NULL, ITEMS * MAX_ITEM, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(page != MAP_FAILED, "mmap");
    for (int n = 0; n <= 3; n++)
        for (int64_t k = 0; k < count_pipelines(n); k++)
            for (size_t i = 0; i < sizeof item_sizes / sizeof item_sizes[0]; i++) {
                /* 300 bytes cost most, so only a third of them */
                if (n == 3 && item_sizes[i] == MAX_ITEM && !rng_one_in(&r, 3)) continue;
                int filters[CATERVA_MAX_FILTERS];
                trial t;
                number_pipeline(k, n, filters);
                set_trial(&t, filters, n, item_sizes[i], &r);
                *(check_ours(&t, &r) ? &taken : &refused) += 1;
                if (n < 3 || rng_one_in(&r, 3)) check_theirs(&t, &r);
            }
    for (int64_t i = 0; i < longer; i++) {
        int filters[CATERVA_MAX_FILTERS], n = rng_int(&r, 4, CATERVA_MAX_FILTERS);
        trial t;
        number_pipeline(rng_between(&r, 0, count_pipelines(n) - 1), n, filters);
        set_trial(&t, filters, n, item_sizes[rng_int(&r, 0, 4)], &r);
        *(check_ours(&t, &r) ? &taken : &refused) += 1;
        if (rng_one_in(&r, 10)) check_theirs(&t, &r);
    }
    printf("%lld pipelines taken, %lld refused\n", (long long)taken, (long long)refused);
    CHECK(taken > 900 && refused > 3000, "%lld taken", (long long)taken);
    munmap(page, ITEMS * MAX_ITEM);
    blosc2_destroy();
    return 0;
}
