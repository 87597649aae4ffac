/* Room: base. CRC-32 by tables, eight bytes at a time: as fast as a disk, which is all
 * that archives ask for. */
#include "base/crc32.h"

#include "base/arith.h"
#include "base/thread.h"

enum { SLICES = 8 };
static uint32_t tables[SLICES][256];
static cv_once tables_once = CV_ONCE_INIT;

static void make_tables(void)
{
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t crc = i;
        for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
        tables[0][i] = crc;
    }
    for (int k = 1; k < SLICES; k++)
        for (uint32_t i = 0; i < 256; i++)
            tables[k][i] = tables[k - 1][i] >> 8 ^ tables[0][tables[k - 1][i] & 0xff];
}

uint32_t cv_crc32(uint32_t crc, const void *bytes, size_t size)
{
    const uint8_t *at = bytes;
    cv_once_run(&tables_once, make_tables);
    crc = ~crc;
    for (; size >= SLICES; at += SLICES, size -= SLICES) {
        uint32_t low = crc ^ cv_load_le32(at), high = cv_load_le32(at + 4);
        crc = tables[7][low & 0xff] ^ tables[6][low >> 8 & 0xff] ^
              tables[5][low >> 16 & 0xff] ^ tables[4][low >> 24] ^ tables[3][high & 0xff] ^
              tables[2][high >> 8 & 0xff] ^ tables[1][high >> 16 & 0xff] ^
              tables[0][high >> 24];
    }
    for (; size > 0; at++, size--) crc = crc >> 8 ^ tables[0][(crc ^ *at) & 0xff];
    return ~crc;
}
