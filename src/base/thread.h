/* Threads and locks. Most functions are one call of the system. A port to a system without POSIX
 * threads rewrites only this file and thread.c.
 *
 * Locks are not recursive. Objects initialised with an INIT macro need not be destroyed. */
#ifndef CV_BASE_THREAD_H
#define CV_BASE_THREAD_H

#include "base/os.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- Mutexes ------------------------------------------------------------ */

typedef struct cv_mutex {
    pthread_mutex_t system;
} cv_mutex;
#define CV_MUTEX_INIT                                                                        \
    {                                                                                        \
        PTHREAD_MUTEX_INITIALIZER                                                            \
    }

static inline void cv_mutex_init(cv_mutex *mutex)
{
    pthread_mutex_init(&mutex->system, NULL);
}
static inline void cv_mutex_destroy(cv_mutex *mutex)
{
    pthread_mutex_destroy(&mutex->system);
}
static inline void cv_mutex_lock(cv_mutex *mutex) { pthread_mutex_lock(&mutex->system); }
static inline void cv_mutex_unlock(cv_mutex *mutex) { pthread_mutex_unlock(&mutex->system); }

/* Takes the lock and returns true if it is free. Otherwise returns false without waiting. */
static inline bool cv_mutex_try_lock(cv_mutex *mutex)
{
    return pthread_mutex_trylock(&mutex->system) == 0;
}

/* ---- Condition variables ------------------------------------------------ */

typedef struct cv_cond {
    pthread_cond_t system;
} cv_cond;
#define CV_COND_INIT                                                                         \
    {                                                                                        \
        PTHREAD_COND_INITIALIZER                                                             \
    }

static inline void cv_cond_init(cv_cond *cond) { pthread_cond_init(&cond->system, NULL); }
static inline void cv_cond_destroy(cv_cond *cond) { pthread_cond_destroy(&cond->system); }

/* Releases the lock, sleeps, and takes the lock again. May wake spuriously. */
static inline void cv_cond_wait(cv_cond *cond, cv_mutex *mutex)
{
    pthread_cond_wait(&cond->system, &mutex->system);
}
/* Does the same as cv_cond_wait, but sleeps for at most approximately `ns` nanoseconds. */
void cv_cond_wait_for(cv_cond *cond, cv_mutex *mutex, uint64_t ns);

static inline void cv_cond_wake_one(cv_cond *cond) { pthread_cond_signal(&cond->system); }
static inline void cv_cond_wake_all(cv_cond *cond) { pthread_cond_broadcast(&cond->system); }

/* ---- Read-write locks ---------------------------------------------------- */

/* A waiting writer precedes new readers, so that it does not starve. Therefore a thread that holds
 * the lock for reading must not lock it for reading again. The systems differ in this (musl prefers
 * readers), so new readers wait at a gate while writers wait. */
typedef struct cv_rwlock {
    pthread_rwlock_t system;
    cv_mutex gate;
    atomic_int n_waiting; /* writers */
} cv_rwlock;

static inline void cv_rwlock_init(cv_rwlock *lock)
{
    pthread_rwlock_init(&lock->system, NULL);
    cv_mutex_init(&lock->gate);
    atomic_init(&lock->n_waiting, 0);
}

static inline void cv_rwlock_destroy(cv_rwlock *lock)
{
    cv_mutex_destroy(&lock->gate);
    pthread_rwlock_destroy(&lock->system);
}

static inline void cv_rwlock_read(cv_rwlock *lock)
{
    if (atomic_load_explicit(&lock->n_waiting, memory_order_relaxed) > 0) {
        cv_mutex_lock(&lock->gate);
        cv_mutex_unlock(&lock->gate);
    }
    pthread_rwlock_rdlock(&lock->system);
}

static inline void cv_rwlock_write(cv_rwlock *lock)
{
    atomic_fetch_add(&lock->n_waiting, 1);
    cv_mutex_lock(&lock->gate);
    pthread_rwlock_wrlock(&lock->system);
    cv_mutex_unlock(&lock->gate);
    atomic_fetch_sub(&lock->n_waiting, 1);
}

static inline void cv_rwlock_unlock(cv_rwlock *lock) { pthread_rwlock_unlock(&lock->system); }

/* Takes the lock for writing if it is free. Otherwise returns false without waiting. */
static inline bool cv_rwlock_try_write(cv_rwlock *lock)
{
    return pthread_rwlock_trywrlock(&lock->system) == 0;
}

/* ---- Once in a process --------------------------------------------------- */

/* Not pthread_once: in musl a child that was forked while another thread ran `body` would wait for that
 * thread, which it does not have. */
typedef struct cv_once {
    atomic_uint state; /* 0; 1 + the process that runs `body`; CV_ONCE_DONE */
} cv_once;
#define CV_ONCE_INIT                                                                         \
    {                                                                                        \
        0                                                                                    \
    }
#define CV_ONCE_DONE UINT32_MAX

/* The first call runs `body`. Every call returns after `body` has returned. A child of a fork runs a
 * `body` again that had not returned. */
static inline void cv_once_run(cv_once *once, void (*body)(void))
{
    enum { PAUSE = 20000 }; /* nanoseconds */
    unsigned state = atomic_load_explicit(&once->state, memory_order_acquire);
    while (state != CV_ONCE_DONE) {
        unsigned own = 1 + cv_os_process();
        if (state == own) {
            cv_os_sleep_ns(PAUSE);
            state = atomic_load_explicit(&once->state, memory_order_acquire);
        } else if (atomic_compare_exchange_strong(&once->state, &state, own)) {
            body();
            state = CV_ONCE_DONE;
            atomic_store_explicit(&once->state, state, memory_order_release);
        }
    }
}

/* ---- Threads and forks --------------------------------------------------- */

/* Starts a detached thread. Returns false if the system cannot create a thread. */
bool cv_thread_start(void *(*body)(void *context), void *context);

/* Ends the thread that calls it. */
_Noreturn void cv_thread_end(void);

/* Blocks all signals in this thread, so that the system delivers them to other threads. */
void cv_thread_block_signals(void);

/* Adds `more`, 1 or -1, to the number of reasons why other threads may wait for this thread. A
 * reason is that this thread belongs to the library, or runs a function of the program. While the
 * number is not 0, this thread must not wait for other threads. */
void cv_thread_be_awaited(int more);
bool cv_thread_is_awaited(void);

/* Identifies a thread among those that are running. */
typedef struct cv_thread {
    pthread_t system;
} cv_thread;

static inline cv_thread cv_thread_self(void) { return (cv_thread){pthread_self()}; }
static inline bool cv_thread_is_self(cv_thread thread)
{
    return pthread_equal(thread.system, pthread_self()) != 0;
}

/* Returns the identity of this thread as a number, never 0, to distribute data over threads. */
static inline uintptr_t cv_thread_number(void) { return (uintptr_t)pthread_self(); }

/* Adds a watcher: functions (or NULL) that are called around each fork, `before` and `in_parent` in
 * the parent, `in_child` in the child. Watchers of kind WAITS wait for other threads. They are
 * called before all LOCKS when a fork begins, and after all LOCKS when it has ended. Within a kind
 * the watcher added last is called first before a fork, and last after it. A watcher that is there
 * is not added again. Does nothing on a system without fork. */
typedef enum cv_fork_watcher { CV_FORK_LOCKS, CV_FORK_WAITS } cv_fork_watcher;
void cv_thread_on_fork(cv_fork_watcher kind, void (*before)(void), void (*in_parent)(void),
                       void (*in_child)(void));

/* Holds the mutex around each fork, so that no child inherits it locked. Mutexes are locked after
 * all watchers were called, the mutex added last first. Call without any lock. May be repeated. */
void cv_thread_hold_on_fork(cv_mutex *mutex);

#endif
