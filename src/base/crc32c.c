/* Room: base. The choice among the kinds of CRC32C: crc32c_tables.c, crc32c_x86.c and
 * crc32c_arm.c. Promises: the same number from all. */
#include "base/crc32c.h"

#include "base/cpu.h"
#include "base/crc32c_arm.h"
#include "base/crc32c_tables.h"
#include "base/crc32c_x86.h"

enum {
    CRC = CV_CPU_CRC,
    CLMUL = CV_CPU_CRC | CV_CPU_CLMUL,
    AVX2 = CLMUL | CV_CPU_VCLMUL | CV_CPU_AVX2,
    AVX512 = CLMUL | CV_CPU_VCLMUL | CV_CPU_AVX512
};

static const cv_crc32c_kind kinds[] = {
#if CV_CPU_IS_X86
    {"AVX-512, six lanes", AVX512, CV_CPU_CRC_TWICE, cv_crc32c_x86_512_six},
    {"AVX-512", AVX512, 0, cv_crc32c_x86_512},
    {"AVX2, six lanes", AVX2, CV_CPU_CRC_TWICE, cv_crc32c_x86_256_six},
    {"AVX2", AVX2, 0, cv_crc32c_x86_256},
    {"SSE4.2, six lanes", CLMUL, CV_CPU_CRC_TWICE, cv_crc32c_x86_128_six},
    {"SSE4.2", CLMUL, 0, cv_crc32c_x86_128},
    {"instruction", CRC, 0, cv_crc32c_x86_word},
#elif CV_CPU_IS_ARM
    {"PMULL", CLMUL, 0, cv_crc32c_arm_128},
    {"instruction", CRC, 0, cv_crc32c_arm_word},
#endif
    {"portable", 0, 0, cv_crc32c_portable},
};

const cv_crc32c_kind *cv_crc32c_kinds(int *n)
{
    *n = (int)(sizeof kinds / sizeof kinds[0]);
    return kinds;
}

uint32_t cv_crc32c(uint32_t crc, const void *bytes, size_t size)
{
    const cv_crc32c_kind *kind = kinds;
    unsigned missing = ~cv_cpu_features(); /* asked once: blocks of 2 KiB feel six calls */
    while ((kind->needs | kind->suits) & missing) kind++;
    return kind->run(crc, bytes, size);
}
