/* A read-write lock in which a waiting writer goes before new readers, so that
 * a stream of reads cannot starve it. */
#ifndef CV_BASE_SYNC_H
#define CV_BASE_SYNC_H

#include <pthread.h>

void cv_rwlock_init(pthread_rwlock_t *lock);

#endif
