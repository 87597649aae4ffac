/* Room: base. CRC32C by the processor's instruction, or by tables. Promises:
 * the same number either way. The only place with code for one kind of
 * processor.
 *
 * Where there are 512-bit carry-less multiplications, four registers of 64
 * bytes are folded over the input (V. Gopal et al., "Fast CRC Computation for
 * Generic Polynomials Using PCLMULQDQ Instruction", Intel, 2009): four times as
 * fast as what follows.
 *
 * The crc instruction takes 8 bytes per cycle but answers after three, so
 * three lanes of equal length run at once and are joined:
 *
 *   crc(A B C) = crc(A) x^16L + crc(B) x^8L + crc(C)   over GF(2), L bytes a lane
 *
 * Multiplying a crc by a fixed power of x is linear: the product's table of one
 * byte at a time is made once, like the tables of the portable form. */
#include "base/crc32c.h"

#include "base/arith.h"

#include <pthread.h>
#include <stdbool.h>

#define POLYNOMIAL UINT32_C(0x82f63b78) /* reflected: the highest power is bit 0 */

/* ---- Portable: eight bytes at a time, a table for each -------------------- */

static uint32_t slices[8][256];
static pthread_once_t slices_once = PTHREAD_ONCE_INIT;

static void make_slices(void)
{
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t crc = i;
        for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (crc & 1 ? POLYNOMIAL : 0);
        slices[0][i] = crc;
    }
    for (int k = 1; k < 8; k++)
        for (int i = 0; i < 256; i++)
            slices[k][i] = slices[k - 1][i] >> 8 ^ slices[0][slices[k - 1][i] & 0xff];
}

static uint32_t fold(uint32_t low, uint32_t high)
{
    return slices[7][low & 0xff] ^ slices[6][low >> 8 & 0xff] ^ slices[5][low >> 16 & 0xff] ^
           slices[4][low >> 24] ^ slices[3][high & 0xff] ^ slices[2][high >> 8 & 0xff] ^
           slices[1][high >> 16 & 0xff] ^ slices[0][high >> 24];
}

uint32_t cv_crc32c_portable(uint32_t crc, const void *bytes, size_t size)
{
    const uint8_t *p = bytes;
    pthread_once(&slices_once, make_slices);
    crc = ~crc;
    for (; size >= 8; size -= 8, p += 8)
        crc = fold(crc ^ cv_load_le32(p), cv_load_le32(p + 4));
    for (; size > 0; size--) crc = crc >> 8 ^ slices[0][(crc ^ *p++) & 0xff];
    return ~crc;
}

/* ---- The instruction ------------------------------------------------------ */

#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
#include <nmmintrin.h>
#define HAS_INSTRUCTION 1
#define INSTRUCTION __attribute__((target("sse4.2")))
#define CRC_8(crc, word) ((uint32_t)_mm_crc32_u64(crc, word))
#define CRC_1(crc, byte) _mm_crc32_u8(crc, byte)
static bool has_instruction(void) { return __builtin_cpu_supports("sse4.2"); }
#elif defined(__aarch64__) && defined(__ARM_FEATURE_CRC32) && !defined(__ARM_BIG_ENDIAN)
#include <arm_acle.h>
#define HAS_INSTRUCTION 1
#define INSTRUCTION
#define CRC_8(crc, word) __crc32cd(crc, word)
#define CRC_1(crc, byte) __crc32cb(crc, byte)
static bool has_instruction(void) { return true; }
#else
#define HAS_INSTRUCTION 0
#endif

#if HAS_INSTRUCTION

/* Bytes of a lane: long ones for whole blocks, short ones for their ends. */
enum { LONG_LANE = 4096, SHORT_LANE = 256 };

/* One lane's shift: crc -> crc x^8L, a table for each byte of the crc. */
typedef struct shift {
    uint32_t of[4][256];
} shift;

static shift long_shift, short_shift;
static pthread_once_t shifts_once = PTHREAD_ONCE_INIT;

/* Passing a zero byte through the register is multiplying by x^8. */
static uint32_t shifted_slowly(uint32_t crc, size_t n_bytes)
{
    for (size_t i = 0; i < n_bytes; i++) crc = crc >> 8 ^ slices[0][crc & 0xff];
    return crc;
}

/* Linear: 32 bits are shifted one by one, the tables are their sums. */
static void make_shift(shift *s, size_t n_bytes)
{
    for (int bit = 0; bit < 32; bit++) {
        uint32_t *table = s->of[bit / 8];
        uint32_t weight = UINT32_C(1) << bit % 8;
        uint32_t image = shifted_slowly(UINT32_C(1) << bit, n_bytes);
        for (uint32_t i = 0; i < weight; i++) table[weight + i] = table[i] ^ image;
    }
}

static void make_shifts(void)
{
    pthread_once(&slices_once, make_slices);
    make_shift(&long_shift, LONG_LANE);
    make_shift(&short_shift, SHORT_LANE);
}

static uint32_t shifted(const shift *s, uint32_t crc)
{
    return s->of[0][crc & 0xff] ^ s->of[1][crc >> 8 & 0xff] ^ s->of[2][crc >> 16 & 0xff] ^
           s->of[3][crc >> 24];
}

/* Three lanes of `lane` bytes each. */
INSTRUCTION static uint32_t three_lanes(uint32_t crc, const uint8_t *p, size_t lane,
                                        const shift *s)
{
    uint32_t a = crc, b = 0, c = 0;
    for (const uint8_t *end = p + lane; p < end; p += 8) {
        a = CRC_8(a, cv_load_le64(p));
        b = CRC_8(b, cv_load_le64(p + lane));
        c = CRC_8(c, cv_load_le64(p + 2 * lane));
    }
    return shifted(s, shifted(s, a) ^ b) ^ c;
}

INSTRUCTION static uint32_t by_instruction(uint32_t crc, const void *bytes, size_t size)
{
    const uint8_t *p = bytes;
    crc = ~crc;
    if (size >= (size_t)3 * SHORT_LANE) pthread_once(&shifts_once, make_shifts);
    for (; size >= (size_t)3 * LONG_LANE; p += 3 * LONG_LANE, size -= (size_t)3 * LONG_LANE)
        crc = three_lanes(crc, p, LONG_LANE, &long_shift);
    for (; size >= (size_t)3 * SHORT_LANE;
         p += 3 * SHORT_LANE, size -= (size_t)3 * SHORT_LANE)
        crc = three_lanes(crc, p, SHORT_LANE, &short_shift);
    for (; size >= 8; size -= 8, p += 8) crc = CRC_8(crc, cv_load_le64(p));
    for (; size > 0; size--) crc = CRC_1(crc, *p++);
    return ~crc;
}

cv_crc32c_function *cv_crc32c_hardware(void)
{
    return has_instruction() ? by_instruction : NULL;
}

#else

cv_crc32c_function *cv_crc32c_hardware(void) { return NULL; }

#endif

/* ---- Folding -------------------------------------------------------------- */

#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
#include <immintrin.h>

#define FOLDING __attribute__((target("avx512f,avx512vl,avx512dq,vpclmulqdq,pclmul,sse4.2")))

/* Below FOLD_MIN bytes the crc instruction is as fast. From FOLD_ALIGN on the first
 * few are left to it, so that no load crosses a line: a quarter faster out of the
 * second cache, where bytes are that were just read. */
enum { FOLD_STEP = 256, FOLD_MIN = 2 * FOLD_STEP, FOLD_ALIGN = 4096, FOLD_LINE = 64 };

/* x^(distance+32) and x^(distance-32) mod P, in bits, for each distance that
 * 128 bits are moved by: the step, one register, and one lane. */
static const int fold_distances[3] = {8 * FOLD_STEP, 512, 128};
static uint64_t fold_factors[3][2];
static pthread_once_t folds_once = PTHREAD_ONCE_INIT;

/* The product of two reflected numbers is one bit short: hence the shift. */
static uint64_t power_of_x(int n)
{
    uint32_t power = UINT32_C(1) << 31;
    for (int i = 0; i < n; i++) power = power >> 1 ^ (power & 1 ? POLYNOMIAL : 0);
    return (uint64_t)power << 1;
}

static void make_folds(void)
{
    for (int i = 0; i < 3; i++) {
        fold_factors[i][0] = power_of_x(fold_distances[i] + 32);
        fold_factors[i][1] = power_of_x(fold_distances[i] - 32);
    }
}

FOLDING static __m512i fold_512(__m512i x, __m512i factors, __m512i next)
{
    enum { XOR3 = 0x96 };
    return _mm512_ternarylogic_epi64(_mm512_clmulepi64_epi128(x, factors, 0x00),
                                     _mm512_clmulepi64_epi128(x, factors, 0x11), next, XOR3);
}

FOLDING static __m128i fold_128(__m128i x, __m128i factors, __m128i next)
{
    return _mm_xor_si128(next, _mm_xor_si128(_mm_clmulepi64_si128(x, factors, 0x00),
                                             _mm_clmulepi64_si128(x, factors, 0x11)));
}

/* Four lanes of 128 bits to one, and that to its remainder. */
FOLDING static uint32_t reduce(__m512i x)
{
    const __m128i lane = _mm_loadu_si128((const __m128i *)fold_factors[2]);
    __m128i sum = _mm512_extracti32x4_epi32(x, 0);
    sum = fold_128(sum, lane, _mm512_extracti32x4_epi32(x, 1));
    sum = fold_128(sum, lane, _mm512_extracti32x4_epi32(x, 2));
    sum = fold_128(sum, lane, _mm512_extracti32x4_epi32(x, 3));
    uint64_t low = (uint64_t)_mm_extract_epi64(sum, 0);
    uint64_t high = (uint64_t)_mm_extract_epi64(sum, 1);
    return CRC_8(CRC_8(0, low), high);
}

FOLDING static uint32_t by_folding(uint32_t crc, const void *bytes, size_t size)
{
    const uint8_t *p = bytes;
    if (size < FOLD_MIN) return by_instruction(crc, bytes, size);
    pthread_once(&folds_once, make_folds);
    if (size >= FOLD_ALIGN && (uintptr_t)p % FOLD_LINE != 0) {
        size_t before = FOLD_LINE - (uintptr_t)p % FOLD_LINE;
        crc = by_instruction(crc, p, before);
        p += before;
        size -= before;
    }
    const __m512i step =
        _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)fold_factors[0]));
    const __m512i next =
        _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)fold_factors[1]));
    __m512i first = _mm512_zextsi128_si512(_mm_cvtsi32_si128((int)~crc));
    __m512i a = _mm512_xor_si512(first, _mm512_loadu_si512(p));
    __m512i b = _mm512_loadu_si512(p + 64);
    __m512i c = _mm512_loadu_si512(p + 128);
    __m512i d = _mm512_loadu_si512(p + 192);
    for (p += FOLD_STEP, size -= FOLD_STEP; size >= FOLD_STEP;
         p += FOLD_STEP, size -= FOLD_STEP) {
        a = fold_512(a, step, _mm512_loadu_si512(p));
        b = fold_512(b, step, _mm512_loadu_si512(p + 64));
        c = fold_512(c, step, _mm512_loadu_si512(p + 128));
        d = fold_512(d, step, _mm512_loadu_si512(p + 192));
    }
    a = fold_512(fold_512(fold_512(a, next, b), next, c), next, d);
    for (; size >= FOLD_LINE; p += FOLD_LINE, size -= FOLD_LINE)
        a = fold_512(a, next, _mm512_loadu_si512(p));
    return by_instruction(~reduce(a), p, size);
}

cv_crc32c_function *cv_crc32c_folding(void)
{
    bool can = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
               __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("vpclmulqdq");
    return can && has_instruction() ? by_folding : NULL;
}

#else

cv_crc32c_function *cv_crc32c_folding(void) { return NULL; }

#endif

/* ---- The choice ----------------------------------------------------------- */

static cv_crc32c_function *chosen;
static pthread_once_t chosen_once = PTHREAD_ONCE_INIT;

static void choose(void)
{
    chosen = cv_crc32c_folding();
    if (!chosen) chosen = cv_crc32c_hardware();
    if (!chosen) chosen = cv_crc32c_portable;
}

uint32_t cv_crc32c(uint32_t crc, const void *bytes, size_t size)
{
    pthread_once(&chosen_once, choose);
    return chosen(crc, bytes, size);
}
