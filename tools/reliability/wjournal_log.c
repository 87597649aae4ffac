/* wjournal: its journal, which operation is to fail, and what paths are called in it. */
#define _GNU_SOURCE
#define _LARGEFILE64_SOURCE
#include "wjournal.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

pthread_mutex_t wj_lock = PTHREAD_MUTEX_INITIALIZER;
static int jfd = -1, ready;
static char dir[PATH_MAX];
size_t wj_dir_size;
static long count, fail_at, kill_at;
int wj_fail_errno = ENOSPC;
static int sticky, shortw;
static const char *count_path, *counted = "WTSRUFO";
long wj_atomic;

long (*wj_raw)(long, ...);

void wj_init(void)
{
    if (ready) return;
    wj_raw = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
    ready = 1;
    const char *d = getenv("WJ_DIR"), *l = getenv("WJ_LOG"), *s;
    if (d) {
        if (!realpath(d, dir)) snprintf(dir, sizeof dir, "%s", d);
        wj_dir_size = strlen(dir);
    }
    if (l)
        jfd = (int)wj_raw(SYS_openat, AT_FDCWD, l, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC,
                          0644);
    if (jfd >= 0) {
        int hi = (int)wj_raw(SYS_fcntl, jfd, F_DUPFD_CLOEXEC, 900);
        if (hi >= 0) {
            wj_raw(SYS_close, jfd);
            jfd = hi;
        }
    }
    if ((s = getenv("WJ_FAIL_AT"))) fail_at = atol(s);
    if ((s = getenv("WJ_KILL_AT"))) kill_at = atol(s);
    if ((s = getenv("WJ_ERRNO"))) wj_fail_errno = atoi(s);
    if ((s = getenv("WJ_FAIL_STICKY"))) sticky = atoi(s);
    if ((s = getenv("WJ_FAIL_SHORT"))) shortw = atoi(s);
    if ((s = getenv("WJ_OPS"))) counted = s;
    if ((s = getenv("WJ_ATOMIC"))) wj_atomic = atol(s);
    count_path = getenv("WJ_COUNT");
}
__attribute__((destructor)) static void fini(void)
{
    if (!count_path) return;
    char b[32];
    int n = snprintf(b, sizeof b, "%ld\n", count);
    int f = (int)wj_raw(SYS_openat, AT_FDCWD, count_path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    if (f >= 0) {
        wj_raw(SYS_write, f, b, n);
        wj_raw(SYS_close, f);
    }
}
static const char *rel(const char *p)
{
    if (!wj_dir_size || strncmp(p, dir, wj_dir_size)) return NULL;
    if (p[wj_dir_size] == 0) return ".";
    return p[wj_dir_size] == '/' ? p + wj_dir_size + 1 : NULL;
}
const char *wj_fd_path(int fd, char *buf)
{
    char l[64];
    snprintf(l, sizeof l, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(l, buf, PATH_MAX - 1);
    if (n <= 0) return NULL;
    buf[n] = 0;
    return rel(buf);
}
const char *wj_path_at(int dfd, const char *p, char *buf)
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
void wj_record(char op, int ok, const char *path, uint64_t off, const void *data,
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
    wj_raw(SYS_writev, jfd, v, len ? 3 : 2);
    errno = e;
}
int wj_gate(char op)
{
    int is_write = op == 'W';
    if (!strchr(counted, op)) return 0;
    count++;
    if (kill_at && count == kill_at) {
        fini();
        wj_raw(SYS_kill, getpid(), SIGKILL);
    }
    if (fail_at && (count == fail_at || (sticky && count > fail_at))) {
        if (is_write && shortw && count == fail_at) return 2;
        errno = wj_fail_errno;
        return 1;
    }
    return 0;
}
int wj_enter(char op)
{
    LOCK;
    if (!wj_gate(op)) return 1;
    UNLOCK;
    return 0;
}
