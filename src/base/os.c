/* Room: base. The one place that knows which system this is. Promises: calls
 * interrupted by signals or cut short are completed, and every new descriptor
 * is close-on-exec. Must not know what the files are for. */
#include "base/os.h"

#include "base/thread.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#ifdef __linux__
#include <sched.h>
#include <sys/syscall.h>
#endif
#ifdef __APPLE__
#include <sys/sysctl.h>
#endif

/* Some systems refuse transfers beyond INT_MAX bytes. */
static const size_t max_transfer = (size_t)1 << 30;

/* Positions that off_t can say. Without 64 bits (_FILE_OFFSET_BITS, which the build
 * sets) a position above 4 GiB would name another one below. */
static const uint64_t max_pos = INT64_MAX;
_Static_assert(sizeof(off_t) == sizeof(int64_t), "off_t must have 64 bits");

/* ---- Files -------------------------------------------------------------- */

/* In a program that was started without its standard streams, a file of ours could take
 * the place of one, and what is meant for stderr would be written into it. */
static int keep_off_streams(int *fd)
{
    enum { FIRST = 3 };
    if (*fd >= FIRST) return 0;
    int moved = fcntl(*fd, F_DUPFD_CLOEXEC, FIRST);
    int error = moved < 0 ? errno : 0;
    close(*fd);
    *fd = moved;
    return error;
}

int cv_os_open_at(int dir_fd, const char *name, int flags, int mode, int *fd)
{
    do {
        *fd = openat(dir_fd, name, flags | O_CLOEXEC | O_NONBLOCK, (mode_t)mode);
    } while (*fd < 0 && errno == EINTR);
    return *fd < 0 ? errno : keep_off_streams(fd);
}

int cv_os_open_names(const char *path, int *fd)
{
#if defined(O_PATH)
    enum { FLAGS = O_PATH };
#elif defined(O_SEARCH)
    enum { FLAGS = O_SEARCH };
#else
    enum { FLAGS = O_RDONLY };
#endif
    return cv_os_open_at(AT_FDCWD, path, FLAGS | O_DIRECTORY, 0, fd);
}

bool cv_os_names_fd_at(int dir_fd, const char *name, int fd)
{
    struct stat opened, named;
    return fstat(fd, &opened) == 0 && fstatat(dir_fd, name, &named, 0) == 0 &&
           opened.st_dev == named.st_dev && opened.st_ino == named.st_ino;
}

bool cv_os_same_file(const char *a, const char *b)
{
    struct stat x, y;
    return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev &&
           x.st_ino == y.st_ino;
}

char *cv_os_absolute(const char *path)
{
    char *parent = path[0] == '/' ? NULL : getcwd(NULL, 0); /* as long as it takes */
    if (!parent) return strdup(path);
    size_t size = strlen(parent) + strlen(path) + 2;
    char *joined = malloc(size);
    if (joined) (void)snprintf(joined, size, "%s/%s", parent, path);
    free(parent);
    return joined;
}

int cv_os_read(int fd, void *dst, size_t size, uint64_t pos, size_t *done)
{
    *done = 0;
    while (*done < size && pos + *done <= max_pos) {
        size_t left = size - *done;
        ssize_t n = pread(fd, (char *)dst + *done, left < max_transfer ? left : max_transfer,
                          (off_t)(pos + *done));
        if (n == 0) break;
        if (n > 0)
            *done += (size_t)n;
        else if (errno != EINTR)
            return errno;
    }
    return 0;
}

int cv_os_write(int fd, const void *src, size_t size, uint64_t pos)
{
    if (pos > max_pos || size > max_pos - pos) return EFBIG;
    size_t done = 0;
    while (done < size) {
        size_t left = size - done;
        ssize_t n = pwrite(fd, (const char *)src + done,
                           left < max_transfer ? left : max_transfer, (off_t)(pos + done));
        if (n == 0) return EIO;
        if (n > 0)
            done += (size_t)n;
        else if (errno != EINTR)
            return errno;
    }
    return 0;
}

/* The source is mapped, and the mapping is only ever handed to the system: where
 * somebody has cut the file it answers EFAULT, and no signal is raised. Half as
 * many copies as by reading and writing. */
int cv_os_copy_within(int fd, uint64_t from, uint64_t to, size_t size)
{
#ifdef MAP_POPULATE
    enum { FLAGS = MAP_SHARED | MAP_POPULATE };
#else
    enum { FLAGS = MAP_SHARED };
#endif
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    size_t before = (size_t)(from % page);
    if (from > INT64_MAX || size > SIZE_MAX - before) return EFBIG;
    void *map = mmap(NULL, before + size, PROT_READ, FLAGS, fd, (off_t)(from - before));
    if (map == MAP_FAILED) return ENOTSUP;
    int error = cv_os_write(fd, (const uint8_t *)map + before, size, to);
    munmap(map, before + size);
    return error == EFAULT ? EIO : error;
}

int cv_os_sync_data(int fd)
{
    int failed;
    do {
#ifdef __APPLE__
        /* fsync stops at the drive's cache there; some file systems have no more. */
        failed = fcntl(fd, F_FULLFSYNC);
        if (failed && errno != EINTR) failed = fsync(fd);
#else
        failed = fdatasync(fd);
#endif
    } while (failed && errno == EINTR);
    return failed ? errno : 0;
}

int cv_os_sync_directory(int fd)
{
    int failed;
    do {
        failed = fsync(fd);
    } while (failed && errno == EINTR);
    return failed && errno != EINVAL && errno != ENOTSUP ? errno : 0;
}

int cv_os_lock(int fd)
{
    int failed;
    do {
        failed = flock(fd, LOCK_EX | LOCK_NB);
    } while (failed && errno == EINTR);
    return failed ? errno : 0;
}

int cv_os_ask_lock(int fd)
{
    int failed;
    do {
        failed = flock(fd, LOCK_SH | LOCK_NB);
    } while (failed && errno == EINTR);
    if (failed) return errno;
    flock(fd, LOCK_UN);
    return 0;
}

/* Record locks on bytes that no file has, so that no other use of them is met:
 *
 *     READS     everyone who shares, as long as the file is open
 *     UNKNOWN   whoever has not said a number yet
 *     NUMBERS   from here on: byte n for number n
 */
#ifdef F_OFD_SETLK
static const off_t lock_reads = (off_t)(INT64_MAX / 2);
static const off_t lock_unknown = (off_t)(INT64_MAX / 2) + 1;
static const off_t lock_numbers = (off_t)(INT64_MAX / 2) + 2;
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

int cv_os_share(int fd)
{
#ifdef F_OFD_SETLK
    return set_lock(fd, F_RDLCK, lock_reads, lock_unknown - lock_reads + 1);
#else
    (void)fd;
    return ENOTSUP;
#endif
}

int cv_os_share_number(int fd, uint64_t number)
{
#ifdef F_OFD_SETLK
    int error = set_lock(fd, F_RDLCK, lock_of(number), 1);
    return error ? error : set_lock(fd, F_UNLCK, lock_unknown, 1);
#else
    (void)fd, (void)number;
    return ENOTSUP;
#endif
}

void cv_os_unshare(int fd)
{
#ifdef F_OFD_SETLK
    (void)set_lock(fd, F_UNLCK, lock_reads, 0);
#else
    (void)fd;
#endif
}

static atomic_uint generation, forks;
static cv_once forks_once = CV_ONCE_INIT;

static void note_fork(void) { atomic_fetch_add(&forks, 1); }
static void note_birth(void) { atomic_fetch_add(&generation, 1); }
static void watch_forks(void) { cv_thread_on_fork(NULL, note_fork, note_birth); }

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

void cv_os_unlock(int fd)
{
    (void)flock(fd, LOCK_UN);
    cv_os_unshare(fd);
}

bool cv_os_is_shared(int fd)
{
#ifdef F_OFD_SETLK
    return is_locked(fd, lock_reads, 1);
#else
    (void)fd;
    return true;
#endif
}

/* One look covers UNKNOWN and the numbers below: who goes from one to the other has
 * both for a moment, and is not missed. */
bool cv_os_is_shared_but(int fd, uint64_t number)
{
#ifdef F_OFD_SETLK
    off_t own = lock_of(number), end = lock_numbers + (off_t)most_numbers;
    if (!is_locked(fd, lock_reads, 1)) return false;
    if (is_locked(fd, lock_unknown, own - lock_unknown)) return true;
    if (own + 1 < end && is_locked(fd, own + 1, end - own - 1)) return true;
    return !is_locked(fd, own, 1); /* somebody who says no number */
#else
    (void)fd, (void)number;
    return true;
#endif
}

/* ---- Renaming ----------------------------------------------------------- */

typedef enum rename_how { RENAME_TO_NEW, RENAME_BOTH_WAYS } rename_how;

/* ENOTSUP: neither the system nor the file system has it. */
static int rename_specially(int dir_fd, const char *from, const char *to, rename_how how)
{
    int failed = -1;
    errno = ENOTSUP;
#if defined(__linux__) && defined(SYS_renameat2)
    /* Flag 1 is RENAME_NOREPLACE, 2 RENAME_EXCHANGE: not all headers have them. */
    unsigned flags = how == RENAME_TO_NEW ? 1u : 2u;
    failed = (int)syscall(SYS_renameat2, dir_fd, from, dir_fd, to, flags);
#elif defined(__APPLE__)
    unsigned flags = how == RENAME_TO_NEW ? RENAME_EXCL : RENAME_SWAP;
    failed = renameatx_np(dir_fd, from, dir_fd, to, flags);
#else
    (void)dir_fd, (void)from, (void)to, (void)how;
#endif
    if (!failed) return 0;
    return errno == EINVAL || errno == ENOSYS ? ENOTSUP : errno;
}

static int rename_at(int dir_fd, const char *from, const char *to)
{
    return renameat(dir_fd, from, dir_fd, to) ? errno : 0;
}

/* An empty directory may be replaced by a directory, so an exclusively made
 * one keeps the name for us. */
static int rename_directory_new(int dir_fd, const char *from, const char *to)
{
    if (mkdirat(dir_fd, to, 0777)) return errno;
    int error = rename_at(dir_fd, from, to);
    if (error) unlinkat(dir_fd, to, AT_REMOVEDIR);
    return error;
}

static int rename_file_new(int dir_fd, const char *from, const char *to)
{
    if (linkat(dir_fd, from, dir_fd, to, 0) == 0)
        return unlinkat(dir_fd, from, 0) ? errno : 0;
    if (errno == EEXIST) return EEXIST;

    /* No hard links either: an empty file keeps the name for a moment. */
    int fd;
    int error = cv_os_open_at(dir_fd, to, O_WRONLY | O_CREAT | O_EXCL, 0666, &fd);
    if (error) return error;
    close(fd);
    error = rename_at(dir_fd, from, to);
    if (error) unlinkat(dir_fd, to, 0);
    return error;
}

int cv_os_rename_new_portable_at(int dir_fd, const char *from, const char *to)
{
    struct stat st;
    if (fstatat(dir_fd, from, &st, AT_SYMLINK_NOFOLLOW)) return errno;
    return S_ISDIR(st.st_mode) ? rename_directory_new(dir_fd, from, to)
                               : rename_file_new(dir_fd, from, to);
}

int cv_os_rename_new_at(int dir_fd, const char *from, const char *to)
{
    int error = rename_specially(dir_fd, from, to, RENAME_TO_NEW);
    return error == ENOTSUP ? cv_os_rename_new_portable_at(dir_fd, from, to) : error;
}

int cv_os_exchange_at(int dir_fd, const char *a, const char *b)
{
    return rename_specially(dir_fd, a, b, RENAME_BOTH_WAYS);
}

/* ---- Temporary names ---------------------------------------------------- */

/* Scatters the bits of a number (the finaliser of splitmix64). */
static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

void cv_os_temp_name(const char *name, const char *tag, char temp[CV_OS_TEMP_NAME])
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789";
    enum { LETTERS = sizeof letters - 1, SUFFIX = 6, MAX_NAME = 200 };

    /* Time, process and stack tell apart whoever asks at the same moment. */
    uint64_t seed = mix(cv_os_clock_ns()) + mix((uint64_t)getpid()) + (uintptr_t)&seed;
    uint64_t bits = mix(seed);
    char suffix[SUFFIX + 1] = {0};
    for (int i = 0; i < SUFFIX; i++, bits /= LETTERS) suffix[i] = letters[bits % LETTERS];
    (void)snprintf(temp, CV_OS_TEMP_NAME, ".%.*s.%.16s-%s", (int)MAX_NAME, name, tag, suffix);
}

enum { TEMP_TRIES = 100 };

int cv_os_create_temp_file_at(int dir_fd, const char *name, int mode,
                              char temp[CV_OS_TEMP_NAME], int *fd)
{
    int error = EEXIST;
    for (int i = 0; i < TEMP_TRIES && error == EEXIST; i++) {
        cv_os_temp_name(name, "tmp", temp);
        error = cv_os_open_at(dir_fd, temp, O_RDWR | O_CREAT | O_EXCL, mode, fd);
    }
    return error;
}

int cv_os_create_temp_directory_at(int dir_fd, const char *name, int mode,
                                   char temp[CV_OS_TEMP_NAME], int *fd)
{
    int error = EEXIST;
    for (int i = 0; i < TEMP_TRIES && error == EEXIST; i++) {
        cv_os_temp_name(name, "tmp", temp);
        error = mkdirat(dir_fd, temp, (mode_t)mode) ? errno : 0;
    }
    if (error) return error;
    error = cv_os_open_at(dir_fd, temp, O_RDONLY | O_DIRECTORY, 0, fd);
    if (error) unlinkat(dir_fd, temp, AT_REMOVEDIR);
    return error;
}

/* ---- The machine -------------------------------------------------------- */

int cv_os_cores(void)
{
#ifdef __linux__
    cpu_set_t allowed;
    if (sched_getaffinity(0, sizeof allowed, &allowed) == 0 && CPU_COUNT(&allowed) > 0)
        return CPU_COUNT(&allowed);
#endif
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n < 1 ? 1 : n > 4096 ? 4096 : (int)n;
}

#ifdef __APPLE__
static size_t cache_size(const char *name)
{
    int64_t value = 0;
    size_t size = sizeof value;
    return sysctlbyname(name, &value, &size, NULL, 0) == 0 && value > 0 ? (size_t)value : 0;
}

size_t cv_os_l2_cache(void) { return cache_size("hw.l2cachesize"); }
size_t cv_os_l3_cache(void) { return cache_size("hw.l3cachesize"); }
#elif defined(_SC_LEVEL2_CACHE_SIZE) && defined(_SC_LEVEL3_CACHE_SIZE)
static size_t cache_size(int name)
{
    long size = sysconf(name);
    return size > 0 ? (size_t)size : 0;
}

size_t cv_os_l2_cache(void) { return cache_size(_SC_LEVEL2_CACHE_SIZE); }
size_t cv_os_l3_cache(void) { return cache_size(_SC_LEVEL3_CACHE_SIZE); }
#else
size_t cv_os_l2_cache(void) { return 0; }
size_t cv_os_l3_cache(void) { return 0; }
#endif

uint64_t cv_os_clock_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

uint64_t cv_os_time_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

/* ---- Memory ------------------------------------------------------------- */

void *cv_os_large_pages(size_t size)
{
    if (size > SIZE_MAX - CV_OS_LARGE_PAGE) return NULL;
    size_t rounded = (size + CV_OS_LARGE_PAGE - 1) / CV_OS_LARGE_PAGE * CV_OS_LARGE_PAGE;
    void *memory = aligned_alloc(CV_OS_LARGE_PAGE, rounded);
#ifdef MADV_HUGEPAGE
    if (memory) madvise(memory, rounded, MADV_HUGEPAGE); /* no is no harm */
#endif
    return memory;
}
