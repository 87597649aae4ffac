/* Room: base. CRC32C with the instructions of x86-64. Promises what
 * cv_crc32c_portable promises.
 *
 * The crc instruction takes 8 bytes a cycle but answers after three cycles: three
 * lanes keep it busy. Beside it the processor multiplies without carries, which
 * folds a part of the input into a few registers (V. Gopal et al., "Fast CRC
 * Computation for Generic Polynomials Using PCLMULQDQ Instruction", Intel, 2009).
 * The two use different units, so one loop does both: two registers are folded
 * while each lane takes three or four words. The numbers are measured; two registers
 * are enough, since the lanes' steps hide how long a product takes.
 *
 * Zen 5 begins two crc instructions in a cycle and more: there six lanes, two sets of
 * three, take as many words beside the same registers: 38 -> 62 GB/s of 128 bits, 54 -> 74
 * of 256, 78 -> 92 of 512. Where one begins in a cycle they would be slower by 8 to 31 %. */
#include "base/crc32c_x86.h"

#include "base/crc32c_tables.h"
#include "base/thread.h"

#if CV_CPU_IS_X86

#include <immintrin.h>

#define WITH_CRC __attribute__((target("sse4.2")))
#define WITH_128 __attribute__((target("sse4.2,pclmul")))
#define WITH_256 __attribute__((target("avx2,vpclmulqdq,sse4.2,pclmul")))
#define WITH_512                                                                             \
    __attribute__((target("avx512f,avx512vl,avx512dq,avx2,vpclmulqdq,sse4.2,pclmul")))
/* A part of the loops above, for whatever their registers are. */
#define PART static inline __attribute__((always_inline))

/* ---- Lanes ------------------------------------------------------------------ */

typedef struct lanes {
    uint64_t a, b, c;
} lanes;

WITH_CRC PART void step_lanes(lanes *l, const uint8_t *p, size_t lane, int words)
{
    for (int i = 0; i < words; i++, p += 8) {
        l->a = _mm_crc32_u64(l->a, cv_load_le64(p));
        l->b = _mm_crc32_u64(l->b, cv_load_le64(p + lane));
        l->c = _mm_crc32_u64(l->c, cv_load_le64(p + 2 * lane));
    }
}

/* One set of three lanes, or two: all of the first stand before all of the second. */
typedef struct sets {
    lanes first, second;
} sets;

WITH_CRC PART void step_sets(sets *s, const uint8_t *p, size_t lane, int n_sets, int words)
{
    for (int i = 0; i < words; i++, p += 8) {
        step_lanes(&s->first, p, lane, 1);
        if (n_sets == 2) step_lanes(&s->second, p + CV_CRC32C_LANES * lane, lane, 1);
    }
}

WITH_CRC PART uint32_t finish_rest(uint64_t crc, const uint8_t *p, size_t size)
{
    for (; size >= 8; size -= 8, p += 8) crc = _mm_crc32_u64(crc, cv_load_le64(p));
    for (; size > 0; size--) crc = _mm_crc32_u8((uint32_t)crc, *p++);
    return ~(uint32_t)crc;
}

/* ---- The instruction alone ---------------------------------------------------- */

/* Without the instruction for it: 32 sums. */
static uint64_t product_by_bits(uint32_t a, uint32_t b)
{
    uint64_t product = 0;
    for (int i = 0; i < 32; i++) product ^= (uint64_t)a << i & -(uint64_t)(b >> i & 1);
    return product;
}

WITH_CRC uint32_t cv_crc32c_x86_word(uint32_t crc, const void *bytes, size_t size)
{
    enum { SHORT = 3 * 128 }; /* joining lanes costs more than they win */
    const uint8_t *p = bytes;
    uint64_t sum = ~crc;
    while (size >= SHORT) {
        size_t lane = size / 3 < CV_CRC32C_LANE_BYTES ? size / 24 * 8 : CV_CRC32C_LANE_BYTES;
        lanes l = {.a = sum};
        for (const uint8_t *end = p + lane; p < end; p += 8) step_lanes(&l, p, lane, 1);
        const uint32_t *shifts = cv_crc32c_shifts();
        uint64_t joined = product_by_bits((uint32_t)l.a, shifts[2 * lane / 8]) ^
                          product_by_bits((uint32_t)l.b, shifts[lane / 8]);
        sum = _mm_crc32_u64(0, joined) ^ l.c;
        p += 2 * lane;
        size -= 3 * lane;
    }
    return finish_rest(sum, p, size);
}

/* ---- Folding -------------------------------------------------------------------- */

/* Bytes that two registers take in a step. */
enum { STEP_128 = 32, STEP_256 = 64, STEP_512 = 128 };

/* For moving a register of 128 bits by its own width, and by the steps; for crcs, by
 * lanes. */
typedef struct factors {
    uint64_t own[2], step_128[2], step_256[2], step_512[2];
    const uint32_t *shifts;
} factors;

static factors known;
static cv_once known_once = CV_ONCE_INIT;

static void make_factors(void)
{
    cv_crc32c_fold_factors(16, known.own);
    cv_crc32c_fold_factors(STEP_128, known.step_128);
    cv_crc32c_fold_factors(STEP_256, known.step_256);
    cv_crc32c_fold_factors(STEP_512, known.step_512);
    known.shifts = cv_crc32c_shifts();
}

static const factors *get_factors(void)
{
    cv_once_run(&known_once, make_factors);
    return &known;
}

WITH_128 PART __m128i both_of(const uint64_t pair[2])
{
    return _mm_loadu_si128((const __m128i *)pair);
}

WITH_128 PART __m128i load_128(const uint8_t *p)
{
    return _mm_loadu_si128((const __m128i *)p);
}

WITH_128 PART __m128i fold_128(__m128i x, __m128i by, __m128i next)
{
    return _mm_xor_si128(next, _mm_xor_si128(_mm_clmulepi64_si128(x, by, 0x00),
                                             _mm_clmulepi64_si128(x, by, 0x11)));
}

/* The crc of what was folded into 128 bits. */
WITH_128 PART uint64_t remainder_128(__m128i x)
{
    uint64_t crc = _mm_crc32_u64(0, (uint64_t)_mm_cvtsi128_si64(x));
    return _mm_crc32_u64(crc, (uint64_t)_mm_extract_epi64(x, 1));
}

WITH_128 PART __m128i product(uint64_t crc, uint32_t factor)
{
    return _mm_clmulepi64_si128(_mm_cvtsi64_si128((long long)crc),
                                _mm_cvtsi32_si128((int)factor), 0);
}

/* `crc` is that of all before the lanes. */
WITH_128 PART uint64_t join(uint64_t crc, const lanes *l, size_t lane, const factors *f)
{
    if (lane == 0) return crc;
    const uint32_t *shifts = f->shifts;
    size_t words = lane / 8;
    __m128i sum = _mm_xor_si128(
        product(crc, shifts[3 * words]),
        _mm_xor_si128(product(l->a, shifts[2 * words]), product(l->b, shifts[words])));
    return _mm_crc32_u64(0, (uint64_t)_mm_cvtsi128_si64(sum)) ^ l->c;
}

WITH_128 PART uint64_t join_sets(uint64_t crc, const sets *s, size_t lane, int n_sets,
                                 const factors *f)
{
    crc = join(crc, &s->first, lane, f);
    return n_sets == 2 ? join(crc, &s->second, lane, f) : crc;
}

WITH_128 PART uint32_t run_128(uint32_t crc, const void *bytes, size_t size, int n_sets,
                               int words)
{
    const uint8_t *p = bytes;
    uint64_t sum = ~crc;
    const factors *f = get_factors();
    const __m128i step = both_of(f->step_128);
    while (size >= (size_t)2 * STEP_128) {
        cv_crc32c_cut cut =
            cv_crc32c_cut_of(size, STEP_128, (size_t)n_sets * CV_CRC32C_LANES, (size_t)words);
        const uint8_t *end = p + size, *q = p + (1 + cut.more + cut.n) * STEP_128;
        sets l = {0};
        __m128i a = _mm_xor_si128(load_128(p), _mm_cvtsi64_si128((long long)sum));
        __m128i b = load_128(p + 16);
        for (p += STEP_128; cut.more > 0; cut.more--, p += STEP_128) {
            a = fold_128(a, step, load_128(p));
            b = fold_128(b, step, load_128(p + 16));
        }
        for (; cut.n > 0; cut.n--, p += STEP_128, q += 8 * words) {
            a = fold_128(a, step, load_128(p));
            b = fold_128(b, step, load_128(p + 16));
            step_sets(&l, q, cut.lane, n_sets, words);
        }
        sum = join_sets(remainder_128(fold_128(a, both_of(f->own), b)), &l, cut.lane, n_sets,
                        f);
        p = q + (size_t)(n_sets * CV_CRC32C_LANES - 1) * cut.lane;
        size = (size_t)(end - p);
    }
    return finish_rest(sum, p, size);
}

WITH_128 uint32_t cv_crc32c_x86_128(uint32_t crc, const void *bytes, size_t size)
{
    return run_128(crc, bytes, size, 1, 4);
}

/* Below this many bytes six lanes have too few steps. */
enum { SHORT_FOR_SIX = 1024 };

WITH_128 uint32_t cv_crc32c_x86_128_six(uint32_t crc, const void *bytes, size_t size)
{
    if (size < SHORT_FOR_SIX) return cv_crc32c_x86_128(crc, bytes, size);
    return run_128(crc, bytes, size, 2, 3);
}

/* ---- 256 bits --------------------------------------------------------------------- */

WITH_256 PART __m256i load_256(const uint8_t *p)
{
    return _mm256_loadu_si256((const __m256i *)p);
}

WITH_256 PART __m256i fold_256(__m256i x, __m256i by, __m256i next)
{
    return _mm256_xor_si256(next, _mm256_xor_si256(_mm256_clmulepi64_epi128(x, by, 0x00),
                                                   _mm256_clmulepi64_epi128(x, by, 0x11)));
}

WITH_256 PART uint64_t remainder_256(__m256i a, __m256i b, __m128i own)
{
    __m128i x = _mm256_castsi256_si128(a);
    x = fold_128(x, own, _mm256_extracti128_si256(a, 1));
    x = fold_128(x, own, _mm256_castsi256_si128(b));
    return remainder_128(fold_128(x, own, _mm256_extracti128_si256(b, 1)));
}

WITH_256 PART uint32_t run_256(uint32_t crc, const void *bytes, size_t size, int n_sets,
                               int words)
{
    const uint8_t *p = bytes;
    uint64_t sum = ~crc;
    const factors *f = get_factors();
    const __m256i step = _mm256_broadcastsi128_si256(both_of(f->step_256));
    while (size >= (size_t)2 * STEP_256) {
        cv_crc32c_cut cut =
            cv_crc32c_cut_of(size, STEP_256, (size_t)n_sets * CV_CRC32C_LANES, (size_t)words);
        const uint8_t *end = p + size, *q = p + (1 + cut.more + cut.n) * STEP_256;
        sets l = {0};
        __m256i first = _mm256_zextsi128_si256(_mm_cvtsi64_si128((long long)sum));
        __m256i a = _mm256_xor_si256(load_256(p), first);
        __m256i b = load_256(p + 32);
        for (p += STEP_256; cut.more > 0; cut.more--, p += STEP_256) {
            a = fold_256(a, step, load_256(p));
            b = fold_256(b, step, load_256(p + 32));
        }
        for (; cut.n > 0; cut.n--, p += STEP_256, q += 8 * words) {
            a = fold_256(a, step, load_256(p));
            b = fold_256(b, step, load_256(p + 32));
            step_sets(&l, q, cut.lane, n_sets, words);
        }
        sum = join_sets(remainder_256(a, b, both_of(f->own)), &l, cut.lane, n_sets, f);
        p = q + (size_t)(n_sets * CV_CRC32C_LANES - 1) * cut.lane;
        size = (size_t)(end - p);
    }
    return finish_rest(sum, p, size);
}

WITH_256 uint32_t cv_crc32c_x86_256(uint32_t crc, const void *bytes, size_t size)
{
    return run_256(crc, bytes, size, 1, 3);
}

WITH_256 uint32_t cv_crc32c_x86_256_six(uint32_t crc, const void *bytes, size_t size)
{
    if (size < SHORT_FOR_SIX) return cv_crc32c_x86_128(crc, bytes, size);
    return run_256(crc, bytes, size, 2, 3);
}

/* ---- 512 bits --------------------------------------------------------------------- */

WITH_512 PART __m512i fold_512(__m512i x, __m512i by, __m512i next)
{
    enum { XOR3 = 0x96 };
    return _mm512_ternarylogic_epi64(_mm512_clmulepi64_epi128(x, by, 0x00),
                                     _mm512_clmulepi64_epi128(x, by, 0x11), next, XOR3);
}

WITH_512 PART __m128i fold_lanes_512(__m128i x, __m512i a, __m128i own)
{
    x = fold_128(x, own, _mm512_extracti64x2_epi64(a, 1));
    x = fold_128(x, own, _mm512_extracti64x2_epi64(a, 2));
    return fold_128(x, own, _mm512_extracti64x2_epi64(a, 3));
}

WITH_512 PART uint64_t remainder_512(__m512i a, __m512i b, __m128i own)
{
    __m128i x = fold_lanes_512(_mm512_castsi512_si128(a), a, own);
    x = fold_128(x, own, _mm512_castsi512_si128(b));
    return remainder_128(fold_lanes_512(x, b, own));
}

WITH_512 PART uint32_t run_512(uint32_t crc, const void *bytes, size_t size, int n_sets,
                               int words)
{
    const uint8_t *p = bytes;
    uint64_t sum = ~crc;
    const factors *f = get_factors();
    const __m512i step = _mm512_broadcast_i64x2(both_of(f->step_512));
    while (size >= (size_t)2 * STEP_512) {
        cv_crc32c_cut cut =
            cv_crc32c_cut_of(size, STEP_512, (size_t)n_sets * CV_CRC32C_LANES, (size_t)words);
        const uint8_t *end = p + size, *q = p + (1 + cut.more + cut.n) * STEP_512;
        sets l = {0};
        __m512i first = _mm512_zextsi128_si512(_mm_cvtsi64_si128((long long)sum));
        __m512i a = _mm512_xor_si512(_mm512_loadu_si512(p), first);
        __m512i b = _mm512_loadu_si512(p + 64);
        for (p += STEP_512; cut.more > 0; cut.more--, p += STEP_512) {
            a = fold_512(a, step, _mm512_loadu_si512(p));
            b = fold_512(b, step, _mm512_loadu_si512(p + 64));
        }
        for (; cut.n > 0; cut.n--, p += STEP_512, q += 8 * words) {
            a = fold_512(a, step, _mm512_loadu_si512(p));
            b = fold_512(b, step, _mm512_loadu_si512(p + 64));
            step_sets(&l, q, cut.lane, n_sets, words);
        }
        sum = join_sets(remainder_512(a, b, both_of(f->own)), &l, cut.lane, n_sets, f);
        p = q + (size_t)(n_sets * CV_CRC32C_LANES - 1) * cut.lane;
        size = (size_t)(end - p);
    }
    return finish_rest(sum, p, size);
}

/* Below these, too few steps of 512 bits. */
enum { SHORT = 1024, SHORT_OF_512_FOR_SIX = 4096 };

WITH_512 uint32_t cv_crc32c_x86_512(uint32_t crc, const void *bytes, size_t size)
{
    if (size < SHORT) return cv_crc32c_x86_128(crc, bytes, size);
    return run_512(crc, bytes, size, 1, 3);
}

WITH_512 uint32_t cv_crc32c_x86_512_six(uint32_t crc, const void *bytes, size_t size)
{
    if (size < SHORT_OF_512_FOR_SIX) return cv_crc32c_x86_256_six(crc, bytes, size);
    return run_512(crc, bytes, size, 2, 3);
}

#else
typedef int cv_crc32c_x86_is_for_x86; /* a file of C is not empty */
#endif
