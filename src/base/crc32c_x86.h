/* CRC32C with the instructions of x86-64: `word` is the crc instruction alone, the others
 * have vectors of so many bits beside it, and three lanes for it or six. What each needs is
 * said where one is chosen, in crc32c.c. */
#ifndef CV_BASE_CRC32C_X86_H
#define CV_BASE_CRC32C_X86_H

#include "base/cpu.h"

#include <stddef.h>
#include <stdint.h>

#if CV_CPU_IS_X86
uint32_t cv_crc32c_x86_word(uint32_t crc, const void *bytes, size_t size);
uint32_t cv_crc32c_x86_128(uint32_t crc, const void *bytes, size_t size);
uint32_t cv_crc32c_x86_256(uint32_t crc, const void *bytes, size_t size);
uint32_t cv_crc32c_x86_512(uint32_t crc, const void *bytes, size_t size);
uint32_t cv_crc32c_x86_128_six(uint32_t crc, const void *bytes, size_t size);
uint32_t cv_crc32c_x86_256_six(uint32_t crc, const void *bytes, size_t size);
uint32_t cv_crc32c_x86_512_six(uint32_t crc, const void *bytes, size_t size);
#endif

#endif
