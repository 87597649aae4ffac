/* Seeded random numbers for tests: the same seed gives the same run on any machine. */
#ifndef SUPPORT_RANDOM_H
#define SUPPORT_RANDOM_H

#include <stddef.h>
#include <stdint.h>

typedef struct rng {
    uint64_t state;
} rng;

rng rng_from_seed(uint64_t seed);

uint64_t rng_next(rng *r);

/* Uniform enough for tests; both ends are included. */
int64_t rng_between(rng *r, int64_t low, int64_t high);
int rng_int(rng *r, int low, int high);

/* True once in `n` calls on average. */
int rng_one_in(rng *r, int n);

void rng_fill(rng *r, void *bytes, size_t size);

/* Returns argv[index] as a number (decimal or 0x...), or `otherwise` without this argument. */
uint64_t number_argument(int argc, char **argv, int index, uint64_t otherwise);

/* Returns the seed: argv[index] or, if this is missing, the time. Prints it to stdout, so that a
 * failed run can be repeated. */
uint64_t seed_argument(int argc, char **argv, int index);

#endif
