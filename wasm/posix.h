/* What C-Blosc2 uses of POSIX and WASI lacks: included before everything else in its sources. None
 * of it is called for arrays in memory. */
#ifndef WASM_POSIX_H
#define WASM_POSIX_H

#define _WASI_EMULATED_PROCESS_CLOCKS /* for the rest of its headers */
#define _WASI_EMULATED_MMAN
#include <stdio.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>

#define flock(fd, how) ((void)(fd), 0)
#define msync(memory, size, how) ((void)(memory), 0)
#define popen(command, mode) NULL
#define pclose(pipe) 0

typedef unsigned long long rlim_t;
struct rlimit {
    rlim_t rlim_cur, rlim_max;
};
enum { RLIMIT_NOFILE = 7 };
#define RLIM_INFINITY (~0ULL)

static inline int getrlimit(int what, struct rlimit *out)
{
    (void)what, (void)out;
    return -1;
}

#endif
