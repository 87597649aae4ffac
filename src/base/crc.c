/* Room: base. Computes CRC-32 for zip archives by tables, and CRC32C for frames by the processor's
 * fastest instructions. All implementations return the same value, for any alignment. Tables are
 * computed when they are first needed.
 *
 * In these formulas a crc is the content of the register, without the inversions at both ends. It
 * is a polynomial over GF(2) modulo P, the generator polynomial; bit 0 is the highest power, x^31.
 * For consecutive lanes A, B, C of L bytes, each computed from 0,
 *
 *     crc(A B C) = crc(A) x^16L + crc(B) x^8L + crc(C)
 *
 * register(crc, word) is one step of the crc instruction; register(0, word) is word x^32 mod P. The
 * carry-less product of two crcs has 63 bits, and as a word of 64 bits it stands for x times the
 * product. Hence a shift by n words is
 *
 *     crc x^64n = register(0, crc * x^(64n - 33)) */
#include "base/crc.h"

#include "base/arith.h"
#include "base/cpu.h"
#include "base/thread.h"

/* ---- By tables ---- */

/* of[k][b]: what a byte with value b adds to the register when k more bytes follow it. */
typedef struct slices {
    uint32_t of[8][256];
} slices;

/* Returns the product of the polynomial `a` and x. Bit 0 of `a` is its highest power. */
static uint32_t times_x(uint32_t a, uint32_t modulus)
{
    return a >> 1 ^ (a & 1 ? modulus : 0);
}

static void make_slices(slices *out, uint32_t modulus)
{
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t crc = i;
        for (int bit = 0; bit < 8; bit++) crc = times_x(crc, modulus);
        out->of[0][i] = crc;
    }
    for (int k = 1; k < 8; k++)
        for (int i = 0; i < 256; i++)
            out->of[k][i] = out->of[k - 1][i] >> 8 ^ out->of[0][out->of[k - 1][i] & 0xff];
}

static inline uint32_t fold_word(const slices *s, uint32_t low, uint32_t high)
{
    return s->of[7][low & 0xff] ^ s->of[6][low >> 8 & 0xff] ^ s->of[5][low >> 16 & 0xff] ^
           s->of[4][low >> 24] ^ s->of[3][high & 0xff] ^ s->of[2][high >> 8 & 0xff] ^
           s->of[1][high >> 16 & 0xff] ^ s->of[0][high >> 24];
}

static uint32_t crc_by_slices(const slices *s, uint32_t crc, const uint8_t *p, size_t size)
{
    crc = ~crc;
    for (; size >= 8; size -= 8, p += 8)
        crc = fold_word(s, crc ^ cv_load_le32(p), cv_load_le32(p + 4));
    for (; size > 0; size--) crc = crc >> 8 ^ s->of[0][(crc ^ *p++) & 0xff];
    return ~crc;
}

/* Tables for CRC-32 of zip archives. They are as fast as a disk, which suffices. */
static slices zip_slices;
static cv_once zip_slices_once = CV_ONCE_INIT;

static void make_zip_slices(void) { make_slices(&zip_slices, 0xedb88320u); }

uint32_t cv_crc32(uint32_t crc, const void *bytes, size_t size)
{
    cv_once_run(&zip_slices_once, make_zip_slices);
    return crc_by_slices(&zip_slices, crc, bytes, size);
}

static const uint32_t polynomial = 0x82f63b78;
static slices own_slices;
static cv_once own_slices_once = CV_ONCE_INIT;

static void make_own_slices(void) { make_slices(&own_slices, polynomial); }

static uint32_t crc_portable(uint32_t crc, const void *bytes, size_t size)
{
    cv_once_run(&own_slices_once, make_own_slices);
    return crc_by_slices(&own_slices, crc, bytes, size);
}

#if CV_CPU_IS_X86 || CV_CPU_IS_ARM

/* ---- CRC32C: common to all implementations -------------------------------- */

/* A lane takes at most LANE_BYTES bytes, a few words in each step. join() joins LANES crcs. */
enum { LANES = 3, LANE_BYTES = 8192 };

/* How a piece of the input is divided. The vector registers take the bytes of the first 1 + more +
 * n steps, and the lanes take the bytes behind these. In the first 1 + more steps the registers
 * work alone; in each of the n steps after these, registers and lanes work in turn.
 *
 *     | step | more steps | n steps | lane | lane | lane | rest, less than a step | */
typedef struct piece {
    size_t more, n;
    size_t lane; /* bytes of each lane */
} piece;

static inline piece cut_of(size_t size, size_t step, size_t lanes, size_t words)
{
    size_t lane_step = words * sizeof(uint64_t);
    size_t both = step + lanes * lane_step;
    size_t most = LANE_BYTES / lane_step;
    piece cut = {.n = (size - step) / both};
    if (cut.n > most)
        cut.n = most; /* another piece follows */
    else
        cut.more = (size - step - cut.n * both) / step;
    cut.lane = cut.n * lane_step;
    return cut;
}

/* ---- Powers of x ------------------------------------------------------------ */

enum { N_SHIFTS = LANES * LANE_BYTES / 8 + 1 };

static uint32_t shift_table[N_SHIFTS];
static cv_once shifts_once = CV_ONCE_INIT;

/* Returns x^n mod P. */
static uint32_t power_of_x(int n)
{
    uint32_t power = UINT32_C(1) << 31;
    for (int i = 0; i < n; i++) power = times_x(power, polynomial);
    return power;
}

static void make_shifts(void)
{
    cv_once_run(&own_slices_once, make_own_slices);
    shift_table[1] = power_of_x(64 - 33);
    for (int i = 2; i < N_SHIFTS; i++)
        shift_table[i] = fold_word(&own_slices, shift_table[i - 1], 0); /* times x^64 */
}

/* Returns the table of x^(64i - 33) mod P, for i from 1 to the number of words in all lanes. */
static const uint32_t *get_shifts(void)
{
    cv_once_run(&shifts_once, make_shifts);
    return shift_table;
}

/* Computes the factors that shift the two halves of 128 bits by `bytes` bytes. The factors are
 * shifted left by one bit because the product of 64 by 64 bits has 127 bits. */
static void make_fold_factors(int bytes, uint64_t factors[2])
{
    factors[0] = (uint64_t)power_of_x(8 * bytes + 32) << 1;
    factors[1] = (uint64_t)power_of_x(8 * bytes - 32) << 1;
}

/* Computes a carry-less product without an instruction for it, by 32 shifts and XORs. */
static inline uint64_t product_by_bits(uint32_t a, uint32_t b)
{
    uint64_t product = 0;
    for (int i = 0; i < 32; i++) product ^= (uint64_t)a << i & -(uint64_t)(b >> i & 1);
    return product;
}

/* ---- Instructions for CRC32C ---------------------------------------------- */

#if CV_CPU_IS_X86

#include <immintrin.h>

#if defined(__clang__) && __clang_major__ >= 14 /* crc32 is a separate feature */
#define CRC_TARGET "sse4.2,crc32"
#else
#define CRC_TARGET "sse4.2"
#endif
#define WITH_CRC __attribute__((target(CRC_TARGET)))
#define WITH_128 __attribute__((target(CRC_TARGET ",pclmul")))
#define WITH_256 __attribute__((target(CRC_TARGET ",avx2,vpclmulqdq,pclmul")))
#define WITH_512                                                                             \
    __attribute__((target(CRC_TARGET ",avx512f,avx512vl,avx512dq,avx2,vpclmulqdq,pclmul")))
#define CRC_8(crc, word) _mm_crc32_u64(crc, word)
#define CRC_1(crc, byte) _mm_crc32_u8((uint32_t)(crc), byte)
typedef uint64_t crc_register; /* the upper half is 0 */

#else

#include <arm_neon.h>

/* Clang's headers hide intrinsics that the build's target lacks; Clang's builtins work. */
#if defined(__clang__)
#define WITH_CRC __attribute__((target("crc")))
#define WITH_128 __attribute__((target("crc,aes")))
#define CRC_8(crc, word) __builtin_arm_crc32cd(crc, word)
#define CRC_1(crc, byte) __builtin_arm_crc32cb(crc, byte)
#else
#include <arm_acle.h>
#define WITH_CRC __attribute__((target("+crc")))
#define WITH_128 __attribute__((target("+crc+crypto")))
#define CRC_8(crc, word) __crc32cd(crc, word)
#define CRC_1(crc, byte) __crc32cb(crc, byte)
#endif
typedef uint32_t crc_register;

#endif

#define PART static inline __attribute__((always_inline))

typedef struct lanes {
    crc_register a, b, c;
} lanes;

WITH_CRC PART void step_lanes(lanes *l, const uint8_t *p, size_t lane, int words)
{
    for (int i = 0; i < words; i++, p += 8) {
        l->a = CRC_8(l->a, cv_load_le64(p));
        l->b = CRC_8(l->b, cv_load_le64(p + lane));
        l->c = CRC_8(l->c, cv_load_le64(p + 2 * lane));
    }
}

WITH_CRC PART uint32_t finish_rest(crc_register crc, const uint8_t *p, size_t size)
{
    for (; size >= 8; size -= 8, p += 8) crc = CRC_8(crc, cv_load_le64(p));
    for (; size > 0; size--) crc = CRC_1(crc, *p++);
    return ~(uint32_t)crc;
}

WITH_CRC static uint32_t crc_word(uint32_t crc, const void *bytes, size_t size)
{
    enum { SHORT = 3 * 128 }; /* below this size, joining lanes costs more than lanes save */
    const uint8_t *p = bytes;
    crc_register sum = ~crc;
    while (size >= SHORT) {
        size_t lane = size / 3 < LANE_BYTES ? size / 24 * 8 : LANE_BYTES;
        lanes l = {.a = sum};
        for (const uint8_t *end = p + lane; p < end; p += 8) step_lanes(&l, p, lane, 1);
        const uint32_t *shifts = get_shifts();
        uint64_t joined = product_by_bits((uint32_t)l.a, shifts[2 * lane / 8]) ^
                          product_by_bits((uint32_t)l.b, shifts[lane / 8]);
        sum = CRC_8(0, joined) ^ l.c;
        p += 2 * lane;
        size -= 3 * lane;
    }
    return finish_rest(sum, p, size);
}

#endif

/* ---- CRC32C on x86-64 ----
 *
 * The crc instruction takes 8 bytes per cycle with a latency of three cycles: three lanes keep it
 * busy. Meanwhile carry-less multiplication folds another part of the input into registers (V.
 * Gopal et al., "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ Instruction", Intel,
 * 2009). The two instructions use different units of the processor. So one loop folds two registers
 * and gives each lane three or four words. Measurements show that two registers suffice, because
 * the lanes hide the latency of the products.
 *
 * Zen 5 starts two or more crc instructions per cycle. There, six lanes (two sets of three) run
 * beside the two registers. Measured in GB/s, three lanes -> six: 38 -> 62 with registers of 128
 * bits, 54 -> 74 with 256, 78 -> 92 with 512. On processors that start one crc instruction per
 * cycle, six lanes would be 8 to 31 % slower. */

#if CV_CPU_IS_X86

/* One or two sets of three lanes. In the input, the first set precedes the second. */
typedef struct sets {
    lanes first, second;
} sets;

WITH_CRC PART void step_sets(sets *s, const uint8_t *p, size_t lane, int n_sets, int words)
{
    for (int i = 0; i < words; i++, p += 8) {
        step_lanes(&s->first, p, lane, 1);
        if (n_sets == 2) step_lanes(&s->second, p + LANES * lane, lane, 1);
    }
}

/* ---- Folding -------------------------------------------------------------------- */

/* Bytes that two registers of this width take in one step. */
enum { STEP_128 = 32, STEP_256 = 64, STEP_512 = 128 };

/* Factors that shift 128 bits by 16 bytes (`own`) and by one step of each width. `shifts` are the
 * factors that shift crcs by lanes. */
typedef struct factors {
    uint64_t own[2], step_128[2], step_256[2], step_512[2];
    const uint32_t *shifts;
} factors;

static factors known;
static cv_once known_once = CV_ONCE_INIT;

static void make_factors(void)
{
    make_fold_factors(16, known.own);
    make_fold_factors(STEP_128, known.step_128);
    make_fold_factors(STEP_256, known.step_256);
    make_fold_factors(STEP_512, known.step_512);
    known.shifts = get_shifts();
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

/* Returns the crc of the bytes that were folded into 128 bits. */
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

/* Joins the lanes' crcs to `crc`, the crc of all bytes before the lanes. */
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
        piece cut = cut_of(size, STEP_128, (size_t)n_sets * LANES, (size_t)words);
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
        p = q + (size_t)(n_sets * LANES - 1) * cut.lane;
        size = (size_t)(end - p);
    }
    return finish_rest(sum, p, size);
}

WITH_128 static uint32_t crc_128(uint32_t crc, const void *bytes, size_t size)
{
    return run_128(crc, bytes, size, 1, 4);
}

/* Below this many bytes, six lanes have too few steps to be faster than three. */
enum { SHORT_FOR_SIX = 1024 };

WITH_128 static uint32_t crc_128_six(uint32_t crc, const void *bytes, size_t size)
{
    if (size < SHORT_FOR_SIX) return crc_128(crc, bytes, size);
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
        piece cut = cut_of(size, STEP_256, (size_t)n_sets * LANES, (size_t)words);
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
        p = q + (size_t)(n_sets * LANES - 1) * cut.lane;
        size = (size_t)(end - p);
    }
    return finish_rest(sum, p, size);
}

WITH_256 static uint32_t crc_256(uint32_t crc, const void *bytes, size_t size)
{
    return run_256(crc, bytes, size, 1, 3);
}

WITH_256 static uint32_t crc_256_six(uint32_t crc, const void *bytes, size_t size)
{
    if (size < SHORT_FOR_SIX) return crc_128(crc, bytes, size);
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
        piece cut = cut_of(size, STEP_512, (size_t)n_sets * LANES, (size_t)words);
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
        p = q + (size_t)(n_sets * LANES - 1) * cut.lane;
        size = (size_t)(end - p);
    }
    return finish_rest(sum, p, size);
}

/* Inputs below these sizes in bytes have too few steps of 512 bits. */
enum { SHORT = 1024, SHORT_OF_512_FOR_SIX = 4096 };

WITH_512 static uint32_t crc_512(uint32_t crc, const void *bytes, size_t size)
{
    if (size < SHORT) return crc_128(crc, bytes, size);
    return run_512(crc, bytes, size, 1, 3);
}

WITH_512 static uint32_t crc_512_six(uint32_t crc, const void *bytes, size_t size)
{
    if (size < SHORT_OF_512_FOR_SIX) return crc_256_six(crc, bytes, size);
    return run_512(crc, bytes, size, 2, 3);
}

#endif

/* ---- CRC32C on ARMv8 ----
 *
 * Works as on x86-64, but with four registers, because PMULL is as fast as the crc instruction.
 * Both instructions are optional on ARMv8, so their presence is checked at run time. */

#if CV_CPU_IS_ARM

enum { STEP = 64 };

static uint64_t by_own[2], by_step[2]; /* shift 128 bits by 16 bytes, and by STEP */
static cv_once factors_once = CV_ONCE_INIT;

static void make_factors(void)
{
    make_fold_factors(16, by_own);
    make_fold_factors(STEP, by_step);
}

WITH_128 PART uint64x2_t load(const uint8_t *p) { return vreinterpretq_u64_u8(vld1q_u8(p)); }

/* product_low multiplies the lower 64 bits (carry-less), product_high the upper 64 bits. */
WITH_128 PART uint64x2_t product_low(uint64x2_t a, uint64x2_t b)
{
    uint64x2_t product;
    __asm__("pmull %0.1q, %1.1d, %2.1d" : "=w"(product) : "w"(a), "w"(b));
    return product;
}

WITH_128 PART uint64x2_t product_high(uint64x2_t a, uint64x2_t b)
{
    uint64x2_t product;
    __asm__("pmull2 %0.1q, %1.2d, %2.2d" : "=w"(product) : "w"(a), "w"(b));
    return product;
}

WITH_128 PART uint64x2_t fold(uint64x2_t x, uint64x2_t factors, uint64x2_t next)
{
    return veorq_u64(next, veorq_u64(product_low(x, factors), product_high(x, factors)));
}

WITH_128 PART uint32_t remainder_of(uint64x2_t x)
{
    return CRC_8(CRC_8(0, vgetq_lane_u64(x, 0)), vgetq_lane_u64(x, 1));
}

WITH_128 PART uint64_t product(uint32_t crc, uint32_t factor)
{
    return vgetq_lane_u64(product_low(vdupq_n_u64(crc), vdupq_n_u64(factor)), 0);
}

WITH_128 PART uint32_t join(uint32_t crc, const lanes *l, size_t lane)
{
    if (lane == 0) return crc;
    const uint32_t *shifts = get_shifts();
    size_t words = lane / 8;
    return CRC_8(0, product(crc, shifts[3 * words]) ^ product(l->a, shifts[2 * words]) ^
                        product(l->b, shifts[words])) ^
           l->c;
}

WITH_128 static uint32_t crc_128(uint32_t crc, const void *bytes, size_t size)
{
    enum { WORDS = 4 };
    const uint8_t *p = bytes;
    crc = ~crc;
    cv_once_run(&factors_once, make_factors);
    const uint64x2_t step = vld1q_u64(by_step);
    const uint64x2_t own = vld1q_u64(by_own);
    while (size >= (size_t)2 * STEP) {
        piece cut = cut_of(size, STEP, LANES, WORDS);
        const uint8_t *end = p + size, *q = p + (1 + cut.more + cut.n) * STEP;
        lanes l = {0};
        uint64x2_t x[4] = {load(p), load(p + 16), load(p + 32), load(p + 48)};
        x[0] = veorq_u64(x[0], vsetq_lane_u64(crc, vdupq_n_u64(0), 0));
        for (p += STEP; cut.more > 0; cut.more--, p += STEP)
            for (int i = 0; i < 4; i++) x[i] = fold(x[i], step, load(p + 16 * i));
        for (; cut.n > 0; cut.n--, p += STEP, q += 8 * WORDS) {
            for (int i = 0; i < 4; i++) x[i] = fold(x[i], step, load(p + 16 * i));
            step_lanes(&l, q, cut.lane, WORDS);
        }
        for (int i = 1; i < 4; i++) x[0] = fold(x[0], own, x[i]);
        crc = join(remainder_of(x[0]), &l, cut.lane);
        p = q + 2 * cut.lane;
        size = (size_t)(end - p);
    }
    return finish_rest(crc, p, size);
}

#endif

/* ---- CRC32C: selection ---------------------------------------------------- */

enum {
    CRC = CV_CPU_CRC,
    CLMUL = CV_CPU_CRC | CV_CPU_CLMUL,
    AVX2 = CLMUL | CV_CPU_VCLMUL | CV_CPU_AVX2,
    AVX512 = CLMUL | CV_CPU_VCLMUL | CV_CPU_AVX512
};

static const cv_crc32c_kind kinds[] = {
#if CV_CPU_IS_X86
    {"AVX-512, six lanes", AVX512, CV_CPU_CRC_TWICE, crc_512_six},
    {"AVX-512", AVX512, 0, crc_512},
    {"AVX2, six lanes", AVX2, CV_CPU_CRC_TWICE, crc_256_six},
    {"AVX2", AVX2, 0, crc_256},
    {"SSE4.2, six lanes", CLMUL, CV_CPU_CRC_TWICE, crc_128_six},
    {"SSE4.2", CLMUL, 0, crc_128},
    {"instruction", CRC, 0, crc_word},
#elif CV_CPU_IS_ARM
    {"PMULL", CLMUL, 0, crc_128},
    {"instruction", CRC, 0, crc_word},
#endif
    {"portable", 0, 0, crc_portable},
};

const cv_crc32c_kind *cv_crc32c_kinds(int *n)
{
    *n = (int)(sizeof kinds / sizeof kinds[0]);
    return kinds;
}

uint32_t cv_crc32c(uint32_t crc, const void *bytes, size_t size)
{
    const cv_crc32c_kind *kind = kinds;
    unsigned missing = ~cv_cpu_features(); /* read once: six calls take measurable time */
    while ((kind->needs | kind->suits) & missing) kind++;
    return kind->run(crc, bytes, size);
}
