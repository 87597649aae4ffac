/* Room: cli/formats. One MessagePack value, as python-blosc2 keeps it in an attribute,
 * turned into JSON. Two passes over the same tokens: the first proves that the
 * bytes are exactly one value, so that the second can print without checks. */
#include "formats/json.h"

#include <string.h>

#define MAX_DEPTH 64

typedef enum token_kind {
    TOKEN_NIL,
    TOKEN_BOOL,
    TOKEN_INT,
    TOKEN_UINT,
    TOKEN_REAL,
    TOKEN_TEXT,
    TOKEN_BINARY,
    TOKEN_EXT,
    TOKEN_ARRAY,
    TOKEN_MAP
} token_kind;

typedef struct token {
    token_kind kind;
    uint64_t number; /* value as bits; of arrays, maps and bytes the count */
    double real;
    int ext_type;
    const uint8_t *bytes; /* text, binary, ext */
} token;

typedef struct reader {
    const uint8_t *at, *end;
    bool bad; /* sticky: once set, reads give zeros */
} reader;

static const uint8_t *take(reader *r, uint64_t size)
{
    if (r->bad || size > (uint64_t)(r->end - r->at)) {
        r->bad = true;
        return NULL;
    }
    const uint8_t *bytes = r->at;
    r->at += size;
    return bytes;
}

static uint64_t take_uint(reader *r, int size)
{
    const uint8_t *bytes = take(r, (uint64_t)size);
    uint64_t value = 0;
    for (int i = 0; bytes && i < size; i++) value = value << 8 | bytes[i];
    return value;
}

static token bytes_token(reader *r, token_kind kind, uint64_t size)
{
    token t = {.kind = kind, .number = size};
    if (kind == TOKEN_EXT) t.ext_type = (int8_t)take_uint(r, 1);
    t.bytes = take(r, size);
    return t;
}

static token real_token(reader *r, int size)
{
    token t = {.kind = TOKEN_REAL};
    uint64_t bits = take_uint(r, size);
    uint32_t half = (uint32_t)bits;
    float single;
    memcpy(&single, &half, sizeof single);
    memcpy(&t.real, &bits, sizeof t.real);
    if (size == 4) t.real = (double)single;
    return t;
}

static token signed_token(reader *r, int size)
{
    uint64_t sign = (uint64_t)1 << (size * 8 - 1);
    return (token){.kind = TOKEN_INT, .number = (take_uint(r, size) ^ sign) - sign};
}

/* Types 0xc0 to 0xdf, whose size stands in the type byte's low bits. */
static token sized_token(reader *r, uint8_t type)
{
    switch (type) {
    case 0xc0: return (token){.kind = TOKEN_NIL};
    case 0xc2:
    case 0xc3: return (token){.kind = TOKEN_BOOL, .number = type & 1};
    case 0xc4:
    case 0xc5:
    case 0xc6: return bytes_token(r, TOKEN_BINARY, take_uint(r, 1 << (type - 0xc4)));
    case 0xc7:
    case 0xc8:
    case 0xc9: return bytes_token(r, TOKEN_EXT, take_uint(r, 1 << (type - 0xc7)));
    case 0xca:
    case 0xcb: return real_token(r, type == 0xca ? 4 : 8);
    case 0xcc:
    case 0xcd:
    case 0xce:
    case 0xcf: return (token){.kind = TOKEN_UINT, .number = take_uint(r, 1 << (type - 0xcc))};
    case 0xd0:
    case 0xd1:
    case 0xd2:
    case 0xd3: return signed_token(r, 1 << (type - 0xd0));
    case 0xd4:
    case 0xd5:
    case 0xd6:
    case 0xd7:
    case 0xd8: return bytes_token(r, TOKEN_EXT, (uint64_t)1 << (type - 0xd4));
    case 0xd9:
    case 0xda:
    case 0xdb: return bytes_token(r, TOKEN_TEXT, take_uint(r, 1 << (type - 0xd9)));
    case 0xdc:
    case 0xdd:
        return (token){.kind = TOKEN_ARRAY, .number = take_uint(r, type == 0xdc ? 2 : 4)};
    case 0xde:
    case 0xdf:
        return (token){.kind = TOKEN_MAP, .number = take_uint(r, type == 0xde ? 2 : 4)};
    default: r->bad = true; return (token){.kind = TOKEN_NIL};
    }
}

static token next_token(reader *r)
{
    uint8_t type = (uint8_t)take_uint(r, 1);
    if (type < 0x80) return (token){.kind = TOKEN_UINT, .number = type};
    if (type < 0x90) return (token){.kind = TOKEN_MAP, .number = type & 15};
    if (type < 0xa0) return (token){.kind = TOKEN_ARRAY, .number = type & 15};
    if (type < 0xc0) return bytes_token(r, TOKEN_TEXT, type & 31);
    if (type < 0xe0) return sized_token(r, type);
    return (token){.kind = TOKEN_INT, .number = (uint64_t)(int64_t)(int8_t)type};
}

typedef struct level {
    uint64_t left; /* values still to come, keys included */
    bool is_map;
} level;

static level level_of(const token *t)
{
    bool is_map = t->kind == TOKEN_MAP;
    return (level){.left = is_map ? 2 * t->number : t->number, .is_map = is_map};
}

/* True when the bytes are exactly one value, nested at most MAX_DEPTH deep, and
 * no map has an array or a map as key. */
static bool is_one_value(const void *bytes, size_t size)
{
    reader r = {bytes, (const uint8_t *)bytes + size, false};
    level stack[MAX_DEPTH + 1] = {{.left = 1}};
    int depth = 0;
    while (depth >= 0) {
        level *l = &stack[depth];
        if (l->left == 0) {
            depth--;
            continue;
        }
        bool is_key = l->is_map && l->left % 2 == 0;
        l->left--;
        token t = next_token(&r);
        if (r.bad) return false;
        if (t.kind < TOKEN_ARRAY) continue;
        if (is_key || depth == MAX_DEPTH) return false;
        stack[++depth] = level_of(&t);
    }
    return r.at == r.end;
}

static void print_bytes(json *j, const token *t)
{
    json_object_begin(j, NULL);
    if (t->kind == TOKEN_EXT) {
        json_int(j, "$ext", t->ext_type);
        json_base64(j, "data", t->bytes, (size_t)t->number);
    } else {
        json_base64(j, "$binary", t->bytes, (size_t)t->number);
    }
    json_object_end(j);
}

/* JSON's keys are text; another key becomes the text that would print it. */
static void print_key(json *j, const token *t)
{
    char text[JSON_REAL_SIZE] = "null";
    switch (t->kind) {
    case TOKEN_TEXT:
    case TOKEN_BINARY:
    case TOKEN_EXT: json_key_n(j, (const char *)t->bytes, (size_t)t->number); return;
    case TOKEN_BOOL: snprintf(text, sizeof text, "%s", t->number ? "true" : "false"); break;
    case TOKEN_INT: snprintf(text, sizeof text, "%lld", (long long)t->number); break;
    case TOKEN_UINT:
        snprintf(text, sizeof text, "%llu", (unsigned long long)t->number);
        break;
    case TOKEN_REAL: json_shortest(t->real, text); break;
    default: break;
    }
    json_key_n(j, text, strlen(text));
}

static void print_scalar(json *j, const token *t)
{
    switch (t->kind) {
    case TOKEN_BOOL: json_bool(j, NULL, t->number); break;
    case TOKEN_INT: json_int(j, NULL, (int64_t)t->number); break;
    case TOKEN_UINT: json_uint(j, NULL, t->number); break;
    case TOKEN_REAL: json_real(j, NULL, t->real); break;
    case TOKEN_TEXT: json_text_n(j, NULL, (const char *)t->bytes, (size_t)t->number); break;
    case TOKEN_BINARY:
    case TOKEN_EXT: print_bytes(j, t); break;
    default: json_null(j, NULL); break;
    }
}

static void close_level(json *j, const level *l)
{
    if (l->is_map) {
        json_object_end(j);
    } else {
        json_array_end(j);
    }
}

/* True when a container was opened. */
static bool print_token(json *j, const token *t, bool is_key)
{
    if (is_key) {
        print_key(j, t);
        return false;
    }
    if (t->kind == TOKEN_MAP) {
        json_object_begin(j, NULL);
    } else if (t->kind == TOKEN_ARRAY) {
        json_array_begin(j, NULL);
    } else {
        print_scalar(j, t);
    }
    return t->kind >= TOKEN_ARRAY;
}

static void print_value(json *j, const void *bytes, size_t size)
{
    reader r = {bytes, (const uint8_t *)bytes + size, false};
    level stack[MAX_DEPTH + 1] = {{.left = 1}};
    int depth = 0;
    for (;;) {
        while (depth > 0 && stack[depth].left == 0) close_level(j, &stack[depth--]);
        if (depth == 0 && stack[0].left == 0) return;
        level *l = &stack[depth];
        bool is_key = l->is_map && l->left % 2 == 0;
        l->left--;
        token t = next_token(&r);
        if (print_token(j, &t, is_key)) stack[++depth] = level_of(&t);
    }
}

void json_msgpack(json *j, const char *key, const void *bytes, size_t size)
{
    if (key) json_key_n(j, key, strlen(key));
    if (is_one_value(bytes, size)) {
        print_value(j, bytes, size);
        return;
    }
    token opaque = {.kind = TOKEN_BINARY, .bytes = bytes, .number = size};
    print_bytes(j, &opaque);
}
