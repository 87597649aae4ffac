/* Windows has no limits of a process that tests could set. */
#ifndef TESTS_WINDOWS_RESOURCE_H
#define TESTS_WINDOWS_RESOURCE_H

#include <stdint.h>

typedef uint64_t rlim_t;
struct rlimit {
    rlim_t rlim_cur, rlim_max;
};
#define RLIM_INFINITY UINT64_MAX
#define RLIMIT_NOFILE 7
#define RLIMIT_FSIZE 1
#define RLIMIT_AS 9
#define RLIMIT_NPROC 6
#define SIGXFSZ 25
#define RLIMIT_CPU 0
#define RLIMIT_DATA 2
#define RUSAGE_CHILDREN 0
struct rusage {
    struct {
        long tv_sec, tv_usec;
    } ru_utime, ru_stime;
};
static inline int getrusage(int who, struct rusage *usage)
{
    (void)who;
    *usage = (struct rusage){{0, 0}, {0, 0}};
    return 0;
}

static inline int setrlimit(int kind, const struct rlimit *limit)
{
    (void)kind, (void)limit;
    return LACKS("setrlimit");
}

static inline int getrlimit(int kind, struct rlimit *limit)
{
    (void)kind, (void)limit;
    return LACKS("getrlimit");
}

#endif
