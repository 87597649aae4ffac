/* Room: base. The larger functions of threads and locks on Windows, with the POSIX threads of
 * mingw-w64. The counterpart of thread.c. */
#include "base/thread.h"

#include <time.h>

void cv_cond_wait_for(cv_cond *cond, cv_mutex *mutex, uint64_t ns)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    uint64_t nsec = (uint64_t)until.tv_nsec + ns % 1000000000;
    until.tv_sec += (time_t)(ns / 1000000000 + nsec / 1000000000);
    until.tv_nsec = (long)(nsec % 1000000000);
    (void)pthread_cond_timedwait(&cond->system, &mutex->system, &until);
}

bool cv_thread_start(void *(*body)(void *context), void *context)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, body, context) != 0) return false;
    pthread_detach(thread);
    return true;
}

void cv_thread_end(void)
{
    pthread_exit(NULL);
    __builtin_unreachable(); /* mingw-w64 does not declare that it does not return */
}

static _Thread_local int n_awaited;

void cv_thread_be_awaited(int more) { n_awaited += more; }

bool cv_thread_is_awaited(void) { return n_awaited > 0; }

void cv_thread_block_signals(void) {}

void cv_thread_on_fork(cv_fork_watcher kind, void (*before)(void), void (*in_parent)(void),
                       void (*in_child)(void))
{
    (void)kind, (void)before, (void)in_parent, (void)in_child;
}

void cv_thread_hold_on_fork(cv_mutex *mutex) { (void)mutex; }
