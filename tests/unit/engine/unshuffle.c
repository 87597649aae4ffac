/* Unshuffling: every kind that the processor has against the definition, for all short
 * runs at every alignment and for long ones, and not a byte beside the items.
 *
 * usage: test_unshuffle [SEED] */
#include "base/cpu.h"
#include "engine/items/copy.h"
#include "engine/items/unshuffle.h"
#include "support/check.h"
#include "support/random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static uint64_t seed;

enum { EDGE = 64, MOST = 5000, MOST_SIZE = 8, ROOM = MOST * MOST_SIZE + 4 * EDGE };

static uint8_t source[ROOM], got[ROOM], expected[ROOM];

static cv_unshuffle_function *function_of(const cv_unshuffle_kind *kind, int item_size)
{
    return item_size == 2 ? kind->of_2 : item_size == 4 ? kind->of_4 : kind->of_8;
}

/* A run of `n` items whose planes are `gap` bytes apart, in memory of exactly that size. */
static void check_run(cv_unshuffle_function *run, int item_size, int64_t n, int64_t gap,
                      int64_t shift)
{
    int64_t plane = n + gap;
    size_t size = (size_t)(n * item_size);
    memset(got, 0xa5, size + 2 * EDGE + (size_t)shift);
    memset(expected, 0xa5, size + 2 * EDGE + (size_t)shift);
    for (int64_t i = 0; i < n; i++)
        for (int k = 0; k < item_size; k++)
            expected[EDGE + shift + i * item_size + k] = source[shift + k * plane + i];
    run(source + shift, plane, n, got + EDGE + shift);
    assert_memory_equal(got, expected, size + 2 * EDGE + (size_t)shift);
}

static void check_kind(const cv_unshuffle_kind *kind, rng *r)
{
    for (int item_size = 2; item_size <= MOST_SIZE; item_size *= 2) {
        cv_unshuffle_function *run = function_of(kind, item_size);
        for (int64_t n = 0; n <= 300; n++)
            for (int64_t shift = 0; shift < EDGE; shift += 1 + n / 40)
                check_run(run, item_size, n, n % 3, shift);
        for (int round = 0; round < 300; round++)
            check_run(run, item_size, rng_between(r, 0, MOST - EDGE), rng_between(r, 0, 7),
                      rng_between(r, 0, EDGE - 1));
    }
}

static void every_kind_as_defined(void **state)
{
    (void)state;
    rng r = rng_from_seed(seed);
    int n;
    const cv_unshuffle_kind *kinds = cv_unshuffle_kinds(&n);
    rng_fill(&r, source, sizeof source);
    assert_int_equal(kinds[n - 1].needs, 0);
    for (int i = 0; i < n; i++) {
        bool can = cv_cpu_can(kinds[i].needs);
        if (can) check_kind(&kinds[i], &r);
        print_message("%s: %s\n", kinds[i].name, can ? "tested" : "not on this machine");
    }
}

/* Sources that end where their memory ends: a sanitizer detects reads after it. */
static void nothing_behind_is_read(void **state)
{
    (void)state;
    int n_kinds;
    const cv_unshuffle_kind *kinds = cv_unshuffle_kinds(&n_kinds);
    for (int i = 0; i < n_kinds; i++) {
        if (!cv_cpu_can(kinds[i].needs)) continue;
        for (int item_size = 2; item_size <= MOST_SIZE; item_size *= 2)
            for (int64_t n = 1; n < 200; n++) {
                size_t size = (size_t)(n * item_size);
                uint8_t *src = check_alloc(size), *dst = check_alloc(size);
                memset(src, 7, size);
                function_of(&kinds[i], item_size)(src, n, n, dst);
                assert_memory_equal(src, dst, size);
                free(src);
                free(dst);
            }
    }
}

/* Boxes of all item sizes give the same through the kernels of each kind. */
static void boxes_are_the_same_by_every_kind(void **state)
{
    (void)state;
    enum { ROUNDS = 3000 };
    rng r = rng_from_seed(seed + 1);
    int n_kinds;
    const cv_unshuffle_kind *kinds = cv_unshuffle_kinds(&n_kinds);
    for (int round = 0; round < ROUNDS; round++) {
        static const int sizes[] = {2, 3, 4, 7, 8, 16};
        int64_t size = sizes[rng_between(&r, 0, 5)], shape[2], strides[2], to[2];
        int64_t block[2] = {rng_between(&r, 1, 20), rng_between(&r, 1, 100)};
        for (int d = 0; d < 2; d++) shape[d] = rng_between(&r, 1, block[d]);
        strides[1] = to[1] = size;
        strides[0] = size * block[1];
        to[0] = size * shape[1];
        int64_t first = rng_between(&r, 0, block[0] - shape[0]) * block[1] +
                        rng_between(&r, 0, block[1] - shape[1]);
        cv_shuffled from = {source, first * size, block[0] * block[1] * size, strides};
        size_t bytes = (size_t)(shape[0] * shape[1] * size);
        cv_cpu_allow(0);
        cv_unshuffle_box(2, shape, size, from, (cv_strided){expected, to});
        for (int i = 0; i < n_kinds; i++) {
            cv_cpu_allow(kinds[i].needs);
            memset(got, 0, bytes);
            cv_unshuffle_box(2, shape, size, from, (cv_strided){got, to});
            assert_memory_equal(got, expected, bytes);
        }
        cv_cpu_allow(~0U);
    }
}

int main(int argc, char **argv)
{
    seed = seed_argument(argc, argv, 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_as_defined),
        cmocka_unit_test(nothing_behind_is_read),
        cmocka_unit_test(boxes_are_the_same_by_every_kind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
