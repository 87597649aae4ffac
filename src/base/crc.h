/* Checksums: CRC-32 of zip archives, and CRC32C for frames. */
#ifndef CV_BASE_CRC_H
#define CV_BASE_CRC_H

#include <stddef.h>
#include <stdint.h>

/* Returns the CRC-32 of zip archives (0xedb88320), continued from `crc`, at first 0. Any thread. */
uint32_t cv_crc32(uint32_t crc, const void *bytes, size_t size);

/* Returns the CRC32C of `size` bytes, continued from `crc` (0 at first): Castagnoli, 0x1EDC6F41,
 * reflected, as in iSCSI (RFC 3720, B.4) and ext4. Uses the processor's instructions, because each
 * block's CRC32C is computed when the block is read. Any alignment, any thread. */
uint32_t cv_crc32c(uint32_t crc, const void *bytes, size_t size);

/* One implementation of cv_crc32c. All implementations return the same value. */
typedef struct cv_crc32c_kind {
    const char *name;
    unsigned needs; /* cv_cpu_feature bits that `run` requires */
    unsigned suits; /* bits without which a later implementation in the list is faster */
    uint32_t (*run)(uint32_t crc, const void *bytes, size_t size);
} cv_crc32c_kind;

/* Returns the *n implementations for this architecture, fastest first; the last one is portable.
 * cv_crc32c uses the first one whose `needs` and `suits` cv_cpu_can confirms. */
const cv_crc32c_kind *cv_crc32c_kinds(int *n);

#endif
