/* Room: base. What of threads and locks takes more than one call. With thread.h the one
 * place that knows the system's threads. */
#include "base/thread.h"

void cv_rwlock_init(cv_rwlock *lock)
{
    pthread_rwlockattr_t attributes;
    pthread_rwlockattr_init(&attributes);
#ifdef __GLIBC__ /* elsewhere writers go first, or the queue is fair */
    pthread_rwlockattr_setkind_np(&attributes, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
#endif
    pthread_rwlock_init(&lock->system, &attributes);
    pthread_rwlockattr_destroy(&attributes);
}

bool cv_thread_start(void *(*body)(void *context), void *context)
{
    pthread_t thread;
    pthread_attr_t attributes;
    if (pthread_attr_init(&attributes) != 0) return false;
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    int failed = pthread_create(&thread, &attributes, body, context);
    pthread_attr_destroy(&attributes);
    return !failed;
}

void cv_thread_on_fork(void (*before)(void), void (*in_parent)(void), void (*in_child)(void))
{
    (void)pthread_atfork(before, in_parent, in_child);
}
