/* Shared by the benchmark programs: a clock, random numbers, error exits. */
#ifndef BENCH_H
#define BENCH_H

#include "caterva.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static clockid_t bench_clock = CLOCK_MONOTONIC;

static inline double bench_now(void)
{
    struct timespec t;
    clock_gettime(bench_clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static inline uint64_t bench_random(uint64_t *state)
{
    *state += UINT64_C(0x9E3779B97F4A7C15);
    uint64_t z = *state;
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

static inline int64_t bench_below(uint64_t *state, int64_t limit)
{
    return (int64_t)(bench_random(state) % (uint64_t)limit);
}

/* Ends the program unless `good`: a failed benchmark has no result. */
static inline void bench_need(int good, const char *what, const char *why)
{
    if (good) return;
    fprintf(stderr, "%s: %s\n", what, why);
    exit(1);
}

static inline void bench_need_ok(caterva_status status, const caterva_error *err,
                                 const char *what)
{
    bench_need(status == CATERVA_OK, what, status == CATERVA_OK ? "" : err->message);
}

/* Returns the array's info. Only its numbers are valid, not its pointers. */
static inline caterva_info bench_info(caterva_array *array)
{
    const caterva_info *held;
    caterva_error err;
    bench_need_ok(caterva_info_get(array, &held, &err), &err, "describe");
    caterva_info info = *held;
    caterva_info_release(held);
    return info;
}

static inline void *bench_alloc(size_t size)
{
    void *memory = malloc(size > 0 ? size : 1);
    bench_need(memory != NULL, "malloc", "no memory");
    return memory;
}

#endif
