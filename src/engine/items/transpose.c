/* Room: engine/items. Transposes tables of items with the widest registers.
 *
 * A square of K rows of K items, 16 bytes a row, is treated as one row of K * K items. A step
 * interleaves the two halves of this row. After log2(K) steps, item j of row i has moved from
 * position i * K + j to position j * K + i. The instructions interleave within 16-byte lanes, so
 * each lane of the registers holds a square of its own: lane 0 of the first K rows, lane 1 of the
 * next K. At the end a register holds consecutive items of one row of the result. */
#include "engine/items/transpose.h"

#include "base/cpu.h"

#include <stddef.h>
#include <string.h>

/* Works in tiles, so that the next row uses the cache lines of a row. */
#define DEFINE_PORTABLE(name, type)                                                          \
    static void name(const cv_transposition *t, const uint8_t *src, uint8_t *dst)            \
    {                                                                                        \
        enum { TILE = 16 };                                                                  \
        for (int64_t first = 0; first < t->n_rows; first += TILE) {                          \
            int64_t end = first + TILE < t->n_rows ? first + TILE : t->n_rows;               \
            for (int64_t j = 0; j < t->n_columns; j++) {                                     \
                const uint8_t *from = src + j * (int64_t)sizeof(type);                       \
                uint8_t *to = dst + j * t->dst_step;                                         \
                for (int64_t i = first; i < end; i++) {                                      \
                    type item;                                                               \
                    memcpy(&item, from + i * t->src_step, sizeof item);                      \
                    memcpy(to + i * (int64_t)sizeof item, &item, sizeof item);               \
                }                                                                            \
            }                                                                                \
        }                                                                                    \
    }

DEFINE_PORTABLE(portable_1, uint8_t)
DEFINE_PORTABLE(portable_2, uint16_t)
DEFINE_PORTABLE(portable_4, uint32_t)
DEFINE_PORTABLE(portable_8, uint64_t)

#if CV_CPU_IS_X86

#include <immintrin.h>

#define WITH_AVX2 __attribute__((target("avx2")))
#define WITH_AVX512 __attribute__((target("avx512f,avx512bw,avx512vl,avx2")))
#define PART static inline __attribute__((always_inline))

/* The last tile may overlap the tile before. Smaller tables use the next narrower kind. */
#define DEFINE_TILED(with, kind, smaller, size, lanes)                                       \
    with static void kind##_##size(const cv_transposition *t, const uint8_t *src,            \
                                   uint8_t *dst)                                             \
    {                                                                                        \
        enum { WIDTH = 16 / (size), HEIGHT = (lanes)*WIDTH };                                \
        if (t->n_rows < HEIGHT || t->n_columns < WIDTH) {                                    \
            smaller##_##size(t, src, dst);                                                   \
            return;                                                                          \
        }                                                                                    \
        int64_t last_row = t->n_rows - HEIGHT, last_column = t->n_columns - WIDTH;           \
        for (int64_t y = 0; y < t->n_rows; y += HEIGHT) {                                    \
            int64_t i = y < last_row ? y : last_row;                                         \
            for (int64_t x = 0; x < t->n_columns; x += WIDTH) {                              \
                int64_t j = x < last_column ? x : last_column;                               \
                kind##_tile_##size(src + i * t->src_step + j * (size), t->src_step,          \
                                   dst + j * t->dst_step + i * (size), t->dst_step);         \
            }                                                                                \
        }                                                                                    \
    }

/* ---- 256 bits -------------------------------------------------------------------- */

WITH_AVX2 PART __m256i load_256(const uint8_t *src, int64_t far)
{
    __m128i low = _mm_loadu_si128((const __m128i *)(const void *)src);
    __m128i high = _mm_loadu_si128((const __m128i *)(const void *)(src + far));
    return _mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1);
}

#define DEFINE_AVX2(size, bits)                                                              \
    WITH_AVX2 PART void avx2_tile_##size(const uint8_t *src, int64_t src_step, uint8_t *dst, \
                                         int64_t dst_step)                                   \
    {                                                                                        \
        enum { K = 16 / (size) };                                                            \
        __m256i v[K], next[K];                                                               \
        for (int i = 0; i < K; i++) v[i] = load_256(src + i * src_step, K * src_step);       \
        for (int step = 1; step < K; step *= 2) {                                            \
            for (int i = 0; i < K / 2; i++) {                                                \
                next[2 * i] = _mm256_unpacklo_epi##bits(v[i], v[i + K / 2]);                 \
                next[2 * i + 1] = _mm256_unpackhi_epi##bits(v[i], v[i + K / 2]);             \
            }                                                                                \
            for (int i = 0; i < K; i++) v[i] = next[i];                                      \
        }                                                                                    \
        for (int i = 0; i < K; i++)                                                          \
            _mm256_storeu_si256((__m256i *)(void *)(dst + i * dst_step), v[i]);              \
    }                                                                                        \
    DEFINE_TILED(WITH_AVX2, avx2, portable, size, 2)

DEFINE_AVX2(1, 8)
DEFINE_AVX2(2, 16)
DEFINE_AVX2(4, 32)
DEFINE_AVX2(8, 64)

/* ---- 512 bits --------------------------------------------------------------------- */

WITH_AVX512 PART __m512i load_512(const uint8_t *src, int64_t far)
{
    __m256i low = load_256(src, far), high = load_256(src + 2 * far, far);
    return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
}

#define DEFINE_AVX512(size, bits)                                                            \
    WITH_AVX512 PART void avx512_tile_##size(const uint8_t *src, int64_t src_step,           \
                                             uint8_t *dst, int64_t dst_step)                 \
    {                                                                                        \
        enum { K = 16 / (size) };                                                            \
        __m512i v[K], next[K];                                                               \
        for (int i = 0; i < K; i++) v[i] = load_512(src + i * src_step, K * src_step);       \
        for (int step = 1; step < K; step *= 2) {                                            \
            for (int i = 0; i < K / 2; i++) {                                                \
                next[2 * i] = _mm512_unpacklo_epi##bits(v[i], v[i + K / 2]);                 \
                next[2 * i + 1] = _mm512_unpackhi_epi##bits(v[i], v[i + K / 2]);             \
            }                                                                                \
            for (int i = 0; i < K; i++) v[i] = next[i];                                      \
        }                                                                                    \
        for (int i = 0; i < K; i++) _mm512_storeu_si512(dst + i * dst_step, v[i]);           \
    }                                                                                        \
    DEFINE_TILED(WITH_AVX512, avx512, avx2, size, 4)

DEFINE_AVX512(1, 8)
DEFINE_AVX512(2, 16)
DEFINE_AVX512(4, 32)
DEFINE_AVX512(8, 64)

#endif

/* ---- Selection ------------------------------------------------------------- */

static const cv_transpose_kind kinds[] = {
#if CV_CPU_IS_X86
    {"AVX-512", CV_CPU_AVX512 | CV_CPU_AVX2, avx512_1, avx512_2, avx512_4, avx512_8},
    {"AVX2", CV_CPU_AVX2, avx2_1, avx2_2, avx2_4, avx2_8},
#endif
    {"portable", 0, portable_1, portable_2, portable_4, portable_8},
};

const cv_transpose_kind *cv_transpose_kinds(int *n)
{
    *n = (int)(sizeof kinds / sizeof kinds[0]);
    return kinds;
}

cv_transpose_function *cv_transpose_for(int64_t item_size)
{
    const cv_transpose_kind *kind = kinds;
    while (!cv_cpu_can(kind->needs)) kind++;
    switch (item_size) {
    case 1: return kind->of_1;
    case 2: return kind->of_2;
    case 4: return kind->of_4;
    case 8: return kind->of_8;
    default: return NULL;
    }
}
