/* Floats of 16 bits: IEEE 754's binary16 (NumPy's float16), and bfloat16, the upper
 * half of a float of 32 bits. */
#ifndef CV_ENGINE_HALF_H
#define CV_ENGINE_HALF_H

#include <stdint.h>

/* What tells them apart. */
typedef struct cv_half_format {
    int fraction_bits;
    int bias;
} cv_half_format;

#define CV_FLOAT16 ((cv_half_format){10, 15})
#define CV_BFLOAT16 ((cv_half_format){7, 127})

/* Exact; a NaN keeps its payload. */
double cv_half_to_double(uint16_t half, cv_half_format format);

/* To the nearest, of two equally near the even one, in a single rounding; what is too
 * large becomes infinite. A NaN keeps the upper bits of its payload and is quiet. */
uint16_t cv_double_to_half(double value, cv_half_format format);

/* The same for `n` float16 in this machine's byte order, one every `step` bytes; with
 * the processor's instructions where it has them. */
void cv_float16_to_doubles(const uint8_t *src, int64_t step, int64_t n, double *dst);
void cv_doubles_to_float16(const double *src, int64_t n, uint8_t *dst, int64_t step);

#endif
