/* Exact-width msgpack. A frame fixes the width of every number it holds, so
 * that fields can be rewritten in place; generic packers choose the shortest
 * form and do not fit.
 *
 * Reader and writer are sticky: the first failure is kept, everything after
 * it reads as zero or writes nothing, and the caller asks once at the end. A
 * parser is therefore straight-line code, one line per field:
 *
 *     cv_reader r = cv_reader_open(bytes, size, 0, "frame header");
 *     cv_expect(&r, "\x9e", 1, "the opening marker");
 *     out->header_size = cv_read_i32(&r, "header size");
 *     return cv_reader_finish(&r, err);
 *
 * Field names are for the error sentence and must outlive the call. */
#ifndef CV_FORMAT_MSGPACK_H
#define CV_FORMAT_MSGPACK_H

#include "base/heap.h"

typedef struct cv_reader {
    const uint8_t *bytes;
    size_t size;
    size_t at;        /* next byte to read; always <= size */
    int64_t pos;      /* frame position of bytes[0], for messages */
    const char *what; /* what the bytes are, for messages */
    cv_status status; /* of the first failure */
    cv_error error;   /* its sentence */
} cv_reader;

cv_reader cv_reader_open(const uint8_t *bytes, size_t size, int64_t pos, const char *what);

/* Records a failure at bytes[at]; the first one wins. The sentence gets
 * "<what>: " in front. */
void cv_reader_fail(cv_reader *reader, cv_status code, size_t at, const char *fmt, ...)
    CV_PRINTF(4, 5);

/* The first failure, if there was one. */
cv_status cv_reader_check(const cv_reader *reader, cv_error *err);

/* The same, and CATERVA_ECORRUPT when bytes are left over. */
cv_status cv_reader_finish(cv_reader *reader, cv_error *err);

/* The next `size` bytes, borrowed; NULL after a failure. */
const uint8_t *cv_read_bytes(cv_reader *reader, size_t size, const char *field);

/* Fails unless the next bytes are exactly these. */
void cv_expect(cv_reader *reader, const char *bytes, size_t size, const char *field);

/* One byte without a marker (also msgpack's positive fixint). */
uint8_t cv_read_byte(cv_reader *reader, const char *field);

/* Numbers behind their marker, big-endian. */
int16_t cv_read_i16(cv_reader *reader, const char *field); /* d1 */
int32_t cv_read_i32(cv_reader *reader, const char *field); /* d2 */
int64_t cv_read_i64(cv_reader *reader, const char *field); /* d3 */
uint16_t cv_read_u16(cv_reader *reader, const char *field); /* cd */
uint32_t cv_read_u32(cv_reader *reader, const char *field); /* ce */
uint64_t cv_read_u64(cv_reader *reader, const char *field); /* cf */
bool cv_read_bool(cv_reader *reader, const char *field); /* c2, c3 */

/* Counts behind the marker of what follows. */
uint8_t cv_read_fixstr(cv_reader *reader, const char *field); /* a0 + bytes */
uint32_t cv_read_str32(cv_reader *reader, const char *field); /* db: bytes */
uint32_t cv_read_bin32(cv_reader *reader, const char *field); /* c6: bytes */
uint16_t cv_read_map16(cv_reader *reader, const char *field); /* de: entries */
uint16_t cv_read_array16(cv_reader *reader, const char *field); /* dc: entries */

typedef struct cv_writer {
    cv_buffer *out; /* borrowed; bytes are appended */
    cv_error *err;  /* the caller's, filled by the first failure */
    cv_status status;
} cv_writer;

cv_writer cv_writer_open(cv_buffer *out, cv_error *err);

void cv_write_bytes(cv_writer *writer, const void *bytes, size_t size);
void cv_write_byte(cv_writer *writer, uint8_t value);
void cv_write_i16(cv_writer *writer, int16_t value);
void cv_write_i32(cv_writer *writer, int32_t value);
void cv_write_i64(cv_writer *writer, int64_t value);
void cv_write_u16(cv_writer *writer, uint16_t value);
void cv_write_u32(cv_writer *writer, uint32_t value);
void cv_write_u64(cv_writer *writer, uint64_t value);
void cv_write_bool(cv_writer *writer, bool value);
void cv_write_fixstr(cv_writer *writer, const char *text, uint8_t size); /* size <= 31 */
void cv_write_str32(cv_writer *writer, const char *text, uint32_t size);
void cv_write_bin32(cv_writer *writer, const uint8_t *bytes, uint32_t size);
void cv_write_map16(cv_writer *writer, uint16_t n); /* n keys and values follow */
void cv_write_array16(cv_writer *writer, uint16_t n); /* n entries follow */

/* ---- msgpack_any ----
 * Msgpack as others pack it: any form of any value, read one after the other. For maps
 * that are not of a fixed layout; what is fixed is read by msgpack.h. */

typedef enum cv_any_kind {
    CV_ANY_NIL = 0, /* also after a failure */
    CV_ANY_BOOL,
    CV_ANY_INT, /* that int64_t holds */
    CV_ANY_REAL,
    CV_ANY_TEXT,
    CV_ANY_BYTES,
    CV_ANY_ARRAY,
    CV_ANY_MAP,
    CV_ANY_OTHER /* extensions, and integers above int64_t */
} cv_any_kind;

typedef struct cv_any {
    cv_any_kind kind;
    int64_t number;       /* CV_ANY_INT, CV_ANY_BOOL */
    const uint8_t *bytes; /* CV_ANY_TEXT, CV_ANY_BYTES: borrowed, no NUL behind them */
    uint32_t size;        /* of these, or entries of CV_ANY_ARRAY and CV_ANY_MAP */
} cv_any;

/* The next value. Of an array or map its entries follow: n values, or n keys and values in
 * turn; their count is never more than the bytes that are left. */
cv_any cv_read_any(cv_reader *reader, const char *field);

/* Passes over the next value with all that is in it. */
void cv_skip_any(cv_reader *reader, const char *field);

/* Whether it is this text. */
bool cv_any_is(const cv_any *any, const char *text);

/* ---- varint ----
 * Numbers of as many bytes as they take: seven bits in each, the low ones first, and the
 * eighth says that more follow. Read by the sticky reader of msgpack.h. */

void cv_write_varint(cv_writer *writer, uint64_t value);

/* CATERVA_ECORRUPT, by the reader, for more than `most`. */
uint64_t cv_read_varint(cv_reader *reader, uint64_t most, const char *field);

#endif
