/* Test support: see repaired.h. The samples are written by this library in three ways, and by
 * C-Blosc2. The results are checked through the public API and through libblosc2. */
#include "repaired.h"

#include "check.h"
#include "info.h"
#include "pipelines.h"

#include <b2nd.h>
#include <blosc2.h>
#include <caterva_upkeep.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

const char *const writer_names[] = {"one handle", "reopened", "sparse", "C-Blosc2"};

repair_counts repairs_judged;

/* The callbacks of a repair, counted. */
typedef struct report {
    int lost[REPAIRED_CHUNKS];
    int64_t n_lost, n_elsewhere;
    int found;
} report;

static const geometry shape = {.ndim = 2,
                               .shape = {50, 60},
                               .chunk_shape = {20, 25},
                               .block_shape = {10, 9},
                               .item_size = 4};

/* ---- Good files ------------------------------------------------------------- */

static void add_state(sample *s)
{
    oracle *next = &s->states[s->n_states];
    *next = oracle_new(&s->geometry);
    if (s->n_states > 0) oracle_copy(next, &s->states[s->n_states - 1]);
    s->n_states++;
}

void sample_change(rng *r, sample *s, caterva_array *array)
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
    options.durability = again.durability = CATERVA_DURABILITY_NONE;
    options.layout = s->writer == SPARSE ? CATERVA_LAYOUT_SPARSE : CATERVA_LAYOUT_CONTIGUOUS;
    again.mode = CATERVA_MODE_WRITE;
    CHECK_OK(caterva_create(s->path, &options, &array, &err), err);
    for (int i = 0; i < REPAIRED_COMMITS; i++) {
        sample_change(r, s, array);
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

const char *sample_frame_path(const sample *s, char path[SCRATCH_PATH])
{
    snprintf(path, SCRATCH_PATH, "%.490s%s", s->path,
             s->writer == SPARSE ? "/chunks.b2frame" : "");
    return path;
}

sample sample_make(rng *r, writer w)
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
    s.bytes = scratch_load(sample_frame_path(&s, path), &s.size);
    CHECK_OK(caterva_open(s.path, NULL, &array, &err), err);
    s.n_chunks = info_of(array)->n_chunks;
    CHECK(s.n_chunks <= REPAIRED_CHUNKS, "%lld chunks", (long long)s.n_chunks);
    for (int64_t i = 0; i < s.n_chunks; i++) {
        caterva_chunk_info info = CATERVA_CHUNK_INFO_INIT;
        CHECK_OK(caterva_chunk_describe(array, i, &info, &err), err);
        s.chunks[i] = (extent){info.position, info.stored_bytes};
    }
    caterva_discard(array);
    return s;
}

void sample_free(sample *s)
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
    else if (damage->chunk < REPAIRED_CHUNKS && !r->lost[damage->chunk]++)
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

/* Whether the array has uninitialised chunks, which read differently each time. An unsealed index
 * has no checksum, so a bit flip can make a chunk uninitialised. */
static bool holds_anything(const char *path)
{
    caterva_array *array;
    caterva_error err;
    bool found = false;
    CHECK_OK(caterva_open(path, NULL, &array, &err), err);
    for (int64_t i = 0; i < info_of(array)->n_chunks; i++) {
        caterva_chunk_info info = CATERVA_CHUNK_INFO_INIT;
        CHECK_OK(caterva_chunk_describe(array, i, &info, &err), err);
        found = found || info.kind == CATERVA_CHUNK_UNINIT;
    }
    caterva_discard(array);
    return found;
}

static oracle read_repaired(const sample *s, const char *path, const char *what)
{
    caterva_array *array;
    caterva_error err;
    caterva_verify_result result = CATERVA_VERIFY_RESULT_INIT;
    oracle got = oracle_new(&s->geometry);
    box all = whole_box(&s->geometry);
    caterva_status status = caterva_open(path, NULL, &array, &err);
    CHECK(status == CATERVA_OK, "%s: does not open: %s", what, err.message);
    const caterva_info *info = info_of(array);
    CHECK(info->data_bytes == (int64_t)got.size, "%s: another shape", what);
    CHECK_OK(caterva_verify(array, NULL, &result, &err), err);
    CHECK(result.damages == 0, "%s: %lld damages left", what, (long long)result.damages);
    CHECK_OK(caterva_read(array, all.start, all.stop, got.bytes, got.size, &err), err);
    caterva_discard(array);
    return got;
}

/* Checks that the kept chunks are from one state: the last one, unless the repair reports an older
 * one. Chunk `hit` may contain anything that decodes; with `hit` -2, any chunk may. */
static void check_chunks(const sample *s, const oracle *got, const report *reported,
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
            if (reported->lost[i] || i == hit || hit == -2) continue;
            fits = same_chunk(s, i, got, &s->states[state]);
            if (!fits) wrong = i;
        }
    }
    /* In files of this library, the same or the next handle reuses the space of chunks that only an
     * older commit needs. In files of other writers, the position of chunks is not known here. */
    bool reused = s->writer == ONE_HANDLE || s->writer == REOPENED;
    bool may_mix = result->found == CATERVA_FOUND_OLDER && (reused || hit != -1);
    repairs_judged.mixed += !fits;
    CHECK(fits || may_mix, "%s: chunk %lld was never committed so", what, (long long)wrong);
    for (int64_t i = 0; i < s->n_chunks && result->written; i++)
        CHECK(!reported->lost[i] || same_chunk(s, i, got, &filled),
              "%s: chunk %lld is not fill", what, (long long)i);
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

/* Whether all bytes that differ lie in `most` consecutive bytes, none of them before `first`. */
static bool differs_within(const uint8_t *a, const uint8_t *b, size_t size, size_t first,
                           size_t most)
{
    size_t low = 0, high = size;
    while (low < size && a[low] == b[low]) low++;
    while (high > low && a[high - 1] == b[high - 1]) high--;
    return low >= first && high - low <= most;
}

/* Checks that a repair in place changed only the header, or only the copy of a good header, and
 * that a second repair changes nothing. */
static void check_in_place(const sample *s, const uint8_t *before, size_t size,
                           caterva_found found, const char *what)
{
    enum { COPY_HAS_MORE = 24 };
    size_t now_size, header = (size_t)before[14] | (size_t)before[13] << 8;
    char path[SCRATCH_PATH];
    uint8_t *now = scratch_load(sample_frame_path(s, path), &now_size);
    caterva_error err;
    caterva_repair_result result = CATERVA_REPAIR_RESULT_INIT;
    header = (size_t)now[14] | (size_t)now[13] << 8;
    bool is_copy = found == CATERVA_FOUND_STANDING;
    size_t most = header + COPY_HAS_MORE;
    bool is_good =
        now_size == size && memcmp(now + header, before + header, size - header) == 0;
    if (is_copy) /* the copy is at the end, which may have been cut off */
        is_good = now_size >= size && now_size - size <= most &&
                  differs_within(now, before, size, header, most);
    CHECK(is_good, "%s: more than the header%s changed", what, is_copy ? "'s copy" : "");
    free(now);
    CHECK_OK(caterva_repair(s->path, NULL, &result, &err), err);
    CHECK(result.complete && !result.in_place && !result.written, "%s: not idempotent", what);
}

verdict judge_repair(const sample *s, const uint8_t *bytes, size_t size, int64_t hit,
                     int guess, const char *what)
{
    char path[SCRATCH_PATH], repaired[SCRATCH_PATH];
    caterva_error err;
    report reported = {.found = 0};
    verdict v = {.result = CATERVA_REPAIR_RESULT_INIT};
    caterva_repair_options options = CATERVA_REPAIR_INIT;
    options.durability = CATERVA_DURABILITY_NONE;
    options.guess = guess;
    options.threads = 2;
    options.on_damage = on_damage;
    options.on_found = on_found;
    options.context = &reported;
    snprintf(repaired, sizeof repaired, "%.490s.repaired", s->path);
    scratch_remove(repaired);
    if (bytes) scratch_save(sample_frame_path(s, path), bytes, size);

    v.status = caterva_repair(s->path, &options, &v.result, &err);
    repairs_judged.n++;
    struct stat st;
    bool there = stat(repaired, &st) == 0;
    CHECK(there == (v.status == CATERVA_OK && v.result.written), "%s: output", what);
    if (v.status != CATERVA_OK) {
        CHECK(err.code == v.status && err.message[0], "%s: no sentence", what);
        repairs_judged.hopeless++;
        return v;
    }
    CHECK(reported.found == 1, "%s: on_found %d times", what, reported.found);
    CHECK(reported.n_lost == v.result.lost_chunks, "%s: %lld chunks reported, %lld lost",
          what, (long long)reported.n_lost, (long long)v.result.lost_chunks);
    repairs_judged.in_place += v.result.in_place;
    repairs_judged.written += v.result.written;
    repairs_judged.older += v.result.found == CATERVA_FOUND_OLDER;
    repairs_judged.guessed += v.result.found == CATERVA_FOUND_ORDER;
    oracle got = read_repaired(s, v.result.written ? repaired : s->path, what);
    /* If the repair did not change a damaged file, C-Blosc2 may be unable to read it. */
    const char *now = v.result.written ? repaired : s->path;
    bool is_ours = hit == -1 || v.result.in_place || v.result.written;
    if (is_ours && !(hit != -1 && holds_anything(now))) read_with_b2nd(now, &got, what);
    check_chunks(s, &got, &reported, &v.result, hit, what);
    oracle_free(&got);
    if (v.result.complete && hit == -1)
        check_step(s, v.result.written ? repaired : s->path, what);
    if (v.result.in_place) check_in_place(s, bytes, size, v.result.found, what);
    scratch_remove(repaired);
    return v;
}
