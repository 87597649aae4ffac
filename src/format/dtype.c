/* Room: format. Parses NumPy type descriptions of whole items: scalars, lists of fields, and the
 * dictionaries that str(dtype) prints for fields with gaps.
 *
 *   type  = 'scalar' | [field, ...] | {'names': [...], ...} | (type, shape)
 *   field = (name, type) | (name, type, shape);  name = 'n' | ('title', 'n')
 *
 * Memory is in proportion to the text. Nesting is at most MAX_DEPTH. Offsets and sizes are checked.
 * This file does not know frames. */
#include "format/dtype.h"

#include "base/arith.h"
#include "base/grid.h"
#include "base/heap.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Python literals ----
 *
 * Reads tokens: spaces, marks, words, numbers, quoted strings. Never reads beyond the text. */

typedef struct cv_literal {
    const char *text; /* borrowed; needs no terminator */
    size_t size;
    size_t at;     /* index of the next character */
    cv_error *err; /* the caller's */
} cv_literal;

/* ---- Characters --------------------------------------------------------- */

/* Returns CATERVA_EINVAL, and fills `err` with the position and a message. */
static cv_status literal_fail(const cv_literal *p, const char *fmt, ...)
{
    char detail[160];
    va_list args;
    va_start(args, fmt);
    vsnprintf(detail, sizeof detail, fmt, args);
    va_end(args);
    return cv_fail(p->err, CATERVA_EINVAL, -1, "dtype, character %zu: %s", p->at, detail);
}

static char literal_peek(cv_literal *p)
{
    while (p->at < p->size && strchr(" \t\r\n", p->text[p->at]) && p->text[p->at]) p->at++;
    if (p->at == p->size) return 0;
    return p->text[p->at];
}

static bool literal_accept(cv_literal *p, char mark)
{
    if (literal_peek(p) != mark || p->at == p->size) return false;
    p->at++;
    return true;
}

static cv_status literal_expect(cv_literal *p, char mark)
{
    if (literal_accept(p, mark)) return CV_OK;
    return literal_fail(p, "'%c' is missing", mark);
}

static bool literal_accept_word(cv_literal *p, const char *word)
{
    size_t length = strlen(word);
    (void)literal_peek(p);
    if (p->size - p->at < length || memcmp(p->text + p->at, word, length) != 0) return false;
    p->at += length;
    return true;
}

/* Reads a number in [0, INT32_MAX]. */
static cv_status literal_number(cv_literal *p, int64_t *out)
{
    char c = literal_peek(p);
    if (c < '0' || c > '9') return literal_fail(p, "a number is missing");
    *out = 0;
    for (; p->at < p->size && p->text[p->at] >= '0' && p->text[p->at] <= '9'; p->at++) {
        *out = *out * 10 + (p->text[p->at] - '0');
        if (*out > INT32_MAX) return literal_fail(p, "the number exceeds %d", INT32_MAX);
    }
    return CV_OK;
}

/* ---- Strings ------------------------------------------------------------ */

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

/* Parses the `n_digits` hexadecimal digits of \x, \u or \U. */
static cv_status parse_hex_escape(cv_literal *p, int n_digits, char *out, size_t *length)
{
    uint32_t code = 0;
    for (int i = 0; i < n_digits; i++, p->at++) {
        int digit = p->at < p->size ? hex_digit(p->text[p->at]) : -1;
        if (digit < 0)
            return literal_fail(p, "the escape needs %d hexadecimal digits", n_digits);
        code = code << 4 | (uint32_t)digit;
    }
    if (code == 0 || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff))
        return literal_fail(p, "U+%04X cannot stand in a name", code);
    *length += cv_utf8_encode(code, out + *length);
    return CV_OK;
}

static cv_status parse_escape(cv_literal *p, char *out, size_t *length)
{
    static const char letters[] = "nrtabfv\\'\"", meanings[] = "\n\r\t\a\b\f\v\\'\"";
    char c = 0;
    if (p->at < p->size) c = p->text[p->at++];
    if (c == 'x') return parse_hex_escape(p, 2, out, length);
    if (c == 'u') return parse_hex_escape(p, 4, out, length);
    if (c == 'U') return parse_hex_escape(p, 8, out, length);
    const char *letter = c ? strchr(letters, c) : NULL;
    if (!letter) return literal_fail(p, "unknown escape");
    out[(*length)++] = meanings[letter - letters];
    return CV_OK;
}

static cv_status decode_string(cv_literal *p, char *out, size_t *length)
{
    char quote = p->text[p->at++];
    *length = 0;
    while (p->at < p->size && p->text[p->at] != quote) {
        char c = p->text[p->at++];
        if (c == '\\')
            CV_TRY(parse_escape(p, out, length));
        else if (c == 0)
            return literal_fail(p, "a zero byte in a string");
        else
            out[(*length)++] = c;
    }
    return literal_expect(p, quote);
}

/* Skips the string whose quote is at p->at. An unterminated string ends with the text. */
static void literal_skip_string(cv_literal *p)
{
    char quote = p->text[p->at++];
    while (p->at < p->size && p->text[p->at] != quote)
        p->at += p->text[p->at] == '\\' ? 2 : 1;
    p->at = p->at < p->size ? p->at + 1 : p->size;
}

/* Decodes a string. An escape is at least as long as the character that it encodes, so the
 * literal's length suffices. */
static cv_status literal_string(cv_literal *p, char **out)
{
    char c = literal_peek(p);
    if (c != '\'' && c != '"') {
        (void)literal_fail(p, "a string is missing");
        return CATERVA_EINVAL;
    }
    cv_literal end = *p;
    literal_skip_string(&end);

    size_t room = end.at - p->at + 1, length = 0;
    char *text = cv_malloc(room);
    if (!text) return cv_fail_memory(p->err, room, "a dtype");
    cv_free(*out);
    *out = text;
    cv_status status = decode_string(p, text, &length);
    text[length] = 0;
    return status;
}

/* ---- Scalar types ----
 *
 * "<f4", "|S8", "<M8[25s]", and the names that str(dtype) prints ("float32", "datetime64[ns]"). */

typedef struct scanner {
    const char *text;
    size_t size;
    size_t at;     /* index of the next character */
    size_t origin; /* position of text[0] in the whole description */
    cv_error *err;
} scanner;

typedef struct type_name {
    const char *name;
    char kind;
    uint8_t size; /* bytes; 0 if digits with the size follow, or if the size is 0 */
} type_name;

static const type_name NAMES[] = {
    {"float16", 'f', 2},     {"float32", 'f', 4},     {"float64", 'f', 8},
    {"float96", 'f', 12},    {"float128", 'f', 16},   {"complex64", 'c', 8},
    {"complex128", 'c', 16}, {"complex192", 'c', 24}, {"complex256", 'c', 32},
    {"int8", 'i', 1},        {"int16", 'i', 2},       {"int32", 'i', 4},
    {"int64", 'i', 8},       {"uint8", 'u', 1},       {"uint16", 'u', 2},
    {"uint32", 'u', 4},      {"uint64", 'u', 8},      {"bool", 'b', 1},
    {"datetime64", 'M', 8},  {"timedelta64", 'm', 8}, {"bytes", 'S', 0},
    {"str", 'U', 0},         {"void", 'V', 0},        {"half", 'f', 2},
    {"single", 'f', 4},      {"double", 'f', 8},      {"float", 'f', 8},
    {"complex", 'c', 16},    {"int", 'i', 8},         {"uint", 'u', 8},
};

/* One-letter codes without a size (C types of a 64-bit Unix). */
static const type_name LETTERS[] = {
    {"?", 'b', 1}, {"b", 'i', 1},  {"B", 'u', 1}, {"h", 'i', 2},  {"H", 'u', 2},
    {"i", 'i', 4}, {"I", 'u', 4},  {"l", 'i', 8}, {"L", 'u', 8},  {"q", 'i', 8},
    {"Q", 'u', 8}, {"p", 'i', 8},  {"P", 'u', 8}, {"e", 'f', 2},  {"f", 'f', 4},
    {"d", 'f', 8}, {"g", 'f', 16}, {"F", 'c', 8}, {"D", 'c', 16}, {"G", 'c', 32},
    {"c", 'S', 1}, {"S", 'S', 0},  {"U", 'U', 0}, {"V", 'V', 0},  {"M", 'M', 8},
    {"m", 'm', 8},
};

/* Whether items of this kind can have this size. Strings can have any size. */
static bool size_is_possible(char kind, int64_t size)
{
    switch (kind) {
    case 'b': return size == 1;
    case 'i':
    case 'u': return size == 1 || size == 2 || size == 4 || size == 8;
    case 'f': return size == 2 || size == 4 || size == 8 || size == 12 || size == 16;
    case 'c': return size == 8 || size == 16 || size == 24 || size == 32;
    case 'M':
    case 'm': return size == 8;
    default: return size >= 0;
    }
}

static cv_status complain(const scanner *s, size_t at, const char *problem)
{
    int shown = s->size < 40 ? (int)s->size : 40;
    return cv_fail(s->err, CATERVA_EINVAL, -1, "dtype, character %zu: %s in \"%.*s\"",
                   s->origin + at, problem, shown, s->text);
}

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

/* Reads digits and sets *found to whether there are any. False if the number is too large for an
 * item size. */
static bool read_digits(scanner *s, int64_t *value, bool *found)
{
    *value = 0;
    *found = false;
    for (; s->at < s->size && is_digit(s->text[s->at]); s->at++) {
        *value = *value * 10 + (s->text[s->at] - '0');
        if (*value > INT32_MAX) return false;
        *found = true;
    }
    return true;
}

/* Returns the entry of `names` that equals the rest of the text up to a '[', or NULL. */
static const type_name *find_name(const scanner *s, const type_name *names, size_t n)
{
    const char *rest = s->text + s->at;
    const char *bracket = memchr(rest, '[', s->size - s->at);
    size_t length = bracket ? (size_t)(bracket - rest) : s->size - s->at;
    for (size_t i = 0; i < n; i++)
        if (strlen(names[i].name) == length && memcmp(names[i].name, rest, length) == 0)
            return &names[i];
    return NULL;
}

static cv_status take_name(scanner *s, const type_name *name, caterva_dtype *out)
{
    s->at += strlen(name->name);
    out->kind = name->kind;
    out->item_size = name->size;
    return CV_OK;
}

/* Reads a kind letter and a size: "f4", "S8", "U6" (characters of four bytes). */
static cv_status read_kind_and_size(scanner *s, caterva_dtype *out)
{
    size_t start = s->at;
    char kind = s->text[s->at++];
    if (kind == 'O') return complain(s, start, "Python objects cannot be stored");
    if (kind == 'a') kind = 'S';
    if (kind == 0 || !strchr("biufcSUVMm", kind)) return complain(s, start, "unknown type");

    int64_t size;
    bool found;
    if (!read_digits(s, &size, &found)) return complain(s, start, "the size is too large");
    if (!found) return complain(s, start, "unknown type");
    if (kind == 'U') size *= 4; /* no overflow: `size` has 31 bits */
    if (size > INT32_MAX || !size_is_possible(kind, size))
        return complain(s, start, "impossible size");
    out->kind = kind;
    out->item_size = size;
    return CV_OK;
}

static bool is_time_unit(const char *text, size_t size)
{
    static const char *const units[] = {"Y",  "M",  "W",  "D",  "h",  "m",  "s",
                                        "ms", "us", "ns", "ps", "fs", "as", "generic"};
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (strlen(units[i]) == size && memcmp(units[i], text, size) == 0) return true;
    return false;
}

/* Reads "[ns]" or "[25s]". Without it, the unit is generic. */
static cv_status read_time_unit(scanner *s, caterva_dtype *out)
{
    size_t start = s->at;
    if (s->at == s->size) return CV_OK;
    if (s->text[s->at++] != '[') return complain(s, start, "no time unit");
    size_t inside = s->at;
    int64_t multiple;
    bool found;
    if (!read_digits(s, &multiple, &found) || (found && multiple == 0))
        return complain(s, start, "impossible time unit");

    const char *unit = s->text + s->at;
    const char *close = memchr(unit, ']', s->size - s->at);
    if (!close || !is_time_unit(unit, (size_t)(close - unit)))
        return complain(s, start, "unknown time unit");
    s->at = (size_t)(close - s->text) + 1;
    size_t length = (size_t)(close - s->text) - inside;
    if (length >= sizeof out->unit) return complain(s, start, "the time unit is too long");
    if (close[-1] != 'c') memcpy(out->unit, s->text + inside, length); /* not "generic" */
    return CV_OK;
}

/* Byte strings and single-byte numbers have no byte order, whatever `sign` is. */
static char byte_order_of(const caterva_dtype *type, char sign)
{
    bool ordered = type->kind == 'U' || (type->item_size > 1 && strchr("iufcMm", type->kind));
    if (!ordered) return '|';
    if (sign == '<' || sign == '>') return sign;
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    return '>';
#else
    return '<';
#endif
}

cv_status cv_dtype_parse_scalar(const char *text, size_t size, size_t at, caterva_dtype *out,
                                cv_error *err)
{
    scanner s = {.text = text, .size = size, .origin = at, .err = err};
    char sign = '=';
    if (size > 0 && text[0] != 0 && strchr("<>|=", text[0])) {
        sign = text[0];
        s.at = 1;
    }
    if (s.at == s.size) return complain(&s, s.at, "no type");

    const type_name *name = find_name(&s, LETTERS, sizeof LETTERS / sizeof *LETTERS);
    if (!name && s.at == 0) name = find_name(&s, NAMES, sizeof NAMES / sizeof *NAMES);
    CV_TRY(name ? take_name(&s, name, out) : read_kind_and_size(&s, out));
    if (out->kind == 'M' || out->kind == 'm') CV_TRY(read_time_unit(&s, out));
    if (s.at != s.size) return complain(&s, s.at, "unexpected text");
    out->byte_order = byte_order_of(out, sign);
    return CV_OK;
}

/* ---- Dtype ---- */

enum { MAX_DEPTH = 16 };

typedef struct parser {
    cv_literal in;
    int depth;    /* nesting of types */
    bool aligned; /* fields without offsets are placed as in C */
} parser;

static cv_status parse_type(parser *p, caterva_dtype *out);

/* ---- Fields ------------------------------------------------------------- */

/* Returns field `i`. Appends a field if `i` is n_fields. The capacity is a power of two. While the
 * type is being parsed, fields may lack a name or type. */
static cv_status reach_field(parser *p, caterva_dtype *type, int i, caterva_field **out)
{
    caterva_field *fields = (caterva_field *)type->fields;
    if (i == type->n_fields) {
        if (i == INT32_MAX / 2) return literal_fail(&p->in, "more than %d fields", i);
        if ((i & (i - 1)) == 0) {
            size_t room = (i ? 2 * (size_t)i : 1) * sizeof *fields;
            fields = cv_realloc(fields, (size_t)i * sizeof *fields, room);
            if (!fields) return cv_fail_memory(p->in.err, room, "fields");
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
    if (field->dtype) return literal_fail(&p->in, "a second type for a field");
    caterva_dtype *type = cv_calloc(1, sizeof *type);
    if (!type) return cv_fail_memory(p->in.err, sizeof *type, "a field");
    field->dtype = type;
    return parse_type(p, type);
}

static cv_status parse_field_name(parser *p, caterva_field *field)
{
    char *name = (char *)field->name;
    cv_status status = literal_string(&p->in, &name);
    field->name = name;
    return status;
}

static cv_status prepend_dims(parser *p, caterva_dtype *type, const int64_t *dims, int n)
{
    if (n + type->ndim > CV_MAX_DIMS)
        return literal_fail(&p->in, "a sub-array of %d dimensions", n + type->ndim);
    memmove(type->shape + n, type->shape, (size_t)type->ndim * sizeof *type->shape);
    for (int i = 0; i < n; i++) {
        type->shape[i] = dims[i];
        if (!cv_mul_i64(type->item_size, dims[i], &type->item_size) ||
            type->item_size > INT32_MAX)
            return literal_fail(&p->in, "the item exceeds %d bytes", INT32_MAX);
    }
    type->ndim += n;
    return CV_OK;
}

/* Parses "3" or "(3,)" or "(2, 3)". */
static cv_status parse_shape(parser *p, caterva_dtype *type)
{
    int64_t dims[CV_MAX_DIMS];
    int n = 0;
    bool tuple = literal_accept(&p->in, '(');
    while (!(tuple && literal_peek(&p->in) == ')')) {
        if (n == CV_MAX_DIMS) return literal_fail(&p->in, "more than %d dimensions", n);
        CV_TRY(literal_number(&p->in, &dims[n++]));
        if (!tuple || !literal_accept(&p->in, ',')) break;
    }
    if (tuple) CV_TRY(literal_expect(&p->in, ')'));
    return prepend_dims(p, type, dims, n);
}

/* Returns the alignment in C. The alignment of a struct is the largest alignment of its fields. */
static int64_t alignment_of(const caterva_dtype *type)
{
    int64_t scalar = type->item_size;
    int64_t alignment = 1;
    for (int i = 0; i < type->n_fields; i++)
        alignment = cv_max_i64(alignment, alignment_of(type->fields[i].dtype));
    for (int i = 0; i < type->ndim && scalar > 0; i++) scalar /= type->shape[i];
    switch (type->kind) {
    case 'U': return 4;
    case 'c': return scalar / 2;
    case 'i':
    case 'u':
    case 'f':
    case 'M':
    case 'm': return scalar == 12 ? 4 : scalar;
    default: return alignment;
    }
}

/* In aligned types, rounds up the item's size to the alignment of `next`, the type of the next
 * field or of the next item. */
static void pad_item(const parser *p, caterva_dtype *item, const caterva_dtype *next)
{
    int64_t alignment = p->aligned ? cv_max_i64(1, alignment_of(next)) : 1;
    item->item_size = cv_ceil_div(item->item_size, alignment) * alignment;
}

static cv_status place_field(parser *p, caterva_dtype *type, caterva_field *field)
{
    pad_item(p, type, field->dtype);
    field->offset = type->item_size;
    if (!cv_add_i64(type->item_size, field->dtype->item_size, &type->item_size) ||
        type->item_size > INT32_MAX)
        return literal_fail(&p->in, "the item exceeds %d bytes", INT32_MAX);
    return CV_OK;
}

/* ---- [(name, type), ...] ------------------------------------------------ */

static cv_status parse_titled_name(parser *p, caterva_field *field)
{
    bool titled = literal_accept(&p->in, '(');
    CV_TRY(parse_field_name(p, field));
    if (!titled) return CV_OK;
    CV_TRY(literal_expect(&p->in, ','));
    CV_TRY(parse_field_name(p, field)); /* discards the title, keeps the name */
    return literal_expect(&p->in, ')');
}

static cv_status parse_field(parser *p, caterva_dtype *type)
{
    caterva_field *field = NULL;
    CV_TRY(literal_expect(&p->in, '('));
    CV_TRY(reach_field(p, type, type->n_fields, &field));
    CV_TRY(parse_titled_name(p, field));
    CV_TRY(literal_expect(&p->in, ','));
    CV_TRY(parse_field_type(p, field));
    if (literal_accept(&p->in, ',') && literal_peek(&p->in) != ')')
        CV_TRY(parse_shape(p, (caterva_dtype *)field->dtype));
    CV_TRY(literal_expect(&p->in, ')'));
    return place_field(p, type, field);
}

static cv_status parse_field_list(parser *p, caterva_dtype *out)
{
    CV_TRY(literal_expect(&p->in, '['));
    while (literal_peek(&p->in) != ']') {
        CV_TRY(parse_field(p, out));
        if (!literal_accept(&p->in, ',')) break;
    }
    pad_item(p, out, out);
    return literal_expect(&p->in, ']');
}

/* ---- {'names': [...], 'formats': [...], ...} ---------------------------- */

typedef struct dict_parts {
    int n_names, n_formats, n_offsets; /* -1 if the key is not given */
    int64_t item_size;                 /* -1 if the key is not given */
} dict_parts;

typedef cv_status parse_column(parser *p, caterva_field *field);

static cv_status parse_offset(parser *p, caterva_field *field)
{
    return literal_number(&p->in, &field->offset);
}

/* Parses a title and discards it. */
static cv_status parse_title(parser *p, caterva_field *field)
{
    (void)field;
    if (literal_accept_word(&p->in, "None")) return CV_OK;
    char *title = NULL;
    cv_status status = literal_string(&p->in, &title);
    cv_free(title);
    return status;
}

static cv_status parse_columns(parser *p, caterva_dtype *out, parse_column *parse, int *n)
{
    if (*n >= 0) return literal_fail(&p->in, "the same list twice");
    *n = 0;
    CV_TRY(literal_expect(&p->in, '['));
    while (literal_peek(&p->in) != ']') {
        caterva_field *field = NULL;
        CV_TRY(reach_field(p, out, (*n)++, &field));
        CV_TRY(parse(p, field));
        if (!literal_accept(&p->in, ',')) break;
    }
    return literal_expect(&p->in, ']');
}

static cv_status parse_dict_entry(parser *p, caterva_dtype *out, dict_parts *parts)
{
    char *key = NULL;
    int n_titles = -1;
    cv_status status = literal_string(&p->in, &key);
    if (status == CV_OK) status = literal_expect(&p->in, ':');
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
        status = literal_number(&p->in, &parts->item_size);
    else if (strcmp(key, "aligned") != 0)
        status = literal_fail(&p->in, "unknown key '%.20s'", key);
    else if (!literal_accept_word(&p->in, "True") && !literal_accept_word(&p->in, "False"))
        status = literal_fail(&p->in, "'aligned' is neither True nor False");
    cv_free(key);
    return status;
}

/* Combines the lists. Fields without offsets are consecutive. */
static cv_status finish_dict(parser *p, caterva_dtype *out, const dict_parts *parts)
{
    if (parts->n_names < 0 || parts->n_formats < 0)
        return literal_fail(&p->in, "%s are missing",
                            parts->n_names < 0 ? "names" : "formats");
    if (parts->n_names != out->n_fields || parts->n_formats != out->n_fields ||
        (parts->n_offsets >= 0 && parts->n_offsets != out->n_fields))
        return literal_fail(&p->in, "%d names, %d formats and %d offsets", parts->n_names,
                            parts->n_formats, parts->n_offsets);
    int64_t end = 0;
    for (int i = 0; i < out->n_fields; i++) {
        caterva_field *field = (caterva_field *)&out->fields[i];
        if (parts->n_offsets < 0) CV_TRY(place_field(p, out, field));
        end = cv_max_i64(end, field->offset + field->dtype->item_size);
    }
    out->item_size = end;
    pad_item(p, out, out);
    if (parts->item_size >= 0) out->item_size = parts->item_size;
    if (end > out->item_size)
        return literal_fail(&p->in, "a field ends at byte %lld of an item of %lld",
                            (long long)end, (long long)out->item_size);
    if (out->item_size > INT32_MAX)
        return literal_fail(&p->in, "the item exceeds %d bytes", INT32_MAX);
    return CV_OK;
}

/* Whether the dictionary itself contains 'aligned': True. Call this before the formats are parsed,
 * because lists nested in the dictionary are aligned, too. */
static bool says_aligned(const parser *p)
{
    cv_literal in = p->in;
    int depth = 0;
    while (in.at < in.size && depth >= 0) {
        char c = literal_peek(&in);
        if (depth == 0 && literal_accept_word(&in, "'aligned': True")) return true;
        if (strchr("([{", c) && c) depth++;
        if (strchr(")]}", c) && c) depth--;
        if (c == '\'' || c == '"')
            literal_skip_string(&in);
        else
            in.at++;
    }
    return false;
}

static cv_status parse_dict_entries(parser *p, caterva_dtype *out)
{
    dict_parts parts = {-1, -1, -1, -1};
    while (literal_peek(&p->in) != '}') {
        CV_TRY(parse_dict_entry(p, out, &parts));
        if (!literal_accept(&p->in, ',')) break;
    }
    CV_TRY(literal_expect(&p->in, '}'));
    return finish_dict(p, out, &parts);
}

static cv_status parse_dict(parser *p, caterva_dtype *out)
{
    CV_TRY(literal_expect(&p->in, '{'));
    bool around = p->aligned;
    p->aligned = around || says_aligned(p);
    cv_status status = parse_dict_entries(p, out);
    p->aligned = around;
    return status;
}

/* ---- Types -------------------------------------------------------------- */

static cv_status parse_quoted_scalar(parser *p, caterva_dtype *out)
{
    size_t at = p->in.at;
    char *text = NULL;
    cv_status status = literal_string(&p->in, &text);
    if (status == CV_OK)
        status = cv_dtype_parse_scalar(text, strlen(text), at + 1, out, p->in.err);
    cv_free(text);
    return status;
}

/* Parses (type, shape). */
static cv_status parse_sub_array(parser *p, caterva_dtype *out)
{
    CV_TRY(literal_expect(&p->in, '('));
    CV_TRY(parse_type(p, out));
    CV_TRY(literal_expect(&p->in, ','));
    CV_TRY(parse_shape(p, out));
    (void)literal_accept(&p->in, ',');
    return literal_expect(&p->in, ')');
}

static cv_status parse_structured(parser *p, caterva_dtype *out)
{
    out->kind = 'V';
    out->byte_order = '|';
    return literal_peek(&p->in) == '[' ? parse_field_list(p, out) : parse_dict(p, out);
}

static cv_status parse_type(parser *p, caterva_dtype *out)
{
    if (p->depth == MAX_DEPTH)
        return literal_fail(&p->in, "nested deeper than %d", MAX_DEPTH);
    p->depth++;
    char c = literal_peek(&p->in);
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
    char c = literal_peek(&p->in);
    if (c != '[' && c != '{' && c != '(')
        return cv_dtype_parse_scalar(p->in.text + p->in.at, p->in.size - p->in.at, p->in.at,
                                     out, p->in.err);
    CV_TRY(parse_type(p, out));
    (void)literal_peek(&p->in);
    if (p->in.at != p->in.size) return literal_fail(&p->in, "unexpected text");
    return CV_OK;
}

cv_status cv_dtype_parse(const char *text, size_t size, caterva_dtype **out, cv_error *err)
{
    caterva_dtype *type = cv_calloc(1, sizeof *type);
    if (!type) return cv_fail_memory(err, sizeof *type, "a dtype");
    parser p = {.in = {.text = text, .size = size, .err = err}};
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
    caterva_dtype *type = NULL;
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

/* Recursion is limited by the parser's MAX_DEPTH. */
void caterva_dtype_free(caterva_dtype *dtype)
{
    if (!dtype) return;
    for (int i = 0; i < dtype->n_fields; i++) {
        cv_free((char *)dtype->fields[i].name);
        caterva_dtype_free((caterva_dtype *)dtype->fields[i].dtype);
    }
    cv_free((caterva_field *)dtype->fields);
    cv_free(dtype);
}
