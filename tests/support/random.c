/* Test support: seeded random numbers (SplitMix64), and arguments for the seed. */
#include "random.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

rng rng_from_seed(uint64_t seed) { return (rng){.state = seed}; }

uint64_t rng_next(rng *r)
{
    r->state += UINT64_C(0x9E3779B97F4A7C15);
    uint64_t z = r->state;
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

int64_t rng_between(rng *r, int64_t low, int64_t high)
{
    uint64_t range = (uint64_t)high - (uint64_t)low + 1;
    return (int64_t)((uint64_t)low + rng_next(r) % range);
}

int rng_int(rng *r, int low, int high) { return (int)rng_between(r, low, high); }

int rng_one_in(rng *r, int n) { return rng_next(r) % (uint64_t)n == 0; }

void rng_fill(rng *r, void *bytes, size_t size)
{
    uint8_t *to = bytes;
    while (size > 0) {
        uint64_t word = rng_next(r);
        size_t n = size < sizeof(word) ? size : sizeof(word);
        memcpy(to, &word, n);
        to += n;
        size -= n;
    }
}

uint64_t number_argument(int argc, char **argv, int index, uint64_t otherwise)
{
    return argc > index ? strtoull(argv[index], NULL, 0) : otherwise;
}

uint64_t seed_argument(int argc, char **argv, int index)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    uint64_t clock = (uint64_t)now.tv_sec * 1000003u + (uint64_t)now.tv_nsec;
    uint64_t seed = number_argument(argc, argv, index, clock);
    printf("seed 0x%016llx\n", (unsigned long long)seed);
    fflush(stdout);
    return seed;
}
