/* Room: base. Names in directories of a POSIX system, with the calls of some systems that
 * rename specially. With the other os*.c and thread.c what a port writes anew. */
#include "base/os_names.h"

#include "base/os.h"
#include "base/os_posix.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#ifdef __linux__
#include <sys/syscall.h>
#endif

/* ---- Renaming ----------------------------------------------------------- */

typedef enum rename_how { RENAME_TO_NEW, RENAME_BOTH_WAYS } rename_how;

/* ENOTSUP: neither the system nor the file system has it. */
static int rename_specially(cv_dir dir, const char *from, const char *to, rename_how how)
{
    int failed = -1;
    errno = ENOTSUP;
#if defined(__linux__) && defined(SYS_renameat2)
    /* Flag 1 is RENAME_NOREPLACE, 2 RENAME_EXCHANGE: not all headers have them. */
    unsigned flags = how == RENAME_TO_NEW ? 1u : 2u;
    failed =
        (int)syscall(SYS_renameat2, cv_posix_dir(dir), from, cv_posix_dir(dir), to, flags);
#elif defined(__APPLE__)
    unsigned flags = how == RENAME_TO_NEW ? RENAME_EXCL : RENAME_SWAP;
    failed = renameatx_np(cv_posix_dir(dir), from, cv_posix_dir(dir), to, flags);
#else
    (void)dir, (void)from, (void)to, (void)how;
#endif
    if (!failed) return 0;
    return errno == EINVAL || errno == ENOSYS ? ENOTSUP : errno;
}

int cv_dir_rename(cv_dir dir, const char *from, const char *to)
{
    return renameat(cv_posix_dir(dir), from, cv_posix_dir(dir), to) ? errno : 0;
}

/* An empty directory may be replaced by a directory, so an exclusively made
 * one keeps the name for us. */
static int rename_directory_new(cv_dir dir, const char *from, const char *to)
{
    if (mkdirat(cv_posix_dir(dir), to, 0777)) return errno;
    int error = cv_dir_rename(dir, from, to);
    if (error) (void)cv_dir_remove_directory(dir, to);
    return error;
}

static int rename_file_new(cv_dir dir, const char *from, const char *to)
{
    if (linkat(cv_posix_dir(dir), from, cv_posix_dir(dir), to, 0) == 0)
        return cv_dir_remove(dir, from);
    if (errno == EEXIST) return EEXIST;

    /* No hard links either: an empty file keeps the name for a moment. */
    cv_file file;
    unsigned how = CV_OPEN_WRITE | CV_OPEN_CREATE | CV_OPEN_NEW;
    int error = cv_dir_open_file(dir, to, how, 0666, &file);
    if (error) return error;
    cv_file_close(&file);
    error = cv_dir_rename(dir, from, to);
    if (error) (void)cv_dir_remove(dir, to);
    return error;
}

int cv_dir_rename_new_portable(cv_dir dir, const char *from, const char *to)
{
    cv_file_info info;
    int error = cv_dir_get_link_info(dir, from, &info);
    if (error) return error;
    return info.kind == CV_KIND_DIRECTORY ? rename_directory_new(dir, from, to)
                                          : rename_file_new(dir, from, to);
}

int cv_dir_rename_new(cv_dir dir, const char *from, const char *to)
{
    int error = rename_specially(dir, from, to, RENAME_TO_NEW);
    return error == ENOTSUP ? cv_dir_rename_new_portable(dir, from, to) : error;
}

int cv_dir_link(cv_dir dir, const char *from, cv_dir other, const char *to)
{
    return linkat(cv_posix_dir(dir), from, cv_posix_dir(other), to, 0) ? errno : 0;
}

int cv_dir_exchange(cv_dir dir, const char *a, const char *b)
{
    return rename_specially(dir, a, b, RENAME_BOTH_WAYS);
}

int cv_dir_make(cv_dir dir, const char *name)
{
    return mkdirat(cv_posix_dir(dir), name, 0777) ? errno : 0;
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

int cv_dir_create_temp_file(cv_dir dir, const char *name, uint32_t mode,
                            char temp[CV_OS_TEMP_NAME], cv_file *out)
{
    unsigned how = CV_OPEN_BOTH | CV_OPEN_CREATE | CV_OPEN_NEW;
    int error = EEXIST;
    for (int i = 0; i < TEMP_TRIES && error == EEXIST; i++) {
        cv_os_temp_name(name, "tmp", temp);
        error = cv_dir_open_file(dir, temp, how, mode, out);
    }
    return error;
}

int cv_dir_create_temp_directory(cv_dir dir, const char *name, uint32_t mode,
                                 char temp[CV_OS_TEMP_NAME], cv_dir *out)
{
    int error = EEXIST;
    for (int i = 0; i < TEMP_TRIES && error == EEXIST; i++) {
        cv_os_temp_name(name, "tmp", temp);
        error = mkdirat(cv_posix_dir(dir), temp, (mode_t)mode) ? errno : 0;
    }
    if (error) return error;
    error = cv_dir_open(dir, temp, 0, out);
    if (error) (void)cv_dir_remove_directory(dir, temp);
    return error;
}
