/* CRC32C, the Castagnoli polynomial 0x1EDC6F41 in its reflected form, as iSCSI
 * (RFC 3720, B.4) and ext4 use it. It guards every block that is read, so it
 * runs at the speed of memory where the processor has an instruction for it. */
#ifndef CV_BASE_CRC32C_H
#define CV_BASE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* The checksum of `size` bytes, carried on from `crc`: that of the bytes before
 * them, 0 at the beginning. Any alignment, any thread. */
uint32_t cv_crc32c(uint32_t crc, const void *bytes, size_t size);

/* What cv_crc32c chooses from, for tests; all give the same. The instruction's
 * and the folding one are NULL where this processor, or the compiler's target,
 * has not what they need. */
typedef uint32_t cv_crc32c_function(uint32_t crc, const void *bytes, size_t size);
cv_crc32c_function cv_crc32c_portable;
cv_crc32c_function *cv_crc32c_hardware(void);
cv_crc32c_function *cv_crc32c_folding(void);

#endif
