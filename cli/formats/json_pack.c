/* Room: cli/formats. One JSON text (RFC 8259, nothing more) turned into MessagePack as
 * python-blosc2 keeps it in an attribute: each number and each head in its shortest
 * form. A head says a length that is known only at the end: heads are kept aside and
 * put between the other bytes when all is read. No recursion. */
#include "formats/json.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MAX_DEPTH 64 /* what json_msgpack prints again */

typedef enum head_kind { HEAD_TEXT, HEAD_ARRAY, HEAD_MAP } head_kind;

/* Stands before body byte `at`; `count` bytes of text, elements or pairs. */
typedef struct head {
    head_kind kind;
    size_t at;
    uint64_t count;
} head;

typedef struct packer {
    const char *at, *end;
    const char *wrong; /* sticky: what was expected at `at` */
    bool no_memory;    /* sticky */
    uint8_t *body;
    size_t size, capacity;
    head *heads;
    size_t n_heads, heads_capacity;
    size_t open[MAX_DEPTH]; /* heads of the lists and maps around `at` */
    int depth;
} packer;

/* ---- Bytes and heads ---------------------------------------------------- */

static bool failed(const packer *p) { return p->wrong || p->no_memory; }

static void fail(packer *p, const char *wrong)
{
    if (!failed(p)) p->wrong = wrong;
}

/* Room for one element more; NULL, and the packer failed, without memory. */
static void *enlarge(packer *p, void *list, size_t *capacity, size_t element)
{
    size_t larger = *capacity ? *capacity * 2 : 64;
    void *moved = realloc(list, larger * element);
    if (!moved) p->no_memory = true;
    if (moved) *capacity = larger;
    return moved ? moved : list;
}

static void put(packer *p, uint8_t byte)
{
    if (p->size == p->capacity) p->body = enlarge(p, p->body, &p->capacity, 1);
    if (!p->no_memory) p->body[p->size++] = byte;
}

static size_t add_head(packer *p, head_kind kind)
{
    if (p->n_heads == p->heads_capacity)
        p->heads = enlarge(p, p->heads, &p->heads_capacity, sizeof *p->heads);
    if (p->no_memory) return 0;
    p->heads[p->n_heads] = (head){.kind = kind, .at = p->size};
    return p->n_heads++;
}

/* A type byte and `size` bytes of a number, the highest first. */
static void put_number(packer *p, uint8_t type, uint64_t value, int size)
{
    put(p, type);
    for (int i = size - 1; i >= 0; i--) put(p, (uint8_t)(value >> (8 * i)));
}

/* ---- Words -------------------------------------------------------------- */

static void skip_spaces(packer *p)
{
    while (p->at < p->end && *p->at && strchr(" \t\r\n", *p->at)) p->at++;
}

static bool accept(packer *p, char c)
{
    skip_spaces(p);
    if (p->at == p->end || *p->at != c) return false;
    p->at++;
    return true;
}

static bool accept_word(packer *p, const char *word)
{
    size_t size = strlen(word);
    if ((size_t)(p->end - p->at) < size || memcmp(p->at, word, size) != 0) return false;
    p->at += size;
    return true;
}

/* ---- Numbers ------------------------------------------------------------ */

static size_t digits(const char *text) { return strspn(text, "0123456789"); }

/* Bytes of the number at `text`, 0 when there is none; only JSON's grammar counts. */
static size_t number_span(const char *text, bool *whole)
{
    const char *at = text + (*text == '-');
    size_t n = *at == '0' ? 1 : digits(at);
    at += n;
    *whole = true;
    if (n > 0 && *at == '.') {
        n = digits(++at);
        at += n;
        *whole = false;
    }
    if (n > 0 && (*at == 'e' || *at == 'E')) {
        at++;
        at += *at == '+' || *at == '-';
        n = digits(at);
        at += n;
        *whole = false;
    }
    return n > 0 ? (size_t)(at - text) : 0;
}

static void pack_positive(packer *p, uint64_t value)
{
    if (value < 0x80)
        put(p, (uint8_t)value);
    else if (value <= UINT8_MAX)
        put_number(p, 0xcc, value, 1);
    else if (value <= UINT16_MAX)
        put_number(p, 0xcd, value, 2);
    else if (value <= UINT32_MAX)
        put_number(p, 0xce, value, 4);
    else
        put_number(p, 0xcf, value, 8);
}

static void pack_negative(packer *p, int64_t value)
{
    uint64_t bits = (uint64_t)value;
    if (value >= -32)
        put(p, (uint8_t)bits);
    else if (value >= INT8_MIN)
        put_number(p, 0xd0, bits, 1);
    else if (value >= INT16_MIN)
        put_number(p, 0xd1, bits, 2);
    else if (value >= INT32_MIN)
        put_number(p, 0xd2, bits, 4);
    else
        put_number(p, 0xd3, bits, 8);
}

static void pack_whole(packer *p)
{
    errno = 0;
    if (*p->at == '-') {
        long long value = strtoll(p->at, NULL, 10);
        if (value < 0) {
            pack_negative(p, value);
        } else {
            pack_positive(p, 0); /* -0 */
        }
    } else {
        pack_positive(p, strtoull(p->at, NULL, 10));
    }
    if (errno == ERANGE) fail(p, "an integer of at most 64 bits");
}

static void pack_real(packer *p)
{
    double value = strtod(p->at, NULL);
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    if (!isfinite(value)) fail(p, "a number within the range of float64");
    put_number(p, 0xcb, bits, 8);
}

static void pack_number(packer *p)
{
    bool whole;
    size_t size = number_span(p->at, &whole);
    if (size == 0) {
        fail(p, "a value");
    } else if (whole) {
        pack_whole(p);
    } else {
        pack_real(p);
    }
    if (!failed(p)) p->at += size;
}

/* ---- Text --------------------------------------------------------------- */

static void put_utf8(packer *p, uint32_t c)
{
    if (c < 0x80) {
        put(p, (uint8_t)c);
    } else if (c < 0x800) {
        put(p, (uint8_t)(0xC0 | c >> 6));
    } else if (c < 0x10000) {
        put(p, (uint8_t)(0xE0 | c >> 12));
        put(p, (uint8_t)(0x80 | (c >> 6 & 63)));
    } else {
        put(p, (uint8_t)(0xF0 | c >> 18));
        put(p, (uint8_t)(0x80 | (c >> 12 & 63)));
        put(p, (uint8_t)(0x80 | (c >> 6 & 63)));
    }
    if (c >= 0x80) put(p, (uint8_t)(0x80 | (c & 63)));
}

static uint32_t take_hex(packer *p)
{
    static const char hex[] = "0123456789abcdef0123456789ABCDEF";
    uint32_t value = 0;
    for (int i = 0; i < 4; i++) {
        const char *digit = p->at < p->end && *p->at ? strchr(hex, *p->at) : NULL;
        if (!digit) {
            fail(p, "four hexadecimal digits");
            return 0;
        }
        value = value << 4 | (uint32_t)(digit - hex) % 16;
        p->at++;
    }
    return value;
}

/* Behind "\u": a character, or the first half of a pair and then the second. */
static void take_code(packer *p)
{
    uint32_t c = take_hex(p);
    if (c >= 0xD800 && c < 0xDC00 && accept_word(p, "\\u")) {
        uint32_t low = take_hex(p);
        if (low >= 0xDC00 && low < 0xE000) c = 0x10000 + ((c & 0x3FF) << 10 | (low & 0x3FF));
    }
    if (c >= 0xD800 && c < 0xE000) fail(p, "both halves of a surrogate pair");
    put_utf8(p, c);
}

static void take_escape(packer *p)
{
    static const char letters[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
    char c = p->at < p->end ? *p->at : '\0';
    const char *letter = c ? strchr(letters, c) : NULL;
    if (letter) {
        put(p, (uint8_t)meant[letter - letters]);
        p->at++;
    } else if (c == 'u') {
        p->at++;
        take_code(p);
    } else {
        fail(p, "one of \"\\/bfnrtu");
    }
}

static void take_character(packer *p)
{
    size_t length = p->at < p->end ? json_utf8_length(p->at, (size_t)(p->end - p->at)) : 0;
    if (p->at == p->end) {
        fail(p, "'\"'");
    } else if (*p->at == '\\') {
        p->at++;
        take_escape(p);
    } else if (length == 0) {
        fail(p, "UTF-8");
    } else if ((unsigned char)*p->at < 0x20) {
        fail(p, "an escape, not a control character");
    } else {
        while (length-- > 0) put(p, (uint8_t)*p->at++);
    }
}

/* Behind the opening quote. */
static void pack_text(packer *p)
{
    size_t i = add_head(p, HEAD_TEXT);
    while (!failed(p) && (p->at == p->end || *p->at != '"')) take_character(p);
    if (failed(p)) return;
    p->at++;
    p->heads[i].count = p->size - p->heads[i].at;
}

/* ---- Values ------------------------------------------------------------- */

static void pack_scalar(packer *p)
{
    skip_spaces(p);
    if (accept_word(p, "null"))
        put(p, 0xc0);
    else if (accept_word(p, "false"))
        put(p, 0xc2);
    else if (accept_word(p, "true"))
        put(p, 0xc3);
    else if (accept(p, '"'))
        pack_text(p);
    else
        pack_number(p);
}

static bool open_container(packer *p)
{
    bool is_map = accept(p, '{');
    if (!is_map && !accept(p, '[')) return false;
    if (p->depth == MAX_DEPTH)
        fail(p, "less depth");
    else
        p->open[p->depth++] = add_head(p, is_map ? HEAD_MAP : HEAD_ARRAY);
    return true;
}

static bool innermost_is_map(const packer *p)
{
    return p->heads[p->open[p->depth - 1]].kind == HEAD_MAP;
}

static bool close_container(packer *p)
{
    if (failed(p) || p->depth == 0 || !accept(p, innermost_is_map(p) ? '}' : ']'))
        return false;
    p->depth--;
    return true;
}

static void begin_member(packer *p)
{
    if (failed(p) || p->depth == 0) return;
    p->heads[p->open[p->depth - 1]].count++;
    if (!innermost_is_map(p)) return;
    if (!accept(p, '"'))
        fail(p, "a key in double quotes");
    else
        pack_text(p);
    if (!failed(p) && !accept(p, ':')) fail(p, "':'");
}

static void pack_document(packer *p)
{
    do {
        begin_member(p);
        if (failed(p)) return;
        if (!open_container(p))
            pack_scalar(p);
        else if (!close_container(p))
            continue;
        while (close_container(p)) continue;
        if (failed(p) || p->depth == 0) break;
        if (!accept(p, ',')) fail(p, innermost_is_map(p) ? "',' or '}'" : "',' or ']'");
    } while (!failed(p));
    skip_spaces(p);
    if (p->at != p->end) fail(p, "nothing more");
}

/* ---- The result --------------------------------------------------------- */

static size_t head_bytes(const head *h, uint8_t bytes[5])
{
    static const struct {
        uint8_t small, limit, wide; /* wide: the type with a count of 1 or 2 bytes */
    } types[] = {{0xa0, 32, 0xd9}, {0x90, 16, 0xdc}, {0x80, 16, 0xde}};
    bool is_text = h->kind == HEAD_TEXT;
    uint8_t wide = types[h->kind].wide;
    size_t size = h->count <= UINT8_MAX && is_text ? 1 : h->count <= UINT16_MAX ? 2 : 4;
    if (h->count < types[h->kind].limit) {
        bytes[0] = (uint8_t)(types[h->kind].small | h->count);
        return 1;
    }
    bytes[0] = (uint8_t)(wide + (is_text ? size / 2 : size / 4));
    for (size_t i = 0; i < size; i++)
        bytes[1 + i] = (uint8_t)(h->count >> (8 * (size - 1 - i)));
    return 1 + size;
}

static cli_exit merge(const packer *p, uint8_t **out, size_t *size)
{
    size_t from = 0;
    uint8_t *to = cli_alloc(p->size + p->n_heads * 5);
    if (!to) return CLI_IO;
    *out = to;
    for (size_t i = 0; i <= p->n_heads; i++) {
        size_t until = i < p->n_heads ? p->heads[i].at : p->size;
        if (until > from) memcpy(to, p->body + from, until - from);
        to += until - from;
        from = until;
        if (i < p->n_heads) to += head_bytes(&p->heads[i], to);
    }
    *size = (size_t)(to - *out);
    return CLI_OK;
}

cli_exit json_to_msgpack(const char *text, size_t size, const char *what, const char *hint,
                         uint8_t **out, size_t *out_size)
{
    packer p = {.at = text, .end = text + size};
    cli_exit code;
    pack_document(&p);
    if (p.no_memory)
        code = cli_fail(CLI_IO, "no memory for an attribute of %zu bytes", size);
    else if (p.wrong)
        code = cli_fail(CLI_USAGE, "%s is not JSON: expected %s at position %zu%s", what,
                        p.wrong, (size_t)(p.at - text) + 1, hint);
    else
        code = merge(&p, out, out_size);
    free(p.body);
    free(p.heads);
    return code;
}
