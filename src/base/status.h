/* Statuses and errors inside the library: the public types under short names,
 * and the one way to fail. A failing function fills the caller's error (which
 * may be NULL) and returns its code, so that `return cv_fail(...)` is a line. */
#ifndef CV_BASE_STATUS_H
#define CV_BASE_STATUS_H

#include <caterva.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* GNU's: the text may or may not lie in the buffer. */
static inline const char *cv_error_text_returned(const char *returned, int sys_errno,
                                                 char *text, size_t size)
{
    if (returned && *returned) return returned;
    (void)snprintf(text, size, "error %d", sys_errno);
    return text;
}

/* POSIX's: 0, or an error: then the buffer holds nothing to rely on. */
static inline const char *cv_error_text_filled(int failed, int sys_errno, char *text,
                                               size_t size)
{
    if (failed || !*text) (void)snprintf(text, size, "error %d", sys_errno);
    return text;
}

/* Never NULL, never empty; may use the `size` bytes, 16 at least, at `text`. */
static inline const char *cv_error_text(int sys_errno, char *text, size_t size)
{
    text[0] = '\0';
    return _Generic(strerror_r(sys_errno, text, size),
        char *: cv_error_text_returned,
        int: cv_error_text_filled)(strerror_r(sys_errno, text, size), sys_errno, text, size);
}

/* ---- Text of errors ----
 *
 * Text that came from elsewhere: is it UTF-8, and how it is shown to people. Names of
 * files, attributes and fields may hold any byte; what a terminal would obey does not
 * get there. */

bool cv_is_utf8(const char *text);

/* Bytes of the character at `text`, of which `size` >= 1 are there; 0 when it is no
 * well-formed UTF-8. */
size_t cv_utf8_length(const char *text, size_t size);

/* Writes the character `code`, at most U+10FFFF and no surrogate; returns its bytes. */
size_t cv_utf8_encode(uint32_t code, char out[4]);

/* Copies `text` to `dst` of `size` >= 1 bytes, NUL included: control characters, also
 * those above U+0080, and bytes that are no UTF-8 become "\xNN". What does not fit is
 * cut between characters. */
void cv_show_text(char *dst, size_t size, const char *text);

/* ---- Status and error ----
 *
 * Statuses and errors inside the library: the public types under short names,
 * and the one way to fail. A failing function fills the caller's error (which
 * may be NULL) and returns its code, so that `return cv_fail(...)` is a line. */

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
