/* Room: engine/items. The casts themselves, tile by tile: bytes into this machine's order,
 * each number to the widest of its kind, from there to the wanted type, bytes out.
 * Complex numbers go as two rows of floats. One rounding at most: the wide types
 * hold every value exactly. */
#include "engine/items/convert.h"

#include "engine/items/half.h"

#include <math.h>
#include <string.h>

enum { TILE = 256 }; /* items: both tiles and the wide ones stay in the first cache */

/* The numbers of a tile, all wide in one way. */
typedef enum wideness { WIDE_I64, WIDE_U64, WIDE_F64 } wideness;

typedef union wide {
    int64_t i[TILE];
    uint64_t u[TILE];
    double f[TILE];
} wide;

typedef union tile {
    uint8_t bytes[TILE * 16];
    double align;
} tile;

/* ---- Byte order --------------------------------------------------------- */

static void swap_bytes(uint8_t *bytes, int64_t n, int size)
{
    for (int64_t i = 0; i < n; i++, bytes += size)
        for (int lo = 0, hi = size - 1; lo < hi; lo++, hi--) {
            uint8_t b = bytes[lo];
            bytes[lo] = bytes[hi];
            bytes[hi] = b;
        }
}

/* Of a complex number the two halves are swapped each for itself. */
static void swap_tile(tile *t, int64_t n, cv_stored_number type)
{
    if (type.number >= CV_C64)
        swap_bytes(t->bytes, 2 * n, type.size / 2);
    else
        swap_bytes(t->bytes, n, type.size);
}

/* ---- Loading ------------------------------------------------------------ */

#define LOAD(type, field)                                                                    \
    for (int64_t i = 0; i < n; i++) {                                                        \
        type value;                                                                          \
        memcpy(&value, src + i * step, sizeof value);                                        \
        out->field[i] = value;                                                               \
    }

static void load_bfloats(const uint8_t *src, int64_t step, int64_t n, double *out)
{
    for (int64_t i = 0; i < n; i++) {
        uint16_t half;
        memcpy(&half, src + i * step, sizeof half);
        out[i] = cv_half_to_double(half, CV_BFLOAT16);
    }
}

/* `n` numbers, one every `step` bytes. */
static wideness load(cv_number number, const uint8_t *src, int64_t step, int64_t n, wide *out)
{
    switch (number) {
    case CV_BOOL:
        for (int64_t i = 0; i < n; i++) out->u[i] = src[i * step] != 0;
        return WIDE_U64;
    case CV_I8: LOAD(int8_t, i); return WIDE_I64;
    case CV_I16: LOAD(int16_t, i); return WIDE_I64;
    case CV_I32: LOAD(int32_t, i); return WIDE_I64;
    case CV_I64: LOAD(int64_t, i); return WIDE_I64;
    case CV_U8: LOAD(uint8_t, u); return WIDE_U64;
    case CV_U16: LOAD(uint16_t, u); return WIDE_U64;
    case CV_U32: LOAD(uint32_t, u); return WIDE_U64;
    case CV_U64: LOAD(uint64_t, u); return WIDE_U64;
    case CV_F16: cv_float16_to_doubles(src, step, n, out->f); return WIDE_F64;
    case CV_BF16: load_bfloats(src, step, n, out->f); return WIDE_F64;
    case CV_F32:
    case CV_C64: LOAD(float, f); return WIDE_F64;
    default: LOAD(double, f); return WIDE_F64;
    }
}

/* ---- Storing ------------------------------------------------------------ */

#define STORE(type, value)                                                                   \
    for (int64_t i = 0; i < n; i++) {                                                        \
        type item = (type)(value);                                                           \
        memcpy(dst + i * step, &item, sizeof item);                                          \
    }                                                                                        \
    return

/* A float as an integer in [low, 2^bits): towards zero, what does not fit to the
 * nearest that does, NaN to 0. */
static int64_t to_signed(double value, int bits)
{
    double limit = (double)(UINT64_C(1) << bits); /* a power of two: exact */
    if (isnan(value)) return 0;
    if (value < -limit) value = -limit;
    if (value >= limit) return (int64_t)((UINT64_C(1) << bits) - 1);
    return (int64_t)value;
}

static uint64_t to_unsigned(double value, int bits)
{
    double limit = 2.0 * (double)(UINT64_C(1) << (bits - 1));
    if (isnan(value) || value <= 0) return 0;
    return value < limit ? (uint64_t)value : UINT64_MAX >> (64 - bits);
}

static void store_floats(cv_number number, const wide *in, uint8_t *dst, int64_t step,
                         int64_t n)
{
    switch (number) {
    case CV_BOOL: STORE(uint8_t, in->f[i] < 0 || in->f[i] > 0 || isnan(in->f[i]));
    case CV_I8: STORE(int8_t, to_signed(in->f[i], 7));
    case CV_I16: STORE(int16_t, to_signed(in->f[i], 15));
    case CV_I32: STORE(int32_t, to_signed(in->f[i], 31));
    case CV_I64: STORE(int64_t, to_signed(in->f[i], 63));
    case CV_U8: STORE(uint8_t, to_unsigned(in->f[i], 8));
    case CV_U16: STORE(uint16_t, to_unsigned(in->f[i], 16));
    case CV_U32: STORE(uint32_t, to_unsigned(in->f[i], 32));
    case CV_U64: STORE(uint64_t, to_unsigned(in->f[i], 64));
    case CV_F16: cv_doubles_to_float16(in->f, n, dst, step); return;
    case CV_BF16: STORE(uint16_t, cv_double_to_half(in->f[i], CV_BFLOAT16));
    case CV_F32:
    case CV_C64: STORE(float, in->f[i]);
    default: STORE(double, in->f[i]);
    }
}

/* The integer as a double of at most 53 bits, the last one set when any below was:
 * the rounding that follows sees what it would see of the integer. */
static double to_odd_double(uint64_t magnitude, bool negative)
{
    const uint64_t cut = 2047;
    if (magnitude >> 53)
        magnitude = (magnitude & ~cut) | (uint64_t)((magnitude & cut) != 0) << 11;
    return negative ? -(double)magnitude : (double)magnitude;
}

static void store_halves(cv_number number, bool is_signed, const wide *in, uint8_t *dst,
                         int64_t step, int64_t n)
{
    wide doubles;
    for (int64_t i = 0; i < n; i++) {
        bool negative = is_signed && in->i[i] < 0;
        doubles.f[i] = to_odd_double(negative ? 0 - in->u[i] : in->u[i], negative);
    }
    store_floats(number, &doubles, dst, step, n);
}

/* Integers keep their low bits, as in C and NumPy. */
static void store_bits(cv_number number, const wide *in, uint8_t *dst, int64_t step,
                       int64_t n)
{
    switch (number) {
    case CV_BOOL: STORE(uint8_t, in->u[i] != 0);
    case CV_I8:
    case CV_U8: STORE(uint8_t, in->u[i]);
    case CV_I16:
    case CV_U16: STORE(uint16_t, in->u[i]);
    case CV_I32:
    case CV_U32: STORE(uint32_t, in->u[i]);
    default: STORE(uint64_t, in->u[i]);
    }
}

static void store(cv_number number, wideness w, const wide *in, uint8_t *dst, int64_t step,
                  int64_t n)
{
    if (w == WIDE_F64) {
        store_floats(number, in, dst, step, n);
        return;
    }
    bool is_signed = w == WIDE_I64;
    switch (number) { /* straight from the integer: one rounding */
    case CV_F16:
    case CV_BF16: store_halves(number, is_signed, in, dst, step, n); return;
    case CV_F32:
    case CV_C64: STORE(float, is_signed ? (float)in->i[i] : (float)in->u[i]);
    case CV_F64:
    case CV_C128: STORE(double, is_signed ? (double)in->i[i] : (double)in->u[i]);
    default: store_bits(number, in, dst, step, n);
    }
}

/* ---- Tiles -------------------------------------------------------------- */

static bool is_complex(cv_stored_number type) { return type.number >= CV_C64; }

/* True where either half is not 0. */
static void complex_to_bool(const cv_conversion *c, const tile *in, tile *out, int64_t n)
{
    wide re, im;
    load(c->from.number, in->bytes, c->from.size, n, &re);
    load(c->from.number, in->bytes + c->from.size / 2, c->from.size, n, &im);
    for (int64_t i = 0; i < n; i++)
        out->bytes[i] = !(re.f[i] == 0 && im.f[i] == 0); /* NaN is true */
}

static void convert_tile(const cv_conversion *c, const tile *in, tile *out, int64_t n)
{
    wide numbers;
    if (c->from.number == c->to.number) { /* another byte order: NaN stay as they are */
        memcpy(out->bytes, in->bytes, (size_t)(n * c->from.size));
        return;
    }
    if (is_complex(c->from) && c->to.number == CV_BOOL) {
        complex_to_bool(c, in, out, n);
        return;
    }
    wideness w = load(c->from.number, in->bytes, c->from.size, n, &numbers);
    store(c->to.number, w, &numbers, out->bytes, c->to.size, n);
    if (!is_complex(c->to)) return;
    if (is_complex(c->from))
        w = load(c->from.number, in->bytes + c->from.size / 2, c->from.size, n, &numbers);
    else
        memset(&numbers, 0, sizeof numbers);
    store(c->to.number, w, &numbers, out->bytes + c->to.size / 2, c->to.size, n);
}

/* `n` fields, each in its item, one behind the other. */
static void take_fields(const cv_conversion *c, const uint8_t *src, uint8_t *dst, int64_t n)
{
    size_t size = (size_t)c->from.size;
    for (int64_t i = 0; i < n; i++, dst += size)
        memcpy(dst, src + i * c->item_size + c->offset, size);
}

void cv_convert(const cv_conversion *conversion, const uint8_t *src, uint8_t *dst, int64_t n)
{
    const cv_conversion *c = conversion;
    tile in, out;
    if (c->as_it_is) {
        take_fields(c, src, dst, n);
        return;
    }
    int64_t step = c->item_size > 0 ? c->item_size : c->from.size;
    while (n > 0) {
        int64_t some = n < TILE ? n : TILE;
        size_t out_size = (size_t)(some * c->to.size);
        if (c->item_size > 0)
            take_fields(c, src, in.bytes, some);
        else
            memcpy(in.bytes, src, (size_t)(some * step));
        if (c->from.swapped) swap_tile(&in, some, c->from);
        convert_tile(c, &in, &out, some);
        if (c->to.swapped) swap_tile(&out, some, c->to);
        memcpy(dst, out.bytes, out_size);
        src += some * step;
        dst += out_size;
        n -= some;
    }
}
