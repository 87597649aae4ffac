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
#define setrlimit(kind, limit) ((void)(limit), LACKS("setrlimit"))
#define getrlimit(kind, limit) ((void)(limit), LACKS("getrlimit"))

#endif
