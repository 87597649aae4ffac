/* Stages: a window is read once, by the first thread that needs it. Other threads wait, poll
 * their watch, and read the window themselves if the first failed. */
#include "engine/read/source.h"

#include "made.h"
#include "support/every_step.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <unistd.h>

#include <cmocka.h>

enum { N_UNITS = 8, PATIENCE_MS = 10000 };

/* One stage, a thread that reads a window, and the behaviour of on_progress in the test's
 * thread. */
typedef struct trial {
    caterva_array *array;
    cv_source source;
    cv_watch watch;
    cv_stage stage;
    pthread_t caller;
    atomic_int n_lists, n_asked;
    atomic_bool holds, is_held; /* delays the other thread while it reads a window */
    atomic_bool stops;          /* on_progress stops the call */
    cv_status failure;          /* of a window that another thread reads */
    cv_status status;           /* returned to that thread */
} trial;

static bool is_caller(const trial *t) { return pthread_equal(t->caller, pthread_self()); }

/* Answers only in the caller's thread, as functions of Python do. Another thread is delayed
 * until the caller was polled three times, or for too long. */
static int on_progress(void *context, int64_t done, int64_t total)
{
    trial *t = context;
    (void)done;
    (void)total;
    if (!is_caller(t)) return 0;
    if (atomic_fetch_add(&t->n_asked, 1) == 2) atomic_store(&t->holds, false);
    return atomic_load(&t->stops);
}

static cv_status list(void *context, int64_t unit, cv_worker *worker, cv_stage_list *needs,
                      cv_error *err)
{
    trial *t = context;
    (void)unit;
    (void)worker;
    (void)needs;
    atomic_fetch_add(&t->n_lists, 1);
    if (is_caller(t)) return CV_OK;
    atomic_store(&t->is_held, true);
    for (int i = 0; i < PATIENCE_MS && atomic_load(&t->holds); i++) usleep(1000);
    atomic_store(&t->holds, false);
    return t->failure ? cv_fail(err, t->failure, -1, "no window") : CV_OK;
}

/* All units in one window, or one window per unit. */
static void begin(trial *t, bool is_one_window)
{
    cv_error err;
    const geometry g = made_line(N_UNITS * 1000, 1000, 100, 4);
    *t = (trial){.caller = pthread_self()};
    t->array = made_array("mem:", &g, &made_lz4, CATERVA_LAYOUT_CONTIGUOUS);
    CHECK_OK(made_write(t->array, 0, g.shape[0], 1, 7, &err), err);
    CHECK_OK(caterva_commit(t->array, &err), err);
    t->source = cv_array_source(t->array);
    t->source.frame->store->is_far = true;
    const caterva_progress progress = every_step(on_progress, t);
    cv_watch_init(&t->watch, &progress);
    const cv_stage_plan plan = {.n_units = N_UNITS,
                                .bytes = g.shape[0] * 4,
                                .memory = is_one_window ? 0 : 1,
                                .threads = 2,
                                .watch = &t->watch,
                                .list = list,
                                .context = t};
    CHECK_OK(cv_stage_init(&t->stage, &t->source, &plan, &err), err);
    assert_non_null(t->stage.windows);
}

static void end(trial *t)
{
    cv_stage_destroy(&t->stage);
    cv_watch_destroy(&t->watch);
    t->source.frame->store->is_far = false;
    caterva_discard(t->array);
}

static cv_status visit(trial *t, int64_t unit)
{
    cv_worker worker = {.staged = NULL};
    cv_status status = cv_stage_enter(&t->stage, unit, &worker, NULL);
    if (status == CV_OK) cv_stage_leave(&t->stage, unit, &worker);
    return status;
}

static void *visit_first(void *context)
{
    trial *t = context;
    t->status = visit(t, 0);
    return NULL;
}

/* Returns the status of the caller that needs a window while another thread reads it. */
static cv_status meet(trial *t)
{
    pthread_t other;
    atomic_store(&t->holds, true);
    assert_int_equal(pthread_create(&other, NULL, visit_first, t), 0);
    while (!atomic_load(&t->is_held)) usleep(100);
    cv_status status = visit(t, 1);
    pthread_join(other, NULL);
    return status;
}

static void a_window_is_listed_once(void **state)
{
    (void)state;
    for (int one = 0; one < 2; one++) {
        trial t;
        begin(&t, one);
        for (int64_t i = 0; i < N_UNITS; i++) assert_int_equal(visit(&t, i), CV_OK);
        assert_int_equal(atomic_load(&t.n_lists), N_UNITS);
        assert_int_equal(visit(&t, N_UNITS - 1), CV_OK);
        assert_int_equal(atomic_load(&t.n_lists), N_UNITS);
        assert_int_equal(visit(&t, 0), CV_OK); /* evicted, if each unit has its own window */
        assert_int_equal(atomic_load(&t.n_lists), N_UNITS + !one);
        end(&t);
    }
}

static void who_waits_is_asked_and_finds_the_window(void **state)
{
    (void)state;
    trial t;
    begin(&t, true);
    assert_int_equal(meet(&t), CV_OK);
    assert_int_equal(t.status, CV_OK);
    assert_true(atomic_load(&t.n_asked) >= 3); /* polled; it does not read */
    assert_int_equal(atomic_load(&t.n_lists), N_UNITS);
    end(&t);
}

/* It leaves the window to the other thread, and later calls work. */
static void who_waits_may_stop(void **state)
{
    (void)state;
    trial t;
    begin(&t, true);
    atomic_store(&t.stops, true);
    pthread_t other;
    atomic_store(&t.holds, true);
    assert_int_equal(pthread_create(&other, NULL, visit_first, &t), 0);
    while (!atomic_load(&t.is_held)) usleep(100);
    cv_status status = visit(&t, 1);
    bool was_held = atomic_load(&t.holds);
    atomic_store(&t.holds, false);
    pthread_join(other, NULL);
    assert_int_equal(status, CATERVA_ESTOPPED);
    assert_true(was_held); /* it did not wait for the other thread */
    cv_watch_begin(&t.watch);
    atomic_store(&t.stops, false);
    assert_int_equal(visit(&t, 2), CV_OK);
    cv_watch_end(&t.watch, true);
    end(&t);
}

static void who_waits_reads_what_another_could_not(void **state)
{
    (void)state;
    trial t;
    begin(&t, true);
    t.failure = CATERVA_ENOMEM;
    assert_int_equal(meet(&t), CV_OK);
    assert_int_equal(t.status, CATERVA_ENOMEM);
    assert_int_equal(atomic_load(&t.n_lists), 1 + N_UNITS);
    end(&t);
}

int main(void)
{
    alarm(120); /* ends the program if it hangs */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_window_is_listed_once),
        cmocka_unit_test(who_waits_is_asked_and_finds_the_window),
        cmocka_unit_test(who_waits_may_stop),
        cmocka_unit_test(who_waits_reads_what_another_could_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
