/* Good files of several commits, damaged in every way, and repaired: what the
 * repair says it kept is what was committed, what it could not keep it says, and
 * what it writes C-Blosc2 reads alike. Flipped bytes that still decode cannot be
 * seen in files without checksums: only there wrong items are let pass.
 *
 * usage: test_repair [FLIPS [SEED]] */
#include "base/arith.h"
#include "support/check.h"
#include "support/oracle.h"
#include "support/pipelines.h"
#include "support/random.h"
#include "support/scratch.h"
#include "support/unseal.h"

#include <b2nd.h>
#include <blosc2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { COMMITS = 5, MAX_CHUNKS = 16, TRUNCATIONS = 150, DEFAULT_FLIPS = 250, PIECE = 16 };

/* How a file came to be. */
typedef enum writer {
    ONE_HANDLE, /* overwrites, and uses dead space again */
    REOPENED,   /* one handle for each commit: nothing is used again */
    SPARSE,
    BLOSC2 /* written at once by C-Blosc2 */
} writer;

static const char *const writer_names[] = {"one handle", "reopened", "sparse", "C-Blosc2"};

typedef struct extent {
    int64_t pos, size;
} extent;

/* A good file, and what each of its commits held. */
typedef struct sample {
    writer writer;
    geometry geometry;
    char path[SCRATCH_PATH];
    oracle states[COMMITS + 1];
    int n_states;
    uint8_t *bytes; /* of the file, or of a directory's chunks.b2frame */
    size_t size;
    int64_t n_chunks;
    extent chunks[MAX_CHUNKS];
} sample;

/* What a repair told. */
typedef struct report {
    int lost[MAX_CHUNKS];
    int64_t n_lost, n_elsewhere;
    int found;
} report;

static const geometry shape = {.ndim = 2,
                               .shape = {50, 60},
                               .chunk_shape = {20, 25},
                               .block_shape = {10, 9},
                               .item_size = 4};
static int n_repairs, n_in_place, n_written, n_hopeless, n_older, n_guessed, n_unseen;

/* ---- Good files ------------------------------------------------------------- */

static void add_state(sample *s)
{
    oracle *next = &s->states[s->n_states];
    *next = oracle_new(&s->geometry);
    if (s->n_states > 0) oracle_copy(next, &s->states[s->n_states - 1]);
    s->n_states++;
}

static void change(rng *r, sample *s, caterva_array *array)
{
    caterva_error err;
    add_state(s);
    box b = s->n_states == 1 ? whole_box(&s->geometry) : random_box(r, &s->geometry);
    size_t size = box_size(&b, &s->geometry);
    uint8_t *data = check_alloc(size);
    rng_fill(r, data, size);
    for (size_t i = 0; i < size; i++) data[i] &= 15;
    oracle_write(&s->states[s->n_states - 1], &b, data);
    CHECK_OK(caterva_write(array, b.start, b.stop, data, size, &err), err);
    CHECK_OK(caterva_attr_set(array, "step", &s->n_states, sizeof s->n_states, &err), err);
    CHECK_OK(caterva_commit(array, &err), err);
    free(data);
}

static void write_ours(rng *r, sample *s)
{
    pipeline p = {
        .codec = CATERVA_CODEC_ZSTD, .level = 1, .filters = {CATERVA_FILTER_SHUFFLE}};
    caterva_create_options options = options_for(&s->geometry, &p);
    caterva_open_options again = CATERVA_OPEN_INIT;
    caterva_error err;
    caterva_array *array;
    options.durability = again.durability = CATERVA_DURABLE_NONE;
    options.layout = s->writer == SPARSE ? CATERVA_SPARSE : CATERVA_CONTIGUOUS;
    again.mode = CATERVA_WRITE;
    CHECK_OK(caterva_create(s->path, &options, &array, &err), err);
    for (int i = 0; i < COMMITS; i++) {
        change(r, s, array);
        if (s->writer != REOPENED) continue;
        caterva_discard(array);
        CHECK_OK(caterva_open(s->path, &again, &array, &err), err);
    }
    caterva_discard(array);
}

static void write_b2nd(rng *r, sample *s)
{
    blosc2_cparams cparams = BLOSC2_CPARAMS_DEFAULTS;
    blosc2_dparams dparams = BLOSC2_DPARAMS_DEFAULTS;
    cparams.typesize = s->geometry.item_size;
    blosc2_storage storage = {
        .contiguous = true, .urlpath = s->path, .cparams = &cparams, .dparams = &dparams};
    b2nd_array_t *array = NULL;
    add_state(s);
    oracle *state = &s->states[0];
    rng_fill(r, state->bytes, state->size);
    for (size_t i = 0; i < state->size; i++) state->bytes[i] &= 15;
    b2nd_context_t *ctx =
        b2nd_create_ctx(&storage, 2, s->geometry.shape, s->geometry.chunk_shape,
                        s->geometry.block_shape, "<i4", 0, NULL, 0);
    CHECK(b2nd_from_cbuffer(ctx, &array, state->bytes, (int64_t)state->size) >= 0, "b2nd");
    uint8_t value[] = {0xA3, 'o', 'n', 'e'};
    CHECK(blosc2_vlmeta_add(array->sc, "name", value, sizeof value, NULL) >= 0, "attribute");
    b2nd_free(array);
    b2nd_free_ctx(ctx);
}

static const char *frame_path(const sample *s, char path[SCRATCH_PATH])
{
    snprintf(path, SCRATCH_PATH, "%.490s%s", s->path,
             s->writer == SPARSE ? "/chunks.b2frame" : "");
    return path;
}

static sample make_sample(rng *r, writer w)
{
    sample s = {.writer = w, .geometry = shape};
    caterva_array *array;
    caterva_error err;
    char path[SCRATCH_PATH];
    scratch_path(s.path, "sample");
    scratch_remove(s.path);
    if (w == BLOSC2)
        write_b2nd(r, &s);
    else
        write_ours(r, &s);
    s.bytes = scratch_load(frame_path(&s, path), &s.size);
    CHECK_OK(caterva_open(s.path, NULL, &array, &err), err);
    s.n_chunks = caterva_describe(array)->n_chunks;
    CHECK(s.n_chunks <= MAX_CHUNKS, "%lld chunks", (long long)s.n_chunks);
    for (int64_t i = 0; i < s.n_chunks; i++) {
        caterva_chunk_info info;
        CHECK_OK(caterva_describe_chunk(array, i, &info, &err), err);
        s.chunks[i] = (extent){info.position, info.stored_bytes};
    }
    caterva_discard(array);
    return s;
}

static void free_sample(sample *s)
{
    for (int i = 0; i < s->n_states; i++) oracle_free(&s->states[i]);
    free(s->bytes);
    scratch_remove(s->path);
}

/* ---- Judging ---------------------------------------------------------------- */

static void on_damage(void *context, const caterva_damage *damage)
{
    report *r = context;
    CHECK(damage->message[0] && damage->code != CATERVA_OK, "damage without a reason");
    if (damage->chunk < 0)
        r->n_elsewhere++;
    else if (damage->chunk < MAX_CHUNKS && !r->lost[damage->chunk]++)
        r->n_lost++;
}

static int on_found(void *context, const caterva_info *info, void *fill)
{
    report *r = context;
    r->found++;
    memset(fill, 0x5a, (size_t)info->item_size);
    return 0;
}

static box chunk_box(const geometry *g, int64_t chunk)
{
    box b = {{0}, {0}};
    int64_t columns = (g->shape[1] + g->chunk_shape[1] - 1) / g->chunk_shape[1];
    int64_t at[2] = {chunk / columns, chunk % columns};
    for (int d = 0; d < 2; d++) {
        b.start[d] = at[d] * g->chunk_shape[d];
        b.stop[d] = b.start[d] + g->chunk_shape[d];
        if (b.stop[d] > g->shape[d]) b.stop[d] = g->shape[d];
    }
    return b;
}

static bool same_chunk(const sample *s, int64_t chunk, const oracle *a, const oracle *b)
{
    box where = chunk_box(&s->geometry, chunk);
    size_t size = box_size(&where, &s->geometry);
    uint8_t *x = check_alloc(size), *y = check_alloc(size);
    oracle_read(a, &where, x);
    oracle_read(b, &where, y);
    bool same = memcmp(x, y, size) == 0;
    free(x);
    free(y);
    return same;
}

static void read_with_b2nd(const char *path, const oracle *expected, const char *what)
{
    b2nd_array_t *array = NULL;
    uint8_t *bytes = check_alloc(expected->size);
    CHECK(b2nd_open(path, &array) >= 0, "%s: libblosc2 does not open it", what);
    CHECK(b2nd_to_cbuffer(array, bytes, (int64_t)expected->size) >= 0, "%s: libblosc2", what);
    CHECK(memcmp(bytes, expected->bytes, expected->size) == 0,
          "%s: libblosc2 reads otherwise", what);
    b2nd_free(array);
    free(bytes);
}

/* What an unsealed index says after a flip is believed, also that a chunk may hold
 * anything: then it reads differently each time. */
static bool holds_anything(const char *path)
{
    caterva_array *array;
    caterva_error err;
    bool found = false;
    CHECK_OK(caterva_open(path, NULL, &array, &err), err);
    for (int64_t i = 0; i < caterva_describe(array)->n_chunks; i++) {
        caterva_chunk_info info;
        CHECK_OK(caterva_describe_chunk(array, i, &info, &err), err);
        found = found || info.kind == CATERVA_CHUNK_UNINIT;
    }
    caterva_discard(array);
    return found;
}

static oracle read_repaired(const sample *s, const char *path, const char *what)
{
    caterva_array *array;
    caterva_error err;
    caterva_verify_result result;
    oracle got = oracle_new(&s->geometry);
    box all = whole_box(&s->geometry);
    caterva_status status = caterva_open(path, NULL, &array, &err);
    CHECK(status == CATERVA_OK, "%s: does not open: %s", what, err.message);
    const caterva_info *info = caterva_describe(array);
    CHECK(info->data_bytes == (int64_t)got.size, "%s: another shape", what);
    CHECK_OK(caterva_verify(array, NULL, &result, &err), err);
    CHECK(result.damages == 0, "%s: %lld damages left", what, (long long)result.damages);
    CHECK_OK(caterva_read(array, all.start, all.stop, got.bytes, got.size, &err), err);
    caterva_discard(array);
    return got;
}

/* Kept chunks are those of one state; of the last one, unless the repair says that
 * it is older. `hit` may hold anything that decodes: a chunk, or -2: any chunk. */
static void check_chunks(const sample *s, const oracle *got, const report *told,
                         const caterva_repair_result *result, int64_t hit, const char *what)
{
    oracle filled = oracle_new(&s->geometry);
    memset(filled.bytes, 0x5a, filled.size);
    int last = s->n_states - 1, first = result->found == CATERVA_FOUND_OLDER ? 0 : last;
    bool fits = false;
    int64_t wrong = -1;
    for (int state = last; state >= first && !fits; state--) {
        fits = true;
        for (int64_t i = 0; i < s->n_chunks && fits; i++) {
            if (told->lost[i] || i == hit || hit == -2) continue;
            fits = same_chunk(s, i, got, &s->states[state]);
            if (!fits) wrong = i;
        }
    }
    /* In the file of one handle an older commit's dead chunks were used again; and
     * where those of others lie is not known here. */
    bool may_mix =
        result->found == CATERVA_FOUND_OLDER && (s->writer == ONE_HANDLE || hit != -1);
    n_unseen += !fits;
    CHECK(fits || may_mix, "%s: chunk %lld was never committed so", what, (long long)wrong);
    for (int64_t i = 0; i < s->n_chunks && result->written; i++)
        CHECK(!told->lost[i] || same_chunk(s, i, got, &filled), "%s: chunk %lld is not fill",
              what, (long long)i);
    oracle_free(&filled);
}

static void check_step(const sample *s, const char *path, const char *what)
{
    caterva_array *array;
    caterva_error err;
    void *value;
    size_t size;
    int step;
    if (s->writer == BLOSC2) return;
    CHECK_OK(caterva_open(path, NULL, &array, &err), err);
    CHECK_OK(caterva_attr_get(array, "step", &value, &size, &err), err);
    CHECK(size == sizeof step, "%s: %zu bytes", what, size);
    memcpy(&step, value, size);
    CHECK(step == s->n_states, "%s: the attribute of commit %d", what, step);
    caterva_free(value);
    caterva_discard(array);
}

/* Only its header differs from before, and a second repair finds nothing to do. */
static void check_in_place(const sample *s, const uint8_t *before, size_t size,
                           const char *what)
{
    size_t now_size, header = (size_t)before[14] | (size_t)before[13] << 8;
    uint8_t *now = scratch_load(s->path, &now_size);
    caterva_error err;
    caterva_repair_result result;
    header = (size_t)now[14] | (size_t)now[13] << 8;
    CHECK(now_size == size && memcmp(now + header, before + header, size - header) == 0,
          "%s: more than the header changed", what);
    free(now);
    CHECK_OK(caterva_repair(s->path, NULL, &result, &err), err);
    CHECK(result.complete && !result.in_place && !result.written, "%s: not idempotent", what);
}

typedef struct verdict {
    caterva_status status;
    caterva_repair_result result;
} verdict;

/* Repairs the file as `bytes` have it. */
static verdict repair(const sample *s, const uint8_t *bytes, size_t size, int64_t hit,
                      int guess, const char *what)
{
    char path[SCRATCH_PATH], repaired[SCRATCH_PATH];
    caterva_error err;
    report told = {.found = 0};
    verdict v;
    caterva_repair_options options = CATERVA_REPAIR_INIT;
    options.durability = CATERVA_DURABLE_NONE;
    options.guess = guess;
    options.threads = 2;
    options.on_damage = on_damage;
    options.on_found = on_found;
    options.context = &told;
    snprintf(repaired, sizeof repaired, "%.490s.repaired", s->path);
    scratch_remove(repaired);
    if (bytes) scratch_save(frame_path(s, path), bytes, size);

    v.status = caterva_repair(s->path, &options, &v.result, &err);
    n_repairs++;
    struct stat st;
    bool there = stat(repaired, &st) == 0;
    CHECK(there == (v.status == CATERVA_OK && v.result.written), "%s: output", what);
    if (v.status != CATERVA_OK) {
        CHECK(err.code == v.status && err.message[0], "%s: no sentence", what);
        n_hopeless++;
        return v;
    }
    CHECK(told.found == 1, "%s: on_found %d times", what, told.found);
    CHECK(told.n_lost == v.result.lost_chunks, "%s: %lld chunks told, %lld lost", what,
          (long long)told.n_lost, (long long)v.result.lost_chunks);
    n_in_place += v.result.in_place;
    n_written += v.result.written;
    n_older += v.result.found == CATERVA_FOUND_OLDER;
    n_guessed += v.result.found == CATERVA_FOUND_ORDER;
    oracle got = read_repaired(s, v.result.written ? repaired : s->path, what);
    /* What was not touched may hold what only C-Blosc2 stumbles over. */
    const char *now = v.result.written ? repaired : s->path;
    bool is_ours = hit == -1 || v.result.in_place || v.result.written;
    if (is_ours && !(hit != -1 && holds_anything(now))) read_with_b2nd(now, &got, what);
    check_chunks(s, &got, &told, &v.result, hit, what);
    oracle_free(&got);
    if (v.result.complete && hit == -1)
        check_step(s, v.result.written ? repaired : s->path, what);
    if (v.result.in_place) check_in_place(s, bytes, size, what);
    scratch_remove(repaired);
    return v;
}

/* ---- Damage ----------------------------------------------------------------- */

static uint8_t *copy_of(const sample *s)
{
    uint8_t *bytes = check_alloc(s->size);
    memcpy(bytes, s->bytes, s->size);
    return bytes;
}

static size_t header_size(const sample *s)
{
    return (size_t)s->bytes[14] | (size_t)s->bytes[13] << 8;
}

/* Pieces of the header zeroed, all of it, and all but its beginning. */
static void headers_come_back(const sample *s)
{
    char what[96];
    size_t n = header_size(s);
    for (size_t from = 0; from < n; from += PIECE) {
        for (int rest = 0; rest < 2; rest++) {
            uint8_t *bytes = copy_of(s);
            size_t size = rest ? n - from : from + PIECE > n ? n - from : PIECE;
            memset(bytes + from, 0, size);
            bool same = memcmp(bytes, s->bytes, s->size) == 0;
            snprintf(what, sizeof what, "%s, %zu header bytes at %zu zeroed",
                     writer_names[s->writer], size, from);
            verdict v = repair(s, bytes, s->size, -1, 0, what);
            if (s->writer == ONE_HANDLE || s->writer == REOPENED)
                CHECK(v.status == CATERVA_OK && v.result.complete &&
                          v.result.in_place == !same,
                      "%s: not restored", what);
            free(bytes);
        }
    }
}

/* The header of before, in part, of after in the other. */
static void torn_headers_come_back(rng *r, sample *s)
{
    caterva_open_options options = CATERVA_OPEN_INIT;
    caterva_error err;
    caterva_array *array;
    char what[96];
    uint8_t *before = s->bytes;
    size_t n = header_size(s);
    options.mode = CATERVA_WRITE;
    options.durability = CATERVA_DURABLE_NONE;
    scratch_save(s->path, s->bytes, s->size);
    CHECK_OK(caterva_open(s->path, &options, &array, &err), err);
    change(r, s, array);
    caterva_discard(array);
    s->bytes = scratch_load(s->path, &s->size);
    for (size_t cut = 0; cut <= n; cut += PIECE) {
        for (int kind = 0; kind < 4; kind++) {
            bool new_first = kind % 2, sealed = kind < 2; /* else the copies decide alone */
            uint8_t *bytes = copy_of(s);
            if (!sealed) unseal(bytes, (size_t)cv_load_be64(bytes + 16));
            if (new_first)
                memcpy(bytes + cut, before + cut, n - cut);
            else
                memcpy(bytes, before, cut);
            snprintf(what, sizeof what, "%s, torn at %zu, new %s%s", writer_names[s->writer],
                     cut, new_first ? "first" : "last", sealed ? "" : ", unsealed");
            bool is_old = memcmp(bytes, before, n) == 0;
            if (is_old) s->n_states--; /* a commit that never was */
            verdict v = repair(s, bytes, s->size, -1, 0, what);
            if (is_old) s->n_states++;
            bool good = is_old || memcmp(bytes, s->bytes, n) == 0;
            CHECK(v.status == CATERVA_OK && v.result.complete && v.result.in_place == !good,
                  "%s: not restored", what);
            free(bytes);
        }
    }
    free(before);
}

/* Which chunk may hold anything that decodes after byte `at` was changed in a file
 * without checksums: -1: none; -2: where a flip may lead any chunk astray: header and index. */
static int64_t hit_by(const sample *s, size_t at)
{
    if (s->writer == SPARSE) return -2;
    if (at < header_size(s)) return s->writer == BLOSC2 ? -2 : -1;
    int64_t end = 0;
    for (int64_t i = 0; i < s->n_chunks; i++) {
        const extent *e = &s->chunks[i];
        if ((int64_t)at >= e->pos && (int64_t)at < e->pos + e->size) return i;
        if (e->pos + e->size > end) end = e->pos + e->size;
    }
    return (int64_t)at >= end ? -2 : -1;
}

static void ends_are_cut(const sample *s)
{
    char what[96];
    size_t step = s->size / TRUNCATIONS + 1;
    for (size_t size = s->size - 1; size > 0 && size < s->size;
         size = s->size - size < 64 ? size - 1
                : size > step       ? size - step
                                    : 0) {
        for (int zeroed = 0; zeroed < 2; zeroed++) {
            uint8_t *bytes = copy_of(s);
            memset(bytes + size, 0, s->size - size);
            snprintf(what, sizeof what, "%s, %s at %zu", writer_names[s->writer],
                     zeroed ? "zeroed" : "cut", size);
            int guess = s->writer == BLOSC2 || s->writer == SPARSE;
            int64_t hit = zeroed && s->writer == BLOSC2 ? hit_by(s, size)
                                                        : -1; /* it may still decode */
            verdict v = repair(s, bytes, zeroed ? s->size : size, hit, guess, what);
            bool index_is_whole = size + 24 >= s->size;
            CHECK(!index_is_whole || v.status == CATERVA_OK, "%s: nothing was found", what);
            free(bytes);
        }
    }
}

static void bytes_are_flipped(rng *r, const sample *s, int flips)
{
    char what[96];
    for (int i = 0; i < flips; i++) {
        uint8_t *bytes = copy_of(s);
        bool at_end = rng_one_in(r, 3), in_header = rng_one_in(r, 4);
        size_t span = at_end || in_header ? 300 : s->size;
        size_t at = (size_t)rng_between(r, 0, (int64_t)(span < s->size ? span : s->size) - 1);
        if (at_end && !in_header) at = s->size - 1 - at;
        bytes[at] ^= (uint8_t)(1u << rng_int(r, 0, 7));
        snprintf(what, sizeof what, "%s, byte %zu of %zu flipped", writer_names[s->writer],
                 at, s->size);
        /* Another shape, which nothing contradicts: no header of C-Blosc2's or of a
         * directory has a copy. */
        bool free_header =
            (s->writer == BLOSC2 || s->writer == SPARSE) && at < header_size(s);
        int64_t hit = s->writer == BLOSC2 ? hit_by(s, at) : -1;
        if (!free_header) repair(s, bytes, s->size, hit, 0, what);
        free(bytes);
    }
}

/* Where the header says that the index begins. */
static size_t index_position(const sample *s)
{
    enum { CBYTES_AT = 39 }; /* big-endian, see docs/format.md */
    size_t cbytes = 0;
    for (int i = 0; i < 8; i++) cbytes = cbytes << 8 | s->bytes[CBYTES_AT + i];
    return header_size(s) + (s->writer == SPARSE ? 0 : cbytes);
}

/* The seal names the chunks, and they are found where they are. */
static void indexes_are_lost(const sample *s)
{
    for (size_t size = 1; size <= 32; size += 31) {
        uint8_t *bytes = copy_of(s);
        memset(bytes + index_position(s), 0xff, size);
        verdict v = repair(s, bytes, s->size, -1, 0, "the index is overwritten");
        CHECK(v.status == CATERVA_OK && v.result.complete && v.result.written,
              "%s, index lost: %lld chunks lost", writer_names[s->writer],
              (long long)v.result.lost_chunks);
        free(bytes);
    }
}

/* Any damage at all: nothing but an end is asked for. */
static void anything_happens(rng *r, const sample *s, int rounds)
{
    char repaired[SCRATCH_PATH], path[SCRATCH_PATH];
    snprintf(repaired, sizeof repaired, "%.490s.repaired", s->path);
    for (int i = 0; i < rounds; i++) {
        uint8_t *bytes = copy_of(s);
        size_t size =
            rng_one_in(r, 4) ? (size_t)rng_between(r, 1, (int64_t)s->size) : s->size;
        for (int n = rng_int(r, 1, 12); n > 0; n--) {
            size_t span = rng_one_in(r, 2) && size > 200 ? 200 : size;
            size_t at = (size_t)rng_between(r, 0, (int64_t)span - 1);
            if (rng_one_in(r, 3)) at = size - 1 - at;
            bytes[at] = (uint8_t)rng_next(r);
        }
        caterva_repair_options options = CATERVA_REPAIR_INIT;
        caterva_repair_result result;
        options.durability = CATERVA_DURABLE_NONE;
        options.guess = 1;
        scratch_save(frame_path(s, path), bytes, size);
        (void)caterva_repair(s->path, &options, &result, NULL);
        scratch_remove(repaired);
        free(bytes);
        n_repairs++;
    }
}

/* A directory's chunk file is cut, emptied, or gone. */
static void chunk_files_are_lost(rng *r)
{
    for (int i = 0; i < 12; i++) {
        sample s = make_sample(r, SPARSE);
        char path[SCRATCH_PATH];
        int64_t chunk = rng_between(r, 0, s.n_chunks - 1);
        snprintf(path, sizeof path, "%.480s/%08llX.chunk", s.path,
                 (unsigned long long)s.chunks[chunk].pos);
        size_t size;
        uint8_t *bytes = scratch_load(path, &size);
        CHECK(bytes && size > 32, "no chunk file %s", path);
        if (i % 3 == 0)
            scratch_remove(path);
        else
            scratch_save(path, bytes, i % 3 == 1 ? 0 : size / 2);
        free(bytes);
        verdict v = repair(&s, NULL, 0, -1, 0, "a chunk file is lost");
        CHECK(v.status == CATERVA_OK && v.result.written && v.result.lost_chunks == 1,
              "%lld chunks lost", (long long)v.result.lost_chunks);
        free_sample(&s);
    }
}

static void run(rng *r, writer w, int flips)
{
    sample s = make_sample(r, w);
    verdict v = repair(&s, s.bytes, s.size, -1, 0, "a sound file");
    CHECK(v.status == CATERVA_OK && v.result.complete && !v.result.written &&
              !v.result.in_place,
          "a sound file was repaired");
    headers_come_back(&s);
    ends_are_cut(&s);
    bytes_are_flipped(r, &s, flips);
    anything_happens(r, &s, flips);
    if (w != BLOSC2) indexes_are_lost(&s);
    if (w == ONE_HANDLE || w == REOPENED) torn_headers_come_back(r, &s);
    free_sample(&s);
}

int main(int argc, char **argv)
{
    int flips = (int)number_argument(argc, argv, 1, DEFAULT_FLIPS);
    rng r = rng_from_seed(seed_argument(argc, argv, 2));
    blosc2_init();
    for (int w = ONE_HANDLE; w <= BLOSC2; w++) run(&r, (writer)w, flips);
    chunk_files_are_lost(&r);
    printf("%d repairs: %d in place, %d into a new array, %d hopeless; %d of older commits, "
           "%d in guessed order, %d mixed\n",
           n_repairs, n_in_place, n_written, n_hopeless, n_older, n_guessed, n_unseen);
    CHECK(n_in_place > 0 && n_written > 0 && n_older > 0 && n_guessed > 0, "a way untried");
    blosc2_destroy();
    return 0;
}
