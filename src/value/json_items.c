/* Room: value. Numbers and texts as JSON, and items that are such. Whatever text comes in,
 * what goes out is valid JSON in valid UTF-8. */
#include "value/json_items.h"

#include "base/arith.h"
#include "base/status.h"
#include "value/decimal.h"

#include <stdio.h>
#include <string.h>

/* ---- Text --------------------------------------------------------------- */

static cv_status quote_ascii(unsigned char c, cv_buffer *out, cv_error *err)
{
    static const char escaped[] = "\"\\\b\f\n\r\t", letters[] = "\"\\bfnrt";
    char text[8] = {'\\'};
    const char *found = c ? strchr(escaped, c) : NULL;
    if (found) {
        text[1] = letters[found - escaped];
        return cv_buffer_append(out, text, 2, err);
    }
    if (c >= 0x20 && c != 0x7f) return cv_buffer_append(out, &c, 1, err);
    (void)snprintf(text, sizeof text, "\\u%04x", c);
    return cv_buffer_append(out, text, 6, err);
}

/* Terminals obey controls above U+0080, too. */
static cv_status quote_character(const char *at, size_t length, cv_buffer *out, cv_error *err)
{
    unsigned char first = (unsigned char)at[0],
                  second = length > 1 ? (unsigned char)at[1] : 0;
    char text[8];
    if (length == 0) return cv_buffer_append(out, "\\ufffd", 6, err);
    if (length == 1) return quote_ascii(first, out, err);
    if (length > 2 || first != 0xc2 || second >= 0xa0)
        return cv_buffer_append(out, at, length, err);
    (void)snprintf(text, sizeof text, "\\u%04x", second);
    return cv_buffer_append(out, text, 6, err);
}

/* How many characters of ASCII stand for themselves. */
static size_t plain_run(const char *at, size_t size)
{
    size_t n = 0;
    while (n < size && at[n] >= 0x20 && (unsigned char)at[n] < 0x7f && at[n] != '"' &&
           at[n] != '\\')
        n++;
    return n;
}

cv_status cv_json_escape(const void *text, size_t size, cv_buffer *out, cv_error *err)
{
    for (const char *at = text; size > 0;) {
        size_t run = plain_run(at, size);
        CV_TRY(cv_buffer_append(out, at, run, err));
        at += run;
        size -= run;
        if (size == 0) break;
        size_t length = cv_utf8_length(at, size);
        CV_TRY(quote_character(at, length, out, err));
        if (length == 0) length = 1;
        at += length;
        size -= length;
    }
    return CV_OK;
}

static cv_status quote(const void *text, size_t size, cv_buffer *out, cv_error *err)
{
    CV_TRY(cv_buffer_append(out, "\"", 1, err));
    CV_TRY(cv_json_escape(text, size, out, err));
    return cv_buffer_append(out, "\"", 1, err);
}

/* ---- Items -------------------------------------------------------------- */

/* `size` bytes of an item as a number, in the item's byte order. */
static uint64_t load(const cv_typed *typed, const uint8_t *bytes, int64_t size)
{
    uint64_t value = 0;
    bool big = typed->type.byte_order == '>';
    for (int64_t i = 0; i < size; i++) value = value << 8 | bytes[big ? i : size - 1 - i];
    return value;
}

static int64_t load_signed(const cv_typed *typed, const uint8_t *bytes, int64_t size)
{
    uint64_t sign = (uint64_t)1 << (size * 8 - 1);
    return (int64_t)((load(typed, bytes, size) ^ sign) - sign);
}

static void print_real(const cv_typed *typed, const uint8_t *bytes, int64_t size,
                       char text[CV_DECIMAL_SIZE])
{
    uint64_t bits = load(typed, bytes, size);
    uint32_t low = (uint32_t)bits;
    float single;
    double real;
    memcpy(&single, &low, sizeof single);
    memcpy(&real, &bits, sizeof real);
    if (size == 4)
        cv_decimal_print_single(single, text);
    else
        cv_decimal_print(real, text);
}

/* NumPy's NaN, which is what the text becomes again; another has bits to lose. */
static bool is_plain_real(const cv_typed *typed, const uint8_t *bytes, int64_t size)
{
    uint64_t bits = load(typed, bytes, size);
    if (size == 4) return (bits & 0x7fffffff) <= 0x7f800000 || bits == 0x7fc00000;
    return (bits & INT64_MAX) <= 0x7ff0000000000000 || bits == 0x7ff8000000000000;
}

/* The characters of a text item, without the NULs that fill it up. */
static int64_t text_length(const cv_typed *typed, const uint8_t *item)
{
    int64_t width = typed->type.kind == 'U' ? 4 : 1, n = typed->type.item_size / width;
    while (n > 0 && load(typed, item + (n - 1) * width, width) == 0) n--;
    return n;
}

static bool is_plain_text(const cv_typed *typed, const uint8_t *item)
{
    int64_t n = text_length(typed, item);
    if (typed->type.kind == 'U') {
        for (int64_t i = 0; i < n; i++) {
            uint64_t c = load(typed, item + 4 * i, 4);
            if (c > 0x10ffff || (c >= 0xd800 && c < 0xe000)) return false;
        }
        return true;
    }
    for (int64_t at = 0; at < n;) {
        size_t length = cv_utf8_length((const char *)item + at, (size_t)(n - at));
        if (length == 0) return false;
        at += (int64_t)length;
    }
    return true;
}

static bool is_plain(const cv_typed *typed, const uint8_t *item)
{
    int64_t size = typed->type.item_size;
    switch (typed->type.kind) {
    case 'b': return *item <= 1;
    case 'f': return is_plain_real(typed, item, size);
    case 'c':
        return is_plain_real(typed, item, size / 2) &&
               is_plain_real(typed, item + size / 2, size / 2);
    case 'S':
    case 'U': return is_plain_text(typed, item);
    default: return true;
    }
}

bool cv_json_has_items(const cv_typed *typed)
{
    int64_t size = typed->type.item_size;
    switch (typed->type.kind) {
    case 'b':
    case 'i':
    case 'u':
    case 'M':
    case 'm':
    case 'S':
    case 'U': break;
    case 'f':
        if (size != 4 && size != 8) return false;
        break;
    case 'c':
        if (size != 8 && size != 16) return false;
        break;
    default: return false;
    }
    for (int64_t i = 0; i < typed->n_items; i++)
        if (!is_plain(typed, typed->items + i * size)) return false;
    return true;
}

static cv_status quote_item(const cv_typed *typed, const uint8_t *item, cv_buffer *out,
                            cv_error *err)
{
    int64_t n = text_length(typed, item);
    if (typed->type.kind == 'S') return quote(item, (size_t)n, out, err);
    cv_buffer text = {0};
    size_t size = 0;
    cv_status status = cv_buffer_reserve(&text, (size_t)n * 4 + 1, err);
    for (int64_t i = 0; i < n && status == CV_OK; i++)
        size +=
            cv_utf8_encode((uint32_t)load(typed, item + 4 * i, 4), (char *)text.data + size);
    if (status == CV_OK) status = quote(text.data, size, out, err);
    cv_buffer_free(&text);
    return status;
}

static cv_status append_text(const char *text, cv_buffer *out, cv_error *err)
{
    return cv_buffer_append(out, text, strlen(text), err);
}

static cv_status print_complex(const cv_typed *typed, const uint8_t *item, cv_buffer *out,
                               cv_error *err)
{
    int64_t half = typed->type.item_size / 2;
    char re[CV_DECIMAL_SIZE], im[CV_DECIMAL_SIZE], text[2 * CV_DECIMAL_SIZE + 8];
    print_real(typed, item, half, re);
    print_real(typed, item + half, half, im);
    (void)snprintf(text, sizeof text, "[%s, %s]", re, im);
    return append_text(text, out, err);
}

cv_status cv_json_item(const cv_typed *typed, int64_t i, cv_buffer *out, cv_error *err)
{
    int64_t size = typed->type.item_size;
    const uint8_t *item = typed->items + i * size;
    char text[CV_DECIMAL_SIZE];
    int64_t whole;
    switch (typed->type.kind) {
    case 'b': return append_text(*item ? "true" : "false", out, err);
    case 'u':
        (void)cv_decimal_print_whole(load(typed, item, size), false, text);
        return append_text(text, out, err);
    case 'f': print_real(typed, item, size, text); return append_text(text, out, err);
    case 'c': return print_complex(typed, item, out, err);
    case 'S':
    case 'U': return quote_item(typed, item, out, err);
    default:
        whole = load_signed(typed, item, size);
        (void)cv_decimal_print_whole(whole < 0 ? 0 - (uint64_t)whole : (uint64_t)whole,
                                     whole < 0, text);
        return append_text(text, out, err);
    }
}
