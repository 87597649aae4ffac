/* Room: value. Arrays of NumPy inside values, bytes <-> struct. Does not look at items. */
#include "value/typed.h"

#include "base/arith.h"
#include "format/dtype.h"

#include <stdio.h>
#include <string.h>

/* ---- Reading ------------------------------------------------------------ */

static bool read_dtype(cv_tokens *t, cv_typed *out)
{
    cv_token map = cv_token_next(t), key = cv_token_next(t), text = cv_token_next(t);
    if (t->bad || map.kind != CV_TOKEN_MAP || map.number != 1) return false;
    if (!cv_token_is_text(&key, "str") || text.kind != CV_TOKEN_TEXT) return false;
    return cv_typed_set_dtype(out, (const char *)text.bytes, (size_t)text.number, NULL) ==
           CV_OK;
}

static bool read_shape(cv_tokens *t, cv_typed *out)
{
    cv_token list = cv_token_next(t);
    if (list.kind != CV_TOKEN_LIST || list.number > CATERVA_MAX_DIMS) return false;
    out->ndim = (int)list.number;
    for (int d = 0; d < out->ndim; d++) {
        cv_token n = cv_token_next(t);
        if (n.kind != CV_TOKEN_UINT || n.number > INT64_MAX) return false;
        out->shape[d] = (int64_t)n.number;
    }
    return true;
}

bool cv_typed_count(cv_typed *typed, int64_t *size)
{
    typed->n_items = 1;
    for (int d = 0; d < typed->ndim; d++)
        if (typed->shape[d] == 0) typed->n_items = 0;
    for (int d = 0; d < typed->ndim && typed->n_items > 0; d++)
        if (typed->shape[d] < 0 ||
            !cv_mul_i64(typed->n_items, typed->shape[d], &typed->n_items))
            return false;
    return cv_mul_i64(typed->n_items, typed->type.item_size, size);
}

/* Keys in the order of python-blosc2, which is the only one. Items of no bytes could be
 * any number of them. */
bool cv_typed_parse(const uint8_t *payload, size_t size, cv_typed *out)
{
    *out = (cv_typed){.ndim = 0};
    cv_tokens t = cv_tokens_of(payload, size);
    cv_token map = cv_token_next(&t), key = cv_token_next(&t);
    if (map.kind != CV_TOKEN_MAP || map.number != 3 || !cv_token_is_text(&key, "dtype"))
        return false;
    if (!read_dtype(&t, out) || out->type.item_size == 0) return false;
    key = cv_token_next(&t);
    if (!cv_token_is_text(&key, "shape") || !read_shape(&t, out)) return false;
    key = cv_token_next(&t);
    cv_token data = cv_token_next(&t);
    int64_t bytes;
    if (t.bad || t.at != t.end || !cv_token_is_text(&key, "data") ||
        data.kind != CV_TOKEN_BINARY || !cv_typed_count(out, &bytes))
        return false;
    out->items = data.bytes;
    return (uint64_t)bytes == data.number;
}

cv_status cv_typed_set_dtype(cv_typed *typed, const char *dtype, size_t size, cv_error *err)
{
    typed->dtype = dtype;
    typed->dtype_size = size;
    typed->type = (caterva_dtype){.item_size = 0};
    cv_error why;
    if (size > 0 && cv_dtype_parse_scalar(dtype, size, 1, &typed->type, &why) == CV_OK)
        return CV_OK;
    return cv_fail(err, CATERVA_EDTYPE, -1, "\"%.*s\" is not the dtype of a scalar",
                   size < 60 ? (int)size : 60, dtype);
}

/* ---- Writing ------------------------------------------------------------ */

/* What NumPy's dtype.str would say. */
static int describe(const caterva_dtype *type, char *text, size_t size)
{
    long long n = type->kind == 'U' ? type->item_size / 4 : type->item_size;
    bool has_unit = type->unit[0] != '\0';
    return snprintf(text, size, "%c%c%lld%s%s%s", type->byte_order, type->kind, n,
                    has_unit ? "[" : "", type->unit, has_unit ? "]" : "");
}

/* All but the items, which come last. */
static void pack_map(const cv_typed *typed, size_t size, cv_packer *p)
{
    char text[64];
    cv_pack_begin(p, CV_PACK_MAP);
    cv_pack_text(p, "dtype", 5);
    cv_pack_begin(p, CV_PACK_MAP);
    cv_pack_text(p, "str", 3);
    cv_pack_text(p, text, (size_t)describe(&typed->type, text, sizeof text));
    cv_pack_end(p);
    cv_pack_text(p, "shape", 5);
    cv_pack_begin(p, CV_PACK_LIST);
    for (int d = 0; d < typed->ndim; d++) cv_pack_int(p, typed->shape[d]);
    cv_pack_end(p);
    cv_pack_text(p, "data", 4);
    cv_pack_binary_head(p, size);
    cv_pack_end(p);
}

void cv_typed_pack(const cv_typed *typed, cv_packer *p)
{
    cv_packer inner = {.status = CV_OK};
    cv_buffer map = {0};
    size_t size = (size_t)(typed->n_items * typed->type.item_size);
    pack_map(typed, size, &inner);
    cv_status status = cv_pack_finish(&inner, &map, &p->error);
    if (status == CV_OK)
        cv_pack_ext_of_two(p, CV_EXT_ARRAY, &map, typed->items, size);
    else if (p->status == CV_OK)
        p->status = status;
    cv_buffer_free(&map);
}
