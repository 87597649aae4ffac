/* A writer gets a read-write lock although readers overlap without end. */
#include "base/os.h"
#include "base/thread.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <unistd.h>

#include <cmocka.h>

enum { READERS = 3, WRITES = 50, HOLD_NS = 1000000 };

static cv_rwlock lock;
static atomic_bool stop;
static atomic_int n_reading, wrong;

static void *read_again(void *unused)
{
    (void)unused;
    while (!atomic_load(&stop)) {
        cv_rwlock_read(&lock);
        atomic_fetch_add(&n_reading, 1);
        cv_os_sleep_ns(HOLD_NS);
        atomic_fetch_sub(&n_reading, 1);
        cv_rwlock_unlock(&lock);
    }
    return NULL;
}

static void *write_again(void *unused)
{
    (void)unused;
    for (int i = 0; i < WRITES; i++) {
        cv_rwlock_write(&lock);
        if (atomic_load(&n_reading) != 0) atomic_fetch_add(&wrong, 1);
        cv_rwlock_unlock(&lock);
    }
    return NULL;
}

static void writers_do_not_starve(void **state)
{
    (void)state;
    pthread_t readers[READERS], writers[2];
    alarm(60);
    cv_rwlock_init(&lock);
    for (int i = 0; i < READERS; i++)
        assert_int_equal(pthread_create(&readers[i], NULL, read_again, NULL), 0);
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&writers[i], NULL, write_again, NULL), 0);
    for (int i = 0; i < 2; i++) pthread_join(writers[i], NULL);
    atomic_store(&stop, true);
    for (int i = 0; i < READERS; i++) pthread_join(readers[i], NULL);
    alarm(0);
    assert_int_equal(atomic_load(&wrong), 0);
    assert_true(cv_rwlock_try_write(&lock));
    cv_rwlock_unlock(&lock);
    cv_rwlock_destroy(&lock);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(writers_do_not_starve)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
