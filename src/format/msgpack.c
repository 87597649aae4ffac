/* Room: format. The sticky msgpack reader and writer. Promises: never reads a
 * byte outside [bytes, bytes + size), whatever is asked for; the first failure
 * is the one reported. Knows nothing of frames. */
#include "format/msgpack.h"

#include "base/arith.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- Msgpack ---- */

enum {
    FIXSTR = 0xa0,
    FALSE_MARK = 0xc2,
    TRUE_MARK = 0xc3,
    BIN32 = 0xc6,
    U16 = 0xcd,
    U32 = 0xce,
    U64 = 0xcf,
    I16 = 0xd1,
    I32 = 0xd2,
    I64 = 0xd3,
    STR32 = 0xdb,
    ARRAY16 = 0xdc,
    MAP16 = 0xde
};

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

/* The number of `width` bytes behind `marker`. */
static uint64_t read_number(cv_reader *reader, uint8_t marker, size_t width,
                            const char *field)
{
    char wanted = (char)marker;
    cv_expect(reader, &wanted, 1, field);
    const uint8_t *bytes = cv_read_bytes(reader, width, field);
    uint64_t value = 0;
    for (size_t i = 0; bytes && i < width; i++) value = value << 8 | bytes[i];
    return value;
}

int16_t cv_read_i16(cv_reader *reader, const char *field)
{
    return (int16_t)read_number(reader, I16, 2, field);
}

int32_t cv_read_i32(cv_reader *reader, const char *field)
{
    return (int32_t)read_number(reader, I32, 4, field);
}

int64_t cv_read_i64(cv_reader *reader, const char *field)
{
    return (int64_t)read_number(reader, I64, 8, field);
}

uint16_t cv_read_u16(cv_reader *reader, const char *field)
{
    return (uint16_t)read_number(reader, U16, 2, field);
}

uint32_t cv_read_u32(cv_reader *reader, const char *field)
{
    return (uint32_t)read_number(reader, U32, 4, field);
}

uint64_t cv_read_u64(cv_reader *reader, const char *field)
{
    return read_number(reader, U64, 8, field);
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

uint32_t cv_read_str32(cv_reader *reader, const char *field)
{
    return (uint32_t)read_number(reader, STR32, 4, field);
}

uint32_t cv_read_bin32(cv_reader *reader, const char *field)
{
    return (uint32_t)read_number(reader, BIN32, 4, field);
}

uint16_t cv_read_map16(cv_reader *reader, const char *field)
{
    return (uint16_t)read_number(reader, MAP16, 2, field);
}

uint16_t cv_read_array16(cv_reader *reader, const char *field)
{
    return (uint16_t)read_number(reader, ARRAY16, 2, field);
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

static void write_number(cv_writer *writer, uint8_t marker, size_t width, uint64_t value)
{
    uint8_t bytes[9] = {marker};
    for (size_t i = 0; i < width; i++) bytes[width - i] = (uint8_t)(value >> (8 * i));
    cv_write_bytes(writer, bytes, 1 + width);
}

void cv_write_i16(cv_writer *writer, int16_t value)
{
    write_number(writer, I16, 2, (uint16_t)value);
}

void cv_write_i32(cv_writer *writer, int32_t value)
{
    write_number(writer, I32, 4, (uint32_t)value);
}

void cv_write_i64(cv_writer *writer, int64_t value)
{
    write_number(writer, I64, 8, (uint64_t)value);
}

void cv_write_u16(cv_writer *writer, uint16_t value) { write_number(writer, U16, 2, value); }

void cv_write_u32(cv_writer *writer, uint32_t value) { write_number(writer, U32, 4, value); }

void cv_write_u64(cv_writer *writer, uint64_t value) { write_number(writer, U64, 8, value); }

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
    write_number(writer, STR32, 4, size);
    cv_write_bytes(writer, text, size);
}

void cv_write_bin32(cv_writer *writer, const uint8_t *bytes, uint32_t size)
{
    write_number(writer, BIN32, 4, size);
    cv_write_bytes(writer, bytes, size);
}

void cv_write_map16(cv_writer *writer, uint16_t n) { write_number(writer, MAP16, 2, n); }

void cv_write_array16(cv_writer *writer, uint16_t n) { write_number(writer, ARRAY16, 2, n); }

/* ---- Msgpack any ----
 *
 * Msgpack in any form. Promises: no recursion, however deep values are
 * nested; never believes a count that the bytes left cannot hold. */

/* ---- Numbers and lengths ------------------------------------------------------ */

static uint64_t read_big_endian(cv_reader *reader, size_t width, const char *field)
{
    const uint8_t *bytes = cv_read_bytes(reader, width, field);
    uint64_t value = 0;
    for (size_t i = 0; bytes && i < width; i++) value = value << 8 | bytes[i];
    return value;
}

static cv_any whole_number(uint64_t value)
{
    if (value > INT64_MAX) return (cv_any){.kind = CV_ANY_OTHER};
    return (cv_any){.kind = CV_ANY_INT, .number = (int64_t)value};
}

/* cc to cf, then d0 to d3: 1, 2, 4 and 8 bytes. */
static cv_any read_integer(cv_reader *reader, uint8_t mark, const char *field)
{
    bool is_signed = mark >= 0xd0;
    size_t width = (size_t)1 << ((mark - (is_signed ? 0xd0 : 0xcc)) & 3);
    uint64_t value = read_big_endian(reader, width, field);
    if (!is_signed) return whole_number(value);
    int shift = (int)(64 - 8 * width);
    return (cv_any){.kind = CV_ANY_INT, .number = (int64_t)(value << shift) >> shift};
}

static cv_any read_run(cv_reader *reader, cv_any_kind kind, uint64_t size, const char *field)
{
    cv_any any = {.kind = kind, .size = (uint32_t)size};
    any.bytes = cv_read_bytes(reader, (size_t)size, field);
    return any;
}

static cv_any read_entries(cv_reader *reader, cv_any_kind kind, uint64_t n, const char *field)
{
    uint64_t values = kind == CV_ANY_MAP ? 2 * n : n;
    if (reader->status == CV_OK && values > reader->size - reader->at)
        cv_reader_fail(reader, CATERVA_ECORRUPT, reader->at,
                       "%s has %llu entries, but only %zu bytes are left", field,
                       (unsigned long long)n, reader->size - reader->at);
    return (cv_any){.kind = kind, .size = (uint32_t)n};
}

/* ---- Values --------------------------------------------------------------------- */

/* c0 to c9, and ca, cb: what is not a number of its own. */
static cv_any read_low(cv_reader *reader, uint8_t mark, const char *field)
{
    size_t width = (size_t)1 << ((mark - 0xc4) & 3); /* 1, 2, 4 of c4 to c6 */
    switch (mark) {
    case 0xc0: return (cv_any){.kind = CV_ANY_NIL};
    case 0xc2:
    case 0xc3: return (cv_any){.kind = CV_ANY_BOOL, .number = mark == 0xc3};
    case 0xc4:
    case 0xc5:
    case 0xc6:
        return read_run(reader, CV_ANY_BYTES, read_big_endian(reader, width, field), field);
    case 0xc7:
    case 0xc8:
    case 0xc9:
        width = (size_t)1 << (mark - 0xc7);
        return read_run(reader, CV_ANY_OTHER, read_big_endian(reader, width, field) + 1,
                        field);
    case 0xca: return read_run(reader, CV_ANY_REAL, 4, field);
    case 0xcb: return read_run(reader, CV_ANY_REAL, 8, field);
    default:
        cv_reader_fail(reader, CATERVA_ECORRUPT, reader->at - 1, "%s: 0x%02x begins no value",
                       field, mark);
        return (cv_any){.kind = CV_ANY_NIL};
    }
}

static cv_any read_marked(cv_reader *reader, uint8_t mark, const char *field)
{
    if (mark < 0xcc) return read_low(reader, mark, field);
    if (mark < 0xd4) return read_integer(reader, mark, field);
    if (mark < 0xd9) /* fixext: a type and 1 to 16 bytes */
        return read_run(reader, CV_ANY_OTHER, 1 + ((uint64_t)1 << (mark - 0xd4)), field);
    if (mark < 0xdc) {
        size_t width = (size_t)1 << (mark - 0xd9);
        return read_run(reader, CV_ANY_TEXT, read_big_endian(reader, width, field), field);
    }
    size_t width = mark & 1 ? 4 : 2;
    return read_entries(reader, mark < 0xde ? CV_ANY_ARRAY : CV_ANY_MAP,
                        read_big_endian(reader, width, field), field);
}

static cv_any read_value(cv_reader *reader, const char *field)
{
    const uint8_t *first = cv_read_bytes(reader, 1, field);
    uint8_t mark = first ? *first : 0xc0;
    if (mark < 0x80) return whole_number(mark);
    if (mark >= 0xe0) return (cv_any){.kind = CV_ANY_INT, .number = (int8_t)mark};
    if (mark < 0x90) return read_entries(reader, CV_ANY_MAP, mark & 0xf, field);
    if (mark < 0xa0) return read_entries(reader, CV_ANY_ARRAY, mark & 0xf, field);
    if (mark < 0xc0) return read_run(reader, CV_ANY_TEXT, mark & 0x1f, field);
    return read_marked(reader, mark, field);
}

cv_any cv_read_any(cv_reader *reader, const char *field)
{
    cv_any any = read_value(reader, field);
    return reader->status == CV_OK ? any : (cv_any){.kind = CV_ANY_NIL};
}

void cv_skip_any(cv_reader *reader, const char *field)
{
    for (uint64_t left = 1; left > 0 && reader->status == CV_OK; left--) {
        cv_any any = cv_read_any(reader, field);
        if (any.kind == CV_ANY_ARRAY) left += any.size;
        if (any.kind == CV_ANY_MAP) left += 2 * (uint64_t)any.size;
    }
}

bool cv_any_is(const cv_any *any, const char *text)
{
    return any->kind == CV_ANY_TEXT && any->size == strlen(text) &&
           memcmp(any->bytes, text, any->size) == 0;
}

/* ---- Varint ----
 *
 * Numbers of different lengths, bytes <-> value. */

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
