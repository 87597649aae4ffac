/* The words for an errno number, from whichever strerror_r the system has: GNU's
 * returns them, POSIX's (musl, macOS, BSD) fills the buffer. Which one it is, its type
 * says, in whatever file this is included. */
#ifndef CV_BASE_ERROR_TEXT_H
#define CV_BASE_ERROR_TEXT_H

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

#endif
