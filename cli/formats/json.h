/* Writes JSON to a stream, one call for each value; commas and nesting are kept
 * here. Integers are exact, NaN and infinities become null, text is escaped and
 * made valid UTF-8. */
#ifndef CLI_JSON_H
#define CLI_JSON_H

#include "cli.h"

#include <stdio.h>

typedef struct json {
    FILE *stream;
    bool needs_comma;
} json;

/* `key` NULL inside arrays and at the top. */
void json_object_begin(json *j, const char *key);
void json_object_end(json *j);
void json_array_begin(json *j, const char *key);
void json_array_end(json *j);

void json_int(json *j, const char *key, int64_t value);
void json_uint(json *j, const char *key, uint64_t value);
/* JSON has no number for them: "NaN", "Infinity" and "-Infinity" are texts, which float()
 * of Python and Number() of JavaScript read. */
void json_real(json *j, const char *key, double value);
void json_bool(json *j, const char *key, bool value);
void json_null(json *j, const char *key);
void json_text(json *j, const char *key, const char *text);  /* NULL: null */
void json_place(json *j, const char *key, const char *path); /* as cli_show_place does */
void json_text_n(json *j, const char *key, const char *text, size_t size);
void json_ints(json *j, const char *key, const int64_t *values, int n);

/* The key of the next value, when it is not NUL-terminated. */
void json_key_n(json *j, const char *key, size_t size);

/* Quotes and escapes `size` bytes, without a comma: also for text output. */
void json_quote(FILE *stream, const char *text, size_t size);

/* Bytes of the valid UTF-8 sequence at `bytes`, 0 when it is not valid. size >= 1. */
size_t json_utf8_length(const char *bytes, size_t size);

/* Shortest decimal form of a finite double that reads back the same. */
#define JSON_REAL_SIZE 32
const char *json_shortest(double value, char text[JSON_REAL_SIZE]);

/* A packed value, as an attribute holds it; bytes that are none become
 * {"$binary": base64}. */
cli_exit json_value(json *j, const char *key, const void *packed, size_t size);

/* JSON that somebody gave, and what to say of it when it is none. */
typedef struct json_input {
    const char *text;
    size_t size;
    const char *dtype; /* NULL; or it becomes an array of NumPy */
    const char *what, *hint;
} json_input;

/* The other way: one JSON value as MessagePack. When it is none, CLI_USAGE with a sentence
 * "<what> is not JSON: ...<hint>". Release *out with caterva_free. */
cli_exit json_pack(const json_input *in, void **out, size_t *out_size);

#endif
