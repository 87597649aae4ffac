/* Float16 with the processor's instructions and portably give the same.
 * compat/test_convert.py compares with NumPy. */
#include "base/cpu.h"
#include "engine/items/convert.h"

#include "support/check.h"
#include "support/random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { ALL = 1 << 16, STEP = 3 };

static void all_halves_widen_alike(void **state)
{
    (void)state;
    uint8_t *halves = check_alloc((size_t)ALL * STEP);
    double *wide = check_alloc(ALL * sizeof wide[0]);
    for (uint32_t i = 0; i < ALL; i++) {
        uint16_t half = (uint16_t)i;
        memcpy(halves + (size_t)i * STEP, &half, sizeof half);
    }
    cv_float16_to_doubles(halves, STEP, ALL, wide);
    for (uint32_t i = 0; i < ALL; i++) {
        double by_bits = cv_half_to_double((uint16_t)i, CV_FLOAT16);
        uint64_t a, b, quiet = (i & 0x7fff) > 0x7c00 ? UINT64_C(1) << 51 : 0;
        memcpy(&a, &wide[i], sizeof a);
        memcpy(&b, &by_bits, sizeof b);
        assert_int_equal(a | quiet, b | quiet);
    }
    free(halves);
    free(wide);
}

/* Any bits, and bits for which only the lower part decides. */
static double random_double(rng *r)
{
    uint64_t bits = rng_next(r);
    double value;
    if (rng_one_in(r, 2)) {
        bits &= ~((UINT64_C(1) << 41) - 1);
        bits += (uint64_t)rng_int(r, -1, 1);
        bits &= ~(UINT64_C(0x7ff) << 52);
        bits |= (uint64_t)rng_int(r, 1023 - 28, 1023 + 18) << 52;
    }
    memcpy(&value, &bits, sizeof value);
    return value;
}

static void doubles_narrow_alike(void **state)
{
    rng *r = *state;
    static double values[1003];
    static uint8_t halves[1003 * STEP];
    for (int round = 0; round < 200; round++) {
        int n = rng_int(r, 0, 1003);
        for (int i = 0; i < n; i++) values[i] = random_double(r);
        cv_doubles_to_float16(values, n, halves, STEP);
        for (int i = 0; i < n; i++) {
            uint16_t half;
            memcpy(&half, halves + i * STEP, sizeof half);
            assert_int_equal(half, cv_double_to_half(values[i], CV_FLOAT16));
        }
    }
}

int main(int argc, char **argv)
{
    rng r = rng_from_seed(seed_argument(argc, argv, 1));
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_halves_widen_alike),
        cmocka_unit_test_prestate(doubles_narrow_alike, &r),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    cv_cpu_allow(0); /* without the processor's instructions */
    return failed + cmocka_run_group_tests(tests, NULL, NULL);
}
