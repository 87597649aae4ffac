/* Room: format. The text of a Python literal, token by token: spaces, marks,
 * words, numbers, quoted strings. Promises: never reads behind the text, and
 * memory in proportion to it. dtype.c knows what the tokens mean. */
#include "format/literal.h"

#include "base/heap.h"
#include "base/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- Characters --------------------------------------------------------- */

cv_status cv_literal_fail(const cv_literal *p, const char *fmt, ...)
{
    char detail[160];
    va_list args;
    va_start(args, fmt);
    vsnprintf(detail, sizeof detail, fmt, args);
    va_end(args);
    return cv_fail(p->err, CATERVA_EINVAL, -1, "dtype, character %zu: %s", p->at, detail);
}

char cv_literal_peek(cv_literal *p)
{
    while (p->at < p->size && strchr(" \t\r\n", p->text[p->at]) && p->text[p->at]) p->at++;
    if (p->at == p->size) return 0;
    return p->text[p->at];
}

bool cv_literal_accept(cv_literal *p, char mark)
{
    if (cv_literal_peek(p) != mark || p->at == p->size) return false;
    p->at++;
    return true;
}

cv_status cv_literal_expect(cv_literal *p, char mark)
{
    if (cv_literal_accept(p, mark)) return CV_OK;
    return cv_literal_fail(p, "'%c' is missing", mark);
}

bool cv_literal_accept_word(cv_literal *p, const char *word)
{
    size_t length = strlen(word);
    (void)cv_literal_peek(p);
    if (p->size - p->at < length || memcmp(p->text + p->at, word, length) != 0) return false;
    p->at += length;
    return true;
}

cv_status cv_literal_number(cv_literal *p, int64_t *out)
{
    char c = cv_literal_peek(p);
    if (c < '0' || c > '9') return cv_literal_fail(p, "a number is missing");
    *out = 0;
    for (; p->at < p->size && p->text[p->at] >= '0' && p->text[p->at] <= '9'; p->at++) {
        *out = *out * 10 + (p->text[p->at] - '0');
        if (*out > INT32_MAX) return cv_literal_fail(p, "the number exceeds %d", INT32_MAX);
    }
    return CV_OK;
}

/* ---- Strings ------------------------------------------------------------ */

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

/* \x, \u, \U: `n_digits` hexadecimal digits of a Unicode character. */
static cv_status parse_hex_escape(cv_literal *p, int n_digits, char *out, size_t *length)
{
    uint32_t code = 0;
    for (int i = 0; i < n_digits; i++, p->at++) {
        int digit = p->at < p->size ? hex_digit(p->text[p->at]) : -1;
        if (digit < 0)
            return cv_literal_fail(p, "the escape needs %d hexadecimal digits", n_digits);
        code = code << 4 | (uint32_t)digit;
    }
    if (code == 0 || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff))
        return cv_literal_fail(p, "U+%04X cannot stand in a name", code);
    *length += cv_utf8_encode(code, out + *length);
    return CV_OK;
}

static cv_status parse_escape(cv_literal *p, char *out, size_t *length)
{
    static const char letters[] = "nrtabfv\\'\"", meanings[] = "\n\r\t\a\b\f\v\\'\"";
    char c = 0;
    if (p->at < p->size) c = p->text[p->at++];
    if (c == 'x') return parse_hex_escape(p, 2, out, length);
    if (c == 'u') return parse_hex_escape(p, 4, out, length);
    if (c == 'U') return parse_hex_escape(p, 8, out, length);
    const char *letter = c ? strchr(letters, c) : NULL;
    if (!letter) return cv_literal_fail(p, "unknown escape");
    out[(*length)++] = meanings[letter - letters];
    return CV_OK;
}

static cv_status decode_string(cv_literal *p, char *out, size_t *length)
{
    char quote = p->text[p->at++];
    *length = 0;
    while (p->at < p->size && p->text[p->at] != quote) {
        char c = p->text[p->at++];
        if (c == '\\')
            CV_TRY(parse_escape(p, out, length));
        else if (c == 0)
            return cv_literal_fail(p, "a zero byte in a string");
        else
            out[(*length)++] = c;
    }
    return cv_literal_expect(p, quote);
}

void cv_literal_skip_string(cv_literal *p)
{
    char quote = p->text[p->at++];
    while (p->at < p->size && p->text[p->at] != quote)
        p->at += p->text[p->at] == '\\' ? 2 : 1;
    p->at = p->at < p->size ? p->at + 1 : p->size;
}

/* No escape is shorter than what it stands for, so the literal's own length is
 * room enough. */
cv_status cv_literal_string(cv_literal *p, char **out)
{
    char c = cv_literal_peek(p);
    if (c != '\'' && c != '"') return cv_literal_fail(p, "a string is missing");
    cv_literal end = *p;
    cv_literal_skip_string(&end);

    size_t room = end.at - p->at + 1, length = 0;
    char *text = cv_malloc(room);
    if (!text) return cv_fail_memory(p->err, room, "a dtype");
    cv_free(*out);
    *out = text;
    cv_status status = decode_string(p, text, &length);
    text[length] = 0;
    return status;
}
