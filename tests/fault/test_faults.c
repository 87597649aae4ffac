/* Every changing operation of the store fails in turn, once, for ever, or half done; and
 * every read. The error is returned, the handle stays usable or reports that it is not, and
 * the committed state opens and is right. When the fault is over, the same work succeeds. In
 * memory, in a file and in a directory.
 *
 * usage: test_faults [SEED] */
#include "crash.h"
#include "engine/write/flush.h"
#include "frame/frame.h"
#include "frame/lookup.h"
#include "support/behind.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <unistd.h>

#include <cmocka.h>

enum { STEPS = 8 };

static uint64_t seed;
static const made_kind *kind;
static bool behind; /* chunks are put while others are encoded */

/* A writer's life up to the fault: states[committed] is acknowledged; a failed commit may
 * have stored the last state. */
typedef struct victim {
    caterva_array *array;
    history history;
    int committed;
    rng random;
} victim;

static cv_store *store_of(const victim *v) { return v->array->frame->store; }

static victim new_victim(caterva_array *model, const history *start)
{
    victim v = {.history = history_new(&start->geometry)};
    v.random = rng_from_seed(seed);
    v.array = made_faulty(made_store(kind, model), CATERVA_DURABILITY_FULL);
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

/* Reads the bytes through another store at the same path, which may differ from the file's
 * bytes. */
static uint8_t *load_again(const char *path, size_t *size)
{
    caterva_error err;
    cv_store *store;
    uint64_t stored;
    CHECK_OK(cv_store_open(path, 0, false, &store, &err), err);
    CHECK_OK(cv_store_size(store, CV_FRAME_OBJECT, &stored, &err), err);
    uint8_t *bytes = check_alloc((size_t)stored);
    CHECK_OK(cv_store_read(store, CV_FRAME_OBJECT, 0, bytes, (size_t)stored, &err), err);
    cv_store_close(store);
    *size = (size_t)stored;
    return bytes;
}

/* Checks the image of a store that is one sequence of bytes; another open reads it, too. */
static void check_bytes(const victim *v, const char *path, const char *what)
{
    caterva_error err;
    uint8_t *bytes;
    size_t size, stored;
    int64_t mark;
    cv_crash now = {.model = CV_CRASH_PREFIX,
                    .point = cv_store_fault_journal_size(store_of(v))};
    CHECK_OK(cv_store_fault_image(store_of(v), &now, &bytes, &size, &mark, &err), err);
    check_image(&v->history, bytes, size, v->committed, v->history.n_states - 1, what);
    if (!kind->in_memory) {
        uint8_t *again = load_again(path, &stored);
        CHECK(stored == size && memcmp(again, bytes, size) == 0, "%s: %s holds otherwise",
              what, path);
        free(again);
    }
    free(bytes);
}

/* Checks what the store contains now, as another process would. */
static void check_stored(const victim *v, const char *what)
{
    char path[SCRATCH_PATH];
    made_path(kind, path);
    if (kind->layout == CATERVA_LAYOUT_CONTIGUOUS) check_bytes(v, path, what);
    if (!kind->in_memory)
        check_path(&v->history, path, v->committed, v->history.n_states - 1, what);
}

static void check_error(caterva_status status, const caterva_error *err, const char *what)
{
    CHECK(status == CATERVA_EIO, "%s: %s", what, caterva_status_name(status));
    CHECK(err->code == CATERVA_EIO && err->message[0] != 0, "%s: no sentence", what);
}

/* A write that is not refused at once must be refused by its commit. */
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

/* Poisoned: nothing changes the stored bytes any more, and each call reports it. */
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

/* Not poisoned and the fault is over: the repeated work succeeds. */
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

/* Writes and commits until a call fails; *again: the box to write again. */
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

/* A chunk file that no state needs may remain. */
static bool is_forgiven(const victim *v)
{
    return kind->layout == CATERVA_LAYOUT_SPARSE &&
           cv_store_fault_last_hit(store_of(v)) == CV_FAULT_ENTRY_REMOVE;
}

/* Returns true if the fault was reached. */
static bool fail_at(victim *v, cv_fault_kind fault, int64_t n, const char *what)
{
    caterva_error err = {.code = CATERVA_OK};
    box again, all = whole_box(&v->history.geometry);
    cv_store_fault_arm(store_of(v), fault, n, ENOSPC);
    caterva_status status = work(v, &again, &err);
    if (cv_store_fault_hits(store_of(v)) == 0) {
        CHECK(status == CATERVA_OK, "%s: %s", what, err.message);
        return false;
    }
    if (status != CATERVA_OK || !is_forgiven(v)) {
        check_error(status, &err, what);
        CHECK(err.sys_errno == ENOSPC, "%s: errno %d", what, err.sys_errno);
    }
    check_stored(v, what);
    if (v->array->frame->poisoned)
        check_poisoned(v, what);
    else if (fault != CV_FAULT_FOREVER)
        check_recovers(v, &again, what);
    else
        check_refused(v, &all, what);
    return true;
}

static void sweep(cv_fault_kind fault, const char *name)
{
    geometry g = crash_geometry();
    pipeline p = made_lz4;
    caterva_array *array = made_array("mem:", &g, &p, CATERVA_LAYOUT_CONTIGUOUS);
    history start = history_new(&g);
    rng r = rng_from_seed(seed ^ 1);
    caterva_error err;
    box all = whole_box(&g);
    CHECK_OK(write_random(&r, array, &start, &all, &err), err);
    CHECK_OK(caterva_commit(array, &err), err);
    bool reached = true;
    int64_t n = 0;
    for (; reached; n++) {
        char what[64];
        snprintf(what, sizeof what, "%s: %s, operation %lld", kind->name, name, (long long)n);
        victim v = new_victim(array, &start);
        reached = fail_at(&v, fault, n, what);
        free_victim(&v);
    }
    /* the number of reads depends on the seed */
    CHECK(n > (fault == CV_FAULT_READ ? 1 : 10), "%s: only %lld operations", name,
          (long long)n);
    printf("%s: %s%s: %lld operations\n", kind->name, name, behind ? ", behind" : "",
           (long long)n - 1);
    caterva_discard(array);
    history_free(&start);
}

static void sweep_kinds(cv_fault_kind fault, const char *name)
{
    for (int i = 0; i < MADE_COUNT(made_kinds); i++) {
        kind = &made_kinds[i];
        sweep(fault, name);
    }
}

static void a_change_fails_once(void **state)
{
    (void)state;
    sweep_kinds(CV_FAULT_ONCE, "once");
}

static void changes_fail_for_good(void **state)
{
    (void)state;
    sweep_kinds(CV_FAULT_FOREVER, "for good");
}

static void a_write_is_cut_short(void **state)
{
    (void)state;
    sweep_kinds(CV_FAULT_SHORT, "short");
}

static void a_read_fails(void **state)
{
    (void)state;
    sweep_kinds(CV_FAULT_READ, "read");
}

static void a_write_behind_the_encoding_fails(void **state)
{
    (void)state;
    behind = true;
    sweep_kinds(CV_FAULT_ONCE, "once");
    sweep_kinds(CV_FAULT_FOREVER, "for good");
    sweep_kinds(CV_FAULT_SHORT, "short");
    behind = false;
}

/* ---- New arrays, and closing ----------------------------------------------------- */

static caterva_array *new_faulty_array(const geometry *g)
{
    caterva_error err;
    cv_store *inner, *store;
    cv_frame *frame;
    caterva_array *array;
    char path[SCRATCH_PATH];
    caterva_array *model = made_array("mem:", g, &made_lz4, CATERVA_LAYOUT_CONTIGUOUS);
    cv_frame_seed first = {.header = model->snapshot->header,
                           .initial_offset = cv_offset_of_kind(CV_REF_ZEROS)};
    first.header.sparse = kind->layout == CATERVA_LAYOUT_SPARSE;
    CHECK_OK(cv_store_create(made_path(kind, path), kind->layout, false, &inner, &err), err);
    CHECK_OK(cv_store_fault_create(inner, &store, &err), err);
    CHECK_OK(cv_frame_create(store, &first, CATERVA_DURABILITY_FULL, &frame, &err), err);
    CHECK_OK(cv_array_new(frame, true, 1, &array, &err), err);
    caterva_discard(model);
    return array;
}

/* Creates an array whose operation `n` fails; true if that was reached. */
static bool fail_first_commit(const geometry *g, int64_t n)
{
    caterva_error err;
    char path[SCRATCH_PATH];
    caterva_array *array = new_faulty_array(g);
    cv_store *store = array->frame->store;
    cv_store_fault_arm(store, CV_FAULT_ONCE, n, EIO);
    caterva_status status = made_write(array, 0, 1000, 1, 3, &err);
    if (status == CATERVA_OK) status = caterva_commit(array, &err);
    bool reached = cv_store_fault_hits(store) > 0;
    assert_int_equal(status, reached ? CATERVA_EIO : CATERVA_OK);
    assert_int_equal(store->published, !reached);
    if (reached && !array->frame->poisoned) {
        assert_int_equal(made_write(array, 0, 1000, 1, 3, NULL), CATERVA_OK);
        assert_int_equal(caterva_commit(array, NULL), CATERVA_OK);
        assert_true(store->published);
        assert_int_equal(made_item(array, 999), 1 + 999 * 3);
    }
    bool published = store->published;
    caterva_discard(array);
    bool is_there = access(made_path(kind, path), F_OK) == 0;
    assert_int_equal(is_there, published && !kind->in_memory);
    scratch_remove(path);
    return reached;
}

/* A first commit that fails publishes nothing; a later one may succeed. */
static void a_first_commit_fails(void **state)
{
    (void)state;
    geometry g = made_line(1000, 200, 50, 4);
    for (int i = 0; i < MADE_COUNT(made_kinds); i++) {
        char path[SCRATCH_PATH];
        int64_t n = 0;
        kind = &made_kinds[i];
        scratch_remove(made_path(kind, path));
        while (fail_first_commit(&g, n)) n++;
        CHECK(n > 5, "%s: only %lld operations", kind->name, (long long)n);
    }
}

/* Closing reports what it could not commit, and releases the handle anyway (leak checkers
 * verify this). */
static void closing_says_what_failed(void **state)
{
    (void)state;
    caterva_error err;
    geometry g = made_line(1000, 200, 50, 4);
    caterva_array *model = made_array("mem:", &g, &made_lz4, CATERVA_LAYOUT_CONTIGUOUS);
    CHECK_OK(made_write(model, 0, 1000, 0, 1, &err), err);
    CHECK_OK(caterva_commit(model, &err), err);
    for (int i = 0; i < 3 * MADE_COUNT(made_kinds); i++) {
        kind = &made_kinds[i / 3];
        err.code = CATERVA_OK;
        caterva_array *array = made_faulty(made_store(kind, model), CATERVA_DURABILITY_FULL);
        cv_store_fault_arm(array->frame->store, CV_FAULT_FOREVER, i % 3, EDQUOT);
        assert_int_equal(made_write(array, 10, 20, 5, 1, NULL), CATERVA_OK);
        assert_int_equal(caterva_close(array, &err), CATERVA_EIO);
        assert_int_equal(err.sys_errno, EDQUOT);
    }
    caterva_discard(model);
}

/* There are thousands of syncs, and none of them needs to reach a disk. */
static void keep_files_in_memory(void)
{
    if (access("/dev/shm", W_OK) == 0) (void)setenv("TMPDIR", "/dev/shm", 0);
}

int main(int argc, char **argv)
{
    keep_files_in_memory();
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
