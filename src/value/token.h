/* MessagePack, one token after the other: what attributes hold, in any of the widths that
 * a packer may choose (format/msgpack.h has the fixed widths of frames). No recursion and
 * no memory, whatever the bytes claim. */
#ifndef CV_VALUE_TOKEN_H
#define CV_VALUE_TOKEN_H

#include "base/watch.h"

/* How deep lists, maps and sets may stand in one another. */
enum { CV_VALUE_DEPTH = 64 };

/* Extension types as python-blosc2 numbers them. */
enum {
    CV_EXT_FRAME = 42,     /* a cframe                                     */
    CV_EXT_REFERENCE = 43, /* msgpack: a map that says where something is  */
    CV_EXT_COMPLEX = 44,   /* two big-endian float64                       */
    CV_EXT_SET = 45,       /* msgpack: the list of its members             */
    CV_EXT_ARRAY = 46      /* msgpack: see value/typed.h                   */
};

/* A list that begins with this text is a tuple. */
#define CV_TUPLE_MARK "__tuple__"

typedef enum cv_token_kind {
    CV_TOKEN_NIL,
    CV_TOKEN_BOOL,
    CV_TOKEN_INT, /* negative ones, mostly */
    CV_TOKEN_UINT,
    CV_TOKEN_REAL,
    CV_TOKEN_TEXT,
    CV_TOKEN_BINARY,
    CV_TOKEN_EXT,
    CV_TOKEN_LIST, /* this and the next: their values follow as tokens */
    CV_TOKEN_MAP
} cv_token_kind;

typedef struct cv_token {
    cv_token_kind kind;
    uint64_t number; /* value as bits; of lists and maps the count, of bytes the size */
    double real;
    int ext_type;
    const uint8_t *bytes; /* text, binary, ext; borrowed */
} cv_token;

typedef struct cv_tokens {
    const uint8_t *at, *end;
    bool bad;        /* sticky: from then on tokens are nil */
    cv_watch *watch; /* may stop, tokens are bad then; NULL: nobody */
    uint32_t n;      /* tokens so far */
} cv_tokens;

cv_tokens cv_tokens_of(const void *bytes, size_t size);
cv_token cv_token_next(cv_tokens *tokens);

/* Passes over one whole value, however deep. */
void cv_tokens_skip(cv_tokens *tokens);

/* True for a text of exactly these bytes. */
bool cv_token_is_text(const cv_token *token, const char *text);

/* True when the bytes are exactly one value: nested at most CV_VALUE_DEPTH deep, no list
 * or map as the key of a map, the members of sets a list. */
bool cv_is_value(const void *bytes, size_t size);
bool cv_tokens_are_value(cv_tokens tokens); /* the same; false also when it was stopped */

#endif
