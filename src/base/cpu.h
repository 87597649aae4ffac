/* Features of this processor, for kernels with several implementations. Kernels that need more than
 * the build's base are compiled with target attributes and selected at run time. */
#ifndef CV_BASE_CPU_H
#define CV_BASE_CPU_H

#include <stdbool.h>

#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
#define CV_CPU_IS_X86 1
#else
#define CV_CPU_IS_X86 0
#endif

#if defined(__aarch64__) && !defined(__ARM_BIG_ENDIAN) &&                                    \
    (defined(__GNUC__) || defined(__clang__))
#define CV_CPU_IS_ARM 1
#else
#define CV_CPU_IS_ARM 0
#endif

/* One bit for each group of instructions. No bit implies another: a kernel names all it needs. */
typedef enum cv_cpu_feature {
    CV_CPU_CRC = 1 << 0,    /* an instruction for CRC32C: SSE4.2, ARM's crc            */
    CV_CPU_CLMUL = 1 << 1,  /* carry-less products of 64 bits: PCLMULQDQ, PMULL        */
    CV_CPU_VCLMUL = 1 << 2, /* carry-less products in wider registers: VPCLMULQDQ      */
    CV_CPU_AVX2 = 1 << 3,   /* AVX2 and F16C, which every CPU with AVX2 has */
    CV_CPU_AVX512 = 1 << 4, /* AVX-512 F, VL, BW and DQ                                */
    CV_CPU_NEON = 1 << 5,
    CV_CPU_CRC_TWICE = 1 << 6 /* the CPU starts several crc instructions per cycle */
} cv_cpu_feature;

/* Returns the processor's features that cv_cpu_allow permits. Costs one load. Any thread. */
unsigned cv_cpu_features(void);

/* Whether all of `wanted` are available. */
static inline bool cv_cpu_can(unsigned wanted)
{
    return (cv_cpu_features() & wanted) == wanted;
}

/* For tests and benchmarks: from now on cv_cpu_features returns no feature outside `wanted`. 0
 * leaves the portable kernels; ~0u allows all features. */
void cv_cpu_allow(unsigned wanted);

#endif
