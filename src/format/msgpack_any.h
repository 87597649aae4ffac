/* Msgpack as others pack it: any form of any value, read one after the other. For maps
 * that are not of a fixed layout; what is fixed is read by msgpack.h. */
#ifndef CV_FORMAT_MSGPACK_ANY_H
#define CV_FORMAT_MSGPACK_ANY_H

#include "format/msgpack.h"

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

#endif
