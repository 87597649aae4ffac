/* The CRC of zip archives (the polynomial of Ethernet, 0xedb88320). What the library
 * checks its own frames by is base/crc32c.h. */
#ifndef CV_BASE_CRC_H
#define CV_BASE_CRC_H

#include "base/arith.h"
#include "base/cpu.h"

#include <stddef.h>
#include <stdint.h>

/* Goes on with `crc`, which is 0 at the beginning. Any thread. */
uint32_t cv_crc32(uint32_t crc, const void *bytes, size_t size);

/* ---- crc32c_tables ----
 * The portable kind of cv_crc32c, and the powers of x that all kinds share. For
 * crc32c*.c only.
 *
 * A crc here is the register itself, without the inversion before and after. It is
 * a polynomial over GF(2) below P; bit 0 is the highest power, x^31. The crc of
 * what stands in lanes one behind the other, each taken from 0 on, is
 *
 *   crc(A B C) = crc(A) x^16L + crc(B) x^8L + crc(C)        L bytes a lane
 *
 * and the product of two such numbers has 63 bits. Read as 64, bit 0 the highest
 * power, it is x times the product, and 64 more bits through the register are a
 * factor of x^32. Hence the factor for a shift by n words of 64 bits:
 *
 *   crc x^64n = register(0, crc * x^(64n - 33)) */

/* By tables, eight bytes at a time. */
uint32_t cv_crc32c_portable(uint32_t crc, const void *bytes, size_t size);

/* ---- crc32c_x86 ----
 * CRC32C with the instructions of x86-64: `word` is the crc instruction alone, the others
 * have vectors of so many bits beside it, and three lanes for it or six. What each needs is
 * said where one is chosen, in crc32c.c. */

#if CV_CPU_IS_X86
uint32_t cv_crc32c_x86_word(uint32_t crc, const void *bytes, size_t size);
uint32_t cv_crc32c_x86_128(uint32_t crc, const void *bytes, size_t size);
uint32_t cv_crc32c_x86_256(uint32_t crc, const void *bytes, size_t size);
uint32_t cv_crc32c_x86_512(uint32_t crc, const void *bytes, size_t size);
uint32_t cv_crc32c_x86_128_six(uint32_t crc, const void *bytes, size_t size);
uint32_t cv_crc32c_x86_256_six(uint32_t crc, const void *bytes, size_t size);
uint32_t cv_crc32c_x86_512_six(uint32_t crc, const void *bytes, size_t size);
#endif

/* ---- crc32c_arm ----
 * CRC32C with the instructions of ARMv8: `word` is the crc instruction alone, the other
 * has vectors of 128 bits beside it. What each needs is said where one is chosen, in
 * crc32c.c. */

#if CV_CPU_IS_ARM
uint32_t cv_crc32c_arm_word(uint32_t crc, const void *bytes, size_t size);
uint32_t cv_crc32c_arm_128(uint32_t crc, const void *bytes, size_t size);
#endif

/* ---- crc32c ----
 * CRC32C, the Castagnoli polynomial 0x1EDC6F41 in its reflected form, as iSCSI
 * (RFC 3720, B.4) and ext4 use it. It guards every block that is read, so it
 * runs at the speed of the second cache where the processor has instructions
 * for it. */

/* The checksum of `size` bytes, carried on from `crc`: that of the bytes before
 * them, 0 at the beginning. Any alignment, any thread. */
uint32_t cv_crc32c(uint32_t crc, const void *bytes, size_t size);

/* One way to compute it. All give the same. */
typedef struct cv_crc32c_kind {
    const char *name;
    unsigned needs; /* cv_cpu_feature; without them `run` may not be called */
    unsigned suits; /* and without these another one is faster              */
    uint32_t (*run)(uint32_t crc, const void *bytes, size_t size);
} cv_crc32c_kind;

/* What there is for this kind of processor, the fastest first; cv_crc32c takes the
 * first for which cv_cpu_can both. The last one is portable and needs nothing. */
const cv_crc32c_kind *cv_crc32c_kinds(int *n);

#endif
