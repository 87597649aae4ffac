/* Whether this program runs under a sanitizer. Under a sanitizer, a forked child of a process with
 * busy threads may find a lock of the sanitizer (or of its allocator) taken, and hang. Without one,
 * the C library handles its locks in a fork. */
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

/* Whether a test runs only a share of its cases: under a sanitizer, where each case takes several
 * times as long, unless scripts/soak has set CATERVA_TEST_LONG. */
static inline bool is_shortened(void) { return SANITIZED && !getenv("CATERVA_TEST_LONG"); }

/* Returns how often a test repeats something: `n` times, `fewer` if tests are shortened. */
static inline int few_if_sanitized(int n, int fewer) { return is_shortened() ? fewer : n; }

/* For tests with cmocka. */
#define SKIP_IF_SANITIZED()                                                                  \
    do {                                                                                     \
        if (SANITIZED) skip();                                                               \
    } while (0)

#endif
