/* Room: value. The public functions that read and pack attribute values. */
#include "array/array.h"
#include "base/arith.h"
#include "base/heap.h"
#include "format/values.h"

#include <caterva_value.h>
#include <stdio.h>
#include <string.h>

static void fill_array(const cv_token *token, caterva_value *out)
{
    cv_typed typed;
    if (!cv_typed_parse(token->bytes, (size_t)token->number, &typed) ||
        typed.dtype_size >= sizeof out->dtype)
        return;
    out->kind = CATERVA_VALUE_ARRAY;
    memcpy(out->dtype, typed.dtype, typed.dtype_size);
    out->ndim = typed.ndim;
    memcpy(out->shape, typed.shape, sizeof out->shape);
    out->bytes = typed.items;
    out->size = (size_t)(typed.n_items * typed.type.item_size);
}

static double load_real(const uint8_t *bytes)
{
    uint64_t bits = cv_load_be64(bytes);
    double real;
    memcpy(&real, &bits, sizeof real);
    return real;
}

/* Interprets an extension by its type. If its bytes do not fit the type, it stays an extension. */
static void fill_extension(const cv_token *token, cv_tokens *t, caterva_value *out)
{
    out->kind = CATERVA_VALUE_EXTENSION;
    out->extension = token->ext_type;
    switch (token->ext_type) {
    case CV_EXT_FRAME: out->kind = CATERVA_VALUE_FRAME; break;
    case CV_EXT_REFERENCE: out->kind = CATERVA_VALUE_REFERENCE; break;
    case CV_EXT_ARRAY: fill_array(token, out); break;
    case CV_EXT_COMPLEX:
        if (token->number != 16) break;
        out->kind = CATERVA_VALUE_COMPLEX;
        out->real = load_real(token->bytes);
        out->imaginary = load_real(token->bytes + 8);
        break;
    case CV_EXT_SET:
        if (!cv_is_value(token->bytes, (size_t)token->number)) break;
        cv_tokens inside = cv_tokens_of(token->bytes, (size_t)token->number);
        cv_token list = cv_token_next(&inside);
        if (list.kind != CV_TOKEN_LIST) break;
        out->kind = CATERVA_VALUE_SET;
        out->count = (int64_t)list.number;
        t->at = inside.at;
        break;
    default: break;
    }
}

static void fill_list(const cv_token *token, cv_tokens *t, caterva_value *out)
{
    cv_tokens ahead = *t;
    cv_token first = cv_token_next(&ahead);
    bool is_tuple = token->number > 0 && cv_token_is_text(&first, CV_TUPLE_MARK);
    out->kind = is_tuple ? CATERVA_VALUE_TUPLE : CATERVA_VALUE_LIST;
    out->count = (int64_t)token->number - is_tuple;
    if (is_tuple) t->at = ahead.at;
}

static void fill_bytes(const cv_token *token, caterva_value_kind kind, caterva_value *out)
{
    out->kind = kind;
    out->bytes = token->bytes;
    out->size = (size_t)token->number;
}

static void fill(const cv_token *token, cv_tokens *t, caterva_value *out)
{
    out->integer = (int64_t)token->number;
    switch (token->kind) {
    case CV_TOKEN_NIL: out->kind = CATERVA_VALUE_NIL; break;
    case CV_TOKEN_BOOL: out->kind = CATERVA_VALUE_BOOL; break;
    case CV_TOKEN_INT: out->kind = CATERVA_VALUE_INT; break;
    case CV_TOKEN_UINT:
        out->kind = token->number > INT64_MAX ? CATERVA_VALUE_UINT : CATERVA_VALUE_INT;
        break;
    case CV_TOKEN_REAL: out->kind = CATERVA_VALUE_REAL; break;
    case CV_TOKEN_TEXT: fill_bytes(token, CATERVA_VALUE_TEXT, out); break;
    case CV_TOKEN_BINARY: fill_bytes(token, CATERVA_VALUE_BYTES, out); break;
    case CV_TOKEN_EXT:
        fill_bytes(token, CATERVA_VALUE_EXTENSION, out);
        fill_extension(token, t, out);
        break;
    case CV_TOKEN_LIST: fill_list(token, t, out); break;
    case CV_TOKEN_MAP:
        out->kind = CATERVA_VALUE_MAP;
        out->count = (int64_t)token->number;
        break;
    }
    if (token->kind > CV_TOKEN_UINT) out->integer = 0;
    if (token->kind == CV_TOKEN_REAL) out->real = token->real;
}

caterva_status caterva_value_next(const void *packed, size_t size, size_t *at,
                                  caterva_value *out, caterva_error *err)
{
    if ((!packed && size > 0) || !at || !out)
        return cv_fail(err, CATERVA_EINVAL, -1, "packed, at or out is NULL");
    if (*at > size)
        return cv_fail(err, CATERVA_ERANGE, -1, "position %zu is after the value's %zu bytes",
                       *at, size);
    CV_TRY(cv_output_check(out, sizeof *out, "value", err));
    cv_tokens t = cv_tokens_of(packed, size);
    const uint8_t *start = t.at;
    t.at += *at;
    cv_token token = cv_token_next(&t);
    if (t.bad)
        return cv_fail(err, CATERVA_ECORRUPT, -1,
                       "there is no MessagePack value at byte %zu of %zu", *at, size);
    caterva_value value = {.struct_size = sizeof value};
    fill(&token, &t, &value);
    cv_output_fill(out, &value, sizeof value);
    *at = (size_t)(t.at - start);
    return CV_OK;
}

/* ---- Packing ------------------------------------------------------------- */

/* Passes the buffer to the caller as *out, which is never NULL. Frees it after a failure. */
static cv_status hand_out(cv_status status, cv_buffer *buffer, void **out, size_t *size,
                          cv_error *err)
{
    if (status == CV_OK) status = cv_buffer_reserve(buffer, 1, err);
    if (status != CV_OK) {
        cv_buffer_free(buffer);
        return status;
    }
    *out = buffer->data;
    *size = buffer->size;
    return CV_OK;
}

static cv_status set_shape(cv_typed *typed, int ndim, const int64_t *shape, size_t size,
                           cv_error *err)
{
    int64_t wanted;
    if (ndim < 0 || ndim > CATERVA_MAX_DIMS || (ndim > 0 && !shape))
        return cv_fail(err, CATERVA_EINVAL, -1, "ndim is %d, or the shape is NULL", ndim);
    typed->ndim = ndim;
    if (ndim > 0) memcpy(typed->shape, shape, (size_t)ndim * sizeof shape[0]);
    for (int d = 0; d < ndim; d++)
        if (shape[d] < 0)
            return cv_fail(err, CATERVA_EINVAL, -1, "axis %d has %lld items, less than 0", d,
                           (long long)shape[d]);
    if (!cv_typed_count(typed, &wanted))
        return cv_fail(err, CATERVA_EINVAL, -1, "the shape's bytes do not fit 64 bits");
    if ((uint64_t)wanted != size)
        return cv_fail(err, (uint64_t)wanted > size ? CATERVA_ESHORT : CATERVA_EINVAL, -1,
                       "%zu bytes are not the size of this shape with items of %lld bytes",
                       size, (long long)typed->type.item_size);
    return CV_OK;
}

static void pack_extension(const caterva_value *v, int type, cv_packer *p)
{
    cv_pack_ext(p, type, v->bytes, v->size);
}

static void pack_complex(const caterva_value *v, cv_packer *p)
{
    const double parts[2] = {v->real, v->imaginary};
    uint8_t bytes[16];
    for (int i = 0; i < 2; i++) {
        uint64_t bits;
        memcpy(&bits, &parts[i], sizeof bits);
        cv_store_be64(bytes + 8 * i, bits);
    }
    cv_pack_ext(p, CV_EXT_COMPLEX, bytes, sizeof bytes);
}

static cv_status pack_array(const caterva_value *v, cv_packer *p, cv_error *err)
{
    cv_typed typed = {.items = v->bytes};
    if (!memchr(v->dtype, '\0', sizeof v->dtype))
        return cv_fail(err, CATERVA_EINVAL, -1, "the dtype of a value is not NUL-terminated");
    CV_TRY(cv_typed_set_dtype(&typed, v->dtype, strlen(v->dtype), err));
    if (typed.type.item_size == 0)
        return cv_fail(err, CATERVA_EDTYPE, -1, "items of dtype %.31s have no bytes",
                       v->dtype);
    CV_TRY(set_shape(&typed, v->ndim, v->shape, v->size, err));
    cv_typed_pack(&typed, p);
    return CV_OK;
}

/* Packs a value, or the head of a container. *n_parts is the number of values that follow in the
 * container; -1 if the value is not a container. */
static cv_status pack_one(const caterva_value *v, cv_packer *p, int64_t *n_parts,
                          cv_error *err)
{
    bool has_parts = false;
    switch (v->kind) {
    case CATERVA_VALUE_NIL: cv_pack_nil(p); break;
    case CATERVA_VALUE_BOOL: cv_pack_bool(p, v->integer != 0); break;
    case CATERVA_VALUE_INT: cv_pack_int(p, v->integer); break;
    case CATERVA_VALUE_UINT: cv_pack_uint(p, (uint64_t)v->integer); break;
    case CATERVA_VALUE_REAL: cv_pack_real(p, v->real); break;
    case CATERVA_VALUE_COMPLEX: pack_complex(v, p); break;
    case CATERVA_VALUE_TEXT: cv_pack_text(p, v->bytes, v->size); break;
    case CATERVA_VALUE_BYTES: cv_pack_binary(p, v->bytes, v->size); break;
    case CATERVA_VALUE_ARRAY: CV_TRY(pack_array(v, p, err)); break;
    case CATERVA_VALUE_FRAME: pack_extension(v, CV_EXT_FRAME, p); break;
    case CATERVA_VALUE_REFERENCE: pack_extension(v, CV_EXT_REFERENCE, p); break;
    case CATERVA_VALUE_EXTENSION:
        if (v->extension < INT8_MIN || v->extension > INT8_MAX)
            return cv_fail(err, CATERVA_EINVAL, -1, "extension type %d is not in [-128, 127]",
                           v->extension);
        pack_extension(v, v->extension, p);
        break;
    case CATERVA_VALUE_LIST:
    case CATERVA_VALUE_TUPLE:
    case CATERVA_VALUE_SET:
    case CATERVA_VALUE_MAP: has_parts = true; break;
    default: return cv_fail(err, CATERVA_EINVAL, -1, "unknown value kind %d", (int)v->kind);
    }
    *n_parts = -1;
    if (!has_parts) return CV_OK;
    if (v->count < 0 || v->count > UINT32_MAX)
        return cv_fail(err, CATERVA_EINVAL, -1, "a value cannot have %lld parts",
                       (long long)v->count);
    cv_pack_begin(p, v->kind == CATERVA_VALUE_MAP   ? CV_PACK_MAP
                     : v->kind == CATERVA_VALUE_SET ? CV_PACK_SET
                                                    : CV_PACK_LIST);
    if (v->kind == CATERVA_VALUE_TUPLE) cv_pack_text(p, CV_TUPLE_MARK, strlen(CV_TUPLE_MARK));
    *n_parts = v->kind == CATERVA_VALUE_MAP ? 2 * v->count : v->count;
    return CV_OK;
}

static cv_status pack_values(const caterva_value *values, size_t n, cv_packer *p,
                             cv_error *err)
{
    int64_t left[CV_VALUE_DEPTH + 1] = {1}; /* values left, for each level */
    int depth = 0;
    const char *at = (const char *)values;
    size_t step = values->struct_size;
    for (size_t i = 0; i < n; i++, at += step) {
        caterva_value v = {.kind = CATERVA_VALUE_NIL};
        int64_t n_parts = -1;
        CV_TRY(cv_options_copy(&v, sizeof v, at, "value", err));
        if (depth == 0 && left[0] == 0)
            return cv_fail(err, CATERVA_EINVAL, -1,
                           "value %zu of %zu follows a complete value", i, n);
        if (v.size > 0 && !v.bytes)
            return cv_fail(err, CATERVA_EINVAL, -1,
                           "value %zu has a size, but its bytes are NULL", i);
        CV_TRY(pack_one(&v, p, &n_parts, err));
        left[depth]--;
        if (n_parts >= 0 && depth == CV_VALUE_DEPTH)
            return cv_fail(err, CATERVA_EINVAL, -1, "values nest deeper than %d levels",
                           depth);
        if (n_parts >= 0) left[++depth] = n_parts;
        for (; depth > 0 && left[depth] == 0; depth--) cv_pack_end(p);
    }
    return left[0] == 0 && depth == 0
               ? CV_OK
               : cv_fail(err, CATERVA_EINVAL, -1,
                         "parts of a value are missing after %zu values", n);
}

caterva_status caterva_value_pack(const caterva_value *values, size_t n, void **packed,
                                  size_t *packed_size, caterva_error *err)
{
    if (!values || n == 0 || !packed || !packed_size)
        return cv_fail(err, CATERVA_EINVAL, -1,
                       "values, packed or packed_size is NULL, or n is 0");
    cv_packer p = {.status = CV_OK};
    cv_buffer out = {0};
    cv_status status = pack_values(values, n, &p, err);
    if (status == CV_OK)
        status = cv_pack_finish(&p, &out, err);
    else
        cv_pack_free(&p);
    if (status == CV_OK && !cv_is_value(out.data, out.size))
        status =
            cv_fail(err, CATERVA_EINVAL, -1, "a list, set or map cannot be the key of a map");
    return hand_out(status, &out, packed, packed_size, err);
}
