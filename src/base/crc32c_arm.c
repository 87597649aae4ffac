/* Room: base. CRC32C with the instructions of ARMv8: crc and PMULL, which not every
 * processor has. Promises what cv_crc32c_portable promises. How it is done stands in
 * crc32c_x86.c; four registers here, since PMULL is as fast as the crc instruction. */
#include "base/crc32c_arm.h"

#include "base/crc32c_tables.h"
#include "base/thread.h"

#if CV_CPU_IS_ARM

#include <arm_neon.h>

/* Clang's headers hide what the build's target has not. */
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
#define PART static inline __attribute__((always_inline))

typedef struct lanes {
    uint32_t a, b, c;
} lanes;

WITH_CRC PART void step_lanes(lanes *l, const uint8_t *p, size_t lane, int words)
{
    for (int i = 0; i < words; i++, p += 8) {
        l->a = CRC_8(l->a, cv_load_le64(p));
        l->b = CRC_8(l->b, cv_load_le64(p + lane));
        l->c = CRC_8(l->c, cv_load_le64(p + 2 * lane));
    }
}

WITH_CRC PART uint32_t finish_rest(uint32_t crc, const uint8_t *p, size_t size)
{
    for (; size >= 8; size -= 8, p += 8) crc = CRC_8(crc, cv_load_le64(p));
    for (; size > 0; size--) crc = CRC_1(crc, *p++);
    return ~crc;
}

/* ---- The instruction alone ---------------------------------------------------- */

static uint64_t product_by_bits(uint32_t a, uint32_t b)
{
    uint64_t product = 0;
    for (int i = 0; i < 32; i++) product ^= (uint64_t)a << i & -(uint64_t)(b >> i & 1);
    return product;
}

WITH_CRC uint32_t cv_crc32c_arm_word(uint32_t crc, const void *bytes, size_t size)
{
    enum { SHORT = 3 * 128 }; /* joining lanes costs more than they win */
    const uint8_t *p = bytes;
    crc = ~crc;
    while (size >= SHORT) {
        size_t lane = size / 3 < CV_CRC32C_LANE_BYTES ? size / 24 * 8 : CV_CRC32C_LANE_BYTES;
        lanes l = {.a = crc};
        for (const uint8_t *end = p + lane; p < end; p += 8) step_lanes(&l, p, lane, 1);
        const uint32_t *shifts = cv_crc32c_shifts();
        uint64_t joined = product_by_bits(l.a, shifts[2 * lane / 8]) ^
                          product_by_bits(l.b, shifts[lane / 8]);
        crc = CRC_8(0, joined) ^ l.c;
        p += 2 * lane;
        size -= 3 * lane;
    }
    return finish_rest(crc, p, size);
}

/* ---- Folding -------------------------------------------------------------------- */

enum { STEP = 64 };

static uint64_t by_own[2], by_step[2]; /* moving 128 bits by their width, and by a step */
static cv_once factors_once = CV_ONCE_INIT;

static void make_factors(void)
{
    cv_crc32c_fold_factors(16, by_own);
    cv_crc32c_fold_factors(STEP, by_step);
}

WITH_128 PART uint64x2_t load(const uint8_t *p) { return vreinterpretq_u64_u8(vld1q_u8(p)); }

/* The product of the lower halves, and that of the upper ones. */
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
    const uint32_t *shifts = cv_crc32c_shifts();
    size_t words = lane / 8;
    return CRC_8(0, product(crc, shifts[3 * words]) ^ product(l->a, shifts[2 * words]) ^
                        product(l->b, shifts[words])) ^
           l->c;
}

WITH_128 uint32_t cv_crc32c_arm_128(uint32_t crc, const void *bytes, size_t size)
{
    enum { WORDS = 4 };
    const uint8_t *p = bytes;
    crc = ~crc;
    cv_once_run(&factors_once, make_factors);
    const uint64x2_t step = vld1q_u64(by_step);
    const uint64x2_t own = vld1q_u64(by_own);
    while (size >= (size_t)2 * STEP) {
        cv_crc32c_cut cut = cv_crc32c_cut_of(size, STEP, CV_CRC32C_LANES, WORDS);
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

#else
typedef int cv_crc32c_arm_is_for_arm; /* a file of C is not empty */
#endif
