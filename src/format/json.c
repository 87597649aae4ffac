/* Room: format. Converts JSON to MessagePack in one pass, without recursion and without locale. The
 * first byte that is not JSON makes the whole text invalid. Callers keep such text unchanged, so no
 * reason is reported. */
#include "format/json.h"

#include "base/arith.h"
#include "format/values.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct parser {
    const char *at, *end;
    bool bad;
    cv_packer out;
    cv_buffer text;               /* the last string, decoded */
    char closing[CV_VALUE_DEPTH]; /* ']' or '}' of each open list or object */
    int depth;
} parser;

static void skip_space(parser *p)
{
    for (; p->at < p->end; p->at++)
        if (*p->at != ' ' && *p->at != '\t' && *p->at != '\r' && *p->at != '\n') return;
}

static bool accept(parser *p, char c)
{
    skip_space(p);
    if (p->bad || p->at == p->end || *p->at != c) return false;
    p->at++;
    return true;
}

static void expect(parser *p, char c)
{
    if (!accept(p, c)) p->bad = true;
}

static bool accept_word(parser *p, const char *word)
{
    size_t size = strlen(word);
    if ((size_t)(p->end - p->at) < size || memcmp(p->at, word, size) != 0) return false;
    p->at += size;
    return true;
}

/* ---- Strings -------------------------------------------------------------- */

static void put(parser *p, const void *bytes, size_t size)
{
    if (p->out.status == CV_OK)
        p->out.status = cv_buffer_append(&p->text, bytes, size, &p->out.error);
}

static uint32_t take_hex(parser *p)
{
    uint32_t value = 0;
    for (int i = 0; i < 4; i++) {
        static const char hex[] = "0123456789abcdefABCDEF";
        const char *digit = p->at < p->end && *p->at ? strchr(hex, *p->at) : NULL;
        if (!digit) {
            p->bad = true;
            return 0;
        }
        size_t place = (size_t)(digit - hex);
        value = value << 4 | (uint32_t)(place < 16 ? place : place - 6);
        p->at++;
    }
    return value;
}

static void take_escape(parser *p)
{
    static const char letters[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
    const char *letter = p->at < p->end && *p->at ? strchr(letters, *p->at) : NULL;
    if (letter) {
        put(p, &meant[letter - letters], 1);
        p->at++;
        return;
    }
    if (!accept_word(p, "u")) {
        p->bad = true;
        return;
    }
    char bytes[4];
    uint32_t code = take_hex(p);
    if (code >= 0xd800 && code < 0xdc00 && accept_word(p, "\\u")) {
        uint32_t low = take_hex(p);
        if (low >= 0xdc00 && low < 0xe000)
            code = 0x10000 + ((code & 0x3ff) << 10 | (low & 0x3ff));
    }
    if (code >= 0xd800 && code < 0xe000) p->bad = true; /* half of a surrogate pair */
    if (!p->bad) put(p, bytes, cv_utf8_encode(code, bytes));
}

static void take_string(parser *p)
{
    p->text.size = 0;
    expect(p, '"');
    while (!p->bad && p->out.status == CV_OK && !accept_word(p, "\"")) {
        size_t length = p->at < p->end ? cv_utf8_length(p->at, (size_t)(p->end - p->at)) : 0;
        if (accept_word(p, "\\")) {
            take_escape(p);
        } else if (length == 0 || (unsigned char)*p->at < 0x20) {
            p->bad = true;
        } else {
            put(p, p->at, length);
            p->at += length;
        }
    }
    cv_pack_text(&p->out, p->text.data, p->text.size);
}

/* ---- Numbers -------------------------------------------------------------- */

static size_t count_digits(const char *at, const char *end)
{
    size_t n = 0;
    while (at + n < end && at[n] >= '0' && at[n] <= '9') n++;
    return n;
}

/* strtod() expects the decimal point of the locale. So it gets all digits without a point, and an
 * exponent that makes up for the point. */
static bool pack_real(parser *p, const char *digits, size_t n, size_t n_fraction,
                      int64_t power)
{
    enum { LONGEST = 1200 }; /* no float64 needs more digits */
    char text[LONGEST + 32];
    size_t size = 0;
    if (n >= LONGEST) return false;
    for (const char *c = digits; size < n; c++)
        if (*c != '.') text[size++] = *c;
    (void)snprintf(text + size, sizeof text - size, "e%lld",
                   (long long)(power - (int64_t)n_fraction));
    double real = strtod(text, NULL);
    if (!isfinite(real)) return false;
    cv_pack_real(&p->out, real);
    return true;
}

static bool pack_whole(parser *p, const char *digits, size_t n, bool negative)
{
    uint64_t value = 0;
    for (size_t i = 0; i < n; i++) {
        uint64_t digit = (uint64_t)(digits[i] - '0');
        if (value > (UINT64_MAX - digit) / 10) return false;
        value = value * 10 + digit;
    }
    if (negative && value > (uint64_t)INT64_MAX + 1) return false;
    if (negative && value > 0)
        cv_pack_int(&p->out, (int64_t)(0 - value));
    else
        cv_pack_uint(&p->out, value);
    return true;
}

static bool take_number(parser *p)
{
    enum { MOST_POWER = 100000 };
    const char *start = p->at;
    bool negative = accept_word(p, "-"), is_whole = true;
    const char *digits = p->at;
    size_t n_whole = count_digits(p->at, p->end), n_fraction = 0;
    if (n_whole > 1 && *digits == '0') return false;
    p->at += n_whole;
    if (n_whole > 0 && accept_word(p, ".")) {
        n_fraction = count_digits(p->at, p->end);
        if (n_fraction == 0) return false;
        p->at += n_fraction;
        is_whole = false;
    }
    int64_t power = 0;
    if (n_whole > 0 && (accept_word(p, "e") || accept_word(p, "E"))) {
        bool below = accept_word(p, "-");
        if (!below) (void)accept_word(p, "+");
        size_t n = count_digits(p->at, p->end);
        if (n == 0) return false;
        for (size_t i = 0; i < n && power < MOST_POWER; i++)
            power = power * 10 + (p->at[i] - '0');
        if (below) power = -power;
        p->at += n;
        is_whole = false;
    }
    if (n_whole == 0) return false;
    if (is_whole) return pack_whole(p, digits, n_whole, negative);
    size_t sign = (size_t)(digits - start);
    return pack_real(p, start, sign + n_whole + n_fraction, n_fraction, power);
}

/* ---- Values --------------------------------------------------------------- */

static void take_scalar(parser *p)
{
    if (p->at < p->end && *p->at == '"')
        take_string(p);
    else if (accept_word(p, "null"))
        cv_pack_nil(&p->out);
    else if (accept_word(p, "true"))
        cv_pack_bool(&p->out, true);
    else if (accept_word(p, "false"))
        cv_pack_bool(&p->out, false);
    else if (!take_number(p))
        p->bad = true;
}

static void take_key(parser *p)
{
    take_string(p);
    expect(p, ':');
}

/* Opens the list or object that begins at the current position. False if none begins there. */
static bool open_level(parser *p)
{
    bool is_list = accept(p, '[');
    if (!is_list && !accept(p, '{')) return false;
    if (p->depth == CV_VALUE_DEPTH) {
        p->bad = true;
        return true;
    }
    cv_pack_begin(&p->out, is_list ? CV_PACK_LIST : CV_PACK_MAP);
    p->closing[p->depth++] = is_list ? ']' : '}';
    return true;
}

static bool close_level(parser *p)
{
    if (!accept(p, p->closing[p->depth - 1])) return false;
    cv_pack_end(&p->out);
    p->depth--;
    return true;
}

static bool is_in_object(const parser *p)
{
    return p->depth > 0 && p->closing[p->depth - 1] == '}';
}

/* Reads the marks behind a value, and a key. Returns whether another value follows. */
static bool goes_on(parser *p)
{
    while (p->depth > 0 && !p->bad) {
        if (accept(p, ',')) {
            if (is_in_object(p)) take_key(p);
            return !p->bad;
        }
        if (!close_level(p)) p->bad = true;
    }
    return false;
}

static void take_value(parser *p)
{
    do {
        if (!open_level(p)) {
            take_scalar(p);
        } else if (!p->bad && !close_level(p)) {
            if (is_in_object(p)) take_key(p);
            continue;
        }
        if (!goes_on(p)) return;
    } while (!p->bad && p->out.status == CV_OK);
}

cv_status cv_json_to_msgpack(const char *text, size_t size, cv_buffer *out, cv_error *err)
{
    parser p = {.at = text, .end = text + size};
    take_value(&p);
    skip_space(&p);
    cv_buffer_free(&p.text);
    if (p.out.status == CV_OK && (p.bad || p.at != p.end)) {
        cv_pack_free(&p.out);
        return cv_fail(err, CATERVA_EINVAL, -1, "the text is not JSON");
    }
    return cv_pack_finish(&p.out, out, err);
}
