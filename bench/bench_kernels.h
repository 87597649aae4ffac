/* The option --kernels NAME: measures with the kernels of an older processor. Only for programs
 * that are linked with the static library. */
#ifndef BENCH_KERNELS_H
#define BENCH_KERNELS_H

#include "bench.h"

#include "base/cpu.h"

#include <string.h>

typedef struct bench_kernels {
    const char *name;
    unsigned features;
} bench_kernels;

static const bench_kernels bench_all_kernels[] = {
    {"all", ~0U},
    {"avx2", CV_CPU_CRC | CV_CPU_CLMUL | CV_CPU_VCLMUL | CV_CPU_AVX2 | CV_CPU_NEON |
                 CV_CPU_CRC_TWICE},
    {"clmul", CV_CPU_CRC | CV_CPU_CLMUL | CV_CPU_AVX2 | CV_CPU_NEON | CV_CPU_CRC_TWICE},
    {"sse", CV_CPU_CRC | CV_CPU_CLMUL | CV_CPU_CRC_TWICE},
    {"crc", CV_CPU_CRC},
    {"portable", 0},
};
enum { BENCH_N_KERNELS = sizeof(bench_all_kernels) / sizeof(bench_all_kernels[0]) };

/* Removes --kernels from the arguments and applies it; returns the name, "all" by default. */
static inline const char *bench_take_kernels(int *argc, char **argv)
{
    int at = 1;
    while (at < *argc && strcmp(argv[at], "--kernels") != 0) at++;
    if (at + 1 >= *argc) return "all";
    const char *wanted = argv[at + 1];
    for (int i = at; i + 2 <= *argc; i++) argv[i] = argv[i + 2];
    *argc -= 2;
    for (int i = 0; i < BENCH_N_KERNELS; i++) {
        if (strcmp(wanted, bench_all_kernels[i].name) != 0) continue;
        cv_cpu_allow(bench_all_kernels[i].features);
        return wanted;
    }
    bench_need(0, wanted, "is not one of all, avx2, clmul, sse, crc, portable");
    return NULL;
}

#endif
