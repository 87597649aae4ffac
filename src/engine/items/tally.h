/* What is known of numbers seen so far: count, extremes, sum, mean and spread. Two
 * tallies can be added, so that threads count apart. */
#ifndef CV_ENGINE_TALLY_H
#define CV_ENGINE_TALLY_H

#include "engine/items/numbers.h"

/* A sum of integers, exact: 128 bits in two's complement. */
typedef struct cv_exact_sum {
    int64_t high;
    uint64_t low;
} cv_exact_sum;

/* A sum of doubles with what rounding took from it: Knuth's TwoSum, The Art of
 * Computer Programming 4.2.2, theorem B. */
typedef struct cv_real_sum {
    double sum;
    double rest;
} cv_real_sum;

void cv_real_sum_add(cv_real_sum *sum, double value);
double cv_real_sum_value(const cv_real_sum *sum);

typedef struct cv_tally {
    int64_t n; /* numbers; NaN and NaT are only counted */
    int64_t n_nan;
    cv_wide min; /* undefined while n is 0 */
    cv_wide max;
    int64_t n_inf, n_negative_inf;
    cv_wide finite_min; /* undefined if all n are infinite */
    cv_wide finite_max;
    cv_exact_sum exact; /* of integers */
    cv_real_sum real;   /* of floats */
    cv_wide origin;     /* an integer near the others, exactly; of floats 0 */
    double mean;        /* so far, its distance from there, to find the next line: */
    double squares;     /* sum of squared distances from the mean */
} cv_tally;

enum { CV_RUN = 512 };

/* Counts n <= CV_RUN values, which are clobbered. Of times: n and extremes only. */
void cv_tally_run(cv_tally *tally, const cv_number_type *type, cv_wide *values, int64_t n);

/* Counts `value` n times. */
void cv_tally_repeat(cv_tally *tally, const cv_number_type *type, cv_wide value, int64_t n);

/* Adds what `from` has counted. */
void cv_tally_add(cv_tally *tally, const cv_number_type *type, const cv_tally *from);

/* The public form of the whole tally. */
void cv_tally_public(const cv_tally *tally, const cv_number_type *type, caterva_stats *out);

/* The nearest double to the mean; NaN for n 0. */
double cv_tally_mean(const cv_tally *tally, const cv_number_type *type);

#endif
