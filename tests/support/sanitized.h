/* Whether this program runs under a sanitizer. A forked child of a process with busy threads may
 * find locks of the sanitizer taken, also of its allocator, and hang; without a sanitizer the C
 * library handles its locks. */
#ifndef SUPPORT_SANITIZED_H
#define SUPPORT_SANITIZED_H

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

/* For tests with cmocka. */
#define SKIP_IF_SANITIZED()                                                                  \
    do {                                                                                     \
        if (SANITIZED) skip();                                                               \
    } while (0)

#endif
