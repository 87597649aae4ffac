/* Items as numbers: loads items into one of three wide types, so that computations are written
 * three times instead of thirty. Also tallies of numbers. */
#ifndef CV_ENGINE_ITEMS_NUMBERS_H
#define CV_ENGINE_ITEMS_NUMBERS_H

#include "base/status.h"
#include <caterva_upkeep.h>

typedef enum cv_number_class { CV_INT, CV_UINT, CV_REAL } cv_number_class;

/* A number of one class. */
typedef union cv_wide {
    int64_t i;
    uint64_t u;
    double f;
} cv_wide;

typedef struct cv_number_type {
    cv_number_class number_class;
    bool is_time; /* CV_INT only: NumPy's datetime64 or timedelta64, where INT64_MIN is NaT */
    int64_t item_size;
    bool swap; /* not in native byte order */
    /* Loads n items, one every `step` bytes. */
    void (*load)(const uint8_t *src, int64_t step, int64_t n, cv_wide *out);
} cv_number_type;

/* Accepts bool, integers of 1 to 8 bytes, floats of 2 to 8 and times; else CATERVA_EDTYPE. */
cv_status cv_number_type_of(const char *description, cv_number_type *out, cv_error *err);

/* Stores a loaded value as an item, in the array's byte order. */
void cv_number_store(const cv_number_type *type, cv_wide value, uint8_t *item);

/* Converts values to double, in place. */
void cv_numbers_to_real(cv_number_class from, cv_wide *values, int64_t n);

/* Removes NaN (or NaT) from values[0..n) and returns how many are left. */
int64_t cv_numbers_drop_nan(const cv_number_type *type, cv_wide *values, int64_t n);

/* Sums n doubles in parallel lanes; the error grows with n / 8. */
double cv_numbers_sum(const cv_wide *values, int64_t n);

/* ---- Tallies: count, extremes, sum, mean and spread of numbers; can be added ---------------- */

/* An exact sum of integers: 128 bits in two's complement. */
typedef struct cv_exact_sum {
    int64_t high;
    uint64_t low;
} cv_exact_sum;

/* A sum of doubles with its rounding error: Knuth's TwoSum, TAOCP 4.2.2, theorem B. */
typedef struct cv_real_sum {
    double sum;
    double rest;
} cv_real_sum;

void cv_real_sum_add(cv_real_sum *sum, double value);
double cv_real_sum_value(const cv_real_sum *sum);

typedef struct cv_tally {
    int64_t n; /* numbers without NaN and NaT, which n_nan counts */
    int64_t n_nan;
    cv_wide min; /* undefined while n is 0 */
    cv_wide max;
    int64_t n_inf, n_negative_inf;
    cv_wide finite_min; /* undefined if all numbers are infinite */
    cv_wide finite_max;
    cv_exact_sum exact; /* of integers */
    cv_real_sum real;   /* of floats */
    cv_wide origin;     /* an integer close to the numbers; 0 for floats */
    double mean;        /* mean of the distances from `origin` */
    double squares;     /* sum of squared distances from the mean */
} cv_tally;

enum { CV_RUN = 512 };

/* Adds n <= CV_RUN values, and overwrites them. For times, counts and finds the extremes only. */
void cv_tally_run(cv_tally *tally, const cv_number_type *type, cv_wide *values, int64_t n);

bool cv_number_less(cv_number_class number_class, cv_wide a, cv_wide b);

/* Adds `value` n times. */
void cv_tally_repeat(cv_tally *tally, const cv_number_type *type, cv_wide value, int64_t n);

/* Adds the numbers of `from`. */
void cv_tally_add(cv_tally *tally, const cv_number_type *type, const cv_tally *from);

/* Converts the tally to its public form. */
void cv_tally_public(const cv_tally *tally, const cv_number_type *type, caterva_stats *out);

/* Returns the double nearest to the mean; NaN if n is 0. */
double cv_tally_mean(const cv_tally *tally, const cv_number_type *type);

#endif
