/* Room: cli/formats. The JSON writer. Separators are those of Python's json.dumps, so that small
 * objects stay readable on one line. The output is valid JSON in valid UTF-8 for any input. */
#include "formats/json.h"

#include "cli.h"

#include <caterva_value.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static void begin_value(json *j, const char *key)
{
    if (j->needs_comma) fputs(", ", j->stream);
    j->needs_comma = true;
    if (!key) return;
    json_quote(j->stream, key, strlen(key));
    fputs(": ", j->stream);
}

void json_put_key(json *j, const char *key, size_t size)
{
    begin_value(j, NULL);
    json_quote(j->stream, key, size);
    fputs(": ", j->stream);
    j->needs_comma = false;
}

void json_begin_object(json *j, const char *key)
{
    begin_value(j, key);
    fputc('{', j->stream);
    j->needs_comma = false;
}

void json_end_object(json *j)
{
    fputc('}', j->stream);
    j->needs_comma = true;
}

void json_begin_array(json *j, const char *key)
{
    begin_value(j, key);
    fputc('[', j->stream);
    j->needs_comma = false;
}

void json_end_array(json *j)
{
    fputc(']', j->stream);
    j->needs_comma = true;
}

void json_put_int(json *j, const char *key, int64_t value)
{
    begin_value(j, key);
    fprintf(j->stream, "%" PRId64, value);
}

void json_put_uint(json *j, const char *key, uint64_t value)
{
    begin_value(j, key);
    fprintf(j->stream, "%" PRIu64, value);
}

const char *json_shortest(double value, char text[JSON_REAL_SIZE])
{
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, JSON_REAL_SIZE, "%.*g", digits, value);
        if (strtod(text, NULL) == value) break;
    }
    return text;
}

void json_put_real(json *j, const char *key, double value)
{
    if (!isfinite(value)) {
        json_put_text(j, key, isnan(value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity");
        return;
    }
    char text[JSON_REAL_SIZE];
    begin_value(j, key);
    fputs(json_shortest(value, text), j->stream);
    if (!strpbrk(text, ".e")) fputs(".0", j->stream); /* stays a real number when parsed */
}

void json_put_single(json *j, const char *key, float value)
{
    char text[JSON_REAL_SIZE];
    if (!isfinite(value)) {
        json_put_real(j, key, (double)value);
        return;
    }
    for (int digits = 6; digits <= 9; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, (double)value);
        if (strtof(text, NULL) == value) break;
    }
    begin_value(j, key);
    fputs(text, j->stream);
    if (!strpbrk(text, ".e")) fputs(".0", j->stream);
}

void json_begin_value(json *j) { begin_value(j, NULL); }

void json_put_bool(json *j, const char *key, bool value)
{
    begin_value(j, key);
    fputs(value ? "true" : "false", j->stream);
}

void json_put_null(json *j, const char *key)
{
    begin_value(j, key);
    fputs("null", j->stream);
}

size_t json_utf8_length(const char *bytes, size_t size)
{
    const unsigned char *text = (const unsigned char *)bytes;
    unsigned char c = text[0];
    size_t length = c < 0x80   ? 1
                    : c < 0xC2 ? 0
                    : c < 0xE0 ? 2
                    : c < 0xF0 ? 3
                    : c < 0xF5 ? 4
                               : 0;
    if (length > size) return 0;
    for (size_t i = 1; i < length; i++)
        if ((text[i] & 0xC0) != 0x80) return 0;
    if (c == 0xE0 && text[1] < 0xA0) return 0; /* overlong */
    if (c == 0xED && text[1] > 0x9F) return 0; /* surrogates */
    if (c == 0xF0 && text[1] < 0x90) return 0; /* overlong */
    if (c == 0xF4 && text[1] > 0x8F) return 0; /* above U+10FFFF */
    return length;
}

static void quote_ascii(FILE *stream, unsigned char c)
{
    static const char escaped[] = "\"\\\b\f\n\r\t", letters[] = "\"\\bfnrt";
    const char *found = c ? strchr(escaped, c) : NULL;
    if (found) {
        fprintf(stream, "\\%c", letters[found - escaped]);
    } else if (c < 0x20 || c == 0x7F) {
        fprintf(stream, "\\u%04x", c);
    } else {
        fputc(c, stream);
    }
}

void json_quote(FILE *stream, const char *text, size_t size)
{
    const char *at = text;
    fputc('"', stream);
    while (size > 0) {
        size_t length = json_utf8_length(at, size);
        if (length == 0) {
            fputs("\\ufffd", stream);
            length = 1;
        } else if (length == 1) {
            quote_ascii(stream, (unsigned char)*at);
        } else if (length == 2 && (unsigned char)at[0] == 0xC2 &&
                   (unsigned char)at[1] < 0xA0) {
            fprintf(stream, "\\u%04x", (unsigned char)at[1]); /* C1: control characters */
        } else {
            fwrite(at, 1, length, stream);
        }
        at += length;
        size -= length;
    }
    fputc('"', stream);
}

void json_put_text_n(json *j, const char *key, const char *text, size_t size)
{
    begin_value(j, key);
    json_quote(j->stream, text, size);
}

void json_put_text(json *j, const char *key, const char *text)
{
    if (text) {
        json_put_text_n(j, key, text, strlen(text));
    } else {
        json_put_null(j, key);
    }
}

void json_put_place(json *j, const char *key, const char *path)
{
    json_put_text(j, key, cli_is_url(path) ? cli_show_place(path).text : path);
}

void json_put_ints(json *j, const char *key, const int64_t *values, int n)
{
    json_begin_array(j, key);
    for (int i = 0; i < n; i++) json_put_int(j, NULL, values[i]);
    json_end_array(j);
}
