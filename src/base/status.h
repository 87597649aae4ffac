/* Statuses and errors inside the library: the public types under short names,
 * and the one way to fail. A failing function fills the caller's error (which
 * may be NULL) and returns its code, so that `return cv_fail(...)` is a line. */
#ifndef CV_BASE_STATUS_H
#define CV_BASE_STATUS_H

#include <caterva.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef caterva_status cv_status;
typedef caterva_error cv_error;

#define CV_OK CATERVA_OK

#if defined(__GNUC__) || defined(__clang__)
#define CV_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#else
#define CV_PRINTF(fmt, args)
#endif

/* Fills *err (NULL is fine) with `code`, frame position `pos` (-1: none) and
 * one formatted sentence; returns `code`. */
cv_status cv_fail(cv_error *err, cv_status code, int64_t pos, const char *fmt, ...)
    CV_PRINTF(4, 5);

/* The same for a failed system call: CATERVA_EIO with `sys_errno`, and its
 * text appended to the sentence. */
cv_status cv_fail_sys(cv_error *err, int sys_errno, const char *fmt, ...) CV_PRINTF(3, 4);

/* CATERVA_ENOMEM for `size` bytes wanted for `what`. */
cv_status cv_fail_memory(cv_error *err, size_t size, const char *what);

/* Returns from the calling function when `expr` is not CV_OK. Only where
 * nothing needs freeing; elsewhere one `goto done`. */
#define CV_TRY(expr)                                                                         \
    do {                                                                                     \
        cv_status cv_try_status_ = (expr);                                                   \
        if (cv_try_status_ != CV_OK) return cv_try_status_;                                  \
    } while (0)

#endif
