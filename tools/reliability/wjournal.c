/* wjournal: LD_PRELOAD shim that journals every change a program makes to files below a directory,
 * and can make the N-th of them fail.  Linux, glibc; no third-party code.
 *
 *   cc -O2 -shared -fPIC -o wjournal.so wjournal.c -ldl
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
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER;
static int jfd = -1, ready;
static char dir[PATH_MAX];
static size_t dirlen;
static long count, fail_at, kill_at;
static int fail_errno = ENOSPC, sticky, shortw;
static const char *count_path, *counted = "WTSRUFO";
static long atomic;

static long (*raw)(long, ...); /* libc's syscall(): ours below is for the program */

static void init(void)
{
    if (ready) return;
    raw = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
    ready = 1;
    const char *d = getenv("WJ_DIR"), *l = getenv("WJ_LOG"), *s;
    if (d) {
        if (!realpath(d, dir)) snprintf(dir, sizeof dir, "%s", d);
        dirlen = strlen(dir);
    }
    if (l)
        jfd = (int)raw(SYS_openat, AT_FDCWD, l, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC,
                       0644);
    if (jfd >= 0) {
        int hi = (int)raw(SYS_fcntl, jfd, F_DUPFD_CLOEXEC, 900);
        if (hi >= 0) {
            raw(SYS_close, jfd);
            jfd = hi;
        }
    }
    if ((s = getenv("WJ_FAIL_AT"))) fail_at = atol(s);
    if ((s = getenv("WJ_KILL_AT"))) kill_at = atol(s);
    if ((s = getenv("WJ_ERRNO"))) fail_errno = atoi(s);
    if ((s = getenv("WJ_FAIL_STICKY"))) sticky = atoi(s);
    if ((s = getenv("WJ_FAIL_SHORT"))) shortw = atoi(s);
    if ((s = getenv("WJ_OPS"))) counted = s;
    if ((s = getenv("WJ_ATOMIC"))) atomic = atol(s);
    count_path = getenv("WJ_COUNT");
}
__attribute__((destructor)) static void fini(void)
{
    if (!count_path) return;
    char b[32];
    int n = snprintf(b, sizeof b, "%ld\n", count);
    int f = (int)raw(SYS_openat, AT_FDCWD, count_path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    if (f >= 0) {
        raw(SYS_write, f, b, n);
        raw(SYS_close, f);
    }
}
static const char *rel(const char *p)
{
    if (!dirlen || strncmp(p, dir, dirlen)) return NULL;
    if (p[dirlen] == 0) return ".";
    return p[dirlen] == '/' ? p + dirlen + 1 : NULL;
}
static const char *fdpath(int fd, char *buf)
{
    char l[64];
    snprintf(l, sizeof l, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(l, buf, PATH_MAX - 1);
    if (n <= 0) return NULL;
    buf[n] = 0;
    return rel(buf);
}
static const char *abspath(int dfd, const char *p, char *buf)
{
    char t[PATH_MAX], par[PATH_MAX];
    if (p[0] == '/')
        snprintf(t, sizeof t, "%s", p);
    else if (dfd == AT_FDCWD) {
        if (!getcwd(t, sizeof t - strlen(p) - 2)) return NULL;
        strcat(t, "/");
        strcat(t, p);
    } else {
        char l[64];
        snprintf(l, sizeof l, "/proc/self/fd/%d", dfd);
        ssize_t n = readlink(l, t, sizeof t - strlen(p) - 2);
        if (n <= 0) return NULL;
        t[n] = 0;
        strcat(t, "/");
        strcat(t, p);
    }
    char *s = strrchr(t, '/');
    *s = 0;
    if (!realpath(*t ? t : "/", par)) return NULL;
    if (snprintf(buf, PATH_MAX, "%s/%s", par, s + 1) >= PATH_MAX) return NULL;
    return rel(buf);
}
/* Leaves errno as it is. */
static void rec(char op, int ok, const char *path, uint64_t off, const void *data,
                uint64_t len)
{
    if (jfd < 0) return;
    uint16_t pl = (uint16_t)strlen(path);
    uint8_t h[20];
    h[0] = (uint8_t)op;
    h[1] = (uint8_t)ok;
    memcpy(h + 2, &pl, 2);
    memcpy(h + 4, &off, 8);
    memcpy(h + 12, &len, 8);
    struct iovec v[3] = {{h, 20}, {(void *)path, pl}, {(void *)data, len}};
    int e = errno;
    raw(SYS_writev, jfd, v, len ? 3 : 2);
    errno = e;
}
/* 0: go on; 1: fail with errno; 2: do half of it */
static int gate(char op)
{
    int is_write = op == 'W';
    if (!strchr(counted, op)) return 0;
    count++;
    if (kill_at && count == kill_at) {
        fini();
        raw(SYS_kill, getpid(), SIGKILL);
    }
    if (fail_at && (count == fail_at || (sticky && count > fail_at))) {
        if (is_write && shortw && count == fail_at) return 2;
        errno = fail_errno;
        return 1;
    }
    return 0;
}
#define REAL(ret, name, ...)                                                                 \
    static ret (*real)(__VA_ARGS__);                                                         \
    if (!real) real = (ret(*)(__VA_ARGS__))dlsym(RTLD_NEXT, name);                           \
    init()
#define LOCK pthread_mutex_lock(&mu)
#define UNLOCK pthread_mutex_unlock(&mu) /* leaves errno as it is */

/* With the lock, when the operation may go on; else without, and errno says why. */
static int enter(char op)
{
    LOCK;
    if (!gate(op)) return 1;
    UNLOCK;
    return 0;
}

static ssize_t do_write(int fd, const void *b, size_t n, off64_t off, int positioned)
{
    init();
    char pb[PATH_MAX];
    const char *p = dirlen ? fdpath(fd, pb) : NULL;
    if (!p) {
        if (!positioned && fd == 1 && n > 4 && !memcmp(b, "ACK ", 4)) {
            LOCK;
            const char *e = memchr(b, '\n', n);
            rec('A', 1, "", 0, (const char *)b + 4,
                (e ? (size_t)(e - (const char *)b) : n) - 4);
            UNLOCK;
        }
        return positioned ? raw(SYS_pwrite64, fd, b, n, off) : raw(SYS_write, fd, b, n);
    }
    LOCK;
    int g = gate('W');
    ssize_t r = -1;
    if (g == 2 && positioned && atomic > 0 && n > 0 &&
        off / atomic == (off + (off64_t)n - 1) / atomic) {
        errno = fail_errno;
        g = 1;
    }
    if (g == 1) {
        UNLOCK;
        return -1;
    }
    if (g == 2) n = n / 2 ? n / 2 : 0;
    if (g == 2 && n == 0) {
        UNLOCK;
        errno = fail_errno;
        return -1;
    }
    if (!positioned) {
        int fl = (int)raw(SYS_fcntl, fd, F_GETFL);
        struct stat st;
        if ((fl & O_APPEND) && !fstat(fd, &st))
            off = st.st_size;
        else
            off = raw(SYS_lseek, fd, 0, SEEK_CUR);
        r = raw(SYS_write, fd, b, n);
    } else
        r = raw(SYS_pwrite64, fd, b, n, off);
    if (r > 0) {
        int ds = (int)raw(SYS_fcntl, fd, F_GETFL) & O_DSYNC; /* O_SYNC includes O_DSYNC */
        rec('W', ds ? 2 : 1, p, (uint64_t)off, b, (uint64_t)r);
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
    init();
    char pb[PATH_MAX];
    const char *p = fdpath(fd, pb);
    if (!p) return (int)raw(SYS_ftruncate, fd, n);
    if (!enter('T')) return -1;
    int r = (int)raw(SYS_ftruncate, fd, n);
    if (!r) rec('T', 1, p, (uint64_t)n, NULL, 0);
    UNLOCK;
    return r;
}
int ftruncate(int fd, off_t n) { return trunc_fd(fd, n); }
int ftruncate64(int fd, off64_t n) { return trunc_fd(fd, n); }
static int trunc_path(const char *f, off64_t n)
{
    init();
    char pb[PATH_MAX];
    const char *p = abspath(AT_FDCWD, f, pb);
    if (!p) return (int)raw(SYS_truncate, f, n);
    if (!enter('T')) return -1;
    int r = (int)raw(SYS_truncate, f, n);
    if (!r) rec('T', 1, p, (uint64_t)n, NULL, 0);
    UNLOCK;
    return r;
}
int truncate(const char *f, off_t n) { return trunc_path(f, n); }
int truncate64(const char *f, off64_t n) { return trunc_path(f, n); }
static int sync_fd(int fd, long nr)
{
    init();
    char pb[PATH_MAX];
    const char *p = fdpath(fd, pb);
    if (!p) return (int)syscall(nr, fd);
    if (!enter('S')) return -1;
    int r = (int)syscall(nr, fd);
    if (!r) rec('S', 1, p, 0, NULL, 0);
    UNLOCK;
    return r;
}
int fsync(int fd) { return sync_fd(fd, SYS_fsync); }
int fdatasync(int fd) { return sync_fd(fd, SYS_fdatasync); }
int fallocate(int fd, int mode, off_t o, off_t n)
{
    init();
    char pb[PATH_MAX];
    const char *p = fdpath(fd, pb);
    if (!p) return (int)raw(SYS_fallocate, fd, mode, o, n);
    if (!enter('F')) return -1;
    int r = (int)raw(SYS_fallocate, fd, mode, o, n);
    uint64_t q[2] = {(uint64_t)n, (uint64_t)mode};
    if (!r) rec('F', 1, p, (uint64_t)o, q, 16);
    UNLOCK;
    return r;
}
int fallocate64(int fd, int mode, off64_t o, off64_t n) { return fallocate(fd, mode, o, n); }
int posix_fallocate(int fd, off_t o, off_t n) { return fallocate(fd, 0, o, n) ? errno : 0; }
static int do_rename(int d1, const char *a, int d2, const char *b, unsigned fl)
{
    init();
    char p1[PATH_MAX], p2[PATH_MAX];
    const char *x = abspath(d1, a, p1), *y = abspath(d2, b, p2);
    if (!x && !y) return (int)raw(SYS_renameat2, d1, a, d2, b, fl);
    if (!enter('R')) return -1;
    int r = (int)raw(SYS_renameat2, d1, a, d2, b, fl);
    if (!r) rec(fl & 2 ? 'X' : 'R', 1, x ? x : "", 0, y ? y : "", y ? strlen(y) : 0);
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
    init();
    va_list v;
    va_start(v, nr);
    long a[6];
    for (int i = 0; i < 6; i++) a[i] = va_arg(v, long);
    va_end(v);
    if (nr == SYS_renameat2)
        return do_rename((int)a[0], (const char *)a[1], (int)a[2], (const char *)a[3],
                         (unsigned)a[4]);
    return raw(nr, a[0], a[1], a[2], a[3], a[4], a[5]);
}
int linkat(int d1, const char *a, int d2, const char *b, int fl)
{
    init();
    char p1[PATH_MAX], p2[PATH_MAX];
    const char *x = abspath(d1, a, p1), *y = abspath(d2, b, p2);
    if (!y) return (int)raw(SYS_linkat, d1, a, d2, b, fl);
    if (!enter('L')) return -1;
    int r = (int)raw(SYS_linkat, d1, a, d2, b, fl);
    if (!r) rec('L', 1, x ? x : "", 0, y, strlen(y));
    UNLOCK;
    return r;
}
int link(const char *a, const char *b) { return linkat(AT_FDCWD, a, AT_FDCWD, b, 0); }
static int do_unlink(int d, const char *a, int fl)
{
    init();
    char pb[PATH_MAX];
    const char *x = abspath(d, a, pb);
    if (!x) return (int)raw(SYS_unlinkat, d, a, fl);
    if (!enter('U')) return -1;
    int r = (int)raw(SYS_unlinkat, d, a, fl);
    if (!r) rec('U', 1, x, 0, NULL, 0);
    UNLOCK;
    return r;
}
int unlink(const char *a) { return do_unlink(AT_FDCWD, a, 0); }
int unlinkat(int d, const char *a, int f) { return do_unlink(d, a, f); }
int rmdir(const char *a) { return do_unlink(AT_FDCWD, a, AT_REMOVEDIR); }
int mkdirat(int d, const char *a, mode_t m)
{
    init();
    char pb[PATH_MAX];
    const char *x = abspath(d, a, pb);
    if (!x) return (int)raw(SYS_mkdirat, d, a, m);
    if (!enter('D')) return -1;
    int r = (int)raw(SYS_mkdirat, d, a, m);
    if (!r) rec('D', 1, x, 0, NULL, 0);
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
    const char *p = abspath(d, f, pb);
    if (!p) return 0;
    struct stat st;
    *existed = !stat(pb, &st);
    if (*existed && !(fl & O_TRUNC)) return 0;
    *rp = p;
    return gate('O');
}
static int do_open(int d, const char *f, int fl, mode_t m)
{
    init();
    char pb[PATH_MAX];
    const char *p;
    int ex = 0;
    LOCK;
    if (pre_open(d, f, fl, pb, &p, &ex)) {
        UNLOCK;
        return -1;
    }
    int r = (int)raw(SYS_openat, d, f, fl, m);
    if (r >= 0 && p) rec('O', 1, p, 0, NULL, 0);
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
    if (r && p) rec('O', 1, p, 0, NULL, 0);
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
    init();
    va_list ap;
    va_start(ap, request);
    void *argument = va_arg(ap, void *);
    va_end(ap);
    if (request == FICLONE || request == FICLONERANGE) {
        errno = EOPNOTSUPP;
        return -1;
    }
    return (int)raw(SYS_ioctl, fd, request, argument);
}
static void *do_mmap(void *a, size_t n, int pr, int fl, int fd, off64_t o)
{
    init();
    void *r = (void *)raw(SYS_mmap, a, n, pr, fl, fd, o);
    if (r == MAP_FAILED || !dirlen || fd < 0 || !(pr & PROT_WRITE) ||
        (fl & MAP_TYPE) == MAP_PRIVATE)
        return r;
    char pb[PATH_MAX];
    const char *p = fdpath(fd, pb);
    if (p) {
        LOCK;
        rec('M', 1, p, (uint64_t)o, NULL, 0);
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
