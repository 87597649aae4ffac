/* value/decimal.h against the C library: what is printed without it is what %g prints with the
 * fewest digits that read back the same, and what is read is what strtod reads.
 * usage: test_decimal [SEED] */
#include "value/decimal.h"

#include "random.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static rng numbers;

static uint64_t next(void) { return rng_next(&numbers); }

static void finish(char *text)
{
    if (!strpbrk(text, ".e")) strcat(text, ".0");
}

static void expect_double(double value)
{
    char text[CV_DECIMAL_SIZE], plain[CV_DECIMAL_SIZE];
    double back;
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(plain, sizeof plain, "%.*g", digits, value);
        if (strtod(plain, NULL) == value) break;
    }
    finish(plain);
    cv_decimal_print(value, text);
    if (strcmp(text, plain) != 0) fail_msg("%a: %s, not %s", value, text, plain);
    if (!cv_decimal_real(text, strlen(text), &back) ||
        memcmp(&back, &value, sizeof back) != 0)
        fail_msg("%s is read as %a, not as %a", text, back, value);
}

static void expect_single(float value)
{
    char text[CV_DECIMAL_SIZE], plain[CV_DECIMAL_SIZE];
    float back;
    for (int digits = 6; digits <= 9; digits++) {
        snprintf(plain, sizeof plain, "%.*g", digits, (double)value);
        if (strtof(plain, NULL) == value) break;
    }
    finish(plain);
    cv_decimal_print_single(value, text);
    if (strcmp(text, plain) != 0) fail_msg("%a: %s, not %s", (double)value, text, plain);
    if (!cv_decimal_single(text, strlen(text), &back) ||
        memcmp(&back, &value, sizeof back) != 0)
        fail_msg("%s is read as %a, not as %a", text, (double)back, (double)value);
}

static void expect_text(const char *text)
{
    double real = -1, plain = strtod(text, NULL);
    float single = -1, plain_single = strtof(text, NULL);
    bool fits = cv_decimal_real(text, strlen(text), &real);
    bool fits_single = cv_decimal_single(text, strlen(text), &single);
    if (fits != (isfinite(plain) != 0) || (fits && memcmp(&real, &plain, sizeof real) != 0))
        fail_msg("%s is read as %a, not as %a", text, real, plain);
    if (fits_single != (isfinite(plain_single) != 0) ||
        (fits_single && memcmp(&single, &plain_single, sizeof single) != 0))
        fail_msg("%s is read as %a, not as %a", text, (double)single, (double)plain_single);
}

static void edges_are_those_of_the_c_library(void **state)
{
    static const double doubles[] = {0.0,
                                     -0.0,
                                     1e-4,
                                     9.9999999999999e-5,
                                     1e14,
                                     1e15,
                                     1e16,
                                     1e22,
                                     1e23,
                                     5e-324,
                                     1.7976931348623157e308,
                                     0.1,
                                     1.0 / 3,
                                     100.0,
                                     123456789012345.0,
                                     999999999999999.9,
                                     9007199254740993.0,
                                     0.3,
                                     2.5};
    static const float singles[] = {0.0F,      -0.0F,    0.1F, 1e-4F,       999999.0F,
                                    999999.9F, 1e6F,     1e9F, 16777217.0F, 3.4028235e38F,
                                    1e-45F,    1.0F / 3, 0.5F};
    static const char *const texts[] = {"0",
                                        "-0",
                                        "-0.0",
                                        "0e500",
                                        "0.0e-500",
                                        "1e400",
                                        "-1e400",
                                        "1e-400",
                                        "1e99999999999999",
                                        "1e-99999999999999",
                                        "9007199254740993",
                                        "9007199254740992",
                                        "9007199254740993e-1",
                                        "0.000000000000000000000000000000000000001",
                                        "1e22",
                                        "1e23",
                                        "123456789012345678901234",
                                        "1.00000000000000000000000000000000000000",
                                        "16777217",
                                        "16777217.0000001",
                                        "1e38",
                                        "3.4028236e38",
                                        "3.4e38",
                                        "1.1754943e-38",
                                        "1.4e-45",
                                        "1E+2",
                                        "1E-2",
                                        "5.960464477539063e-8",
                                        "1.00000005960464477539062500000001",
                                        "1.000000059604644775390625",
                                        "0.5e0"};
    (void)state;
    for (size_t i = 0; i < sizeof doubles / sizeof doubles[0]; i++) expect_double(doubles[i]);
    for (size_t i = 0; i < sizeof singles / sizeof singles[0]; i++) expect_single(singles[i]);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) expect_text(texts[i]);
}

static void random_numbers_are_those_of_the_c_library(void **state)
{
    enum { N = 100000 };
    static const double tens[] = {1, 1e1, 1e2, 1e3, 1e5, 1e8, 1e11, 1e15, 1e19};
    (void)state;
    for (int i = 0; i < N; i++) {
        double real, whole = (double)(next() >> (next() % 52 + 12));
        float single;
        char text[64];
        uint64_t bits = next();
        uint32_t low = (uint32_t)bits;
        memcpy(&real, &bits, sizeof real);
        memcpy(&single, &low, sizeof single);
        if (isfinite(real)) expect_double(real);
        if (isfinite(single)) expect_single(single);
        real = whole / tens[next() % 9];
        expect_double(bits & 1 ? -real : real);
        expect_single((float)real);
        snprintf(text, sizeof text, "%llu.%llue%d",
                 (unsigned long long)(next() >> next() % 64),
                 (unsigned long long)(next() >> next() % 64), (int)(next() % 60) - 30);
        expect_text(text);
    }
}

/* Near the middle between two singles the double that is nearest says nothing. */
static void singles_are_rounded_once(void **state)
{
    (void)state;
    for (int i = 0; i < 20000; i++) {
        float single = (float)(next() >> 40) / 1024.0F, above = nextafterf(single, INFINITY);
        double middle = ((double)single + (double)above) / 2;
        char text[64];
        snprintf(text, sizeof text, "%.*f", (int)(next() % 20), middle);
        expect_text(text);
        strcat(text, "0000000000000000000001");
        if (strchr(text, '.')) expect_text(text);
    }
}

int main(int argc, char **argv)
{
    numbers = rng_from_seed(seed_argument(argc, argv, 1));
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(edges_are_those_of_the_c_library),
        cmocka_unit_test(random_numbers_are_those_of_the_c_library),
        cmocka_unit_test(singles_are_rounded_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
