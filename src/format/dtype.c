/* Room: format. NumPy type descriptions of whole items: scalars, lists of
 * fields, and the dictionaries that str(dtype) prints for fields with gaps.
 *
 *   type  = 'scalar' | [field, ...] | {'names': [...], ...} | (type, shape)
 *   field = (name, type) | (name, type, shape);  name = 'n' | ('title', 'n')
 *
 * Promises: memory in proportion to the text, nesting of MAX_DEPTH at most,
 * offsets and sizes checked. Knows nothing of frames. */
#include "format/dtype.h"

#include "base/arith.h"
#include "base/grid.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_DEPTH = 16 };

typedef struct parser {
    const char *text;
    size_t size;
    size_t at; /* next character */
    int depth;
    cv_error *err;
} parser;

static cv_status parse_type(parser *p, caterva_dtype *out);

/* ---- Characters --------------------------------------------------------- */

static cv_status complain(const parser *p, const char *fmt, ...) CV_PRINTF(2, 3);

static cv_status complain(const parser *p, const char *fmt, ...)
{
    char detail[160];
    va_list args;
    va_start(args, fmt);
    vsnprintf(detail, sizeof detail, fmt, args);
    va_end(args);
    return cv_fail(p->err, CATERVA_EINVAL, -1, "dtype, character %zu: %s", p->at, detail);
}

/* The next character that is not a space; 0 at the end. */
static char peek(parser *p)
{
    while (p->at < p->size && strchr(" \t\r\n", p->text[p->at]) && p->text[p->at]) p->at++;
    return p->at < p->size ? p->text[p->at] : 0;
}

static bool accept(parser *p, char c)
{
    if (peek(p) != c || p->at == p->size) return false;
    p->at++;
    return true;
}

static cv_status expect(parser *p, char c)
{
    if (accept(p, c)) return CV_OK;
    return complain(p, "'%c' is missing", c);
}

static bool accept_word(parser *p, const char *word)
{
    size_t length = strlen(word);
    (void)peek(p);
    if (p->size - p->at < length || memcmp(p->text + p->at, word, length) != 0) return false;
    p->at += length;
    return true;
}

/* A non-negative number no larger than an item may be. */
static cv_status parse_number(parser *p, int64_t *out)
{
    char c = peek(p);
    if (c < '0' || c > '9') return complain(p, "a number is missing");
    *out = 0;
    for (; p->at < p->size && p->text[p->at] >= '0' && p->text[p->at] <= '9'; p->at++) {
        *out = *out * 10 + (p->text[p->at] - '0');
        if (*out > INT32_MAX) return complain(p, "the number exceeds %d", INT32_MAX);
    }
    return CV_OK;
}

/* ---- Strings ------------------------------------------------------------ */

static size_t encode_utf8(uint32_t code, char *out)
{
    if (code < 0x80) {
        out[0] = (char)code;
        return 1;
    }
    if (code < 0x800) {
        out[0] = (char)(0xc0 | code >> 6);
        out[1] = (char)(0x80 | (code & 0x3f));
        return 2;
    }
    if (code < 0x10000) {
        out[0] = (char)(0xe0 | code >> 12);
        out[1] = (char)(0x80 | (code >> 6 & 0x3f));
        out[2] = (char)(0x80 | (code & 0x3f));
        return 3;
    }
    out[0] = (char)(0xf0 | code >> 18);
    out[1] = (char)(0x80 | (code >> 12 & 0x3f));
    out[2] = (char)(0x80 | (code >> 6 & 0x3f));
    out[3] = (char)(0x80 | (code & 0x3f));
    return 4;
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

/* \x, \u, \U: `n_digits` hexadecimal digits of a Unicode character. */
static cv_status parse_hex_escape(parser *p, int n_digits, char *out, size_t *length)
{
    uint32_t code = 0;
    for (int i = 0; i < n_digits; i++, p->at++) {
        int digit = p->at < p->size ? hex_digit(p->text[p->at]) : -1;
        if (digit < 0) return complain(p, "the escape needs %d hexadecimal digits", n_digits);
        code = code << 4 | (uint32_t)digit;
    }
    if (code == 0 || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff))
        return complain(p, "U+%04X cannot stand in a name", code);
    *length += encode_utf8(code, out + *length);
    return CV_OK;
}

static cv_status parse_escape(parser *p, char *out, size_t *length)
{
    static const char letters[] = "nrtabfv\\'\"", meanings[] = "\n\r\t\a\b\f\v\\'\"";
    char c = p->at < p->size ? p->text[p->at++] : 0;
    if (c == 'x') return parse_hex_escape(p, 2, out, length);
    if (c == 'u') return parse_hex_escape(p, 4, out, length);
    if (c == 'U') return parse_hex_escape(p, 8, out, length);
    const char *letter = c ? strchr(letters, c) : NULL;
    if (!letter) return complain(p, "unknown escape");
    out[(*length)++] = meanings[letter - letters];
    return CV_OK;
}

static cv_status decode_string(parser *p, char *out, size_t *length)
{
    char quote = p->text[p->at++];
    *length = 0;
    while (p->at < p->size && p->text[p->at] != quote) {
        char c = p->text[p->at++];
        if (c == '\\')
            CV_TRY(parse_escape(p, out, length));
        else if (c == 0)
            return complain(p, "a zero byte in a string");
        else
            out[(*length)++] = c;
    }
    return expect(p, quote);
}

/* A quoted string, NUL-terminated; *out is the caller's to free, also after a
 * failure. No escape is shorter than what it stands for. */
static cv_status parse_string(parser *p, char **out)
{
    char c = peek(p);
    if (c != '\'' && c != '"') return complain(p, "a string is missing");
    size_t end = p->at + 1; /* of the literal, to bound the memory */
    while (end < p->size && p->text[end] != c) end += p->text[end] == '\\' ? 2 : 1;

    size_t room = end - p->at + 1, length;
    char *text = malloc(room);
    if (!text) return cv_fail_memory(p->err, room, "a dtype");
    free(*out);
    *out = text;
    CV_TRY(decode_string(p, text, &length));
    text[length] = 0;
    return CV_OK;
}

/* ---- Fields ------------------------------------------------------------- */

/* Field `i`, added when it is the next one. The array's room is the next
 * power of two. Until it is complete, a field has no name or type. */
static cv_status reach_field(parser *p, caterva_dtype *type, int i, caterva_field **out)
{
    caterva_field *fields = (caterva_field *)type->fields;
    if (i == type->n_fields) {
        if (i == INT32_MAX / 2) return complain(p, "more than %d fields", i);
        if ((i & (i - 1)) == 0) {
            size_t room = (i ? 2 * (size_t)i : 1) * sizeof *fields;
            fields = realloc(fields, room);
            if (!fields) return cv_fail_memory(p->err, room, "fields");
            type->fields = fields;
        }
        fields[i] = (caterva_field){.offset = -1};
        type->n_fields++;
    }
    *out = &fields[i];
    return CV_OK;
}

static cv_status parse_field_type(parser *p, caterva_field *field)
{
    if (field->dtype) return complain(p, "a second type for a field");
    caterva_dtype *type = calloc(1, sizeof *type);
    if (!type) return cv_fail_memory(p->err, sizeof *type, "a field");
    field->dtype = type;
    return parse_type(p, type);
}

static cv_status parse_field_name(parser *p, caterva_field *field)
{
    char *name = (char *)field->name;
    cv_status status = parse_string(p, &name);
    field->name = name;
    return status;
}

/* Makes `type` a sub-array of itself with these dimensions in front. */
static cv_status prepend_dims(parser *p, caterva_dtype *type, const int64_t *dims, int n)
{
    if (n + type->ndim > CV_MAX_DIMS)
        return complain(p, "a sub-array of %d dimensions", n + type->ndim);
    memmove(type->shape + n, type->shape, (size_t)type->ndim * sizeof *type->shape);
    for (int i = 0; i < n; i++) {
        type->shape[i] = dims[i];
        if (!cv_mul_i64(type->item_size, dims[i], &type->item_size) ||
            type->item_size > INT32_MAX)
            return complain(p, "the item exceeds %d bytes", INT32_MAX);
    }
    type->ndim += n;
    return CV_OK;
}

/* "3" or "(3,)" or "(2, 3)" */
static cv_status parse_shape(parser *p, caterva_dtype *type)
{
    int64_t dims[CV_MAX_DIMS];
    int n = 0;
    bool tuple = accept(p, '(');
    while (!(tuple && peek(p) == ')')) {
        if (n == CV_MAX_DIMS) return complain(p, "more than %d dimensions", n);
        CV_TRY(parse_number(p, &dims[n++]));
        if (!tuple || !accept(p, ',')) break;
    }
    if (tuple) CV_TRY(expect(p, ')'));
    return prepend_dims(p, type, dims, n);
}

/* Puts a field behind those before it. */
static cv_status place_field(parser *p, caterva_dtype *type, caterva_field *field)
{
    field->offset = type->item_size;
    if (!cv_add_i64(type->item_size, field->dtype->item_size, &type->item_size) ||
        type->item_size > INT32_MAX)
        return complain(p, "the item exceeds %d bytes", INT32_MAX);
    return CV_OK;
}

/* ---- [(name, type), ...] ------------------------------------------------ */

static cv_status parse_titled_name(parser *p, caterva_field *field)
{
    bool titled = accept(p, '(');
    CV_TRY(parse_field_name(p, field));
    if (!titled) return CV_OK;
    CV_TRY(expect(p, ','));
    CV_TRY(parse_field_name(p, field)); /* the title goes, the name stays */
    return expect(p, ')');
}

static cv_status parse_field(parser *p, caterva_dtype *type)
{
    caterva_field *field;
    CV_TRY(expect(p, '('));
    CV_TRY(reach_field(p, type, type->n_fields, &field));
    CV_TRY(parse_titled_name(p, field));
    CV_TRY(expect(p, ','));
    CV_TRY(parse_field_type(p, field));
    if (accept(p, ',') && peek(p) != ')')
        CV_TRY(parse_shape(p, (caterva_dtype *)field->dtype));
    CV_TRY(expect(p, ')'));
    return place_field(p, type, field);
}

static cv_status parse_field_list(parser *p, caterva_dtype *out)
{
    CV_TRY(expect(p, '['));
    while (peek(p) != ']') {
        CV_TRY(parse_field(p, out));
        if (!accept(p, ',')) break;
    }
    return expect(p, ']');
}

/* ---- {'names': [...], 'formats': [...], ...} ---------------------------- */

typedef struct dict_parts {
    int n_names, n_formats, n_offsets; /* -1: the key was not there */
    int64_t item_size;                 /* -1: not given */
} dict_parts;

typedef cv_status parse_column(parser *p, caterva_field *field);

static cv_status parse_offset(parser *p, caterva_field *field)
{
    return parse_number(p, &field->offset);
}

/* Titles are not kept. */
static cv_status parse_title(parser *p, caterva_field *field)
{
    (void)field;
    if (accept_word(p, "None")) return CV_OK;
    char *title = NULL;
    cv_status status = parse_string(p, &title);
    free(title);
    return status;
}

/* One list with an entry for each field. */
static cv_status parse_columns(parser *p, caterva_dtype *out, parse_column *parse, int *n)
{
    if (*n >= 0) return complain(p, "the same list twice");
    *n = 0;
    CV_TRY(expect(p, '['));
    while (peek(p) != ']') {
        caterva_field *field;
        CV_TRY(reach_field(p, out, (*n)++, &field));
        CV_TRY(parse(p, field));
        if (!accept(p, ',')) break;
    }
    return expect(p, ']');
}

static cv_status parse_dict_entry(parser *p, caterva_dtype *out, dict_parts *parts)
{
    char *key = NULL;
    int n_titles = -1;
    cv_status status = parse_string(p, &key);
    if (status == CV_OK) status = expect(p, ':');
    if (status != CV_OK)
        ;
    else if (strcmp(key, "names") == 0)
        status = parse_columns(p, out, parse_field_name, &parts->n_names);
    else if (strcmp(key, "formats") == 0)
        status = parse_columns(p, out, parse_field_type, &parts->n_formats);
    else if (strcmp(key, "offsets") == 0)
        status = parse_columns(p, out, parse_offset, &parts->n_offsets);
    else if (strcmp(key, "titles") == 0)
        status = parse_columns(p, out, parse_title, &n_titles);
    else if (strcmp(key, "itemsize") == 0)
        status = parse_number(p, &parts->item_size);
    else if (strcmp(key, "aligned") != 0)
        status = complain(p, "unknown key '%.20s'", key);
    else if (!accept_word(p, "True") && !accept_word(p, "False"))
        status = complain(p, "'aligned' is neither True nor False");
    free(key);
    return status;
}

/* Joins what the lists said; offsets that were left out are consecutive. */
static cv_status finish_dict(parser *p, caterva_dtype *out, const dict_parts *parts)
{
    if (parts->n_names != out->n_fields || parts->n_formats != out->n_fields ||
        (parts->n_offsets >= 0 && parts->n_offsets != out->n_fields))
        return complain(p, "%d names, %d formats and %d offsets", parts->n_names,
                        parts->n_formats, parts->n_offsets);
    int64_t end = 0;
    for (int i = 0; i < out->n_fields; i++) {
        caterva_field *field = (caterva_field *)&out->fields[i];
        if (parts->n_offsets < 0) CV_TRY(place_field(p, out, field));
        end = cv_max_i64(end, field->offset + field->dtype->item_size);
    }
    out->item_size = parts->item_size >= 0 ? parts->item_size : end;
    if (end > out->item_size)
        return complain(p, "a field ends at byte %lld of an item of %lld", (long long)end,
                        (long long)out->item_size);
    if (out->item_size > INT32_MAX)
        return complain(p, "the item exceeds %d bytes", INT32_MAX);
    return CV_OK;
}

static cv_status parse_dict(parser *p, caterva_dtype *out)
{
    dict_parts parts = {-1, -1, -1, -1};
    CV_TRY(expect(p, '{'));
    while (peek(p) != '}') {
        CV_TRY(parse_dict_entry(p, out, &parts));
        if (!accept(p, ',')) break;
    }
    CV_TRY(expect(p, '}'));
    return finish_dict(p, out, &parts);
}

/* ---- Types -------------------------------------------------------------- */

static cv_status parse_quoted_scalar(parser *p, caterva_dtype *out)
{
    size_t at = p->at;
    char *text = NULL;
    cv_status status = parse_string(p, &text);
    if (status == CV_OK)
        status = cv_dtype_parse_scalar(text, strlen(text), at + 1, out, p->err);
    free(text);
    return status;
}

/* (type, shape) */
static cv_status parse_sub_array(parser *p, caterva_dtype *out)
{
    CV_TRY(expect(p, '('));
    CV_TRY(parse_type(p, out));
    CV_TRY(expect(p, ','));
    CV_TRY(parse_shape(p, out));
    (void)accept(p, ',');
    return expect(p, ')');
}

static cv_status parse_structured(parser *p, caterva_dtype *out)
{
    out->kind = 'V';
    out->byte_order = '|';
    return peek(p) == '[' ? parse_field_list(p, out) : parse_dict(p, out);
}

static cv_status parse_type(parser *p, caterva_dtype *out)
{
    if (p->depth == MAX_DEPTH) return complain(p, "nested deeper than %d", MAX_DEPTH);
    p->depth++;
    char c = peek(p);
    cv_status status;
    if (c == '[' || c == '{')
        status = parse_structured(p, out);
    else if (c == '(')
        status = parse_sub_array(p, out);
    else
        status = parse_quoted_scalar(p, out);
    p->depth--;
    return status;
}

static cv_status parse_whole(parser *p, caterva_dtype *out)
{
    char c = peek(p);
    if (c != '[' && c != '{' && c != '(')
        return cv_dtype_parse_scalar(p->text + p->at, p->size - p->at, p->at, out, p->err);
    CV_TRY(parse_type(p, out));
    (void)peek(p);
    if (p->at != p->size) return complain(p, "text is left over");
    return CV_OK;
}

cv_status cv_dtype_parse(const char *text, size_t size, caterva_dtype **out, cv_error *err)
{
    caterva_dtype *type = calloc(1, sizeof *type);
    if (!type) return cv_fail_memory(err, sizeof *type, "a dtype");
    parser p = {.text = text, .size = size, .err = err};
    cv_status status = parse_whole(&p, type);
    if (status != CV_OK) {
        caterva_dtype_free(type);
        return status;
    }
    *out = type;
    return CV_OK;
}

cv_status cv_dtype_item_size(const char *text, size_t size, int64_t *out, cv_error *err)
{
    caterva_dtype *type;
    CV_TRY(cv_dtype_parse(text, size, &type, err));
    *out = type->item_size;
    caterva_dtype_free(type);
    return CV_OK;
}

caterva_status caterva_dtype_parse(const char *text, caterva_dtype **out, caterva_error *err)
{
    if (!text || !out) return cv_fail(err, CATERVA_EINVAL, -1, "dtype: NULL was given");
    return cv_dtype_parse(text, strlen(text), out, err);
}

/* As deep as the parser went: MAX_DEPTH. */
void caterva_dtype_free(caterva_dtype *dtype)
{
    if (!dtype) return;
    for (int i = 0; i < dtype->n_fields; i++) {
        free((char *)dtype->fields[i].name);
        caterva_dtype_free((caterva_dtype *)dtype->fields[i].dtype);
    }
    free((caterva_field *)dtype->fields);
    free(dtype);
}
