/* What the two files of wjournal share. Nobody outside the shim sees these names. */
#ifndef WJOURNAL_H
#define WJOURNAL_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

extern size_t wj_dir_size; /* of the directory's path; 0: none is journaled */
extern int wj_fail_errno;
extern long wj_atomic; /* bytes of a sector; 0: any write may be short */

/* libc's syscall(): the shim's own is for the program. */
extern long (*wj_raw)(long, ...);

/* From the environment, at the first call. */
void wj_init(void);

/* The path in the directory of a descriptor, of `p` from `dfd` on; NULL outside of it. `buf` has
 * PATH_MAX bytes. */
const char *wj_fd_path(int fd, char *buf);
const char *wj_path_at(int dfd, const char *p, char *buf);

extern pthread_mutex_t wj_lock;
#define LOCK pthread_mutex_lock(&wj_lock)
#define UNLOCK pthread_mutex_unlock(&wj_lock) /* leaves errno as it is */

/* With the lock. A record in the journal; leaves errno as it is. */
void wj_record(char op, int ok, const char *path, uint64_t off, const void *data,
               uint64_t len);

/* With the lock. 0: go on; 1: fail with errno; 2: do half of it. */
int wj_gate(char op);

/* With the lock, when the operation may go on; else without, and errno says why. */
int wj_enter(char op);

#pragma GCC visibility pop

#endif
