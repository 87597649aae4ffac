/* Room: format. Reads MessagePack values of attributes, including NumPy arrays, token by token, and
 * writes them in the shortest form. Bytes are not trusted. */
#include "format/values.h"

#include "base/arith.h"
#include "format/dtype.h"

#include <stdio.h>
#include <string.h>

/* ---- Reading token by token ----
 *
 * Never reads beyond the end. A count that is too large for the bytes fails before it is used. */

cv_tokens cv_tokens_of(const void *bytes, size_t size)
{
    static const uint8_t nothing;
    const uint8_t *at = bytes ? bytes : &nothing;
    return (cv_tokens){.at = at, .end = at + (bytes ? size : 0)};
}

static const uint8_t *take(cv_tokens *t, uint64_t size)
{
    if (t->bad || size > (uint64_t)(t->end - t->at)) {
        t->bad = true;
        return NULL;
    }
    const uint8_t *bytes = t->at;
    t->at += size;
    return bytes;
}

static uint64_t take_uint(cv_tokens *t, int size)
{
    const uint8_t *bytes = take(t, (uint64_t)size);
    uint64_t value = 0;
    for (int i = 0; bytes && i < size; i++) value = value << 8 | bytes[i];
    return value;
}

static cv_token bytes_token(cv_tokens *t, cv_token_kind kind, uint64_t size)
{
    cv_token token = {.kind = kind, .number = size};
    if (kind == CV_TOKEN_EXT) token.ext_type = (int8_t)take_uint(t, 1);
    token.bytes = take(t, size);
    return token;
}

static cv_token real_token(cv_tokens *t, int size)
{
    cv_token token = {.kind = CV_TOKEN_REAL};
    uint64_t bits = take_uint(t, size);
    uint32_t half = (uint32_t)bits;
    float single;
    memcpy(&single, &half, sizeof single);
    memcpy(&token.real, &bits, sizeof token.real);
    if (size == 4) token.real = (double)single;
    return token;
}

static cv_token signed_token(cv_tokens *t, int size)
{
    uint64_t sign = (uint64_t)1 << (size * 8 - 1);
    return (cv_token){.kind = CV_TOKEN_INT, .number = (take_uint(t, size) ^ sign) - sign};
}

static uint64_t parts_of(const cv_token *token)
{
    if (token->kind < CV_TOKEN_LIST) return 0;
    return token->kind == CV_TOKEN_MAP ? 2 * token->number : token->number;
}

/* Returns the token of a list or map. Fails if it has more parts than bytes follow. */
static cv_token parts_token(cv_tokens *t, cv_token_kind kind, uint64_t n)
{
    cv_token token = {.kind = kind, .number = n};
    if (parts_of(&token) > (uint64_t)(t->end - t->at)) t->bad = true;
    return token;
}

/* Reads types 0xc0 to 0xdf, whose low bits encode the size. */
static cv_token sized_token(cv_tokens *t, uint8_t type)
{
    switch (type) {
    case 0xc0: return (cv_token){.kind = CV_TOKEN_NIL};
    case 0xc2:
    case 0xc3: return (cv_token){.kind = CV_TOKEN_BOOL, .number = type & 1};
    case 0xc4:
    case 0xc5:
    case 0xc6: return bytes_token(t, CV_TOKEN_BINARY, take_uint(t, 1 << (type - 0xc4)));
    case 0xc7:
    case 0xc8:
    case 0xc9: return bytes_token(t, CV_TOKEN_EXT, take_uint(t, 1 << (type - 0xc7)));
    case 0xca:
    case 0xcb: return real_token(t, type == 0xca ? 4 : 8);
    case 0xcc:
    case 0xcd:
    case 0xce:
    case 0xcf:
        return (cv_token){.kind = CV_TOKEN_UINT, .number = take_uint(t, 1 << (type - 0xcc))};
    case 0xd0:
    case 0xd1:
    case 0xd2:
    case 0xd3: return signed_token(t, 1 << (type - 0xd0));
    case 0xd4:
    case 0xd5:
    case 0xd6:
    case 0xd7:
    case 0xd8: return bytes_token(t, CV_TOKEN_EXT, (uint64_t)1 << (type - 0xd4));
    case 0xd9:
    case 0xda:
    case 0xdb: return bytes_token(t, CV_TOKEN_TEXT, take_uint(t, 1 << (type - 0xd9)));
    case 0xdc:
    case 0xdd: return parts_token(t, CV_TOKEN_LIST, take_uint(t, type == 0xdc ? 2 : 4));
    case 0xde:
    case 0xdf: return parts_token(t, CV_TOKEN_MAP, take_uint(t, type == 0xde ? 2 : 4));
    default: t->bad = true; return (cv_token){.kind = CV_TOKEN_NIL};
    }
}

static cv_token read_token(cv_tokens *t)
{
    uint8_t type = (uint8_t)take_uint(t, 1);
    if (type < 0x80) return (cv_token){.kind = CV_TOKEN_UINT, .number = type};
    if (type < 0x90) return parts_token(t, CV_TOKEN_MAP, type & 15);
    if (type < 0xa0) return parts_token(t, CV_TOKEN_LIST, type & 15);
    if (type < 0xc0) return bytes_token(t, CV_TOKEN_TEXT, type & 31);
    if (type < 0xe0) return sized_token(t, type);
    return (cv_token){.kind = CV_TOKEN_INT, .number = (uint64_t)(int64_t)(int8_t)type};
}

/* Checks for cancellation. Counts no progress: the user of the tokens does. */
static void check_watch(cv_tokens *t)
{
    enum { EACH = 1 << 16 }; /* tokens; they take a fraction of a millisecond */
    if (++t->n % EACH == 0 && cv_watch_step(t->watch, 0, NULL) != CV_OK) t->bad = true;
}

cv_token cv_token_next(cv_tokens *t)
{
    if (t->watch) check_watch(t);
    cv_token token = read_token(t);
    return t->bad ? (cv_token){.kind = CV_TOKEN_NIL} : token;
}

void cv_tokens_skip(cv_tokens *t)
{
    for (uint64_t left = 1; left > 0 && !t->bad; left--) {
        cv_token token = cv_token_next(t);
        left += parts_of(&token);
    }
}

bool cv_token_is_text(const cv_token *token, const char *text)
{
    size_t size = strlen(text);
    return token->kind == CV_TOKEN_TEXT && token->number == size &&
           memcmp(token->bytes, text, size) == 0;
}

/* ---- One whole value ---------------------------------------------------- */

typedef struct level {
    uint64_t left; /* values left, including keys */
    bool is_map;
    const uint8_t *end; /* end of a set's last member; NULL for a list or map */
} level;

/* Enters the list of a set's members: the next tokens are the members. */
static level enter_set(cv_tokens *t, const cv_token *set)
{
    const uint8_t *end = t->at;
    t->at = set->bytes;
    cv_token list = cv_token_next(t);
    if (list.kind != CV_TOKEN_LIST) t->bad = true;
    return (level){.left = list.number, .end = end};
}

static bool has_level(const cv_token *token)
{
    return token->kind >= CV_TOKEN_LIST ||
           (token->kind == CV_TOKEN_EXT && token->ext_type == CV_EXT_SET);
}

static level enter(cv_tokens *t, const cv_token *token)
{
    if (token->kind == CV_TOKEN_EXT) return enter_set(t, token);
    return (level){.left = parts_of(token), .is_map = token->kind == CV_TOKEN_MAP};
}

static bool tokens_are_value(cv_tokens t)
{
    level stack[CV_VALUE_DEPTH + 1] = {{.left = 1}};
    int depth = 0;
    while (depth >= 0 && !t.bad) {
        level *l = &stack[depth];
        if (l->left == 0) {
            if (l->end && l->end != t.at) return false;
            depth--;
            continue;
        }
        bool is_key = l->is_map && l->left % 2 == 0;
        l->left--;
        cv_token token = cv_token_next(&t);
        if (t.bad) return false;
        if (!has_level(&token)) continue;
        if (is_key || depth == CV_VALUE_DEPTH) return false;
        stack[++depth] = enter(&t, &token);
    }
    return !t.bad && t.at == t.end;
}

bool cv_is_value(const void *bytes, size_t size)
{
    return tokens_are_value(cv_tokens_of(bytes, size));
}

/* ---- Writing values ----
 *
 * Heads with counts that are known only at the end are stored separately, and inserted by
 * cv_pack_finish. */

enum { HEAD_BYTES = 10 }; /* maximum: an ext32 for a set, and a list for its members */

static bool failed(const cv_packer *p) { return p->status != CV_OK || p->too_deep; }

static void append(cv_packer *p, const void *bytes, size_t size)
{
    if (!failed(p)) p->status = cv_buffer_append(&p->body, bytes, size, &p->error);
}

/* Stores a type byte and a number of `size` bytes, highest first. */
static size_t put_number(uint8_t *to, uint8_t type, uint64_t value, int size)
{
    to[0] = type;
    for (int i = 0; i < size; i++) to[1 + i] = (uint8_t)(value >> (8 * (size - 1 - i)));
    return 1 + (size_t)size;
}

static void append_number(cv_packer *p, uint8_t type, uint64_t value, int size)
{
    uint8_t bytes[9];
    append(p, bytes, put_number(bytes, type, value, size));
}

static void count_value(cv_packer *p)
{
    if (p->depth > 0 && !failed(p)) p->heads[p->open[p->depth - 1]].count++;
}

/* Stores a count whose types for 1, 2 and 4 bytes are consecutive. */
static size_t put_count(uint8_t *to, uint8_t type, uint64_t count)
{
    if (count <= UINT8_MAX) return put_number(to, type, count, 1);
    if (count <= UINT16_MAX) return put_number(to, type + 1, count, 2);
    return put_number(to, type + 2, count, 4);
}

static void check_count(cv_packer *p, uint64_t count)
{
    if (count > UINT32_MAX && !failed(p))
        p->status = cv_fail(&p->error, CATERVA_EINVAL, -1,
                            "a value of %llu parts, MessagePack allows %llu",
                            (unsigned long long)count, (unsigned long long)UINT32_MAX);
}

/* ---- Scalars ------------------------------------------------------------ */

void cv_pack_nil(cv_packer *p)
{
    count_value(p);
    append(p, "\xc0", 1);
}

void cv_pack_bool(cv_packer *p, bool value)
{
    count_value(p);
    append(p, value ? "\xc3" : "\xc2", 1);
}

void cv_pack_uint(cv_packer *p, uint64_t value)
{
    count_value(p);
    if (value < 0x80)
        append(p, &(uint8_t){(uint8_t)value}, 1);
    else if (value <= UINT8_MAX)
        append_number(p, 0xcc, value, 1);
    else if (value <= UINT16_MAX)
        append_number(p, 0xcd, value, 2);
    else if (value <= UINT32_MAX)
        append_number(p, 0xce, value, 4);
    else
        append_number(p, 0xcf, value, 8);
}

void cv_pack_int(cv_packer *p, int64_t value)
{
    uint64_t bits = (uint64_t)value;
    if (value >= 0) {
        cv_pack_uint(p, bits);
        return;
    }
    count_value(p);
    if (value >= -32)
        append(p, &(uint8_t){(uint8_t)bits}, 1);
    else if (value >= INT8_MIN)
        append_number(p, 0xd0, bits, 1);
    else if (value >= INT16_MIN)
        append_number(p, 0xd1, bits, 2);
    else if (value >= INT32_MIN)
        append_number(p, 0xd2, bits, 4);
    else
        append_number(p, 0xd3, bits, 8);
}

void cv_pack_real(cv_packer *p, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    count_value(p);
    append_number(p, 0xcb, bits, 8);
}

/* ---- Bytes -------------------------------------------------------------- */

void cv_pack_text(cv_packer *p, const void *text, size_t size)
{
    uint8_t head[5];
    count_value(p);
    check_count(p, size);
    if (size < 32) {
        head[0] = (uint8_t)(0xa0 | size);
        append(p, head, 1);
    } else {
        append(p, head, put_count(head, 0xd9, size));
    }
    append(p, text, size);
}

/* Appends bytes in pieces, with progress, if there is a watch. */
static void append_with_progress(cv_packer *p, const uint8_t *bytes, size_t size)
{
    enum { PIECE = 1 << 20 };
    if (!failed(p) && size > 0)
        p->status = cv_buffer_reserve(&p->body, p->body.size + size, &p->error);
    while (size > 0 && !failed(p)) {
        size_t n = size < PIECE || !p->watch ? size : PIECE;
        append(p, bytes, n);
        bytes += n;
        size -= n;
        if (!failed(p) && (!p->only_asks || n == PIECE))
            p->status = cv_watch_step(p->watch, p->only_asks ? 0 : (int64_t)n, &p->error);
    }
}

static void pack_binary_head(cv_packer *p, size_t size)
{
    uint8_t head[5];
    count_value(p);
    check_count(p, size);
    append(p, head, put_count(head, 0xc4, size));
}

void cv_pack_binary(cv_packer *p, const void *bytes, size_t size)
{
    pack_binary_head(p, size);
    append_with_progress(p, bytes, size);
}

static size_t put_ext(uint8_t *to, int type, uint64_t size)
{
    static const uint8_t short_forms[] = {
        [1] = 0xd4, [2] = 0xd5, [4] = 0xd6, [8] = 0xd7, [16] = 0xd8};
    size_t n = 1;
    if (size < sizeof short_forms && short_forms[size])
        to[0] = short_forms[size];
    else
        n = put_count(to, 0xc7, size);
    to[n] = (uint8_t)type;
    return n + 1;
}

/* Packs an extension of two pieces. Reports progress for the second piece. */
static void pack_ext_of_two(cv_packer *p, int type, const cv_buffer *first, const void *bytes,
                            size_t size)
{
    uint8_t head[6];
    size_t before = first ? first->size : 0;
    count_value(p);
    check_count(p, (uint64_t)before + size);
    append(p, head, put_ext(head, type, (uint64_t)before + size));
    if (first) append(p, first->data, before);
    append_with_progress(p, bytes, size);
}

void cv_pack_ext(cv_packer *p, int type, const void *bytes, size_t size)
{
    pack_ext_of_two(p, type, NULL, bytes, size);
}

void cv_pack_value(cv_packer *p, const void *bytes, size_t size)
{
    count_value(p);
    append(p, bytes, size);
}

/* ---- Containers --------------------------------------------------------- */

static bool reserve_head(cv_packer *p)
{
    if (p->n_heads < p->heads_capacity) return true;
    size_t old = p->heads_capacity * sizeof p->heads[0];
    size_t n = p->heads_capacity > 0 ? p->heads_capacity * 2 : 16;
    cv_pack_head *more = cv_realloc(p->heads, old, n * sizeof p->heads[0]);
    if (!more) {
        p->status = cv_fail_memory(&p->error, n * sizeof p->heads[0], "a value");
        return false;
    }
    p->heads = more;
    p->heads_capacity = n;
    return true;
}

void cv_pack_begin(cv_packer *p, cv_pack_kind kind)
{
    if (p->depth == CV_VALUE_DEPTH) p->too_deep = true;
    count_value(p);
    if (failed(p) || !reserve_head(p)) return;
    p->heads[p->n_heads] = (cv_pack_head){.kind = kind, .at = p->body.size};
    p->open[p->depth++] = p->n_heads++;
}

void cv_pack_end(cv_packer *p)
{
    if (failed(p)) return;
    cv_pack_head *head = &p->heads[p->open[--p->depth]];
    head->end = p->body.size;
    head->next = p->n_heads;
    check_count(p, head->count);
}

void cv_pack_free(cv_packer *p)
{
    cv_buffer_free(&p->body);
    cv_free(p->heads);
    *p = (cv_packer){.status = CV_OK};
}

/* ---- The result --------------------------------------------------------- */

static size_t put_list(uint8_t *to, uint64_t count)
{
    if (count > 15)
        return put_number(to, count > UINT16_MAX ? 0xdd : 0xdc, count,
                          count > UINT16_MAX ? 4 : 2);
    to[0] = (uint8_t)(0x90 | count);
    return 1;
}

/* Stores a head. `inside` is the number of bytes of a set's members. */
static size_t put_head(uint8_t *to, const cv_pack_head *head, uint64_t inside)
{
    uint64_t pairs = head->count / 2;
    uint8_t list[5];
    size_t n, size;
    switch (head->kind) {
    case CV_PACK_LIST: return put_list(to, head->count);
    case CV_PACK_MAP:
        if (pairs > 15)
            return put_number(to, pairs > UINT16_MAX ? 0xdf : 0xde, pairs,
                              pairs > UINT16_MAX ? 4 : 2);
        to[0] = (uint8_t)(0x80 | pairs);
        return 1;
    default:
        size = put_list(list, head->count);
        n = put_ext(to, CV_EXT_SET, inside + size);
        memcpy(to + n, list, size);
        return n + size;
    }
}

/* Sets sizes[i] to the bytes of the heads from i on. Works backwards, because the head of a set
 * depends on the heads inside the set. */
static void measure_heads(const cv_packer *p, uint64_t *sizes)
{
    uint8_t scratch[16];
    _Static_assert(sizeof scratch >= HEAD_BYTES + 1, "a head fits");
    sizes[p->n_heads] = 0;
    for (size_t i = p->n_heads; i-- > 0;) {
        const cv_pack_head *h = &p->heads[i];
        uint64_t inside = h->end - h->at + sizes[i + 1] - sizes[h->next];
        sizes[i] = sizes[i + 1] + put_head(scratch, h, inside);
    }
}

/* Copies the body to `to`, and inserts each head before its contents. */
static void merge(const cv_packer *p, const uint64_t *sizes, uint8_t *to)
{
    size_t from = 0;
    for (size_t i = 0; i <= p->n_heads; i++) {
        const cv_pack_head *h = &p->heads[i];
        size_t until = i < p->n_heads ? h->at : p->body.size;
        if (until > from) memcpy(to, p->body.data + from, until - from);
        to += until - from;
        from = until;
        if (i == p->n_heads) break;
        to += put_head(to, h, h->end - h->at + sizes[i + 1] - sizes[h->next]);
    }
}

static cv_status finish(cv_packer *p, cv_buffer *out, cv_error *err)
{
    if (p->n_heads == 0 && out->size == 0) {
        const cv_buffer body = p->body;
        p->body = *out;
        *out = body;
        return CV_OK;
    }
    if (p->n_heads == 0) return cv_buffer_append(out, p->body.data, p->body.size, err);
    size_t old = out->size, wanted = (p->n_heads + 1) * sizeof(uint64_t);
    uint64_t *sizes = cv_malloc(wanted);
    if (!sizes) return cv_fail_memory(err, wanted, "a value");
    measure_heads(p, sizes);
    cv_status status = CV_OK;
    if (p->body.size + sizes[0] > UINT32_MAX)
        status = cv_fail(
            err, CATERVA_EINVAL, -1, "a value of %llu bytes, the maximum is %llu",
            (unsigned long long)(p->body.size + sizes[0]), (unsigned long long)UINT32_MAX);
    if (status == CV_OK)
        status = cv_buffer_resize(out, old + p->body.size + (size_t)sizes[0], err);
    if (status == CV_OK) merge(p, sizes, out->data + old);
    cv_free(sizes);
    return status;
}

cv_status cv_pack_finish(cv_packer *p, cv_buffer *out, cv_error *err)
{
    cv_status status = p->status;
    if (status != CV_OK && err) *err = p->error;
    if (status == CV_OK && p->too_deep)
        status =
            cv_fail(err, CATERVA_EINVAL, -1, "a value nested deeper than %d", CV_VALUE_DEPTH);
    if (status == CV_OK) status = finish(p, out, err);
    cv_pack_free(p);
    return status;
}

/* ---- Arrays of numbers: reading ------------------------------------------ */

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

/* Requires keys in python-blosc2's order. Refuses items of zero bytes, because any number of them
 * would fit. */
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

/* ---- Arrays of numbers: writing ------------------------------------------ */

static int describe(const caterva_dtype *type, char *text, size_t size)
{
    long long n = type->kind == 'U' ? type->item_size / 4 : type->item_size;
    bool has_unit = type->unit[0] != '\0';
    return snprintf(text, size, "%c%c%lld%s%s%s", type->byte_order, type->kind, n,
                    has_unit ? "[" : "", type->unit, has_unit ? "]" : "");
}

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
    pack_binary_head(p, size);
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
        pack_ext_of_two(p, CV_EXT_ARRAY, &map, typed->items, size);
    else if (p->status == CV_OK)
        p->status = status;
    cv_buffer_free(&map);
}
