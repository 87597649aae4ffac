/* The pool runs every job once, for any number of callers, also nested; a failure ends a
 * queue, corrupt data only later jobs. */
#include "pool_work.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

enum { N_CALLERS = 8 };

static counting *new_counting(int fail_at)
{
    counting *c = calloc(1, sizeof *c);
    assert_non_null(c);
    cv_job_queue_init(&c->queue, N_JOBS);
    c->fail_at = fail_at;
    return c;
}

static void every_job_is_done_once(void **state)
{
    (void)state;
    for (int helpers = -1; helpers <= 20; helpers++)
        for (int i = 0; i < 20; i++) assert_true(run_once(helpers));
}

static void a_queue_may_be_empty(void **state)
{
    (void)state;
    cv_job_queue queue;
    int64_t job;
    cv_job_queue_init(&queue, 0);
    assert_false(cv_job_queue_next(&queue, &job));
    assert_int_equal(cv_job_queue_result(&queue, NULL), CV_OK);
    cv_job_queue_destroy(&queue);
}

static void *take_three(void *context)
{
    cv_job_queue *queue = context;
    int64_t job, wrong = 0;
    for (int i = 0; i < 3; i++)
        wrong += !cv_job_queue_next(queue, &job) || job != N_JOBS - 1 - i;
    return wrong ? queue : NULL;
}

/* The caller starts with the first job, helpers with the last. */
static void they_come_from_both_ends(void **state)
{
    (void)state;
    cv_job_queue queue;
    pthread_t helper;
    void *wrong;
    int64_t job;
    cv_job_queue_init(&queue, N_JOBS);
    assert_true(cv_job_queue_next(&queue, &job));
    assert_int_equal(job, 0);
    assert_int_equal(pthread_create(&helper, NULL, take_three, &queue), 0);
    pthread_join(helper, &wrong);
    assert_null(wrong);
    for (int i = 1; i < N_JOBS - 3; i++) {
        assert_true(cv_job_queue_next(&queue, &job));
        assert_int_equal(job, i);
    }
    assert_false(cv_job_queue_next(&queue, &job));
    cv_job_queue_destroy(&queue);
}

static void the_first_failure_ends_it(void **state)
{
    (void)state;
    for (int i = 0; i < 50; i++) {
        counting *c = new_counting(10);
        cv_error err = {.code = CV_OK};
        (void)cv_pool_run(i % 4, count_jobs, c, NULL, NULL);
        assert_int_equal(cv_job_queue_result(&c->queue, &err), CATERVA_EIO);
        assert_string_equal(err.message, "job 10");
        assert_int_equal(err.position, 10);
        int64_t job;
        assert_false(cv_job_queue_next(&c->queue, &job));
        int done = 0;
        for (int k = 0; k < N_JOBS; k++) done += atomic_load(&c->done[k]);
        if (i % 4 == 0) assert_int_equal(done, 11);
        assert_false(cv_job_queue_fail(&c->queue, 3, CATERVA_ENOMEM, &err)); /* too late */
        assert_int_equal(cv_job_queue_result(&c->queue, NULL), CATERVA_EIO);
        free_counting(c);
    }
}

/* Jobs 300, 301, ... find corrupt data. */
static void find_damage(void *context)
{
    counting *c = context;
    int64_t job;
    bool goes_on = true;
    while (goes_on && cv_job_queue_next(&c->queue, &job)) {
        atomic_fetch_add(&c->done[job], 1);
        if (job < 300) continue;
        cv_error err;
        cv_status status = job % 2 ? CATERVA_EUNSUPPORTED : CATERVA_ECORRUPT;
        (void)cv_fail(&err, status, job, "job %d", (int)job);
        goes_on = cv_job_queue_fail(&c->queue, job, status, &err);
    }
}

/* With any number of threads: all jobs before the first failure run, and few after it. */
static void the_first_wrong_bytes_are_reported(void **state)
{
    (void)state;
    for (int i = 0; i < 200; i++) {
        int helpers = i % 5, behind = 0;
        counting *c = new_counting(-1);
        cv_error err = {.code = CV_OK};
        (void)cv_pool_run(helpers, find_damage, c, NULL, NULL);
        assert_int_equal(cv_job_queue_result(&c->queue, &err), CATERVA_ECORRUPT);
        assert_string_equal(err.message, "job 300");
        for (int k = 0; k <= 300; k++) assert_int_equal(atomic_load(&c->done[k]), 1);
        for (int k = 301; k < N_JOBS; k++) behind += atomic_load(&c->done[k]);
        if (helpers == 0) assert_int_equal(behind, 0);
        free_counting(c);
    }
}

static void another_failure_ends_all(void **state)
{
    (void)state;
    cv_error err = {.code = CV_OK};
    counting *c = new_counting(-1);
    assert_true(cv_job_queue_fail(&c->queue, 600, CATERVA_ECORRUPT, &err));
    assert_true(cv_job_queue_fail(&c->queue, 700, CATERVA_EUNSUPPORTED, &err));
    assert_int_equal(cv_job_queue_result(&c->queue, NULL), CATERVA_ECORRUPT);
    assert_false(cv_job_queue_fail(&c->queue, 800, CATERVA_ESTOPPED, &err));
    assert_int_equal(cv_job_queue_result(&c->queue, NULL), CATERVA_ESTOPPED);
    assert_true(cv_job_queue_fail(&c->queue, 5, CATERVA_ECORRUPT, &err));
    assert_int_equal(cv_job_queue_result(&c->queue, NULL), CATERVA_ESTOPPED);
    int64_t job;
    assert_false(cv_job_queue_next(&c->queue, &job));
    free_counting(c);
}

/* ---- Many at once ----------------------------------------------------------------- */

static void *call_often(void *result)
{
    for (int i = 0; i < 100; i++)
        if (!run_once(i % 5)) *(bool *)result = false;
    return NULL;
}

static void many_threads_share_the_pool(void **state)
{
    (void)state;
    pthread_t threads[N_CALLERS];
    bool good[N_CALLERS];
    for (int i = 0; i < N_CALLERS; i++) {
        good[i] = true;
        assert_int_equal(pthread_create(&threads[i], NULL, call_often, &good[i]), 0);
    }
    for (int i = 0; i < N_CALLERS; i++) {
        pthread_join(threads[i], NULL);
        assert_true(good[i]);
    }
}

typedef struct nesting {
    cv_job_queue queue;
    atomic_bool bad;
} nesting;

static void run_inside(void *context)
{
    nesting *n = context;
    int64_t job;
    while (cv_job_queue_next(&n->queue, &job))
        if (!run_once((int)(job % 4))) atomic_store(&n->bad, true);
}

static void a_body_may_use_the_pool(void **state)
{
    (void)state;
    nesting n = {.bad = false};
    cv_job_queue_init(&n.queue, 200);
    (void)cv_pool_run(3, run_inside, &n, NULL, NULL);
    assert_false(atomic_load(&n.bad));
}

/* Helpers do run: two bodies that wait for each other both return. */
typedef struct meeting {
    atomic_int present;
    atomic_bool met;
} meeting;

static void wait_for_another(void *context)
{
    meeting *m = context;
    atomic_fetch_add(&m->present, 1);
    for (int i = 0; i < 20000 && atomic_load(&m->present) < 2; i++) usleep(1000);
    if (atomic_load(&m->present) >= 2) atomic_store(&m->met, true);
}

static void helpers_come(void **state)
{
    (void)state;
    meeting m = {.present = 0};
    (void)cv_pool_run(1, wait_for_another, &m, NULL, NULL);
    assert_true(atomic_load(&m.met));
}

/* ---- Jobs in the background ----------------------------------------------------- */

static void steps_are_done_in_the_background(void **state)
{
    (void)state;
    chore c;
    init_chore(&c, 2);
    for (int i = 0; i < 200; i++) { /* also while the last steps return */
        atomic_fetch_add(&c.left, 20);
        cv_pool_post(&c.job);
        if (i % 3 == 0) assert_true(wait_until_done(&c));
    }
    assert_true(wait_until_done(&c));
    assert_true(atomic_load(&c.most_inside) <= 2);
    assert_int_equal(cv_pool_n_jobs(), 0);
    cv_pool_withdraw(&c.job); /* nothing to withdraw */
}

static void none_is_done_after_it_is_withdrawn(void **state)
{
    (void)state;
    chore c;
    init_chore(&c, 3);
    atomic_store(&c.endless, true);
    for (int i = 0; i < 300; i++) {
        cv_pool_post(&c.job);
        if (i % 2) usleep((useconds_t)(i % 7) * 20);
        cv_pool_withdraw(&c.job);
        assert_int_equal(atomic_load(&c.inside), 0);
        assert_int_equal(cv_pool_n_jobs(), 0);
        memset(&c.job.next, 0xA5, sizeof c.job.next); /* not accessed any more */
    }
}

/* Endless steps on every thread do not keep helpers from requests. */
static void requests_come_first(void **state)
{
    (void)state;
    chore c;
    init_chore(&c, 256);
    atomic_store(&c.endless, true);
    cv_pool_post(&c.job);
    for (int i = 0; i < 5; i++) {
        meeting m = {.present = 0};
        (void)cv_pool_run(1, wait_for_another, &m, NULL, NULL);
        assert_true(atomic_load(&m.met));
    }
    assert_true(run_once(3));
    cv_pool_withdraw(&c.job);
}

static void *post_often(void *context)
{
    chore *c = context;
    for (int i = 0; i < 300; i++) {
        atomic_fetch_add(&c->left, 1);
        cv_pool_post(&c->job);
    }
    return NULL;
}

static void many_threads_post(void **state)
{
    (void)state;
    chore chores[3];
    pthread_t threads[6];
    for (int i = 0; i < 3; i++) init_chore(&chores[i], 1 + i);
    for (int i = 0; i < 6; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, post_often, &chores[i / 2]), 0);
    for (int i = 0; i < 6; i++) pthread_join(threads[i], NULL);
    for (int i = 0; i < 3; i++) {
        assert_true(wait_until_done(&chores[i]));
        assert_true(atomic_load(&chores[i].most_inside) <= 1 + i);
    }
}

int main(void)
{
    alarm(5 * HANG_SECONDS); /* a hang ends the program with a signal */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_job_is_done_once),
        cmocka_unit_test(a_queue_may_be_empty),
        cmocka_unit_test(they_come_from_both_ends),
        cmocka_unit_test(the_first_failure_ends_it),
        cmocka_unit_test(the_first_wrong_bytes_are_reported),
        cmocka_unit_test(another_failure_ends_all),
        cmocka_unit_test(many_threads_share_the_pool),
        cmocka_unit_test(a_body_may_use_the_pool),
        cmocka_unit_test(helpers_come),
        cmocka_unit_test(steps_are_done_in_the_background),
        cmocka_unit_test(none_is_done_after_it_is_withdrawn),
        cmocka_unit_test(requests_come_first),
        cmocka_unit_test(many_threads_post),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
