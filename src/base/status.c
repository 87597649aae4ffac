/* Room: base. Fills errors: truncates messages and escapes unsafe characters in them. */
#include "base/status.h"

#include <errno.h>
#include <stdarg.h>

/* ---- Text of errors ----
 *
 * Validates UTF-8 (Unicode, table 3-7), and escapes invalid bytes and control characters. */

static size_t length_by_first(unsigned char first)
{
    if (first < 0x80) return 1;
    if (first < 0xc2) return 0; /* a continuation byte, or overlong */
    if (first < 0xe0) return 2;
    if (first < 0xf0) return 3;
    return first < 0xf5 ? 4 : 0;
}

size_t cv_utf8_length(const char *text, size_t size)
{
    unsigned char c[4] = {0};
    memcpy(c, text, size < sizeof c ? size : sizeof c);
    size_t length = length_by_first(c[0]);
    if (length > size) return 0;
    for (size_t i = 1; i < length; i++)
        if ((c[i] & 0xc0) != 0x80) return 0;
    if (c[0] == 0xe0 && c[1] < 0xa0) return 0; /* overlong */
    if (c[0] == 0xed && c[1] > 0x9f) return 0; /* surrogates */
    if (c[0] == 0xf0 && c[1] < 0x90) return 0; /* overlong */
    if (c[0] == 0xf4 && c[1] > 0x8f) return 0; /* above U+10FFFF */
    return length;
}

size_t cv_utf8_encode(uint32_t code, char out[4])
{
    if (code < 0x80) {
        out[0] = (char)code;
        return 1;
    }
    if (code < 0x800) {
        out[0] = (char)(0xc0 | code >> 6);
        out[1] = (char)(0x80 | (code & 0x3f));
        return 2;
    }
    if (code < 0x10000) {
        out[0] = (char)(0xe0 | code >> 12);
        out[1] = (char)(0x80 | (code >> 6 & 0x3f));
        out[2] = (char)(0x80 | (code & 0x3f));
        return 3;
    }
    out[0] = (char)(0xf0 | code >> 18);
    out[1] = (char)(0x80 | (code >> 12 & 0x3f));
    out[2] = (char)(0x80 | (code >> 6 & 0x3f));
    out[3] = (char)(0x80 | (code & 0x3f));
    return 4;
}

bool cv_is_utf8(const char *text)
{
    size_t left = strlen(text);
    while (left > 0) {
        size_t length = cv_utf8_length(text, left);
        if (length == 0) return false;
        text += length;
        left -= length;
    }
    return true;
}

/* Whether the character is C0, DEL, or C1 (two bytes). */
static bool is_control(const char *text, size_t length)
{
    unsigned char first = (unsigned char)text[0];
    if (length == 1) return first < 0x20 || first == 0x7f;
    return length == 2 && first == 0xc2 && (unsigned char)text[1] < 0xa0;
}

void cv_show_text(char *dst, size_t size, const char *text)
{
    size_t left = strlen(text), used = 0;
    while (left > 0) {
        size_t length = cv_utf8_length(text, left);
        bool plain = length > 0 && !is_control(text, length);
        if (length == 0) length = 1;
        size_t shown = plain ? length : 4 * length;
        if (used + shown >= size) break;
        if (plain) memcpy(dst + used, text, length);
        for (size_t i = 0; i < length && !plain; i++)
            (void)snprintf(dst + used + 4 * i, 5, "\\x%02x", (unsigned char)text[i]);
        used += shown;
        text += length;
        left -= length;
    }
    dst[used] = '\0';
}

/* ---- Status ---- */

static cv_status fill(cv_error *err, cv_status code, int sys_errno, int64_t pos,
                      const char *fmt, va_list args) CV_PRINTF(5, 0);

static cv_status fill(cv_error *err, cv_status code, int sys_errno, int64_t pos,
                      const char *fmt, va_list args)
{
    if (!err) return code;
    err->code = code;
    err->sys_errno = sys_errno;
    err->position = pos;
    memset(err->reserved, 0, sizeof err->reserved);
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
    cv_status code = sys_errno == ENOMEM ? CATERVA_ENOMEM : CATERVA_EIO;
    va_list args;
    va_start(args, fmt);
    fill(err, code, sys_errno, -1, fmt, args);
    va_end(args);
    if (err) {
        size_t used = strlen(err->message);
        char text[96];
        snprintf(err->message + used, sizeof err->message - used, ": %s%s",
                 cv_error_text(sys_errno, text, sizeof text),
                 sys_errno == EMFILE ? " (this process may open no more files: ulimit -n)"
                                     : "");
    }
    return code;
}

cv_status cv_fail_memory(cv_error *err, size_t size, const char *what)
{
    return cv_fail(err, CATERVA_ENOMEM, -1, "no memory: %zu bytes for %s", size, what);
}
