/* caterva_copy against the naive oracle: random arrays (partitions, fills, layouts, pending
 * changes, attributes), random boxes, into random partitions, codecs and layouts within
 * little memory. C-Blosc2's b2nd also reads the result, and then grows it: items outside the
 * box must not reappear.
 *
 * usage: test_copies [COPIES [SEED]] */
#include "caterva.h"
#include "caterva_upkeep.h"

#include "support/check.h"
#include "support/every_step.h"
#include "support/info.h"
#include "support/oracle.h"
#include "support/pipelines.h"
#include "support/random.h"
#include "support/sanitized.h"
#include "support/scratch.h"

#include <b2nd.h>
#include <blosc2.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEFAULT_COPIES = 1500, MAX_DIMS = 5, MAX_ITEMS = 4000 };

typedef struct trial {
    rng *random;
    int64_t number;
    geometry from;
    geometry to; /* its shape is the box's */
    box box;
    int moves;    /* same partition, and the box begins at a chunk */
    int reopened; /* the source is open for reading, without pending changes */
    pipeline from_pipeline, to_pipeline;
    caterva_fill fill;
    uint8_t item[512];     /* of the fill */
    uint8_t new_item[512]; /* of the copy, if it gets another one */
    int has_new_item;
    oracle oracle;
    caterva_array *source;
    char source_path[SCRATCH_PATH];
    char path[SCRATCH_PATH];
} trial;

static const uint8_t zeros[512];
static int64_t n_moved, n_read_by_b2nd;

static void report(const trial *t, const char *what)
{
    char from[600], to[600], range[600];
    fprintf(stderr, "copy %lld, %s\n  from %s\n  box  %s\n  to   %s\n", (long long)t->number,
            what, geometry_text(&t->from, from, sizeof from),
            box_text(&t->box, t->from.ndim, range, sizeof range),
            geometry_text(&t->to, to, sizeof to));
}

#define NEED(t, condition, ...)                                                              \
    do {                                                                                     \
        int need_good_ = (condition) != 0;                                                   \
        if (!need_good_) report(t, #condition);                                              \
        CHECK(need_good_, __VA_ARGS__);                                                      \
    } while (0)

#define NEED_OK(t, call, err)                                                                \
    do {                                                                                     \
        caterva_status need_status_ = (call);                                                \
        NEED(t, need_status_ == CATERVA_OK, "%s", (err).message);                            \
    } while (0)

/* ---- The source ------------------------------------------------------------- */

static void choose_fill(trial *t, caterva_create_options *options)
{
    int32_t size = t->from.item_size;
    t->fill = (caterva_fill)rng_int(t->random, 0, 3);
    if (t->fill == CATERVA_FILL_NAN && size != 4 && size != 8) t->fill = CATERVA_FILL_VALUE;
    memset(t->item, 0, sizeof t->item);
    const float nan32 = __builtin_nanf("");
    const double nan64 = __builtin_nan("");
    if (t->fill == CATERVA_FILL_NAN)
        memcpy(t->item, size == 4 ? (const void *)&nan32 : (const void *)&nan64,
               (size_t)size);
    if (t->fill == CATERVA_FILL_VALUE) rng_fill(t->random, t->item, (size_t)size);
    options->fill = t->fill;
    options->fill_value = t->item;
}

static void write_box(trial *t, const box *b)
{
    caterva_error err;
    size_t size = box_size(b, &t->from);
    uint8_t *bytes = check_alloc(size);
    random_data(t->random, bytes, size, t->from.item_size);
    NEED_OK(t, caterva_write(t->source, b->start, b->stop, bytes, size, &err), err);
    oracle_write(&t->oracle, b, bytes);
    free(bytes);
}

/* Made by b2nd: blocks in any order, dictionaries, its own choice of chunks and fill. */
static void make_foreign_source(trial *t)
{
    caterva_error err;
    blosc2_cparams cparams = BLOSC2_CPARAMS_DEFAULTS;
    blosc2_dparams dparams = BLOSC2_DPARAMS_DEFAULTS;
    blosc2_storage storage = {.contiguous = rng_one_in(t->random, 2),
                              .urlpath = t->source_path,
                              .cparams = &cparams,
                              .dparams = &dparams};
    b2nd_array_t *array = NULL;
    uint8_t value[] = {0xA3, 'o', 'n', 'e'};
    cparams.typesize = t->from.item_size;
    cparams.compcode = (uint8_t)t->from_pipeline.codec;
    cparams.clevel = (uint8_t)t->from_pipeline.level;
    cparams.nthreads = 4;
    for (int i = 0; i < CATERVA_MAX_FILTERS; i++) {
        cparams.filters[i] = (uint8_t)t->from_pipeline.filters[i];
        cparams.filters_meta[i] = (uint8_t)t->from_pipeline.filters_meta[i];
    }
    t->oracle = oracle_new(&t->from);
    random_data(t->random, t->oracle.bytes, t->oracle.size, t->from.item_size);
    b2nd_context_t *ctx =
        b2nd_create_ctx(&storage, (int8_t)t->from.ndim, t->from.shape, t->from.chunk_shape,
                        t->from.block_shape, "what is this", 1, NULL, 0);
    int result = b2nd_from_cbuffer(ctx, &array, t->oracle.bytes, (int64_t)t->oracle.size);
    NEED(t, result >= 0, "b2nd_from_cbuffer: %s", blosc2_error_string(result));
    NEED(t, blosc2_vlmeta_add(array->sc, "note", value, sizeof value, NULL) >= 0, "vlmeta");
    b2nd_free(array);
    b2nd_free_ctx(ctx);
    NEED_OK(t, caterva_open(t->source_path, NULL, &t->source, &err), err);
    t->reopened = 1;
}

static void make_source(trial *t)
{
    static const caterva_metalayer layer = {.name = "mine", .content = "fixed", .size = 5};
    caterva_error err;
    caterva_create_options options = options_for(&t->from, &t->from_pipeline);
    int kind = rng_int(t->random, 0, 3); /* sparse, contiguous, memory */
    options.layout = kind == 0 ? CATERVA_LAYOUT_SPARSE : CATERVA_LAYOUT_CONTIGUOUS;
    options.metalayer =
        rng_one_in(t->random, 5) ? CATERVA_METALAYER_CATERVA : CATERVA_METALAYER_B2ND;
    options.durability = CATERVA_DURABILITY_NONE;
    options.overwrite = 1;
    options.metalayers = &layer;
    options.n_metalayers = rng_int(t->random, 0, 1);
    choose_fill(t, &options);
    const char *url = kind == 1 ? "mem:" : t->source_path;
    NEED_OK(t, caterva_create(url, &options, &t->source, &err), err);
    t->oracle = oracle_new(&t->from);
    oracle_fill(&t->oracle, t->item);
    NEED_OK(t, caterva_attr_set(t->source, "note", "\xA3one", 4, &err), err);
    box whole = whole_box(&t->from);
    if (rng_one_in(t->random, 2)) write_box(t, &whole);
    for (int n = rng_int(t->random, 0, 3); n > 0; n--) {
        box b = random_box(t->random, &t->from);
        write_box(t, &b);
        if (rng_one_in(t->random, 2)) NEED_OK(t, caterva_commit(t->source, &err), err);
    }
    if (kind == 1 || rng_one_in(t->random, 2)) return;
    NEED_OK(t, caterva_close(t->source, &err), err); /* and read it from its file */
    NEED_OK(t, caterva_open(t->source_path, NULL, &t->source, &err), err);
    t->reopened = 1;
}

/* ---- The copy --------------------------------------------------------------- */

static void choose_box(trial *t)
{
    t->box = random_box(t->random, &t->from);
    if (!t->moves) return;
    for (int d = 0; d < t->from.ndim; d++)
        t->box.start[d] -= t->box.start[d] % t->from.chunk_shape[d];
}

static void choose_partition(trial *t)
{
    t->to = t->from;
    for (int d = 0; d < t->to.ndim; d++) t->to.shape[d] = t->box.stop[d] - t->box.start[d];
    if (t->moves || rng_one_in(t->random, 3)) return;
    for (int d = 0; d < t->to.ndim; d++) {
        int64_t longest = t->to.shape[d] > 0 ? t->to.shape[d] : 5;
        t->to.chunk_shape[d] = (int32_t)rng_between(t->random, 1, longest);
        t->to.block_shape[d] = (int32_t)rng_between(t->random, 1, t->to.chunk_shape[d]);
    }
}

static int count_progress(void *context, int64_t done, int64_t total)
{
    int64_t *last = context;
    CHECK(done >= *last && done <= total, "%lld of %lld bytes", (long long)done,
          (long long)total);
    *last = done;
    return 0;
}

static caterva_array *make_copy(trial *t)
{
    caterva_error err;
    caterva_array *copy = NULL;
    caterva_create_options create = options_for(&t->to, &t->to_pipeline);
    caterva_copy_options options = CATERVA_COPY_INIT;
    int64_t done = 0;
    if (t->moves || !rng_one_in(t->random, 2)) {
        t->to_pipeline = t->from_pipeline;
        create.codec = create.level = 0;
        memset(create.filters, 0, sizeof create.filters);
    }
    create.ndim = 99; /* ignored */
    create.shape = NULL;
    static const caterva_layout layouts[] = {CATERVA_LAYOUT_DEFAULT, CATERVA_LAYOUT_DEFAULT,
                                             CATERVA_LAYOUT_CONTIGUOUS,
                                             CATERVA_LAYOUT_SPARSE};
    create.layout = layouts[rng_int(t->random, 0, 3)];
    t->has_new_item = rng_one_in(t->random, 5);
    rng_fill(t->random, t->new_item, (size_t)t->from.item_size);
    if (t->has_new_item) create.fill = CATERVA_FILL_VALUE;
    create.fill_value = t->new_item;
    create.threads = rng_int(t->random, 1, 3);
    create.durability = CATERVA_DURABILITY_NONE;
    create.overwrite = 1;
    options.create = &create;
    options.start = t->box.start;
    options.stop = t->box.stop;
    options.memory = rng_one_in(t->random, 2) ? 0 : rng_between(t->random, 1, 100000);
    options.progress = every_step(count_progress, &done);
    scratch_path(t->path, "copy.b2nd");
    NEED_OK(t, caterva_copy(t->source, t->path, &options, &copy, &err), err);
    NEED(t, done >= info_of(copy)->data_bytes, "%lld bytes done", (long long)done);
    return copy;
}

/* ---- What it must be -------------------------------------------------------- */

static void check_items(const trial *t, caterva_array *copy, const uint8_t *want, size_t size)
{
    caterva_error err;
    box whole = whole_box(&t->to);
    uint8_t *got = check_alloc(size);
    NEED_OK(t, caterva_read(copy, whole.start, whole.stop, got, size, &err), err);
    NEED(t, memcmp(got, want, size) == 0, "items differ");
    free(got);
}

static void check_info(const trial *t, caterva_array *copy)
{
    const caterva_info *from = info_of(t->source), *to = info_of(copy);
    void *value;
    size_t size;
    caterva_error err;
    for (int d = 0; d < t->to.ndim; d++)
        NEED(t,
             to->shape[d] == t->to.shape[d] && to->chunk_shape[d] == t->to.chunk_shape[d] &&
                 to->block_shape[d] == t->to.block_shape[d],
             "axis %d", d);
    int level = to->level == CATERVA_NONE ? 0 : to->level;
    NEED(t, to->codec == t->to_pipeline.codec && level == t->to_pipeline.level, "codec %d %d",
         to->codec, to->level);
    NEED(t, to->n_attributes == 1 && to->n_metalayers == from->n_metalayers, "%d and %d",
         to->n_attributes, to->n_metalayers);
    NEED_OK(t, caterva_attr_get(copy, "note", &value, &size, &err), err);
    NEED(t, size == 4 && memcmp(value, "\xA3one", 4) == 0, "the attribute");
    caterva_free(value);
    const void *fill = t->has_new_item ? t->new_item : from->fill_value;
    if (t->has_new_item && memcmp(fill, zeros, (size_t)to->item_size) == 0) fill = NULL;
    NEED(t, !to->fill_value == !fill, "the fill");
    if (from->dtype_stored && to->metalayer == CATERVA_METALAYER_B2ND)
        NEED(t, strcmp(to->dtype_stored, from->dtype_stored) == 0, "the dtype");
    if (to->fill_value)
        NEED(t, memcmp(to->fill_value, fill, (size_t)to->item_size) == 0, "fill");
}

static void check_verify(const trial *t, caterva_array *copy)
{
    caterva_error err;
    caterva_verify_result result = CATERVA_VERIFY_RESULT_INIT;
    caterva_space space = CATERVA_SPACE_INIT;
    NEED_OK(t, caterva_verify(copy, NULL, &result, &err), err);
    NEED(t, result.damages == 0, "%lld damages", (long long)result.damages);
    NEED_OK(t, caterva_measure(copy, &space, &err), err);
    NEED(t, space.dead_bytes == 0, "%lld dead bytes", (long long)space.dead_bytes);
}

/* The copy has each chunk as the source stores it, special or not. */
static void check_moved(const trial *t, caterva_array *copy)
{
    caterva_error err;
    int64_t n = info_of(copy)->n_chunks;
    for (int64_t i = 0; i < n; i++) {
        caterva_chunk_info to = CATERVA_CHUNK_INFO_INIT, from = CATERVA_CHUNK_INFO_INIT;
        NEED_OK(t, caterva_chunk_describe(copy, i, &to, &err), err);
        int64_t chunk = 0;
        const caterva_info *info = info_of(t->source);
        int cut = 0;
        for (int d = 0; d < t->to.ndim; d++) {
            int64_t index = to.index[d] + t->box.start[d] / t->to.chunk_shape[d];
            int64_t end = (index + 1) * t->to.chunk_shape[d];
            cut = cut || (end > t->box.stop[d] && t->box.stop[d] < t->from.shape[d]);
            chunk = chunk * info->chunk_counts[d] + index;
        }
        if (cut) continue;
        NEED_OK(t, caterva_chunk_describe(t->source, chunk, &from, &err), err);
        int reads_as_zeros = t->has_new_item && from.kind == CATERVA_CHUNK_UNINIT;
        NEED(t,
             to.kind == (reads_as_zeros ? CATERVA_CHUNK_ZEROS : from.kind) &&
                 to.stored_bytes == from.stored_bytes,
             "chunk %lld is of kind %d, it was %d", (long long)i, (int)to.kind,
             (int)from.kind);
        n_moved++;
    }
}

static void read_by_b2nd(const trial *t, b2nd_array_t *array, const geometry *g,
                         uint8_t *bytes, size_t size)
{
    int64_t start[CATERVA_MAX_DIMS] = {0}, shape[CATERVA_MAX_DIMS] = {0};
    memcpy(shape, g->shape, sizeof shape);
    int result = b2nd_get_slice_cbuffer(array, start, g->shape, bytes, shape, (int64_t)size);
    NEED(t, result >= 0, "b2nd's read: %s", blosc2_error_string(result));
}

/* Returns whether item number `n` (C order) of the grown array lies outside the copy. */
static int is_new_item(const trial *t, const geometry *grown, int64_t n)
{
    int outside = 0;
    for (int d = grown->ndim - 1; d >= 0; d--) {
        outside = outside || n % grown->shape[d] >= t->to.shape[d];
        n /= grown->shape[d];
    }
    return outside;
}

/* b2nd grows the array inside its last chunks: only the fill or zeros may appear. */
static void grow_by_b2nd(const trial *t, b2nd_array_t *array)
{
    geometry grown = t->to;
    size_t item_size = (size_t)grown.item_size;
    for (int d = 0; d < grown.ndim; d++) {
        int64_t rest = grown.shape[d] % grown.chunk_shape[d];
        if (rest > 0) grown.shape[d] += grown.chunk_shape[d] - rest;
    }
    int result = b2nd_resize(array, grown.shape, NULL);
    NEED(t, result >= 0, "b2nd_resize: %s", blosc2_error_string(result));
    oracle o = oracle_new(&grown);
    read_by_b2nd(t, array, &grown, o.bytes, o.size);
    for (size_t n = 0; n < o.size / item_size; n++) {
        const uint8_t *item = o.bytes + n * item_size;
        NEED(t,
             !is_new_item(t, &grown, (int64_t)n) || memcmp(item, zeros, item_size) == 0 ||
                 memcmp(item, t->item, item_size) == 0,
             "an item from outside the box came back");
    }
    oracle_free(&o);
}

static void check_b2nd(const trial *t, const uint8_t *want, size_t size)
{
    b2nd_array_t *array = NULL;
    NEED(t, b2nd_open(t->path, &array) >= 0, "b2nd_open");
    uint8_t *got = check_alloc(size);
    read_by_b2nd(t, array, &t->to, got, size);
    NEED(t, memcmp(got, want, size) == 0, "b2nd reads other items");
    free(got);
    /* It cannot resize arrays with the older metalayer. */
    if (blosc2_meta_exists(array->sc, "b2nd") >= 0) grow_by_b2nd(t, array);
    b2nd_free(array);
    n_read_by_b2nd++;
}

/* Not delta, which b2nd decodes wrongly in parts (see compat/test_b2nd.c); nor unwritten
 * chunks, for which b2nd returns any bytes. */
static int suits_b2nd(const trial *t, size_t size)
{
    return t->to.ndim > 0 && size > 0 && t->fill != CATERVA_FILL_UNINIT &&
           t->to_pipeline.filters[0] != CATERVA_FILTER_DELTA;
}

static void run_trial(rng *r, int64_t number)
{
    trial t = {.random = r, .number = number, .moves = rng_one_in(r, 2)};
    caterva_error err;
    t.from = random_geometry(r, MAX_DIMS, MAX_ITEMS);
    t.from_pipeline = random_pipeline(r, t.from.item_size);
    t.to_pipeline = random_pipeline(r, t.from.item_size);
    scratch_path(t.source_path, "source.b2nd");
    scratch_remove(t.source_path);
    if (t.from.ndim > 0 && rng_one_in(r, 4))
        make_foreign_source(&t);
    else
        make_source(&t);
    choose_box(&t);
    choose_partition(&t);
    caterva_array *copy = make_copy(&t);
    size_t size = box_size(&t.box, &t.from);
    uint8_t *want = check_alloc(size);
    oracle_read(&t.oracle, &t.box, want);
    check_items(&t, copy, want, size);
    check_info(&t, copy);
    check_verify(&t, copy);
    NEED_OK(&t, caterva_close(copy, &err), err);
    NEED_OK(&t, caterva_open(t.path, NULL, &copy, &err), err);
    check_items(&t, copy, want, size);
    if (t.moves && t.reopened) check_moved(&t, copy);
    caterva_discard(copy);
    if (suits_b2nd(&t, size)) check_b2nd(&t, want, size);
    caterva_discard(t.source);
    oracle_free(&t.oracle);
    free(want);
}

int main(int argc, char **argv)
{
    int64_t copies = (int64_t)number_argument(
        argc, argv, 1, (uint64_t)few_if_sanitized(DEFAULT_COPIES, DEFAULT_COPIES / 4));
    uint64_t seed = seed_argument(argc, argv, 2);
    blosc2_init();
    for (int64_t i = 0; i < copies; i++) {
        rng r = rng_from_seed(seed + (uint64_t)i);
        run_trial(&r, i);
    }
    printf("%lld copies, %lld chunks moved, %lld results read by b2nd\n", (long long)copies,
           (long long)n_moved, (long long)n_read_by_b2nd);
    CHECK(copies < 100 || (n_moved > copies / 20 && n_read_by_b2nd > copies / 5), "too few");
    return 0;
}
