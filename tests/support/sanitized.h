/* Whether this program runs under a sanitizer. A forked child of a process with busy threads may
 * find locks of the sanitizer taken, also of its allocator, and hang; without a sanitizer the C
 * library handles its locks. */
#ifndef SUPPORT_SANITIZED_H
#define SUPPORT_SANITIZED_H

#include <stdbool.h>
#include <stdlib.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

/* Whether a test is to run a share of its cases: under a sanitizer, where each takes several
 * times as long, unless scripts/soak has set CATERVA_TEST_LONG. */
static inline bool is_shortened(void) { return SANITIZED && !getenv("CATERVA_TEST_LONG"); }

/* How often a test repeats something: `n` times, or `fewer` if it is shortened. */
static inline int few_if_sanitized(int n, int fewer) { return is_shortened() ? fewer : n; }

/* For tests with cmocka. */
#define SKIP_IF_SANITIZED()                                                                  \
    do {                                                                                     \
        if (SANITIZED) skip();                                                               \
    } while (0)

#endif
