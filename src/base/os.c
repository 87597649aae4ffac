/* Room: base. The machine and its clocks on POSIX. A port rewrites os*.c and thread.c. */
#include "base/os.h"

#include "base/arith.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#ifdef __linux__
#include <sched.h>
#endif
#ifdef __APPLE__
#include <sys/sysctl.h>
#endif

/* ---- Processors --------------------------------------------------------- */

int cv_os_cores(void)
{
#ifdef __linux__
    cpu_set_t allowed;
    if (sched_getaffinity(0, sizeof allowed, &allowed) == 0 && CPU_COUNT(&allowed) > 0)
        return CPU_COUNT(&allowed);
#endif
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n < 1 ? 1 : n > 4096 ? 4096 : (int)n;
}

#ifdef __APPLE__
static size_t cache_size(const char *name)
{
    int64_t value = 0;
    size_t size = sizeof value;
    return sysctlbyname(name, &value, &size, NULL, 0) == 0 && value > 0 ? (size_t)value : 0;
}

size_t cv_os_l2_cache(void) { return cache_size("hw.l2cachesize"); }
size_t cv_os_l3_cache(void) { return cache_size("hw.l3cachesize"); }
#elif defined(_SC_LEVEL2_CACHE_SIZE) && defined(_SC_LEVEL3_CACHE_SIZE)
static size_t cache_size(int name)
{
    long size = sysconf(name);
    return size > 0 ? (size_t)size : 0;
}

size_t cv_os_l2_cache(void) { return cache_size(_SC_LEVEL2_CACHE_SIZE); }
size_t cv_os_l3_cache(void) { return cache_size(_SC_LEVEL3_CACHE_SIZE); }
#else
size_t cv_os_l2_cache(void) { return 0; }
size_t cv_os_l3_cache(void) { return 0; }
#endif

/* ---- Clocks -------------------------------------------------------------- */

uint64_t cv_os_clock_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

uint64_t cv_os_time_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

void cv_os_sleep_ns(uint64_t ns)
{
    struct timespec wait = {.tv_sec = (time_t)(ns / UINT64_C(1000000000)),
                            .tv_nsec = (long)(ns % UINT64_C(1000000000))};
    nanosleep(&wait, NULL);
}

/* ---- This process ------------------------------------------------------- */

uint32_t cv_os_process(void) { return (uint32_t)getpid(); }

void cv_os_host(char *out, size_t size)
{
    if (gethostname(out, size) != 0) out[0] = '\0';
    out[size - 1] = '\0';
}

void cv_os_random(void *out, size_t size)
{
    uint8_t *bytes = out;
    uint64_t seed = cv_os_clock_ns() ^ cv_mix(cv_os_time_ns()) ^ cv_mix((uint64_t)getpid()) ^
                    (uintptr_t)&seed;
    int fd = open("/dev/urandom", O_RDONLY | O_CLOEXEC);
    for (size_t i = 0; i < size; i++) {
        uint8_t byte = 0;
        if (fd >= 0 && read(fd, &byte, 1) != 1) byte = 0;
        seed = cv_mix(seed + UINT64_C(0x9e3779b97f4a7c15));
        bytes[i] = byte ^ (uint8_t)seed;
    }
    if (fd >= 0) close(fd);
}

/* ---- Memory ------------------------------------------------------------- */

void cv_os_advise_large_pages(void *memory, size_t size)
{
#ifdef MADV_HUGEPAGE
    (void)madvise(memory, size, MADV_HUGEPAGE);
#else
    (void)memory, (void)size;
#endif
}

const void *cv_os_find(const void *bytes, size_t size, const void *wanted, size_t wanted_size)
{
    return memmem(bytes, size, wanted, wanted_size);
}
