/* Room: engine/items. 16-bit floats by their bits, and with F16C eight at a time. Both give
 * the same bits but for signalling NaN, which the instruction makes quiet. */
#include "engine/items/half.h"

#include "base/cpu.h"

#include <math.h>
#include <string.h>

enum { DOUBLE_FRACTION = 52, DOUBLE_BIAS = 1023, DOUBLE_SPECIAL = 2047 };

/* ---- By bits -------------------------------------------------------------- */

double cv_half_to_double(uint16_t half, cv_half_format format)
{
    int fraction_bits = format.fraction_bits, special = 2 * format.bias + 1;
    int exponent = (half & 0x7fff) >> fraction_bits;
    uint64_t fraction = half & ((UINT64_C(1) << fraction_bits) - 1);
    uint64_t sign = (uint64_t)(half >> 15) << 63, bits;
    double value;
    if (exponent == 0) { /* zero, or without the hidden bit */
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

/* kept = the hidden bit and the fraction, cut; what is cut off decides. A carry goes
 * into the exponent, as it must, and from the largest number to infinity. */
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
    if (exponent <= 0) { /* no hidden bit: a fraction of fewer bits */
        shift += 1 - exponent;
        exponent = 1;
        if (shift > DOUBLE_FRACTION + 2) return sign; /* less than half of the least */
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

/* ---- The instructions ------------------------------------------------------ */

#if CV_CPU_IS_X86
#include <immintrin.h>

#define F16C __attribute__((target("f16c,avx")))

enum { LANES = 8 };

/* A double cut to the bits of a float, its last bit set when anything was cut off: as
 * long as two bits more are left than the next rounding keeps, that rounding sees
 * what it would see of the double. */
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
