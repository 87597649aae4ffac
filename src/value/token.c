/* Room: value. MessagePack read token by token. Promises: no byte beyond the end is looked
 * at, and a count that the bytes cannot hold is noticed before anybody believes it. */
#include "value/token.h"

#include <string.h>

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

/* How many values follow a token inside it: a map has two for each pair. */
static uint64_t parts_of(const cv_token *token)
{
    if (token->kind < CV_TOKEN_LIST) return 0;
    return token->kind == CV_TOKEN_MAP ? 2 * token->number : token->number;
}

/* Each part takes a byte at least. */
static cv_token parts_token(cv_tokens *t, cv_token_kind kind, uint64_t n)
{
    cv_token token = {.kind = kind, .number = n};
    if (parts_of(&token) > (uint64_t)(t->end - t->at)) t->bad = true;
    return token;
}

/* Types 0xc0 to 0xdf, whose size stands in the type byte's low bits. */
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

/* Nothing is counted: what is done with the tokens is. */
static void ask(cv_tokens *t)
{
    enum { EACH = 1 << 16 }; /* a fraction of a millisecond */
    if (++t->n % EACH == 0 && cv_watch_step(t->watch, 0, NULL) != CV_OK) t->bad = true;
}

cv_token cv_token_next(cv_tokens *t)
{
    if (t->watch) ask(t);
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
    uint64_t left; /* values still to come, keys included */
    bool is_map;
    const uint8_t *end; /* of a set: where its last member ends; else NULL */
} level;

/* The list of a set's members: tokens go on inside it. */
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

bool cv_tokens_are_value(cv_tokens t)
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
    return cv_tokens_are_value(cv_tokens_of(bytes, size));
}
