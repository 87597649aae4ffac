/* Writes JSON to a stream, one call for each value; manages commas and nesting. Integers are exact;
 * text is escaped and made valid UTF-8. */
#ifndef CLI_JSON_H
#define CLI_JSON_H

#include "cli.h"

#include <stdio.h>

typedef struct json {
    FILE *stream;
    bool needs_comma;
} json;

/* `key` is NULL inside arrays and at the top level. */
void json_begin_object(json *j, const char *key);
void json_end_object(json *j);
void json_begin_array(json *j, const char *key);
void json_end_array(json *j);

void json_put_int(json *j, const char *key, int64_t value);
void json_put_uint(json *j, const char *key, uint64_t value);
/* Put a real number. NaN and infinities, for which JSON has no number, become "NaN", "Infinity" and
 * "-Infinity", which float() of Python and Number() of JavaScript accept. */
void json_put_real(json *j, const char *key, double value);
void json_put_single(json *j, const char *key, float value);
void json_put_bool(json *j, const char *key, bool value);
void json_put_null(json *j, const char *key);
void json_put_text(json *j, const char *key, const char *text);  /* NULL becomes null */
void json_put_place(json *j, const char *key, const char *path); /* uses cli_show_place */
void json_put_text_n(json *j, const char *key, const char *text, size_t size);
void json_put_ints(json *j, const char *key, const int64_t *values, int n);

/* Puts a key that is not NUL-terminated. The next call puts the value, with NULL as its key. */
void json_put_key(json *j, const char *key, size_t size);

/* Prints the comma before a value, if one is needed. The caller then prints the value itself. */
void json_begin_value(json *j);

/* Quotes and escapes `size` bytes, without a comma; also used for text output. */
void json_quote(FILE *stream, const char *text, size_t size);

/* Returns the size of the UTF-8 sequence at `bytes`, or 0 if it is invalid. `size` is not 0. */
CLI_API size_t json_utf8_length(const char *bytes, size_t size);

/* Returns the shortest decimal form of a finite double that reads back the same. */
#define JSON_REAL_SIZE 32
const char *json_shortest(double value, char text[JSON_REAL_SIZE]);

#endif
