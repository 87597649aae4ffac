/* Room: base. Open files on a POSIX system. With the other os*.c and thread.c what a port
 * writes anew. Promises: calls interrupted by signals or cut short are completed. Must not
 * know what the files are for. */
#include "base/os_file.h"

#include "base/os_posix.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#ifdef __linux__
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/vfs.h>
#endif

/* Some systems refuse transfers beyond INT_MAX bytes. */
static const size_t max_transfer = (size_t)1 << 30;

/* Positions that off_t can say. Without 64 bits (_FILE_OFFSET_BITS, which the build
 * sets) a position above 4 GiB would name another one below. */
static const uint64_t max_pos = INT64_MAX;
_Static_assert(sizeof(off_t) == sizeof(int64_t), "off_t must have 64 bits");

void cv_file_close(cv_file *file)
{
    if (cv_file_is_open(*file)) close(cv_posix_fd(*file));
    *file = (cv_file){0};
}

int cv_file_again(cv_file file, cv_file *out)
{
    int number = fcntl(cv_posix_fd(file), F_DUPFD_CLOEXEC, 3); /* above the streams */
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
#ifdef RWF_NOWAIT
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
        (void)posix_fadvise(cv_posix_fd(file), (off_t)pos, (off_t)size, POSIX_FADV_WILLNEED);
}

/* Room for much that goes behind the end is taken at once: ext4, which else looks for it
 * page by page, then takes half the time. 131 MB in writes of 4.9 MB: 31 -> 16 ms, and with
 * a sync behind them 129 -> 94 ms; of 256 KiB: 23 -> 16 ms; of 70 KiB nothing is gained by
 * room for each, but by room for all.
 * Other file systems are left alone: they have no such pages, or ways of their own with
 * room that is taken so. Nobody needs to know whether it was to be had: the write tells. */
void cv_file_take_room(cv_file file, uint64_t pos, uint64_t size)
{
#ifdef __linux__
    enum { LEAST = 256 * 1024, EXT4 = 0xef53 };
    uint64_t end = 0;
    struct statfs system;
    if (size < LEAST || pos > max_pos || size > max_pos - pos) return;
    if (cv_file_size(file, &end) || pos + size <= end) return;
    if (fstatfs(cv_posix_fd(file), &system) == 0 && system.f_type == EXT4)
        (void)fallocate(cv_posix_fd(file), 0, (off_t)pos, (off_t)size);
#else
    (void)file, (void)pos, (void)size;
#endif
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

/* The source is mapped, and the mapping is only ever handed to the system: where
 * somebody has cut the file it answers EFAULT, and no signal is raised. Half as
 * many copies as by reading and writing. */
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
#ifdef __APPLE__
        /* fsync stops at the drive's cache there; some file systems have no more. */
        failed = fcntl(cv_posix_fd(file), F_FULLFSYNC);
        if (failed && errno != EINTR) failed = fsync(cv_posix_fd(file));
#else
        failed = fdatasync(cv_posix_fd(file));
#endif
    } while (failed && errno == EINTR);
    return failed ? errno : 0;
}
