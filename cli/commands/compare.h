/* Two items of one dtype: the same, or close enough. */
#ifndef CLI_COMPARE_H
#define CLI_COMPARE_H

#include "cli.h"

typedef struct tolerance {
    double absolute, relative; /* |a - b| <= absolute + relative * |b|, as numpy.isclose */
} tolerance;

/* True when both describe the same items: kinds, sizes, byte order, fields. */
bool compare_dtypes(const caterva_dtype *a, const caterva_dtype *b);

/* True when the items at `a` and `b` are equal, a NaN to a NaN, NaT to NaT, or their
 * numbers are as close as the tolerance says; field by field. Bytes between fields do
 * not count. */
bool compare_items(const caterva_dtype *dtype, const uint8_t *a, const uint8_t *b,
                   const tolerance *close);

#endif
