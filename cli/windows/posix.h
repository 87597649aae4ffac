/* What the command line and the tests use of POSIX and Windows lacks, included before everything
 * else. The manifest makes UTF-8 the code page, so paths and arguments are UTF-8. */
#ifndef CLI_WINDOWS_POSIX_H
#define CLI_WINDOWS_POSIX_H

#define WIN32_LEAN_AND_MEAN /* libraries include windows.h, which has macros like `interface` */
#define _POSIX_THREAD_SAFE_FUNCTIONS /* gmtime_r */
#define tell posix_tell              /* names of io.h and stdio.h, and of ours */
#define gets posix_gets
#include <direct.h>
#include <errno.h>
#include <fcntl.h>
#include <io.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>
#undef tell
#undef gets

/* ---- Files: open ones may be renamed, replaced and deleted ---- */

struct posix_stat {
    uint64_t st_dev, st_ino;
    unsigned st_mode, st_nlink, st_uid, st_gid;
    int64_t st_size;
    struct timespec st_atim, st_mtim, st_ctim;
};
#define st_atime st_atim.tv_sec
#define st_mtime st_mtim.tv_sec
#define st_ctime st_ctim.tv_sec
int posix_stat(const char *path, struct posix_stat *out);
int posix_lstat(const char *path, struct posix_stat *out);
int posix_fstat(int fd, struct posix_stat *out);
#undef stat
#undef fstat
#define stat posix_stat
#define lstat posix_lstat
#define fstat posix_fstat
#define S_IFLNK 0xA000
#define S_ISLNK(mode) (((mode)&S_IFMT) == S_IFLNK)

int posix_open(const char *path, int flags, ...);
#define open posix_open
#define O_CLOEXEC _O_NOINHERIT
#define O_NONBLOCK 0
#define O_NOFOLLOW 0

int posix_rename(const char *from, const char *to);
#define rename posix_rename
int posix_remove(const char *path); /* also of an empty directory */
#define remove posix_remove
int posix_mkstemp(char *path); /* deleted when it is closed */
#define mkstemp posix_mkstemp
int link(const char *from, const char *to);
char *realpath(const char *path, char *none);
ssize_t posix_readlink(const char *path, char *target,
                       size_t size); /* of /proc/self/exe only */
#define readlink posix_readlink
ssize_t posix_read(int fd, void *bytes, size_t size);
ssize_t posix_write(int fd, const void *bytes, size_t size);
#define read posix_read
#define write posix_write
ssize_t pread(int fd, void *bytes, size_t size, off_t pos);
ssize_t pwrite(int fd, const void *bytes, size_t size, off_t pos);
int fsync(int fd);
#define mkdir(path, mode) ((void)(mode), _mkdir(path))

/* Files inherit access from their directory. */
typedef unsigned uid_t;
static inline int fchown(int fd, uid_t user, uid_t group)
{
    (void)fd, (void)user, (void)group;
    return 0;
}
static inline void fchmod(int fd, mode_t mode) { (void)fd, (void)mode; }

/* A listing does not tell what a name is of: this member is always 0. */
enum { DT_UNKNOWN = 0, DT_DIR = 4, DT_LNK = 10 };
#define d_type d_reclen

/* A backslash separates names, too. */
char *posix_strrchr(const char *text, int c);
#define strrchr posix_strrchr

enum { _SC_NPROCESSORS_ONLN = 84 };
long sysconf(int what); /* of this */

/* ---- Streams ---- */

int posix_isatty(int fd);
#define isatty posix_isatty
enum { F_GETFD };
int fcntl(int fd, int what);

/* A file in memory. Its text is complete after fflush and fclose. */
FILE *open_memstream(char **text, size_t *size);
int posix_fflush(FILE *stream);
int posix_fclose(FILE *stream);
#define fflush posix_fflush
#define fclose posix_fclose

#endif
