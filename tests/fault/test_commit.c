/* Crashes at every point of a writer's life. What is on disk then opens, with this reader and
 * with C-Blosc2's, and is exactly the last acknowledged commit or, while one is in flight,
 * exactly the next. Images are made from the journal of the fault store: whole prefixes, torn
 * writes, and sectors lost in a power cut.
 *
 * usage: test_commit [SEED | --long [SEED]] */
#include "base/arith.h"
#include "crash.h"
#include "engine/write/flush.h"
#include "frame/commit.h"
#include "frame/frame.h"
#include "frame/lookup.h"
#include "store/memory.h"

#include <caterva_store.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static uint64_t seed;
static int rounds = 1; /* of each workload and durability */
static int n_images;
static int n_tidied; /* closes that moved the tail */

/* ---- Workloads ------------------------------------------------------------------ */

typedef void workload(rng *r, caterva_array *array, history *h);

static void write_box(rng *r, caterva_array *array, history *h, box b)
{
    caterva_error err;
    CHECK_OK(write_random(r, array, h, &b, &err), err);
}

static void aligned_overwrites(rng *r, caterva_array *array, history *h)
{
    for (int i = rng_int(r, 1, 2); i > 0; i--)
        write_box(r, array, h, chunk_box(r, &h->geometry));
}

static void unaligned_overwrites(rng *r, caterva_array *array, history *h)
{
    for (int i = rng_int(r, 1, 3); i > 0; i--)
        write_box(r, array, h, random_box(r, &h->geometry));
}

static void many_small_writes(rng *r, caterva_array *array, history *h)
{
    for (int i = 0; i < 30; i++) {
        box b = random_box(r, &h->geometry);
        for (int d = 0; d < h->geometry.ndim; d++)
            if (b.stop[d] > b.start[d] + 2) b.stop[d] = b.start[d] + 2;
        write_box(r, array, h, b);
    }
}

static void roll_back(caterva_array *array, history *h)
{
    caterva_error err;
    CHECK_OK(caterva_rollback(array, &err), err);
    memset(h->now.bytes, 0, h->now.size);
    if (h->n_states > 0) oracle_copy(&h->now, &h->states[h->n_states - 1]);
}

/* Chunks reach the store before the commit, and some are rolled back. */
static void everything_with_rollbacks(rng *r, caterva_array *array, history *h)
{
    caterva_error err;
    for (int i = rng_int(r, 1, 5); i > 0; i--) {
        if (rng_one_in(r, 2))
            aligned_overwrites(r, array, h);
        else
            unaligned_overwrites(r, array, h);
        if (rng_one_in(r, 3)) CHECK_OK(cv_pending_flush(array->pending, &err), err);
        if (rng_one_in(r, 4)) roll_back(array, h);
    }
    write_box(r, array, h, chunk_box(r, &h->geometry));
}

/* ---- Judging -------------------------------------------------------------------- */

/* One run: its array, its expected states, and what may be lost. */
typedef struct trial {
    caterva_array *array;
    history history;
    caterva_durability durability;
    int64_t published; /* journal entry that made the file visible; -1: none */
    rng random;
} trial;

/* An image must be readable and writable. */
static void check_life_goes_on(trial *t, const uint8_t *bytes, size_t size, int state)
{
    caterva_error err;
    caterva_array *array;
    caterva_open_options options = CATERVA_OPEN_INIT;
    options.mode = CATERVA_MODE_WRITE;
    CHECK_OK(caterva_frame_open(bytes, size, 1, &options, &array, &err), err);
    history h = history_new(&t->history.geometry);
    oracle_copy(&h.now, &t->history.states[state]);
    box b = random_box(&t->random, &h.geometry);
    CHECK_OK(write_random(&t->random, array, &h, &b, &err), err);
    CHECK_OK(caterva_commit(array, &err), err);
    size_t after_size;
    uint8_t *after = made_bytes(array, &after_size);
    caterva_discard(array);
    history_add(&h);
    check_image(&h, after, after_size, 0, 0, "the image, written on");
    free(after);
    history_free(&h);
}

static void check_point(trial *t, cv_crash_model model, int64_t point, size_t part)
{
    static const char *const names[] = {"prefix", "torn", "power"};
    const cv_store *store = t->array->frame->store;
    caterva_error err;
    uint8_t *bytes;
    size_t size;
    int64_t mark;
    cv_crash crash = {model, point, part, rng_next(&t->random)};
    if (point <= t->published) return; /* not visible yet */
    CHECK_OK(cv_store_fault_image(store, &crash, &bytes, &size, &mark, &err), err);
    bool may_lose_one =
        model == CV_CRASH_POWER && t->durability == CATERVA_DURABILITY_ORDERED;
    char what[120];
    snprintf(what, sizeof what, "%s image at %lld, part %zu, flips %llu", names[model],
             (long long)point, part, (unsigned long long)crash.seed);
    int state =
        check_image(&t->history, bytes, size, (int)mark - may_lose_one, (int)mark + 1, what);
    if (rng_one_in(&t->random, 8)) check_life_goes_on(t, bytes, size, state);
    free(bytes);
    n_images++;
}

static void check_trial(trial *t)
{
    int64_t n = cv_store_fault_journal_size(t->array->frame->store);
    for (int64_t point = 0; point <= n; point++) {
        check_point(t, CV_CRASH_PREFIX, point, 0);
        if (point < n && may_tear(t->array->frame->store, point)) {
            int64_t size = cv_store_fault_journal_bytes(t->array->frame->store, point);
            check_point(t, CV_CRASH_TORN, point, 1);
            check_point(t, CV_CRASH_TORN, point,
                        (size_t)rng_between(&t->random, 1, size - 1));
        }
        for (int i = 0; i < 3 && t->durability != CATERVA_DURABILITY_NONE; i++)
            check_point(t, CV_CRASH_POWER, point, 0);
    }
}

/* ---- Trials --------------------------------------------------------------------- */

/* An empty commit makes no state; it does not sync either. */
static void commit(trial *t)
{
    caterva_error err;
    cv_store *store = t->array->frame->store;
    int64_t before = cv_store_fault_count(store);
    int state = history_add(&t->history);
    CHECK_OK(caterva_commit(t->array, &err), err);
    if (cv_store_fault_count(store) > before)
        cv_store_fault_mark(store, state);
    else
        oracle_free(&t->history.states[--t->history.n_states]);
}

/* What a close does: the same state in a smaller file, at every crash point. */
static void tidy(trial *t)
{
    const cv_store *store = t->array->frame->store;
    int64_t before = cv_store_fault_count(store);
    cv_txn_tidy(t->array->pending->txn);
    n_tidied += cv_store_fault_count(store) > before + 2; /* more than sync and truncate */
    size_t size;
    uint8_t *bytes = made_bytes(t->array, &size);
    CHECK(size == cv_load_be64(bytes + 16), "a file of %zu bytes, a frame of %llu", size,
          (unsigned long long)cv_load_be64(bytes + 16));
    free(bytes);
}

static void run_trial(trial *t, workload *work)
{
    for (int i = rng_int(&t->random, 3, 5); i > 0; i--) {
        work(&t->random, t->array, &t->history);
        commit(t);
    }
    tidy(t);
    check_trial(t);
    caterva_discard(t->array);
    history_free(&t->history);
}

/* A new array, published by its first commit. */
static caterva_array *new_array(const geometry *g, const pipeline *p,
                                caterva_durability durability)
{
    caterva_error err;
    cv_store *memory, *store;
    cv_frame *frame;
    caterva_array *array;
    caterva_array *model = made_array("mem:", g, p, CATERVA_LAYOUT_CONTIGUOUS);
    cv_frame_seed first = {.header = model->snapshot->header,
                           .initial_offset = cv_offset_of_kind(CV_REF_ZEROS)};
    CHECK_OK(cv_store_memory_create(&memory, &err), err);
    CHECK_OK(cv_store_fault_create(memory, &store, &err), err);
    CHECK_OK(cv_frame_create(store, &first, durability, &frame, &err), err);
    CHECK_OK(cv_array_new(frame, true, 1, &array, &err), err);
    caterva_discard(model);
    return array;
}

static int64_t find_publish(const caterva_array *array)
{
    const cv_fault_journal *journal = cv_store_fault_journal(array->frame->store);
    for (size_t i = 0; i < journal->n_entries; i++)
        if (journal->entries[i].kind == CV_FAULT_ENTRY_PUBLISH) return (int64_t)i;
    CHECK(false, "never published");
    return -1;
}

static trial start_new(uint64_t own_seed, caterva_durability durability)
{
    trial t = {.durability = durability, .random = rng_from_seed(own_seed)};
    geometry g = crash_geometry();
    pipeline p = random_pipeline(&t.random, g.item_size);
    t.history = history_new(&g);
    t.array = new_array(&g, &p, durability);
    unaligned_overwrites(&t.random, t.array, &t.history);
    commit(&t);
    t.published = find_publish(t.array);
    return t;
}

/* An existing array; `foreign`: made by C-Blosc2. */
static trial start_existing(uint64_t own_seed, caterva_durability durability, bool foreign)
{
    trial t = start_new(own_seed, durability);
    size_t size;
    uint8_t *bytes = made_bytes(t.array, &size);
    caterva_discard(t.array);
    if (foreign) {
        b2nd_array_t *array;
        uint8_t *frame;
        int64_t frame_size;
        bool needs_free;
        CHECK(b2nd_from_cframe(bytes, (int64_t)size, true, &array) >= 0, "no frame");
        CHECK(b2nd_set_slice_cbuffer(t.history.now.bytes, t.history.geometry.shape,
                                     (int64_t)t.history.now.size, (int64_t[]){0, 0},
                                     t.history.geometry.shape, array) >= 0,
              "no slice");
        CHECK(b2nd_to_cframe(array, &frame, &frame_size, &needs_free) >= 0, "no cframe");
        t.array = made_faulty(made_memory(frame, (size_t)frame_size), durability);
        if (needs_free) free(frame);
        b2nd_free(array);
    } else {
        t.array = made_faulty(made_memory(bytes, size), durability);
    }
    free(bytes);
    t.published = -1;
    cv_store_fault_mark(t.array->frame->store, 0);
    uint8_t *got = check_alloc(t.history.now.size);
    read_all(t.array, &t.history.geometry, got);
    CHECK(history_find(&t.history, got, 0, 0) == 0, "not what was written");
    free(got);
    return t;
}

static void run_everywhere(workload *work)
{
    for (int i = 0; i < rounds; i++) {
        for (int d = CATERVA_DURABILITY_FULL; d <= CATERVA_DURABILITY_NONE; d++) {
            uint64_t own = seed + (uint64_t)i * 16 + (uint64_t)d;
            trial t = start_new(own, (caterva_durability)d);
            run_trial(&t, work);
            t = start_existing(own + 4, (caterva_durability)d, false);
            run_trial(&t, work);
            t = start_existing(own + 8, (caterva_durability)d, true);
            run_trial(&t, work);
        }
    }
}

static void aligned_overwrites_survive(void **state)
{
    (void)state;
    run_everywhere(aligned_overwrites);
}

static void unaligned_overwrites_survive(void **state)
{
    (void)state;
    run_everywhere(unaligned_overwrites);
}

static void many_small_writes_survive(void **state)
{
    (void)state;
    run_everywhere(many_small_writes);
}

static void rollbacks_leave_nothing_behind(void **state)
{
    (void)state;
    run_everywhere(everything_with_rollbacks);
}

int main(int argc, char **argv)
{
    bool is_long = argc > 1 && strcmp(argv[1], "--long") == 0;
    if (is_long) rounds = 10;
    seed = seed_argument(argc, argv, is_long ? 2 : 1);
    blosc2_init();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(aligned_overwrites_survive),
        cmocka_unit_test(unaligned_overwrites_survive),
        cmocka_unit_test(many_small_writes_survive),
        cmocka_unit_test(rollbacks_leave_nothing_behind),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    printf("%d crash images, %d tails moved by a close\n", n_images, n_tidied);
    return failed;
}
