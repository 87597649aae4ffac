/* CRC32C with the instructions of ARMv8: `word` is the crc instruction alone, the other
 * has vectors of 128 bits beside it. What each needs is said where one is chosen, in
 * crc32c.c. */
#ifndef CV_BASE_CRC32C_ARM_H
#define CV_BASE_CRC32C_ARM_H

#include "base/cpu.h"

#include <stddef.h>
#include <stdint.h>

#if CV_CPU_IS_ARM
uint32_t cv_crc32c_arm_word(uint32_t crc, const void *bytes, size_t size);
uint32_t cv_crc32c_arm_128(uint32_t crc, const void *bytes, size_t size);
#endif

#endif
