/* Room: value. Base64, both ways. */
#include "value/base64.h"

static const char digits[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

cv_status cv_base64_encode(const void *bytes, size_t size, cv_buffer *out, cv_error *err)
{
    size_t old = out->size;
    CV_TRY(cv_buffer_resize(out, old + (size + 2) / 3 * 4, err));
    const uint8_t *at = bytes;
    uint8_t *to = out->data + old;
    for (size_t i = 0; i < size; i += 3, to += 4) {
        size_t left = size - i;
        uint32_t group = (uint32_t)at[i] << 16;
        if (left > 1) group |= (uint32_t)at[i + 1] << 8;
        if (left > 2) group |= at[i + 2];
        to[0] = (uint8_t)digits[group >> 18];
        to[1] = (uint8_t)digits[group >> 12 & 63];
        to[2] = left > 1 ? (uint8_t)digits[group >> 6 & 63] : '=';
        to[3] = left > 2 ? (uint8_t)digits[group & 63] : '=';
    }
    return CV_OK;
}

/* The bits of a digit; 64 when it is none. */
static uint32_t bits_of(uint8_t digit)
{
    if (digit >= 'A' && digit <= 'Z') return (uint32_t)digit - 'A';
    if (digit >= 'a' && digit <= 'z') return (uint32_t)digit - 'a' + 26;
    if (digit >= '0' && digit <= '9') return (uint32_t)digit - '0' + 52;
    if (digit == '+') return 62;
    return digit == '/' ? 63 : 64;
}

/* Four digits, the last `pads` of them '='; false when they are none, or when bits that no
 * byte takes are set. */
static bool decode_group(const uint8_t *text, size_t pads, uint8_t bytes[3])
{
    uint32_t group = 0;
    for (size_t i = 0; i < 4; i++) {
        uint32_t bits = i < 4 - pads ? bits_of(text[i]) : 0;
        if (bits > 63) return false;
        group = group << 6 | bits;
    }
    if (pads > 0 && (group & (pads == 1 ? 0xff : 0xffff)) != 0) return false;
    for (int i = 0; i < 3; i++) bytes[i] = (uint8_t)(group >> (16 - 8 * i));
    return true;
}

cv_status cv_base64_decode(const void *text, size_t size, cv_buffer *out, cv_error *err)
{
    const uint8_t *at = text;
    uint8_t bytes[3];
    if (size % 4 != 0)
        return cv_fail(err, CATERVA_EINVAL, -1,
                       "%zu digits are no base64: four stand together", size);
    size_t padding = 0;
    while (padding < 2 && padding < size && at[size - 1 - padding] == '=') padding++;
    CV_TRY(cv_buffer_reserve(out, out->size + size / 4 * 3, err));
    for (size_t i = 0; i < size; i += 4) {
        size_t pads = i + 4 == size ? padding : 0;
        if (!decode_group(at + i, pads, bytes))
            return cv_fail(err, CATERVA_EINVAL, -1, "digits %zu to %zu are no base64", i + 1,
                           i + 4);
        CV_TRY(cv_buffer_append(out, bytes, 3 - pads, err));
    }
    return CV_OK;
}
