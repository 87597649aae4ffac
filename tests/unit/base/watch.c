/* A watch reports progress that never goes back and never exceeds the total, stops every
 * thread, and forwards both to the next watch. */
#include "base/watch.h"
#include "support/every_step.h"

#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>

#include <cmocka.h>

typedef struct listener {
    int64_t done, total;
    int calls, stop_at; /* -1: never */
    atomic_int inside;
    bool overlapped, went_back;
} listener;

static int listen(void *context, int64_t done, int64_t total)
{
    listener *l = context;
    if (atomic_fetch_add(&l->inside, 1) != 0) l->overlapped = true;
    if (done < l->done || done > total) l->went_back = true;
    l->done = done;
    l->total = total;
    int stop = l->calls++ == l->stop_at;
    atomic_fetch_sub(&l->inside, 1);
    return stop;
}

static void init(cv_watch *watch, listener *l)
{
    const caterva_progress progress = every_step(listen, l);
    cv_watch_init(watch, &progress);
}

static void counts_bytes(void **state)
{
    (void)state;
    cv_watch w;
    listener l = {.stop_at = -1};
    init(&w, &l);
    cv_watch_begin(&w);
    cv_watch_expect(&w, 100);
    assert_int_equal(cv_watch_tick(&w, 30, NULL), CV_OK);
    assert_true(l.done == 30 && l.total == 100);
    assert_int_equal(cv_watch_tick(&w, 300, NULL), CV_OK); /* more than was announced */
    assert_true(l.done == 100 && l.total == 100);
    cv_watch_expect(&w, 300);
    cv_watch_begin(&w); /* a second call at once */
    cv_watch_end(&w, true);
    assert_int_equal(l.calls, 2);
    cv_watch_end(&w, true);
    assert_true(l.done == 400 && l.total == 400 && l.calls == 3);
    l.done = 0;
    cv_watch_begin(&w); /* begins anew, with nothing to report */
    cv_watch_end(&w, true);
    assert_int_equal(l.calls, 3);
    assert_false(l.went_back);
    cv_watch_destroy(&w);
}

static void a_failed_call_does_not_end_in_full(void **state)
{
    (void)state;
    cv_watch w;
    listener l = {.stop_at = -1};
    init(&w, &l);
    cv_watch_begin(&w);
    cv_watch_expect(&w, 100);
    cv_watch_end(&w, false);
    assert_int_equal(l.calls, 0);
    cv_watch_destroy(&w);
}

static void a_stop_is_heard_until_the_calls_end(void **state)
{
    (void)state;
    cv_watch w;
    cv_error err;
    listener l = {.stop_at = 1};
    init(&w, &l);
    cv_watch_begin(&w);
    cv_watch_begin(&w);
    cv_watch_expect(&w, 9);
    assert_int_equal(cv_watch_tick(&w, 1, &err), CV_OK);
    assert_int_equal(cv_watch_tick(&w, 1, &err), CATERVA_ESTOPPED);
    assert_int_equal(err.code, CATERVA_ESTOPPED);
    assert_string_equal(err.message, "stopped");
    assert_int_equal(cv_watch_tick(&w, 1, NULL), CATERVA_ESTOPPED); /* and is not called */
    assert_int_equal(l.calls, 2);
    cv_watch_end(&w, false);
    cv_watch_begin(&w); /* before the last has ended: it is stopped, too */
    assert_int_equal(cv_watch_tick(&w, 1, NULL), CATERVA_ESTOPPED);
    cv_watch_end(&w, false);
    assert_int_equal(cv_watch_tick(&w, 1, NULL), CATERVA_ESTOPPED);
    assert_int_equal(l.calls, 2);
    cv_watch_end(&w, false);
    l.done = 0;
    cv_watch_begin(&w);
    assert_int_equal(cv_watch_tick(&w, 0, NULL), CV_OK);
    cv_watch_end(&w, false);
    cv_watch_destroy(&w);
}

static void both_are_told(void **state)
{
    (void)state;
    cv_watch own, handle;
    listener a = {.stop_at = -1}, b = {.stop_at = 2};
    const caterva_progress progress = every_step(listen, &a);
    init(&handle, &b);
    cv_watch_begin(&handle);
    assert_ptr_equal(cv_watch_open(&own, &progress, &handle), &own);
    cv_watch_expect(&own, 50);
    assert_int_equal(cv_watch_tick(&own, 20, NULL), CV_OK);
    assert_true(a.done == 20 && a.total == 50 && b.done == 20 && b.total == 50);
    assert_int_equal(cv_watch_close(&own, CV_OK), CV_OK);
    assert_true(a.done == 50 && b.done == 20);
    a = (listener){.stop_at = -1};
    assert_ptr_equal(cv_watch_open_fixed(&own, &progress, 2, &handle), &own);
    cv_watch_expect(&own, 50); /* bytes from inside are the handle's */
    assert_int_equal(cv_watch_tick(&own, 20, NULL), CV_OK);
    assert_true(a.done == 0 && a.total == 2 && b.done == 40 && b.total == 100);
    assert_int_equal(cv_watch_step(&own, 1, NULL), CATERVA_ESTOPPED);
    assert_true(a.done == 1 && b.done == 40);
    assert_int_equal(cv_watch_close(&own, CATERVA_ESTOPPED), CATERVA_ESTOPPED);
    assert_true(a.done == 1 && a.calls == 2); /* what failed does not end in full */
    cv_watch_end(&handle, false);
    cv_watch_destroy(&handle);
}

static void no_function_is_fine(void **state)
{
    (void)state;
    cv_watch silent, handle;
    listener l = {.stop_at = -1};
    init(&handle, &l);
    assert_null(cv_watch_open(&silent, NULL, NULL));
    assert_int_equal(cv_watch_close(&silent, CV_OK), CV_OK);
    const caterva_progress none = {.per_second = 1};
    assert_ptr_equal(cv_watch_open_fixed(&silent, &none, 9, &handle), &handle);
    assert_int_equal(cv_watch_step(&handle, 1, NULL), CV_OK); /* counts nothing */
    assert_true(l.calls == 1 && l.done == 0);
    assert_int_equal(cv_watch_close(&silent, CV_OK), CV_OK);
    cv_watch_destroy(&handle);
    cv_watch_expect(NULL, 1);
    cv_watch_add(NULL, 1);
    assert_int_equal(cv_watch_tick(NULL, 1, NULL), CV_OK);
    assert_int_equal(cv_watch_step(NULL, 1, NULL), CV_OK);
}

/* The test sets the time of the next report, so that no clock decides. */
static void reports_are_rare(void **state)
{
    (void)state;
    enum { LONG_AGO = 1 };
    cv_watch w;
    listener l = {.stop_at = 3};
    const caterva_progress progress = {.report = listen, .context = &l};
    cv_watch_init(&w, &progress);
    assert_int_equal(w.interval, 20000000); /* 50 a second */
    cv_watch_begin(&w);
    assert_int_equal(cv_watch_tick(&w, 0, NULL), CV_OK);
    assert_true(l.calls == 1 && l.total == 0);
    cv_watch_expect(&w, 1000); /* which is news */
    assert_int_equal(cv_watch_tick(&w, 1, NULL), CV_OK);
    assert_true(l.calls == 2 && l.done == 1 && l.total == 1000);
    atomic_store(&w.due, UINT64_MAX);
    for (int i = 0; i < 99; i++) assert_int_equal(cv_watch_tick(&w, 1, NULL), CV_OK);
    assert_int_equal(l.calls, 2);
    atomic_store(&w.due, LONG_AGO);
    assert_int_equal(cv_watch_tick(&w, 1, NULL), CV_OK);
    assert_true(l.calls == 3 && l.done == 101);
    assert_true(atomic_load(&w.due) > LONG_AGO);
    atomic_store(&w.due, UINT64_MAX); /* a stop is heard when a report is made */
    assert_int_equal(cv_watch_tick(&w, 1, NULL), CV_OK);
    atomic_store(&w.due, LONG_AGO);
    assert_int_equal(cv_watch_tick(&w, 1, NULL), CATERVA_ESTOPPED);
    cv_watch_end(&w, false);
    l = (listener){.stop_at = -1};
    cv_watch_begin(&w); /* a new call is not late for what an older one reported */
    cv_watch_expect(&w, 10);
    assert_int_equal(cv_watch_tick(&w, 4, NULL), CV_OK);
    assert_int_equal(l.calls, 1);
    atomic_store(&w.due, UINT64_MAX);
    assert_int_equal(cv_watch_tick(&w, 6, NULL), CV_OK);
    cv_watch_end(&w, true); /* the last is reported in any case */
    assert_true(l.calls == 2 && l.done == 10 && l.total == 10);
    cv_watch_destroy(&w);
}

static void rates_are_checked(void **state)
{
    (void)state;
    cv_error err;
    cv_watch w;
    caterva_progress p = {.per_second = CATERVA_NONE};
    assert_int_equal(cv_progress_check(&p, &err), CV_OK);
    cv_watch_init(&w, &p);
    assert_int_equal(w.interval, 0);
    cv_watch_destroy(&w);
    p.per_second = INT_MAX;
    assert_int_equal(cv_progress_check(&p, &err), CV_OK);
    p.per_second = -2;
    assert_int_equal(cv_progress_check(&p, &err), CATERVA_EINVAL);
    p = (caterva_progress){.reserved = {0, 1}};
    assert_int_equal(cv_progress_check(&p, &err), CATERVA_EINVAL);
}

enum { THREADS = 4, TICKS = 20000 };

static void *tick_often(void *watch)
{
    cv_watch_begin(watch);
    cv_watch_expect(watch, TICKS);
    for (int i = 0; i < TICKS; i++) (void)cv_watch_tick(watch, 1, NULL);
    cv_watch_end(watch, true);
    return NULL;
}

static void calls_never_overlap(void **state)
{
    (void)state;
    cv_watch w;
    listener l = {.stop_at = -1};
    pthread_t threads[THREADS];
    init(&w, &l);
    cv_watch_begin(&w); /* so that it continues counting while threads start and end */
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, tick_often, &w), 0);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    cv_watch_end(&w, true);
    assert_true(l.done == THREADS * TICKS && l.total == l.done);
    assert_false(l.overlapped || l.went_back);
    cv_watch_destroy(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_bytes),
        cmocka_unit_test(a_failed_call_does_not_end_in_full),
        cmocka_unit_test(a_stop_is_heard_until_the_calls_end),
        cmocka_unit_test(both_are_told),
        cmocka_unit_test(no_function_is_fine),
        cmocka_unit_test(reports_are_rare),
        cmocka_unit_test(rates_are_checked),
        cmocka_unit_test(calls_never_overlap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
