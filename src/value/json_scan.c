/* Room: value. The words of JSON (RFC 8259, nothing more). No byte behind the end is
 * looked at; the text need not be terminated. */
#include "value/json_scan.h"

#include "base/status.h"
#include "value/base64.h"
#include "value/decimal.h"

#include <string.h>

cv_json_scan cv_json_scan_of(const char *text, size_t size, cv_watch *watch)
{
    const char *at = size > 0 ? text : "";
    cv_watch_set_steps(watch, (int64_t)size);
    return (cv_json_scan){
        .start = at, .at = at, .end = at + size, .watch = watch, .told = at};
}

void cv_json_tell_now(cv_json_scan *s)
{
    int64_t passed = s->at - s->told;
    s->told = s->at;
    if (s->status == CV_OK) s->status = cv_watch_step(s->watch, passed, &s->error);
}

bool cv_json_failed(const cv_json_scan *s) { return s->wrong || s->status != CV_OK; }

void cv_json_fail(cv_json_scan *s, const char *expected)
{
    if (!cv_json_failed(s)) s->wrong = expected;
}

static void skip_spaces(cv_json_scan *s)
{
    while (s->at < s->end &&
           (*s->at == ' ' || *s->at == '\t' || *s->at == '\r' || *s->at == '\n'))
        s->at++;
}

cv_status cv_json_scan_finish(cv_json_scan *s, cv_error *err)
{
    skip_spaces(s);
    if (s->at != s->end) cv_json_fail(s, "nothing more");
    cv_buffer_free(&s->text);
    if (s->status != CV_OK && err) *err = s->error;
    if (s->status != CV_OK) return s->status;
    if (!s->wrong) return CV_OK;
    return cv_fail(err, CATERVA_EINVAL, -1, "expected %s at position %zu", s->wrong,
                   (size_t)(s->at - s->start) + 1);
}

bool cv_json_accept(cv_json_scan *s, char c)
{
    skip_spaces(s);
    if (s->at == s->end || *s->at != c) return false;
    s->at++;
    return true;
}

bool cv_json_accept_word(cv_json_scan *s, const char *word)
{
    skip_spaces(s);
    if (s->at == s->end || *s->at != *word) return false;
    size_t size = strlen(word);
    if ((size_t)(s->end - s->at) < size || memcmp(s->at, word, size) != 0) return false;
    s->at += size;
    return true;
}

void cv_json_expect(cv_json_scan *s, char c, const char *expected)
{
    if (!cv_json_failed(s) && !cv_json_accept(s, c)) cv_json_fail(s, expected);
}

size_t cv_json_number(cv_json_scan *s, bool *whole)
{
    skip_spaces(s);
    return cv_decimal_span(s->at, (size_t)(s->end - s->at), whole);
}

/* ---- Text --------------------------------------------------------------- */

static void put(cv_json_scan *s, const void *bytes, size_t size)
{
    if (s->status == CV_OK) s->status = cv_buffer_append(&s->text, bytes, size, &s->error);
}

static uint32_t take_hex(cv_json_scan *s)
{
    static const char hex[] = "0123456789abcdef0123456789ABCDEF";
    uint32_t value = 0;
    for (int i = 0; i < 4; i++) {
        const char *digit = s->at < s->end && *s->at ? strchr(hex, *s->at) : NULL;
        if (!digit) {
            cv_json_fail(s, "four hexadecimal digits");
            return 0;
        }
        value = value << 4 | (uint32_t)(digit - hex) % 16;
        s->at++;
    }
    return value;
}

static bool has_escape(const cv_json_scan *s)
{
    return s->end - s->at >= 2 && s->at[0] == '\\' && s->at[1] == 'u';
}

/* Behind "\u": a character, or the first half of a pair and then the second. */
static void take_code(cv_json_scan *s)
{
    char bytes[4];
    uint32_t c = take_hex(s);
    if (c >= 0xd800 && c < 0xdc00 && has_escape(s)) {
        s->at += 2;
        uint32_t low = take_hex(s);
        if (low >= 0xdc00 && low < 0xe000) c = 0x10000 + ((c & 0x3ff) << 10 | (low & 0x3ff));
    }
    if (c >= 0xd800 && c < 0xe000) cv_json_fail(s, "both halves of a surrogate pair");
    put(s, bytes, cv_utf8_encode(c, bytes));
}

static void take_escape(cv_json_scan *s)
{
    static const char letters[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
    char c = '\0';
    if (s->at < s->end) c = *s->at;
    const char *letter = c ? strchr(letters, c) : NULL;
    if (letter) {
        put(s, &meant[letter - letters], 1);
        s->at++;
    } else if (c == 'u') {
        s->at++;
        take_code(s);
    } else {
        cv_json_fail(s, "one of \"\\/bfnrtu");
    }
}

/* Characters of ASCII that stand for themselves; false: there is none here. */
static bool take_plain(cv_json_scan *s)
{
    const char *at = s->at;
    size_t left = (size_t)(s->end - at), n = 0;
    if (left > CV_JSON_PIECE) left = CV_JSON_PIECE;
    while (n < left && at[n] >= 0x20 && (unsigned char)at[n] < 0x80 && at[n] != '"' &&
           at[n] != '\\')
        n++;
    put(s, at, n);
    s->at += n;
    return n > 0;
}

static void take_character(cv_json_scan *s)
{
    if (take_plain(s)) return;
    size_t left = (size_t)(s->end - s->at);
    size_t length = left > 0 ? cv_utf8_length(s->at, left) : 0;
    if (left == 0) {
        cv_json_fail(s, "'\"'");
    } else if (*s->at == '\\') {
        s->at++;
        take_escape(s);
    } else if (length == 0) {
        cv_json_fail(s, "UTF-8");
    } else if ((unsigned char)*s->at < 0x20) {
        cv_json_fail(s, "an escape, not a control character");
    } else {
        put(s, s->at, length);
        s->at += length;
    }
}

/* Characters up to the text's end, or until there are `most` bytes of them. */
static void take_characters(cv_json_scan *s, size_t most)
{
    while (!cv_json_failed(s) && s->text.size < most && (s->at == s->end || *s->at != '"')) {
        take_character(s);
        cv_json_tell(s);
    }
}

void cv_json_take_text(cv_json_scan *s, const char *expected)
{
    s->text.size = 0;
    cv_json_expect(s, '"', expected);
    take_characters(s, SIZE_MAX);
    if (!cv_json_failed(s)) s->at++;
}

/* ---- Base64 ------------------------------------------------------------- */

/* Decodes what was taken of a text, or all but the last digits, which may be the end of it
 * and are kept; false: it is no base64. */
static bool decode_taken(cv_json_scan *s, bool is_all, cv_buffer *out)
{
    size_t size = s->text.size, n = is_all || size == 0 ? size : (size - 1) / 4 * 4;
    if (!is_all && n > 0 && s->text.data[n - 1] == '=') return false;
    cv_status status = cv_base64_decode(s->text.data, n, out, &s->error);
    if (status == CATERVA_ENOMEM) s->status = status;
    if (n < size) memmove(s->text.data, s->text.data + n, size - n);
    s->text.size -= n;
    return status == CV_OK;
}

/* Room for all of it at once: a buffer that grows is copied, and that takes long untold. */
static void reserve_decoded(cv_json_scan *s, cv_buffer *out)
{
    const char *end = s->at < s->end ? memchr(s->at, '"', (size_t)(s->end - s->at)) : NULL;
    size_t size = end ? (size_t)(end - s->at) / 4 * 3 : 0;
    if (s->status == CV_OK) s->status = cv_buffer_reserve(out, out->size + size, &s->error);
}

/* Piece by piece, each told before it is decoded. What is wrong is said where the text ends. */
void cv_json_take_base64(cv_json_scan *s, cv_buffer *out)
{
    bool is_good = true, is_all = false;
    s->text.size = 0;
    cv_json_expect(s, '"', "base64 as text");
    if (!cv_json_failed(s)) reserve_decoded(s, out);
    while (!cv_json_failed(s) && !is_all) {
        take_characters(s, CV_JSON_PIECE);
        is_all = s->at < s->end && *s->at == '"';
        if (cv_json_failed(s)) return;
        if (is_good) is_good = decode_taken(s, is_all, out);
        if (!is_good) s->text.size = 0;
    }
    if (cv_json_failed(s)) return;
    s->at++;
    if (!is_good) cv_json_fail(s, "base64 before");
}

void cv_json_expect_key(cv_json_scan *s, const char *key, const char *expected)
{
    size_t size = strlen(key);
    cv_json_take_text(s, expected);
    if (!cv_json_failed(s) && (s->text.size != size || memcmp(s->text.data, key, size) != 0))
        cv_json_fail(s, expected);
    cv_json_expect(s, ':', "':'");
}
