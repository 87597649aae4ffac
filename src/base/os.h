/* The machine and its clocks. See also os_file.h, os_dir.h, os_process.h and thread.h. */
#ifndef CV_BASE_OS_H
#define CV_BASE_OS_H

#include <stddef.h>
#include <stdint.h>

/* Number of processors that this process may use; at least 1. */
int cv_os_cores(void);

/* Sizes in bytes of a core's level 2 cache and of the shared level 3 cache; 0 if unknown. */
size_t cv_os_l2_cache(void);
size_t cv_os_l3_cache(void);

/* Nanoseconds since a fixed moment; never decreases. */
uint64_t cv_os_clock_ns(void);

/* Nanoseconds since 1970 by the system's clock, which may be set back. */
uint64_t cv_os_time_ns(void);

/* cv_os_process returns the id of this process. cv_os_host copies the host name to `out`, truncated
 * to `size` bytes including the NUL. */
uint32_t cv_os_process(void);
void cv_os_host(char *out, size_t size);

/* Fills `out` with random bytes of the system, combined with a hash of clocks, process id and an
 * address. If the system provides no random bytes, `out` holds only the hash. */
void cv_os_random(void *out, size_t size);

/* Sleeps for approximately `ns` nanoseconds, or less if a signal arrives. */
void cv_os_sleep_ns(uint64_t ns);

/* Returns the first place of `wanted` in `bytes`, or NULL. */
const void *cv_os_find(const void *bytes, size_t size, const void *wanted, size_t wanted_size);

/* Hint: back these bytes with large pages. */
void cv_os_advise_large_pages(void *memory, size_t size);

#endif
