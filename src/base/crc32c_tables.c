/* Room: base. CRC32C by tables, and the tables that the other kinds take powers from.
 * Made at first need, each once. */
#include "base/crc32c_tables.h"
#include "base/thread.h"

#define POLYNOMIAL UINT32_C(0x82f63b78) /* reflected: the highest power is bit 0 */

/* ---- Portable: eight bytes at a time, a table for each -------------------- */

static uint32_t slices[8][256];
static cv_once slices_once = CV_ONCE_INIT;

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
    cv_once_run(&slices_once, make_slices);
    crc = ~crc;
    for (; size >= 8; size -= 8, p += 8)
        crc = fold(crc ^ cv_load_le32(p), cv_load_le32(p + 4));
    for (; size > 0; size--) crc = crc >> 8 ^ slices[0][(crc ^ *p++) & 0xff];
    return ~crc;
}

/* ---- Powers of x ------------------------------------------------------------ */

enum { N_SHIFTS = CV_CRC32C_LANES * CV_CRC32C_LANE_BYTES / 8 + 1 };

static uint32_t shifts[N_SHIFTS];
static cv_once shifts_once = CV_ONCE_INIT;

/* x^n mod P. */
static uint32_t power_of_x(int n)
{
    uint32_t power = UINT32_C(1) << 31;
    for (int i = 0; i < n; i++) power = times_x(power);
    return power;
}

static void make_shifts(void)
{
    cv_once_run(&slices_once, make_slices);
    shifts[1] = power_of_x(64 - 33);
    for (int i = 2; i < N_SHIFTS; i++) shifts[i] = fold(shifts[i - 1], 0); /* by x^64 */
}

const uint32_t *cv_crc32c_shifts(void)
{
    cv_once_run(&shifts_once, make_shifts);
    return shifts;
}

void cv_crc32c_fold_factors(int bytes, uint64_t factors[2])
{
    factors[0] = (uint64_t)power_of_x(8 * bytes + 32) << 1;
    factors[1] = (uint64_t)power_of_x(8 * bytes - 32) << 1;
}
