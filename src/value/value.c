/* Room: array. Values of attributes in public: read, packed, and as JSON. */
#include "array/array.h"
#include "base/arith.h"
#include "base/heap.h"
#include "format/values.h"
#include "value/json_read.h"
#include "value/json_write.h"

#include <caterva_value.h>
#include <stdio.h>
#include <string.h>

/* ---- Reading ------------------------------------------------------------ */

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

/* Whatever does not keep to its type's form stays an extension. */
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
        return cv_fail(err, CATERVA_ERANGE, -1, "byte %zu of a value of %zu", *at, size);
    CV_TRY(cv_output_check(out, sizeof *out, "value", err));
    cv_tokens t = cv_tokens_of(packed, size);
    const uint8_t *start = t.at;
    t.at += *at;
    cv_token token = cv_token_next(&t);
    if (t.bad)
        return cv_fail(err, CATERVA_ECORRUPT, -1,
                       "no MessagePack value stands at byte %zu of %zu", *at, size);
    caterva_value value = {.struct_size = sizeof value};
    fill(&token, &t, &value);
    cv_output_fill(out, &value, sizeof value);
    *at = (size_t)(t.at - start);
    return CV_OK;
}

/* ---- Packing and JSON ---------------------------------------------------- */

/* Hands out the buffer, or frees it; never NULL on success. */
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
        return cv_fail(err, CATERVA_EINVAL, -1, "a shape of %d axes", ndim);
    typed->ndim = ndim;
    if (ndim > 0) memcpy(typed->shape, shape, (size_t)ndim * sizeof shape[0]);
    for (int d = 0; d < ndim; d++)
        if (shape[d] < 0)
            return cv_fail(err, CATERVA_EINVAL, -1, "axis %d has %lld items", d,
                           (long long)shape[d]);
    if (!cv_typed_count(typed, &wanted))
        return cv_fail(err, CATERVA_EINVAL, -1, "the shape's bytes do not fit 64 bits");
    if ((uint64_t)wanted != size)
        return cv_fail(err, (uint64_t)wanted > size ? CATERVA_ESHORT : CATERVA_EINVAL, -1,
                       "%zu bytes are not the items of that shape, %lld bytes each", size,
                       (long long)typed->type.item_size);
    return CV_OK;
}

/* A watch of the call, where somebody listens: *out is &watch or NULL. */
static cv_status begin(const caterva_convert_options *options, cv_watch *watch,
                       cv_watch **out, cv_error *err)
{
    caterva_convert_options o = CATERVA_CONVERT_INIT;
    *out = NULL;
    if (options) CV_TRY(cv_options_copy(&o, sizeof o, options, "convert options", err));
    if (!o.on_progress) return CV_OK;
    cv_watch_init_steps(watch, o.on_progress, o.context, NULL);
    *out = watch;
    return CV_OK;
}

static void end(cv_watch *watch)
{
    if (watch) cv_watch_destroy(watch);
}

/* NOLINTNEXTLINE(readability-function-size): an array takes five to say, its bytes two */
caterva_status caterva_value_pack_array(const char *dtype, int ndim, const int64_t *shape,
                                        const void *items, size_t size,
                                        const caterva_convert_options *options, void **packed,
                                        size_t *packed_size, caterva_error *err)
{
    cv_watch own, *watch;
    if (!dtype || (!items && size > 0) || !packed || !packed_size)
        return cv_fail(err, CATERVA_EINVAL, -1,
                       "dtype, items, packed or packed_size is NULL");
    cv_typed typed = {.items = items};
    CV_TRY(cv_typed_set_dtype(&typed, dtype, strlen(dtype), err));
    if (typed.type.item_size == 0)
        return cv_fail(err, CATERVA_EDTYPE, -1, "items of dtype %.60s have no bytes", dtype);
    CV_TRY(set_shape(&typed, ndim, shape, size, err));
    CV_TRY(begin(options, &own, &watch, err));
    cv_packer p = {.status = CV_OK, .watch = watch};
    cv_buffer out = {0};
    cv_watch_set_steps(watch, (int64_t)size);
    cv_typed_pack(&typed, &p);
    cv_status status = cv_pack_finish(&p, &out, err);
    end(watch);
    return hand_out(status, &out, packed, packed_size, err);
}

caterva_status caterva_value_to_json(const void *packed, size_t size,
                                     const caterva_convert_options *options, char **json,
                                     size_t *json_size, caterva_error *err)
{
    cv_watch own, *watch;
    if ((!packed && size > 0) || !json || !json_size)
        return cv_fail(err, CATERVA_EINVAL, -1, "packed, json or json_size is NULL");
    cv_buffer out = {0};
    void *text;
    size_t n;
    CV_TRY(begin(options, &own, &watch, err));
    cv_status status = cv_json_write(packed, size, watch, &out, err);
    end(watch);
    if (status == CV_OK) status = cv_buffer_append(&out, "", 1, err);
    CV_TRY(hand_out(status, &out, &text, &n, err));
    *json = text;
    *json_size = n - 1;
    return CV_OK;
}

caterva_status caterva_value_from_json(const char *json, size_t json_size, const char *dtype,
                                       const caterva_convert_options *options, void **packed,
                                       size_t *packed_size, caterva_error *err)
{
    cv_watch own, *watch;
    if ((!json && json_size > 0) || !packed || !packed_size)
        return cv_fail(err, CATERVA_EINVAL, -1, "json, packed or packed_size is NULL");
    cv_buffer out = {0};
    CV_TRY(begin(options, &own, &watch, err));
    cv_status status = dtype ? cv_json_read_typed(json, json_size, dtype, watch, &out, err)
                             : cv_json_read(json, json_size, watch, &out, err);
    end(watch);
    return hand_out(status, &out, packed, packed_size, err);
}
