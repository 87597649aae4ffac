/* Errors inside the library. A failing function fills the caller's error (or NULL) and returns its
 * code, so that callers can write `return cv_fail(...)`. */
#ifndef CV_BASE_STATUS_H
#define CV_BASE_STATUS_H

#include <caterva.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* Whether a parser returns this status for wrong bytes. */
static inline bool cv_is_doubtful(caterva_status status)
{
    return status == CATERVA_ECORRUPT || status == CATERVA_EUNSUPPORTED;
}

/* For GNU's strerror_r, which returns a text in the buffer or elsewhere. */
static inline const char *cv_error_text_returned(const char *returned, int sys_errno,
                                                 char *text, size_t size)
{
    if (returned && *returned) return returned;
    (void)snprintf(text, size, "error %d", sys_errno);
    return text;
}

/* For POSIX's strerror_r, which returns 0, or an error and leaves the buffer undefined. */
static inline const char *cv_error_text_filled(int failed, int sys_errno, char *text,
                                               size_t size)
{
    if (failed || !*text) (void)snprintf(text, size, "error %d", sys_errno);
    return text;
}

/* Returns the system's text for `sys_errno`, never NULL and never empty. The result may be in
 * `text`, whose `size` is at least 16. */
#ifdef _WIN32
const char *cv_error_text(int sys_errno, char *text, size_t size);
#else
static inline const char *cv_error_text(int sys_errno, char *text, size_t size)
{
    text[0] = '\0';
    return _Generic(strerror_r(sys_errno, text, size),
        char *: cv_error_text_returned,
        int: cv_error_text_filled)(strerror_r(sys_errno, text, size), sys_errno, text, size);
}
#endif

/* ---- Text of errors ----
 *
 * Names of files, attributes and fields may contain any bytes; control characters are escaped. */

bool cv_is_utf8(const char *text);

/* Returns the length of the first character of `text`; 0 if it is not well-formed. `size` >= 1. */
size_t cv_utf8_length(const char *text, size_t size);

/* Encodes the character `code`, which is at most U+10FFFF and not a surrogate. Returns the number
 * of bytes. */
size_t cv_utf8_encode(uint32_t code, char out[4]);

/* Copies `text` to `dst` (`size` >= 1, including the NUL), with "\xNN" for control characters and
 * invalid UTF-8. Truncates between characters. */
void cv_show_text(char *dst, size_t size, const char *text);

/* ---- Status and error ---- */

typedef caterva_status cv_status;
typedef caterva_error cv_error;

#define CV_OK CATERVA_OK

#ifdef __MINGW_PRINTF_FORMAT /* its own printf, as in C11 */
#define CV_PRINTF(fmt, args) __attribute__((format(__MINGW_PRINTF_FORMAT, fmt, args)))
#elif defined(__GNUC__) || defined(__clang__)
#define CV_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#else
#define CV_PRINTF(fmt, args)
#endif

/* Fills *err with `code`, frame position `pos` (-1: none) and a message. Returns `code`. In all
 * these functions `err` may be NULL. */
cv_status cv_fail(cv_error *err, cv_status code, int64_t pos, const char *fmt, ...)
    CV_PRINTF(4, 5);

/* Returns CATERVA_EIO for a failed system call, or CATERVA_ENOMEM if it had no memory, with
 * `sys_errno` and the system's text. */
cv_status cv_fail_sys(cv_error *err, int sys_errno, const char *fmt, ...) CV_PRINTF(3, 4);

/* Returns CATERVA_ENOMEM because `size` bytes for `what` could not be allocated. */
cv_status cv_fail_memory(cv_error *err, size_t size, const char *what);

/* Returns if `expr` is not CV_OK. Use only if nothing needs to be freed; else `goto done`. */
#define CV_TRY(expr)                                                                         \
    do {                                                                                     \
        cv_status cv_try_status_ = (expr);                                                   \
        if (cv_try_status_ != CV_OK) return cv_try_status_;                                  \
    } while (0)

#endif
