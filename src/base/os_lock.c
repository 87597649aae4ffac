/* Room: base. Locks on a POSIX system: flock, and record locks that belong to an opening.
 * With the other os*.c and thread.c what a port writes anew. */
#include "base/os_lock.h"

#include "base/os_posix.h"
#include "base/thread.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <sys/file.h>

int cv_file_lock(cv_file file)
{
    int failed;
    do {
        failed = flock(cv_posix_fd(file), LOCK_EX | LOCK_NB);
    } while (failed && errno == EINTR);
    return failed ? errno : 0;
}

int cv_file_ask_lock(cv_file file)
{
    int failed;
    do {
        failed = flock(cv_posix_fd(file), LOCK_SH | LOCK_NB);
    } while (failed && errno == EINTR);
    if (failed) return errno;
    flock(cv_posix_fd(file), LOCK_UN);
    return 0;
}

/* Record locks on bytes that no file has, so that no other use of them is met:
 *
 *     READS     everyone who shares, as long as the file is open
 *     UNKNOWN   whoever has not said a number yet
 *     NUMBERS   from here on: byte n for number n
 *     MARKS     before all of these, in the same way
 */
#ifdef F_OFD_SETLK
static const off_t lock_reads = (off_t)(INT64_MAX / 2);
static const off_t lock_unknown = (off_t)(INT64_MAX / 2) + 1;
static const off_t lock_numbers = (off_t)(INT64_MAX / 2) + 2;
static const off_t lock_marks = (off_t)1 << 61;
static const uint64_t most_numbers = (uint64_t)1 << 61;

static int set_lock(int fd, short type, off_t start, off_t n)
{
    struct flock lock = {.l_type = type, .l_whence = SEEK_SET, .l_start = start, .l_len = n};
    return fcntl(fd, F_OFD_SETLK, &lock) ? errno : 0;
}

static bool is_locked(int fd, off_t start, off_t n)
{
    struct flock lock = {
        .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = start, .l_len = n};
    return fcntl(fd, F_OFD_GETLK, &lock) != 0 || lock.l_type != F_UNLCK;
}

static off_t lock_of(uint64_t number)
{
    return lock_numbers + (off_t)(number % most_numbers);
}
#endif

int cv_file_share(cv_file file)
{
#ifdef F_OFD_SETLK
    return set_lock(cv_posix_fd(file), F_RDLCK, lock_reads, lock_unknown - lock_reads + 1);
#else
    (void)file;
    return ENOTSUP;
#endif
}

int cv_file_share_number(cv_file file, uint64_t number)
{
#ifdef F_OFD_SETLK
    int error = set_lock(cv_posix_fd(file), F_RDLCK, lock_of(number), 1);
    return error ? error : set_lock(cv_posix_fd(file), F_UNLCK, lock_unknown, 1);
#else
    (void)file, (void)number;
    return ENOTSUP;
#endif
}

void cv_file_unshare(cv_file file)
{
#ifdef F_OFD_SETLK
    (void)set_lock(cv_posix_fd(file), F_UNLCK, lock_reads, 0);
#else
    (void)file;
#endif
}

int cv_file_mark(cv_file file, uint64_t number)
{
#ifdef F_OFD_SETLK
    off_t byte = lock_marks + (off_t)(number % (most_numbers - 1));
    return set_lock(cv_posix_fd(file), F_RDLCK, byte, 1);
#else
    (void)file, (void)number;
    return ENOTSUP;
#endif
}

void cv_file_unmark(cv_file file, uint64_t number)
{
#ifdef F_OFD_SETLK
    off_t byte = lock_marks + (off_t)(number % (most_numbers - 1));
    (void)set_lock(cv_posix_fd(file), F_UNLCK, byte, 1);
#else
    (void)file, (void)number;
#endif
}

bool cv_file_is_marked(cv_file file, uint64_t number)
{
#ifdef F_OFD_SETLK
    struct flock lock = {.l_type = F_WRLCK,
                         .l_whence = SEEK_SET,
                         .l_start = lock_marks + (off_t)(number % (most_numbers - 1)),
                         .l_len = 1};
    return fcntl(cv_posix_fd(file), F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
#else
    (void)file, (void)number;
    return false;
#endif
}

static atomic_uint generation, forks;
static cv_once forks_once = CV_ONCE_INIT;

static void note_fork(void) { atomic_fetch_add(&forks, 1); }
static void note_birth(void) { atomic_fetch_add(&generation, 1); }
static void watch_forks(void)
{
    cv_thread_on_fork(CV_FORK_LOCKS, NULL, note_fork, note_birth);
}

cv_os_moment cv_os_now(void)
{
    cv_once_run(&forks_once, watch_forks);
    return (cv_os_moment){atomic_load(&generation), atomic_load(&forks)};
}

bool cv_os_is_other_process(cv_os_moment then)
{
    return atomic_load(&generation) != then.generation;
}

bool cv_os_has_forked(cv_os_moment then)
{
    return !cv_os_is_other_process(then) && atomic_load(&forks) != then.forks;
}

void cv_file_unlock(cv_file file)
{
    (void)flock(cv_posix_fd(file), LOCK_UN);
    cv_file_unshare(file);
}

bool cv_file_is_shared(cv_file file)
{
#ifdef F_OFD_SETLK
    return is_locked(cv_posix_fd(file), lock_reads, 1);
#else
    (void)file;
    return true;
#endif
}

/* One look covers UNKNOWN and the numbers below: who goes from one to the other has
 * both for a moment, and is not missed. */
bool cv_file_is_shared_but(cv_file file, uint64_t number)
{
#ifdef F_OFD_SETLK
    off_t own = lock_of(number), end = lock_numbers + (off_t)most_numbers;
    if (!is_locked(cv_posix_fd(file), lock_reads, 1)) return false;
    if (is_locked(cv_posix_fd(file), lock_unknown, own - lock_unknown)) return true;
    if (own + 1 < end && is_locked(cv_posix_fd(file), own + 1, end - own - 1)) return true;
    return !is_locked(cv_posix_fd(file), own, 1); /* somebody who says no number */
#else
    (void)file, (void)number;
    return true;
#endif
}
