/* Reads and writes MessagePack values of any width, token by token (format/msgpack.h has the fixed
 * widths of frames). Reading needs no recursion and no memory. */
#ifndef CV_FORMAT_VALUES_H
#define CV_FORMAT_VALUES_H

#include "base/heap.h"
#include "base/watch.h"

/* Maximum nesting of lists, maps and sets. */
enum { CV_VALUE_DEPTH = 64 };

/* python-blosc2's numbers of extension types. */
enum {
    CV_EXT_FRAME = 42,     /* a contiguous frame                           */
    CV_EXT_REFERENCE = 43, /* msgpack: a map that refers to an object      */
    CV_EXT_COMPLEX = 44,   /* two big-endian float64 numbers               */
    CV_EXT_SET = 45,       /* msgpack: the list of its members             */
    CV_EXT_ARRAY = 46      /* msgpack: see cv_typed                        */
};

/* A list that begins with this text is a tuple. */
#define CV_TUPLE_MARK "__tuple__"

typedef enum cv_token_kind {
    CV_TOKEN_NIL,
    CV_TOKEN_BOOL,
    CV_TOKEN_INT, /* signed; usually negative */
    CV_TOKEN_UINT,
    CV_TOKEN_REAL,
    CV_TOKEN_TEXT,
    CV_TOKEN_BINARY,
    CV_TOKEN_EXT,
    CV_TOKEN_LIST, /* of LIST and MAP, the contents follow as tokens */
    CV_TOKEN_MAP
} cv_token_kind;

typedef struct cv_token {
    cv_token_kind kind;
    uint64_t number; /* bits of a value, count of a list or map, or size of `bytes` */
    double real;
    int ext_type;
    const uint8_t *bytes; /* of text, binary and ext; borrowed */
} cv_token;

typedef struct cv_tokens {
    const uint8_t *at, *end;
    bool bad;        /* sticky; then all following tokens are nil */
    cv_watch *watch; /* checked regularly, or NULL; a stop sets `bad` */
    uint32_t n;      /* number of tokens so far */
} cv_tokens;

cv_tokens cv_tokens_of(const void *bytes, size_t size);
cv_token cv_token_next(cv_tokens *tokens);

/* Skips one whole value, however deeply nested. */
void cv_tokens_skip(cv_tokens *tokens);

/* Whether the token is exactly this text. */
bool cv_token_is_text(const cv_token *token, const char *text);

/* Whether the bytes are exactly one value. A value nests at most CV_VALUE_DEPTH deep, has no
 * container as a map key, and has the members of sets in a list. */
bool cv_is_value(const void *bytes, size_t size);

/* ---- Writing values ----
 *
 * Writes one MessagePack value in its shortest form, as python-blosc2 does. Keeps the first failure
 * until cv_pack_finish:
 *
 *     cv_packer p = {0};
 *     cv_pack_begin(&p, CV_PACK_LIST);
 *     cv_pack_text(&p, "x", 1);
 *     cv_pack_end(&p);
 *     status = cv_pack_finish(&p, &out, err); */

typedef enum cv_pack_kind {
    CV_PACK_LIST,
    CV_PACK_MAP, /* keys and values, alternating */
    CV_PACK_SET
} cv_pack_kind;

/* The head of a container. Its count is known only after the contents are written. */
typedef struct cv_pack_head {
    cv_pack_kind kind;
    size_t at, end; /* the contents are bytes [at, end) of the body */
    size_t next;    /* index behind the last head inside this container */
    uint64_t count; /* values, including keys */
} cv_pack_head;

typedef struct cv_packer {
    cv_buffer body; /* all but the heads of lists, maps and sets */
    cv_pack_head *heads;
    size_t n_heads, heads_capacity;
    size_t open[CV_VALUE_DEPTH];
    int depth;
    bool too_deep;
    cv_watch *watch; /* counts the bytes of binaries and extensions; or NULL */
    bool only_asks;  /* `watch` does not count, it can only stop */
    cv_status status;
    cv_error error;
} cv_packer;

void cv_pack_nil(cv_packer *p);
void cv_pack_bool(cv_packer *p, bool value);
void cv_pack_uint(cv_packer *p, uint64_t value);
void cv_pack_int(cv_packer *p, int64_t value);
void cv_pack_real(cv_packer *p, double value);
void cv_pack_text(cv_packer *p, const void *text, size_t size);
void cv_pack_binary(cv_packer *p, const void *bytes, size_t size);
void cv_pack_ext(cv_packer *p, int type, const void *bytes, size_t size);

/* Packs one whole value that is encoded already. */
void cv_pack_value(cv_packer *p, const void *bytes, size_t size);

/* Values packed between begin and end belong to the container. */
void cv_pack_begin(cv_packer *p, cv_pack_kind kind);
void cv_pack_end(cv_packer *p);

/* Appends the value to `out`, or returns the first failure. Frees the packer. */
cv_status cv_pack_finish(cv_packer *p, cv_buffer *out, cv_error *err);
void cv_pack_free(cv_packer *p);

/* ---- Arrays of numbers ----
 *
 * Extension 46, whose payload is the MessagePack map
 *
 *     {"dtype": {"str": "<i2"}, "shape": [1], "data": bytes}
 *
 * Arrays of fields ({"descr": ...}) and of Python objects ("values") are not interpreted. */

typedef struct cv_typed {
    caterva_dtype type; /* a scalar: kind, byte order, item size, unit */
    const char *dtype;  /* description of `type`, `dtype_size` bytes; borrowed */
    size_t dtype_size;
    int ndim;
    int64_t shape[CATERVA_MAX_DIMS];
    int64_t n_items;
    const uint8_t *items; /* C order; borrowed */
} cv_typed;

/* Reads the payload. False if it is another kind of array, or if it is inconsistent. */
bool cv_typed_parse(const uint8_t *payload, size_t size, cv_typed *out);

/* Sets the type from a borrowed description. CATERVA_EDTYPE unless that describes a scalar. */
cv_status cv_typed_set_dtype(cv_typed *typed, const char *dtype, size_t size, cv_error *err);

/* Sets n_items, and *size to the bytes of all items. False if a number overflows. */
bool cv_typed_count(cv_typed *typed, int64_t *size);

/* Packs the array as the extension, with the description in the form of NumPy's dtype.str. */
void cv_typed_pack(const cv_typed *typed, cv_packer *p);

#endif
