/* Damaged copies of real bytes, each in an allocation of exactly its size, so that a
 * sanitizer detects the first byte read after it. */
#ifndef UNIT_MUTATE_H
#define UNIT_MUTATE_H

#include "random.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef void mutant_check(const uint8_t *bytes, size_t size, void *context);

static inline uint8_t *copy_exactly(const uint8_t *bytes, size_t size)
{
    uint8_t *copy = malloc(size ? size : 1);
    if (!copy) abort();
    memcpy(copy, bytes, size);
    return copy;
}

static inline void check_truncations(const uint8_t *bytes, size_t size, mutant_check *check,
                                     void *context)
{
    for (size_t n = 0; n < size; n++) {
        uint8_t *copy = copy_exactly(bytes, n);
        check(copy, n, context);
        free(copy);
    }
}

/* Changes one to four bytes: a flipped bit, an extreme value, or anything. */
static inline void damage(rng *random, uint8_t *bytes, size_t size)
{
    static const uint8_t extremes[] = {0x00, 0x01, 0x7f, 0x80, 0xff};
    for (int n = rng_int(random, 1, 4); n > 0 && size > 0; n--) {
        size_t at = (size_t)rng_between(random, 0, (int64_t)size - 1);
        int how = rng_int(random, 0, 2);
        if (how == 0)
            bytes[at] ^= (uint8_t)(1 << rng_int(random, 0, 7));
        else if (how == 1)
            bytes[at] = extremes[rng_int(random, 0, 4)];
        else
            bytes[at] = (uint8_t)rng_next(random);
    }
}

static inline void check_mutants(rng *random, int n, const uint8_t *bytes, size_t size,
                                 mutant_check *check, void *context)
{
    for (int i = 0; i < n; i++) {
        size_t kept =
            rng_one_in(random, 4) ? (size_t)rng_between(random, 0, (int64_t)size) : size;
        uint8_t *copy = copy_exactly(bytes, kept);
        damage(random, copy, kept);
        check(copy, kept, context);
        free(copy);
    }
}

#endif
