/* Msgpack with exact widths: a frame fixes the width of each number, so that fields can be
 * rewritten in place.
 *
 * Reader and writer are sticky: they keep the first failure. Then later reads return zero, and
 * later writes do nothing. The caller checks once at the end. A parser is straight-line code:
 *
 *     cv_reader r = cv_reader_open(bytes, size, 0, "frame header");
 *     cv_expect(&r, "\x9e", 1, "the opening marker");
 *     out->header_size = cv_read_i32(&r, "header size");
 *     return cv_reader_finish(&r, err);
 *
 * Field names are for messages and must outlive the call. */
#ifndef CV_FORMAT_MSGPACK_H
#define CV_FORMAT_MSGPACK_H

#include "base/heap.h"

enum {
    CV_MARK_BIN32 = 0xc6,
    CV_MARK_U16 = 0xcd,
    CV_MARK_U32 = 0xce,
    CV_MARK_U64 = 0xcf,
    CV_MARK_I16 = 0xd1,
    CV_MARK_I32 = 0xd2,
    CV_MARK_I64 = 0xd3,
    CV_MARK_STR32 = 0xdb,
    CV_MARK_ARRAY16 = 0xdc,
    CV_MARK_MAP16 = 0xde
};

typedef struct cv_reader {
    const uint8_t *bytes;
    size_t size;
    size_t at;        /* next byte to read; always <= size */
    int64_t pos;      /* frame position of bytes[0], for messages */
    const char *what; /* name of the bytes, for messages */
    cv_status status; /* code of the first failure, or CV_OK */
    cv_error error;   /* the first failure */
} cv_reader;

cv_reader cv_reader_open(const uint8_t *bytes, size_t size, int64_t pos, const char *what);

/* Records the first failure, at bytes[at]. The message begins with "<what>: ". */
void cv_reader_fail(cv_reader *reader, cv_status code, size_t at, const char *fmt, ...)
    CV_PRINTF(4, 5);

/* Returns the first failure, or CV_OK. */
cv_status cv_reader_check(const cv_reader *reader, cv_error *err);

/* Returns the first failure, or CATERVA_ECORRUPT if bytes are left, or CV_OK. */
cv_status cv_reader_finish(cv_reader *reader, cv_error *err);

/* Returns the next `size` bytes, borrowed; NULL after a failure. */
const uint8_t *cv_read_bytes(cv_reader *reader, size_t size, const char *field);

/* Reads `size` bytes. Fails unless they equal `bytes`. */
void cv_expect(cv_reader *reader, const char *bytes, size_t size, const char *field);

/* Reads one byte without a marker. A positive fixint of msgpack is such a byte. */
uint8_t cv_read_byte(cv_reader *reader, const char *field);

/* Reads a big-endian number of `width` bytes behind `marker`; 0 after a failure. Each macro below
 * reads one type or count. */
uint64_t cv_read_number(cv_reader *reader, uint8_t marker, size_t width, const char *field);

#define cv_read_i16(reader, field) ((int16_t)cv_read_number(reader, CV_MARK_I16, 2, field))
#define cv_read_i32(reader, field) ((int32_t)cv_read_number(reader, CV_MARK_I32, 4, field))
#define cv_read_i64(reader, field) ((int64_t)cv_read_number(reader, CV_MARK_I64, 8, field))
#define cv_read_u16(reader, field) ((uint16_t)cv_read_number(reader, CV_MARK_U16, 2, field))
#define cv_read_u32(reader, field) ((uint32_t)cv_read_number(reader, CV_MARK_U32, 4, field))
#define cv_read_u64(reader, field) cv_read_number(reader, CV_MARK_U64, 8, field)
#define cv_read_str32(reader, field)                                                         \
    ((uint32_t)cv_read_number(reader, CV_MARK_STR32, 4, field))
#define cv_read_bin32(reader, field)                                                         \
    ((uint32_t)cv_read_number(reader, CV_MARK_BIN32, 4, field))
#define cv_read_map16(reader, field)                                                         \
    ((uint16_t)cv_read_number(reader, CV_MARK_MAP16, 2, field))
#define cv_read_array16(reader, field)                                                       \
    ((uint16_t)cv_read_number(reader, CV_MARK_ARRAY16, 2, field))

bool cv_read_bool(cv_reader *reader, const char *field);      /* c2, c3 */
uint8_t cv_read_fixstr(cv_reader *reader, const char *field); /* returns the size */

typedef struct cv_writer {
    cv_buffer *out; /* borrowed; the writer appends */
    cv_error *err;  /* the caller's, filled by the first failure */
    cv_status status;
} cv_writer;

cv_writer cv_writer_open(cv_buffer *out, cv_error *err);

void cv_write_bytes(cv_writer *writer, const void *bytes, size_t size);
void cv_write_byte(cv_writer *writer, uint8_t value);

/* Writes a number of `width` bytes behind its marker. Each macro below writes one type. */
void cv_write_number(cv_writer *writer, uint8_t marker, size_t width, uint64_t value);

#define cv_write_i16(writer, value) cv_write_number(writer, CV_MARK_I16, 2, (uint64_t)(value))
#define cv_write_i32(writer, value) cv_write_number(writer, CV_MARK_I32, 4, (uint64_t)(value))
#define cv_write_i64(writer, value) cv_write_number(writer, CV_MARK_I64, 8, (uint64_t)(value))
#define cv_write_u16(writer, value) cv_write_number(writer, CV_MARK_U16, 2, value)
#define cv_write_u32(writer, value) cv_write_number(writer, CV_MARK_U32, 4, value)
#define cv_write_u64(writer, value) cv_write_number(writer, CV_MARK_U64, 8, value)
#define cv_write_map16(writer, n)                                                            \
    cv_write_number(writer, CV_MARK_MAP16, 2, n) /* n keys and values */
#define cv_write_array16(writer, n)                                                          \
    cv_write_number(writer, CV_MARK_ARRAY16, 2, n) /* n entries follow */

void cv_write_bool(cv_writer *writer, bool value);
void cv_write_fixstr(cv_writer *writer, const char *text, uint8_t size); /* size <= 31 */
void cv_write_str32(cv_writer *writer, const char *text, uint32_t size);
void cv_write_bin32(cv_writer *writer, const uint8_t *bytes, uint32_t size);

/* ---- Varints ----
 *
 * Seven bits per byte, lowest first; the eighth bit is set if more bytes follow. */

void cv_write_varint(cv_writer *writer, uint64_t value);

/* Fails with CATERVA_ECORRUPT if the number exceeds `most`. */
uint64_t cv_read_varint(cv_reader *reader, uint64_t most, const char *field);

#endif
