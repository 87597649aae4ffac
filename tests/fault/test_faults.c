/* Every changing operation of the store fails, one after the other: once, for
 * good, or half done; and every read. An error is returned, the handle stays
 * usable or says that it is not, the committed state opens and is right, and
 * once the trouble is over the same work succeeds.
 *
 * usage: test_faults [SEED] */
#include "crash.h"
#include "engine/write/flush.h"
#include "frame/chunk_ref.h"
#include "frame/frame.h"
#include "store/memory.h"
#include "support/behind.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { STEPS = 8 };

static uint64_t seed;
static bool behind; /* chunks are put while others are encoded */

/* A writer's life up to the fault: states[committed] is acknowledged; a commit
 * that failed may have made the last state the stored one. */
typedef struct victim {
    caterva_array *array;
    history history;
    int committed;
    rng random;
} victim;

static cv_store *store_of(const victim *v) { return v->array->frame->store; }

static victim new_victim(const uint8_t *bytes, size_t size, const history *start)
{
    victim v = {.history = history_new(&start->geometry)};
    v.random = rng_from_seed(seed);
    v.array = made_faulty(bytes, size, CATERVA_DURABILITY_FULL);
    if (behind) put_behind(v.array);
    oracle_copy(&v.history.now, &start->now);
    v.committed = history_add(&v.history);
    return v;
}

static void free_victim(victim *v)
{
    caterva_discard(v->array);
    history_free(&v->history);
}

/* What lies in the store now, as a process that opens it would find it. */
static void check_stored(const victim *v, const char *what)
{
    caterva_error err;
    uint8_t *bytes;
    size_t size;
    int64_t mark;
    cv_crash now = {.model = CV_CRASH_PREFIX,
                    .point = cv_store_fault_journal_size(store_of(v))};
    CHECK_OK(cv_store_fault_image(store_of(v), &now, &bytes, &size, &mark, &err), err);
    check_image(&v->history, bytes, size, v->committed, v->history.n_states - 1, what);
    free(bytes);
}

static void check_error(caterva_status status, const caterva_error *err, const char *what)
{
    CHECK(status == CATERVA_EIO, "%s: %s", what, caterva_status_name(status));
    CHECK(err->code == CATERVA_EIO && err->message[0] != 0, "%s: no sentence", what);
}

/* A write that is not refused at once is refused by its commit. */
static void check_refused(victim *v, const box *b, const char *what)
{
    caterva_error err;
    caterva_status status = write_random(&v->random, v->array, &v->history, b, &err);
    if (status == CATERVA_OK) status = caterva_commit(v->array, &err);
    check_error(status, &err, what);
    check_stored(v, what);
}

static void check_refused_at_once(victim *v, const box *b, const char *what)
{
    caterva_error err;
    check_error(write_random(&v->random, v->array, &v->history, b, &err), &err, what);
    check_error(caterva_attr_set(v->array, "late", "x", 1, &err), &err, what);
    check_stored(v, what);
}

/* Poisoned: nothing more may change what is stored, and each call says so. */
static void check_poisoned(victim *v, const char *what)
{
    caterva_error err;
    box all = whole_box(&v->history.geometry);
    for (int i = 0; i < 6; i++) {
        box b = i % 2 ? random_box(&v->random, &v->history.geometry)
                      : chunk_box(&v->random, &v->history.geometry);
        if (box_items(&b, v->history.geometry.ndim) > 0) check_refused_at_once(v, &b, what);
    }
    check_refused_at_once(v, &all, what);
    CHECK_OK(caterva_rollback(v->array, &err), err);
    check_refused_at_once(v, &all, what);
}

/* Not poisoned, and the fault is over: the work is done again and succeeds. */
static void check_recovers(victim *v, const box *again, const char *what)
{
    caterva_error err;
    box another = chunk_box(&v->random, &v->history.geometry);
    CHECK_OK(write_random(&v->random, v->array, &v->history, again, &err), err);
    check_stored(v, what);
    CHECK_OK(write_random(&v->random, v->array, &v->history, &another, &err), err);
    check_stored(v, what);
    v->committed = history_add(&v->history);
    CHECK_OK(caterva_commit(v->array, &err), err);
    check_stored(v, what);

    uint8_t *got = check_alloc(v->history.now.size);
    read_all(v->array, &v->history.geometry, got);
    CHECK(memcmp(got, v->history.now.bytes, v->history.now.size) == 0, "%s: reads otherwise",
          what);
    free(got);
}

/* Writes and commits until something fails; *again: what must be written again. */
static caterva_status work(victim *v, box *again, caterva_error *err)
{
    for (int step = 0; step < STEPS; step++) {
        *again = step % 2 ? random_box(&v->random, &v->history.geometry)
                          : chunk_box(&v->random, &v->history.geometry);
        CV_TRY(write_random(&v->random, v->array, &v->history, again, err));
        if (step % 4 == 1) CV_TRY(cv_pending_flush(v->array->pending, err));
        if (step % 4 != 3) continue;
        int state = history_add(&v->history);
        CV_TRY(caterva_commit(v->array, err));
        v->committed = state;
    }
    return CATERVA_OK;
}

/* True when the fault was reached. */
static bool fail_at(victim *v, cv_fault_kind kind, int64_t n, const char *what)
{
    caterva_error err = {.code = CATERVA_OK};
    box again, all = whole_box(&v->history.geometry);
    cv_store_fault_arm(store_of(v), kind, n, ENOSPC);
    caterva_status status = work(v, &again, &err);
    if (cv_store_fault_hits(store_of(v)) == 0) {
        CHECK(status == CATERVA_OK, "%s: %s", what, err.message);
        return false;
    }
    check_error(status, &err, what);
    CHECK(err.sys_errno == ENOSPC, "%s: errno %d", what, err.sys_errno);
    check_stored(v, what);
    if (v->array->frame->poisoned)
        check_poisoned(v, what);
    else if (kind != CV_FAULT_FOREVER)
        check_recovers(v, &again, what);
    else
        check_refused(v, &all, what);
    return true;
}

static void sweep(cv_fault_kind kind, const char *name)
{
    geometry g = crash_geometry();
    pipeline p = made_lz4;
    caterva_array *array = made_array("mem:", &g, &p, CATERVA_LAYOUT_CONTIGUOUS);
    history start = history_new(&g);
    rng r = rng_from_seed(seed ^ 1);
    caterva_error err;
    size_t size;
    box all = whole_box(&g);
    CHECK_OK(write_random(&r, array, &start, &all, &err), err);
    CHECK_OK(caterva_commit(array, &err), err);
    uint8_t *bytes = made_bytes(array, &size);
    caterva_discard(array);

    bool reached = true;
    int64_t n = 0;
    for (; reached; n++) {
        char what[64];
        snprintf(what, sizeof what, "%s, operation %lld", name, (long long)n);
        victim v = new_victim(bytes, size, &start);
        reached = fail_at(&v, kind, n, what);
        free_victim(&v);
    }
    /* How often a writer reads depends on the seed. */
    CHECK(n > (kind == CV_FAULT_READ ? 1 : 10), "%s: only %lld operations", name,
          (long long)n);
    printf("%s%s: %lld operations\n", name, behind ? ", behind" : "", (long long)n - 1);
    free(bytes);
    history_free(&start);
}

static void a_change_fails_once(void **state)
{
    (void)state;
    sweep(CV_FAULT_ONCE, "once");
}

static void changes_fail_for_good(void **state)
{
    (void)state;
    sweep(CV_FAULT_FOREVER, "for good");
}

static void a_write_is_cut_short(void **state)
{
    (void)state;
    sweep(CV_FAULT_SHORT, "short");
}

static void a_read_fails(void **state)
{
    (void)state;
    sweep(CV_FAULT_READ, "read");
}

static void a_write_behind_the_encoding_fails(void **state)
{
    (void)state;
    behind = true;
    sweep(CV_FAULT_ONCE, "once");
    sweep(CV_FAULT_FOREVER, "for good");
    sweep(CV_FAULT_SHORT, "short");
    behind = false;
}

/* ---- New arrays, and closing ----------------------------------------------------- */

static caterva_array *new_faulty_array(const geometry *g)
{
    caterva_error err;
    cv_store *memory, *store;
    cv_frame *frame;
    caterva_array *array;
    caterva_array *model = made_array("mem:", g, &made_lz4, CATERVA_LAYOUT_CONTIGUOUS);
    cv_frame_seed first = {.header = model->snapshot->header,
                           .initial_offset = cv_offset_of_kind(CV_REF_ZEROS)};
    CHECK_OK(cv_store_memory_create(&memory, &err), err);
    CHECK_OK(cv_store_fault_create(memory, &store, &err), err);
    CHECK_OK(cv_frame_create(store, &first, CATERVA_DURABILITY_FULL, &frame, &err), err);
    CHECK_OK(cv_array_new(frame, true, 1, &array, &err), err);
    caterva_discard(model);
    return array;
}

/* A first commit that fails leaves nothing published; a later one may work. */
static void a_first_commit_fails(void **state)
{
    (void)state;
    geometry g = made_line(1000, 200, 50, 4);
    bool reached = true;
    for (int64_t n = 0; reached; n++) {
        caterva_error err;
        caterva_array *array = new_faulty_array(&g);
        cv_store *store = array->frame->store;
        cv_store_fault_arm(store, CV_FAULT_ONCE, n, EIO);
        caterva_status status = made_write(array, 0, 1000, 1, 3, &err);
        if (status == CATERVA_OK) status = caterva_commit(array, &err);
        reached = cv_store_fault_hits(store) > 0;
        assert_int_equal(status, reached ? CATERVA_EIO : CATERVA_OK);
        assert_int_equal(store->published, !reached);
        if (reached && !array->frame->poisoned) {
            assert_int_equal(made_write(array, 0, 1000, 1, 3, NULL), CATERVA_OK);
            assert_int_equal(caterva_commit(array, NULL), CATERVA_OK);
            assert_true(store->published);
            assert_int_equal(made_item(array, 999), 1 + 999 * 3);
        }
        caterva_discard(array);
    }
}

/* Closing reports what it could not commit, and releases the handle all the
 * same (leak checkers see whether it does). */
static void closing_says_what_failed(void **state)
{
    (void)state;
    size_t size;
    uint8_t *bytes = made_frame(1000, 200, 50, &made_lz4, &size);
    for (int64_t n = 0; n < 3; n++) {
        caterva_error err = {.code = CATERVA_OK};
        caterva_array *array = made_faulty(bytes, size, CATERVA_DURABILITY_FULL);
        cv_store_fault_arm(array->frame->store, CV_FAULT_FOREVER, n, EDQUOT);
        assert_int_equal(made_write(array, 10, 20, 5, 1, NULL), CATERVA_OK);
        assert_int_equal(caterva_close(array, &err), CATERVA_EIO);
        assert_int_equal(err.sys_errno, EDQUOT);
    }
    free(bytes);
}

int main(int argc, char **argv)
{
    seed = seed_argument(argc, argv, 1);
    blosc2_init();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_change_fails_once),
        cmocka_unit_test(changes_fail_for_good),
        cmocka_unit_test(a_write_is_cut_short),
        cmocka_unit_test(a_read_fails),
        cmocka_unit_test(a_write_behind_the_encoding_fails),
        cmocka_unit_test(a_first_commit_fails),
        cmocka_unit_test(closing_says_what_failed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
