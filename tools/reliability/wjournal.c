/* wjournal: LD_PRELOAD shim that journals every change a program makes to files below a directory,
 * and can make the N-th of them fail.  Linux, glibc; no third-party code.
 *
 *   cc -O2 -shared -fPIC -o wjournal.so wjournal.c wjournal_log.c -ldl
 *   WJ_DIR=/abs/dir WJ_LOG=/abs/journal LD_PRELOAD=./wjournal.so program ...
 *
 * Journal record (little endian): u8 op, u8 kind (2: write on an O_SYNC/O_DSYNC descriptor, else 1), u16 pathlen, u64 offset, u64 len, path, len bytes.
 *   'O' create/truncate on open   'W' write (offset, bytes)   'T' truncate (offset = new size)
 *   'S' fsync/fdatasync   'R' rename (bytes = new path)   'X' exchange of two names   'U' unlink, rmdir
 *   'D' mkdir   'L' link (bytes = new path)
 *   'F' fallocate (offset,len in bytes as 2 x u64)   'A' acknowledgement: a line "ACK <token>" written to fd 1
 *   'M' a writable shared mmap was made (its stores cannot be seen: replay is then incomplete)
 * Paths are stored relative to WJ_DIR.
 * Fault injection: WJ_FAIL_AT=n makes the n-th (from 1) counted operation fail with WJ_ERRNO
 *   (number, default 28 ENOSPC; 5 EIO); WJ_FAIL_STICKY=1 fails all later ones too; WJ_FAIL_SHORT=1 lets the
 *   failing write store half its bytes first (short count); WJ_KILL_AT=n ends the process by SIGKILL just
 *   before operation n.  Counted: W T S R U F (and creating opens), or those in WJ_OPS (also D, L).  WJ_COUNT=path gets the final count.
 *   WJ_ATOMIC=512: writes that lie inside one 512-byte sector are never short: they fail whole.
 * Clones of files and ranges (FICLONE, FICLONERANGE) fail with EOPNOTSUPP, as on most file systems.
 * Not seen: stdio writes made inside glibc (fwrite/fprintf), system calls past libc, stores through mmap,
 *   io_uring.  A program under test should write with write/pwrite/writev/pwritev; else use strace.
 */
#define _GNU_SOURCE
#define _LARGEFILE64_SOURCE
#include "wjournal.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define REAL(ret, name, ...)                                                                 \
    static ret (*real)(__VA_ARGS__);                                                         \
    if (!real) real = (ret(*)(__VA_ARGS__))dlsym(RTLD_NEXT, name);                           \
    wj_init()

static ssize_t do_write(int fd, const void *b, size_t n, off64_t off, int positioned)
{
    wj_init();
    char pb[PATH_MAX];
    const char *p = wj_dir_size ? wj_fd_path(fd, pb) : NULL;
    if (!p) {
        if (!positioned && fd == 1 && n > 4 && !memcmp(b, "ACK ", 4)) {
            LOCK;
            const char *e = memchr(b, '\n', n);
            wj_record('A', 1, "", 0, (const char *)b + 4,
                      (e ? (size_t)(e - (const char *)b) : n) - 4);
            UNLOCK;
        }
        return positioned ? wj_raw(SYS_pwrite64, fd, b, n, off) : wj_raw(SYS_write, fd, b, n);
    }
    LOCK;
    int g = wj_gate('W');
    ssize_t r = -1;
    if (g == 2 && positioned && wj_atomic > 0 && n > 0 &&
        off / wj_atomic == (off + (off64_t)n - 1) / wj_atomic) {
        errno = wj_fail_errno;
        g = 1;
    }
    if (g == 1) {
        UNLOCK;
        return -1;
    }
    if (g == 2) n = n / 2 ? n / 2 : 0;
    if (g == 2 && n == 0) {
        UNLOCK;
        errno = wj_fail_errno;
        return -1;
    }
    if (!positioned) {
        int fl = (int)wj_raw(SYS_fcntl, fd, F_GETFL);
        struct stat st;
        if ((fl & O_APPEND) && !fstat(fd, &st))
            off = st.st_size;
        else
            off = wj_raw(SYS_lseek, fd, 0, SEEK_CUR);
        r = wj_raw(SYS_write, fd, b, n);
    } else
        r = wj_raw(SYS_pwrite64, fd, b, n, off);
    if (r > 0) {
        int ds = (int)wj_raw(SYS_fcntl, fd, F_GETFL) & O_DSYNC; /* O_SYNC includes O_DSYNC */
        wj_record('W', ds ? 2 : 1, p, (uint64_t)off, b, (uint64_t)r);
    }
    UNLOCK;
    return r;
}
ssize_t write(int fd, const void *b, size_t n) { return do_write(fd, b, n, 0, 0); }
ssize_t pwrite(int fd, const void *b, size_t n, off_t o) { return do_write(fd, b, n, o, 1); }
ssize_t pwrite64(int fd, const void *b, size_t n, off64_t o)
{
    return do_write(fd, b, n, o, 1);
}
static ssize_t do_writev(int fd, const struct iovec *v, int c, off64_t off, int positioned)
{
    ssize_t t = 0;
    for (int i = 0; i < c; i++) {
        if (!v[i].iov_len) continue;
        ssize_t r = do_write(fd, v[i].iov_base, v[i].iov_len, off + t, positioned);
        if (r < 0) return t ? t : -1;
        t += r;
        if ((size_t)r < v[i].iov_len) break;
    }
    return t;
}
ssize_t writev(int fd, const struct iovec *v, int c) { return do_writev(fd, v, c, 0, 0); }
ssize_t pwritev(int fd, const struct iovec *v, int c, off_t o)
{
    return do_writev(fd, v, c, o, 1);
}
ssize_t pwritev64(int fd, const struct iovec *v, int c, off64_t o)
{
    return do_writev(fd, v, c, o, 1);
}
static int trunc_fd(int fd, off64_t n)
{
    wj_init();
    char pb[PATH_MAX];
    const char *p = wj_fd_path(fd, pb);
    if (!p) return (int)wj_raw(SYS_ftruncate, fd, n);
    if (!wj_enter('T')) return -1;
    int r = (int)wj_raw(SYS_ftruncate, fd, n);
    if (!r) wj_record('T', 1, p, (uint64_t)n, NULL, 0);
    UNLOCK;
    return r;
}
int ftruncate(int fd, off_t n) { return trunc_fd(fd, n); }
int ftruncate64(int fd, off64_t n) { return trunc_fd(fd, n); }
static int trunc_path(const char *f, off64_t n)
{
    wj_init();
    char pb[PATH_MAX];
    const char *p = wj_path_at(AT_FDCWD, f, pb);
    if (!p) return (int)wj_raw(SYS_truncate, f, n);
    if (!wj_enter('T')) return -1;
    int r = (int)wj_raw(SYS_truncate, f, n);
    if (!r) wj_record('T', 1, p, (uint64_t)n, NULL, 0);
    UNLOCK;
    return r;
}
int truncate(const char *f, off_t n) { return trunc_path(f, n); }
int truncate64(const char *f, off64_t n) { return trunc_path(f, n); }
static int sync_fd(int fd, long nr)
{
    wj_init();
    char pb[PATH_MAX];
    const char *p = wj_fd_path(fd, pb);
    if (!p) return (int)syscall(nr, fd);
    if (!wj_enter('S')) return -1;
    int r = (int)syscall(nr, fd);
    if (!r) wj_record('S', 1, p, 0, NULL, 0);
    UNLOCK;
    return r;
}
int fsync(int fd) { return sync_fd(fd, SYS_fsync); }
int fdatasync(int fd) { return sync_fd(fd, SYS_fdatasync); }
int fallocate(int fd, int mode, off_t o, off_t n)
{
    wj_init();
    char pb[PATH_MAX];
    const char *p = wj_fd_path(fd, pb);
    if (!p) return (int)wj_raw(SYS_fallocate, fd, mode, o, n);
    if (!wj_enter('F')) return -1;
    int r = (int)wj_raw(SYS_fallocate, fd, mode, o, n);
    uint64_t q[2] = {(uint64_t)n, (uint64_t)mode};
    if (!r) wj_record('F', 1, p, (uint64_t)o, q, 16);
    UNLOCK;
    return r;
}
int fallocate64(int fd, int mode, off64_t o, off64_t n) { return fallocate(fd, mode, o, n); }
int posix_fallocate(int fd, off_t o, off_t n) { return fallocate(fd, 0, o, n) ? errno : 0; }
static int do_rename(int d1, const char *a, int d2, const char *b, unsigned fl)
{
    wj_init();
    char p1[PATH_MAX], p2[PATH_MAX];
    const char *x = wj_path_at(d1, a, p1), *y = wj_path_at(d2, b, p2);
    if (!x && !y) return (int)wj_raw(SYS_renameat2, d1, a, d2, b, fl);
    if (!wj_enter('R')) return -1;
    int r = (int)wj_raw(SYS_renameat2, d1, a, d2, b, fl);
    if (!r) wj_record(fl & 2 ? 'X' : 'R', 1, x ? x : "", 0, y ? y : "", y ? strlen(y) : 0);
    UNLOCK;
    return r;
}
int rename(const char *a, const char *b) { return do_rename(AT_FDCWD, a, AT_FDCWD, b, 0); }
int renameat(int d, const char *a, int e, const char *b) { return do_rename(d, a, e, b, 0); }
int renameat2(int d, const char *a, int e, const char *b, unsigned f)
{
    return do_rename(d, a, e, b, f);
}
/* Programs ask for renameat2 by number where libc has no name for it. */
long syscall(long nr, ...)
{
    wj_init();
    va_list v;
    va_start(v, nr);
    long a[6];
    for (int i = 0; i < 6; i++) a[i] = va_arg(v, long);
    va_end(v);
    if (nr == SYS_renameat2)
        return do_rename((int)a[0], (const char *)a[1], (int)a[2], (const char *)a[3],
                         (unsigned)a[4]);
    return wj_raw(nr, a[0], a[1], a[2], a[3], a[4], a[5]);
}
int linkat(int d1, const char *a, int d2, const char *b, int fl)
{
    wj_init();
    char p1[PATH_MAX], p2[PATH_MAX];
    const char *x = wj_path_at(d1, a, p1), *y = wj_path_at(d2, b, p2);
    if (!y) return (int)wj_raw(SYS_linkat, d1, a, d2, b, fl);
    if (!wj_enter('L')) return -1;
    int r = (int)wj_raw(SYS_linkat, d1, a, d2, b, fl);
    if (!r) wj_record('L', 1, x ? x : "", 0, y, strlen(y));
    UNLOCK;
    return r;
}
int link(const char *a, const char *b) { return linkat(AT_FDCWD, a, AT_FDCWD, b, 0); }
static int do_unlink(int d, const char *a, int fl)
{
    wj_init();
    char pb[PATH_MAX];
    const char *x = wj_path_at(d, a, pb);
    if (!x) return (int)wj_raw(SYS_unlinkat, d, a, fl);
    if (!wj_enter('U')) return -1;
    int r = (int)wj_raw(SYS_unlinkat, d, a, fl);
    if (!r) wj_record('U', 1, x, 0, NULL, 0);
    UNLOCK;
    return r;
}
int unlink(const char *a) { return do_unlink(AT_FDCWD, a, 0); }
int unlinkat(int d, const char *a, int f) { return do_unlink(d, a, f); }
int rmdir(const char *a) { return do_unlink(AT_FDCWD, a, AT_REMOVEDIR); }
int mkdirat(int d, const char *a, mode_t m)
{
    wj_init();
    char pb[PATH_MAX];
    const char *x = wj_path_at(d, a, pb);
    if (!x) return (int)wj_raw(SYS_mkdirat, d, a, m);
    if (!wj_enter('D')) return -1;
    int r = (int)wj_raw(SYS_mkdirat, d, a, m);
    if (!r) wj_record('D', 1, x, 0, NULL, 0);
    UNLOCK;
    return r;
}
int mkdir(const char *a, mode_t m) { return mkdirat(AT_FDCWD, a, m); }
int remove(const char *a)
{
    int r = do_unlink(AT_FDCWD, a, 0);
    return r && errno == EISDIR ? do_unlink(AT_FDCWD, a, AT_REMOVEDIR) : r;
}
static int pre_open(int d, const char *f, int fl, char *pb, const char **rp, int *existed)
{
    *rp = NULL;
    if ((fl & O_ACCMODE) == O_RDONLY || !(fl & (O_CREAT | O_TRUNC))) return 0;
    const char *p = wj_path_at(d, f, pb);
    if (!p) return 0;
    struct stat st;
    *existed = !stat(pb, &st);
    if (*existed && !(fl & O_TRUNC)) return 0;
    *rp = p;
    return wj_gate('O');
}
static int do_open(int d, const char *f, int fl, mode_t m)
{
    wj_init();
    char pb[PATH_MAX];
    const char *p;
    int ex = 0;
    LOCK;
    if (pre_open(d, f, fl, pb, &p, &ex)) {
        UNLOCK;
        return -1;
    }
    int r = (int)wj_raw(SYS_openat, d, f, fl, m);
    if (r >= 0 && p) wj_record('O', 1, p, 0, NULL, 0);
    UNLOCK;
    return r;
}
#define MODE_ARG(fl)                                                                         \
    mode_t m = 0;                                                                            \
    if ((fl) & (O_CREAT | O_TMPFILE)) {                                                      \
        va_list a;                                                                           \
        va_start(a, fl);                                                                     \
        m = va_arg(a, mode_t);                                                               \
        va_end(a);                                                                           \
    }
int open(const char *f, int fl, ...) { MODE_ARG(fl) return do_open(AT_FDCWD, f, fl, m); }
int open64(const char *f, int fl, ...)
{
    MODE_ARG(fl) return do_open(AT_FDCWD, f, fl | O_LARGEFILE, m);
}
int openat(int d, const char *f, int fl, ...) { MODE_ARG(fl) return do_open(d, f, fl, m); }
int openat64(int d, const char *f, int fl, ...)
{
    MODE_ARG(fl) return do_open(d, f, fl | O_LARGEFILE, m);
}
int creat(const char *f, mode_t m)
{
    return do_open(AT_FDCWD, f, O_WRONLY | O_CREAT | O_TRUNC, m);
}
static FILE *do_fopen(FILE *(*real)(const char *, const char *), const char *f, const char *m)
{
    int fl = m[0] == 'w'   ? O_WRONLY | O_CREAT | O_TRUNC
             : m[0] == 'a' ? O_WRONLY | O_CREAT
                           : O_RDONLY;
    char pb[PATH_MAX];
    const char *p;
    int ex = 0;
    LOCK;
    if (pre_open(AT_FDCWD, f, fl, pb, &p, &ex)) {
        UNLOCK;
        return NULL;
    }
    FILE *r = real(f, m);
    if (r && p) wj_record('O', 1, p, 0, NULL, 0);
    UNLOCK;
    return r;
}
FILE *fopen(const char *f, const char *m)
{
    REAL(FILE *, "fopen", const char *, const char *);
    return do_fopen(real, f, m);
}
FILE *fopen64(const char *f, const char *m)
{
    REAL(FILE *, "fopen64", const char *, const char *);
    return do_fopen(real, f, m);
}
/* What is cloned is not in the journal: programs copy here, whatever the file system can. */
int ioctl(int fd, unsigned long request, ...)
{
    wj_init();
    va_list ap;
    va_start(ap, request);
    void *argument = va_arg(ap, void *);
    va_end(ap);
    if (request == FICLONE || request == FICLONERANGE) {
        errno = EOPNOTSUPP;
        return -1;
    }
    return (int)wj_raw(SYS_ioctl, fd, request, argument);
}
static void *do_mmap(void *a, size_t n, int pr, int fl, int fd, off64_t o)
{
    wj_init();
    void *r = (void *)wj_raw(SYS_mmap, a, n, pr, fl, fd, o);
    if (r == MAP_FAILED || !wj_dir_size || fd < 0 || !(pr & PROT_WRITE) ||
        (fl & MAP_TYPE) == MAP_PRIVATE)
        return r;
    char pb[PATH_MAX];
    const char *p = wj_fd_path(fd, pb);
    if (p) {
        LOCK;
        wj_record('M', 1, p, (uint64_t)o, NULL, 0);
        UNLOCK;
    }
    return r;
}
void *mmap(void *a, size_t n, int pr, int fl, int fd, off_t o)
{
    return do_mmap(a, n, pr, fl, fd, o);
}
void *mmap64(void *a, size_t n, int pr, int fl, int fd, off64_t o)
{
    return do_mmap(a, n, pr, fl, fd, o);
}
