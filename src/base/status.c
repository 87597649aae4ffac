/* Room: base. Fills errors. One place decides how a sentence is cut to size and makes
 * the names in it fit to be shown, so that no caller ever worries about the length of a
 * message or about bytes that a terminal would obey. */
#include "base/status.h"

#include "base/error_text.h"
#include "base/text.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static cv_status fill(cv_error *err, cv_status code, int sys_errno, int64_t pos,
                      const char *fmt, va_list args) CV_PRINTF(5, 0);

static cv_status fill(cv_error *err, cv_status code, int sys_errno, int64_t pos,
                      const char *fmt, va_list args)
{
    if (!err) return code;
    err->code = code;
    err->sys_errno = sys_errno;
    err->position = pos;
    char text[2 * sizeof err->message];
    vsnprintf(text, sizeof text, fmt, args);
    cv_show_text(err->message, sizeof err->message, text);
    return code;
}

cv_status cv_fail(cv_error *err, cv_status code, int64_t pos, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    fill(err, code, 0, pos, fmt, args);
    va_end(args);
    return code;
}

cv_status cv_fail_sys(cv_error *err, int sys_errno, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    fill(err, CATERVA_EIO, sys_errno, -1, fmt, args);
    va_end(args);
    if (err) {
        size_t used = strlen(err->message);
        char text[96];
        snprintf(err->message + used, sizeof err->message - used, ": %s%s",
                 cv_error_text(sys_errno, text, sizeof text),
                 sys_errno == EMFILE ? " (this process may open no more: ulimit -n)" : "");
    }
    return CATERVA_EIO;
}

cv_status cv_fail_memory(cv_error *err, size_t size, const char *what)
{
    return cv_fail(err, CATERVA_ENOMEM, -1, "no memory: %zu bytes for %s", size, what);
}
