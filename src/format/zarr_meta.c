/* Room: format. The metadata of a Zarr v3 array. Writes JSON only; text does not depend on the
 * locale. Names of types are those of the Zarr specification and, where it has none, of
 * zarr-python. */
#include "format/zarr_meta.h"

#include "base/arith.h"
#include "format/values.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- JSON ----------------------------------------------------------------------- */

/* Sticky: the first failure is returned at the end. */
typedef struct json {
    cv_buffer *out;
    cv_status status;
    cv_error *err;
    bool bad; /* something that JSON cannot express */
} json;

static void put(json *j, const void *text, size_t size)
{
    if (j->status == CV_OK) j->status = cv_buffer_append(j->out, text, size, j->err);
}

static void put_text(json *j, const char *text) { put(j, text, strlen(text)); }

static void put_int(json *j, int64_t number)
{
    char text[32];
    snprintf(text, sizeof text, "%lld", (long long)number);
    put_text(j, text);
}

static void put_uint(json *j, uint64_t number)
{
    char text[32];
    snprintf(text, sizeof text, "%llu", (unsigned long long)number);
    put_text(j, text);
}

/* Escapes what JSON requires; other characters stay UTF-8. */
static void put_string(json *j, const uint8_t *text, size_t size)
{
    put_text(j, "\"");
    for (size_t at = 0, n; at < size; at += n) {
        uint8_t c = text[at];
        n = c ? cv_utf8_length((const char *)text + at, size - at) : 1;
        if (n == 0) {
            j->bad = true;
            n = 1;
        } else if (c == '"' || c == '\\') {
            put(j, (const char[]){'\\', (char)c}, 2);
        } else if (c < 0x20 || c == 0x7f) {
            char escape[8];
            snprintf(escape, sizeof escape, "\\u%04x", c);
            put_text(j, escape);
        } else {
            put(j, text + at, n);
        }
    }
    put_text(j, "\"");
}

static void put_base64(json *j, const uint8_t *bytes, size_t size)
{
    static const char digits[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    put_text(j, "\"");
    for (size_t at = 0; at < size; at += 3) {
        size_t n = size - at < 3 ? size - at : 3;
        uint32_t bits = (uint32_t)bytes[at] << 16;
        if (n > 1) bits |= (uint32_t)bytes[at + 1] << 8;
        if (n > 2) bits |= bytes[at + 2];
        for (size_t i = 0; i < 4; i++)
            put(j, i <= n ? &digits[bits >> (18 - 6 * i) & 63] : "=", 1);
    }
    put_text(j, "\"");
}

/* The shortest text that reads as the same number, with a mark of a float. */
static void put_finite(json *j, double number, bool is_single)
{
    char text[40];
    for (int digits = is_single ? 6 : 15; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, number);
        double read = strtod(text, NULL);
        if (is_single ? (float)read == (float)number : read == number) break;
    }
    bool is_float = strpbrk(text, "e.,") != NULL;
    for (char *c = text; *c; c++)
        if (!strchr("+-0123456789eE", *c)) *c = '.';
    put_text(j, text);
    if (!is_float) put_text(j, ".0");
}

static void put_real(json *j, double number, bool is_single)
{
    if (isfinite(number))
        put_finite(j, number, is_single);
    else
        put_text(j, isnan(number) ? "\"NaN\""
                    : number > 0  ? "\"Infinity\""
                                  : "\"-Infinity\"");
}

/* ---- Items ------------------------------------------------------------------------- */

/* Loads a number of `size` bytes in the order of the dtype. */
static uint64_t load(const uint8_t *bytes, int64_t size, char byte_order)
{
    uint64_t bits = 0;
    for (int64_t i = 0; i < size; i++)
        bits = bits << 8 | bytes[byte_order == '>' ? i : size - 1 - i];
    return bits;
}

static double half_to_double(uint16_t half)
{
    int exponent = half >> 10 & 31;
    double mantissa = half & 1023, value;
    if (exponent == 31)
        value = mantissa != 0 ? NAN : INFINITY;
    else
        value = exponent == 0 ? ldexp(mantissa, -24) : ldexp(mantissa + 1024, exponent - 25);
    return half & 0x8000 ? -value : value;
}

static double float_of(uint64_t bits, int64_t size)
{
    double number;
    float single;
    uint32_t low = (uint32_t)bits;
    memcpy(&single, &low, sizeof single);
    memcpy(&number, &bits, sizeof number);
    return size == 4 ? (double)single : size == 2 ? half_to_double((uint16_t)bits) : number;
}

/* A NaN with other bits than the usual one is written as its bits. */
static void put_float(json *j, const uint8_t *bytes, int64_t size, char byte_order)
{
    static const uint64_t usual[] = {
        [2] = 0x7e00, [4] = 0x7fc00000, [8] = 0x7ff8000000000000};
    uint64_t bits = load(bytes, size, byte_order);
    double number = float_of(bits, size);
    if (isnan(number) && bits != usual[size]) {
        char text[24];
        snprintf(text, sizeof text, "\"0x%0*llx\"", 2 * (int)size, (unsigned long long)bits);
        put_text(j, text);
        return;
    }
    put_real(j, number, size == 4);
}

static void put_integer(json *j, const uint8_t *bytes, int64_t size, const caterva_dtype *t)
{
    uint64_t bits = load(bytes, size, t->byte_order);
    uint64_t sign = (uint64_t)1 << (size * 8 - 1);
    if (t->kind == 'u')
        put_uint(j, bits);
    else
        put_int(j, (int64_t)((bits ^ sign) - sign));
}

/* Four bytes for each character; zeros at the end do not count. */
static void put_characters(json *j, const uint8_t *bytes, const caterva_dtype *t)
{
    cv_buffer text = {0};
    int64_t n = t->item_size / 4;
    while (n > 0 && load(bytes + 4 * (n - 1), 4, '<') == 0) n--;
    for (int64_t i = 0; i < n && j->status == CV_OK; i++) {
        char utf8[4];
        uint64_t code = load(bytes + 4 * i, 4, t->byte_order);
        bool is_valid = code <= 0x10ffff && (code < 0xd800 || code > 0xdfff);
        j->bad = j->bad || !is_valid;
        size_t size = is_valid ? cv_utf8_encode((uint32_t)code, utf8) : 0;
        j->status = cv_buffer_append(&text, utf8, size, j->err);
    }
    if (j->status == CV_OK) put_string(j, text.data, text.size);
    cv_buffer_free(&text);
}

/* One item as Zarr writes a fill value. */
static void put_item(json *j, const uint8_t *item, const caterva_dtype *t)
{
    int64_t half = t->item_size / 2;
    switch (t->kind) {
    case 'b': put_text(j, *item ? "true" : "false"); break;
    case 'i':
    case 'u':
    case 'M':
    case 'm': put_integer(j, item, t->item_size, t); break;
    case 'f': put_float(j, item, t->item_size, t->byte_order); break;
    case 'c':
        put_text(j, "[");
        put_float(j, item, half, t->byte_order);
        put_text(j, ", ");
        put_float(j, item + half, half, t->byte_order);
        put_text(j, "]");
        break;
    case 'U': put_characters(j, item, t); break;
    default: put_base64(j, item, (size_t)t->item_size); break;
    }
}

/* ---- Types --------------------------------------------------------------------------- */

static cv_status no_name(const char *what, cv_error *err)
{
    return cv_fail(err, CATERVA_EUNSUPPORTED, -1, "Zarr has no data type for %s", what);
}

/* Fields must be as in the text of the type: no gaps, no order of their own, no byte order. */
static cv_status check_fields(const caterva_dtype *t, cv_error *err)
{
    int64_t end = 0;
    for (int i = 0; i < t->n_fields; i++) {
        const caterva_field *f = &t->fields[i];
        if (f->offset != end) return no_name("fields with gaps", err);
        if (f->dtype->byte_order == '>') return no_name("fields of big-endian numbers", err);
        end += f->dtype->item_size;
    }
    return end == t->item_size ? CV_OK : no_name("fields with gaps", err);
}

/* Nested structs are checked level by level. */
cv_status cv_zarr_check_dtype(const caterva_dtype *t, cv_error *err)
{
    enum { DEPTH = 16 };
    const caterva_dtype *path[DEPTH] = {t};
    int next[DEPTH] = {0}, depth = 0;
    while (depth >= 0) {
        const caterva_dtype *at = path[depth];
        if (next[depth] == 0) {
            if (at->ndim > 0) return no_name("arrays inside of items", err);
            if (at->kind == '?') return no_name("items of unknown kind", err);
            if ((at->kind == 'f' && at->item_size > 8) ||
                (at->kind == 'c' && at->item_size > 16))
                return no_name("floats of more than 8 bytes", err);
            if (at->n_fields > 0) CV_TRY(check_fields(at, err));
        }
        if (next[depth] == at->n_fields) {
            depth--;
        } else if (depth + 1 == DEPTH) {
            return no_name("structs of that depth", err);
        } else {
            path[depth + 1] = at->fields[next[depth]++].dtype;
            next[++depth] = 0;
        }
    }
    return CV_OK;
}

/* "25s" is the unit "s" and the factor 25. */
static void put_time(json *j, const caterva_dtype *t)
{
    char *unit;
    long long factor = strtoll(t->unit, &unit, 10);
    put_text(j, t->kind == 'M'
                    ? "{\"name\": \"numpy.datetime64\", \"configuration\": {\"unit\": \""
                    : "{\"name\": \"numpy.timedelta64\", \"configuration\": {\"unit\": \"");
    put_text(j, *unit ? unit : "generic");
    put_text(j, "\", \"scale_factor\": ");
    put_int(j, unit == t->unit ? 1 : factor);
    put_text(j, "}}");
}

static void put_sized(json *j, const char *name, int64_t size)
{
    put_text(j, "{\"name\": \"");
    put_text(j, name);
    put_text(j, "\", \"configuration\": {\"length_bytes\": ");
    put_int(j, size);
    put_text(j, "}}");
}

static void put_plain(json *j, const caterva_dtype *t)
{
    static const struct {
        char kind;
        const char *name;
    } names[] = {{'i', "int"}, {'u', "uint"}, {'f', "float"}, {'c', "complex"}};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (names[i].kind != t->kind) continue;
        put_text(j, "\"");
        put_text(j, names[i].name);
        put_int(j, 8 * t->item_size);
        put_text(j, "\"");
    }
}

static void put_scalar_type(json *j, const caterva_dtype *t)
{
    switch (t->kind) {
    case 'b': put_text(j, "\"bool\""); break;
    case 'M':
    case 'm': put_time(j, t); break;
    case 'U': put_sized(j, "fixed_length_utf32", t->item_size); break;
    case 'S': put_sized(j, "null_terminated_bytes", t->item_size); break;
    case 'V': put_sized(j, "raw_bytes", t->item_size); break;
    default: put_plain(j, t); break;
    }
}

/* Depth was checked by cv_zarr_check_dtype. */
static void put_type(json *j, const caterva_dtype *t)
{
    enum { DEPTH = 16 };
    const caterva_dtype *path[DEPTH] = {t};
    int next[DEPTH] = {0}, depth = 0;
    while (depth >= 0) {
        const caterva_dtype *at = path[depth];
        if (at->n_fields == 0) {
            put_scalar_type(j, at);
        } else if (next[depth] < at->n_fields) {
            const caterva_field *f = &at->fields[next[depth]];
            put_text(j,
                     next[depth]++ > 0
                         ? ", ["
                         : "{\"name\": \"structured\", \"configuration\": {\"fields\": [[");
            put_string(j, (const uint8_t *)f->name, strlen(f->name));
            put_text(j, ", ");
            path[++depth] = f->dtype;
            next[depth] = 0;
            continue;
        } else {
            put_text(j, "]}}");
        }
        if (depth > 0) put_text(j, "]"); /* ends the field */
        depth--;
    }
}

/* ---- Attributes ------------------------------------------------------------------------ */

/* NumPy scalars and arrays: nested lists of numbers. A complex number is a list of two. */
static void put_typed(json *j, const cv_token *token)
{
    cv_typed typed;
    bool is_array = token->ext_type == CV_EXT_ARRAY &&
                    cv_typed_parse(token->bytes, (size_t)token->number, &typed) &&
                    (typed.type.kind == 'U' ||
                     (strchr("biuf", typed.type.kind) && typed.type.item_size <= 8) ||
                     (typed.type.kind == 'c' && typed.type.item_size <= 16));
    if (!is_array) {
        j->bad = true;
        return;
    }
    int64_t index[CV_MAX_DIMS] = {0};
    for (int64_t i = 0; i < typed.n_items && j->status == CV_OK; i++) {
        int from = 0; /* the first axis that begins anew */
        for (int d = typed.ndim - 1; d >= 0 && index[d] == 0; d--) from = d;
        if (typed.ndim > 0 && index[typed.ndim - 1] != 0) from = typed.ndim;
        if (i > 0) put_text(j, ", ");
        for (int d = from; d < typed.ndim; d++) put_text(j, "[");
        put_item(j, typed.items + i * typed.type.item_size, &typed.type);
        for (int d = typed.ndim - 1; d >= 0; d--) {
            if (++index[d] < typed.shape[d]) break;
            index[d] = 0;
            put_text(j, "]");
        }
    }
    if (typed.n_items == 0) put_text(j, "[]");
}

static void put_token(json *j, const cv_token *t)
{
    switch (t->kind) {
    case CV_TOKEN_NIL: put_text(j, "null"); break;
    case CV_TOKEN_BOOL: put_text(j, t->number ? "true" : "false"); break;
    case CV_TOKEN_INT: put_int(j, (int64_t)t->number); break;
    case CV_TOKEN_UINT: put_uint(j, t->number); break;
    case CV_TOKEN_REAL: put_real(j, t->real, false); break;
    case CV_TOKEN_TEXT: put_string(j, t->bytes, (size_t)t->number); break;
    case CV_TOKEN_BINARY: put_base64(j, t->bytes, (size_t)t->number); break;
    case CV_TOKEN_EXT: put_typed(j, t); break;
    case CV_TOKEN_LIST:
    case CV_TOKEN_MAP: break;
    }
}

typedef struct open_value {
    uint64_t left; /* tokens */
    bool is_map;
    bool is_first;
} open_value;

/* A tuple is a list whose first member marks it. */
static open_value open_list(json *j, cv_tokens *tokens, const cv_token *t)
{
    open_value v = {t->number, t->kind == CV_TOKEN_MAP, true};
    if (v.is_map) v.left *= 2;
    cv_tokens ahead = *tokens;
    cv_token first = cv_token_next(&ahead);
    if (!v.is_map && v.left > 0 && cv_token_is_text(&first, CV_TUPLE_MARK)) {
        *tokens = ahead;
        v.left--;
    }
    put_text(j, v.is_map ? "{" : "[");
    return v;
}

/* Appends the value, or sets j->bad. */
static void put_value(json *j, const void *bytes, size_t size)
{
    cv_tokens tokens = cv_tokens_of(bytes, size);
    open_value stack[CV_VALUE_DEPTH + 1] = {{.left = 1, .is_first = true}};
    int depth = 0;
    if (!cv_is_value(bytes, size)) j->bad = true;
    while (depth >= 0 && !j->bad && j->status == CV_OK) {
        open_value *v = &stack[depth];
        if (v->left == 0) {
            if (depth > 0) put_text(j, v->is_map ? "}" : "]");
            depth--;
            continue;
        }
        bool is_key = v->is_map && v->left % 2 == 0;
        if (!v->is_first) put_text(j, v->is_map && !is_key ? ": " : ", ");
        v->is_first = false;
        v->left--;
        cv_token t = cv_token_next(&tokens);
        if (is_key && t.kind != CV_TOKEN_TEXT) j->bad = true;
        put_token(j, &t);
        if (t.kind >= CV_TOKEN_LIST) stack[++depth] = open_list(j, &tokens, &t);
    }
}

/* Gets the real and the imaginary part of a value that is one number. Returns how many it has. */
static int parts_of(const cv_zarr_attribute *a, double out[2])
{
    cv_typed typed;
    cv_tokens tokens = cv_tokens_of(a->value, a->size);
    cv_token t = cv_token_next(&tokens);
    out[1] = 0;
    if (tokens.bad) return 0;
    if (t.kind == CV_TOKEN_EXT && t.ext_type == CV_EXT_ARRAY) {
        if (!cv_typed_parse(t.bytes, (size_t)t.number, &typed) || typed.n_items != 1)
            return 0;
        int n = typed.type.kind == 'f' ? 1 : typed.type.kind == 'c' ? 2 : 0;
        if (n == 0 || typed.type.item_size > 8 * n) return 0;
        int64_t size = typed.type.item_size / n;
        for (int i = 0; i < n; i++)
            out[i] =
                float_of(load(typed.items + i * size, size, typed.type.byte_order), size);
        return n;
    }
    *out = t.kind == CV_TOKEN_REAL   ? t.real
           : t.kind == CV_TOKEN_UINT ? (double)t.number
                                     : (double)(int64_t)t.number;
    return t.kind == CV_TOKEN_REAL || t.kind == CV_TOKEN_UINT || t.kind == CV_TOKEN_INT;
}

static void put_base64_real(json *j, double number)
{
    uint64_t bits;
    uint8_t bytes[8];
    memcpy(&bits, &number, sizeof bits);
    cv_store_le64(bytes, bits);
    put_base64(j, bytes, sizeof bytes);
}

/* xarray stores `_FillValue` of floats as base64 of the little-endian double, and that of complex
 * numbers as a list of two. */
static bool put_missing(json *j, const cv_zarr_attribute *a, const caterva_dtype *dtype)
{
    double parts[2];
    int most = !dtype ? 0 : dtype->kind == 'f' ? 1 : dtype->kind == 'c' ? 2 : 0;
    if (most == 0 || strcmp(a->name, "_FillValue") != 0) return false;
    int n = parts_of(a, parts);
    if (n == 0 || n > most) return false;
    if (most == 2) put_text(j, "[");
    put_base64_real(j, parts[0]);
    if (most == 1) return true;
    put_text(j, ", ");
    put_base64_real(j, parts[1]);
    put_text(j, "]");
    return true;
}

/* Whether the attribute says what items were before they became those of the array
 * (docs/conventions.md), which readers of Zarr would take for the data's own. */
static bool is_private(const cv_zarr_attribute *a, const caterva_dtype *dtype)
{
    return dtype && strcmp(a->name, "_vlen") == 0;
}

/* `dtype`: that of the array, NULL for a group. */
static void put_attributes(json *j, const cv_zarr_attribute *attributes, int n,
                           const caterva_dtype *dtype)
{
    bool is_first = true;
    put_text(j, "{");
    for (int i = 0; i < n && j->status == CV_OK; i++) {
        const cv_zarr_attribute *a = &attributes[i];
        if (is_private(a, dtype)) continue;
        size_t before = j->out->size;
        put_text(j, is_first ? "\n    " : ",\n    ");
        put_string(j, (const uint8_t *)a->name, strlen(a->name));
        put_text(j, ": ");
        if (!put_missing(j, a, dtype)) put_value(j, a->value, a->size);
        if (j->bad)
            j->out->size = before;
        else
            is_first = false;
        j->bad = false;
    }
    put_text(j, is_first ? "}" : "\n  }");
}

/* ---- The whole ------------------------------------------------------------------------- */

typedef int64_t (*length_fn)(const cv_grid *grid, int d);

static int64_t shape_of(const cv_grid *g, int d) { return g->shape[d]; }
static int64_t block_of(const cv_grid *g, int d) { return g->block_shape[d]; }
static int64_t shard_of(const cv_grid *g, int d)
{
    return cv_max_i64(1, g->chunk_counts[d]) * g->chunk_shape[d];
}

static void put_lengths(json *j, const cv_grid *grid, length_fn length)
{
    put_text(j, "[");
    for (int d = 0; d < grid->ndim; d++) {
        if (d > 0) put_text(j, ", ");
        put_int(j, length(grid, d));
    }
    put_text(j, "]");
}

static bool has_byte_order(const caterva_dtype *t)
{
    if (t->n_fields == 0) return t->byte_order != '|';
    return true; /* readers need one for structs */
}

static void put_bytes_codec(json *j, const caterva_dtype *t)
{
    put_text(j, "{\"name\": \"bytes\"");
    if (has_byte_order(t))
        put_text(j, t->byte_order == '>' ? ", \"configuration\": {\"endian\": \"big\"}"
                                         : ", \"configuration\": {\"endian\": \"little\"}");
    put_text(j, "}");
}

static void put_blosc_codec(json *j, const cv_zarr_meta *meta)
{
    int64_t size = meta->grid->item_size;
    put_text(j, "{\"name\": \"blosc\", \"configuration\": {\"typesize\": ");
    put_int(j, size > UINT8_MAX ? 1 : size);
    put_text(j, ", \"cname\": \"");
    put_text(j, meta->codec);
    put_text(j, "\", \"clevel\": ");
    put_int(j, meta->level);
    put_text(j, meta->filter == CATERVA_FILTER_SHUFFLE      ? ", \"shuffle\": \"shuffle\""
                : meta->filter == CATERVA_FILTER_BITSHUFFLE ? ", \"shuffle\": \"bitshuffle\""
                                                            : ", \"shuffle\": \"noshuffle\"");
    put_text(j, ", \"blocksize\": 0}}");
}

static void put_codecs(json *j, const cv_zarr_meta *meta)
{
    put_text(j, ",\n  \"codecs\": [");
    if (meta->is_shard) {
        put_text(j, "{\"name\": \"sharding_indexed\", \"configuration\": {"
                    "\n    \"chunk_shape\": ");
        put_lengths(j, meta->grid, block_of);
        put_text(j, ",\n    \"codecs\": [");
    }
    put_bytes_codec(j, meta->dtype);
    put_text(j, ", ");
    put_blosc_codec(j, meta);
    if (meta->is_shard)
        put_text(j, "],\n    \"index_codecs\": [{\"name\": \"bytes\", \"configuration\": "
                    "{\"endian\": \"little\"}}, {\"name\": \"crc32c\"}],\n"
                    "    \"index_location\": \"end\"}}");
    put_text(j, "]");
}

static cv_status put_fill(json *j, const cv_zarr_meta *meta)
{
    const uint8_t *fill = meta->fill;
    size_t size = (size_t)meta->grid->item_size;
    uint8_t *zeros = fill ? NULL : cv_calloc(1, size);
    if (!fill && !zeros) return cv_fail_memory(j->err, size, "an item");
    put_text(j, ",\n  \"fill_value\": ");
    if (meta->dtype->n_fields > 0)
        put_base64(j, fill ? fill : zeros, size);
    else
        put_item(j, fill ? fill : zeros, meta->dtype);
    cv_free(zeros);
    if (j->status != CV_OK || !j->bad) return j->status;
    return cv_fail(j->err, CATERVA_EUNSUPPORTED, -1,
                   "the array's fill value is no text, which Zarr requires");
}

static void put_dims(json *j, const cv_zarr_meta *meta)
{
    if (!meta->dims) return;
    put_text(j, ",\n  \"dimension_names\": [");
    for (int d = 0; d < meta->grid->ndim; d++) {
        if (d > 0) put_text(j, ", ");
        if (meta->dims[d])
            put_string(j, (const uint8_t *)meta->dims[d], strlen(meta->dims[d]));
        else
            put_text(j, "null");
    }
    put_text(j, "]");
}

cv_status cv_zarr_meta_write(const cv_zarr_meta *meta, cv_buffer *out, cv_error *err)
{
    json j = {.out = out, .err = err};
    CV_TRY(cv_zarr_check_dtype(meta->dtype, err));
    put_text(&j, "{\n  \"zarr_format\": 3,\n  \"node_type\": \"array\",\n  \"shape\": ");
    put_lengths(&j, meta->grid, shape_of);
    put_text(&j, ",\n  \"data_type\": ");
    put_type(&j, meta->dtype);
    put_text(&j, ",\n  \"chunk_grid\": {\"name\": \"regular\", \"configuration\": "
                 "{\"chunk_shape\": ");
    put_lengths(&j, meta->grid, meta->is_shard ? shard_of : block_of);
    put_text(&j, "}},\n  \"chunk_key_encoding\": {\"name\": \"default\", \"configuration\": "
                 "{\"separator\": \"/\"}}");
    CV_TRY(put_fill(&j, meta));
    put_codecs(&j, meta);
    put_text(&j, ",\n  \"attributes\": ");
    put_attributes(&j, meta->attributes, meta->n_attributes, meta->dtype);
    put_dims(&j, meta);
    put_text(&j, ",\n  \"storage_transformers\": []\n}\n");
    return j.status;
}

cv_status cv_zarr_group_write(const cv_zarr_attribute *attributes, int n,
                              const cv_buffer *members, cv_buffer *out, cv_error *err)
{
    json j = {.out = out, .err = err};
    put_text(&j, "{\n  \"zarr_format\": 3,\n  \"node_type\": \"group\",\n  \"attributes\": ");
    put_attributes(&j, attributes, n, NULL);
    if (members) {
        put_text(&j, ",\n  \"consolidated_metadata\": {\"kind\": \"inline\", "
                     "\"must_understand\": false, \"metadata\": {");
        put(&j, members->data, members->size);
        put_text(&j, "}}");
    }
    put_text(&j, "\n}\n");
    return j.status;
}

cv_status cv_zarr_string_write(const char *text, cv_buffer *out, cv_error *err)
{
    json j = {.out = out, .err = err};
    put_string(&j, (const uint8_t *)text, strlen(text));
    return j.status;
}
