/* Items as numbers: loaded from their stored form into one of three wide ones, so
 * that what computes with them is written three times, not thirty. */
#ifndef CV_ENGINE_NUMBERS_H
#define CV_ENGINE_NUMBERS_H

#include "base/status.h"

typedef enum cv_number_class { CV_INT, CV_UINT, CV_REAL } cv_number_class;

/* A number of one class. */
typedef union cv_wide {
    int64_t i;
    uint64_t u;
    double f;
} cv_wide;

typedef struct cv_number_type {
    cv_number_class number_class;
    bool is_time; /* of CV_INT: NumPy's datetime64 or timedelta64, INT64_MIN is NaT */
    int64_t item_size;
    bool swap; /* bytes are in the other order than the machine's */
    /* Loads n items that stand `step` bytes apart. */
    void (*load)(const uint8_t *src, int64_t step, int64_t n, cv_wide *out);
} cv_number_type;

/* bool, integers of 1 to 8 bytes, floats of 2 to 8, times. CATERVA_EDTYPE names
 * the description of all else. */
cv_status cv_number_type_of(const char *description, cv_number_type *out, cv_error *err);

/* The item that `value` came from, in the array's byte order. */
void cv_number_store(const cv_number_type *type, cv_wide value, uint8_t *item);

/* Makes doubles of a class's values, in place. */
void cv_numbers_to_real(cv_number_class from, cv_wide *values, int64_t n);

/* Drops NaN (or NaT) from values[0..n); returns how many are left. */
int64_t cv_numbers_drop_nan(const cv_number_type *type, cv_wide *values, int64_t n);

/* The sum of n doubles: lanes side by side, so that the error grows with n / 8. */
double cv_numbers_sum(const cv_wide *values, int64_t n);

/* The same of their squared distances from `mean`. */
double cv_numbers_squares(const cv_wide *values, int64_t n, double mean);

#endif
