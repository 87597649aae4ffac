/* Crashes at every point of a series of changes of shape and attributes. What is on disk then
 * opens, with this reader and with C-Blosc2's, and is exactly the last acknowledged state or
 * the one in flight, in shape, items and attribute. (tests/compat/test_shapes.c checks the
 * states themselves.)
 *
 * usage: test_shapes [SEED | --long [SEED]] */
#include "crash.h"
#include "frame/commit.h"
#include "support/buffer.h"
#include "support/info.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { COMMITS = 10, MOST_ITEMS = 6000 };

static uint64_t seed;
static int rounds = 2; /* of each durability */
static int n_images;

/* What identifies a state. */
typedef struct view {
    int64_t shape[2];
    uint8_t *items;
    size_t size;
    char note[16]; /* the attribute "note", or "" */
} view;

typedef struct trial {
    rng random;
    caterva_array *array;
    caterva_durability durability;
    view views[COMMITS + 1];
    int n_views;
} trial;

static view look(caterva_array *array)
{
    caterva_error err;
    view v = {.note = ""};
    const int64_t origin[2] = {0, 0};
    memcpy(v.shape, info_of(array)->shape, sizeof v.shape);
    v.size = (size_t)info_of(array)->data_bytes;
    v.items = check_alloc(v.size);
    CHECK_OK(caterva_read(array, origin, v.shape, v.items, v.size, &err), err);
    void *note;
    size_t size;
    if (caterva_attr_get(array, "note", &note, &size, NULL) == CATERVA_OK) {
        CHECK(size < sizeof v.note, "a note of %zu bytes", size);
        memcpy(v.note, note, size);
        caterva_free(note);
    }
    return v;
}

static bool same(const view *a, const view *b)
{
    return memcmp(a->shape, b->shape, sizeof a->shape) == 0 &&
           memcmp(a->items, b->items, a->size) == 0 && strcmp(a->note, b->note) == 0;
}

/* ---- The life ------------------------------------------------------------ */

static void change_something(trial *t)
{
    caterva_error err;
    rng *r = &t->random;
    int64_t shape[2];
    memcpy(shape, info_of(t->array)->shape, sizeof shape);
    int axis = rng_int(r, 0, 1), what = rng_int(r, 0, 6);
    int64_t n = rng_between(r, 1, 30), at = rng_between(r, 0, shape[axis]);
    int32_t *data = check_alloc(MOST_ITEMS * 2 * sizeof *data);
    rng_fill(r, data, MOST_ITEMS * 2 * sizeof *data);
    size_t slab = (size_t)(n * shape[1 - axis]);
    char note[16];
    snprintf(note, sizeof note, "%d", rng_int(r, 0, 99999));

    if (what == 0 || (what < 3 && shape[0] * shape[1] + (int64_t)slab > MOST_ITEMS)) {
        shape[axis] = at;
        CHECK_OK(caterva_resize(t->array, shape, &err), err);
    } else if (what == 1) {
        CHECK_OK(caterva_append(t->array, axis, n, PLAIN(data, slab * sizeof *data), &err),
                 err);
    } else if (what == 2) {
        CHECK_OK(
            caterva_insert(t->array, axis, at, n, PLAIN(data, slab * sizeof *data), &err),
            err);
    } else if (what == 3) {
        CHECK_OK(caterva_remove(t->array, axis, at / 2, at, &err), err);
    } else if (what == 4) {
        CHECK_OK(caterva_attr_set(t->array, "note", note, strlen(note), &err), err);
    } else if (what == 5) {
        caterva_status status = caterva_attr_delete(t->array, "note", &err);
        CHECK(status == CATERVA_OK || status == CATERVA_ENOTFOUND, "%s", err.message);
    } else if (shape[0] * shape[1] <= MOST_ITEMS) {
        const int64_t origin[2] = {0, 0};
        size_t size = (size_t)(shape[0] * shape[1]) * sizeof *data;
        CHECK_OK(caterva_write(t->array, origin, shape, data, size, &err), err);
    }
    free(data);
}

static void commit(trial *t)
{
    caterva_error err;
    cv_store *store = t->array->frame->store;
    int64_t before = cv_store_fault_count(store);
    t->views[t->n_views] = look(t->array);
    CHECK_OK(caterva_commit(t->array, &err), err);
    if (cv_store_fault_count(store) > before)
        cv_store_fault_mark(store, t->n_views++);
    else
        free(t->views[t->n_views].items);
}

/* ---- What a crash leaves ------------------------------------------------- */

static int find_view(const trial *t, const view *v, int64_t low, int64_t high)
{
    for (int64_t i = low < 0 ? 0 : low; i <= high && i < t->n_views; i++)
        if (same(v, &t->views[i])) return (int)i;
    return -1;
}

static void check_image_of(trial *t, const uint8_t *bytes, size_t size, int64_t low,
                           int64_t high, const char *what)
{
    caterva_array *array = open_image(bytes, size, what);
    view v = look(array);
    caterva_discard(array);
    int found = find_view(t, &v, low, high);
    CHECK(found >= 0, "%s: none of the states %lld to %lld, but %d", what, (long long)low,
          (long long)high, find_view(t, &v, 0, t->n_views - 1));
    oracle state = {.bytes = v.items, .size = v.size};
    if (v.size > 0) check_with_blosc2(bytes, size, &state, what);
    free(v.items);
    n_images++;
}

static void check_point(trial *t, cv_crash_model model, int64_t point, size_t part)
{
    const cv_store *store = t->array->frame->store;
    caterva_error err;
    uint8_t *bytes;
    size_t size;
    int64_t mark;
    cv_crash crash = {model, point, part, rng_next(&t->random)};
    CHECK_OK(cv_store_fault_image(store, &crash, &bytes, &size, &mark, &err), err);
    bool may_lose_one =
        model == CV_CRASH_POWER && t->durability == CATERVA_DURABILITY_ORDERED;
    if (mark < 0) mark = 0; /* the state before the journal */
    char what[120];
    snprintf(what, sizeof what, "model %d at %lld, part %zu, flips %llu", (int)model,
             (long long)point, part, (unsigned long long)crash.seed);
    check_image_of(t, bytes, size, mark - may_lose_one, mark + 1, what);
    free(bytes);
}

static void check_trial(trial *t)
{
    int64_t n = cv_store_fault_journal_size(t->array->frame->store);
    for (int64_t point = 0; point <= n; point++) {
        check_point(t, CV_CRASH_PREFIX, point, 0);
        if (point < n && may_tear(t->array->frame->store, point)) {
            int64_t size = cv_store_fault_journal_bytes(t->array->frame->store, point);
            check_point(t, CV_CRASH_TORN, point,
                        (size_t)rng_between(&t->random, 1, size - 1));
        }
        for (int i = 0; i < 2 && t->durability != CATERVA_DURABILITY_NONE; i++)
            check_point(t, CV_CRASH_POWER, point, 0);
    }
}

static void run_trial(uint64_t own_seed, caterva_durability durability)
{
    static const geometry start = {.ndim = 2,
                                   .shape = {50, 60},
                                   .chunk_shape = {20, 25},
                                   .block_shape = {10, 9},
                                   .item_size = 4};
    trial t = {.random = rng_from_seed(own_seed), .durability = durability};
    caterva_array *first = made_array("mem:", &start, &made_lz4, CATERVA_LAYOUT_CONTIGUOUS);
    caterva_error err;
    CHECK_OK(caterva_commit(first, &err), err);
    size_t size;
    uint8_t *bytes = made_bytes(first, &size);
    caterva_discard(first);
    t.array = made_faulty(made_memory(bytes, size), durability);
    free(bytes);
    t.views[t.n_views++] = look(t.array);
    for (int i = 0; i < COMMITS; i++) {
        for (int k = rng_int(&t.random, 1, 3); k > 0; k--) change_something(&t);
        commit(&t);
    }
    cv_txn_tidy(t.array->pending->txn); /* as a close does: the same state */
    check_trial(&t);
    caterva_discard(t.array);
    for (int i = 0; i < t.n_views; i++) free(t.views[i].items);
}

static void changes_survive(void **state)
{
    (void)state;
    rng r = rng_from_seed(seed);
    for (int i = 0; i < rounds; i++)
        for (int d = CATERVA_DURABILITY_FULL; d <= CATERVA_DURABILITY_NONE; d++)
            run_trial(rng_next(&r), (caterva_durability)d);
}

int main(int argc, char **argv)
{
    bool is_long = argc > 1 && strcmp(argv[1], "--long") == 0;
    if (is_long) rounds = 60;
    seed = seed_argument(argc, argv, is_long ? 2 : 1);
    blosc2_init();
    const struct CMUnitTest tests[] = {cmocka_unit_test(changes_survive)};
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    blosc2_destroy();
    printf("%d crash images\n", n_images);
    return failed;
}
