/* Numbers as JSON has them, whatever the program's locale. */
#ifndef CV_VALUE_DECIMAL_H
#define CV_VALUE_DECIMAL_H

#include "base/status.h"

/* Room for the longest form, NUL included. */
enum { CV_DECIMAL_SIZE = 32 };

/* The fewest decimals that read back the same; a real stays one ("1.0"). NaN and the
 * infinities are JSON texts, which float() of Python and Number() of JavaScript read. */
void cv_decimal_print(double value, char text[CV_DECIMAL_SIZE]);
void cv_decimal_print_single(float value, char text[CV_DECIMAL_SIZE]);

/* A whole number; returns its bytes. */
size_t cv_decimal_print_whole(uint64_t value, bool negative, char text[CV_DECIMAL_SIZE]);

/* Bytes of the number that `text` begins with, 0 when there is none: only JSON's grammar
 * counts. *whole: without a fraction and exponent. */
size_t cv_decimal_span(const char *text, size_t size, bool *whole);

/* The number of such a text. False beyond the range of the type; cv_decimal_whole takes
 * whole ones only, and gives -0 as 0. */
bool cv_decimal_real(const char *text, size_t size, double *out);
bool cv_decimal_single(const char *text, size_t size, float *out);
bool cv_decimal_whole(const char *text, size_t size, bool *negative, uint64_t *out);

#endif
