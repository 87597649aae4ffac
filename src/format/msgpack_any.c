/* Room: format. Msgpack in any form. Promises: no recursion, however deep values are
 * nested; never believes a count that the bytes left cannot hold. */
#include "format/msgpack_any.h"

#include "base/arith.h"

#include <string.h>

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
