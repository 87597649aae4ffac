/* Checksums: CRC-32 of zip archives, and CRC32C, which the library checks its frames by. */
#ifndef CV_BASE_CRC_H
#define CV_BASE_CRC_H

#include <stddef.h>
#include <stdint.h>

/* The CRC of zip archives (the polynomial of Ethernet, 0xedb88320), carried on from `crc`,
 * which is 0 at the beginning. Any thread. */
uint32_t cv_crc32(uint32_t crc, const void *bytes, size_t size);

/* Returns the CRC32C of `size` bytes, carried on from `crc`: that of the bytes before them, 0 at
 * the beginning. This is the Castagnoli polynomial 0x1EDC6F41 in its reflected form, as iSCSI
 * (RFC 3720, B.4) and ext4 use it. It guards every block that is read, so it runs at the speed
 * of the second cache if the processor has instructions for it. Any alignment, any thread. */
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
