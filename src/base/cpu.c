/* Room: base. Detects the processor's features once. */
#include "base/cpu.h"

#include <stdatomic.h>

#if CV_CPU_IS_ARM && defined(__linux__)
#include <sys/auxv.h>
#endif

#if CV_CPU_IS_X86

#include <cpuid.h>
#include <string.h>

/* Whether this is an AMD processor of family 1A (hexadecimal; Zen 5) or later. Such processors
 * start two crc instructions per cycle, but CPUID has no bit for that. bench_crc32c measures
 * 49 GB/s with six lanes (see crc.c) and 28 GB/s with three. */
static bool is_zen_5(void)
{
    enum { ZEN_5 = 0x1A, BASE_FAMILY_FULL = 15 };
    char vendor[12];
    unsigned a, b, c, d;
    if (!__get_cpuid(0, &a, &b, &c, &d)) return false;
    memcpy(vendor, &b, 4);
    memcpy(vendor + 4, &d, 4);
    memcpy(vendor + 8, &c, 4);
    if (memcmp(vendor, "AuthenticAMD", sizeof vendor) != 0) return false;
    if (!__get_cpuid(1, &a, &b, &c, &d)) return false;
    unsigned family = a >> 8 & 15;
    return family == BASE_FAMILY_FULL && family + (a >> 20 & 255) >= ZEN_5;
}

static unsigned found(void)
{
    unsigned has = 0;
    __builtin_cpu_init();
    if (__builtin_cpu_supports("sse4.2")) has |= CV_CPU_CRC;
    if (__builtin_cpu_supports("pclmul")) has |= CV_CPU_CLMUL;
    if (__builtin_cpu_supports("vpclmulqdq")) has |= CV_CPU_VCLMUL;
    if (__builtin_cpu_supports("avx2")) has |= CV_CPU_AVX2;
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq"))
        has |= CV_CPU_AVX512;
    if (is_zen_5()) has |= CV_CPU_CRC_TWICE;
    return has;
}

#elif CV_CPU_IS_ARM && defined(__linux__)

static unsigned found(void)
{
    enum { PMULL = 1 << 4, CRC32 = 1 << 7 }; /* bits of AT_HWCAP, from the kernel's ABI */
    unsigned long has = getauxval(AT_HWCAP);
    return CV_CPU_NEON | (has & CRC32 ? CV_CPU_CRC : 0U) | (has & PMULL ? CV_CPU_CLMUL : 0U);
}

#elif CV_CPU_IS_ARM && defined(__APPLE__)

static unsigned found(void) { return CV_CPU_NEON | CV_CPU_CRC | CV_CPU_CLMUL; }

#elif CV_CPU_IS_ARM

static unsigned found(void) { return CV_CPU_NEON; }

#else

static unsigned found(void) { return 0; }

#endif

/* Bit 30 of `features`: the features are detected. Threads that race store the same value. */
enum { ASKED = 1 << 30 };
static atomic_uint features;

unsigned cv_cpu_features(void)
{
    unsigned has = atomic_load_explicit(&features, memory_order_relaxed);
    if (has == 0) {
        has = found() | ASKED;
        atomic_store_explicit(&features, has, memory_order_relaxed);
    }
    return has;
}

void cv_cpu_allow(unsigned wanted)
{
    atomic_store_explicit(&features, (found() & wanted) | ASKED, memory_order_relaxed);
}
