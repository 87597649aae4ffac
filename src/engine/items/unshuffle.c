/* Room: engine/items. Interleaves the byte planes of shuffled items with the widest registers.
 *
 * K planes of n bytes are interleaved in log2(K) steps. Each step treats the registers as one row
 * of bytes and interleaves the two halves of this row. At the end, byte k of item i has moved from
 * position k * n + i to position i * K + k. */
#include "engine/items/unshuffle.h"

#include "base/cpu.h"

#include <stddef.h>

/* `restrict` and a constant item size let the compiler vectorise. */
#define DEFINE_PORTABLE(name, item_size)                                                     \
    static void name(const uint8_t *restrict src, int64_t plane, int64_t n,                  \
                     uint8_t *restrict dst)                                                  \
    {                                                                                        \
        for (int64_t i = 0; i < n; i++)                                                      \
            for (int64_t k = 0; k < (item_size); k++)                                        \
                dst[(item_size)*i + k] = src[k * plane + i];                                 \
    }

DEFINE_PORTABLE(portable_2, 2)
DEFINE_PORTABLE(portable_4, 4)
DEFINE_PORTABLE(portable_8, 8)

#if CV_CPU_IS_X86

#include <immintrin.h>

#define WITH_AVX2 __attribute__((target("avx2")))
#define WITH_AVX512 __attribute__((target("avx512f,avx512bw,avx512vl,avx2")))
#define PART static inline __attribute__((always_inline))

enum { MOST_PLANES = 8 };

/* ---- 256 and 128 bits ----------------------------------------------------------- */

WITH_AVX2 PART void riffle_128(__m128i *v, int planes)
{
    for (int step = 1; step < planes; step *= 2) {
        __m128i next[MOST_PLANES];
        for (int i = 0; i < planes / 2; i++) {
            next[2 * i] = _mm_unpacklo_epi8(v[i], v[i + planes / 2]);
            next[2 * i + 1] = _mm_unpackhi_epi8(v[i], v[i + planes / 2]);
        }
        for (int i = 0; i < planes; i++) v[i] = next[i];
    }
}

WITH_AVX2 PART void riffle_256(__m256i *v, int planes)
{
    for (int step = 1; step < planes; step *= 2) {
        __m256i next[MOST_PLANES];
        for (int i = 0; i < planes / 2; i++) {
            next[2 * i] = _mm256_unpacklo_epi8(v[i], v[i + planes / 2]);
            next[2 * i + 1] = _mm256_unpackhi_epi8(v[i], v[i + planes / 2]);
        }
        for (int i = 0; i < planes; i++) v[i] = next[i];
    }
}

WITH_AVX2 PART void unshuffle_16(const uint8_t *src, int64_t plane, uint8_t *dst, int planes)
{
    __m128i v[MOST_PLANES];
    for (int k = 0; k < planes; k++)
        v[k] = _mm_loadu_si128((const __m128i *)(src + k * plane));
    riffle_128(v, planes);
    for (int i = 0; i < planes; i++) _mm_storeu_si128((__m128i *)dst + i, v[i]);
}

/* The two 128-bit lanes are interleaved separately: the first lanes are the first 16 items. */
WITH_AVX2 PART void unshuffle_32(const uint8_t *src, int64_t plane, uint8_t *dst, int planes)
{
    __m256i v[MOST_PLANES];
    for (int k = 0; k < planes; k++)
        v[k] = _mm256_loadu_si256((const __m256i *)(src + k * plane));
    riffle_256(v, planes);
    for (int i = 0; i < planes / 2; i++) {
        __m256i first = _mm256_permute2x128_si256(v[2 * i], v[2 * i + 1], 0x20);
        __m256i second = _mm256_permute2x128_si256(v[2 * i], v[2 * i + 1], 0x31);
        _mm256_storeu_si256((__m256i *)dst + i, first);
        _mm256_storeu_si256((__m256i *)dst + planes / 2 + i, second);
    }
}

/* The last step ends with the last item and may repeat items that are done. */
#define DEFINE_AVX2(size)                                                                    \
    WITH_AVX2 static void avx2_##size(const uint8_t *src, int64_t plane, int64_t n,          \
                                      uint8_t *dst)                                          \
    {                                                                                        \
        int64_t i = 0;                                                                       \
        if (n < 16) {                                                                        \
            portable_##size(src, plane, n, dst);                                             \
        } else if (n < 32) {                                                                 \
            unshuffle_16(src, plane, dst, size);                                             \
            if (n > 16) unshuffle_16(src + n - 16, plane, dst + (n - 16) * (size), size);    \
        } else {                                                                             \
            for (; i + 32 <= n; i += 32)                                                     \
                unshuffle_32(src + i, plane, dst + i * (size), size);                        \
            if (i < n) unshuffle_32(src + n - 32, plane, dst + (n - 32) * (size), size);     \
        }                                                                                    \
    }

DEFINE_AVX2(2)
DEFINE_AVX2(4)
DEFINE_AVX2(8)

/* ---- 512 bits --------------------------------------------------------------------- */

/* Interleaving stays inside the four 128-bit lanes of a register. To produce items in order, each
 * plane is first cut into 4 K pieces of 16 / K bytes, and piece t of lane g is piece 4 t + g of the
 * plane. The orders for K = 2, 4 and 8, in units of 16 bits: */
static const uint16_t orders[3][32] = {
    {0, 1, 2,  3,  16, 17, 18, 19, 4,  5,  6,  7,  20, 21, 22, 23,
     8, 9, 10, 11, 24, 25, 26, 27, 12, 13, 14, 15, 28, 29, 30, 31},
    {0, 1, 8,  9,  16, 17, 24, 25, 2, 3, 10, 11, 18, 19, 26, 27,
     4, 5, 12, 13, 20, 21, 28, 29, 6, 7, 14, 15, 22, 23, 30, 31},
    {0, 4, 8,  12, 16, 20, 24, 28, 1, 5, 9,  13, 17, 21, 25, 29,
     2, 6, 10, 14, 18, 22, 26, 30, 3, 7, 11, 15, 19, 23, 27, 31},
};

WITH_AVX512 PART void riffle_512(__m512i *v, int planes)
{
    for (int step = 1; step < planes; step *= 2) {
        __m512i next[MOST_PLANES];
        for (int i = 0; i < planes / 2; i++) {
            next[2 * i] = _mm512_unpacklo_epi8(v[i], v[i + planes / 2]);
            next[2 * i + 1] = _mm512_unpackhi_epi8(v[i], v[i + planes / 2]);
        }
        for (int i = 0; i < planes; i++) v[i] = next[i];
    }
}

WITH_AVX512 PART void unshuffle_64(const uint8_t *src, int64_t plane, uint8_t *dst,
                                   int planes, __m512i order)
{
    __m512i v[MOST_PLANES];
    for (int k = 0; k < planes; k++)
        v[k] = _mm512_permutexvar_epi16(order, _mm512_loadu_si512(src + k * plane));
    riffle_512(v, planes);
    for (int i = 0; i < planes; i++) _mm512_storeu_si512(dst + 64 * i, v[i]);
}

#define DEFINE_AVX512(size, which)                                                           \
    WITH_AVX512 static void avx512_##size(const uint8_t *src, int64_t plane, int64_t n,      \
                                          uint8_t *dst)                                      \
    {                                                                                        \
        int64_t i = 0;                                                                       \
        if (n < 64) {                                                                        \
            avx2_##size(src, plane, n, dst);                                                 \
            return;                                                                          \
        }                                                                                    \
        const __m512i order = _mm512_loadu_si512(orders[which]);                             \
        for (; i + 64 <= n; i += 64)                                                         \
            unshuffle_64(src + i, plane, dst + i * (size), size, order);                     \
        if (i < n) unshuffle_64(src + n - 64, plane, dst + (n - 64) * (size), size, order);  \
    }

DEFINE_AVX512(2, 0)
DEFINE_AVX512(4, 1)
DEFINE_AVX512(8, 2)

#elif CV_CPU_IS_ARM

#include <arm_neon.h>

/* vst2 and vst4 interleave up to four registers. */
static void neon_2(const uint8_t *src, int64_t plane, int64_t n, uint8_t *dst)
{
    int64_t i = 0;
    for (; i + 16 <= n; i += 16) {
        uint8x16x2_t v = {{vld1q_u8(src + i), vld1q_u8(src + plane + i)}};
        vst2q_u8(dst + 2 * i, v);
    }
    portable_2(src + i, plane, n - i, dst + 2 * i);
}

static void neon_4(const uint8_t *src, int64_t plane, int64_t n, uint8_t *dst)
{
    int64_t i = 0;
    for (; i + 16 <= n; i += 16) {
        uint8x16x4_t v;
        for (int k = 0; k < 4; k++) v.val[k] = vld1q_u8(src + k * plane + i);
        vst4q_u8(dst + 4 * i, v);
    }
    portable_4(src + i, plane, n - i, dst + 4 * i);
}

/* Pairs of planes are zipped to 16-bit numbers first. */
static void neon_8(const uint8_t *src, int64_t plane, int64_t n, uint8_t *dst)
{
    int64_t i = 0;
    for (; i + 16 <= n; i += 16) {
        uint16x8x4_t first, second;
        for (int k = 0; k < 4; k++) {
            uint8x16x2_t pair = vzipq_u8(vld1q_u8(src + 2 * k * plane + i),
                                         vld1q_u8(src + (2 * k + 1) * plane + i));
            first.val[k] = vreinterpretq_u16_u8(pair.val[0]);
            second.val[k] = vreinterpretq_u16_u8(pair.val[1]);
        }
        vst4q_u16((uint16_t *)(void *)(dst + 8 * i), first);
        vst4q_u16((uint16_t *)(void *)(dst + 8 * i + 64), second);
    }
    portable_8(src + i, plane, n - i, dst + 8 * i);
}

#endif

/* ---- Selection ------------------------------------------------------------- */

static const cv_unshuffle_kind kinds[] = {
#if CV_CPU_IS_X86
    {"AVX-512", CV_CPU_AVX512 | CV_CPU_AVX2, avx512_2, avx512_4, avx512_8},
    {"AVX2", CV_CPU_AVX2, avx2_2, avx2_4, avx2_8},
#elif CV_CPU_IS_ARM
    {"NEON", CV_CPU_NEON, neon_2, neon_4, neon_8},
#endif
    {"portable", 0, portable_2, portable_4, portable_8},
};

const cv_unshuffle_kind *cv_unshuffle_kinds(int *n)
{
    *n = (int)(sizeof kinds / sizeof kinds[0]);
    return kinds;
}

cv_unshuffle_function *cv_unshuffle_for(int64_t item_size)
{
    const cv_unshuffle_kind *kind = kinds;
    while (!cv_cpu_can(kind->needs)) kind++;
    switch (item_size) {
    case 2: return kind->of_2;
    case 4: return kind->of_4;
    case 8: return kind->of_8;
    default: return NULL;
    }
}
