/* Sequences of writes and changes of shape against a naive array, in memory, in files and in
 * directories. At the end of each, C-Blosc2 reads the result too.
 *
 * usage: test_shapes [sequences [seed]] */
#include "support/buffer.h"
#include "support/check.h"
#include "support/info.h"
#include "support/oracle.h"
#include "support/pipelines.h"
#include "support/scratch.h"

#include <b2nd.h>
#include <caterva_store.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SEQUENCES = 400, STEPS = 14, MAX_ITEMS = 4000, MAX_NDIM = 3 };

typedef struct run {
    rng r;
    geometry g;
    pipeline p;
    oracle now, committed;
    uint8_t *fill;
    caterva_array *array;
    char path[SCRATCH_PATH];
    char text[1024]; /* the operations so far */
} run;

static void note(run *t, const char *what, int axis, int64_t a, int64_t b)
{
    size_t used = strlen(t->text);
    snprintf(t->text + used, sizeof t->text - used, " %s(%d,%lld,%lld)", what, axis,
             (long long)a, (long long)b);
}

/* ---- The naive array ---------------------------------------------------- */

/* Item by item: the new array's cell at `to` is the old one's at `from`, where `axis` is
 * shifted by `shift` from `at` on; cells without a source hold the fill. */
static void naive_reshape(run *t, const int64_t *shape, int axis, int64_t at, int64_t shift)
{
    geometry g = t->g;
    memcpy(g.shape, shape, sizeof g.shape);
    oracle next = oracle_new(&g);
    oracle_fill(&next, t->fill);
    size_t item = (size_t)g.item_size;
    int64_t n = item > 0 ? (int64_t)(next.size / item) : 0;
    for (int64_t k = 0; k < n; k++) {
        int64_t rest = k, from = 0, index[CATERVA_MAX_DIMS];
        bool inside = true;
        for (int d = g.ndim - 1; d >= 0; d--) {
            index[d] = rest % g.shape[d];
            rest /= g.shape[d];
        }
        for (int d = 0; d < g.ndim; d++) {
            int64_t i = index[d];
            if (d == axis && i >= at) {
                i -= shift;
                inside = inside && i >= at;
                if (shift < 0) inside = i < t->g.shape[d];
            }
            inside = inside && i >= 0 && i < t->g.shape[d];
            from = from * t->g.shape[d] + i;
        }
        if (inside)
            memcpy(next.bytes + (size_t)k * item, t->now.bytes + (size_t)from * item, item);
    }
    oracle_free(&t->now);
    t->now = next;
    t->g = g;
}

/* ---- Steps -------------------------------------------------------------- */

static void step_write(run *t)
{
    caterva_error err;
    box b = random_box(&t->r, &t->g);
    size_t size = box_size(&b, &t->g);
    uint8_t *data = check_alloc(size);
    random_data(&t->r, data, size, t->g.item_size);
    oracle_write(&t->now, &b, data);
    note(t, "write", 0, 0, 0);
    CHECK_OK(caterva_write(t->array, b.start, b.stop, data, size, &err), err);
    free(data);
}

static void step_resize(run *t)
{
    caterva_error err;
    int64_t shape[CATERVA_MAX_DIMS] = {0};
    for (int d = 0; d < t->g.ndim; d++) {
        int64_t most = t->g.shape[d] * 2 > 30 ? 30 : t->g.shape[d] * 2 + 1;
        shape[d] = rng_one_in(&t->r, 2) ? t->g.shape[d] : rng_between(&t->r, 0, most);
        note(t, "resize", d, t->g.shape[d], shape[d]);
    }
    naive_reshape(t, shape, -1, 0, 0);
    CHECK_OK(caterva_resize(t->array, shape, &err), err);
}

/* A position or length; half the time a multiple of the chunk shape. */
static int64_t pick(run *t, int axis, int64_t low, int64_t high)
{
    int64_t i = rng_between(&t->r, low, high), chunk = t->g.chunk_shape[axis];
    int64_t aligned = i / chunk * chunk;
    return rng_one_in(&t->r, 2) && aligned >= low ? aligned : i;
}

static void step_insert(run *t)
{
    caterva_error err;
    int axis = rng_int(&t->r, 0, t->g.ndim - 1);
    int64_t old = t->g.shape[axis];
    int64_t at = rng_one_in(&t->r, 3) ? old : pick(t, axis, 0, old);
    int64_t n = pick(t, axis, 0, 2 * (int64_t)t->g.chunk_shape[axis]);
    bool with_data = !rng_one_in(&t->r, 3);
    int64_t shape[CATERVA_MAX_DIMS];
    memcpy(shape, t->g.shape, sizeof shape);
    shape[axis] += n;
    note(t, with_data ? "insert" : "gap", axis, at, n);
    naive_reshape(t, shape, axis, at, n);

    box b = whole_box(&t->g);
    b.start[axis] = at;
    b.stop[axis] = at + n;
    size_t size = box_size(&b, &t->g);
    uint8_t *data = check_alloc(size);
    random_data(&t->r, data, size, t->g.item_size);
    if (with_data) oracle_write(&t->now, &b, data);
    if (with_data && at == old && rng_one_in(&t->r, 2))
        CHECK_OK(caterva_append(t->array, axis, n, PLAIN(data, size), &err), err);
    else
        CHECK_OK(
            caterva_insert(t->array, axis, at, n, with_data ? PLAIN(data, size) : NULL, &err),
            err);
    free(data);
}

static void step_remove(run *t)
{
    caterva_error err;
    int axis = rng_int(&t->r, 0, t->g.ndim - 1);
    int64_t start = pick(t, axis, 0, t->g.shape[axis]);
    int64_t stop = pick(t, axis, start, t->g.shape[axis]);
    int64_t shape[CATERVA_MAX_DIMS];
    memcpy(shape, t->g.shape, sizeof shape);
    shape[axis] -= stop - start;
    note(t, "remove", axis, start, stop);
    naive_reshape(t, shape, axis, start, start - stop);
    CHECK_OK(caterva_remove(t->array, axis, start, stop, &err), err);
}

static void step_end(run *t)
{
    caterva_error err;
    if (rng_one_in(&t->r, 3)) {
        note(t, "rollback", 0, 0, 0);
        CHECK_OK(caterva_rollback(t->array, &err), err);
        oracle_free(&t->now);
        t->now = oracle_new(&t->committed.geometry);
        oracle_copy(&t->now, &t->committed);
        t->g = t->committed.geometry;
        return;
    }
    note(t, "commit", 0, 0, 0);
    CHECK_OK(caterva_commit(t->array, &err), err);
    oracle_free(&t->committed);
    t->committed = oracle_new(&t->g);
    oracle_copy(&t->committed, &t->now);
}

static void step_reopen(run *t)
{
    caterva_error err;
    if (t->path[0] == 'm') return;
    CHECK_OK(caterva_close(t->array, &err), err);
    oracle_free(&t->committed);
    t->committed = oracle_new(&t->g);
    oracle_copy(&t->committed, &t->now);
    note(t, "reopen", 0, 0, 0);
    caterva_open_options options = CATERVA_OPEN_INIT;
    options.mode = CATERVA_MODE_WRITE;
    options.durability = CATERVA_DURABILITY_NONE;
    CHECK_OK(caterva_open(t->path, &options, &t->array, &err), err);
}

/* ---- Comparing ---------------------------------------------------------- */

static void check_ours(const run *t)
{
    caterva_error err;
    const caterva_info *info = info_of(t->array);
    for (int d = 0; d < t->g.ndim; d++)
        CHECK(info->shape[d] == t->g.shape[d], "shape[%d] %lld:%s", d,
              (long long)info->shape[d], t->text);
    box all = whole_box(&t->g);
    uint8_t *got = check_alloc(t->now.size);
    CHECK_OK(caterva_read(t->array, all.start, all.stop, got, t->now.size, &err), err);
    CHECK(memcmp(got, t->now.bytes, t->now.size) == 0, "ours differs:%s", t->text);
    free(got);
}

static bool has_delta(const pipeline *p)
{
    for (int i = 0; i < CATERVA_MAX_FILTERS; i++)
        if (p->filters[i] == CATERVA_FILTER_DELTA) return true;
    return false;
}

static void check_theirs(const run *t)
{
    caterva_error err;
    void *frame;
    size_t size;
    if (has_delta(&t->p)) return; /* b2nd reads those wrongly, see test_updates.c */
    CHECK_OK(caterva_frame_copy(t->array, &frame, &size, &err), err);
    b2nd_array_t *theirs;
    CHECK(b2nd_from_cframe(frame, (int64_t)size, true, &theirs) >= 0, "b2nd opens:%s",
          t->text);
    uint8_t *got = check_alloc(t->now.size);
    if (t->now.size > 0)
        CHECK(b2nd_to_cbuffer(theirs, got, (int64_t)t->now.size) >= 0, "b2nd reads:%s",
              t->text);
    CHECK(memcmp(got, t->now.bytes, t->now.size) == 0, "b2nd's differs:%s", t->text);
    free(got);
    b2nd_free(theirs);
    caterva_free(frame);
}

static void begin(run *t)
{
    caterva_error err;
    do {
        t->g = random_geometry(&t->r, MAX_NDIM, MAX_ITEMS);
    } while (t->g.ndim == 0);
    t->p = random_pipeline(&t->r, t->g.item_size);
    t->fill = check_alloc((size_t)t->g.item_size);
    if (rng_one_in(&t->r, 2)) rng_fill(&t->r, t->fill, (size_t)t->g.item_size);
    t->now = oracle_new(&t->g);
    oracle_fill(&t->now, t->fill);
    t->committed = oracle_new(&t->g);
    oracle_copy(&t->committed, &t->now);
    geometry_text(&t->g, t->text, sizeof t->text);

    caterva_create_options options = options_for(&t->g, &t->p);
    options.fill = CATERVA_FILL_VALUE;
    options.fill_value = t->fill;
    options.durability = CATERVA_DURABILITY_NONE;
    int place = rng_int(&t->r, 0, 2);
    if (place == 2) options.layout = CATERVA_LAYOUT_SPARSE;
    scratch_path(t->path, "shapes.b2nd");
    if (place == 0) snprintf(t->path, sizeof t->path, "mem:");
    CHECK_OK(caterva_create(t->path, &options, &t->array, &err), err);
    CHECK_OK(caterva_commit(t->array, &err), err);
}

static void sequence(run *t)
{
    caterva_error err;
    begin(t);
    for (int i = 0; i < STEPS; i++) {
        int what = rng_int(&t->r, 0, 9);
        if (what < 3)
            step_write(t);
        else if (what < 5)
            step_resize(t);
        else if (what == 5 || what == 6)
            step_insert(t);
        else if (what == 7)
            step_remove(t);
        else if (what == 8)
            step_end(t);
        else
            step_reopen(t);
        if (t->now.size > 200000) break; /* grown enough */
        check_ours(t);
    }
    CHECK_OK(caterva_commit(t->array, &err), err);
    check_ours(t);
    check_theirs(t);
    CHECK_OK(caterva_close(t->array, &err), err);
    if (t->path[0] != 'm') scratch_remove(t->path);
    oracle_free(&t->now);
    oracle_free(&t->committed);
    free(t->fill);
}

int main(int argc, char **argv)
{
    int sequences = (int)number_argument(argc, argv, 1, SEQUENCES);
    static run t;
    t.r = rng_from_seed(seed_argument(argc, argv, 2));
    blosc2_init();
    for (int i = 0; i < sequences; i++) sequence(&t);
    blosc2_destroy();
    printf("%d sequences, all as the naive array says\n", sequences);
    return 0;
}
