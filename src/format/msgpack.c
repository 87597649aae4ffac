/* Room: format. The sticky msgpack reader and writer, which report the first failure. The reader
 * never reads outside [bytes, bytes + size). */
#include "format/msgpack.h"

#include "base/arith.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { FIXSTR = 0xa0, FALSE_MARK = 0xc2, TRUE_MARK = 0xc3 };

/* ---- Reading ------------------------------------------------------------ */

cv_reader cv_reader_open(const uint8_t *bytes, size_t size, int64_t pos, const char *what)
{
    cv_reader reader = {.bytes = bytes, .size = size, .pos = pos, .what = what};
    return reader;
}

void cv_reader_fail(cv_reader *reader, cv_status code, size_t at, const char *fmt, ...)
{
    if (reader->status != CV_OK) return;

    char detail[200];
    va_list args;
    va_start(args, fmt);
    vsnprintf(detail, sizeof detail, fmt, args);
    va_end(args);
    reader->status = cv_fail(&reader->error, code, reader->pos + (int64_t)at, "%s: %s",
                             reader->what, detail);
}

cv_status cv_reader_check(const cv_reader *reader, cv_error *err)
{
    if (reader->status != CV_OK && err) *err = reader->error;
    return reader->status;
}

cv_status cv_reader_finish(cv_reader *reader, cv_error *err)
{
    if (reader->at < reader->size)
        cv_reader_fail(reader, CATERVA_ECORRUPT, reader->at,
                       "%zu bytes are left over behind byte %lld", reader->size - reader->at,
                       (long long)reader->pos + (long long)reader->at);
    return cv_reader_check(reader, err);
}

const uint8_t *cv_read_bytes(cv_reader *reader, size_t size, const char *field)
{
    if (reader->status != CV_OK) return NULL;
    if (size > reader->size - reader->at) {
        cv_reader_fail(reader, CATERVA_ECORRUPT, reader->at,
                       "%s needs %zu bytes at byte %lld, but only %zu are left", field, size,
                       (long long)reader->pos + (long long)reader->at,
                       reader->size - reader->at);
        return NULL;
    }
    const uint8_t *bytes = reader->bytes + reader->at;
    reader->at += size;
    return bytes;
}

void cv_expect(cv_reader *reader, const char *bytes, size_t size, const char *field)
{
    size_t at = reader->at;
    const uint8_t *found = cv_read_bytes(reader, size, field);
    if (!found) return;
    for (size_t i = 0; i < size; i++) {
        uint8_t wanted = (uint8_t)bytes[i];
        if (found[i] == wanted) continue;
        cv_reader_fail(reader, CATERVA_ECORRUPT, at + i,
                       "%s: byte %lld is 0x%02x instead of 0x%02x", field,
                       (long long)reader->pos + (long long)(at + i), found[i], wanted);
        return;
    }
}

uint8_t cv_read_byte(cv_reader *reader, const char *field)
{
    const uint8_t *bytes = cv_read_bytes(reader, 1, field);
    return bytes ? bytes[0] : 0;
}

uint64_t cv_read_number(cv_reader *reader, uint8_t marker, size_t width, const char *field)
{
    char wanted = (char)marker;
    cv_expect(reader, &wanted, 1, field);
    const uint8_t *bytes = cv_read_bytes(reader, width, field);
    uint64_t value = 0;
    for (size_t i = 0; bytes && i < width; i++) value = value << 8 | bytes[i];
    return value;
}

bool cv_read_bool(cv_reader *reader, const char *field)
{
    size_t at = reader->at;
    uint8_t mark = cv_read_byte(reader, field);
    if (mark != TRUE_MARK && mark != FALSE_MARK)
        cv_reader_fail(reader, CATERVA_ECORRUPT, at,
                       "%s: byte %lld is 0x%02x, neither false nor true", field,
                       (long long)reader->pos + (long long)at, mark);
    return mark == TRUE_MARK;
}

uint8_t cv_read_fixstr(cv_reader *reader, const char *field)
{
    size_t at = reader->at;
    uint8_t mark = cv_read_byte(reader, field);
    if ((mark & 0xe0) != FIXSTR)
        cv_reader_fail(reader, CATERVA_ECORRUPT, at,
                       "%s: byte %lld is 0x%02x, not a short string", field,
                       (long long)reader->pos + (long long)at, mark);
    return mark & 0x1f;
}

/* ---- Writing ------------------------------------------------------------ */

cv_writer cv_writer_open(cv_buffer *out, cv_error *err)
{
    cv_writer writer = {.out = out, .err = err, .status = CV_OK};
    return writer;
}

void cv_write_bytes(cv_writer *writer, const void *bytes, size_t size)
{
    if (writer->status != CV_OK) return;
    writer->status = cv_buffer_append(writer->out, bytes, size, writer->err);
}

void cv_write_byte(cv_writer *writer, uint8_t value) { cv_write_bytes(writer, &value, 1); }

void cv_write_number(cv_writer *writer, uint8_t marker, size_t width, uint64_t value)
{
    uint8_t bytes[9] = {marker};
    for (size_t i = 0; i < width; i++) bytes[width - i] = (uint8_t)(value >> (8 * i));
    cv_write_bytes(writer, bytes, 1 + width);
}

void cv_write_bool(cv_writer *writer, bool value)
{
    cv_write_byte(writer, value ? TRUE_MARK : FALSE_MARK);
}

void cv_write_fixstr(cv_writer *writer, const char *text, uint8_t size)
{
    cv_write_byte(writer, (uint8_t)(FIXSTR | (size & 0x1f)));
    cv_write_bytes(writer, text, size);
}

void cv_write_str32(cv_writer *writer, const char *text, uint32_t size)
{
    cv_write_number(writer, CV_MARK_STR32, 4, size);
    cv_write_bytes(writer, text, size);
}

void cv_write_bin32(cv_writer *writer, const uint8_t *bytes, uint32_t size)
{
    cv_write_number(writer, CV_MARK_BIN32, 4, size);
    cv_write_bytes(writer, bytes, size);
}

/* ---- Varints -------------------------------------------------------------- */

void cv_write_varint(cv_writer *writer, uint64_t value)
{
    for (; value > 0x7f; value >>= 7) cv_write_byte(writer, (uint8_t)(value | 0x80));
    cv_write_byte(writer, (uint8_t)value);
}

uint64_t cv_read_varint(cv_reader *reader, uint64_t most, const char *field)
{
    size_t at = reader->at;
    uint64_t value = 0;
    uint8_t byte = 0x80;
    for (int shift = 0; shift < 64 && byte > 0x7f; shift += 7) {
        byte = cv_read_byte(reader, field);
        value |= (uint64_t)(byte & 0x7f) << shift;
    }
    if (byte <= 0x7f && value <= most) return value;
    cv_reader_fail(reader, CATERVA_ECORRUPT, at, "%s is more than %llu", field,
                   (unsigned long long)most);
    return 0;
}
