/* Room: value. JSON -> arrays of NumPy. What does not fit the dtype is said where it
 * stands: nothing is cut or rounded but reals to the nearest of their type. */
#include "value/json_typed.h"

#include "base/status.h"
#include "value/decimal.h"

#include <string.h>

static void append(cv_json_scan *s, cv_buffer *to, const void *bytes, size_t size)
{
    if (s->status == CV_OK) s->status = cv_buffer_append(to, bytes, size, &s->error);
}

/* `size` bytes of a number, in the item's byte order. */
static void append_bits(cv_json_scan *s, const caterva_dtype *type, uint64_t bits,
                        int64_t size, cv_buffer *items)
{
    uint8_t bytes[8];
    bool big = type->byte_order == '>';
    for (int64_t i = 0; i < size; i++)
        bytes[big ? size - 1 - i : i] = (uint8_t)(bits >> (8 * i));
    append(s, items, bytes, (size_t)size);
}

static bool fits(const caterva_dtype *type, bool negative, uint64_t value)
{
    int bits = (int)type->item_size * 8;
    if (type->kind == 'u') return !negative && (bits == 64 || value >> bits == 0);
    uint64_t limit = (uint64_t)1 << (bits - 1);
    return negative ? value <= limit : value < limit;
}

static void take_whole(cv_json_scan *s, const caterva_dtype *type, cv_buffer *items)
{
    bool whole, negative;
    uint64_t value;
    size_t size = cv_json_number(s, &whole);
    if (size == 0 || !whole) {
        cv_json_fail(s, "an integer");
    } else if (!cv_decimal_whole(s->at, size, &negative, &value) ||
               !fits(type, negative, value)) {
        cv_json_fail(s, "an integer that fits the dtype");
    } else {
        append_bits(s, type, negative ? 0 - value : value, type->item_size, items);
        s->at += size;
    }
}

/* The texts that stand for what JSON has no number for. */
static bool take_real_word(cv_json_scan *s, double *out)
{
    static const struct {
        const char *word;
        double value;
    } words[] = {{"\"NaN\"", (double)__builtin_nanf("")},
                 {"\"Infinity\"", __builtin_inf()},
                 {"\"-Infinity\"", -__builtin_inf()}};
    for (int i = 0; i < 3; i++)
        if (cv_json_accept_word(s, words[i].word)) {
            *out = words[i].value;
            return true;
        }
    return false;
}

/* Each width is rounded once, from the decimals. */
static void take_real(cv_json_scan *s, const caterva_dtype *type, int64_t width,
                      cv_buffer *items)
{
    bool whole, ok = true;
    double real;
    float single;
    bool is_word = take_real_word(s, &real);
    size_t size = is_word ? 0 : cv_json_number(s, &whole);
    if (!is_word && size == 0) {
        cv_json_fail(s, "a number");
        return;
    }
    single = is_word ? (float)real : 0;
    if (!is_word)
        ok = width == 4 ? cv_decimal_single(s->at, size, &single)
                        : cv_decimal_real(s->at, size, &real);
    if (!ok) {
        cv_json_fail(s, "a number within the range of the dtype");
        return;
    }
    uint32_t low;
    uint64_t bits;
    memcpy(&low, &single, sizeof low);
    if (width == 4)
        bits = low;
    else
        memcpy(&bits, &real, sizeof bits);
    append_bits(s, type, bits, width, items);
    s->at += size;
}

static void take_complex(cv_json_scan *s, const caterva_dtype *type, cv_buffer *items)
{
    cv_json_expect(s, '[', "[real, imaginary]");
    if (!cv_json_failed(s)) take_real(s, type, type->item_size / 2, items);
    cv_json_expect(s, ',', "','");
    if (!cv_json_failed(s)) take_real(s, type, type->item_size / 2, items);
    cv_json_expect(s, ']', "']'");
}

/* ---- Text --------------------------------------------------------------- */

/* A character of valid UTF-8. */
static uint32_t decode_utf8(const uint8_t *at, size_t length)
{
    static const uint8_t masks[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
    uint32_t c = at[0] & masks[length];
    for (size_t i = 1; i < length; i++) c = c << 6 | (at[i] & 63);
    return c;
}

static void append_characters(cv_json_scan *s, const caterva_dtype *type, cv_buffer *items)
{
    for (size_t at = 0; at < s->text.size && s->status == CV_OK;) {
        const uint8_t *text = s->text.data + at;
        size_t length = cv_utf8_length((const char *)text, s->text.size - at);
        append_bits(s, type, decode_utf8(text, length), 4, items);
        at += length;
    }
}

/* Filled up with NULs; one at its end would be lost, one inside would not. */
static void take_text(cv_json_scan *s, const caterva_dtype *type, cv_buffer *items)
{
    size_t old = items->size, item = (size_t)type->item_size;
    const char *begins = s->at;
    cv_json_take_text(s, "a text");
    if (cv_json_failed(s)) return;
    if (type->kind == 'U')
        append_characters(s, type, items);
    else
        append(s, items, s->text.data, s->text.size);
    if (cv_json_failed(s)) return;
    size_t used = items->size - old;
    if (used > item) {
        s->at = begins;
        cv_json_fail(s, "a text that fits the dtype");
        return;
    }
    s->status = cv_buffer_resize(items, old + item, &s->error);
    if (s->status == CV_OK && item > used) memset(items->data + old + used, 0, item - used);
}

static void take_truth(cv_json_scan *s, cv_buffer *items)
{
    bool is_true = cv_json_accept_word(s, "true");
    if (!is_true && !cv_json_accept_word(s, "false"))
        cv_json_fail(s, "true or false");
    else
        append(s, items, &(uint8_t){is_true}, 1);
}

/* ---- Items and arrays ---------------------------------------------------- */

void cv_json_take_item(cv_json_scan *s, const caterva_dtype *type, cv_buffer *items)
{
    int64_t size = type->item_size;
    switch (type->kind) {
    case 'b': take_truth(s, items); return;
    case 'i':
    case 'u':
    case 'M':
    case 'm': take_whole(s, type, items); return;
    case 'f':
        if (size == 4 || size == 8) {
            take_real(s, type, size, items);
            return;
        }
        break;
    case 'c':
        if (size == 8 || size == 16) {
            take_complex(s, type, items);
            return;
        }
        break;
    case 'S':
    case 'U': take_text(s, type, items); return;
    default: break;
    }
    cv_json_fail(s, "{\"$binary\": base64}, for items of this dtype");
}

static void take_dtype(cv_json_scan *s, cv_typed *typed, cv_buffer *name)
{
    cv_json_expect_key(s, "dtype", "\"dtype\"");
    const char *begins = s->at;
    cv_json_take_text(s, "a dtype as text");
    if (cv_json_failed(s)) return;
    append(s, name, s->text.data, s->text.size);
    if (cv_json_failed(s)) return;
    if (cv_typed_set_dtype(typed, (const char *)name->data, name->size, NULL) == CV_OK &&
        typed->type.item_size > 0)
        return;
    s->at = begins;
    cv_json_fail(s, "the dtype of a scalar");
}

static void take_extent(cv_json_scan *s, cv_typed *typed)
{
    bool whole, negative;
    uint64_t n;
    size_t size = cv_json_number(s, &whole);
    if (size == 0 || !whole || !cv_decimal_whole(s->at, size, &negative, &n) || negative ||
        n > INT64_MAX) {
        cv_json_fail(s, "a number of items");
    } else if (typed->ndim == CATERVA_MAX_DIMS) {
        cv_json_fail(s, "at most 16 axes");
    } else {
        typed->shape[typed->ndim++] = (int64_t)n;
        s->at += size;
    }
}

static void take_shape(cv_json_scan *s, cv_typed *typed)
{
    cv_json_expect_key(s, "shape", "\"shape\"");
    cv_json_expect(s, '[', "'['");
    if (cv_json_failed(s) || cv_json_accept(s, ']')) return;
    do {
        take_extent(s, typed);
    } while (!cv_json_failed(s) && cv_json_accept(s, ','));
    cv_json_expect(s, ']', "',' or ']'");
}

static void take_binary(cv_json_scan *s, cv_buffer *items)
{
    cv_json_expect_key(s, "$binary", "\"$binary\"");
    cv_json_take_base64(s, items);
    cv_json_expect(s, '}', "'}'");
}

static void take_data(cv_json_scan *s, const caterva_dtype *type, cv_buffer *items)
{
    cv_json_expect_key(s, "data", "\"data\"");
    if (cv_json_failed(s)) return;
    if (cv_json_accept(s, '{')) {
        take_binary(s, items);
        return;
    }
    cv_json_expect(s, '[', "'['");
    if (cv_json_failed(s) || cv_json_accept(s, ']')) return;
    do {
        cv_json_take_item(s, type, items);
        cv_json_tell(s);
    } while (!cv_json_failed(s) && cv_json_accept(s, ','));
    cv_json_expect(s, ']', "',' or ']'");
}

void cv_json_take_array(cv_json_scan *s, cv_packer *p)
{
    cv_typed typed = {.ndim = 0};
    cv_buffer name = {0}, items = {0};
    int64_t size;
    cv_json_expect(s, '{', "'{'");
    if (!cv_json_failed(s)) take_dtype(s, &typed, &name);
    cv_json_expect(s, ',', "','");
    if (!cv_json_failed(s)) take_shape(s, &typed);
    cv_json_expect(s, ',', "','");
    if (!cv_json_failed(s)) take_data(s, &typed.type, &items);
    cv_json_expect(s, '}', "'}'");
    if (!cv_json_failed(s) &&
        (!cv_typed_count(&typed, &size) || (uint64_t)size != items.size))
        cv_json_fail(s, "as many items as the shape says before");
    typed.items = items.data;
    if (!cv_json_failed(s)) cv_typed_pack(&typed, p);
    cv_buffer_free(&name);
    cv_buffer_free(&items);
}
