/* The spread of large integers that are close to each other must not be affected by rounding.
 * Compares runs, repeats and sums of tallies with the spread of the distances, which are
 * small and exact.
 *
 * usage: test_tally [SEED] */
#include "engine/items/numbers.h"
#include "support/random.h"

#include <caterva_upkeep.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static uint64_t seed;

enum { ITEMS = 3000, TALLIES = 3 };

/* The counted numbers without their common part. */
typedef struct known {
    double n, sum, squares;
} known;

static void note(known *k, double value, double n)
{
    k->n += n;
    k->sum += n * value;
    k->squares += n * value * value;
}

static double spread_of(const known *k)
{
    return sqrt((k->squares - k->sum * k->sum / k->n) / k->n);
}

/* `common` + 0 .. most, of class `c`. */
static double std_of(rng *r, cv_number_class c, uint64_t common, int64_t most, known *k)
{
    cv_wide values[CV_RUN];
    caterva_stats stats;
    const cv_number_type type = {.number_class = c, .item_size = 8};
    cv_tally parts[TALLIES] = {{0}}, all = {0};
    for (int64_t left = ITEMS; left > 0;) {
        int64_t n = rng_between(r, 1, CV_RUN);
        cv_tally *part = &parts[rng_between(r, 0, TALLIES - 1)];
        int64_t last = 0;
        for (int64_t i = 0; i < n; i++) {
            last = rng_between(r, 0, most);
            values[i].u = common + (uint64_t)last;
            note(k, (double)last, 1);
        }
        const cv_wide again = values[n - 1];
        cv_tally_run(part, &type, values, n);
        cv_tally_repeat(part, &type, again, n);
        note(k, (double)last, (double)n);
        left -= n;
    }
    for (int i = 0; i < TALLIES; i++) cv_tally_add(&all, &type, &parts[i]);
    cv_tally_public(&all, &type, &stats);
    assert_int_equal(stats.n_items, (int64_t)k->n);
    return stats.std;
}

static void check(cv_number_class c, uint64_t common)
{
    static const int64_t most[] = {0, 1, 9, 1000, 1 << 20};
    rng r = rng_from_seed(seed ^ common);
    for (size_t i = 0; i < sizeof most / sizeof most[0]; i++) {
        known k = {0};
        double got = std_of(&r, c, common, most[i], &k), want = spread_of(&k);
        if (most[i] == 0) assert_true(got == 0);
        assert_true(fabs(got - want) <= 1e-9 * want);
    }
}

static void test_integers(void **state)
{
    (void)state;
    check(CV_INT, 0);
    check(CV_INT, 1000000000000001);
    check(CV_INT, INT64_MAX - (1 << 20));
    check(CV_INT, (uint64_t)INT64_MIN);
    check(CV_INT, (uint64_t)-1000000000000001);
    check(CV_INT, (uint64_t)-500); /* on both sides of 0 */
    check(CV_UINT, UINT64_MAX - (1 << 20));
    check(CV_UINT, (uint64_t)INT64_MAX - 500);
}

static void test_ends(void **state)
{
    (void)state;
    const cv_number_type type = {.number_class = CV_INT, .item_size = 8};
    cv_wide values[] = {{.i = INT64_MIN}, {.i = INT64_MAX}};
    caterva_stats stats;
    cv_tally all = {0};
    cv_tally_run(&all, &type, values, 2);
    cv_tally_repeat(&all, &type, (cv_wide){.i = INT64_MIN}, 3);
    cv_tally_repeat(&all, &type, (cv_wide){.i = INT64_MAX}, 3);
    cv_tally_public(&all, &type, &stats);
    assert_true(stats.std == 0x1p63);
    assert_int_equal(stats.sum.i, -4);
}

/* Chunks of equal items are counted together: their sum may need more than 64 bits. */
static void test_many_equal(void **state)
{
    (void)state;
    const int64_t values[] = {0x7fc00000, -3, INT64_MIN, INT64_MAX, 0};
    const cv_number_type type = {.number_class = CV_INT, .item_size = 8};
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++) {
        caterva_stats stats;
        cv_tally all = {0};
        cv_tally_repeat(&all, &type, (cv_wide){.i = values[i]}, (INT64_C(1) << 34) + 5);
        cv_tally_public(&all, &type, &stats);
        assert_true(stats.mean == (double)values[i]);
    }
}

/* The sum of 0.1s is rounded, but their spread is 0. */
static void test_equal_floats(void **state)
{
    (void)state;
    const cv_number_type type = {.number_class = CV_REAL, .item_size = 8};
    cv_wide values[CV_RUN];
    caterva_stats stats;
    cv_tally all = {0};
    for (int i = 0; i < CV_RUN; i++) values[i].f = 0.1;
    cv_tally_run(&all, &type, values, CV_RUN - 1);
    cv_tally_repeat(&all, &type, (cv_wide){.f = 0.1}, 77);
    cv_tally_public(&all, &type, &stats);
    assert_true(stats.std == 0);
}

int main(int argc, char **argv)
{
    seed = seed_argument(argc, argv, 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_integers),
        cmocka_unit_test(test_ends),
        cmocka_unit_test(test_many_equal),
        cmocka_unit_test(test_equal_floats),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
