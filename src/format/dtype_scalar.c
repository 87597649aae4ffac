/* Room: format. NumPy's scalar type descriptions: "<f4", "|S8", "<M8[25s]",
 * and the names that str(dtype) prints ("float32", "datetime64[ns]"). Knows no
 * fields and no sub-arrays: dtype.c does. */
#include "format/dtype_scalar.h"

#include "base/arith.h"

#include <string.h>

/* The rest of a description while it is being read. */
typedef struct scanner {
    const char *text;
    size_t size;
    size_t at;     /* next character */
    size_t origin; /* place of text[0] in the whole description */
    cv_error *err;
} scanner;

typedef struct type_name {
    const char *name;
    char kind;
    uint8_t size; /* bytes; 0: the size follows in digits, or is 0 */
} type_name;

/* Longer names stand before those they begin with. */
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

/* Sizes that a kind may have; strings have any. */
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

/* Digits, if there are any; false when they are too many for an item size. */
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

/* The whole rest up to a '[' must be one of `names`. */
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

/* A kind letter and a size: "f4", "S8", "U6" (characters of four bytes). */
static cv_status read_kind_and_size(scanner *s, caterva_dtype *out)
{
    size_t start = s->at;
    char kind = s->text[s->at++];
    if (kind == 'O')
        return complain(s, start, "Python objects have no bytes that could be stored");
    if (kind == 'a') kind = 'S';
    if (kind == 0 || !strchr("biufcSUVMm", kind)) return complain(s, start, "unknown type");

    int64_t size;
    bool found;
    if (!read_digits(s, &size, &found)) return complain(s, start, "too large a size");
    if (!found) return complain(s, start, "unknown type");
    if (kind == 'U') size *= 4; /* of 31 bits */
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

/* "[ns]" or "[25s]"; nothing at all means generic. */
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
    if (length >= sizeof out->unit) return complain(s, start, "too long a time unit");
    if (close[-1] != 'c') memcpy(out->unit, s->text + inside, length); /* not "generic" */
    return CV_OK;
}

/* Strings, bytes and single-byte numbers have no byte order, whatever sign
 * stands before them. */
static char settle_byte_order(const caterva_dtype *type, char sign)
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
    if (s.at != s.size) return complain(&s, s.at, "text left over");
    out->byte_order = settle_byte_order(out, sign);
    return CV_OK;
}
