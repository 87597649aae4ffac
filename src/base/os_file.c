/* Room: base. Open files on POSIX. A port rewrites os*.c and thread.c. Repeats system calls that
 * were interrupted, or that transferred only some of the bytes. */
#include "base/os_file.h"

#include "base/os_posix.h"
#include "base/thread.h"

#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#ifdef RWF_NOWAIT /* implies preadv2, until linux/fs.h defines it */
#define HAS_PREADV2
#endif
#ifdef __linux__
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/vfs.h>
#endif

/* ---- Where systems differ ---- */

#ifdef __APPLE__

static int sync_bytes(int fd) { return cv_posix_flush(fd); }

static void advise(int fd, off_t pos, off_t size)
{
    struct radvisory range = {pos, size < INT_MAX ? (int)size : INT_MAX};
    (void)fcntl(fd, F_RDADVISE, &range);
}

/* Allocates space behind the end of the file. Does not change the file's size. */
static void allocate(int fd, off_t pos, off_t size)
{
    enum { BLOCK = 512 };
    struct stat st;
    if (fstat(fd, &st)) return;
    fstore_t room = {.fst_flags = F_ALLOCATEALL, .fst_posmode = F_PEOFPOSMODE};
    room.fst_length = pos + size - (off_t)st.st_blocks * BLOCK;
    if (room.fst_length > 0) (void)fcntl(fd, F_PREALLOCATE, &room);
}

#else

static int sync_bytes(int fd) { return fdatasync(fd); }

static void advise(int fd, off_t pos, off_t size)
{
    (void)posix_fadvise(fd, pos, size, POSIX_FADV_WILLNEED);
}

/* Allocates space behind the file's end for many writes in one call. Without it, ext4 allocates
 * page by page, in twice the time. 131 MB in writes of 4.9 MB: 31 -> 16 ms, with sync 129 -> 94 ms;
 * in writes of 256 KiB: 23 -> 16 ms. Writes of 70 KiB gain only if one call allocates the space for
 * all of them. Other file systems do not need the call. */
static void allocate(int fd, off_t pos, off_t size)
{
#ifdef __linux__
    enum { EXT4 = 0xef53 };
    struct statfs system;
    if (fstatfs(fd, &system) == 0 && system.f_type == EXT4) (void)fallocate(fd, 0, pos, size);
#else
    (void)fd, (void)pos, (void)size;
#endif
}

#endif

/* ---- Files ---- */

/* Some systems refuse transfers beyond INT_MAX bytes. */
static const size_t max_transfer = (size_t)1 << 30;

/* The limit of off_t. The build sets _FILE_OFFSET_BITS; otherwise positions above 4 GiB would
 * wrap. */
static const uint64_t max_pos = INT64_MAX;
_Static_assert(sizeof(off_t) == sizeof(int64_t), "off_t must have 64 bits");

void cv_file_close(cv_file *file)
{
    if (cv_file_is_open(*file)) close(cv_posix_fd(*file));
    *file = (cv_file){0};
}

int cv_file_again(cv_file file, cv_file *out)
{
    int number = fcntl(cv_posix_fd(file), F_DUPFD_CLOEXEC, 3); /* not a standard stream */
    *out = (cv_file){number < 0 ? 0 : number + 1};
    return number < 0 ? errno : 0;
}

int cv_file_get_info(cv_file file, cv_file_info *out)
{
    struct stat st;
    if (fstat(cv_posix_fd(file), &st)) return errno;
    *out = cv_posix_info(&st);
    return 0;
}

int cv_file_size(cv_file file, uint64_t *size)
{
    struct stat st;
    if (fstat(cv_posix_fd(file), &st)) return errno;
    *size = (uint64_t)st.st_size;
    return 0;
}

int cv_file_read(cv_file file, void *dst, size_t size, uint64_t pos, size_t *done)
{
    *done = 0;
    while (*done < size && pos + *done <= max_pos) {
        size_t left = size - *done;
        ssize_t n = pread(cv_posix_fd(file), (char *)dst + *done,
                          left < max_transfer ? left : max_transfer, (off_t)(pos + *done));
        if (n == 0) break;
        if (n > 0)
            *done += (size_t)n;
        else if (errno != EINTR)
            return errno;
    }
    return 0;
}

cv_at_once cv_file_read_at_once(cv_file file, void *dst, size_t size, uint64_t pos)
{
#ifdef HAS_PREADV2
    struct iovec to = {dst, size};
    if (size > max_transfer || pos > max_pos) return CV_AT_ONCE_UNKNOWN;
    ssize_t n = preadv2(cv_posix_fd(file), &to, 1, (off_t)pos, RWF_NOWAIT);
    if (n >= 0) return (size_t)n == size ? CV_AT_ONCE_READ : CV_AT_ONCE_NO;
    return errno == EAGAIN ? CV_AT_ONCE_NO : CV_AT_ONCE_UNKNOWN;
#else
    (void)file, (void)dst, (void)size, (void)pos;
    return CV_AT_ONCE_UNKNOWN;
#endif
}

void cv_file_fetch(cv_file file, uint64_t pos, uint64_t size)
{
    if (pos <= max_pos && size <= max_pos - pos)
        advise(cv_posix_fd(file), (off_t)pos, (off_t)size);
}

/* Ignores errors: the write that needs the space reports them. */
void cv_file_take_room(cv_file file, uint64_t pos, uint64_t size)
{
    enum { LEAST = 256 * 1024 };
    uint64_t end = 0;
    if (size < LEAST || pos > max_pos || size > max_pos - pos) return;
    if (cv_file_size(file, &end) == 0 && pos + size > end)
        allocate(cv_posix_fd(file), (off_t)pos, (off_t)size);
}

int cv_file_write(cv_file file, const void *src, size_t size, uint64_t pos)
{
    if (pos > max_pos || size > max_pos - pos) return EFBIG;
    cv_file_take_room(file, pos, size);
    size_t done = 0;
    while (done < size) {
        size_t left = size - done;
        ssize_t n = pwrite(cv_posix_fd(file), (const char *)src + done,
                           left < max_transfer ? left : max_transfer, (off_t)(pos + done));
        if (n == 0) return EIO;
        if (n > 0)
            done += (size_t)n;
        else if (errno != EINTR)
            return errno;
    }
    return 0;
}

/* Writes from a mapping of the source, which copies the bytes once; read and write copy twice. Only
 * the kernel reads the mapping. So if the file is truncated meanwhile, the write returns EFAULT,
 * and no signal is sent. */
int cv_file_copy_within(cv_file file, uint64_t from, uint64_t to, size_t size)
{
#ifdef MAP_POPULATE
    enum { FLAGS = MAP_SHARED | MAP_POPULATE };
#else
    enum { FLAGS = MAP_SHARED };
#endif
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    size_t before = (size_t)(from % page);
    if (from > INT64_MAX || size > SIZE_MAX - before) return EFBIG;
    void *map = mmap(NULL, before + size, PROT_READ, FLAGS, cv_posix_fd(file),
                     (off_t)(from - before));
    if (map == MAP_FAILED) return ENOTSUP;
    int error = cv_file_write(file, (const uint8_t *)map + before, size, to);
    munmap(map, before + size);
    return error == EFAULT ? EIO : error;
}

int cv_file_clone(cv_file file, uint64_t pos, cv_file from, uint64_t there, uint64_t size)
{
#ifdef FICLONERANGE
    struct file_clone_range range = {
        .src_fd = cv_posix_fd(from),
        .src_offset = there,
        .src_length = size,
        .dest_offset = pos,
    };
    return ioctl(cv_posix_fd(file), FICLONERANGE, &range) ? errno : 0;
#else
    (void)file, (void)pos, (void)from, (void)there, (void)size;
    return ENOTSUP;
#endif
}

bool cv_file_may_clone(cv_file file, cv_file from)
{
#ifdef FICLONERANGE
    enum { XFS = 0x58465342, NFS = 0x6969 };
    static const uint32_t btrfs = 0x9123683e, bcachefs = 0xca451a4e;
    struct statfs system;
    cv_file_info a = {0}, b = {0};
    if (cv_file_get_info(file, &a) || cv_file_get_info(from, &b)) return false;
    if (a.device != b.device || fstatfs(cv_posix_fd(file), &system)) return false;
    uint32_t type = (uint32_t)system.f_type;
    return type == XFS || type == NFS || type == btrfs || type == bcachefs;
#else
    (void)file, (void)from;
    return false;
#endif
}

int cv_file_touch(cv_file file) { return futimens(cv_posix_fd(file), NULL) ? errno : 0; }

int cv_file_truncate(cv_file file, uint64_t size)
{
    if (size > max_pos) return EFBIG;
    return ftruncate(cv_posix_fd(file), (off_t)size) ? errno : 0;
}

int cv_file_sync(cv_file file)
{
    int failed;
    do {
        failed = sync_bytes(cv_posix_fd(file));
    } while (failed && errno == EINTR);
    return failed ? errno : 0;
}

/* ---- Locks ----
 *
 * flock, and record locks of an opening (OFD locks). */

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

/* The record locks are on bytes beyond any file's end, so that they conflict with no other use:
 *
 *     MARKS     byte n of these: held by openings that mark number n
 *     READS     held by every opening that shares
 *     UNKNOWN   held by an opening from cv_file_share until cv_file_share_number
 *     NUMBERS   byte n of these: held by openings with number n */
static const off_t lock_reads = (off_t)(INT64_MAX / 2);
static const off_t lock_unknown = (off_t)(INT64_MAX / 2) + 1;
static const off_t lock_numbers = (off_t)(INT64_MAX / 2) + 2;
static const off_t lock_marks = (off_t)1 << 61;
static const uint64_t most_numbers = (uint64_t)1 << 61;

/* On macOS record locks and flock exclude each other: a writer could not lock a file that is being
 * read. So there, as on systems without record locks, all commands fail. */
#if defined(F_OFD_SETLK) && !defined(__APPLE__)
enum { SET_RECORD = F_OFD_SETLK, ASK_RECORD = F_OFD_GETLK };
#else
enum { SET_RECORD = -1, ASK_RECORD = -1 };
#endif

static int set_lock(cv_file file, short type, off_t start, off_t n)
{
    struct flock lock = {.l_type = type, .l_whence = SEEK_SET, .l_start = start, .l_len = n};
    return fcntl(cv_posix_fd(file), SET_RECORD, &lock) ? errno : 0;
}

static bool is_locked(cv_file file, off_t start, off_t n, bool if_unknown)
{
    struct flock lock = {
        .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = start, .l_len = n};
    int failed = fcntl(cv_posix_fd(file), ASK_RECORD, &lock);
    return failed ? if_unknown : lock.l_type != F_UNLCK;
}

static off_t lock_of(uint64_t number)
{
    return lock_numbers + (off_t)(number % most_numbers);
}

static off_t lock_of_mark(uint64_t number)
{
    return lock_marks + (off_t)(number % (most_numbers - 1));
}

int cv_file_share(cv_file file)
{
    return set_lock(file, F_RDLCK, lock_reads, lock_unknown - lock_reads + 1);
}

int cv_file_share_number(cv_file file, uint64_t number)
{
    int error = set_lock(file, F_RDLCK, lock_of(number), 1);
    return error ? error : set_lock(file, F_UNLCK, lock_unknown, 1);
}

void cv_file_unshare(cv_file file) { (void)set_lock(file, F_UNLCK, lock_reads, 0); }

bool cv_file_is_shared(cv_file file) { return is_locked(file, lock_reads, 1, true); }

/* Checks UNKNOWN together with the numbers below `number`, and before the numbers above it. While
 * an opening sets its number, it holds both locks, so this order finds it. */
bool cv_file_is_shared_but(cv_file file, uint64_t number)
{
    off_t own = lock_of(number), end = lock_numbers + (off_t)most_numbers;
    if (!is_locked(file, lock_reads, 1, true)) return false;
    if (is_locked(file, lock_unknown, own - lock_unknown, true)) return true;
    if (own + 1 < end && is_locked(file, own + 1, end - own - 1, true)) return true;
    return !is_locked(file, own, 1, true); /* the sharer has no number */
}

int cv_file_mark(cv_file file, uint64_t number)
{
    return set_lock(file, F_RDLCK, lock_of_mark(number), 1);
}

void cv_file_unmark(cv_file file, uint64_t number)
{
    (void)set_lock(file, F_UNLCK, lock_of_mark(number), 1);
}

bool cv_file_is_marked(cv_file file, uint64_t number)
{
    return is_locked(file, lock_of_mark(number), 1, false);
}

void cv_file_unlock(cv_file file)
{
    (void)flock(cv_posix_fd(file), LOCK_UN);
    cv_file_unshare(file);
}

/* ---- Forks ---- */

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
