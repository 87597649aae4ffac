/* A child never inherits a mutex that cv_thread_hold_on_fork has, or waits for a call of cv_once_run,
 * whatever another thread does. */
#include "base/thread.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { HOLD_US = 50000 };

static cv_mutex first = CV_MUTEX_INIT, second = CV_MUTEX_INIT;
static atomic_bool is_held;

/* Takes both in the order that the fork must keep. */
static void *hold(void *unused)
{
    (void)unused;
    cv_mutex_lock(&second);
    atomic_store(&is_held, true);
    usleep(HOLD_US);
    cv_mutex_lock(&first);
    usleep(HOLD_US);
    cv_mutex_unlock(&first);
    cv_mutex_unlock(&second);
    return NULL;
}

static int take_both(void)
{
    return cv_mutex_try_lock(&first) && cv_mutex_try_lock(&second) ? 0 : 1;
}

/* ThreadSanitizer takes the parent's thread for one that an exiting child has leaked. */
static void report(int end, int (*child)(void))
{
    char answer = (char)child();
    if (write(end, &answer, 1) != 1) _exit(1);
    (void)raise(SIGKILL);
}

static void check_child(int (*child)(void))
{
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t pid = fork();
    if (pid == 0) report(ends[1], child);
    assert_true(pid > 0);
    close(ends[1]);
    char answer = 'x';
    assert_int_equal(read(ends[0], &answer, 1), 1);
    assert_int_equal(answer, 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    close(ends[0]);
}

static void a_child_gets_them_unlocked(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) { /* a second addition changes nothing */
        cv_thread_hold_on_fork(&first);
        cv_thread_hold_on_fork(&second);
    }
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, hold, NULL), 0);
    while (!atomic_load(&is_held)) usleep(100);
    check_child(take_both);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(take_both(), 0); /* the parent has them back */
    cv_mutex_unlock(&second);
    cv_mutex_unlock(&first);
}

/* ---- Once --------------------------------------------------------------------------------- */

static cv_once once = CV_ONCE_INIT;
static atomic_int runs;

static void run(void)
{
    if (atomic_fetch_add(&runs, 1) > 0) return;
    atomic_store(&is_held, true);
    while (atomic_load(&is_held)) usleep(100);
}

static void *run_once(void *unused)
{
    (void)unused;
    cv_once_run(&once, run);
    return NULL;
}

static int run_again(void)
{
    alarm(60);
    cv_once_run(&once, run);
    cv_once_run(&once, run);
    return atomic_load(&runs) == 2 ? 0 : 1;
}

static void a_child_runs_what_had_not_returned(void **state)
{
    (void)state;
    pthread_t threads[2];
    atomic_store(&is_held, false);
    assert_int_equal(pthread_create(&threads[0], NULL, run_once, NULL), 0);
    while (!atomic_load(&is_held)) usleep(100);
    assert_int_equal(pthread_create(&threads[1], NULL, run_once, NULL), 0);
    check_child(run_again);
    atomic_store(&is_held, false);
    for (int i = 0; i < 2; i++) assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_int_equal(atomic_load(&runs), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_child_gets_them_unlocked),
                                       cmocka_unit_test(a_child_runs_what_had_not_returned)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
