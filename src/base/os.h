/* The machine and its clocks. See also os_file.h, os_dir.h, os_process.h and thread.h. */
#ifndef CV_BASE_OS_H
#define CV_BASE_OS_H

#include <stddef.h>
#include <stdint.h>

/* Processors this process may use; at least 1. */
int cv_os_cores(void);

/* Bytes of a core's level 2 and of the shared level 3 cache; 0: unknown. */
size_t cv_os_l2_cache(void);
size_t cv_os_l3_cache(void);

/* Nanoseconds since some fixed moment; never goes back. */
uint64_t cv_os_clock_ns(void);

/* Nanoseconds since 1970 as the system's clock has them; it may be set back. */
uint64_t cv_os_time_ns(void);

/* The number of this process, and the name of the machine, cut to `size` bytes with the NUL. */
uint32_t cv_os_process(void);
void cv_os_host(char *out, size_t size);

/* Unique bytes: from the system, else from clocks, process and addresses. */
void cv_os_random(void *out, size_t size);

/* Sleeps for about so long, or less when a signal comes. */
void cv_os_sleep_ns(uint64_t ns);

/* Asks the system to put large pages behind whole ones of these; a no is no harm. */
void cv_os_advise_large_pages(void *memory, size_t size);

#endif
