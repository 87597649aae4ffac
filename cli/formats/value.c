/* Room: cli/formats. Attribute values: MessagePack to JSON with the library's reader and json.c,
 * JSON to MessagePack with Jansson and the library's packer. */
#include "formats/value.h"

#include "formats/descr.h"
#include "formats/item.h"

#include <caterva_value.h>
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_DEPTH = 64, EXT_FRAME = 42, EXT_REFERENCE = 43, EXT_SET = 45 };
enum { MOST_BYTES = 256 << 20 }; /* limit for the items of an array */

typedef enum word { BINARY, COMPLEX, TUPLE, SET, ARRAY, MAP, EXT, N_WORDS } word;

static const char *const words[N_WORDS] = {"$binary", "$complex", "$tuple", "$set",
                                           "$array",  "$map",     "$ext"};

static word find_word(const char *text, size_t size)
{
    word w = BINARY;
    while (w < N_WORDS && (strlen(words[w]) != size || memcmp(words[w], text, size) != 0))
        w++;
    return w;
}

/* ---- Base64 (RFC 4648, with padding) -------------------------------------- */

static const char base64_digits[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static void print_base64(FILE *stream, const uint8_t *bytes, size_t size)
{
    fputc('"', stream);
    for (size_t i = 0; i < size; i += 3) {
        size_t left = size - i;
        uint32_t group = (uint32_t)bytes[i] << 16;
        if (left > 1) group |= (uint32_t)bytes[i + 1] << 8;
        if (left > 2) group |= bytes[i + 2];
        fputc(base64_digits[group >> 18], stream);
        fputc(base64_digits[group >> 12 & 63], stream);
        fputc(left > 1 ? base64_digits[group >> 6 & 63] : '=', stream);
        fputc(left > 2 ? base64_digits[group & 63] : '=', stream);
    }
    fputc('"', stream);
}

/* Decodes `text` into `out`, which has size / 4 * 3 bytes. Returns the number of decoded bytes, or
 * -1 if the text is not base64 or has bits after its last byte. */
static int64_t decode_base64(const char *text, size_t size, uint8_t *out)
{
    int64_t n = 0;
    if (size % 4 != 0) return -1;
    size_t padding = 0;
    while (padding < 2 && padding < size && text[size - 1 - padding] == '=') padding++;
    for (size_t i = 0; i < size; i += 4) {
        size_t n_digits = i + 4 == size ? 4 - padding : 4;
        uint32_t group = 0;
        for (size_t k = 0; k < 4; k++) {
            const char *digit =
                k < n_digits && text[i + k] ? strchr(base64_digits, text[i + k]) : NULL;
            if (k < n_digits && !digit) return -1;
            group = group << 6 | (digit ? (uint32_t)(digit - base64_digits) : 0);
        }
        if ((n_digits == 2 && (group & 0xffff)) || (n_digits == 3 && (group & 0xff)))
            return -1;
        for (size_t k = 0; k + 1 < n_digits; k++) out[n++] = (uint8_t)(group >> (16 - 8 * k));
    }
    return n;
}

/* ---- MessagePack to JSON -------------------------------------------------- */

typedef struct reader {
    const void *packed;
    size_t size, at;
} reader;

static bool next_value(reader *r, caterva_value *v)
{
    caterva_error err;
    *v = (caterva_value)CATERVA_VALUE_INIT;
    return caterva_value_next(r->packed, r->size, &r->at, v, &err) == CATERVA_OK;
}

static int64_t n_parts(const caterva_value *v)
{
    switch (v->kind) {
    case CATERVA_VALUE_LIST:
    case CATERVA_VALUE_TUPLE:
    case CATERVA_VALUE_SET: return v->count;
    case CATERVA_VALUE_MAP: return 2 * v->count;
    default: return 0;
    }
}

static bool has_parts(const caterva_value *v)
{
    return v->kind == CATERVA_VALUE_LIST || v->kind == CATERVA_VALUE_TUPLE ||
           v->kind == CATERVA_VALUE_SET || v->kind == CATERVA_VALUE_MAP;
}

/* Skips one value. Returns false if the bytes are not a value, are nested too deeply, or have a
 * container as the key of a map. */
static bool skip_value(reader *r, int depth, bool is_key)
{
    caterva_value v;
    if (!next_value(r, &v)) return false;
    if (!has_parts(&v)) return v.kind != CATERVA_VALUE_EXTENSION || v.extension != EXT_SET;
    if (is_key || depth == MOST_DEPTH) return false;
    for (int64_t i = 0, n = n_parts(&v); i < n; i++)
        if (!skip_value(r, depth + 1, v.kind == CATERVA_VALUE_MAP && i % 2 == 0))
            return false;
    return true;
}

/* Whether all keys are text, and the first is not a reserved word. */
static bool is_object(reader ahead, int64_t n_pairs)
{
    for (int64_t i = 0; i < n_pairs; i++) {
        caterva_value key;
        if (!next_value(&ahead, &key) || key.kind != CATERVA_VALUE_TEXT) return false;
        if (i == 0 && find_word(key.bytes, key.size) != N_WORDS) return false;
        if (!skip_value(&ahead, 0, false)) return false;
    }
    return true;
}

static void begin_word(json *j, const char *key, word w)
{
    json_begin_object(j, key);
    json_put_key(j, words[w], strlen(words[w]));
}

static void print_binary(json *j, const char *key, const void *bytes, size_t size)
{
    begin_word(j, key, BINARY);
    print_base64(j->stream, bytes, size);
    json_end_object(j);
}

static void print_extension(json *j, const char *key, int type, const caterva_value *v)
{
    json_begin_object(j, key);
    json_put_int(j, words[EXT], type);
    json_put_key(j, "data", 4);
    print_base64(j->stream, v->bytes, v->size);
    json_end_object(j);
}

/* ---- Items of arrays ------------------------------------------------------ */

/* Returns the number of characters of a text item, without the NULs that pad it. */
static int64_t count_units(const caterva_dtype *d, const uint8_t *item)
{
    int64_t width = d->kind == 'U' ? 4 : 1, n = d->item_size / width;
    while (n > 0 && item_load_uint(d, item + (n - 1) * width, width) == 0) n--;
    return n;
}

/* Whether converting a float to JSON and back gives the same bits. "NaN" in JSON becomes NumPy's
 * own NaN, so every other NaN would change. */
static bool is_plain_real(const caterva_dtype *d, const uint8_t *bytes, int64_t size)
{
    uint64_t bits = item_load_uint(d, bytes, size);
    if (size == 4) return (bits & 0x7fffffff) <= 0x7f800000 || bits == 0x7fc00000;
    return (bits & INT64_MAX) <= 0x7ff0000000000000 || bits == 0x7ff8000000000000;
}

static bool is_plain_text(const caterva_dtype *d, const uint8_t *item)
{
    int64_t n = count_units(d, item);
    for (int64_t i = 0; d->kind == 'U' && i < n; i++) {
        uint64_t c = item_load_uint(d, item + 4 * i, 4);
        if (c > 0x10ffff || (c >= 0xd800 && c < 0xe000)) return false;
    }
    for (int64_t at = 0; d->kind == 'S' && at < n;) {
        size_t length = json_utf8_length((const char *)item + at, (size_t)(n - at));
        if (length == 0) return false;
        at += (int64_t)length;
    }
    return true;
}

/* Whether JSON has a form for items of this dtype; false, for example, for half floats. */
static bool has_json_form(const caterva_dtype *d)
{
    int64_t size = d->kind == 'c' ? d->item_size / 2 : d->item_size;
    if (d->ndim > 0 || d->n_fields > 0 || d->item_size == 0) return false;
    return strchr("fc", d->kind) ? size == 4 || size == 8
                                 : strchr("biuMmSU", d->kind) != NULL;
}

/* Whether converting the item to JSON and back gives the same bytes. */
static bool is_plain(const caterva_dtype *d, const uint8_t *item)
{
    int64_t size = d->item_size;
    switch (d->kind) {
    case 'b': return *item <= 1;
    case 'f': return is_plain_real(d, item, size);
    case 'c':
        return is_plain_real(d, item, size / 2) &&
               is_plain_real(d, item + size / 2, size / 2);
    case 'S':
    case 'U': return is_plain_text(d, item);
    default: return true;
    }
}

static void print_real(json *j, const caterva_dtype *d, const uint8_t *bytes, int64_t size)
{
    double value = item_load_real(d, bytes, size);
    if (size == 4)
        json_put_single(j, NULL, (float)value);
    else
        json_put_real(j, NULL, value);
}

static void print_item(json *j, const caterva_dtype *d, const uint8_t *item)
{
    int64_t size = d->item_size;
    const item_style style = {.precision = -1};
    switch (d->kind) {
    case 'b': json_put_bool(j, NULL, *item != 0); break;
    case 'u': json_put_uint(j, NULL, item_load_uint(d, item, size)); break;
    case 'f': print_real(j, d, item, size); break;
    case 'c':
        json_begin_array(j, NULL);
        print_real(j, d, item, size / 2);
        print_real(j, d, item + size / 2, size / 2);
        json_end_array(j);
        break;
    case 'S':
    case 'U':
        json_begin_value(j);
        item_print(j->stream, d, item, &style);
        break;
    default: json_put_int(j, NULL, item_load_int(d, item, size)); break;
    }
}

static void print_items(json *j, const caterva_dtype *d, const caterva_value *v)
{
    const uint8_t *items = v->bytes;
    size_t item_size = (size_t)d->item_size, n = item_size ? v->size / item_size : 0;
    bool has_json = has_json_form(d);
    for (size_t i = 0; i < n && has_json; i++) has_json = is_plain(d, items + i * item_size);
    if (!has_json) {
        print_binary(j, "data", v->bytes, v->size);
        return;
    }
    json_begin_array(j, "data");
    for (size_t i = 0; i < n; i++) print_item(j, d, items + i * item_size);
    json_end_array(j);
}

static cli_exit print_array(json *j, const char *key, const caterva_value *v)
{
    caterva_dtype *d;
    CLI_TRY(descr_parse(CLI_CORRUPT, "an attribute", v->dtype, &d));
    json_begin_object(j, key);
    json_begin_object(j, words[ARRAY]);
    json_put_text(j, "dtype", v->dtype);
    json_put_ints(j, "shape", v->shape, v->ndim);
    print_items(j, d, v);
    json_end_object(j);
    json_end_object(j);
    caterva_dtype_free(d);
    return CLI_OK;
}

/* ---- Values --------------------------------------------------------------- */

static cli_exit print_value(json *j, const char *key, reader *r);

static cli_exit print_map(json *j, const char *key, reader *r, int64_t n_pairs)
{
    bool plain = is_object(*r, n_pairs);
    json_begin_object(j, key);
    if (!plain) json_begin_array(j, words[MAP]);
    for (int64_t i = 0; i < n_pairs; i++) {
        caterva_value name;
        if (!plain) {
            json_begin_array(j, NULL);
            CLI_TRY(print_value(j, NULL, r));
        } else if (next_value(r, &name)) {
            json_put_key(j, name.bytes, name.size);
        }
        CLI_TRY(print_value(j, NULL, r));
        if (!plain) json_end_array(j);
    }
    if (!plain) json_end_array(j);
    json_end_object(j);
    return CLI_OK;
}

static cli_exit print_list(json *j, const char *key, reader *r, const caterva_value *v)
{
    bool is_list = v->kind == CATERVA_VALUE_LIST;
    if (!is_list) {
        json_begin_object(j, key);
        key = words[v->kind == CATERVA_VALUE_SET ? SET : TUPLE];
    }
    json_begin_array(j, key);
    for (int64_t i = 0; i < v->count; i++) CLI_TRY(print_value(j, NULL, r));
    json_end_array(j);
    if (!is_list) json_end_object(j);
    return CLI_OK;
}

static void print_complex(json *j, const char *key, const caterva_value *v)
{
    json_begin_object(j, key);
    json_begin_array(j, words[COMPLEX]);
    json_put_real(j, NULL, v->real);
    json_put_real(j, NULL, v->imaginary);
    json_end_array(j);
    json_end_object(j);
}

/* Prints a value, which skip_value() has checked. */
static cli_exit print_value(json *j, const char *key, reader *r)
{
    caterva_value v;
    if (!next_value(r, &v)) return cli_fail(CLI_CORRUPT, "an attribute is not one value");
    switch (v.kind) {
    case CATERVA_VALUE_NIL: json_put_null(j, key); break;
    case CATERVA_VALUE_BOOL: json_put_bool(j, key, v.integer != 0); break;
    case CATERVA_VALUE_INT: json_put_int(j, key, v.integer); break;
    case CATERVA_VALUE_UINT: json_put_uint(j, key, (uint64_t)v.integer); break;
    case CATERVA_VALUE_REAL: json_put_real(j, key, v.real); break;
    case CATERVA_VALUE_COMPLEX: print_complex(j, key, &v); break;
    case CATERVA_VALUE_TEXT: json_put_text_n(j, key, v.bytes, v.size); break;
    case CATERVA_VALUE_BYTES: print_binary(j, key, v.bytes, v.size); break;
    case CATERVA_VALUE_ARRAY: return print_array(j, key, &v);
    case CATERVA_VALUE_MAP: return print_map(j, key, r, v.count);
    case CATERVA_VALUE_LIST:
    case CATERVA_VALUE_TUPLE:
    case CATERVA_VALUE_SET: return print_list(j, key, r, &v);
    case CATERVA_VALUE_FRAME: print_extension(j, key, EXT_FRAME, &v); break;
    case CATERVA_VALUE_REFERENCE: print_extension(j, key, EXT_REFERENCE, &v); break;
    default: print_extension(j, key, v.extension, &v); break;
    }
    return CLI_OK;
}

cli_exit value_print(json *j, const char *key, const void *packed, size_t size)
{
    reader r = {packed, size, 0}, ahead = r;
    if (skip_value(&ahead, 0, false) && ahead.at == size) return print_value(j, key, &r);
    print_binary(j, key, packed, size);
    return CLI_OK;
}

char *value_text(const void *packed, size_t size)
{
    char *text = NULL;
    size_t length;
    json j = {.stream = open_memstream(&text, &length)};
    if (!j.stream) return NULL;
    cli_exit code = value_print(&j, NULL, packed, size);
    if (fclose(j.stream) == 0 && code == CLI_OK) return text;
    free(text);
    return NULL;
}

/* ---- JSON to MessagePack -------------------------------------------------- */

/* Jansson's integers are int64. A larger integer that fits uint64 is passed to Jansson as text that
 * begins with a mark. The mark does not occur elsewhere in the input. */
typedef struct big_mark {
    char text[24];
    size_t size; /* 0: the input has no such integers */
} big_mark;

/* The values that the JSON represents, in the order in which caterva_value_next() returns them. */
typedef struct translation {
    caterva_value *values;
    size_t n, capacity;
    bool no_memory;
    char wrong[160]; /* the first error: "expected ..."; or empty */
    big_mark mark;
    int depth; /* nesting depth of the current value */
} translation;

static void expected(translation *t, const char *what)
{
    if (!t->wrong[0]) snprintf(t->wrong, sizeof t->wrong, "expected %s", what);
}

/* Appends a value. The bytes of a text are borrowed; the translation owns all other bytes. */
static void put(translation *t, caterva_value value)
{
    value.struct_size = sizeof value;
    if (t->n == t->capacity) {
        size_t capacity = 2 * t->capacity + 16;
        caterva_value *values = realloc(t->values, capacity * sizeof *values);
        if (!values) {
            t->no_memory = true;
            if (value.kind != CATERVA_VALUE_TEXT) free((void *)value.bytes);
            return;
        }
        t->values = values;
        t->capacity = capacity;
    }
    t->values[t->n++] = value;
}

static void free_translation(translation *t)
{
    for (size_t i = 0; i < t->n; i++)
        if (t->values[i].kind != CATERVA_VALUE_TEXT) free((void *)t->values[i].bytes);
    free(t->values);
}

/* Returns true for an integer. If *negative, *value is a negative int64, converted to uint64. */
static bool load_integer(const translation *t, const json_t *v, bool *negative,
                         uint64_t *value)
{
    const char *text = json_string_value(v);
    *negative = json_is_integer(v) && json_integer_value(v) < 0;
    *value = (uint64_t)json_integer_value(v);
    if (json_is_integer(v)) return true;
    if (!text || t->mark.size == 0 || strncmp(text, t->mark.text, t->mark.size) != 0)
        return false;
    *value = strtoull(text + t->mark.size, NULL, 10);
    return true;
}

/* ---- Items of a dtype ----------------------------------------------------- */

static bool load_real(const translation *t, const json_t *v, double *out)
{
    bool negative;
    uint64_t whole;
    const char *text = json_string_value(v);
    *out = json_number_value(v);
    if (json_is_number(v)) return true;
    if (load_integer(t, v, &negative, &whole))
        *out = (double)whole;
    else if (text && strcmp(text, "NaN") == 0)
        *out = (double)nanf("");
    else if (text && strcmp(text + (*text == '-'), "Infinity") == 0)
        *out = *text == '-' ? -(double)INFINITY : (double)INFINITY;
    else
        return false;
    return true;
}

static void take_real(translation *t, const caterva_dtype *d, const json_t *v, int64_t size,
                      uint8_t *bytes)
{
    double value;
    if (!load_real(t, v, &value)) {
        expected(t, "a number");
    } else if (size == 4 && isfinite(value) && !isfinite((float)value)) {
        expected(t, "a number within the range of the dtype");
    } else {
        item_store_real(d, value, bytes, size);
    }
}

static void take_whole(translation *t, const caterva_dtype *d, const json_t *v, uint8_t *item)
{
    bool negative;
    uint64_t value;
    int bits = (int)d->item_size * 8 - (d->kind != 'u'); /* for the absolute value */
    if (!load_integer(t, v, &negative, &value)) {
        expected(t, "an integer");
        return;
    }
    uint64_t size = negative ? 0 - value : value;
    bool fits = bits == 64 || size >> bits == 0 || (negative && size == (uint64_t)1 << bits);
    if (!fits || (negative && d->kind == 'u')) {
        expected(t, "an integer that fits the dtype");
        return;
    }
    item_store_uint(d, value, item, d->item_size);
}

static void take_text(translation *t, const caterva_dtype *d, const json_t *v, uint8_t *item)
{
    const char *text = json_string_value(v);
    bool negative;
    uint64_t whole;
    if (!text || load_integer(t, v, &negative, &whole))
        expected(t, "text");
    else if (memchr(text, '\0', json_string_length(v)) || !item_read(d, text, item))
        expected(t, "text that fits the dtype");
}

/* Converts one item and stores it at `item`, which has item_size zeros. */
static void take_item(translation *t, const caterva_dtype *d, const json_t *v, uint8_t *item)
{
    int64_t size = d->item_size;
    if (!has_json_form(d)) {
        expected(t, "{\"$binary\": base64}, for items of this dtype");
    } else if (d->kind == 'b' && json_is_boolean(v)) {
        *item = json_is_true(v);
    } else if (d->kind == 'b') {
        expected(t, "true or false");
    } else if (d->kind == 'f') {
        take_real(t, d, v, size, item);
    } else if (d->kind == 'c' && json_array_size(v) == 2) {
        take_real(t, d, json_array_get(v, 0), size / 2, item);
        take_real(t, d, json_array_get(v, 1), size / 2, item + size / 2);
    } else if (d->kind == 'c') {
        expected(t, "[real, imaginary]");
    } else if (strchr("iuMm", d->kind)) {
        take_whole(t, d, v, item);
    } else {
        take_text(t, d, v, item);
    }
}

static bool is_scalar(const caterva_dtype *d)
{
    return d->ndim == 0 && d->n_fields == 0 && d->item_size > 0;
}

/* Allocates zeroed memory for all items of value->shape. After expected(), returns NULL. */
static uint8_t *make_items(translation *t, const caterva_dtype *d, caterva_value *value)
{
    uint64_t size = (uint64_t)d->item_size;
    bool fits = true;
    for (int i = 0; i < value->ndim; i++) {
        uint64_t extent = (uint64_t)value->shape[i];
        fits = fits && (extent == 0 || size <= MOST_BYTES / extent);
        size = fits ? size * extent : 0;
    }
    if (!fits) expected(t, "an array of at most 256 MiB");
    uint8_t *items = fits ? calloc(1, size + 1) : NULL;
    if (fits && !items) t->no_memory = true;
    value->bytes = items;
    value->size = (size_t)size;
    return items;
}

/* ---- Words ---------------------------------------------------------------- */

/* Returns the bytes of base64 text, to be freed. After expected(), returns NULL. */
static uint8_t *take_base64(translation *t, const json_t *v, size_t *size)
{
    size_t n = json_string_length(v);
    uint8_t *bytes = cli_alloc(n / 4 * 3 + 1);
    if (!bytes) t->no_memory = true;
    int64_t decoded =
        bytes && json_is_string(v) ? decode_base64(json_string_value(v), n, bytes) : -1;
    *size = decoded < 0 ? 0 : (size_t)decoded;
    if (decoded >= 0) return bytes;
    expected(t, json_is_string(v) ? "base64" : "base64 as text");
    free(bytes);
    return NULL;
}

static void take_binary(translation *t, const json_t *v)
{
    caterva_value value = {.kind = CATERVA_VALUE_BYTES};
    value.bytes = take_base64(t, v, &value.size);
    if (value.bytes) put(t, value);
}

static void take_extension(translation *t, const json_t *object, const json_t *type)
{
    caterva_value value = {.kind = CATERVA_VALUE_EXTENSION};
    json_int_t number = json_integer_value(type);
    if (!json_is_integer(type) || number < -128 || number > 127)
        expected(t, "an extension number, -128 to 127");
    value.extension = (int)number;
    value.bytes = take_base64(t, json_object_get(object, "data"), &value.size);
    if (value.bytes) put(t, value);
}

static void take_complex(translation *t, const json_t *v)
{
    caterva_value value = {.kind = CATERVA_VALUE_COMPLEX};
    if (json_array_size(v) != 2)
        expected(t, "[real, imaginary]");
    else if (!load_real(t, json_array_get(v, 0), &value.real) ||
             !load_real(t, json_array_get(v, 1), &value.imaginary))
        expected(t, "a number");
    else
        put(t, value);
}

static void take_shape(translation *t, const json_t *v, caterva_value *out)
{
    size_t n = json_array_size(v);
    if (!json_is_array(v) || n > CATERVA_MAX_DIMS) {
        expected(t, "a shape of at most 16 axes");
        return;
    }
    out->ndim = (int)n;
    for (size_t i = 0; i < n; i++) {
        const json_t *extent = json_array_get(v, i);
        out->shape[i] = json_integer_value(extent);
        if (!json_is_integer(extent) || out->shape[i] < 0)
            expected(t, "an extent of 0 or more");
    }
}

/* Converts the items of an array of known shape, which are given as a list or as base64. */
static void take_items(translation *t, const caterva_dtype *d, const json_t *data,
                       caterva_value *value)
{
    uint8_t *items = make_items(t, d, value);
    size_t n = value->size / (size_t)d->item_size, size = value->size;
    if (!items) return;
    if (json_is_object(data)) {
        free(items);
        value->bytes = take_base64(t, json_object_get(data, words[BINARY]), &value->size);
        if (value->bytes && value->size != size)
            expected(t, "as many items as the shape has");
    } else if (json_array_size(data) != n || !json_is_array(data)) {
        expected(t, "as many items as the shape has");
    } else {
        for (size_t i = 0; i < n && !t->wrong[0]; i++)
            take_item(t, d, json_array_get(data, i), items + i * (size_t)d->item_size);
    }
}

static void take_array(translation *t, const json_t *v)
{
    caterva_error err;
    caterva_dtype *d = NULL;
    caterva_value value = {.kind = CATERVA_VALUE_ARRAY};
    const char *dtype = json_string_value(json_object_get(v, "dtype"));
    if (!dtype || strlen(dtype) >= sizeof value.dtype ||
        caterva_dtype_parse(dtype, &d, &err) != CATERVA_OK || !is_scalar(d)) {
        expected(t, "the dtype of a scalar");
        caterva_dtype_free(d);
        return;
    }
    strcpy(value.dtype, dtype);
    take_shape(t, json_object_get(v, "shape"), &value);
    if (!t->wrong[0]) take_items(t, d, json_object_get(v, "data"), &value);
    if (value.bytes) put(t, value);
    caterva_dtype_free(d);
}

static void put_json(translation *t, const json_t *v);

static void take_pairs(translation *t, const json_t *pairs)
{
    size_t n = json_array_size(pairs);
    if (!json_is_array(pairs)) expected(t, "'['");
    put(t, (caterva_value){.kind = CATERVA_VALUE_MAP, .count = (int64_t)n});
    for (size_t i = 0; i < n && !t->wrong[0]; i++) {
        const json_t *pair = json_array_get(pairs, i), *key = json_array_get(pair, 0);
        if (json_array_size(pair) != 2) expected(t, "[key, value]");
        if (json_is_array(key) || json_is_object(key))
            expected(t, "a key that is neither a list nor a map");
        if (t->wrong[0]) return;
        put_json(t, key);
        put_json(t, json_array_get(pair, 1));
    }
}

static void take_list(translation *t, const json_t *v, caterva_value_kind kind)
{
    size_t n = json_array_size(v);
    if (!json_is_array(v)) expected(t, "'['");
    put(t, (caterva_value){.kind = kind, .count = (int64_t)n});
    for (size_t i = 0; i < n && !t->wrong[0]; i++) put_json(t, json_array_get(v, i));
}

static void put_text(translation *t, const char *text, size_t size)
{
    put(t, (caterva_value){.kind = CATERVA_VALUE_TEXT, .bytes = text, .size = size});
}

static void put_object(translation *t, const json_t *object)
{
    size_t n = json_object_size(object);
    void *first = json_object_iter((json_t *)object);
    const char *name = first ? json_object_iter_key(first) : "";
    const json_t *v = json_object_iter_value(first);
    word w = first ? find_word(name, strlen(name)) : N_WORDS;
    if (w == EXT && n != 2) expected(t, "the keys \"$ext\" and \"data\", and no others");
    if (w != N_WORDS && w != EXT && n != 1) expected(t, "no other key beside \"$...\"");
    switch (w) {
    case BINARY: take_binary(t, v); return;
    case COMPLEX: take_complex(t, v); return;
    case TUPLE: take_list(t, v, CATERVA_VALUE_TUPLE); return;
    case SET: take_list(t, v, CATERVA_VALUE_SET); return;
    case ARRAY: take_array(t, v); return;
    case MAP: take_pairs(t, v); return;
    case EXT: take_extension(t, object, v); return;
    default: break;
    }
    put(t, (caterva_value){.kind = CATERVA_VALUE_MAP, .count = (int64_t)n});
    json_t *member;
    json_object_foreach((json_t *)object, name, member)
    {
        put_text(t, name, strlen(name));
        put_json(t, member);
    }
}

static void put_json(translation *t, const json_t *v)
{
    bool negative, has_parts = json_is_array(v) || json_is_object(v);
    uint64_t value;
    if (has_parts && t->depth == MOST_DEPTH) {
        expected(t, "at most 64 nested lists and objects");
        return;
    }
    t->depth += has_parts;
    if (load_integer(t, v, &negative, &value)) {
        put(t, (caterva_value){.kind = negative ? CATERVA_VALUE_INT : CATERVA_VALUE_UINT,
                               .integer = (int64_t)value});
        return;
    }
    switch (json_typeof(v)) {
    case JSON_OBJECT: put_object(t, v); break;
    case JSON_ARRAY: take_list(t, v, CATERVA_VALUE_LIST); break;
    case JSON_STRING: put_text(t, json_string_value(v), json_string_length(v)); break;
    case JSON_REAL:
        put(t, (caterva_value){.kind = CATERVA_VALUE_REAL, .real = json_real_value(v)});
        break;
    case JSON_TRUE:
    case JSON_FALSE:
        put(t, (caterva_value){.kind = CATERVA_VALUE_BOOL, .integer = json_is_true(v)});
        break;
    default: put(t, (caterva_value){.kind = CATERVA_VALUE_NIL}); break;
    }
    t->depth -= has_parts;
}

/* ---- Arrays of one dtype -------------------------------------------------- */

/* Converts nested lists of the array's shape, and stores the items at *at in C order. */
static void take_nested(translation *t, const caterva_dtype *d, const json_t *v, int axis,
                        const caterva_value *array, uint8_t **at)
{
    if (axis == array->ndim) {
        take_item(t, d, v, *at);
        *at += d->item_size;
        return;
    }
    if (!json_is_array(v) || (int64_t)json_array_size(v) != array->shape[axis]) {
        expected(t, "lists of one shape");
        return;
    }
    for (size_t i = 0, n = json_array_size(v); i < n && !t->wrong[0]; i++)
        take_nested(t, d, json_array_get(v, i), axis + 1, array, at);
}

static void put_typed(translation *t, const char *dtype, const caterva_dtype *d,
                      const json_t *v)
{
    caterva_value value = {.kind = CATERVA_VALUE_ARRAY};
    const json_t *first = v;
    for (; json_is_array(first) && value.ndim < CATERVA_MAX_DIMS;
         first = json_array_get(first, 0))
        value.shape[value.ndim++] = (int64_t)json_array_size(first);
    snprintf(value.dtype, sizeof value.dtype, "%s", dtype);
    uint8_t *at = make_items(t, d, &value);
    if (!at) return;
    take_nested(t, d, v, 0, &value, &at);
    put(t, value);
}

/* ---- The text ------------------------------------------------------------- */

static bool holds(const char *text, size_t size, const char *part, size_t part_size)
{
    for (size_t i = 0; i + part_size <= size; i++)
        if (memcmp(text + i, part, part_size) == 0) return true;
    return false;
}

/* Replaces the integer that ends at byte `end` by a text with the mark, in a copy of the input.
 * Returns false if the integer does not fit uint64. */
static bool mark_integer(big_mark *mark, char **text, size_t *size, size_t end)
{
    size_t start = end;
    while (start > 0 && (*text)[start - 1] >= '0' && (*text)[start - 1] <= '9') start--;
    if (start == end || (start > 0 && (*text)[start - 1] == '-')) return false;
    errno = 0;
    (void)strtoull(*text + start, NULL, 10);
    if (errno) return false;
    for (int i = 0; mark->size == 0; i++) {
        int n = snprintf(mark->text, sizeof mark->text, "uint64#%d#", i);
        if (!holds(*text, *size, mark->text, (size_t)n)) mark->size = (size_t)n;
    }
    char *longer = cli_alloc(*size + mark->size + 3);
    if (!longer) return false;
    size_t digits = end - start;
    memcpy(longer, *text, start);
    longer[start] = '"';
    memcpy(longer + start + 1, mark->text, mark->size);
    memcpy(longer + start + 1 + mark->size, *text + start, digits);
    longer[start + 1 + mark->size + digits] = '"';
    memcpy(longer + start + mark->size + digits + 2, *text + end, *size - end + 1);
    free(*text);
    *text = longer;
    *size += mark->size + 2;
    return true;
}

/* Parses the text. Returns NULL after a failure, which `why` describes. */
static json_t *load(const value_input *in, big_mark *mark, json_error_t *why)
{
    size_t size = in->size;
    char *text = cli_alloc(size + 1);
    json_t *root = NULL;
    bool again = text != NULL;
    if (!text) snprintf(why->text, sizeof why->text, "not enough memory");
    if (text && size > 0) memcpy(text, in->text, size);
    if (text) text[size] = '\0';
    while (again) {
        root = json_loadb(text, size, JSON_DECODE_ANY | JSON_ALLOW_NUL, why);
        again = !root && json_error_code(why) == json_error_numeric_overflow &&
                why->position > 0 && (size_t)why->position <= size &&
                mark_integer(mark, &text, &size, (size_t)why->position);
    }
    free(text);
    return root;
}

/* Converts the input to values, which borrow texts from `root`. */
static cli_exit translate(const value_input *in, const json_t *root, translation *t)
{
    caterva_dtype *d = NULL;
    if (in->dtype) CLI_TRY(descr_parse(CLI_USAGE, "--dtype", in->dtype, &d));
    if (d && (!is_scalar(d) || d->kind == 'c' ||
              strlen(in->dtype) >= sizeof(((caterva_value *)0)->dtype)))
        expected(t, "--dtype to be that of a number, bool, time or text");
    else if (d)
        put_typed(t, in->dtype, d, root);
    else
        put_json(t, root);
    caterva_dtype_free(d);
    if (t->wrong[0])
        return cli_fail(CLI_USAGE, "%s is not JSON: %s%s", in->what, t->wrong, in->hint);
    return t->no_memory ? cli_fail(CLI_IO, "not enough memory for %s", in->what) : CLI_OK;
}

cli_exit value_parse(const value_input *in, void **out, size_t *size)
{
    translation t = {.depth = 0};
    json_error_t why = {.position = 0};
    caterva_error err;
    json_t *root = load(in, &t.mark, &why);
    if (!root)
        return cli_fail(CLI_USAGE, "%s is not JSON: %s (line %d, column %d)%s", in->what,
                        cli_show(why.text).text, why.line, why.column, in->hint);
    cli_exit code = translate(in, root, &t);
    if (code == CLI_OK && caterva_value_pack(t.values, t.n, out, size, &err) != CATERVA_OK)
        code = cli_fail(CLI_IO, "%s", err.message);
    free_translation(&t);
    json_decref(root);
    return code;
}
