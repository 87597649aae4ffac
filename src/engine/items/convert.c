/* Room: engine/items. Converts between number types, tile by tile: to native byte order, to
 * the widest type of the kind (which holds every value exactly), to the target type. A
 * complex number is two floats. Rounds at most once. */
#include "engine/items/convert.h"

#include "base/cpu.h"
#include "format/dtype.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Portable code, and F16C for eight numbers at a time. Both give the same bits, except that F16C
 * makes signalling NaN quiet. */

#define CV_BFLOAT16 ((cv_half_format){7, 127})

enum { DOUBLE_FRACTION = 52, DOUBLE_BIAS = 1023, DOUBLE_SPECIAL = 2047 };

/* ---- Portable conversion --------------------------------------------------- */

double cv_half_to_double(uint16_t half, cv_half_format format)
{
    int fraction_bits = format.fraction_bits, special = 2 * format.bias + 1;
    int exponent = (half & 0x7fff) >> fraction_bits;
    uint64_t fraction = half & ((UINT64_C(1) << fraction_bits) - 1);
    uint64_t sign = (uint64_t)(half >> 15) << 63, bits;
    double value;
    if (exponent == 0) { /* zero or subnormal */
        value = ldexp((double)fraction, 1 - format.bias - fraction_bits);
        return sign ? -value : value;
    }
    uint64_t wide = DOUBLE_SPECIAL;
    if (exponent != special) {
        exponent += DOUBLE_BIAS - format.bias; /* above 0 */
        wide = (uint64_t)exponent;
    }
    bits = sign | wide << DOUBLE_FRACTION | fraction << (DOUBLE_FRACTION - fraction_bits);
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Rounds `kept` (hidden bit and fraction). A carry goes into the exponent, up to infinity. */
uint16_t cv_double_to_half(double value, cv_half_format format)
{
    int fraction_bits = format.fraction_bits, special = 2 * format.bias + 1;
    int shift = DOUBLE_FRACTION - fraction_bits;
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    uint16_t sign = (uint16_t)(bits >> 63 << 15);
    uint16_t infinite = (uint16_t)(special << fraction_bits);
    int wide = (int)(bits >> DOUBLE_FRACTION) & DOUBLE_SPECIAL;
    uint64_t fraction = bits & ((UINT64_C(1) << DOUBLE_FRACTION) - 1);
    if (wide == DOUBLE_SPECIAL) {
        uint64_t quiet = UINT64_C(1) << (fraction_bits - 1);
        return (uint16_t)(sign | infinite | (fraction ? quiet | fraction >> shift : 0));
    }
    int exponent = wide - DOUBLE_BIAS + format.bias;
    if (exponent >= special) return (uint16_t)(sign | infinite);
    fraction |= (uint64_t)(wide > 0) << DOUBLE_FRACTION;
    if (exponent <= 0) { /* subnormal: no hidden bit, fewer fraction bits */
        shift += 1 - exponent;
        exponent = 1;
        if (shift > DOUBLE_FRACTION + 2) return sign; /* less than half the smallest number */
    }
    uint64_t kept = fraction >> shift, half = UINT64_C(1) << (shift - 1);
    uint64_t rest = fraction & (2 * half - 1);
    kept += rest > half || (rest == half && (kept & 1));
    return (uint16_t)(sign | (((uint64_t)(exponent - 1) << fraction_bits) + kept));
}

static void to_doubles(const uint8_t *src, int64_t step, int64_t n, double *dst)
{
    for (int64_t i = 0; i < n; i++) {
        uint16_t half;
        memcpy(&half, src + i * step, sizeof half);
        dst[i] = cv_half_to_double(half, CV_FLOAT16);
    }
}

static void from_doubles(const double *src, int64_t n, uint8_t *dst, int64_t step)
{
    for (int64_t i = 0; i < n; i++) {
        uint16_t half = cv_double_to_half(src[i], CV_FLOAT16);
        memcpy(dst + i * step, &half, sizeof half);
    }
}

/* ---- F16C ------------------------------------------------------------------- */

#if CV_CPU_IS_X86
#include <immintrin.h>

#define F16C __attribute__((target("f16c,avx")))

enum { LANES = 8 };

/* Rounds to odd: sets the last bit of the float if a lower bit was cut off. A later rounding
 * that drops at least two more bits then gives what rounding the double would. */
static float to_odd_float(double value)
{
    const uint64_t cut = (UINT64_C(1) << 29) - 1;
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    bits = (bits & ~cut) | (uint64_t)((bits & cut) != 0) << 29;
    memcpy(&value, &bits, sizeof bits);
    return (float)value;
}

F16C static void to_doubles_f16c(const uint8_t *src, int64_t step, int64_t n, double *dst)
{
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        uint16_t halves[LANES];
        for (int k = 0; k < LANES; k++)
            memcpy(&halves[k], src + (i + k) * step, sizeof halves[k]);
        __m256 floats = _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)halves));
        _mm256_storeu_pd(dst + i, _mm256_cvtps_pd(_mm256_castps256_ps128(floats)));
        _mm256_storeu_pd(dst + i + 4, _mm256_cvtps_pd(_mm256_extractf128_ps(floats, 1)));
    }
    to_doubles(src + i * step, step, n - i, dst + i);
}

F16C static void from_doubles_f16c(const double *src, int64_t n, uint8_t *dst, int64_t step)
{
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        float floats[LANES];
        uint16_t halves[LANES];
        for (int k = 0; k < LANES; k++) floats[k] = to_odd_float(src[i + k]);
        __m128i packed = _mm256_cvtps_ph(_mm256_loadu_ps(floats), _MM_FROUND_TO_NEAREST_INT);
        _mm_storeu_si128((__m128i *)halves, packed);
        for (int k = 0; k < LANES; k++)
            memcpy(dst + (i + k) * step, &halves[k], sizeof halves[k]);
    }
    from_doubles(src + i, n - i, dst + i * step, step);
}
#else
#define to_doubles_f16c to_doubles
#define from_doubles_f16c from_doubles
#endif

void cv_float16_to_doubles(const uint8_t *src, int64_t step, int64_t n, double *dst)
{
    (cv_cpu_can(CV_CPU_AVX2) ? to_doubles_f16c : to_doubles)(src, step, n, dst);
}

void cv_doubles_to_float16(const double *src, int64_t n, uint8_t *dst, int64_t step)
{
    (cv_cpu_can(CV_CPU_AVX2) ? from_doubles_f16c : from_doubles)(src, n, dst, step);
}

/* ---- Tiles of items ------------------------------------------------------------ */

enum { TILE = 256 }; /* items: input, output and wide tiles stay in the first-level cache */

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

/* Swaps the two halves of a complex number separately. */
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

/* Converts a float to an integer below 2^bits: truncates, then saturates; NaN gives 0. */
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

/* Rounds to odd: a double of at most 53 bits whose last bit is set if a lower bit was cut off. */
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
    switch (number) { /* directly from the integer, to round once */
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
    if (c->from.number == c->to.number) { /* only swaps bytes: NaNs keep their bits */
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

/* The rules from which NumPy's table of casts follows. */

typedef struct number_kind {
    char kind; /* NumPy's */
    int size;
} number_kind;

static const number_kind kinds[] = {
    [CV_BOOL] = {'b', 1}, [CV_I8] = {'i', 1},  [CV_I16] = {'i', 2},   [CV_I32] = {'i', 4},
    [CV_I64] = {'i', 8},  [CV_U8] = {'u', 1},  [CV_U16] = {'u', 2},   [CV_U32] = {'u', 4},
    [CV_U64] = {'u', 8},  [CV_F16] = {'f', 2}, [CV_BF16] = {'f', 2},  [CV_F32] = {'f', 4},
    [CV_F64] = {'f', 8},  [CV_C64] = {'c', 8}, [CV_C128] = {'c', 16},
};
enum { N_NUMBERS = sizeof kinds / sizeof kinds[0] };

/* Returns the size of the smallest float that NumPy considers safe for the type (8 for int64). */
static int float_size(number_kind k)
{
    if (k.kind == 'f') return k.size;
    if (k.kind == 'c') return k.size / 2;
    return k.size == 1 ? 2 : k.size == 2 ? 4 : 8;
}

/* bfloat16 has the range of a 4-byte float and fewer fraction bits than a 2-byte float. */
static bool is_safe_bfloat16(cv_number from, cv_number to)
{
    if (from == to || from == CV_BOOL) return true;
    if (to == CV_BF16) return from == CV_I8 || from == CV_U8;
    return to >= CV_F32;
}

static bool is_safe_kind(number_kind from, number_kind to)
{
    if (from.kind == 'b') return true;
    switch (to.kind) {
    case 'b': return false;
    case 'u': return from.kind == 'u' && to.size >= from.size;
    case 'i':
        return (from.kind == 'i' && to.size >= from.size) ||
               (from.kind == 'u' && to.size > from.size);
    case 'f': return from.kind != 'c' && to.size >= float_size(from);
    default: return to.size / 2 >= float_size(from);
    }
}

static bool is_safe(cv_number from, cv_number to)
{
    if (from == CV_BF16 || to == CV_BF16) return is_safe_bfloat16(from, to);
    return is_safe_kind(kinds[from], kinds[to]);
}

static bool can_cast(cv_number from, cv_number to, caterva_casting casting)
{
    static const char order[] = "buifc"; /* a kind may be cast to itself and to later kinds */
    if (casting == CATERVA_CASTING_UNSAFE || is_safe(from, to)) return true;
    return casting == CATERVA_CASTING_SAME_KIND &&
           strchr(order, kinds[from].kind) <= strchr(order, kinds[to].kind);
}

static char foreign_order(void)
{
    const uint16_t one = 1;
    uint8_t first;
    memcpy(&first, &one, sizeof first);
    return first ? '>' : '<';
}

static bool find_number(const caterva_dtype *dtype, cv_stored_number *out)
{
    for (int i = 0; dtype->ndim == 0 && i < N_NUMBERS; i++) {
        if (kinds[i].kind != dtype->kind || kinds[i].size != dtype->item_size) continue;
        if (i == CV_BF16) continue; /* recognised by its name */
        *out = (cv_stored_number){.number = (cv_number)i, .size = kinds[i].size};
        out->swapped = dtype->byte_order == foreign_order();
        return true;
    }
    return false;
}

static cv_status parse_number(const char *text, cv_stored_number *out, cv_error *err)
{
    caterva_dtype *dtype;
    if (strcmp(text, "bfloat16") == 0) {
        *out = (cv_stored_number){.number = CV_BF16, .size = 2};
        out->swapped = foreign_order() == '<';
        return CV_OK;
    }
    CV_TRY(caterva_dtype_parse(text, &dtype, err));
    bool is_number = find_number(dtype, out);
    caterva_dtype_free(dtype);
    if (is_number) return CV_OK;
    return cv_fail(err, CATERVA_EDTYPE, -1,
                   "items of %.100s cannot be converted: only bool, integers, floats of 2, 4 "
                   "and 8 bytes, and complex can",
                   text);
}

cv_status cv_conversion_init(cv_conversion *conversion, const char *from, const char *to,
                             caterva_casting casting, cv_error *err)
{
    *conversion = (cv_conversion){.needed = false};
    if (!to || strcmp(from, to) == 0) return CV_OK;
    CV_TRY(parse_number(from, &conversion->from, err));
    CV_TRY(parse_number(to, &conversion->to, err));
    if (casting < CATERVA_CASTING_SAME_KIND || casting > CATERVA_CASTING_UNSAFE)
        return cv_fail(err, CATERVA_EINVAL, -1, "unknown casting kind %d", (int)casting);
    if (!can_cast(conversion->from.number, conversion->to.number, casting))
        return cv_fail(err, CATERVA_ECAST, -1, "%.60s to %.60s is not a %s cast", from, to,
                       casting == CATERVA_CASTING_SAFE ? "safe" : "same-kind");
    conversion->needed = conversion->from.number != conversion->to.number ||
                         conversion->from.swapped != conversion->to.swapped;
    return CV_OK;
}

/* ---- Fields ------------------------------------------------------------- */

static const caterva_field *field_named(const caterva_dtype *dtype, const char *name,
                                        size_t size)
{
    for (int i = 0; i < dtype->n_fields && dtype->ndim == 0; i++) {
        const caterva_field *f = &dtype->fields[i];
        if (strlen(f->name) == size && memcmp(f->name, name, size) == 0) return f;
    }
    return NULL;
}

static const caterva_dtype *find_field(const caterva_dtype *dtype, const char *path,
                                       int64_t *offset)
{
    *offset = 0;
    for (;;) {
        size_t size = strcspn(path, ".");
        const caterva_field *found = field_named(dtype, path, size);
        if (!found) return NULL;
        *offset += found->offset;
        dtype = found->dtype;
        if (!path[size]) return dtype;
        path += size + 1;
    }
}

static cv_status init_field(cv_conversion *c, const caterva_dtype *field, const char *to,
                            caterva_casting casting, cv_error *err)
{
    char text[16];
    if (field->item_size == 0)
        return cv_fail(err, CATERVA_EINVAL, -1, "the field has no bytes");
    c->from.size = c->to.size = (int)field->item_size;
    c->needed = c->as_it_is = true;
    if (!to) return CV_OK;
    cv_conversion cast;
    cv_stored_number number;
    if (field->ndim > 0 || !find_number(field, &number))
        return cv_fail(err, CATERVA_EDTYPE, -1,
                       "the field is not a number and cannot be converted");
    snprintf(text, sizeof text, "%c%c%d", field->byte_order, field->kind, number.size);
    CV_TRY(cv_conversion_init(&cast, text, to, casting, err));
    if (!cast.needed) return CV_OK;
    c->from = cast.from;
    c->to = cast.to;
    c->as_it_is = false;
    return CV_OK;
}

cv_status cv_conversion_init_field(cv_conversion *conversion, const char *from,
                                   const char *field, const char *to, caterva_casting casting,
                                   cv_error *err)
{
    caterva_dtype *dtype;
    CV_TRY(caterva_dtype_parse(from, &dtype, err));
    *conversion = (cv_conversion){.item_size = dtype->item_size};
    const caterva_dtype *found = find_field(dtype, field, &conversion->offset);
    cv_status status = found ? init_field(conversion, found, to, casting, err)
                             : cv_fail(err, CATERVA_ENOTFOUND, -1,
                                       "items of %.100s have no field "
                                       "\"%.60s\"",
                                       from, field);
    caterva_dtype_free(dtype);
    return status;
}
