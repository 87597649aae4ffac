/* Checks for test programs. A failed check prints place, condition and message, and exits with
 * status 1. CHECK takes the condition, then printf arguments. */
#ifndef SUPPORT_CHECK_H
#define SUPPORT_CHECK_H

#include "caterva.h"

#include <stddef.h>

#if defined(__GNUC__) || defined(__clang__)
#define CHECK_PRINTF(words, first) __attribute__((format(printf, words, first)))
#else
#define CHECK_PRINTF(words, first)
#endif

_Noreturn void check_failed(const char *file, int line, const char *what, const char *format,
                            ...) CHECK_PRINTF(4, 5);

#define CHECK(condition, ...)                                                                \
    do {                                                                                     \
        if (!(condition)) check_failed(__FILE__, __LINE__, #condition, __VA_ARGS__);         \
    } while (0)

/* Runs `call`, which fills `err`. Unless it returns CATERVA_OK, fails with the message of `err`. */
#define CHECK_OK(call, err)                                                                  \
    do {                                                                                     \
        caterva_status check_status_ = (call);                                               \
        if (check_status_ != CATERVA_OK)                                                     \
            check_failed(__FILE__, __LINE__, #call, "%s: %s",                                \
                         caterva_status_name(check_status_), (err).message);                 \
    } while (0)

/* Allocates zeroed memory, even for 0 bytes. Never returns NULL: a failure fails the test. */
void *check_alloc(size_t size);

#endif
