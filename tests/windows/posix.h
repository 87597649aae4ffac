/* What the tests use of POSIX and Windows lacks, included before everything else. Paths are UTF-8.
 * What cannot be had skips the test: inside cmocka the single one, else the whole program. */
#ifndef TESTS_WINDOWS_POSIX_H
#define TESTS_WINDOWS_POSIX_H

/* The types of POSIX are narrower; formats are checked elsewhere. */
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wformat"
#pragma GCC diagnostic ignored "-Wformat-extra-args"
#pragma GCC diagnostic ignored "-Wunused-value"

#include "../../cli/windows/posix.h"

#include <dirent.h>

/* ---- What Windows has under another name ---- */

int posix_unlink(const char *path);
#define unlink posix_unlink
#undef remove
#define remove tests_remove
int tests_remove(const char *path);
char *mkdtemp(char *path);
int setenv(const char *name, const char *value, int replace);
int unsetenv(const char *name);
int pipe(int ends[2]);
#define getuid() 1000
#define geteuid() 1000
#define seteuid(user) LACKS("seteuid")
#define POSIX_FADV_DONTNEED 4
#define posix_fadvise(fd, pos, size, how) ((void)(fd), 0)
typedef unsigned nlink_t;
#define EDQUOT ENOSPC

/* Ends the program after so many seconds; 0 does not. */
unsigned alarm(unsigned seconds);

/* ---- What it lacks ---- */

_Noreturn void posix_lacks(const char *what);

#ifdef TESTS_WITH_CMOCKA
void _skip(const char *file, int line);
#define LACKS(name) (_skip(__FILE__, __LINE__), 0)
#else
#define LACKS(name) (posix_lacks(name), 0)
#endif
#define fork() LACKS("fork")
#define symlink(to, path) LACKS("symlink")
#define mkfifo(path, mode) LACKS("mkfifo")
static inline unsigned posix_umask(unsigned mode)
{
    (void)mode;
    return LACKS("umask");
}
#define umask(mode) posix_umask(mode)
#define chown(path, user, group) LACKS("chown")
#undef readlink
#define readlink(path, bytes, size) LACKS("readlink")
#define system(command) LACKS("a POSIX shell")

#endif
