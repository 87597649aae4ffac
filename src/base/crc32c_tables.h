/* The portable kind of cv_crc32c, and the powers of x that all kinds share. For
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
#ifndef CV_BASE_CRC32C_TABLES_H
#define CV_BASE_CRC32C_TABLES_H

#include "base/arith.h"

/* A lane takes `words` of 8 bytes in each step, and has this many bytes at most. So many
 * lanes are joined at once. */
enum { CV_CRC32C_LANES = 3, CV_CRC32C_LANE_BYTES = 8192 };

/* By tables, eight bytes at a time. */
uint32_t cv_crc32c_portable(uint32_t crc, const void *bytes, size_t size);

/* The table of x^(64i - 33) mod P for i from 1 to all lanes' words. */
const uint32_t *cv_crc32c_shifts(void);

/* For moving 128 bits by `bytes`: what the half of the higher and that of the lower
 * powers are multiplied by. One bit to the left, since the product is one short. */
void cv_crc32c_fold_factors(int bytes, uint64_t factors[2]);

/* How a piece of at most `size` bytes is cut for `lanes` beside a vector: first the
 * vector's part, which begins with one step and takes `more` steps alone, then the
 * lanes; in `n` steps both go on at once.
 *
 *     | step | more steps | n steps | lane | lane | lane | rest, less than a step |
 */
typedef struct cv_crc32c_cut {
    size_t more, n;
    size_t lane; /* bytes */
} cv_crc32c_cut;

static inline cv_crc32c_cut cv_crc32c_cut_of(size_t size, size_t step, size_t lanes,
                                             size_t words)
{
    size_t lane_step = words * sizeof(uint64_t);
    size_t both = step + lanes * lane_step;
    size_t most = CV_CRC32C_LANE_BYTES / lane_step;
    cv_crc32c_cut cut = {.n = (size - step) / both};
    if (cut.n > most)
        cut.n = most; /* another piece follows */
    else
        cut.more = (size - step - cut.n * both) / step;
    cut.lane = cut.n * lane_step;
    return cut;
}

#endif
