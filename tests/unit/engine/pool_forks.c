/* The pool across fork: a child has threads of its own, whatever the parent's threads were
 * doing. */
#include "pool_work.h"
#include "support/sanitized.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/wait.h>

#include <cmocka.h>

/* qemu-user (7.2) fails an assertion of its own if a child of a multithreaded process starts
 * a thread. */
static void skip_where_emulated(void)
{
    if (!getenv("CATERVA_EMULATED")) return;
    print_message("not under emulation: threads of a forked child\n");
    skip();
}

/* The exit status of a child: 0 on success; -1 if it was not started. */
static int status_of(pid_t child)
{
    int status = -1;
    return child > 0 && waitpid(child, &status, 0) == child ? status : -1;
}

static pid_t fork_and_use_pool(void)
{
    pid_t child = fork();
    if (child != 0) return child;
    alarm(HANG_SECONDS);
    bool good = true;
    for (int i = 0; i < 20 && good; i++) good = run_once(3);
    _exit(good ? 0 : 1);
}

static void a_child_starts_its_own_threads(void **state)
{
    (void)state;
    skip_where_emulated();
    SKIP_IF_SANITIZED();
    assert_true(run_once(3));
    for (int i = 0; i < 20; i++) assert_int_equal(status_of(fork_and_use_pool()), 0);
    assert_true(run_once(3));
}

typedef struct busy {
    atomic_bool stop;
    atomic_bool bad;
} busy;

/* On the thread's stack: heap memory would be lost to a child. */
static void *keep_busy(void *context)
{
    busy *b = context;
    while (!atomic_load(&b->stop)) {
        counting c = {.fail_at = -1};
        if (!run_in(&c, 2)) atomic_store(&b->bad, true);
        cv_job_queue_destroy(&c.queue);
    }
    return NULL;
}

/* Fork while other threads are in the middle of their requests. */
static void forking_in_the_middle(void **state)
{
    (void)state;
    skip_where_emulated();
    SKIP_IF_SANITIZED();
    busy b = {.stop = false};
    pthread_t threads[3];
    for (int i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, keep_busy, &b), 0);
    int status = 0;
    for (int i = 0; i < 50 && status == 0; i++) status = status_of(fork_and_use_pool());
    atomic_store(&b.stop, true); /* before a failing assertion invalidates `b` */
    for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
    assert_int_equal(status, 0);
    assert_false(atomic_load(&b.bad));
}

typedef struct forking {
    atomic_int bodies;
    atomic_int bad_children;
} forking;

/* A body forks, on the caller and on a pool thread. */
static void fork_inside(void *context)
{
    forking *f = context;
    atomic_fetch_add(&f->bodies, 1);
    if (status_of(fork_and_use_pool()) != 0) atomic_fetch_add(&f->bad_children, 1);
}

static void forking_inside_a_body(void **state)
{
    (void)state;
    skip_where_emulated();
    SKIP_IF_SANITIZED();
    for (int i = 0; i < 10; i++) {
        forking f = {.bodies = 0};
        (void)cv_pool_run(2, fork_inside, &f, NULL, NULL);
        assert_true(atomic_load(&f.bodies) >= 1);
        assert_int_equal(atomic_load(&f.bad_children), 0);
    }
}

/* No step runs in a child, and the job can be posted there again. */
static int use_job_in_child(chore *c)
{
    alarm(HANG_SECONDS);
    if (atomic_load(&c->inside) != 0) return 1;
    usleep(1000);
    if (atomic_load(&c->inside) != 0) return 2;
    cv_pool_withdraw(&c->job);
    atomic_store(&c->endless, false);
    atomic_store(&c->left, 50);
    cv_pool_post(&c->job);
    return wait_until_done(c) ? 0 : 3;
}

static void a_child_begins_without_jobs(void **state)
{
    (void)state;
    SKIP_IF_SANITIZED();
    skip_where_emulated();
    chore c;
    init_chore(&c, 2);
    atomic_store(&c.endless, true);
    cv_pool_post(&c.job);
    int status = 0;
    for (int i = 0; i < 30 && status == 0; i++) {
        pid_t child = fork();
        if (child == 0) _exit(use_job_in_child(&c));
        status = status_of(child);
    }
    cv_pool_withdraw(&c.job); /* before a failing assertion invalidates `c` */
    assert_int_equal(status, 0);
    assert_int_equal(atomic_load(&c.inside), 0);
}

int main(void)
{
    alarm(5 * HANG_SECONDS); /* a hang ends the program with a signal */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_child_starts_its_own_threads),
        cmocka_unit_test(forking_in_the_middle),
        cmocka_unit_test(forking_inside_a_body),
        cmocka_unit_test(a_child_begins_without_jobs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
