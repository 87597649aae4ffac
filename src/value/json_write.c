/* Room: value. MessagePack -> JSON. Two passes over the same tokens: the first proves that
 * the bytes are exactly one value, so that the second can print without checks.
 * Separators are those of Python's json.dumps: small objects are readable on one line. */
#include "value/json_write.h"

#include "format/values.h"
#include "value/base64.h"
#include "value/decimal.h"
#include "value/json_items.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char *const words[CV_N_WORDS] = {"$binary", "$complex", "$tuple", "$set",
                                              "$array",  "$map",     "$ext"};

cv_json_word cv_json_word_find(const void *text, size_t size)
{
    int i = 0;
    while (i < CV_N_WORDS && (strlen(words[i]) != size || memcmp(words[i], text, size) != 0))
        i++;
    return (cv_json_word)i;
}

typedef enum level_kind {
    LEVEL_TOP,
    LEVEL_LIST,
    LEVEL_WRAPPED,
    LEVEL_MAP,
    LEVEL_PAIRS
} level_kind;

typedef struct level {
    level_kind kind;
    bool has_one;  /* the next value needs a comma */
    uint64_t left; /* values still to come, keys included */
} level;

typedef struct printer {
    cv_tokens tokens;
    level stack[CV_VALUE_DEPTH + 1];
    int depth;
    cv_watch *watch;     /* or NULL */
    const uint8_t *told; /* up to here */
    cv_buffer *out;
    cv_status status; /* sticky */
    cv_error *err;
} printer;

enum { PIECE = 3 << 15 }; /* told at once; base64 has digits for three bytes */

static void tell_now(printer *p, const uint8_t *at)
{
    int64_t passed = at - p->told;
    p->told = at;
    if (p->status == CV_OK) p->status = cv_watch_step(p->watch, passed, p->err);
}

/* All up to `at` is printed. */
static void tell(printer *p, const uint8_t *at)
{
    if (p->watch && at - p->told >= PIECE) tell_now(p, at);
}

static void put_bytes(printer *p, const void *bytes, size_t size)
{
    if (p->status == CV_OK) p->status = cv_buffer_append(p->out, bytes, size, p->err);
}

static void put(printer *p, const char *text) { put_bytes(p, text, strlen(text)); }

/* How much of a text is quoted at once: no character is cut. */
static size_t piece_of(const uint8_t *text, size_t size)
{
    if (size <= PIECE) return size;
    for (size_t back = 0; back < 4; back++)
        if ((text[PIECE - back] & 0xc0) != 0x80) return PIECE - back;
    return PIECE; /* in the midst of no character */
}

static void put_quoted(printer *p, const uint8_t *text, size_t size)
{
    put(p, "\"");
    while (size > 0 && p->status == CV_OK) {
        size_t n = piece_of(text, size);
        p->status = cv_json_escape(text, n, p->out, p->err);
        text += n;
        size -= n;
        tell(p, text);
    }
    put(p, "\"");
}

static void put_base64(printer *p, const uint8_t *bytes, size_t size)
{
    put(p, "\"");
    while (size > 0 && p->status == CV_OK) {
        size_t n = size < PIECE ? size : PIECE;
        p->status = cv_base64_encode(bytes, n, p->out, p->err);
        bytes += n;
        size -= n;
        tell(p, bytes);
    }
    put(p, "\"");
}

static void put_binary(printer *p, const uint8_t *bytes, size_t size)
{
    put(p, "{\"$binary\": ");
    put_base64(p, bytes, size);
    put(p, "}");
}

/* ---- Scalars ------------------------------------------------------------ */

static void put_opaque(printer *p, const cv_token *t)
{
    char text[48];
    (void)snprintf(text, sizeof text, "{\"$ext\": %d, \"data\": ", t->ext_type);
    put(p, text);
    put_base64(p, t->bytes, (size_t)t->number);
    put(p, "}");
}

static void put_items(printer *p, const cv_typed *typed)
{
    if (!cv_json_has_items(typed)) {
        put_binary(p, typed->items, (size_t)(typed->n_items * typed->type.item_size));
        return;
    }
    put(p, "[");
    for (int64_t i = 0; i < typed->n_items && p->status == CV_OK; i++) {
        if (i > 0) put(p, ", ");
        p->status = cv_json_item(typed, i, p->out, p->err);
        tell(p, typed->items + i * typed->type.item_size);
    }
    put(p, "]");
}

static void put_array(printer *p, const cv_token *t)
{
    cv_typed typed;
    char text[32];
    if (!cv_typed_parse(t->bytes, (size_t)t->number, &typed)) {
        put_opaque(p, t);
        return;
    }
    put(p, "{\"$array\": {\"dtype\": ");
    put_quoted(p, (const uint8_t *)typed.dtype, typed.dtype_size);
    put(p, ", \"shape\": [");
    for (int d = 0; d < typed.ndim; d++) {
        (void)snprintf(text, sizeof text, "%s%" PRId64, d > 0 ? ", " : "", typed.shape[d]);
        put(p, text);
    }
    put(p, "], \"data\": ");
    put_items(p, &typed);
    put(p, "}}");
}

static void put_complex(printer *p, const cv_token *t)
{
    cv_typed typed = {.type = {.kind = 'c', .byte_order = '>', .item_size = 16},
                      .n_items = 1,
                      .items = t->bytes};
    if (t->number != 16 || !cv_json_has_items(&typed)) {
        put_opaque(p, t);
        return;
    }
    put(p, "{\"$complex\": ");
    if (p->status == CV_OK) p->status = cv_json_item(&typed, 0, p->out, p->err);
    put(p, "}");
}

static void put_ext(printer *p, const cv_token *t)
{
    switch (t->ext_type) {
    case CV_EXT_COMPLEX: put_complex(p, t); break;
    case CV_EXT_ARRAY: put_array(p, t); break;
    default: put_opaque(p, t); break;
    }
}

static void put_scalar(printer *p, const cv_token *t)
{
    char text[CV_DECIMAL_SIZE] = "null";
    bool negative;
    switch (t->kind) {
    case CV_TOKEN_BOOL:
        (void)snprintf(text, sizeof text, t->number ? "true" : "false");
        break;
    case CV_TOKEN_INT:
        negative = (int64_t)t->number < 0;
        (void)cv_decimal_print_whole(negative ? 0 - t->number : t->number, negative, text);
        break;
    case CV_TOKEN_UINT: (void)cv_decimal_print_whole(t->number, false, text); break;
    case CV_TOKEN_REAL: cv_decimal_print(t->real, text); break;
    case CV_TOKEN_TEXT: put_quoted(p, t->bytes, (size_t)t->number); return;
    case CV_TOKEN_BINARY: put_binary(p, t->bytes, (size_t)t->number); return;
    case CV_TOKEN_EXT: put_ext(p, t); return;
    default: break;
    }
    put(p, text);
}

/* ---- What has parts ----------------------------------------------------- */

/* Looks ahead: can the map's keys be those of an object, and would nobody take it for
 * another thing? */
static bool is_object(cv_tokens ahead, uint64_t pairs)
{
    for (uint64_t i = 0; i < pairs; i++) {
        cv_token key = cv_token_next(&ahead);
        if (key.kind != CV_TOKEN_TEXT) return false;
        if (i == 0 && cv_json_word_find(key.bytes, (size_t)key.number) != CV_N_WORDS)
            return false;
        cv_tokens_skip(&ahead);
    }
    return true;
}

static bool is_tuple(cv_tokens ahead, const cv_token *list)
{
    cv_token first = cv_token_next(&ahead);
    return list->number > 0 && cv_token_is_text(&first, CV_TUPLE_MARK);
}

static void push(printer *p, level_kind kind, uint64_t left)
{
    p->stack[++p->depth] = (level){.kind = kind, .left = left};
}

static void open_list(printer *p, const cv_token *t)
{
    if (!is_tuple(p->tokens, t)) {
        put(p, "[");
        push(p, LEVEL_LIST, t->number);
        return;
    }
    put(p, "{\"$tuple\": [");
    (void)cv_token_next(&p->tokens);
    push(p, LEVEL_WRAPPED, t->number - 1);
}

static void open_map(printer *p, const cv_token *t)
{
    bool plain = is_object(p->tokens, t->number);
    put(p, plain ? "{" : "{\"$map\": [");
    push(p, plain ? LEVEL_MAP : LEVEL_PAIRS, 2 * t->number);
}

/* What stands behind its members stands behind the set, cv_is_value has seen to that. */
static void open_set(printer *p, const cv_token *t)
{
    p->tokens.at = t->bytes;
    cv_token list = cv_token_next(&p->tokens);
    put(p, "{\"$set\": [");
    push(p, LEVEL_WRAPPED, list.number);
}

static void close_level(printer *p)
{
    static const char *const closes[] = {
        [LEVEL_LIST] = "]", [LEVEL_WRAPPED] = "]}", [LEVEL_MAP] = "}", [LEVEL_PAIRS] = "]}"};
    put(p, closes[p->stack[p->depth--].kind]);
}

/* What stands in front of a value: a comma, the bracket of a pair. */
static void put_before(printer *p, const level *l, bool is_key)
{
    bool is_map = l->kind >= LEVEL_MAP;
    if (l->has_one && (!is_map || is_key)) put(p, ", ");
    if (is_map && !is_key) put(p, l->kind == LEVEL_MAP ? ": " : ", ");
    if (l->kind == LEVEL_PAIRS && is_key) put(p, "[");
}

/* The value of a pair is complete. */
static void close_pair(printer *p)
{
    const level *l = &p->stack[p->depth];
    if (l->kind == LEVEL_PAIRS && l->left % 2 == 0 && l->has_one) put(p, "]");
}

static void put_token(printer *p)
{
    level *l = &p->stack[p->depth];
    bool is_key = l->kind >= LEVEL_MAP && l->left % 2 == 0;
    put_before(p, l, is_key);
    l->left--;
    l->has_one = true;
    cv_token t = cv_token_next(&p->tokens);
    if (t.kind == CV_TOKEN_MAP) {
        open_map(p, &t);
    } else if (t.kind == CV_TOKEN_LIST) {
        open_list(p, &t);
    } else if (t.kind == CV_TOKEN_EXT && t.ext_type == CV_EXT_SET) {
        open_set(p, &t);
    } else {
        put_scalar(p, &t);
        close_pair(p);
    }
}

static void put_value(printer *p)
{
    p->stack[0] = (level){.kind = LEVEL_TOP, .left = 1};
    while (p->status == CV_OK) {
        while (p->depth > 0 && p->stack[p->depth].left == 0) {
            close_level(p);
            close_pair(p);
        }
        if (p->depth == 0 && p->stack[0].left == 0) return;
        put_token(p);
        tell(p, p->tokens.at);
        if (p->tokens.bad) tell_now(p, p->tokens.at); /* they are good: it was stopped */
    }
}

cv_status cv_json_write(const void *value, size_t size, cv_watch *watch, cv_buffer *out,
                        cv_error *err)
{
    printer p = {.tokens = cv_tokens_of(value, size), .watch = watch, .out = out, .err = err};
    const uint8_t *start = p.tokens.at;
    p.told = start;
    p.tokens.watch = watch;
    cv_watch_set_steps(watch, (int64_t)size);
    if (cv_tokens_are_value(p.tokens))
        put_value(&p);
    else
        put_binary(&p, start, size);
    if (watch && size > 0) tell_now(&p, start + size);
    return p.status;
}
