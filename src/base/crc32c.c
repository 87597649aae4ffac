/* Room: base. CRC32C by tables, and the choice among the kinds that
 * crc32c_x86.c and crc32c_arm.c add. Promises: the same number from all. */
#include "base/crc32c.h"

#include "base/crc32c_kinds.h"

#include <pthread.h>

#define POLYNOMIAL UINT32_C(0x82f63b78) /* reflected: the highest power is bit 0 */

/* ---- Portable: eight bytes at a time, a table for each -------------------- */

static uint32_t slices[8][256];
static pthread_once_t slices_once = PTHREAD_ONCE_INIT;

static uint32_t times_x(uint32_t a) { return a >> 1 ^ (a & 1 ? POLYNOMIAL : 0); }

static void make_slices(void)
{
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t crc = i;
        for (int bit = 0; bit < 8; bit++) crc = times_x(crc);
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

/* ---- Powers of x ------------------------------------------------------------ */

enum { N_SHIFTS = CV_CRC32C_LANES * CV_CRC32C_LANE_BYTES / 8 + 1 };

static uint32_t shifts[N_SHIFTS];
static pthread_once_t shifts_once = PTHREAD_ONCE_INIT;

uint32_t cv_crc32c_power(int n)
{
    uint32_t power = UINT32_C(1) << 31;
    for (int i = 0; i < n; i++) power = times_x(power);
    return power;
}

static void make_shifts(void)
{
    pthread_once(&slices_once, make_slices);
    shifts[1] = cv_crc32c_power(64 - 33);
    for (int i = 2; i < N_SHIFTS; i++) shifts[i] = fold(shifts[i - 1], 0); /* by x^64 */
}

const uint32_t *cv_crc32c_shifts(void)
{
    pthread_once(&shifts_once, make_shifts);
    return shifts;
}

void cv_crc32c_fold_factors(int bytes, uint64_t factors[2])
{
    factors[0] = (uint64_t)cv_crc32c_power(8 * bytes + 32) << 1;
    factors[1] = (uint64_t)cv_crc32c_power(8 * bytes - 32) << 1;
}

/* ---- The choice ----------------------------------------------------------- */

static const cv_crc32c_kind kinds[] = {
#if CV_CPU_IS_X86
    {"AVX-512", CV_CPU_AVX512 | CV_CPU_VCLMUL | CV_CPU_CLMUL | CV_CPU_CRC, cv_crc32c_512},
    {"AVX2", CV_CPU_AVX2 | CV_CPU_VCLMUL | CV_CPU_CLMUL | CV_CPU_CRC, cv_crc32c_256},
    {"SSE4.2", CV_CPU_CLMUL | CV_CPU_CRC, cv_crc32c_128},
    {"instruction", CV_CPU_CRC, cv_crc32c_instruction},
#elif CV_CPU_IS_ARM
    {"PMULL", CV_CPU_CLMUL | CV_CPU_CRC, cv_crc32c_128},
    {"instruction", CV_CPU_CRC, cv_crc32c_instruction},
#endif
    {"portable", 0, cv_crc32c_portable},
};

const cv_crc32c_kind *cv_crc32c_kinds(int *n)
{
    *n = (int)(sizeof kinds / sizeof kinds[0]);
    return kinds;
}

uint32_t cv_crc32c(uint32_t crc, const void *bytes, size_t size)
{
    const cv_crc32c_kind *kind = kinds;
    while (!cv_cpu_can(kind->needs)) kind++;
    return kind->run(crc, bytes, size);
}
